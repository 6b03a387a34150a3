"""Matrix products, QR and singular values of tall matrices, in blocks of rows on the thread pool.

Each thread runs BLAS on its own block. On an idle machine that is as fast as a BLAS with threads of
its own; on a busy one it is many times faster, because those threads wait for each other. Blocks do
not depend on the number of threads, so neither do results.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mercer._array import Array
from mercer._threads import interruptible, map_threads, single_threaded_blas
from mercer.engine import pieces

_WORK = 1 << 22  # products of one block, at least: a millisecond
_ROWS = 1 << 14
_BATCH = 8192  # rows


def blocks(n: int, per_row: int) -> list[slice]:
    """Blocks of rows that are worth a thread, for a number of products per row."""
    return list(pieces(n, max(256, min(_ROWS, _WORK // max(1, per_row)))))


def batches(n: int, r: int, rows: int = 1024) -> list[list[slice]]:
    """Blocks of rows with r features each for the threads, a batch of some blocks at a time.

    By default they stay in the cache. Blocks have at least r rows, so that r x r numbers for each
    block of a batch, such as a sum of squares, take no more memory than its features.
    """
    size = max(rows, r)
    return [
        list(pieces(part.stop, size, part.start))
        for part in pieces(n, size * max(1, _BATCH // size))
    ]


def transposed_matmul(L: Array, B: Array) -> Array:
    """L' B for L of shape (n, r) and B of shape (n, b)."""
    parts = blocks(L.shape[0], L.shape[1] * B.shape[1])
    sums = map_threads(lambda rows: L[rows].T @ B[rows], parts)
    return np.asarray(sum(sums[1:], sums[0]))


def matmul(L: Array, T: Array) -> Array:
    """L T for L of shape (n, r) and T of shape (r, b)."""
    out = np.empty((L.shape[0], T.shape[1]))
    parts = blocks(L.shape[0], L.shape[1] * T.shape[1])
    map_threads(lambda rows: np.matmul(L[rows], T, out=out[rows]), parts)
    return out


def triangular_factor(L: Array, shift: float = 0.0) -> Array:
    """Upper triangular R with R'R = L'L + shift I, by QR: L'L is never formed.

    Blocks of rows are reduced to triangles, and those to one.
    """
    r = L.shape[1]
    parts = list(pieces(L.shape[0], max(4 * r, 256)))
    reduced = map_threads(lambda rows: np.linalg.qr(L[rows], mode="r"), parts)
    R = np.sqrt(shift) * np.eye(r)
    with single_threaded_blas():
        for part in reduced:
            R = np.linalg.qr(np.vstack([R, part]), mode="r")
    return np.asarray(R)


def thin_svd(F: Array) -> tuple[Array, Array, Array]:
    """U, s and V with F = U diag(s) V', for F of shape (n, r); of min(n, r) columns.

    If n is much larger than r, U takes the place of F: each block of rows is reduced to a triangle,
    and the triangles, one below the other, are a matrix of an eighth of the rows.
    """
    n, r = F.shape
    edges = np.linspace(0, n, n // max(8 * r, 256) + 1).astype(int)
    if len(edges) < 3:
        U, s, Vt = interruptible(np.linalg.svd, F, False)
        return U, s, Vt.T
    parts = [slice(*ends) for ends in pairwise(edges)]

    def reduced(rows: slice) -> Array:
        F[rows], R = np.linalg.qr(F[rows])
        return np.asarray(R)

    top, s, V = thin_svd(np.vstack(map_threads(reduced, parts)))

    def rotate(i: int) -> None:
        F[parts[i]] = F[parts[i]] @ top[i * r : (i + 1) * r]

    map_threads(rotate, range(len(parts)))
    return F, s, V
