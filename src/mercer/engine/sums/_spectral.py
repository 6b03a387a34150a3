"""The spectral engine: sums over millions of points in up to three dimensions, by Bochner.

    sum_i a_i k(x_i - y) = sum_m D_m c_m exp(i <w_m, y>),   c_m = sum_i a_i exp(-i <w_m, x_i>)

on a grid of frequencies w_m (`_frequency_grid`). The points are transformed once. Values and
derivatives anywhere are a second transform; both are non-uniform FFTs (finufft).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._threads import thread_count
from mercer.engine._sizes import as_float64, n_columns, n_rows, tile_dtype
from mercer.engine.pairs._cutoff import share_in_reach, useful_cutoff
from mercer.engine.pairs._tiles import centre_before_maps, mapped, mapped_points
from mercer.engine.programs._jets import evaluate
from mercer.engine.programs._maps import pull_all, pull_both
from mercer.engine.programs._program import Program
from mercer.engine.sums._fields import Fields, with_rounding
from mercer.engine.sums._frequency_grid import (
    FEW_POINTS,
    MOST_MODES,
    Grid,
    evaluate_modes,
    grid_for,
    non_uniform_transform,
    packed_in_pairs,
)

_FINEST_TOLERANCE = 1e-12  # where the engine is named and no tolerance is given
_SLACK = 1e-6  # of the extent: how far queries may lie beyond the box
# Work in units of one pair of a direct sum. A point of a transform is spread over about 10^d cells
# of a fine grid, in vector instructions; a mode is a few steps of an FFT on a grid twice as fine.
# Several elements share the distances and exponentials of a direct sum, which are 6/7 of its work.
# These ratios are rough; a factor of two in them hardly matters.
_PAIRS_PER_POINT = (0.0, 60.0, 200.0, 1000.0)
_PAIRS_PER_MODE = 200.0
_SHARED = 6.0


class SpectralSum:
    """Elements with coefficients A on points X, transformed once: fields at any queries.

    The grid is for a box that holds the points where the program measures them; `share` is the
    share of pairs of points and queries that a direct sum could not leave out.
    """

    def __init__(self, program: Program, X: Any, A: Array, grid: Grid, share: float = 1.0) -> None:
        self.program, self.X, self.grid, self.share = program, X, grid, share
        self._variable: Any = program.variables[0]
        self._origin = centre_before_maps(self._variable, as_float64(X))
        self.modes = transform(grid, self._mapped(X), A)
        self._mass = np.abs(A).sum(axis=0, dtype=np.float64)

    def _mapped(self, Z: Any) -> Array:
        return np.asarray(mapped(self._variable.maps, as_float64(Z), self._origin))

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
        bound = self._mass * self.grid.error_of_sums
        if dtype == np.float32:
            bound = np.asarray(with_rounding(bound, value))
        ratio = slope_ratio(self.program)
        slopes = (ratio * value,) if order and math.isfinite(ratio) else ()
        return Fields(value.astype(dtype, copy=False), gradient, hessian, slopes, bound=bound)


def transform(grid: Grid, X: Array, A: Array) -> Array:
    """Take elements to the frequency domain: D_m c_m, shape (b, modes...)."""
    dim, shape = X.shape[1], grid.weights.shape
    packed = packed_in_pairs(A.T.astype(np.float64))
    threads = thread_count() if len(X) > FEW_POINTS else 1
    modes = non_uniform_transform(1, grid, X, packed, threads).reshape(-1, *shape)
    flipped = np.conj(modes[(slice(None), *(slice(None, None, -1),) * dim)])
    # of a + ib: the even part of the modes belongs to a, the odd part to b
    both = np.stack([0.5 * (modes + flipped), -0.5j * (modes - flipped)], axis=1)
    return np.asarray(both.reshape(-1, *shape)[: A.shape[1]] * grid.weights)


def spectral_sum(
    program: Program, X: Any, Y: Any, A: Array, tolerance: float, n_queries: int, *, forced: bool
) -> SpectralSum | None:
    """Transform the elements for these queries, and `n_queries` in all; None if not worth while.

    With `forced` the only condition is that some grid meets the tolerance.
    """
    x, y = mapped_points(program.variables[0], as_float64(X), as_float64(Y))
    n, m, dim, share, most = len(x), max(len(y), n_queries), x.shape[1], 1.0, float(MOST_MODES)
    if not forced:
        share = share_in_reach(x, y, useful_cutoff(program, x, y, 0, tolerance, n_queries))
        most = min(most, modes_worth_while(float(n) * m * share, n + m, dim, A.shape[1]))
    if most < 1:
        return None
    low, high = np.minimum(x.min(axis=0), y.min(axis=0)), np.maximum(x.max(axis=0), y.max(axis=0))
    slack = _SLACK * (high - low)
    grid = grid_for(program, low - slack, high + slack, max(tolerance, _FINEST_TOLERANCE), most)
    return None if grid is None else SpectralSum(program, X, A, grid, share)


def modes_worth_while(pairs: float, points: int, dim: int, batch: int) -> float:
    """The most modes for which transforms take no more work than a direct sum over the pairs."""
    direct = pairs * (_SHARED + batch) / (_SHARED + 1.0)
    return max(0.0, direct / batch - _PAIRS_PER_POINT[dim] * points) / _PAIRS_PER_MODE


@lru_cache(maxsize=256)
def slope_ratio(program: Program) -> float:
    """k'(u) / k(u), where the profile is exponential in u; NaN elsewhere."""
    u = np.array([0.0, 1e-6, 1e-3, 0.1, 1.0, 10.0])
    with np.errstate(all="ignore"):
        jet = evaluate(program.profile, [u], 1)
        scale = float(-jet.value[0] / jet.first[0][0])
        if not (np.isfinite(scale) and scale > 0.0):
            return float("nan")
        jet = evaluate(program.profile, [u * scale], 1)
        ratio = np.broadcast_to(jet.first[0], u.shape) / jet.value
    return float(ratio[0]) if np.allclose(ratio, ratio[0], rtol=1e-12, atol=0.0) else float("nan")
