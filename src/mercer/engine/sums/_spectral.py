"""The spectral engine: sums over millions of points in up to three dimensions (Bochner).

    sum_i a_i k(x_i - y) = sum_m D_m c_m exp(i <w_m, y>),   c_m = sum_i a_i exp(-i <w_m, x_i>)

on a grid of frequencies w_m = 2 pi m / L. The points are transformed once. Values and derivatives
anywhere are a second transform; both are non-uniform FFTs (finufft).

Grids and their errors: `_frequency_grid.py`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._threads import map_threads
from mercer.engine._sizes import (
    as_float64,
    column_range,
    n_columns,
    n_rows,
    pieces,
    tile_dtype,
)
from mercer.engine.pairs._distance_limits import share_in_reach, useful_cutoff
from mercer.engine.pairs._tiles import centre_before_maps, mapped
from mercer.engine.programs._coef import Dense
from mercer.engine.programs._jets import profile_at
from mercer.engine.programs._maps import pull_all, pull_both
from mercer.engine.programs._program import Program
from mercer.engine.sums._fields import Fields, with_rounding
from mercer.engine.sums._frequency_grid import (
    FEW_POINTS,
    MOST_MODES,
    Grid,
    evaluate_modes,
    grid_for,
    transform,
)
from mercer.engine.sums._spread import PIECE, spline_grid, spread_modes

FINEST_TOLERANCE = 1e-12  # where the engine is named and no tolerance is given
_SLACK = 1e-6  # of the extent: how far queries may lie beyond the box
# Work in units of one pair of a direct sum. A point of a transform is spread over about 10^d cells
# of a fine grid, in vector instructions; a mode is a few steps of an FFT on a grid twice as fine.
# Several elements share the distances and exponentials of a direct sum, which are 6/7 of its work.
# These ratios are rough; a factor of two in them hardly matters.
_PAIRS_PER_POINT = (0.0, 60.0, 200.0, 1000.0)
PAIRS_PER_MODE = 200.0
_SHARED = 6.0
_CELLS_PER_POINT = 4  # a cell is a few steps of an FFT, much less than a point
_SAMPLED = 1 << 16  # rows from which the share of pairs within reach is estimated


class SpectralSum:
    """Elements with coefficients A on points X, transformed once: fields at any queries.

    The grid is for a box that holds the points as the program measures them; `share` is the share
    of pairs of points and queries that a direct sum could not leave out. If the `modes` of the
    elements are known, nothing is transformed.
    """

    def __init__(
        self,
        program: Program,
        X: Any,
        A: Array,
        grid: Grid,
        share: float = 1.0,
        modes: Array | None = None,
    ) -> None:
        self.program, self.X, self.grid, self.share = program, X, grid, share
        self._variable: Any = program.variables[0]
        self._origin = centre_before_maps(self._variable, X)
        self.modes = self._transformed(A) * grid.weights if modes is None else modes
        self._mass = Dense(A).sizes

    def _mapped(self, Z: Any) -> Array:
        return np.asarray(mapped(self._variable.maps, as_float64(Z), self._origin))

    def _transformed(self, A: Array) -> Array:
        """c_m of each element; many points piece by piece, without a copy of them."""
        grid, X = self.grid, self.X
        shape, low = grid.weights.shape, grid.centre - 0.5 * grid.extent
        error = grid.centre.size * grid.accuracy * float(np.abs(grid.weights).sum())
        spline = spline_grid(grid.weights, error) if len(X) > FEW_POINTS else None
        if spline is None or math.prod(spline.cells) > _CELLS_PER_POINT * len(X):
            return transform(grid, self._mapped(X), A, shape)

        def modes(column: Array) -> Array:
            def piece(rows: slice) -> tuple[Array, Array | None]:
                x = self._mapped(X[rows]) if self._variable.maps else X[rows]
                strengths = None if equal else np.ascontiguousarray(column[rows], dtype=np.float64)
                return np.ascontiguousarray(x), strengths

            equal = column.strides == (0,)
            factor = float(column[0]) if equal else 1.0
            made = spread_modes(spline, shape, low, grid.period, grid.centre, len(X), piece)
            return factor * made

        return np.stack([modes(column) for column in A.T])

    def is_worth_while(self, m: int) -> bool:
        """Whether transforms to this many queries take less work than the sum over pairs."""
        pairs = float(n_rows(self.X)) * m * self.share
        most = modes_worth_while(pairs, m, self.grid.centre.size, len(self.modes))
        return self.grid.weights.size <= most

    def fields(self, Y: Any, order: int = 0) -> Fields:
        """Every element at every query, with a bound on the error; NaN outside the box."""
        y, maps, dtype = self._mapped(Y), self._variable.maps, tile_dtype(self.X, Y)
        dim, columns, frequencies = y.shape[1], n_columns(Y), self.grid.frequencies
        firsts = [1j * frequencies(k) for k in range(dim)] if order else []
        upper = [(j, k) for j in range(dim) for k in range(j, dim)] if order == 2 else []
        factors = [1.0, *firsts, *(firsts[j] * firsts[k] for j, k in upper)]
        stacks = np.concatenate([self.modes * factor for factor in factors])
        value, *rest = np.split(evaluate_modes(self.grid, stacks, y).T, len(factors), axis=1)
        value[np.any(2.0 * np.abs(y - self.grid.centre) > self.grid.extent, axis=1)] = np.nan
        gradient = hessian = None
        if order >= 1:
            gradient = pull_all(maps, np.stack(rest[:dim], axis=2), columns).astype(dtype)
        if order == 2:
            H = np.empty((*value.shape, dim, dim))
            for (j, k), part in zip(upper, rest[dim:], strict=True):
                H[:, :, j, k] = H[:, :, k, j] = part
            hessian = pull_both(maps, maps, H, columns).astype(dtype)
        # each of the two transforms may be off by its accuracy once per dimension
        transforms = 2.0 * dim * self.grid.accuracy * float(np.abs(self.grid.weights).sum())
        bound = self._mass * (self.grid.error + transforms)
        if dtype == np.float32:
            bound = np.asarray(with_rounding(bound, value))
        ratio = slope_ratio(self.program)
        slopes = (ratio * value,) if order and math.isfinite(ratio) else ()
        return Fields(value.astype(dtype, copy=False), gradient, hessian, slopes, bound=bound)


def spectral_sum(
    program: Program, X: Any, Y: Any, A: Array, tolerance: float, n_queries: int, *, forced: bool
) -> SpectralSum | None:
    """Transform the elements for these queries, and `n_queries` in all; None if not worthwhile.

    With `forced` the only condition is that some grid meets the tolerance.
    """
    variable: Any = program.variables[0]
    origin = centre_before_maps(variable, X)
    box, sample = _box_and_sample(X, variable.maps, origin)
    y = mapped(variable.maps, as_float64(Y), origin)
    n, m, dim, share, most = len(X), max(len(y), n_queries), y.shape[1], 1.0, float(MOST_MODES)
    if not forced:
        placed = np.broadcast_to(box[0], (n, dim))  # only its size is used, not its rows
        cutoff = useful_cutoff(program, placed, y, 0, tolerance, n_queries, lambda: box)
        share = share_in_reach(sample, y, cutoff)
        most = min(most, modes_worth_while(float(n) * m * share, n + m, dim, A.shape[1]))
    if most < 1:
        return None
    low, high = np.minimum(box[0], y.min(axis=0)), np.maximum(box[1], y.max(axis=0))
    slack = slack_of(low, high)
    grid = grid_for(program, low - slack, high + slack, max(tolerance, FINEST_TOLERANCE), most)
    return None if grid is None else SpectralSum(program, X, A, grid, share)


def slack_of(low: Array, high: Array) -> Array:
    """How far a box reaches beyond the points: at least some units in their last place."""
    rounding = 8.0 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high))
    return np.asarray(np.maximum(_SLACK * (high - low), rounding))


def _box_and_sample(X: Array, maps: Any, origin: Array | None) -> tuple[Array, Array]:
    """Least and largest coordinates, shape (2, d), and some rows, as the program measures them."""

    def box(part: slice) -> tuple[Array, Array]:
        x = mapped(maps, as_float64(X[part]), origin) if maps else X[part]
        return column_range(x)

    low, high = zip(*map_threads(box, list(pieces(len(X), PIECE))), strict=True)
    rows = X if len(X) <= _SAMPLED else X[np.random.default_rng(1).integers(0, len(X), _SAMPLED)]
    found = np.array([np.min(low, axis=0), np.max(high, axis=0)], dtype=np.float64)
    return found, np.asarray(mapped(maps, as_float64(rows), origin))


def modes_worth_while(pairs: float, points: int, dim: int, batch: int) -> float:
    """The most modes for which transforms take no more work than a direct sum over the pairs."""
    direct = pairs * (_SHARED + batch) / (_SHARED + 1.0)
    return max(0.0, direct / batch - _PAIRS_PER_POINT[dim] * points) / PAIRS_PER_MODE


@lru_cache(maxsize=256)
def slope_ratio(program: Program) -> float:
    """k'(u) / k(u), where the profile is exponential in u; NaN elsewhere."""
    u = np.array([0.0, 1e-6, 1e-3, 0.1, 1.0, 10.0])
    with np.errstate(all="ignore"):
        value, slope = profile_at(program.profile, u, 1)
        scale = float(-value[0] / slope[0])
        if not (np.isfinite(scale) and scale > 0.0):
            return float("nan")
        value, slope = profile_at(program.profile, u * scale, 1)
        ratio = slope / value
    return float(ratio[0]) if np.allclose(ratio, ratio[0], rtol=1e-12, atol=0.0) else float("nan")
