"""The stochastic subgradient method in a kernel's space: one row at a time, with averages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer.engine import n_rows, pieces
from mercer.kernels import Kernel
from mercer.methods.machines._losses import Loss
from mercer.preimages import Pruning, compress
from mercer.space import Element
from mercer.space._points import concatenated

_BLOCK = 256  # rows whose Gram matrix is computed at once


@dataclass(frozen=True, eq=False)
class Iterate:
    """f after some steps, and what its average needs.

    Step t changes f by d_t k(x_t, .), when the sum of all step sizes is S_t. The average with the
    steps as weights is sum_t d_t (1 - S_t / S) k(x_t, .), with S the sum at the end. So the sums of
    d_t and of d_t S_t are kept for each point; both are elements.

    Attributes
    ----------
    points : array or None
        The points of f; None before the first step.
    coef, moments : arrays of shape (points, functions)
        Sums of d_t, and of d_t S_t.
    n_steps : int
    total : float
        S.
    errors : array of shape (2, functions)
        Errors of compression that have added up, of both elements.
    """

    points: Any
    coef: Array
    moments: Array
    n_steps: int
    total: float
    errors: Array

    @classmethod
    def zero(cls, n_functions: int) -> Iterate:
        """f = 0."""
        empty = np.zeros((0, n_functions))
        return cls(None, empty, empty, 0, 0.0, np.zeros((2, n_functions)))

    def average(self) -> Array:
        """Coefficients of the average of all iterates, weighted by the steps."""
        return self.coef - self.moments / self.total if self.total > 0.0 else self.coef

    def averaged_error(self) -> Array:
        """At least the change of the average by compression, in the norm of the space."""
        return np.asarray(self.errors[0] + self.errors[1] / max(self.total, np.finfo(float).tiny))


def take_steps(
    state: Iterate, kernel: Kernel, X: Points, Y: Array, loss: Loss, scale: float
) -> Iterate:
    """One step for each row, f <- f - step l'(y, f(x)) k(x, .), step = scale / sqrt(t + 1).

    Y has one column for each function. Values at a block of rows come from one kernel sum; within
    the block they are corrected by its Gram matrix.
    """
    for rows in pieces(len(X), _BLOCK):
        block, y = X[rows].array, Y[rows]
        K = engine.gram(kernel.program, block, block).astype(np.float64)
        values = np.zeros(y.shape)
        if state.points is not None:
            coef = engine.Dense(state.coef)
            values = engine.fields(kernel.program, state.points, block, coef).value
        change = np.zeros(y.shape)
        totals = state.total + scale * np.cumsum(
            1.0 / np.sqrt(state.n_steps + 1 + np.arange(len(y)))
        )
        for i in range(len(y)):
            step = scale / np.sqrt(state.n_steps + 1 + i)
            t = values[i] + K[i, :i] @ change[:i]
            change[i] = -step * loss.subgradient(y[i], t)
        state = _extended(state, block, change, change * totals[:, None], len(y), float(totals[-1]))
    return state


def _extended(
    state: Iterate, block: Any, coef: Array, moments: Array, n_steps: int, total: float
) -> Iterate:
    used = np.flatnonzero(coef.any(axis=1))
    old = state.points
    points = block[used] if old is None else concatenated(old, block[used])
    return replace(
        state,
        points=points,
        coef=np.concatenate([state.coef, coef[used]]),
        moments=np.concatenate([state.moments, moments[used]]),
        n_steps=state.n_steps + n_steps,
        total=total,
    )


def within_budget(state: Iterate, kernel: Kernel, budget: int) -> Iterate:
    """The same with at most `budget` of its points: both elements are compressed together."""
    if state.points is None or n_rows(state.points) <= budget:
        return state
    b = state.coef.shape[1]
    both = Element(kernel, state.points, np.concatenate([state.coef, state.moments], axis=1))
    small = compress(both, budget, method=Pruning())
    coef = np.asarray(small.element.coef.tile(slice(None), slice(None)), dtype=np.float64)
    return replace(
        state,
        points=small.element.points,
        coef=coef[:, :b],
        moments=coef[:, b:],
        errors=state.errors + np.reshape(small.error, (2, b)),
    )


def first_step(kernel: Kernel, X: Points, loss: Loss) -> float:
    """1 / (M k), k the largest k(x, x) and M the smoothness of the loss; 1 / k if it has none."""
    largest = float(kernel.diag(X).max())
    bend = loss.smoothness if np.isfinite(loss.smoothness) else 1.0
    return 1.0 / (bend * largest) if largest > 0.0 else 1.0
