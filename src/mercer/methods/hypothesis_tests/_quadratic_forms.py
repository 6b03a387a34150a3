"""Quadratic forms of kernel matrices in many vectors: the sums behind permutation tests.

sum over i != j of w_i K_ij w_j, for thousands of vectors w, is a product of the matrix K with the
matrix of vectors. K is symmetric, so half of its tiles are enough; they are made one at a time.
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

Tile = Callable[[slice, slice], Array]


class Forms(NamedTuple):
    """Sums over the pairs i != j of one symmetric matrix K with each vector."""

    values: Array  # (n_vectors,): sum w_i K_ij w_j
    products: Array  # (n, c): K times the watched vectors, the diagonal left out


def quadratic_forms(tiles: Sequence[Tile], n: int, vectors: Any, watched: Array) -> list[Forms]:
    """Return the forms of several symmetric n x n matrices in the columns of `vectors`.

    A matrix is a function of two slices that returns a new tile. `vectors[rows]` are rows of the
    (n, n_vectors) matrix of vectors, `watched` is an (n, c) matrix whose products with each matrix
    are wanted too. Products run in the type of the vectors on tiles scaled to at most 1, sums of
    tiles in float64. In float32 the error is about 1e-7 of sqrt(sum (w_i K_ij w_j)^2), far below
    the spread of a statistic over random vectors.
    """
    blocks = list(pieces(n, _TILE))
    pairs = [(i, j) for i in range(len(blocks)) for j in range(i, len(blocks))]
    jobs = [(k, i, j) for k in range(len(tiles)) for i, j in pairs]

    def job(at: tuple[int, int, int]) -> tuple[Array, Array, Array]:
        k, rows, columns = at[0], blocks[at[1]], blocks[at[2]]
        K = tiles[k](rows, columns)
        twice = 1.0 if rows == columns else 2.0
        if rows == columns:
            np.fill_diagonal(K, 0.0)
        size = float(np.abs(K).max(initial=0.0)) or 1.0
        W = vectors[columns]
        product = (K / size).astype(W.dtype) @ W
        product *= vectors[rows]
        values = twice * size * product.sum(axis=0, dtype=np.float64)
        return values, K @ watched[columns], K.T @ watched[rows]

    values = np.zeros((len(tiles), vectors.shape[1]))
    products = np.zeros((len(tiles), n, watched.shape[1]))
    for batch in tracked(list(pieces(len(jobs), _BATCH)), "permutations"):
        for (k, i, j), part in zip(jobs[batch], map_threads(job, jobs[batch]), strict=True):
            values[k] += part[0]
            products[k, blocks[i]] += part[1]
            if i != j:
                products[k, blocks[j]] += part[2]
    return [Forms(*parts) for parts in zip(values, products, strict=True)]
