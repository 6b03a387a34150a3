"""The blocked engine: kernel sums and Gram matrices on NumPy tiles, for every program.

Works for any kernel and any number of dimensions, and is the fallback where nothing was compiled.
Where the core is there and one pass of it makes values of a BLAS product, it does. Tiles run on the
thread pool; each accumulates in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._threads import map_threads
from mercer.engine._points import n_columns, n_rows
from mercer.engine._tiling import pieces, plan
from mercer.engine.pairs._profile_tiles import scaled, tile_jet, without_cusps
from mercer.engine.pairs._tiles import Pairs
from mercer.engine.programs._coef import Coef, Dense, LowRank
from mercer.engine.programs._jets import Jet
from mercer.engine.programs._program import Program
from mercer.engine.sums._derivatives import Moments, accumulate, add_moments
from mercer.engine.sums._fields import Fields, empty_fields, from_moments
from mercer.engine.sums._tile_loop import TileLoop, count


def gram(program: Program, X: Any, Y: Any) -> Array:
    """The matrix k(x_i, y_j), shape (n, m); exactly symmetric when Y is X."""
    pairs = Pairs(program, Y, X)  # rows of the result are the rows of a tile
    n, m = n_rows(X), n_rows(Y)
    p = plan(1 if pairs.one_pass else 4, pairs.dtype, n_columns(X))
    order = pairs.order(p.rows)
    out = np.empty((n, m), dtype=pairs.dtype)
    symmetric = X is Y

    def job(rows: Any) -> None:
        last = rows.stop if symmetric and order is None else m
        for columns in pieces(last, p.columns):
            if pairs.one_pass:
                pairs.values(rows, columns, out[rows, columns])
                continue
            shape = (count(rows), columns.stop - columns.start)
            tile = tile_jet(program, pairs.tile(rows, columns), 0, shape, pairs.dtype)
            out[rows, columns] = tile.value

    def mirror(rows: slice) -> None:
        """Copy what is below the diagonal above it."""
        out[: rows.start, rows] = out[rows, : rows.start].T
        block = out[rows, rows]
        out[rows, rows] = np.tril(block) + np.tril(block, -1).T

    map_threads(job, p.row_tiles(n, order)[::-1])  # of a symmetric matrix the longest first
    if symmetric:
        map_threads(mirror, p.row_tiles(n, None))
    return out


def fields(
    program: Program,
    X: Any,
    Y: Any,
    coef: Dense | LowRank,
    *,
    order: int = 0,
    paired: bool = False,
    shifted: bool = False,
) -> Fields:
    """Dense coefficients at every query, or dense or low-rank ones of element j at query j."""
    return _FieldSums(program, X, Y, coef, order, paired, shifted).fields()


class _FieldSums:
    """One call of `fields` with dense, or paired low-rank, coefficients."""

    def __init__(
        self, program: Program, X: Any, Y: Any, coef: Coef, order: int, paired: bool, shifted: bool
    ) -> None:
        self.program, self.coef, self.order, self.paired = program, coef, order, paired
        self.batch = 1 if paired else coef.shape[1]
        self.dim = n_columns(Y)
        per_row = 8 * self.batch * sum(max(1, self.dim) ** k for k in range(order + 1))
        arrays = 4 + 4 * order * max(1, len(program.variables))
        self.loop = TileLoop(
            program,
            X,
            Y,
            order=order,
            shifted=shifted,
            arrays=arrays,
            bytes_per_row=4 * per_row,
            values_only=order == 0 and not paired,
        )
        m, dtype = self.loop.m, self.loop.pairs.dtype
        self.out = empty_fields(program, m, self.batch, self.dim, order, dtype)

    def fields(self) -> Fields:
        by_element = self.order >= 1 and not self.paired
        zero_pairs = self._zero_pairs if self.paired and isinstance(self.coef, Dense) else None
        self.loop.run(self.batch if by_element else 1, self._add, self._finish, zero_pairs)
        return self.out.only_element() if self.paired else self.out

    def _zero_pairs(self, rows: Any, columns: slice) -> Array:
        return np.asarray(self.coef.tile(columns, rows).T == 0)

    def _add(
        self, moments: list[Moments], jet: Jet, inputs: list[Any], rows: Any, columns: slice
    ) -> None:
        elements = rows if self.paired else slice(None)
        A = self.coef.tile(columns, elements).astype(jet.value.dtype, copy=False)
        if self.order == 0 and not self.paired:
            accumulate(moments[0], ("value",), np.asarray(jet.value @ A, dtype=np.float64))
            return
        jet, at_cusp = without_cusps(self.program, jet, inputs)
        centres = self.loop.pairs.centres(rows) if self.order else []
        coordinates = [self._points(v, columns, centre) for v, centre in enumerate(centres)]
        for b, part in enumerate(moments):
            factor = A.T if self.paired else A[:, b]
            add_moments(part, self.program, scaled(jet, factor), coordinates, self.order)
            if self.out.cusp is not None:
                found = 0.0 if at_cusp is None else np.where(at_cusp, factor, 0.0).sum(axis=1)
                accumulate(part, ("cusp",), np.zeros(jet.value.shape[0]) + found)

    def _points(self, v: int, columns: slice, centre: Any) -> Any:
        X, _ = self.loop.pairs.mapped(self.program.variables[v])
        return X[columns] if is_sparse(X) else (X[columns] - centre).astype(self.loop.pairs.dtype)

    def _queries(self, v: int, rows: Any, centre: Any) -> Array:
        _, Y = self.loop.pairs.mapped(self.program.variables[v])
        Y = Y[rows].toarray() if is_sparse(Y) else Y[rows]
        return np.asarray(Y - centre, dtype=np.float64)

    def _finish(self, rows: Any, moments: list[Moments], shift: Array) -> None:
        """Turn the moments of some queries into values, gradients and Hessians."""
        centres = self.loop.pairs.centres(rows) if self.order else []
        queries = [self._queries(v, rows, c) for v, c in enumerate(centres)]
        dtype = self.loop.pairs.dtype
        part = from_moments(self.program, moments, queries, self.dim, self.order, dtype, shift)
        self.out.put(rows, part)
