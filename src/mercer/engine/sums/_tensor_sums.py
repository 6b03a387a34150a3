"""Kernel sums, Gram matrices and derivatives on tensors, tile by tile in their own namespace.

Moments, gradients and Hessians are put together by the same code as for NumPy arrays. Torch records
only how to compute a tile again, so that the memory of a sum and of its gradient is that of the
points and of one tile.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from mercer._config import get_options
from mercer._tensors import as_double, is_tracked, namespace, no_autocast, recomputed
from mercer.engine._sizes import n_columns, n_rows, pieces
from mercer.engine.pairs._tensor_tiles import TensorPairs, require_tensors
from mercer.engine.programs._coef import Coef, Dense, LowRank, SingleFeatures, Stacked
from mercer.engine.programs._program import Program
from mercer.engine.sums._core_tensors import (
    Host,
    host_fields,
    host_gram,
    host_values,
    runs_on_host,
)
from mercer.engine.sums._derivatives import Moments, accumulate, add_moments, with_one
from mercer.engine.sums._fields import Fields, from_moments, mixed, on_top, total

_MOST_ENTRIES = 1 << 18  # of a tile: 2 MiB, large enough to keep the cores of a device busy
_FEWEST_ROWS = 8


@np.errstate(all="ignore")  # overflows are seen in the result
def gram(program: Program, X: Any, Y: Any, engines: Host) -> Any:
    """The matrix k(x_i, y_j), shape (n, m)."""
    if runs_on_host(program, X):
        return host_gram(engines, program, X, Y, partial(_gram, program))
    return _gram(program, X, Y)


@np.errstate(all="ignore")
def _gram(program: Program, X: Any, Y: Any) -> Any:
    """The same, tile by tile."""
    with no_autocast(X):
        return _gram_of_tiles(program, X, Y)


def _gram_of_tiles(program: Program, X: Any, Y: Any) -> Any:
    pairs = pairs_of(program, Y, X, 0)
    xp, m = pairs.xp, n_rows(Y)
    height = max(1, _entries(6 + 4 * len(program.variables)) // m)

    def tile(*arrays: Any) -> Any:
        points, queries = _halves(arrays)
        shape = (n_rows(queries[0]) if queries else n_rows(X), m)
        return pairs.jet(pairs.tile(points, queries), shape)[0].value

    if not program.variables:
        where = {"dtype": X.dtype, "device": X.device}
        return xp.full((n_rows(X), m), program.value_at_zero, **where)
    tiles = [
        recomputed(tile, *pairs.points, *(y[rows, :] for y in pairs.queries))
        for rows in pieces(n_rows(X), height)
    ]
    out = tiles[0] if len(tiles) == 1 else xp.concat(tiles, axis=0)
    return xp.astype(out, X.dtype, copy=False)


def diagonal(program: Program, X: Any) -> Any:
    """k(x_i, x_i), shape (n,)."""
    require_tensors(program)
    return _rowwise(program.diagonal, X, X)


@np.errstate(all="ignore")
def fields(
    program: Program, X: Any, Y: Any, coef: Coef, order: int, paired: bool, engines: Host
) -> Fields:
    """Every element at every query, or element j at query j, with derivatives up to `order`."""
    with no_autocast(X):
        return _fields(program, X, Y, coef, order, paired, engines)


def _fields(
    program: Program, X: Any, Y: Any, coef: Coef, order: int, paired: bool, engines: Host
) -> Fields:
    on_host = runs_on_host(program, X)
    if on_host and not is_tracked(X, Y, *coef.arrays):
        return host_fields(engines, program, X, Y, coef, order, paired)
    if isinstance(coef, Stacked):
        parts = ((X[rows, :], part) for rows, part in coef.blocks())
        return total([_fields(program, x, Y, part, order, paired, engines) for x, part in parts])
    if isinstance(coef, LowRank) and not paired:
        return mixed(_fields(program, X, Y, Dense(coef.left), order, False, engines), coef.right)
    if isinstance(coef, SingleFeatures) and order == 0:
        chosen = namespace(X).take(X, coef.index, axis=0)
        K = _rowwise(program, Y, chosen) if paired else gram(program, Y, chosen, engines)
        return Fields(K * coef.value)
    if isinstance(coef, SingleFeatures) and not paired:
        coef = Dense(coef.tile(slice(None), slice(None)))
    if on_host and order == 0 and isinstance(coef, Dense) and not paired:
        recorded = partial(_values, program)
        return Fields(host_values(engines, program, X, Y, coef.array, recorded))
    return _TensorSum(program, X, Y, coef, order, paired).run()


@np.errstate(all="ignore")
def _values(program: Program, X: Any, Y: Any, A: Any) -> Any:
    with no_autocast(X):
        return _TensorSum(program, X, Y, Dense(A), 0, False).run().value


class _TensorSum:
    """One call of `fields`: a loop over tiles."""

    def __init__(
        self, program: Program, X: Any, Y: Any, coef: Coef, order: int, paired: bool
    ) -> None:
        self.program, self.coef, self.order, self.paired = program, coef, order, paired
        self.dtype, self.n, self.m, self.dim = X.dtype, n_rows(X), n_rows(Y), n_columns(X)
        self.batch = 1 if paired else coef.shape[1]
        self.pairs = pairs_of(program, X, Y, order)
        self.device = X.device
        entries = _entries(6 + 6 * (order + 1) * max(1, len(program.variables)))
        self.rows = min(self.m, math.isqrt(entries))
        while self.rows > _FEWEST_ROWS and self.rows * self.batch * self.dim**order > entries:
            self.rows //= 2
        self.columns = max(1, entries // self.rows)

    def run(self) -> Fields:
        rows, columns = (list(pieces(*of)) for of in ((self.m, self.rows), (self.n, self.columns)))
        points = [[x[some, :] for x in self.pairs.points] for some in columns]
        weights = [None if self.paired else self.coef.tile(s, slice(None)) for s in columns]
        parts = []
        for some in rows:
            queries = [y[some, :] for y in self.pairs.queries]
            sums: list[Moments] = [{} for _ in range(self.batch if self.order else 1)]
            for at, x, a in zip(columns, points, weights, strict=True):
                tile = partial(self._tile, some, at, len(x))
                given = (*x, *queries, *([] if a is None else [a]))
                # the coefficients of pairs are made inside, and may be all that is recorded
                extra = [z for z in self.coef.arrays if self.paired]
                for mine, part in zip(sums, recomputed(tile, *given, *extra), strict=True):
                    for key, value in part.items():
                        accumulate(mine, key, value)
            parts.append(self._finish(sums, queries))
        f = on_top(parts)
        return f.only_element() if self.paired else f

    def _tile(self, rows: slice, columns: slice, count: int, *arrays: Any) -> list[Moments]:
        """Moments of each element over the points of a tile, for its queries."""
        x, y, xp = arrays[:count], arrays[count : 2 * count], self.pairs.xp
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        inputs = self.pairs.tile(list(x), list(y))
        jet, at_cusp = self.pairs.jet(inputs, shape)
        a = self.coef.tile(columns, rows) if self.paired else arrays[2 * count]
        a = xp.astype(a, self.pairs.dtype, copy=False)
        if self.order == 0:
            if self.paired:
                return [{("value",): xp.sum(as_double(jet.value * a.T), axis=1)}]
            return [{("value",): as_double(jet.value @ a)}]
        variables = self.program.variables
        coordinates = [with_one(v, z, z.dtype) for v, z in zip(variables, x, strict=True)]
        out: list[Moments] = []
        for b in range(self.batch):
            part: Moments = {}
            w = a.T if self.paired else a[:, b][None, :]
            weighted = jet.each(partial(_times, w))
            add_moments(part, self.program, weighted, coordinates, self.order)
            if any(self.program.cusps):
                cusp = xp.zeros_like(jet.value)
                if at_cusp is not None:
                    cusp = xp.where(at_cusp, xp.broadcast_to(w, shape), cusp)
                part["cusp",] = xp.sum(cusp, axis=1)
            out.append(part)
        return out

    def _finish(self, sums: list[Moments], queries: list[Any]) -> Fields:
        xp, moments = self.pairs.xp, sums[0]
        if self.order or self.paired:
            moments = {key: xp.stack([part[key] for part in sums], axis=1) for key in sums[0]}
        wide = [as_double(y) for y in queries]
        return from_moments(self.program, moments, wide, self.dim, self.order, self.dtype)


def _times(a: Any, b: Any) -> Any:
    return a * b


def pairs_of(program: Program, X: Any, Y: Any, order: int) -> TensorPairs:
    """Pairs in the type of the points, or in float64 where float32 would lose digits."""
    pairs = TensorPairs(program, X, Y, order)
    if not pairs.measured():
        x = as_double(X)
        pairs = TensorPairs(program, x, x if Y is X else as_double(Y), order)
        pairs.measured()
    return pairs


def _rowwise(program: Program, X: Any, Y: Any) -> Any:
    """k(y_j, x_j), shape (m,), in float64 inside."""
    x, y = as_double(X), as_double(Y)
    pairs = TensorPairs(program, x, y)
    value = pairs.jet(TensorPairs.rowwise(program, y, x), (n_rows(X),))[0].value
    return pairs.xp.astype(value, X.dtype, copy=False)


def _entries(arrays: int) -> int:
    """The entries of a tile, for this many arrays of its size in float64."""
    return max(64, min(_MOST_ENTRIES, int(get_options().working_memory * 2**17 / arrays)))


def _halves(arrays: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    half = len(arrays) // 2
    return list(arrays[:half]), list(arrays[half:])
