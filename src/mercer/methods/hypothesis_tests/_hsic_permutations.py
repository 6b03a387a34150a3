"""Unbiased HSIC of many permutations of one variable, for all pairs of kernels at once.

With K~ = FF' and L~ = GG', tr(K~ P L~ P') = |F' P G|^2: products of thin matrices. Where the rank
is too high for that, entries of L~ are gathered instead. With p and q the diagonals of K~ and L~,

    n (n - 3) HSIC = tr(K~ L~) - n p'q / (n - 2) + sum(p) sum(q) / ((n - 1)(n - 2)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from mercer._array import Array, Points
from mercer._config import get_options
from mercer._progress import tracked
from mercer._status import Status
from mercer._threads import map_threads
from mercer.engine import as_float64, n_rows, pieces
from mercer.kernels import Definiteness, Kernel
from mercer.linalg import pivoted_cholesky
from mercer.methods.hypothesis_tests._hsic import centred_kernel
from mercer.methods.hypothesis_tests._resampling import shuffled

_TOL = 1e-8  # of the trace, over n: an error of about 1e-7 of the spread of the null statistics
_GATHERED = 16  # multiplications in float32 that take as long as gathering one number
_TILE = 256  # rows and columns whose gathered entries stay in cache
_AT_ONCE = 16  # permutations of a tile in one task
_MEMORY = 1 << 22  # bytes of what is gathered at once in a thread
_DRAWS = 1 << 25  # numbers in permutations that are held at once


def permutations(n: int, n_draws: int, rng: np.random.Generator, blocks: Any) -> Iterator[Array]:
    """The identity and then random permutations in columns, some at a time."""
    rows, size = np.arange(n, dtype=np.int32), max(1, _DRAWS // n)
    for at in pieces(n_draws, size):
        drawn = shuffled(rows, at.stop - at.start, rng, blocks)
        yield drawn if at.start == 0 else drawn[:, 1:]


@dataclass(frozen=True, eq=False)
class Factor:
    """FF' = K~ up to a positive semi-definite error of known trace."""

    columns: Array  # F, (n, r); its columns have mean zero
    error: float  # at least the trace of K~ - FF'

    @property
    def diagonal(self) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.columns, self.columns))

    @property
    def norm(self) -> float:
        """A bound of the largest eigenvalue of K~."""
        F = self.columns
        return float(np.linalg.eigvalsh(F.T @ F)[-1]) + self.error if F.size else self.error


def factors(kernels: tuple[Kernel, ...], X: Any, most: int) -> list[Factor] | None:
    """Factors of all kernels with at most `most` columns in total; None if there are none."""
    out: list[Factor] = []
    for kernel in kernels:
        if kernel.flags.definiteness in (Definiteness.CONDITIONAL, Definiteness.INDEFINITE):
            return None
        left = most - sum(f.columns.shape[1] for f in out)
        if left < 1:
            return None
        points = Points(as_float64(X), kernel.domain)
        low = pivoted_cholesky(kernel, points, max_rank=left, tol=_TOL / n_rows(X))
        if low.status not in (Status.CONVERGED, Status.COMPLETE):
            return None
        out.append(Factor(low.factor - low.factor.mean(axis=0), low.trace_error))
    return out


def permuted_hsic(
    kernels_x: tuple[Kernel, ...], X: Any, kernels_y: tuple[Kernel, ...], Y: Any
) -> LowRank | Gathered:
    """By low rank where it is faster, else with whole matrices."""
    n = n_rows(X)
    most = isqrt(_GATHERED * n * len(kernels_y))
    F = factors(kernels_x, X, most)
    G = factors(kernels_y, Y, most) if F is not None else None
    if F is not None and G is not None:
        return LowRank(F, G)
    return Gathered(kernels_x, X, kernels_y, Y)


