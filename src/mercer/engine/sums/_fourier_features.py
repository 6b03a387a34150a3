"""Least squares on equispaced Fourier features, for millions of points in few dimensions.

On a box that holds the points, a grid of frequencies represents a kernel (`_frequency_grid.py`):

    k(x, y) = sum_m D_m exp(i <w_m, x - y>),    f(x) = sum_m sqrt(D_m) b_m exp(i <w_m, x>)

The b that minimises sum_i v_i (y_i - f(x_i))^2 + penalty |f|^2, |f|^2 = sum_m |b_m|^2, solves

    (D^(1/2) T D^(1/2) + penalty I) b = D^(1/2) r,    T = (t_{m - m'}),
    t_m = sum_i v_i exp(-i <w_m, x_i>),    r_m = sum_i v_i y_i exp(-i <w_m, x_i>)

T is a Toeplitz matrix in each dimension. Its entries and r are one non-uniform FFT of the points on
a grid twice as large, and products with it are FFTs on that grid: their cost does not depend on
the number of points. P. Greengard, M. Rachh, A. Barnett, Equispaced Fourier representations for
efficient Gaussian process regression from a billion data points, 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._threads import thread_count
from mercer.engine._sizes import as_float64, contiguous
from mercer.engine.pairs._tiles import centre_before_maps, mapped
from mercer.engine.programs._coef import Dense
from mercer.engine.programs._program import Program
from mercer.engine.sums._choice import can_transform
from mercer.engine.sums._frequency_grid import MOST_MODES, Grid, evaluate_modes, grid_for, transform
from mercer.engine.sums._prepared import PreparedSum
from mercer.engine.sums._spectral import (
    FINEST_TOLERANCE,
    PAIRS_PER_MODE,
    SpectralSum,
    slack_of,
)

_FEW = 1 << 18  # numbers of a grid whose FFT is not worth several threads


def fourier_features(
    program: Program, X: Any, error: float, *, forced: bool = False
) -> FourierFeatures | None:
    """Features that give the kernel on the box of the points up to an error.

    None if there are none, or, unless `forced`, if a product on the grid takes more work than a sum
    over all pairs of points.
    """
    if not can_transform(program, X, X):
        return None
    variable: Any = program.variables[0]
    points = as_float64(X)
    x = np.asarray(mapped(variable.maps, points, centre_before_maps(variable, points)))
    n, dim = x.shape
    most = MOST_MODES / 2.0**dim
    if not forced:
        most = min(most, float(n) ** 2 / PAIRS_PER_MODE / 2.0**dim)
    tolerance = max(error / program.value_at_zero, FINEST_TOLERANCE)
    low, high = (np.array([end(column) for column in x.T]) for end in (np.min, np.max))
    slack = slack_of(low, high)
    grid = grid_for(program, low - slack, high + slack, tolerance, most)
    if grid is None:
        return None
    # weights from samples of the profile may be negative, by less than the error: leave them out
    lost = -float(np.minimum(grid.weights, 0.0).sum())
    grid = replace(grid, weights=np.maximum(grid.weights, 0.0), error=grid.error + lost)
    if grid.error > tolerance * program.value_at_zero:
        return None
    return FourierFeatures(program, points, x, grid)


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """Features of some points on a grid of frequencies."""

    program: Program
    X: Array
    mapped_to: Array  # the points as the program measures them
    grid: Grid

    def equations(self, weights: Array, Y: Array, *, centred: bool) -> NormalEquations:
        """The equations of weighted least squares for targets Y, shape (n, t).

        With `centred`, features are centred at their weighted mean: the fit has an intercept.
        """
        shape = self.grid.weights.shape
        twice = tuple(2 * size - 1 for size in shape)
        columns = np.column_stack([weights, weights[:, None] * Y])
        found = transform(self.grid, self.mapped_to, columns, twice)
        inner = tuple(slice(size // 2, size // 2 + size) for size in shape)
        return NormalEquations(self.grid, found[0], found[(slice(1, None), *inner)], centred)

    def prepared(self, modes: Array, A: Array) -> PreparedSum:
        """Elements with coefficients A whose modes are known, for any queries."""
        tolerance = self.grid.error / self.program.value_at_zero
        made = SpectralSum(self.program, self.X, A, self.grid, modes=modes)
        return PreparedSum(self.program, self.X, Dense(A), tolerance=tolerance).using(made)

    def values(self, modes: Array) -> Array:
        """Functions at the points, shape (n, t)."""
        return np.asarray(evaluate_modes(self.grid, modes, self.mapped_to).T)


class NormalEquations:
    """S b = right, S = D^(1/2) T D^(1/2), in real numbers; the caller adds penalties.

    Modes of real functions come in conjugate pairs, so half of them are stored: those whose last
    index is not negative, times sqrt(2) unless it is zero, as real and imaginary parts. The length
    of such a vector is the norm of the function.

    Attributes
    ----------
    right : array of shape (size, t)
    diagonal : array of shape (size,)
        Of S.
    """

    def __init__(self, grid: Grid, t: Array, r: Array, centred: bool) -> None:
        from scipy.fft import next_fast_len

        self.shape = grid.weights.shape
        self._halves = tuple(size // 2 for size in self.shape)
        twice = np.where(np.arange(self._halves[-1] + 1) == 0, 1.0, math.sqrt(2.0))
        self._root = np.sqrt(grid.weights[..., self._halves[-1] :])
        self._scale = self._root / twice  # from stored numbers to modes of f
        self._back = self._root * twice
        self._sizes = tuple(next_fast_len(4 * half + 1, real=True) for half in self._halves)
        # T v is a convolution: a product of functions on a grid that is fine enough for both
        self._density = self._function(t[..., 2 * self._halves[-1] :]) * math.prod(self._sizes)
        middle = tuple(2 * half for half in self._halves)
        self.total = float(t[middle].real)
        inner = tuple(slice(half, 3 * half + 1) for half in self._halves)
        self._mean = self._stored(t[inner]) if centred else None
        self.right = np.stack([self._stored(one) for one in r], axis=1)
        self.diagonal = self.total * np.repeat(self._root.ravel() ** 2, 2)
        if self._mean is not None:
            self.diagonal -= self._mean**2 / self.total

    def product(self, V: Array) -> Array:
        """S V for V of shape (size, b)."""
        out = np.stack([self._product(v) for v in V.T], axis=1)
        if self._mean is not None:
            out -= np.outer(self._mean, (self._mean @ V) / self.total)
        return out

    def modes(self, V: Array) -> Array:
        """The modes of the functions, shape (b, modes...)."""
        half = self._halves[-1]
        out = np.zeros((V.shape[1], *self.shape), dtype=np.complex128)
        for full, v in zip(out, V.T, strict=True):
            full[..., half:] = self._modes(v)
            mirrored = np.conj(full[(slice(None, None, -1),) * full.ndim])
            full[..., :half] = mirrored[..., :half]
        return out

    @cached_property
    def root_weights(self) -> Array:
        """sqrt(D_m) of each stored number, times sqrt(2) where it represents two modes."""
        return np.repeat(self._back.ravel(), 2)

    def _product(self, v: Array) -> Array:
        from scipy.fft import fft, rfft

        f = self._function(self._modes(v))
        f *= self._density
        z = rfft(f, axis=-1, workers=self._workers)[..., : self._halves[-1] + 1]
        for axis, half in enumerate(self._halves[:-1]):
            z = fft(z, axis=axis, workers=self._workers, overwrite_x=True)
            negative = _part(z, axis, self._sizes[axis] - half, None)
            z = np.concatenate([negative, _part(z, axis, 0, half + 1)], axis=axis)
        return np.asarray((z * self._back).view(np.float64).ravel())

    def _function(self, modes: Array) -> Array:
        """The function with these modes (of last index >= 0) on a grid of `_sizes` points."""
        from scipy.fft import ifft, irfft

        for axis, size in enumerate(self._sizes[:-1]):
            shape, half = list(modes.shape), modes.shape[axis] // 2
            shape[axis] = size
            padded = np.zeros(shape, dtype=np.complex128)
            _part(padded, axis, 0, half + 1)[...] = _part(modes, axis, half, None)
            _part(padded, axis, size - half, None)[...] = _part(modes, axis, 0, half)
            modes = ifft(padded, axis=axis, workers=self._workers, overwrite_x=True)
        return np.asarray(irfft(modes, n=self._sizes[-1], axis=-1, workers=self._workers))

    @property
    def _workers(self) -> int:
        return thread_count() if math.prod(self._sizes) > _FEW else 1

    def _modes(self, v: Array) -> Array:
        pairs = contiguous(v).view(np.complex128)
        return np.asarray(pairs.reshape(self._scale.shape) * self._scale)

    def _stored(self, modes: Array) -> Array:
        """D^(1/2) times modes of a real function, as a vector."""
        half = contiguous(modes[..., self._halves[-1] :] * self._back)
        return half.view(np.float64).ravel()


def _part(z: Array, axis: int, start: int, stop: int | None) -> Array:
    return z[(slice(None),) * axis + (slice(start, stop),)]
