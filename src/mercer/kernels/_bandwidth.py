"""Length scales from data: the median of the distances between points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import (
    Array,
    as_points,
    as_vector,
    as_weights,
    is_sparse,
    positive_int,
)
from mercer._chunks import as_chunks, sampled, weights_in_pieces
from mercer._frames import is_chunked
from mercer._random import as_generator
from mercer.engine import Distance, Program, Var, pieces
from mercer.exceptions import InputError

SQUARED_DISTANCE = Program((Distance(),), Var(0, nonnegative=True))
_BINS = 4096
_COLLECT = 1 << 20  # pairs that are few enough to be sorted
_SLACK = 1e-12  # relative rounding of a sum of weights


def median_scale(
    X: Any, *, weights: Any = None, n_points: int | None = 5000, random_state: Any = 0
) -> float:
    """Return the median distance between distinct points: the usual length scale to start from.

    The weighted median of |x_i - x_j| over all pairs with x_i != x_j, with weight w_i w_j for the
    pair (i, j). A weight of 2 is therefore the same as repeating the row. Exact for up to
    `n_points` rows, and computed block by block; more rows are subsampled. For rows in pieces
    (Dask), a random sample of 20,000 rows is drawn first.

    Parameters
    ----------
    X : array_like or CSR matrix of shape (n, d)
    weights : array_like of shape (n,), optional
        Weights >= 0.
    n_points : int or None, default=5000
        Rows that are used; if X has more, this many are drawn at random. None uses all rows, at a
        cost of n^2.
    random_state : int, Generator, RandomState or None, default=0
        Draws the rows. With the default the result depends on the data only.

    Returns
    -------
    float
        The median distance, > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.median_scale([[0.0], [1.0], [3.0]])
    2.0
    >>> mc.median_scale([[0.0], [1.0], [3.0]], weights=[1, 1, 3])
    2.0
    """
    if is_chunked(X):
        rows = as_chunks(X)
        kept = None if weights is None else weights_in_pieces(rows, weights)
        X, weights = sampled(rows, kept)
    X = as_points(X)
    n = X.shape[0]
    w = np.ones(n)
    if weights is not None:
        as_weights(weights, n)  # only to raise; the weights are kept exact
        w = as_vector(weights, "weights", n).astype(np.float64)
    used = np.flatnonzero(w > 0)
    if n_points is not None and used.size > positive_int(n_points, "n_points"):
        used = np.sort(as_generator(random_state).choice(used, n_points, replace=False))
    X, w = X[used].astype(np.float64), w[used]
    unit = _power_of_two(_diameter(X))
    return unit * _median_distance(X / unit, w / _power_of_two(float(w.max())))


def _diameter(X: Any) -> float:
    """An upper bound on the distance of any pair."""
    if is_sparse(X):
        largest = abs(X).max() or 1.0
        Z = X / largest
        return 2.0 * float(largest * np.sqrt(Z.multiply(Z).sum(axis=1).max()))
    ranges = X.max(axis=0).astype(np.float64) - X.min(axis=0)
    largest = float(ranges.max()) or 1.0
    return largest * float(np.linalg.norm(ranges / largest))


def _power_of_two(x: float) -> float:
    """A power of two > x, so that dividing by it is exact; 1 for 0."""
    return float(np.ldexp(1.0, min(int(np.frexp(x)[1]), 1023)))


def _median_distance(X: Any, w: Array) -> float:
    """Weighted median over pairs of points that are at most 1 apart, with only blocks in memory.

    Histograms of squared distances narrow it down, until the pairs of one bin can be sorted.
    """
    low, high, below, half = 0.0, 1.0, 0.0, 0.0
    while True:
        scale = _BINS / (high - low)
        weights, counts = np.zeros(_BINS), np.zeros(_BINS, dtype=np.int64)
        for u, p in _pairs(X, w, low, high):
            index = _index(u, low, scale)
            weights += np.bincount(index, weights=p, minlength=_BINS)
            counts += np.bincount(index, minlength=_BINS)
        half = half or 0.5 * float(weights.sum())
        if half == 0.0:
            raise InputError(
                "all points are equal: there is no median distance; give a length scale"
            )
        at = _first_reaching(below + np.cumsum(weights), half)
        below += float(weights[:at].sum())
        chosen = ((_index(u, low, scale) == at, u, p) for u, p in _pairs(X, w, low, high))
        if counts[at] <= _COLLECT:
            parts = [(u[inside], p[inside]) for inside, u, p in chosen]
            u, p = (np.concatenate(column) for column in zip(*parts, strict=True))
            return _select(X, w, u, p, half - below)
        ends = [(u[inside].min(), u[inside].max()) for inside, u, _ in chosen if inside.any()]
        low, high = float(min(ends)[0]), float(max(b for _, b in ends))
        if low == high:
            return _select(X, w, np.full(1, low), np.full(1, weights[at]), half - below)


def _select(X: Any, w: Array, u: Array, p: Array, rest: float) -> float:
    """The distance at which the weight of some pairs reaches `rest`; the mean of two at a tie."""
    order = np.argsort(u, kind="stable")
    u, cumulative = u[order], np.cumsum(p[order])
    i = _first_reaching(cumulative, rest)
    median = float(np.sqrt(u[i]))
    if cumulative[i] > rest * (1 + _SLACK):
        return median
    if i + 1 < u.size:
        following = float(u[i + 1])
    else:
        following = min(float(v[v > u[i]].min(initial=np.inf)) for v, _ in _pairs(X, w, u[i], 1.0))
    return 0.5 * (median + float(np.sqrt(following)))


def _pairs(X: Any, w: Array, low: float, high: float) -> Iterator[tuple[Array, Array]]:
    """Squared distances in [low, high] and weights of pairs of distinct points, in blocks."""
    for rows in pieces(X.shape[0], 512):
        u = np.triu(engine.gram(SQUARED_DISTANCE, X[rows], X[rows.start :]), k=1)
        used = (u > 0) & (u >= low) & (u <= high)
        yield u[used], np.multiply.outer(w[rows], w[rows.start :])[used]


def _index(u: Array, low: float, scale: float) -> Array:
    return np.clip((u - low) * scale, 0, _BINS - 1).astype(np.intp)


def _first_reaching(cumulative: Array, level: float) -> int:
    """The first index at which a cumulative sum reaches a level, up to rounding."""
    return min(int(np.searchsorted(cumulative, level * (1 - _SLACK))), cumulative.size - 1)
