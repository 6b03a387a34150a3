"""One element at many sets of queries by the compiled core: points are packed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._threads import map_threads, thread_count
from mercer.engine._tiling import pieces
from mercer.engine.pairs._cancellation import rounded_up
from mercer.engine.pairs._cutoff import extent2, reach, sorted_in_space
from mercer.engine.pairs._distances import squared_norms
from mercer.engine.programs._fields import Fields
from mercer.engine.programs._program import Program
from mercer.engine.sums._native import (
    PANELS,
    assembled,
    contiguous,
    left_out_bound,
    middle_of,
    pack_points,
    prepare,
    tile_rows,
    unsorted,
    weigher,
)


class PackedSum:
    """The sum of one element at many sets of queries: points are sorted and packed once.

    Parameters
    ----------
    program : Program
        Radial, without maps.
    X, A : arrays of shape (n, d) and (n, 1)
        In an order that puts neighbours together.
    order : int
        Of the derivatives.
    """

    def __init__(self, program: Program, X: Array, A: Array, order: int) -> None:
        self.program, self.order, self.A = program, order, A
        ready = prepare(program, X, X, order)
        largest, cutoff = extent2(X, X), np.inf
        if largest > 0.0:
            cutoff = reach(program, order, get_options().tolerance, rounded_up(largest))
        self.ready = ready = replace(ready, cutoff=cutoff)
        self.centre = np.zeros(1) if ready.form == 2 else X.mean(axis=0, dtype=np.float64)
        self.radius2 = float(squared_norms(ready.points).max())
        self.about, self.bound = (
            middle_of(program, ready.points),
            left_out_bound(program, ready, self.A),
        )
        weighed = weigher(program, ready.points, self.A, order, self.about)
        self.columns = {kind: part.shape[1] for kind, part in weighed(slice(0, 1)).items()}
        self.compiled = pack_points(program, ready, weighed, slice(0, len(X)))

    @classmethod
    def fits(cls, n: int, dim: int, order: int) -> bool:
        """Whether packed points take no more than a few times the memory for temporary arrays."""
        width = 2 + dim + sum(dim**t for t in range(order + 1))
        return bool(8 * n * width <= 3.0 * get_options().working_memory * 2**20)

    def __call__(self, Y: Array) -> Fields | None:
        """Fields at the queries; None where those lie too far out for the form of the distance."""
        ready = self.ready
        y = contiguous(Y - self.centre if ready.form == 1 else Y, ready.points.dtype)
        if ready.form == 1 and float(squared_norms(y).max()) > 1.01 * self.radius2:
            return None
        order = None
        if ready.cutoff < np.inf and len(y) > PANELS:
            order, y = sorted_in_space(y, PANELS)
        totals = {kind: np.empty((len(y), c)) for kind, c in self.columns.items()}
        share = -(-len(y) // (thread_count() * PANELS)) * PANELS
        rows = min(share, tile_rows(sum(self.columns.values()) + y.shape[1] + 16, len(self.A)))

        def run(tile: slice) -> None:
            self.compiled.sums(y[tile], [total[tile] for total in totals.values()], None)

        map_threads(run, list(pieces(len(y), rows)))
        sums = {kind: unsorted(total, order) for kind, total in totals.items()}
        asked = replace(ready, queries=y, query_order=order)
        return assembled(
            self.program, asked, 1, sums, self.order, Y.shape[1], self.about, self.bound
        )
