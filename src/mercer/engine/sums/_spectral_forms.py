"""Quadratic forms of a kernel matrix by frequencies, for millions of points in few dimensions.

    sum_ij u_i k(x_i, x_j) u_j = sum_m D_m |c_m|^2,   c_m = sum_i u_i exp(-i <w_m, x_i>)

on a grid of frequencies (see `_frequency_grid.py`): one transform for every two vectors u. Each
runs on its own thread, so results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._checkpoint import checkpointed
from mercer._config import get_options
from mercer._progress import tracked
from mercer._threads import map_threads
from mercer.engine._sizes import as_float64, contiguous, pieces
from mercer.engine.pairs._tiles import mapped_points
from mercer.engine.programs._program import Program
from mercer.engine.sums._choice import can_transform
from mercer.engine.sums._frequency_grid import MOST_MODES, Grid, finufft, grid_for
from mercer.engine.sums._spectral import SpectralSum, slack_of

# Errors, as shares of the spread of u'Ku over random signs u, which is about n k(0) / 10.
_GRID, _TRANSFORMS = 1e-5, 1e-4  # of the grid; of the transforms, whose errors have random signs
_FINEST = 1e-13
# Work in units of one multiplication of a matrix product, rough ratios as in `_spectral.py`: of a
# point in a transform by dimension, and of a mode.
_PER_POINT = (0.0, 1e3, 4e3, 3e4)
_PER_MODE = 4e3
_IN_CACHE = 1 << 16  # complex numbers, 1 MiB: on such a grid sorting the points gains nothing
_BATCH = 16  # transforms between two reports of progress

Vectors = Callable[[slice], Array]


class SpectralForms:
    """Forms and products of the matrix k(x_i, x_j), i != j, with bounds on their errors."""

    def __init__(self, program: Program, X: Array, mapped_to: Array, grid: Grid) -> None:
        self.program, self.X, self.grid = program, X, grid
        self.at_zero = float(program.value_at_zero)
        self._points = (mapped_to - grid.centre) * (2.0 * math.pi / grid.period)
        self._idle: list[tuple[Any, Array]] = []

    def __call__(
        self, vectors: Vectors, count: int, watched: Array
    ) -> tuple[Array, Array, Array, float]:
        """Forms, products, and bounds on the errors of each form and of all products.

        Forms are sums over i != j of u_i K_ij u_j for each of `count` vectors u; `vectors(some)`
        returns some of them as rows. Products are those of K, its diagonal left out, with the
        columns of `watched`. The bounds hold if finufft keeps the accuracy asked of it once per
        dimension.
        """
        pairs = list(pieces(count, 2))
        ends = vectors(pairs[0]), vectors(pairs[-1])  # tell one list of vectors from another
        place = checkpointed("permutations", self.program, self.X, count, ends)
        state: dict[str, Any] = {"done": 0, "values": np.empty(0), "errors": np.empty(0)} | (
            place.found or {}
        )
        for batch in tracked(list(pieces(len(pairs), _BATCH, state["done"])), "permutations"):
            found = map_threads(lambda some: self._pair(vectors(some)), pairs[batch])
            for name, parts in zip(("values", "errors"), zip(*found, strict=True), strict=True):
                state[name] = np.concatenate([state[name], *parts])
            state["done"] = batch.stop
            place.keep(state.copy, last=batch.stop == len(pairs))
        values, errors = state["values"], state["errors"]
        products, error = self._products(watched) if watched.shape[1] else (watched, 0.0)
        return values, products, errors, error

    def _pair(self, U: Array) -> tuple[Array, Array]:
        """Forms and bounds of one or two vectors, the rows of U."""
        grid = self.grid
        try:
            plan, packed = self._idle.pop()
        except IndexError:  # all are in use by other threads
            plan, packed = self._planned()
        packed.real, packed.imag = U[0], U[1] if len(U) == 2 else 0.0
        z = np.asarray(plan.execute(packed)).ravel()
        self._idle.append((plan, packed))
        D = grid.weights.ravel()
        both, between = D @ np.abs(z) ** 2, D @ (z * z[::-1]).real  # z[::-1] has the modes -m
        values = np.array([both + between, both - between])[: len(U)] / 2.0
        length = np.abs(U).sum(axis=1, dtype=np.float64)
        error = 2.0 * grid.centre.size * grid.accuracy * float(length.max())  # of each c_m
        mass = float(np.abs(D).sum())
        sizes = np.sqrt(np.maximum(values, 0.0) * mass)
        bounds = grid.error * length**2 + 2.0 * sizes * error + mass * error**2
        return values - self.at_zero * np.einsum("bi,bi->b", U, U, dtype=np.float64), bounds

    def _products(self, A: Array) -> tuple[Array, float]:
        f = SpectralSum(self.program, self.X, A, self.grid).fields(self.X)
        assert f.bound is not None
        return f.value - self.at_zero * A, float(f.bound.max())

    def _planned(self) -> tuple[Any, Array]:
        """A plan for transforms of the points on one thread, and room for their strengths."""
        weights, n = self.grid.weights, len(self._points)
        finest = 2**weights.ndim * weights.size  # numbers in the grid of finufft
        options = {"eps": self.grid.accuracy, "isign": -1, "nthreads": 1}
        plan = finufft().Plan(1, weights.shape, spread_sort=int(finest > _IN_CACHE), **options)
        plan.setpts(*(contiguous(axis) for axis in self._points.T))
        return plan, np.empty(n, dtype=np.complex128)


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
    slack = slack_of(low, high)
    grid = grid_for(program, low - slack, high + slack, max(_GRID / n, _FINEST), most)
    if grid is None:
        return None
    accuracy = max(_TRANSFORMS / math.sqrt(n), _FINEST)
    return SpectralForms(program, points, x, replace(grid, accuracy=accuracy))
