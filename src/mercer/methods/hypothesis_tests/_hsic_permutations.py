"""Unbiased HSIC of many permutations of one variable, for all pairs of kernels at once.

With K~ = FF' and L~ = GG', tr(K~ P L~ P') = |F' P G|^2: products of thin matrices. Where the rank
is too high for that, entries of L~ are gathered instead. With p and q the diagonals of K~ and L~,

    n (n - 3) HSIC = tr(K~ L~) - n p'q / (n - 2) + sum(p) sum(q) / ((n - 1)(n - 2)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from mercer._array import Array, Points
from mercer._config import get_options
from mercer._progress import tracked
from mercer._status import Status
from mercer._threads import map_threads, stop_if_interrupted
from mercer.engine import as_float64, n_rows, pieces
from mercer.kernels import Definiteness, Kernel
from mercer.linalg import pivoted_cholesky
from mercer.methods.hypothesis_tests._hsic import centred_kernel
from mercer.methods.hypothesis_tests._resampling import in_parts, shuffled

_TOL = 1e-8  # of the trace, over n: an error of about 1e-7 of the spread of the null statistics
_ROUNDING = 1e-13  # a smaller share of the trace is noise
_GATHERED = 16  # multiplications in float32 that take as long as gathering one number
_GATHER = 1 << 20  # bytes of whole rows that are gathered from at once: they stay in cache
_FEWEST = 16  # such rows, where they are computed
_AT_ONCE = 16  # permutations in one task
_MEMORY = 1 << 22  # bytes of what is gathered at once in a thread


def permutations(n: int, n_draws: int, rng: np.random.Generator, blocks: Any) -> Iterator[Array]:
    """The identity and then random permutations in rows, some at a time."""
    rows = np.arange(n, dtype=np.int32)
    return in_parts(lambda m: shuffled(rows, m, rng, blocks), n, n_draws, rows.itemsize)


@dataclass(frozen=True, eq=False)
class Factor:
    """FF' = K~ up to a positive semi-definite error of known trace."""

    columns: Array  # F, (n, r); its columns have mean zero
    error: float  # at least the trace of K~ - FF'

    @property
    def diagonal(self) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.columns, self.columns))


class Factors:
    """Factors of several kernels on the same rows, side by side in float32.

    They are scaled to trace 1, so nothing overflows, and an empty one is a column of zeros.
    """

    def __init__(self, parts: list[_Scaled]) -> None:
        widths = [0, *(part.columns.shape[1] for part in parts[:-1])]
        self.starts = np.cumsum(widths)  # the first column of each factor
        self.traces = np.array([part.trace for part in parts])
        self.errors = np.array([part.error for part in parts])
        self.diagonals = np.stack([part.diagonal for part in parts], axis=1)  # mean zero
        self.columns = np.concatenate([part.columns for part in parts], axis=1)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, k: int) -> Factor:
        columns = np.split(self.columns, self.starts[1:], axis=1)[k].astype(np.float64)
        return Factor(columns * np.sqrt(self.traces[k]), float(self.errors[k]))


class _Scaled:
    """What `Factors` keeps of FF' = K up to an error of known trace; its columns lose their mean.

    One column at a time, because F can take much of the memory.
    """

    def __init__(self, F: Array, error: float) -> None:
        n, means, d = len(F), F.mean(axis=0), np.zeros(len(F))
        for column, mean in zip(F.T, means, strict=True):
            d += (column - mean) ** 2
        self.trace, self.error = float(d.sum()), error
        unit = self.trace if self.trace > 0 else 1.0
        self.diagonal = d / unit - self.trace / unit / n
        self.columns = np.zeros((n, max(1, F.shape[1])), dtype=np.float32)
        for c, mean in enumerate(means):
            self.columns[:, c] = (F[:, c] - mean) / np.sqrt(unit)


