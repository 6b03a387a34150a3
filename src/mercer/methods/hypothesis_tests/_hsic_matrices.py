"""Unbiased HSIC of many permutations from whole kernel matrices, for all pairs of kernels.

U-centred matrices A_ij = k_ij - u_i - u_j have zero row sums without their diagonals, and

    n (n - 3) HSIC = sum over i != j of A_ij B_ij.

With blocks of rows, this holds for each block, and between blocks A_ij is k_ij less the means over
both blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._config import get_options
from mercer._threads import map_threads, stop_if_interrupted
from mercer.engine import as_float64, n_rows, pieces
from mercer.engine._compiled import core, core_allowed, instruction_set
from mercer.kernels import Kernel
from mercer.methods.hypothesis_tests._hsic import mean_values
from mercer.methods.hypothesis_tests._hsic_permutations import (
    Draw,
    Effect,
    n_pairs,
    over_permutations,
    standardised,
)
from mercer.methods.hypothesis_tests._resampling import Blocks

_ENTRIES = 1 << 17  # of a matrix that are worked on at once: they stay in cache
_EQUAL = 1e-15  # of the scales: what rounding leaves of rows that are equal in each block
_FEWEST = 16  # rows of a tile


def permuted_sums(K: Array, L: Array, permutations: Array) -> Array:
    """sum_{i < j} K_ij L_{p_i p_j} of each matrix K (c, n, n) and permutation p, shape (m, c).

    In float32 within some rows, and in float64 across them; by the core, or by NumPy.
    """
    out = np.empty((len(permutations), len(K)))
    if core_allowed():
        core().permuted_sums(K, L, permutations, out, instruction_set())
        return out
    upper = np.triu(K, 1)
    for p, total in zip(permutations, out, strict=True):
        total[:] = sum(
            np.einsum("kij,ij->k", upper[:, rows], L[p[rows]][:, p])
            for rows in pieces(len(L), max(1, _ENTRIES // len(L)))
        )
    return out


class UCentred:
    """A_ij = (k_ij - u_i - u_j) / scale in float32: in `matrix` if given, else computed by tiles.

    The diagonal is (k_ii - 2 u_i) / scale; sums over pairs leave it out. With blocks u_i is a
    number for each block, and that of the block of row j is taken.
    """

    def __init__(
        self, kernel: Kernel, Z: Any, matrix: Array | None, blocks: Blocks | None = None
    ) -> None:
        self.rows = blocks or Blocks.one(n_rows(Z))
        points = Points(as_float64(Z), kernel.domain)
        self.program, self.Z, self.n = kernel.program, points.array, len(points)
        n, diagonal = self.n, np.asarray(engine.diagonal(kernel.program, points.array))
        K = None if matrix is None else engine.gram(self.program, self.Z, self.Z)
        if blocks is not None:
            self.u = self._of_blocks(diagonal)
        else:
            sums = (n * mean_values(kernel, points) if K is None else K.sum(axis=1)) - diagonal
            self.u = sums / (n - 2) - sums.sum() / (2.0 * (n - 1) * (n - 2))
        self.scale = max(float(np.abs(diagonal).max()), float(np.abs(self.u).max())) or 1.0
        self.matrix = matrix
        if K is not None and matrix is not None:
            map_threads(lambda at: self._centre(K[at], at, slice(None), matrix[at]), self.blocks())

    def _of_blocks(self, diagonal: Array) -> Array:
        """u for each row and block. In a block of two rows A_12 = 0, of one row A is not used."""
        b, sizes = self.rows.index, self.rows.sizes

        def sums(at: slice) -> Array:
            return self.rows.sums(engine.gram(self.program, self.Z, self.Z[at])).T

        u = np.concatenate(map_threads(sums, self.blocks()))
        own = u[np.arange(self.n), b] - diagonal
        u /= sizes
        u -= 0.5 * self.rows.means(u)[b]
        total, n = self.rows.sums(own)[b], sizes[b]
        own = np.where(n > 2, own - 0.5 * total / np.maximum(n - 1, 1), 0.5 * (n - 1) * own)
        u[np.arange(self.n), b] = own / np.maximum(n - 2, 1)
        return u

    def _centre(self, K: Array, rows: Any, columns: Any, out: Array) -> Array:
        if self.u.ndim == 1:
            K -= self.u[rows, None]
            K -= self.u[columns]
        else:
            K -= self.u[rows][:, self.rows.index[columns]]
            K -= self.u[columns][:, self.rows.index[rows]].T
        return np.divide(K, self.scale, out=out, casting="same_kind")

    def blocks(self) -> list[slice]:
        return list(pieces(self.n, max(_FEWEST, _ENTRIES // self.n)))

    def tile(self, rows: slice | Array, columns: slice | Array) -> Array:
        """Values at rows and columns: slices, or numbers of rows."""
        if self.matrix is not None:
            return np.asarray(self.matrix[rows, columns])
        K = engine.gram(self.program, self.Z[rows], self.Z[columns])
        return self._centre(K, rows, columns, np.empty(K.shape, dtype=np.float32))

    def product(self, v: Array) -> Array:
        """K~ v / scale; K~ has the centred features."""
        v32, every = self.rows.centred(v).astype(np.float32), slice(None)
        blocks = self.blocks() if self.matrix is None else [every]
        parts = map_threads(lambda rows: self.tile(rows, every) @ v32, blocks)
        return self.rows.centred(np.concatenate(parts, dtype=np.float64))


class WholeMatrices:
    """Statistics from whole matrices: exact up to rounding, for any rank.

    The matrices are kept if those of each variable fit into `working_memory`, else computed again
    for each permutation.
    """

    def __init__(
        self,
        kernels_x: tuple[Kernel, ...],
        X: Any,
        kernels_y: tuple[Kernel, ...],
        Y: Any,
        blocks: Blocks | None = None,
    ) -> None:
        self.n = n = n_rows(X)
        self.blocks = blocks or Blocks.one(n)
        most = max(len(kernels_x), len(kernels_y))
        self.whole = whole = 4.0 * n * n * most <= get_options().working_memory * 2**20
        self.K: Any
        self.L: Any
        self.K, self.L = (
            np.empty((len(kernels), n, n), dtype=np.float32) if whole else [None] * len(kernels)
            for kernels in (kernels_x, kernels_y)
        )
        every = [(k, X, A) for k, A in zip(kernels_x, self.K, strict=True)]
        every += [(k, Y, B) for k, B in zip(kernels_y, self.L, strict=True)]
        centred = map_threads(lambda given: UCentred(*given, blocks), every)
        self.x, self.y = centred[: len(kernels_x)], centred[len(kernels_x) :]
        self.errors = np.zeros(len(self.x) * len(self.y))

    def statistics(self, draws: list[Draw]) -> Array:
        """Unbiased HSIC of each pair of kernels (rows, kernel of y running faster) and draw."""
        scales = np.outer([a.scale for a in self.x], [b.scale for b in self.y])
        sums = self._sums_of_matrices if self.whole else self._sums_of_tiles
        out = over_permutations(sums, draws) / n_pairs(self.blocks)
        still = out.std(axis=0) <= _EQUAL
        out = np.where(still, out.mean(axis=0), out) * (2.0 * scales)
        return np.asarray(out.reshape(len(out), -1).T)

    def _sums_of_matrices(self, permutations: Array) -> Array:
        parts = [permuted_sums(self.K, L, permutations) for L in self.L]
        return np.stack(parts, axis=2)

    def _sums_of_tiles(self, permutations: Array) -> Array:
        """The same sums without a whole matrix."""
        out = np.zeros((len(permutations), len(self.x), len(self.y)))
        for rows in self.x[0].blocks():
            columns = slice(rows.start, self.n)
            K = np.stack([np.triu(a.tile(rows, columns), 1).ravel() for a in self.x])
            for p, total in zip(permutations, out, strict=True):
                stop_if_interrupted()
                L = [b.tile(p[rows], p[columns]).ravel() for b in self.y]
                total += K @ np.stack(L, axis=1)
        return out

    def effect(self, pair: int, weights: Array | None = None) -> Effect:
        """See `standardised`."""
        x, y = self.matrices(pair)

        def sums(rows: slice) -> Array:
            A, B = (z.tile(rows, slice(None)) for z in (x, y))
            at = np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)
            return np.array(
                [
                    (C * D).sum(axis=1, dtype=np.float64) - np.float64(C[at]) * D[at]
                    for C, D in ((A, B), (A, A), (B, B))
                ]
            )

        xy, xx, yy = np.concatenate(map_threads(sums, x.blocks()), axis=1)
        zero = np.zeros(self.n)
        xx, yy = (z * (z.mean() > self.n * _EQUAL**2) for z in (xx, yy))
        return standardised(xy, xx, yy, zero, zero, self.blocks, weights).rescaled(
            x.scale * y.scale
        )

    def matrices(self, pair: int) -> tuple[UCentred, UCentred]:
        """Of one pair of kernels."""
        i, j = divmod(pair, len(self.y))
        return self.x[i], self.y[j]
