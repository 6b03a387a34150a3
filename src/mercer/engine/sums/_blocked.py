"""The blocked engine: kernel sums and Gram matrices on NumPy tiles, for every program.

Works for any kernel and any number of dimensions, and is the fallback if nothing was compiled.
Where possible, a tile is a BLAS product that the compiled core turns into kernel values in one
pass. Tiles run on the thread pool; each accumulates in float64.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._threads import map_threads
from mercer.engine._sizes import dense, n_columns, n_rows, pieces, tile_sizes
from mercer.engine.pairs._tiles import Pairs, from_log, tile_jet, without_cusps
from mercer.engine.programs._coef import Coef, Dense, LowRank
from mercer.engine.programs._jets import Jet
from mercer.engine.programs._program import Program
from mercer.engine.sums._derivatives import (
    Moments,
    accumulate,
    add_moments,
    cancelling_rows,
    with_one,
)
from mercer.engine.sums._fields import Fields, by_row, empty_fields, factor, finite, from_moments
from mercer.engine.sums._pairwise import by_differences

_FEW_TILES = 8  # with fewer tiles of queries the points are split too, so that all cores have work
_CHUNK = 1 << 15  # points of such a part: 32 tiles


def gram(program: Program, X: Any, Y: Any) -> Array:
    """The matrix k(x_i, y_j), shape (n, m); exactly symmetric when Y is X."""
    pairs = Pairs(program, Y, X)  # rows of the result are the rows of a tile
    n, m = n_rows(X), n_rows(Y)
    height, width = tile_sizes(1 if pairs.one_pass else 4, pairs.dtype, n_columns(X))
    out = np.empty((n, m), dtype=pairs.dtype)
    symmetric = X is Y

    def job(rows: slice) -> None:
        for columns in pieces(rows.stop if symmetric else m, width):
            if pairs.one_pass:
                pairs.values(rows, columns, out[rows, columns])
                continue
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            tile = tile_jet(program.profile, pairs.tile(rows, columns), 0, shape, pairs.dtype)
            out[rows, columns] = tile.value

    def mirror(rows: slice) -> None:
        """Copy the part below the diagonal to the part above."""
        out[: rows.start, rows] = out[rows, : rows.start].T
        block = out[rows, rows]
        out[rows, rows] = np.tril(block) + np.tril(block, -1).T

    tiles = list(pieces(n, height))
    map_threads(job, tiles[::-1])  # longest rows of a symmetric matrix first
    if symmetric:
        map_threads(mirror, tiles)
    return out


def fields(
    program: Program, X: Any, Y: Any, coef: Dense | LowRank, order: int, paired: bool, shifted: bool
) -> Fields:
    """Every element at every query (dense coefficients), or element j at query j."""
    return _BlockedSum(program, X, Y, coef, order, paired, shifted).run()


class _BlockedSum:
    """One call of `fields`: a loop over tiles, queries in parallel, points in order."""

    def __init__(
        self, program: Program, X: Any, Y: Any, coef: Coef, order: int, paired: bool, shifted: bool
    ) -> None:
        self.program, self.coef, self.order, self.paired = program, coef, order, paired
        self.shifted = shifted and program.log_profile is not None
        self.X, self.Y = X, Y
        self.pairs = Pairs(program, X, Y, order=order, shifted=self.shifted)
        self.n, self.m, self.dim = n_rows(X), n_rows(Y), n_columns(Y)
        self.batch = 1 if paired else coef.shape[1]
        self.only_values = order == 0 and not paired
        self.one_pass = self.only_values and not self.shifted and self.pairs.one_pass
        arrays = 1 if self.one_pass else 4 + 4 * order * max(1, len(program.variables))
        per_row = 32 * self.batch * sum(max(1, self.dim) ** k for k in range(order + 1))
        self.rows, self.columns = tile_sizes(arrays, self.pairs.dtype, self.dim, per_row)
        self.out = empty_fields(program, self.m, self.batch, self.dim, order, self.pairs.dtype)

    def run(self) -> Fields:
        tiles = list(pieces(self.m, self.rows))
        chunks = [slice(0, self.n)]
        if len(tiles) < _FEW_TILES:
            chunks = list(pieces(self.n, _CHUNK))
        if len(chunks) == 1:
            map_threads(lambda rows: self._finish(rows, *self._sum(rows, chunks[0])), tiles)
        else:
            jobs = [(rows, chunk) for rows in tiles for chunk in chunks]
            sums = map_threads(lambda job: self._sum(*job), jobs)
            for i, rows in enumerate(tiles):
                self._finish(rows, *_merged(sums[i * len(chunks) : (i + 1) * len(chunks)]))
        return self.out.only_element() if self.paired else self.out

    def _sum(self, rows: slice, chunk: slice) -> tuple[list[Moments], Array]:
        """Moments of each element over some points, and the shift, for the queries of a tile."""
        by_element = self.order >= 1 and not self.paired
        moments: list[Moments] = [{} for _ in range(self.batch if by_element else 1)]
        length = rows.stop - rows.start
        shift = np.full(length, -np.inf if self.shifted else 0.0)
        for columns in pieces(chunk.stop, self.columns, chunk.start):
            if self.one_pass:
                self._add(moments, Jet(self.pairs.values(rows, columns)), [], rows, columns)
                continue
            inputs = self.pairs.tile(rows, columns)
            shape = (length, columns.stop - columns.start)
            if self.shifted:
                log = self._log_jet(inputs, rows, columns, shape)
                shift = _raise_shift(moments, shift, log.value)
                jet = from_log(log, finite(shift)[:, None])
            else:
                jet = tile_jet(self.program.profile, inputs, self.order, shape, self.pairs.dtype)
            self._add(moments, jet, inputs, rows, columns)
        return moments, shift

    def _log_jet(self, inputs: list[Any], rows: slice, columns: slice, shape: Any) -> Jet:
        """The log-profile; pairs of coefficient zero must not set the shift."""
        assert self.program.log_profile is not None
        log = tile_jet(self.program.log_profile, inputs, self.order, shape, self.pairs.dtype)
        if not (self.paired and isinstance(self.coef, Dense)):
            return log
        zero = self.coef.tile(columns, rows).T == 0
        return replace(log, value=np.where(zero, -np.inf, log.value).astype(self.pairs.dtype))

    def _add(
        self, moments: list[Moments], jet: Jet, inputs: list[Any], rows: slice, columns: slice
    ) -> None:
        """Add one tile to the moments of its queries."""
        elements = rows if self.paired else slice(None)
        A = self.coef.tile(columns, elements).astype(jet.value.dtype, copy=False)
        if self.only_values:
            accumulate(moments[0], ("value",), np.asarray(jet.value @ A, dtype=np.float64))
            return
        jet, at_cusp = without_cusps(self.program, jet, inputs)
        variables, places = self.program.variables, self._coordinates()
        coordinates = [
            with_one(v, x[columns] - c, self.pairs.dtype)
            for v, (x, _, c) in zip(variables, places, strict=False)
        ]
        for b, part in enumerate(moments):
            a = A.T if self.paired else A[:, b]
            add_moments(
                part, self.program, jet.each(partial(np.multiply, a)), coordinates, self.order
            )
            if self.out.cusp is not None:
                found = 0.0 if at_cusp is None else np.where(at_cusp, a, 0.0).sum(axis=1)
                accumulate(part, ("cusp",), np.zeros(jet.value.shape[0]) + found)

    def _coordinates(self) -> list[tuple[Any, Any, Any]]:
        """For each variable the points, the queries, and the point they are measured from."""
        if not self.order:
            return []
        both = zip(self.program.variables, self.pairs.centres, strict=True)
        return [(*self.pairs.mapped(v), centre) for v, centre in both]

    def _finish(self, rows: slice, moments: list[Moments], shift: Array) -> None:
        """Turn the moments of some queries into values, gradients and Hessians."""
        queries = [dense(y[rows]) - c for _, y, c in self._coordinates()]
        sums = moments[0]
        if not self.only_values:
            sums = {key: np.stack([part[key] for part in moments], axis=1) for key in sums}
        dtype = self.pairs.dtype
        part = from_moments(self.program, sums, queries, self.dim, self.order, dtype, shift)
        self.out.put(rows, part)
        again = cancelling_rows(self.program, sums, queries) + rows.start
        if again.size:
            sizes = self.coef, self.order, self.paired, self.shifted
            by_differences(self.out, again, self.program, self.X, self.Y, *sizes)


def _merged(parts: list[tuple[list[Moments], Array]]) -> tuple[list[Moments], Array]:
    """Add partial sums that may carry different shifts."""
    moments, shift = parts[0]
    for other, other_shift in parts[1:]:
        high = np.maximum(shift, other_shift)
        scale, other_scale = factor(shift, high), factor(other_shift, high)
        for mine, theirs in zip(moments, other, strict=True):
            for key in mine:
                mine[key] = by_row(mine[key], scale) + by_row(theirs[key], other_scale)
        shift = high
    return moments, shift


def _raise_shift(moments: list[Moments], shift: Array, log: Array) -> Array:
    """Move to the larger of the old shift and the tile's, rescaling what was summed so far."""
    high: Array = np.maximum(shift, log.max(axis=1).astype(np.float64))
    if np.array_equal(high, shift):
        return shift
    scale = factor(shift, high)
    for part in moments:
        for key in part:
            part[key] = by_row(part[key], scale)
    return high
