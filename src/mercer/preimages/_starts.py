"""Default starting points: good points of the element, and their weighted mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, as_points, is_sparse
from mercer._random import as_generator
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.preimages._problem import Problem

_TRIED = 2048  # points of an element that are looked at


def given_starts(start: Any, batch: int, dim: int) -> Array:
    """Check what the user gave: (d,), (b, d), or (s, b, d) for several starts per element."""
    array = np.asarray(start)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim == 2:
        array = array[None, :, :]
    if array.ndim != 3 or array.shape[2] != dim or array.shape[1] not in (1, batch):
        raise InputError(
            f"start must have shape ({dim},), ({batch}, {dim}) or (s, {batch}, {dim}), got "
            f"{np.shape(start)}"
        )
    flat = as_points(array.reshape(-1, dim), "start").astype(float)
    return np.broadcast_to(flat.reshape(array.shape), (array.shape[0], batch, dim))


def default_starts(problem: Problem, count: int, random_state: Any) -> Array:
    """The weighted mean and the `count` - 1 best points of the element that lie apart, (s, b, d).

    Up to 2,048 points are looked at, drawn at random where there are more.
    """
    X, n = problem.psi.points, n_rows(problem.psi.points)
    if n > _TRIED:
        X = X[np.sort(as_generator(random_state).choice(n, _TRIED, replace=False))]
    X = np.asarray(X.toarray() if is_sparse(X) else X, dtype=float)
    own = engine.diagonal(problem.program, X)
    values = problem.psi.fields(X).value - 0.5 * own[:, None]  # (n, b)
    chosen = _apart(X, values, max(1, count - 1))
    if count == 1:
        return chosen
    mean = _weighted_mean(problem)
    known = np.isfinite(mean).all(axis=1, keepdims=True)
    return np.concatenate([chosen, np.where(known, mean, chosen[0])[None]])


def _apart(X: Array, values: Array, count: int) -> Array:
    """For each element its best point, then the best that is far from it, and so on, (s, b, d).

    Far means farther than half the root mean squared distance of the points from their mean; where
    no such point is left, the best one comes again.
    """
    Z = X - X.mean(axis=0)
    squares = np.sum(Z**2, axis=1)
    limit = 0.25 * float(np.mean(squares))
    left = np.array(values, dtype=float)
    out = np.empty((count, values.shape[1], X.shape[1]))
    for k in range(count):
        none = ~np.isfinite(left).any(axis=0)
        best = np.argmax(np.where(none, values, left), axis=0)
        out[k] = X[best]
        if k + 1 < count:
            gap = squares[:, None] + squares[best] - 2.0 * Z @ Z[best].T
            left[gap <= limit] = -np.inf
            left[best, np.arange(len(best))] = -np.inf
    return out


def _weighted_mean(problem: Problem) -> Array:
    """sum_i a_i x_i / sum_i a_i per element; not finite where the sum is not positive."""
    X, coef = problem.psi.points, problem.psi.coef
    total = coef.weigh(np.ones((n_rows(X), 1)))[0]
    if is_sparse(X):
        sums = np.asarray(X.T @ coef.tile(slice(None), slice(None)))
    else:
        sums = coef.weigh(engine.as_float64(X))
    mean = (sums / np.where(total > 0, total, np.nan)).T
    return np.asarray(mean, dtype=float)
