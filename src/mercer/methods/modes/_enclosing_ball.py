"""The smallest ball that holds all points: exact on a few of them, checked against all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, frozen
from mercer._threads import single_threaded_blas
from mercer.engine import dense, n_columns, n_rows, pieces
from mercer.methods._rows import row_squares

_EPS = float(np.finfo(np.float64).eps)
_TILE = 1 << 21  # numbers that are held at once
_ROUNDS = 200  # passes over all points
_RANK = 1e-13  # of the largest singular value: smaller ones are rounding
_GOAL = 1e-13  # relative gap at which nothing is left to gain


class Ball(NamedTuple):
    """A ball that holds all points; no smaller one has a radius below `lower`, to rounding."""

    centre: Array
    radius: float  # the largest distance from the centre, rounded up
    lower: float


def enclosing_ball(X: Any) -> Ball:
    r"""Return the minimum enclosing ball: the centre c that minimises max_i \|x_i - c\|.

    X are checked points, dense or CSR. The ball of a few of them is found exactly; then the points
    farthest from its centre join, until none is outside.
    """
    origin = dense(X[:1])[0]
    first, distance = _farthest(X, origin, 1)
    if distance[0] == 0:  # all points are one
        return Ball(frozen(origin), 0.0, 0.0)
    unit = float(distance[0])  # so that squares neither overflow nor vanish
    origin = origin + (dense(X[first])[0] - origin) / 2
    few = min(max(2 * n_columns(X), 16), 256)
    rows, _ = _farthest(X, origin, few)
    best, lower, centre = np.inf, 0.0, origin
    for _ in range(_ROUNDS):
        with single_threaded_blas():  # many small systems
            c, bound = _exact((dense(X[rows]) - origin) / unit)
        lower = max(lower, bound * unit)
        at = origin + c * unit
        out, distance = _farthest(X, at, few)
        if distance[0] < best:
            best, centre = float(distance[0]), at
        fresh = np.setdiff1d(out, rows)
        if best - lower <= _GOAL * best or not len(fresh):
            break
        rows = np.concatenate([rows, fresh])
    radius = best * (1 + (n_columns(X) + 8) * _EPS)
    return Ball(frozen(centre), radius, min(lower * (1 - 1e-14), radius))


def max_distance(X: Any, centre: Array) -> float:
    r"""max_i \|x_i - centre\|, rounded up."""
    return float(_farthest(X, centre, 1)[1][0]) * (1 + (n_columns(X) + 8) * _EPS)


def _farthest(X: Any, centre: Array, count: int) -> tuple[Array, Array]:
    """Numbers of the rows farthest from the centre, and their distances, farthest first."""
    rows, size = np.empty(0, dtype=int), np.empty(0)
    for tile in pieces(n_rows(X), max(1, _TILE // max(1, n_columns(X)))):
        apart = dense(X[tile]) - centre
        largest = float(np.abs(apart).max()) or 1.0
        squared = row_squares(apart / largest)
        top = np.arange(len(squared))
        if len(squared) > count:
            top = np.argpartition(squared, len(squared) - count)[-count:]
        rows = np.concatenate([rows, tile.start + top])
        size = np.concatenate([size, largest * np.sqrt(squared[top])])
    order = np.argsort(-size, kind="stable")[:count]
    return rows[order], size[order]


def _exact(W: Array) -> tuple[Array, float]:
    """Centre of the smallest ball of a few points, and a lower bound on its radius.

    The centre is the mean of some points T on the border, with shares >= 0. The spread about such a
    mean is a lower bound on the squared radius for any shares, and largest at the centre. The point
    farthest from the mean joins T; then shares move to those of the centre of T's circumsphere,
    and points whose share becomes zero on the way leave (the active-set method of Lawson and
    Hanson).
    """
    T, share = [int(np.argmax(row_squares(W)))], np.ones(1)
    for _ in range(20 * (W.shape[1] + 10)):
        c = share @ W[T]
        squares = row_squares(W - c)
        bound, far = np.sqrt(share @ squares[T]), int(np.argmax(squares))
        if far in T or np.sqrt(squares[far]) <= bound * (1 + _GOAL / 4):
            break
        T, share = [*T, far], np.append(share, 0.0)
        way, end = _way_to_circumcentre(W[T], share)
        while (step := np.where(way < 0.0, share, np.inf) / np.abs(way)).min() < end:
            share = share + step.min() * way
            kept = np.flatnonzero(step > step.min())
            T, share = [T[i] for i in kept], share[kept] / share[kept].sum()
            way, end = _way_to_circumcentre(W[T], share)
        share = share + way
    return c, float(bound)


def _way_to_circumcentre(P: Array, share: Array) -> tuple[Array, float]:
    """The change of shares that makes their mean equally far from all P, and 1.

    If no sphere goes through P, the direction in which the mean stays and the spread grows, and
    infinity.
    """
    if len(P) == 1:
        return np.zeros(1), 1.0
    V = P[1:] - P[0]
    half = 0.5 * row_squares(V)  # <v, c - P[0]> at the centre c, for each row v of V
    U, s, _ = np.linalg.svd(V, full_matrices=False)
    U, s = U[:, s > _RANK * s[0]], s[s > _RANK * s[0]]
    seen = U.T @ half
    rest = half - U @ seen
    if np.linalg.norm(rest) > 1e-11 * np.linalg.norm(half):
        return np.concatenate([[-rest.sum()], rest]), np.inf
    others = U @ (seen / s**2)
    return np.concatenate([[1.0 - others.sum()], others]) - share, 1.0