def factors(kernels: tuple[Kernel, ...], X: Any, most: int) -> Factors | None:
    """Factors of all kernels with at most `most` columns in total; None if there are none."""
    out: list[_Scaled] = []
    for kernel in kernels:
        if kernel.flags.definiteness in (Definiteness.CONDITIONAL, Definiteness.INDEFINITE):
            return None
        left = most - sum(f.columns.shape[1] for f in out)
        if left < 1:
            return None
        points = Points(as_float64(X), kernel.domain)
        low = pivoted_cholesky(kernel, points, max_rank=left, tol=max(_TOL / n_rows(X), _ROUNDING))
        if low.status not in (Status.CONVERGED, Status.COMPLETE):
            return None
        out.append(_Scaled(low.factor, low.trace_error))
    return Factors(out)


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

    def __init__(self, x: Factors, y: Factors) -> None:
        self.x, self.y, self.n = x, y, len(x.columns)

    def statistics(self, draws: Iterator[Array]) -> Array:
        """Unbiased HSIC of each pair of kernels (rows, kernel of y running faster) and draw."""
        n, x, y, F, G = self.n, self.x, self.y, self.x.columns, self.y.columns
        rows, most = min(n, 4096), max(F.shape[1], G.shape[1])
        size = max(1, _MEMORY // (4 * max(rows, F.shape[1]) * most))

        def job(perm: Array) -> Array:
            product = np.zeros((len(perm), F.shape[1], G.shape[1]), dtype=np.float32)
            linear = np.zeros((len(perm), len(x), len(y)))
            for at in pieces(n, rows):
                stop_if_interrupted()
                product += F[at].T @ G[perm[:, at]]
                linear += x.diagonals[at].T @ y.diagonals[perm[:, at]]
            product *= product
            traces = np.add.reduceat(product, x.starts, axis=1)
            traces = np.add.reduceat(traces, y.starts, axis=2, dtype=np.float64)
            return np.asarray(traces - n / (n - 2) * linear)

        parts = []
        for drawn in draws:
            some = [drawn[at] for at in pieces(len(drawn), size)]
            for batch in tracked(list(pieces(len(some), 64)), "permutations"):
                parts += map_threads(job, some[batch])
        constant = 1.0 / ((n - 1) * (n - 2)) - 1.0 / (n - 2)  # traces are 1 here
        out = np.outer(x.traces, y.traces) * (np.concatenate(parts) + constant) / (n * (n - 3))
        return np.asarray(out.reshape(len(out), -1).T)

    @property
    def errors(self) -> Array:
        """How far each statistic can be from that of the whole matrices.

        tr(K~ L~) - |F'G|^2 is between 0 and tr(E_K) |L~| + tr(E_L) |K~|, and so is p'q - p'q of the
        factors, because the diagonal of a matrix is at most its largest eigenvalue; and that is at
        most the trace.
        """
        n, x, y = self.n, self.x, self.y
        bounds = np.outer(x.errors, y.traces + y.errors) + np.outer(x.traces + x.errors, y.errors)
        return bounds.ravel() / ((n - 2) * (n - 3))

    def effect(self, pair: int) -> tuple[float, float, float, float]:
        i, j = divmod(pair, len(self.y))
        F, G = self.x[i], self.y[j]
        A, B = F.columns, G.columns
        rows = [((U @ (U.T @ V)) * V).sum(axis=1) for U, V in ((A, B), (A, A), (B, B))]
        return standardised(rows[0], rows[1], rows[2], F.diagonal, G.diagonal)


class Gathered:
    """Statistics from whole matrices, some rows at a time: exact up to rounding, for any rank."""

    def __init__(
        self, kernels_x: tuple[Kernel, ...], X: Any, kernels_y: tuple[Kernel, ...], Y: Any
    ) -> None:
        self.n = n = n_rows(X)
        w = np.full(n, 1.0 / n)
        self.kx, self.ky = (
            [centred_kernel(k, Points(as_float64(Z), k.domain), w) for k in kernels]
            for kernels, Z in ((kernels_x, X), (kernels_y, Y))
        )
        self.scales = np.array([float(np.abs(k.diagonal).max()) or 1.0 for k in self.ky])
        self.errors = np.zeros(len(self.kx) * len(self.ky))

    def statistics(self, draws: Iterator[Array]) -> Array:
        """Unbiased HSIC of each pair of kernels (rows, kernel of y running faster) and draw."""
        n, c = self.n, len(self.ky)
        gathered = self._gather()
        height = max(_FEWEST, min(_GATHER // (4 * n * c), n // 8))

        def job(at: tuple[Array, Array, slice]) -> list[Array]:
            K, perms, rows = at
            found = []
            for p in perms:
                stop_if_interrupted()
                found.append(K @ gathered(p[rows], p[rows.start :])[:, :c])
            return found

        parts = []
        for drawn in draws:
            total = np.zeros((len(drawn), len(self.kx), c))
            for rows in tracked(list(pieces(n, height)), "rows"):
                K, sizes = self._rows(rows)
                jobs = [(K, drawn[at], rows) for at in pieces(len(drawn), _AT_ONCE)]
                done = map_threads(job, jobs)
                total += sizes[:, None] * np.concatenate(done, dtype=np.float64)
            parts.append(total * self.scales)
        out = np.concatenate(parts) / (n * (n - 3))
        return np.asarray(out.reshape(len(out), -1).T)

    def _gather(self) -> Callable[[Array, Array], Array]:
        """L~ / scale at chosen rows and columns, one kernel per column of the result.

        From matrices in memory if they fit. Rows are copied first, so that columns are gathered
        from rows in the cache, and kernels are padded to a power of two, which NumPy copies fast.
        """
        n, width = self.n, 1 << (len(self.ky) - 1).bit_length()

        def computed(rows: Array | slice, columns: Array | slice) -> Array:
            tiles = [k.tile(rows, columns) for k in self.ky]
            out = np.zeros((*tiles[0].shape, width), dtype=np.float32)
            for i, tile in enumerate(tiles):
                out[..., i] = tile / self.scales[i]
            return out

        if 4.0 * n * n * width > get_options().working_memory * 2**20:
            return lambda rows, columns: computed(rows, columns).reshape(-1, width)
        whole = np.concatenate([computed(rows, slice(None)) for rows in pieces(n, 256)])
        return lambda rows, columns: whole[rows].take(columns, axis=1).reshape(-1, width)

    def _rows(self, rows: slice) -> tuple[Array, Array]:
        """Twice the U-centred K~ above its diagonal, at some rows of all kernels, and its sizes.

        U-centred matrices have a zero diagonal and zero row sums. Columns start where the rows do.
        """
        n, tiles, columns = self.n, [], slice(rows.start, self.n)
        for k in self.kx:
            p = k.diagonal
            tile = k.tile(rows, columns) + (p[rows, None] + p[columns]) / (n - 2)
            tile -= p.sum() / ((n - 1) * (n - 2))
            tiles.append(np.triu(tile, 1).ravel())
        sizes = np.array([float(np.abs(t).max()) or 1.0 for t in tiles])
        return (np.array(tiles) / sizes[:, None]).astype(np.float32), 2.0 * sizes

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
