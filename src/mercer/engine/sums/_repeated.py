"""One sum of a radial kernel at many sets of queries: what only the points decide is done once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options, options
from mercer.engine.programs._coef import Dense
from mercer.engine.programs._fields import Fields
from mercer.engine.programs._jets import evaluate
from mercer.engine.programs._log_shift import replaced
from mercer.engine.programs._program import Program
from mercer.engine.sums import _dispatch, _native, _spectral
from mercer.engine.sums._packed import PackedSum

_SORTED_DIMENSIONS = 16  # boxes around points of more dimensions overlap
_NOISE = 1e3  # times the bound on the error: sums below it have no relative accuracy
_SLACK = 1e-6  # of the extent: how far beyond the points queries may lie


class RepeatedSum:
    """f(y) = sum_i a_i k(|x_i - y|^2) for points x_i that stay, with derivatives and the slope.

    Where that is faster, and `options(engine=...)` allows it, the points are taken to the frequency
    domain once. Values have an error of at most tolerance * k(0) * sum_i a_i; queries at which the
    sum is not far larger are done again to rounding.

    Parameters
    ----------
    program : Program
        Of one squared distance, without maps.
    X : array of shape (n, d)
    a : array of shape (n,), >= 0
    tolerance : float
    n_queries : int
        How many queries there will be, about, each time.
    """

    def __init__(
        self, program: Program, X: Array, a: Array, tolerance: float, n_queries: int
    ) -> None:
        self.program, self.X, self.tolerance = program, X, tolerance
        self.coef = Dense(a[:, None])
        self._n_queries = n_queries
        self._kept: dict[tuple[int, float], PackedSum] = {}

    def __call__(self, Y: Array, order: int, *, exact: bool = False) -> Fields:
        """Value (m,), gradient (m, d), Hessian, slope sum_i a_i k'(u_i) and cusp at each query."""
        if exact:
            return self._direct(Y, order, 0.0)
        if self._spectral is None or self._is_quicker_direct(len(Y), order):
            return self._direct(Y, order, self.tolerance)
        found, inside = self._by_frequencies(Y, order)
        bound = float(self._spectral.bound[0])
        again = np.flatnonzero(~inside | ~(np.abs(found.value) > _NOISE * bound))
        if again.size:
            found = replaced(found, again, self._direct(Y[again], order, 0.0))
        return found

    def _is_quicker_direct(self, m: int, order: int) -> bool:
        """Whether so few queries are summed sooner than a grid of frequencies is transformed."""
        if get_options().engine == "spectral":
            return False
        assert self._spectral is not None
        n, dim = self.X.shape
        columns = sum(dim**t for t in range(order + 1))
        direct = 1e-9 * (1 + order) * (0.6 + 0.1 * columns) * m * n * self._share
        packing = 1e-3 if PackedSum.fits(n, dim, order) else 0.02 + 3e-8 * n * columns
        modes = self._spectral.grid.weights.size
        by_grid = _spectral.seconds_needed(modes, dim, 0, m, 1, order)
        return bool(direct + packing < by_grid)

    @cached_property
    def _share(self) -> float:
        """The share of the points within reach."""
        with options(tolerance=self.tolerance):
            return _native.share_in_reach(self.program, self.X, self.X, 1)

    def _direct(self, Y: Array, order: int, tolerance: float) -> Fields:
        if self._is_native and PackedSum.fits(len(self.X), self.X.shape[1], order):
            f = self._packed(order, tolerance)(Y)
            if f is not None:
                return self._with_lost_rows(_one(f), Y, order)
        engine = "native" if self._is_native else "blocked"  # which give slopes
        with options(engine=engine, tolerance=tolerance):
            f = _dispatch.fields(self.program, self.X, Y, self.coef, order=order, shifted=True)
        return _one(f)

    @cached_property
    def _is_native(self) -> bool:
        with options(engine=None if get_options().engine == "spectral" else get_options().engine):
            return _dispatch.use_native(self.program, self.X, self.X)

    def _packed(self, order: int, tolerance: float) -> PackedSum:
        """For a tolerance: it decides which points are left out."""
        key = order, tolerance
        if key not in self._kept:
            X, a = self._in_order
            with options(tolerance=tolerance):
                self._kept[key] = PackedSum(self.program, X, a, order)
        return self._kept[key]

    @cached_property
    def _in_order(self) -> tuple[Array, Array]:
        """The points, and coefficients, in an order that puts neighbours together."""
        order = neighbours_together(self.X)
        return np.ascontiguousarray(self.X[order]), self.coef.array[order]

    def _with_lost_rows(self, f: Fields, Y: Array, order: int) -> Fields:
        """Queries at which every term underflows are done again in logarithms."""
        size = np.abs(f.value) + (np.abs(f.slopes[0]) if f.slopes else 0.0)
        again = ~((size > _dispatch.LOST["float64"]) & np.isfinite(size))
        if f.bound is not None:
            again |= np.abs(f.value) < _NOISE * f.bound
        lost = np.flatnonzero(again)
        if lost.size == 0:
            return f
        with options(engine="native", tolerance=0.0):
            other = _dispatch.fields(
                self.program, self.X, Y[lost], self.coef, order=order, shifted=True
            )
        return replaced(f, lost, _one(other))

    def _by_frequencies(self, Y: Array, order: int) -> tuple[Fields, Array]:
        assert self._spectral is not None
        low, high = self._box
        inside = np.all((low <= Y) & (high >= Y), axis=1)
        dim = Y.shape[1]
        firsts = [(k,) for k in range(dim)] if order >= 1 else []
        seconds = [(j, k) for j in range(dim) for k in range(j, dim)] if order == 2 else []
        value, *rest = self._spectral(Y, [(), *firsts, *seconds])
        value = value[:, 0]
        gradient = np.hstack(rest[:dim]) if order >= 1 else None
        hessian = None
        if order == 2:
            hessian = np.empty((len(Y), dim, dim))
            for (j, k), part in zip(seconds, rest[dim:], strict=True):
                hessian[:, j, k] = hessian[:, k, j] = part[:, 0]
        slopes = (self._ratio * value,) if order else ()
        return Fields(value, gradient, hessian, slopes, None, np.zeros(len(Y))), inside

    @property
    def uses_frequencies(self) -> bool:
        """Whether the points were taken to the frequency domain."""
        return self._spectral is not None

    @cached_property
    def _ratio(self) -> float:
        """k'(u) / k(u) where that does not depend on u; NaN elsewhere."""
        return slope_ratio(self.program)

    @cached_property
    def _box(self) -> tuple[Array, Array]:
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        return low - _SLACK * (high - low), high + _SLACK * (high - low)

    @cached_property
    def _spectral(self) -> _spectral.SpectralSum | None:
        wanted, dim = get_options().engine, self.X.shape[1]
        if wanted not in (None, "spectral") or dim > 3 or not np.isfinite(self._ratio):
            return None
        if _spectral.finufft() is None or not self.program.is_smooth:
            return None
        most: float = _spectral.MOST_MODES
        if wanted is None:
            with options(tolerance=self.tolerance):
                direct = _native.seconds_needed(
                    self.program, self.X, self.X[: self._n_queries], 1, 1
                )
            share = max(1.0, self._n_queries / len(self.X))
            most = min(
                most,
                _spectral.modes_within(share * direct, dim, 0, self._n_queries, 1, 1),
            )
        if most < 1:
            return None
        grid = _spectral.grid_for(self.program, *self._box, self.tolerance, most)
        return None if grid is None else _spectral.transform(grid, self.X, self.coef.array)


def neighbours_together(X: Array) -> Array:
    """A permutation along a curve that fills space (Morton's): neighbours mostly stay together."""
    n, dim = X.shape
    if dim > _SORTED_DIMENSIONS:
        return np.arange(n)
    bits = min(16, 63 // dim)
    low = X.min(axis=0)
    extent = float((X.max(axis=0) - low).max())
    if extent == 0.0:
        return np.arange(n)
    cells = ((X - low) * ((2**bits - 1) / extent)).astype(np.uint64)
    key = np.zeros(n, dtype=np.uint64)
    for bit in range(bits):
        for axis in range(dim):
            one = (cells[:, axis] >> np.uint64(bit)) & np.uint64(1)
            key |= one << np.uint64(bit * dim + axis)
    return np.argsort(key, kind="stable")


def _one(f: Fields) -> Fields:
    """The fields of the only element, without the axis of elements."""

    def only(array: Any) -> Any:
        return None if array is None else array[:, 0]

    slopes = tuple(s[:, 0] for s in f.slopes)
    bound = None if f.bound is None else f.bound[:1]
    return Fields(
        only(f.value), only(f.gradient), only(f.hessian), slopes, only(f.cusp), f.shift, bound
    )


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
