"""Quadratic forms of a kernel matrix by frequencies, for millions of points in few dimensions.

    sum_ij u_i k(x_i, x_j) u_j = sum_m D_m |c_m|^2,   c_m = sum_i u_i exp(-i <w_m, x_i>)

on a grid of frequencies (see `_spectral.py`): one transform for every two vectors u.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._threads import thread_count
from mercer.engine._sizes import as_float64
from mercer.engine.pairs._tiles import mapped_points
from mercer.engine.programs._program import Program
from mercer.engine.sums._choice import can_transform
from mercer.engine.sums._spectral import (
    MOST_MODES,
    SLACK,
    Grid,
    SpectralSum,
    finufft,
    grid_for,
)

# Errors, as shares of the spread of u'Ku over random signs u, which is about n k(0) / 10.
_GRID, _TRANSFORMS = 1e-5, 1e-4  # of the grid; of the transforms, whose errors have random signs
_FINEST = 1e-13
# Work in units of one multiplication of a matrix product, rough ratios as in `_spectral.py`: of a
# point in a transform by dimension, and of a mode.
_PER_POINT = (0.0, 1e3, 4e3, 3e4)
_PER_MODE = 4e3


class SpectralForms:
    """Forms and products of the matrix k(x_i, x_j), with bounds on their errors."""

    def __init__(self, program: Program, X: Array, mapped_to: Array, grid: Grid) -> None:
        self.program, self.X, self.grid = program, X, grid
        self.at_zero = float(program.value_at_zero)
        self._points = (mapped_to - grid.centre) * (2.0 * math.pi / grid.period)
        self._plan: Any = None
        self._count = 0

    def __call__(self, U: Array) -> tuple[Array, Array]:
        """u'Ku for each row u of U, and a bound on the error of each.

        The bound holds if finufft keeps the accuracy asked of it once per dimension.
        """
        b, grid = len(U), self.grid
        packed = np.zeros((-(-b // 2), U.shape[1]), dtype=np.complex128)
        packed.real, packed.imag[: b // 2] = U[0::2], U[1::2]
        z = np.asarray(self._planned(len(packed)).execute(packed)).reshape(len(packed), -1)
        flipped = z[:, ::-1]  # the mode -m
        D = grid.weights.ravel()
        both, between = (np.abs(z) ** 2) @ D, (z * flipped).real @ D
        values = np.stack([both + between, both - between], axis=1).ravel()[:b] / 2.0
        length = np.abs(U).sum(axis=1, dtype=np.float64)
        error = 2.0 * grid.centre.size * grid.accuracy * float(length.max())  # of each c_m
        mass = float(np.abs(D).sum())
        sizes = np.sqrt(np.maximum(values, 0.0) * mass)
        return values, grid.error * length**2 + 2.0 * sizes * error + mass * error**2

    def products(self, A: Array) -> tuple[Array, float]:
        """K A, and a bound on the error of each entry."""
        f = SpectralSum(self.program, self.X, A, self.grid).fields(self.X)
        assert f.bound is not None
        return f.value, float(f.bound.max())

    def _planned(self, count: int) -> Any:
        """A plan for this many transforms of the points, which are sorted once."""
        if self._plan is None or self._count != count:
            self._count, shape = count, self.grid.weights.shape
            self._plan = finufft().Plan(
                1, shape, n_trans=count, eps=self.grid.accuracy, isign=-1, nthreads=thread_count()
            )
            self._plan.setpts(*(np.ascontiguousarray(axis) for axis in self._points.T))
        return self._plan


def spectral_forms(program: Program, X: Any) -> SpectralForms | None:
    """Forms by frequencies; None if products with the matrix in tiles take less work."""
    if get_options().engine not in (None, "spectral") or not can_transform(program, X, X):
        return None
    points = as_float64(X)
    x, _ = mapped_points(program.variables[0], points, points)
    n, dim = x.shape
    forced = get_options().engine == "spectral"
    most = MOST_MODES if forced else (0.5 * n * n - _PER_POINT[dim] * n) / _PER_MODE
    if most < 1:
        return None
    low, high = x.min(axis=0), x.max(axis=0)
    slack = SLACK * (high - low)
    grid = grid_for(program, low - slack, high + slack, max(_GRID / n, _FINEST), most)
    if grid is None:
        return None
    accuracy = max(_TRANSFORMS / math.sqrt(n), _FINEST)
    return SpectralForms(program, points, x, replace(grid, accuracy=accuracy))
