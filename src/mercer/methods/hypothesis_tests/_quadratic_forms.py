"""Quadratic forms of kernel matrices in many vectors: the sums behind permutation tests.

sum over i != j of w_i K_ij w_j, for thousands of vectors w, is a product of the matrix of vectors
with K. K is symmetric, so half of its tiles are enough; they are made one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array
from mercer._progress import tracked
from mercer._threads import map_threads
from mercer.engine import pieces

_TILE = 512  # rows: large enough for BLAS, and a tile of float32 is 1 MiB
_BATCH = 64  # tiles between two additions, in a fixed order
_SAFE = 1e-15, 1e15  # largest entries of a tile whose products neither overflow nor underflow

Tile = Callable[[slice, slice], Array]
Vectors = Callable[[slice], Array]


class Forms(NamedTuple):
    """Sums over the pairs i != j of one symmetric matrix K with each vector."""

    values: Array  # (n_vectors,): sum w_i K_ij w_j
    products: Array  # (n, c): K times the watched vectors, the diagonal left out
    errors: Any = 0.0  # bounds on the errors of the values, beyond rounding
    row_error: float = 0.0  # and of the products


def quadratic_forms(tiles: Sequence[Tile], vectors: Vectors, watched: Array) -> list[Forms]:
    """Return the forms of several symmetric n x n matrices in many vectors.

    A matrix is a function of two slices that returns a new tile; `vectors(rows)` has one vector
    in each row, at some of the n places. `watched` is an (n, c) matrix whose products with each
    matrix are wanted too. Products run in the type of the vectors, sums of tiles in float64. In
    float32 the error is about 1e-7 of sqrt(sum (w_i K_ij w_j)^2), far below the spread of a
    statistic over random vectors.
    """
    n = len(watched)
    blocks = list(pieces(n, _TILE))
    pairs = [(i, j) for i in range(len(blocks)) for j in range(i, len(blocks))]
    jobs = [(k, i, j) for k in range(len(tiles)) for i, j in pairs]

    def job(at: tuple[int, int, int]) -> tuple[Array, Array, Array]:
        k, rows, columns = at[0], blocks[at[1]], blocks[at[2]]
        W = vectors(columns)
        V = W if rows == columns else vectors(rows)
        K, size = _scaled(tiles[k](rows, columns), W.dtype)
        if rows == columns:
            np.fill_diagonal(K, 0.0)
        values = np.vecdot(V @ K, W).astype(np.float64)
        values *= size if rows == columns else 2.0 * size
        down, across = watched[columns].astype(W.dtype), watched[rows].astype(W.dtype)
        return values, np.float64(size) * (K @ down), np.float64(size) * (K.T @ across)

    values = np.zeros((len(tiles), len(vectors(slice(0, 1)))))
    products = np.zeros((len(tiles), n, watched.shape[1]))
    for batch in tracked(list(pieces(len(jobs), _BATCH)), "permutations"):
        for (k, i, j), part in zip(jobs[batch], map_threads(job, jobs[batch]), strict=True):
            values[k] += part[0]
            products[k, blocks[i]] += part[1]
            if i != j:
                products[k, blocks[j]] += part[2]
    return [Forms(*parts) for parts in zip(values, products, strict=True)]


@np.errstate(over="ignore")  # seen in the result
def _scaled(K: Array, dtype: np.dtype) -> tuple[Array, float]:
    """The tile in this type, divided by a number if products could overflow or underflow."""
    out = K.astype(dtype, copy=False)
    size = max(float(out.max(initial=0.0)), -float(out.min(initial=0.0)))
    if _SAFE[0] <= size <= _SAFE[1]:
        return out, 1.0
    size = float(np.abs(K).max(initial=0.0)) or 1.0
    return (K / size).astype(dtype), size


class MeanOfFeatures(NamedTuple):
    """For each matrix of inner products <f_i, f_j>, its statistics and the means of its rows."""

    statistics: Array  # (n_matrices, n_draws): mean over i != j of w_i w_j <f_i, f_j>
    rows: Array  # (n_matrices, n): mean over j != i of <f_i, f_j>


def mean_of_features(tiles: Sequence[Tile], weights: Array) -> MeanOfFeatures:
    """Is the mean of n features zero? Statistics for each row of weights, (n_draws, n), row 0 ones.

    Paired samples have f_i = k(x_i, .) - k(y_i, .); goodness of fit has Stein features. Under the
    null hypothesis a feature and its negative are equally likely (sign flips, exact for pairs), or
    signs imitate the distribution of the sum (wild bootstrap).
    """
    n = weights.shape[1]
    forms = quadratic_forms(
        tiles, lambda rows: weights[:, rows].astype(np.float32, copy=False), np.ones((n, 1))
    )
    statistics = np.array([f.values for f in forms]) / (n * (n - 1))
    rows = np.array([f.products[:, 0] for f in forms]) / (n - 1)
    return MeanOfFeatures(statistics, rows)


def variance_of_mean(values: Array, weights: Array | None = None) -> float:
    """The variance of the mean of these values, of independent rows or of a time series.

    For a series by the weights of a wild bootstrap, (n_draws, n), whose row 0 is ones.
    """
    n = len(values)
    if weights is None:
        return float(values.var()) / n
    moved = (values - values.mean()).astype(weights.dtype)
    return float(np.mean((weights[1:] @ moved / n) ** 2))


def standardised_mean(
    rows: Array, diagonal: Array, weights: Array | None = None
) -> tuple[float, float, float]:
    """|mean f|^2 over the variance of the features, its variance, and the latter.

    `rows` are the means of <f_i, f_j> over j != i and `diagonal` is |f_i|^2. `weights` are those of
    a wild bootstrap for a time series.
    """
    size, within = float(rows.mean()), float((diagonal - rows).mean())
    if within <= 0.0:
        return 0.0, 0.0, 0.0
    ratio = size / within
    influence = (2.0 * rows - ratio * (diagonal - 2.0 * rows)) / within
    return ratio, variance_of_mean(influence, weights), within