class LowRank:
    """Statistics from the factors of both matrices."""

    def __init__(self, F: list[Factor], G: list[Factor]) -> None:
        self.F, self.G, self.n = F, G, len(F[0].columns)

    def statistics(self, draws: Iterator[Array]) -> Array:
        """Unbiased HSIC of each pair of kernels (rows, kernel of y running faster) and draw."""
        n, (F, p, x), (G, q, y) = self.n, _stacked(self.F), _stacked(self.G)
        rows, most = min(n, 4096), max(F.shape[1], G.shape[1])
        size = max(1, _MEMORY // (4 * max(rows, F.shape[1]) * most))
        parts = []
        for drawn in draws:
            some = [drawn[:, at] for at in pieces(drawn.shape[1], size)]

            def job(perm: Array) -> Array:
                product = np.zeros((F.shape[1], perm.shape[1] * G.shape[1]), dtype=np.float32)
                linear = np.zeros((p.shape[1], perm.shape[1] * q.shape[1]))
                for at in pieces(n, rows):
                    product += F[at].T @ G[perm[at]].reshape(at.stop - at.start, -1)
                    linear += p[at].T @ q[perm[at]].reshape(at.stop - at.start, -1)
                product *= product
                traces = np.add.reduceat(product, x.starts, axis=0)
                traces = traces.reshape(len(x.starts), perm.shape[1], -1)
                traces = np.add.reduceat(traces, y.starts, axis=2, dtype=np.float64)
                linear = linear.reshape(p.shape[1], perm.shape[1], -1)
                return np.asarray(traces - n / (n - 2) * linear)

            for batch in tracked(list(pieces(len(some), 64)), "permutations"):
                parts += map_threads(job, some[batch])
        out = np.concatenate(parts, axis=1).transpose(0, 2, 1)
        scale = x.traces[:, None] * y.traces
        constant = 1.0 / ((n - 1) * (n - 2)) - 1.0 / (n - 2)  # traces are 1 here
        out = scale[..., None] * (out + constant) / (n * (n - 3))
        return out.reshape(-1, out.shape[2])

    @property
    def errors(self) -> Array:
        """How far each statistic can be from that of the whole matrices.

        tr(K~ L~) - |F'G|^2 is between 0 and tr(E_K) |L~| + tr(E_L) |K~|, and so is p'q - p'q of the
        factors, because the diagonal of a matrix is at most its largest eigenvalue.
        """
        n = self.n
        bounds = [f.error * g.norm + g.error * f.norm for f in self.F for g in self.G]
        return np.array(bounds) / ((n - 2) * (n - 3))

    def effect(self, pair: int) -> tuple[float, float, float, float]:
        F, G = self.F[pair // len(self.G)], self.G[pair % len(self.G)]
        A, B = F.columns, G.columns
        rows = [((U @ (U.T @ V)) * V).sum(axis=1) for U, V in ((A, B), (A, A), (B, B))]
        return standardised(rows[0], rows[1], rows[2], F.diagonal, G.diagonal)


@dataclass(frozen=True, eq=False)
class _Layout:
    starts: Array  # the first column of each factor
    traces: Array  # by which it was divided


def _stacked(parts: list[Factor]) -> tuple[Array, Array, _Layout]:
    """All factors side by side in float32, their centred diagonals, and what is where.

    Factors are scaled to trace 1, so nothing overflows, and an empty one is a column of zeros.
    """
    n, columns, diagonals, traces = len(parts[0].columns), [], [], []
    for part in parts:
        d = part.diagonal
        trace = float(d.sum())
        unit = trace if trace > 0 else 1.0
        F = part.columns if part.columns.shape[1] else np.zeros((n, 1))
        columns.append((F / np.sqrt(unit)).astype(np.float32))
        diagonals.append(d / unit - trace / unit / n)
        traces.append(trace)
    widths = [0, *(c.shape[1] for c in columns[:-1])]
    layout = _Layout(np.cumsum(widths), np.array(traces))
    return np.concatenate(columns, axis=1), np.stack(diagonals, axis=1), layout


class Gathered:
    """Statistics from whole matrices, in tiles: exact up to rounding, for any rank."""

    def __init__(
        self, kernels_x: tuple[Kernel, ...], X: Any, kernels_y: tuple[Kernel, ...], Y: Any
    ) -> None:
        self.n = n = n_rows(X)
        w = np.full(n, 1.0 / n)
        self.kx, self.ky = (
            [centred_kernel(k, Points(as_float64(Z), k.domain), w) for k in kernels]
            for kernels, Z in ((kernels_x, X), (kernels_y, Y))
        )
        self.errors = np.zeros(len(self.kx) * len(self.ky))

    def statistics(self, draws: Iterator[Array]) -> Array:
        """Unbiased HSIC of each pair of kernels (rows, kernel of y running faster) and draw."""
        n, blocks = self.n, list(pieces(self.n, _TILE))
        scales = [float(np.abs(ky.diagonal).max(initial=0.0)) or 1.0 for ky in self.ky]
        whole = self._matrices(scales)
        index = np.arange(n, dtype=np.int64)

        def gathered(rows: Array, columns: Array) -> Array:
            if whole is not None:
                at = rows.astype(np.int64)[:, None] * n + columns
                return np.asarray(whole.take(at.ravel(), axis=0))
            tiles = [ky.tile(rows, columns) / s for ky, s in zip(self.ky, scales, strict=True)]
            return np.stack([t.ravel() for t in tiles], axis=1).astype(np.float32)

        def job(at: tuple[Array, Array, Array, Array]) -> list[Array]:
            K, drawn, rows, columns = at
            return [K @ gathered(perm[rows], perm[columns]) for perm in drawn]

        parts = []
        for drawn in draws:
            total, some = np.zeros((drawn.shape[1], len(self.kx), len(self.ky))), drawn.T
            jobs = list(pieces(len(some), _AT_ONCE))
            for a, b in [(a, b) for a in blocks for b in blocks if a.start <= b.start]:
                K, sizes = self._tile(a, b)
                done = map_threads(job, [(K, some[at], index[a], index[b]) for at in jobs])
                found = np.concatenate(done, dtype=np.float64)
                total += (1.0 if a == b else 2.0) * sizes[:, None] * found
            parts.append(total * scales)
        out = np.concatenate(parts) / (n * (n - 3))
        return np.asarray(out.transpose(1, 2, 0).reshape(-1, len(out)))

    def _matrices(self, scales: list[float]) -> Array | None:
        """L~ of all kernels, entry by entry, if they fit into the working memory."""
        n = self.n
        if 4.0 * n * n * len(self.ky) > get_options().working_memory * 2**20:
            return None
        out = np.empty((n, n, len(self.ky)), dtype=np.float32)
        for rows in pieces(n, _TILE):
            for c, ky in enumerate(self.ky):
                out[rows, :, c] = ky.tile(rows, slice(None)) / scales[c]
        return out.reshape(n * n, -1)

    def _tile(self, rows: slice, columns: slice) -> tuple[Array, Array]:
        """U-centred tiles of all kernels of x: zero diagonal and zero row sums; and their sizes."""
        n, tiles = self.n, []
        for k in self.kx:
            p = k.diagonal
            tile = k.tile(rows, columns) + (p[rows, None] + p[columns]) / (n - 2)
            tile -= p.sum() / ((n - 1) * (n - 2))
            if rows == columns:
                np.fill_diagonal(tile, 0.0)
            tiles.append(tile.ravel())
        sizes = np.array([float(np.abs(t).max()) or 1.0 for t in tiles])
        return (np.array(tiles) / sizes[:, None]).astype(np.float32), sizes

    def effect(self, pair: int) -> tuple[float, float, float, float]:
        kx, ky = self.kx[pair // len(self.ky)], self.ky[pair % len(self.ky)]
        out = np.zeros((3, self.n))
        for rows in pieces(self.n, max(1, (1 << 20) // self.n)):
            K, L = kx.tile(rows, slice(None)), ky.tile(rows, slice(None))
            out[:, rows] = [(A * B).sum(axis=1) for A, B in ((K, L), (K, K), (L, L))]
        return standardised(out[0], out[1], out[2], kx.diagonal, ky.diagonal)


def standardised(
    xy: Array, xx: Array, yy: Array, p: Array, q: Array
) -> tuple[float, float, float, float]:
    """Unbiased HSIC; over sqrt(HSIC(X, X) HSIC(Y, Y)); the variance of that ratio; that root.

    Arguments are the sums of k~_ij l~_ij, k~_ij^2 and l~_ij^2 over j, and the diagonals p and q.
    The variance comes from the influence of each row, 2 mean_j k~_ij l~_ij.
    """
    n = len(p)

    def unbiased(rows: Array, a: Array, b: Array) -> float:
        total = rows.sum() - n / (n - 2) * (a @ b) + a.sum() * b.sum() / ((n - 1) * (n - 2))
        return float(total / (n * (n - 3)))

    hxy, hxx, hyy = unbiased(xy, p, q), unbiased(xx, p, p), unbiased(yy, q, q)
    if hxx <= 0.0 or hyy <= 0.0:
        return hxy, 0.0, 0.0, 0.0
    unit = float(np.sqrt(hxx) * np.sqrt(hyy))
    ratio = hxy / unit
    influence = 2.0 * (xy - p * q) / unit - ratio * ((xx - p * p) / hxx + (yy - q * q) / hyy)
    return hxy, ratio, float((influence / (n - 1)).var()) / n, unit
