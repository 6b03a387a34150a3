"""The smallest ball that holds all points: exact on a few of them, checked against all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, as_points, frozen
from mercer._threads import single_threaded_blas
from mercer.engine import n_columns, n_rows, pieces
from mercer.methods._rows import dense, row_squares

_EPS = float(np.finfo(np.float64).eps)
_TILE = 1 << 21  # numbers that are held at once
_ROUNDS = 200  # passes over all points
_GOAL = 1e-13  # relative gap at which nothing is left to gain


@dataclass(frozen=True, eq=False)
class EnclosingBall:
    """A ball that holds all points, and a bound below which no such ball can be.

    Attributes
    ----------
    centre : array of shape (d,)
    radius : float
        The largest distance from the centre, rounded up: every point is inside.
    lower : float
        No ball that holds the points has a smaller radius (to rounding).

    Examples
    --------
    >>> import mercer as mc
    >>> ball = mc.methods.enclosing_ball([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]])
    >>> ball.centre, round(ball.radius, 12)
    (array([1., 0.]), 1.0)
    """

    centre: Array
    radius: float
    lower: float

    @property
    def gap(self) -> float:
        """Radius - lower: by how much the ball may be too large."""
        return max(self.radius - self.lower, 0.0)


def enclosing_ball(X: Any) -> EnclosingBall:
    r"""Return the minimum enclosing ball: the centre c that minimises max_i \|x_i - c\|.

    The ball of a few points is found exactly, by shrinking a ball along the line to the centre of
    the points on its border; then the points farthest from that centre join, until none is outside.

    Parameters
    ----------
    X : array_like or CSR matrix of shape (n, d)

    Returns
    -------
    EnclosingBall
        Its `gap` is usually below 1e-12 of the radius, and is stated where it is not.

    References
    ----------
    K. Fischer, B. Gärtner and M. Kutz, Fast smallest-enclosing-ball computation in high dimensions,
    2003.

    Examples
    --------
    >>> import mercer as mc
    >>> ball = mc.methods.enclosing_ball([[3.0, 4.0], [3.0, -4.0], [-5.0, 0.0], [5.0, 0.0]])
    >>> abs(ball.centre).round(12), round(ball.radius, 12)
    (array([0., 0.]), 5.0)
    """
    X = as_points(X)
    with single_threaded_blas():  # many small systems
        return _ball(X)


def _ball(X: Any) -> EnclosingBall:
    origin = dense(X[:1])[0]
    first, distance = _farthest(X, origin, 1)
    if distance[0] == 0:  # all points are one
        return EnclosingBall(frozen(origin), 0.0, 0.0)
    unit = float(distance[0])  # so that squares neither overflow nor vanish
    origin = origin + (dense(X[first])[0] - origin) / 2
    few = min(max(2 * n_columns(X), 16), 256)
    rows, _ = _farthest(X, origin, few)
    c = np.zeros(n_columns(X))
    best, lower, centre = np.inf, 0.0, origin
    for _ in range(_ROUNDS):
        c, bound = _exact((dense(X[rows]) - origin) / unit, c)
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
    return EnclosingBall(frozen(centre), radius, min(lower * (1 - 1e-14), radius))


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


def _exact(W: Array, c: Array) -> tuple[Array, float]:
    """Centre of the smallest ball of a few points, and a lower bound of its radius.

    The ball about c shrinks while its border holds the points T: c moves to the centre of their
    circumsphere, until a new point is on the border, which joins. At the circumcentre, a point
    whose affine coefficient is negative leaves; if none is, the ball is the smallest.
    """
    from scipy.linalg import lstsq

    T = [int(np.argmax(row_squares(W - c)))]
    best, bound, smallest = c, 0.0, np.inf
    for step in range(20 * (W.shape[1] + 10)):
        V = (W[T[1:]] - W[T[0]]).T
        target = W[T[0]] - c
        # few columns, all but always independent
        lam = lstsq(V, -target, cond=1e-13, lapack_driver="gelsy")[0] if len(T) > 1 else np.empty(0)
        weights = np.concatenate([[1.0 - lam.sum()], lam])
        v = target + V @ lam  # from c to the circumcentre, orthogonal to the flat of T
        reach = row_squares(W - c)
        if reach.max() < smallest:
            best, smallest = c, float(reach.max())
        if bound >= np.sqrt(smallest) * (1 - _GOAL / 4):
            break
        if len(T) > W.shape[1] or np.linalg.norm(v) <= 1e-14 * np.sqrt(smallest):
            t, hit = 1.0, -1  # T spans the space, or c is its centre already
        else:
            t, hit = _first_hit(W, v, T, reach)
        c = c + t * v
        if hit >= 0:
            T.append(hit)
            continue
        bound = max(bound, _dual(W[T], weights))
        if weights.min() >= -1e-13 or len(T) == 1:
            reach = row_squares(W - c)
            best = c if reach.max() < smallest else best
            break
        worst = int(np.argmin(weights)) if step < 10 * W.shape[1] else int(np.argmax(weights < 0))
        T.pop(worst)  # later the first one, which cannot cycle
    return best, bound


def _first_hit(W: Array, v: Array, T: list[int], reach: Array) -> tuple[float, int]:
    """The part of the way v after which a point outside T is on the border, and which; -1: none."""
    fall = (W[T[0]] - W) @ v  # twice the rate at which others gain on those of T
    lead = np.maximum(reach[T].max() - reach, 0.0)
    scale = np.linalg.norm(v) * np.sqrt(reach.max())
    able = fall > 1e-13 * scale
    able[T] = False
    t = np.where(able, lead / np.where(able, 2 * fall, 1.0), np.inf)
    hit = int(np.argmin(t))
    return (float(t[hit]), hit) if t[hit] < 1.0 else (1.0, -1)


def _dual(P: Array, weights: Array) -> float:
    """A lower bound of the radius: the spread of the points about their weighted mean."""
    w = np.maximum(weights, 0.0)
    w = w / w.sum()
    return float(np.sqrt(max(w @ row_squares(P - w @ P), 0.0)))
