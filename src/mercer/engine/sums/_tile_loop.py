"""The loop over tiles that every kernel sum is: queries in parallel, points in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._threads import map_threads
from mercer.engine._points import n_columns, n_rows
from mercer.engine._tiling import pieces, plan
from mercer.engine.pairs._profile_tiles import from_log, log_jet, tile_jet
from mercer.engine.pairs._tiles import Pairs
from mercer.engine.programs._jets import Jet
from mercer.engine.programs._program import Program
from mercer.engine.sums._derivatives import Moments
from mercer.engine.sums._log_shift import finite, merged, raise_shift

AddTile = Callable[[list[Moments], Jet, list[Any], Any, slice], None]
"""add(moments, jet, inputs, rows, columns): add one tile to the moments of its queries."""

ZeroPairs = Callable[[Any, slice], Array]
"""zero_pairs(rows, columns): which pairs have coefficient zero and must not set the shift."""

Finish = Callable[[Any, list[Moments], Array], None]
"""finish(rows, moments, shift): turn the complete moments of some queries into results."""


class TileLoop:
    """Evaluate a program on all tiles between points X and queries Y.

    `arrays` and `bytes_per_row` say what a tile needs, as in `plan`; with `values_only` the values
    are all that `add` reads, and makes no arrays as large.
    """

    def __init__(
        self,
        program: Program,
        X: Any,
        Y: Any,
        *,
        order: int,
        shifted: bool,
        arrays: int,
        bytes_per_row: int,
        values_only: bool = False,
    ) -> None:
        self.program, self.order = program, order
        self.shifted = shifted and program.log_profile is not None
        self.pairs = Pairs(program, X, Y, order=order, shifted=self.shifted)
        self.n, self.m = n_rows(X), n_rows(Y)
        self._one_pass = values_only and not self.shifted and self.pairs.one_pass
        arrays = 1 if self._one_pass else arrays
        self.plan = plan(arrays, self.pairs.dtype, n_columns(Y), bytes_per_row)

    def run(
        self, lists: int, add: AddTile, finish: Finish, zero_pairs: ZeroPairs | None = None
    ) -> None:
        """Sum `lists` sets of moments for every query."""
        self.zero_pairs = zero_pairs
        tiles = self.plan.row_tiles(self.m, self.pairs.order(self.plan.rows))
        chunks = self.plan.chunks(self.m, self.n)
        if len(chunks) == 1:
            map_threads(lambda rows: finish(rows, *self._sum(rows, chunks[0], lists, add)), tiles)
            return
        jobs = [(rows, chunk) for rows in tiles for chunk in chunks]
        sums = map_threads(lambda job: self._sum(job[0], job[1], lists, add), jobs)
        for i, rows in enumerate(tiles):
            finish(rows, *merged(sums[i * len(chunks) : (i + 1) * len(chunks)]))

    def _sum(
        self, rows: Any, chunk: slice, lists: int, add: AddTile
    ) -> tuple[list[Moments], Array]:
        moments: list[Moments] = [{} for _ in range(lists)]
        length = count(rows)
        shift = np.full(length, -np.inf if self.shifted else 0.0)
        for columns in pieces(chunk.stop, self.plan.columns, chunk.start):
            if self._one_pass:
                add(moments, Jet(self.pairs.values(rows, columns)), [], rows, columns)
                continue
            inputs = self.pairs.tile(rows, columns)
            shape = (length, columns.stop - columns.start)
            if self.shifted:
                log = log_jet(self.program, inputs, self.order, shape, self.pairs.dtype)
                if self.zero_pairs is not None:
                    value = np.where(self.zero_pairs(rows, columns), -np.inf, log.value)
                    log = replace(log, value=value.astype(self.pairs.dtype))
                shift = raise_shift(moments, shift, log.value)
                jet = from_log(log, finite(shift)[:, None])
            else:
                jet = tile_jet(self.program, inputs, self.order, shape, self.pairs.dtype)
            add(moments, jet, inputs, rows, columns)
        return moments, shift


def count(rows: Any) -> int:
    """The number of queries in a slice or an index array."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)
