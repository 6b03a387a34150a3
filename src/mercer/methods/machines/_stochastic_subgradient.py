"""The stochastic subgradient method in a kernel's space: one row at a time, with an average."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import LARGEST, Array, Points
from mercer.engine import n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.methods.machines._losses import Loss
from mercer.space import Element
from mercer.space._points import concatenated

_BLOCK = 256  # rows whose Gram matrix is computed at once
_RIDGE = 1e-10  # of the largest k(x, x): makes Gram matrices of close points invertible


@dataclass(frozen=True, eq=False)
class Iterate:
    """f after some steps, and the average of f_1, f_2, ... with the weights 1, 2, ...

    Attributes
    ----------
    points : array or None
        The points of f; None before the first step.
    coef, average : arrays of shape (points, functions)
        Coefficients of f, and of the average.
    n_steps : int
    errors : array of shape (2, functions)
        Upper bounds of the changes of both by compression, in the norm of the space.
    """

    points: Any
    coef: Array
    average: Array
    n_steps: int
    errors: Array

    @classmethod
    def zero(cls, n_functions: int) -> Iterate:
        """f = 0."""
        empty = np.zeros((0, n_functions))
        return cls(None, empty, empty, 0, np.zeros((2, n_functions)))

    def both(self, kernel: Kernel) -> Element:
        """f and the average, as one batch."""
        return Element(kernel, self.points, np.hstack([self.coef, self.average]))


def take_steps(
    state: Iterate, kernel: Kernel, X: Points, Y: Array, loss: Loss, step: float
) -> Iterate:
    """One step for each row, f <- f - step l'(y, f(x)) k(x, .).

    Y has one column for each function. Values at a block of rows come from one kernel sum; within
    the block they are corrected by its Gram matrix.
    """
    for rows in pieces(len(X), _BLOCK):
        block, y = X[rows].array, Y[rows]
        K = engine.gram(kernel.program, block, block).astype(np.float64)
        values = np.zeros(y.shape)
        if len(state.coef):
            coef = engine.Dense(state.coef)
            values = engine.fields(kernel.program, state.points, block, coef).value
        change = np.zeros(y.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(len(y)):
                change[i] = -step * loss.subgradient(y[i], values[i] + K[i, :i] @ change[:i])
        if not np.abs(change).max() < LARGEST:
            raise InputError(f"steps of size {step:g} diverge; use a shorter step_size")
        state = _extended(state, block, change)
    return state


def _extended(state: Iterate, block: Any, change: Array) -> Iterate:
    """f plus the changes, one for each step, and the average over all f before a step."""
    t = state.n_steps + np.arange(len(change) + 1.0)
    weights = t * (t + 1.0)  # twice the sum of the weights 1, ..., t
    seen = weights / weights[-1]
    used = np.flatnonzero(change.any(axis=1))
    old, new = state.points, change[used]
    return Iterate(
        points=block[used] if old is None else concatenated(old, block[used]),
        coef=np.concatenate([state.coef, new]),
        average=np.concatenate([
            seen[0] * state.average + (1.0 - seen[0]) * state.coef,
            (1.0 - seen[1 + used])[:, None] * new,  # the change of step t counts from t + 1 on
        ]),
        n_steps=state.n_steps + len(change),
        errors=np.stack([
            state.errors[0],
            seen[0] * state.errors[1] + (1.0 - seen[0]) * state.errors[0],
        ]),
    )  # fmt: skip


def merged(state: Iterate, kernel: Kernel) -> Iterate:
    """The same with equal points merged, which come from several passes over the rows."""
    try:
        short = state.both(kernel).merge()
    except TypeError:  # objects that cannot be compared
        return state
    return _with_coefficients(state, short.points, short.coef.tile(slice(None), slice(None)))


def within_budget(state: Iterate, kernel: Kernel, budget: int) -> Iterate:
    """The same with at most `budget` of its points: f is projected on the ones that remain.

    Points are dropped one by one. Without point i, both functions change by c_i^2 / (K^-1)_ii in
    the squared norm, c_i being its coefficients; the point with the smallest change is next.
    """
    n = n_rows(state.points)
    if n <= budget:
        return state
    K = engine.gram(kernel.program, state.points, state.points).astype(np.float64)
    K[np.diag_indices(n)] += _RIDGE * (K.diagonal().max() or 1.0)
    C = np.hstack([state.coef, state.average])
    inverse, c, kept = np.linalg.inv(K), C.copy(), np.arange(n)
    while len(kept) > budget:
        i = int(kept[np.argmin(np.sum(c[kept] ** 2, axis=1) / inverse[kept, kept])])
        column = inverse[:, i] / inverse[i, i]
        c -= column[:, None] * c[i]
        inverse -= column[:, None] * inverse[i]
        kept = kept[kept != i]
    left = C.copy()  # what is lost; solved afresh, because the inverse has lost digits
    new = np.linalg.solve(K[np.ix_(kept, kept)], K[kept] @ C)
    left[kept] -= new
    errors = np.sqrt(np.maximum(np.einsum("ij,ij->j", left, K @ left), 0.0))
    state = replace(state, errors=state.errors + errors.reshape(2, -1))
    return _with_coefficients(state, state.points[kept], new)


def _with_coefficients(state: Iterate, points: Any, both: Any) -> Iterate:
    both = np.asarray(both, dtype=np.float64)
    b = state.coef.shape[1]
    return replace(state, points=points, coef=both[:, :b], average=both[:, b:])


def first_step(kernel: Kernel, X: Points, targets: Array, loss: Loss) -> float:
    """1 / (M k), k the largest k(x, x) and M the smoothness of the loss.

    A loss with kinks has no M, and its slopes do not depend on the units of the targets: 1 / M is
    replaced by the standard deviation of the targets for regression, and by 1 for labels.
    """
    largest = float(kernel.diag(X).max()) or 1.0
    if np.isfinite(loss.smoothness):
        return 1.0 / (loss.smoothness * largest)
    return (1.0 if loss.classifies else float(np.std(targets)) or 1.0) / largest
