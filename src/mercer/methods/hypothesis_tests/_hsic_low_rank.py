"""Unbiased HSIC of many permutations from low-rank factors, for all pairs of kernels at once.

With K~ = FF' and L~ = GG', tr(K~ P L~ P') = |F' P G|^2: products of thin matrices. With p and q the
diagonals of K~ and L~,

    n (n - 3) HSIC = tr(K~ L~) - n p'q / (n - 2) + sum(p) sum(q) / ((n - 1)(n - 2))
                   = tr(K~ L~) - sum(p) sum(q) / (n - 1) - n p~'q~ / (n - 2)

with p~ = p less its mean. Within blocks of rows F and G lose their mean in each block, and what is
subtracted from tr(K~ L~) is a sum over blocks: of what chance gives, and of pairs i = j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._status import Status
from mercer._threads import map_threads
from mercer.engine import as_float64, n_rows, pieces
from mercer.kernels import Definiteness, Kernel
from mercer.linalg import pivoted_cholesky
from mercer.methods.hypothesis_tests._hsic_permutations import (
    Draw,
    Effect,
    leverage,
    n_pairs,
    of_chance,
    over_permutations,
    standardised,
)
from mercer.methods.hypothesis_tests._resampling import Blocks

_TOL = 1e-7  # of the trace, over n: an error of about 1e-6 of the spread of the null statistics
_ROUNDING = 1e-13  # a smaller share of the trace is noise
_EQUAL = 1e-24  # share of squares that rounding leaves of equal rows less their mean
_TRIED = 16  # columns of a first factor, of few rows, that shows how fast the error falls
_TRIED_ROWS = 256
_ROWS = 1 << 13  # of a factor that are worked on at once
_GATHERED = 1 << 17  # bytes of permuted rows, which then are in cache for their product


@dataclass(frozen=True, eq=False)
class LowRankMatrix:
    """K~ = scale n FF' in terms of F, (n, r) in float32, of trace 1."""

    columns: Array
    scale: float

    def product(self, v: Array) -> Array:
        """K~ v / scale."""
        F, n, v32 = self.columns, len(v), v.astype(np.float32)
        blocks = list(pieces(n, _ROWS))
        inner = np.sum(map_threads(lambda rows: v32[rows] @ F[rows], blocks), axis=0, dtype=float)
        scaled = (n * inner).astype(np.float32)
        parts = map_threads(lambda rows: F[rows] @ scaled, blocks)
        return np.asarray(np.concatenate(parts, dtype=np.float64))


class Factors:
    """Factors of several kernels on the same rows, side by side in float32.

    They are scaled to trace 1, so nothing overflows, and an empty one is a column of zeros. The
    last columns are the diagonals, one of each kernel, less their means, times sqrt(`leverage`).
    """

    def __init__(self, parts: list[_Scaled], blocks: Blocks) -> None:
        self.blocks = blocks
        self.traces = np.array([part.trace for part in parts])
        self.errors = np.array([part.error for part in parts])
        ends = np.cumsum([part.columns.shape[1] for part in parts])
        self.starts = np.array([0, *ends[:-1]])  # the first column of each factor
        self.rank = int(ends[-1])
        root = np.sqrt(leverage(blocks))
        diagonals = [(root * blocks.centred(part.diagonal))[:, None] for part in parts]
        self.shares = np.array([blocks.sums(part.diagonal) for part in parts])  # of the traces
        columns = [part.columns for part in parts]
        self.columns = np.concatenate([*columns, *diagonals], axis=1, dtype=np.float32)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, k: int) -> LowRankMatrix:
        end = [*self.starts[1:], self.rank][k]
        columns = self.columns[:, self.starts[k] : end]
        return LowRankMatrix(columns, float(self.traces[k]) / len(columns))


class _Scaled:
    """What `Factors` keeps of FF' = K up to an error of known trace; columns lose block means.

    They are rotated to the principal directions, of which the smallest are left out.
    """

    def __init__(self, F: Array, error: float, tol: float, blocks: Blocks) -> None:
        n, means, parts = len(F), blocks.means(F), list(pieces(len(F), _ROWS))

        def centred(rows: slice) -> Array:
            return np.asarray(F[rows] - means[blocks.index[rows]])

        def gram(rows: slice) -> Array:
            A = centred(rows)
            return A.T @ A

        values, vectors = np.linalg.eigh(sum(map_threads(gram, parts), np.zeros((F.shape[1],) * 2)))
        values = np.maximum(values, 0.0)
        self.trace = float(values.sum())
        if self.trace <= _EQUAL * float(np.vdot(F, F)):  # rows are equal in each block
            values, self.trace = np.zeros_like(values), 0.0
        left_out = int(np.sum(np.cumsum(values) <= tol * self.trace))
        self.error = error + float(values[:left_out].sum())
        turn = vectors[:, left_out:] / (np.sqrt(self.trace) if self.trace > 0 else 1.0)
        self.columns = np.zeros((n, max(1, turn.shape[1])), dtype=np.float32)
        self.diagonal = np.zeros(n)

        def fill(rows: slice) -> None:
            A = centred(rows) @ turn
            self.columns[rows, : turn.shape[1]] = A
            self.diagonal[rows] = np.einsum("ij,ij->i", A, A)

        map_threads(fill, parts)


def factors(
    kernels: tuple[Kernel, ...], X: Any, most: int, blocks: Blocks | None = None
) -> Factors | None:
    """Factors of all kernels with at most `most` columns in total; None if there are none."""
    out: list[_Scaled] = []
    tol, rows = max(_TOL / n_rows(X), _ROUNDING), blocks or Blocks.one(n_rows(X))
    for kernel in kernels:
        left = most - sum(f.columns.shape[1] for f in out)
        if not _is_worth_trying(kernel, X, left, tol):
            return None
        points = Points(as_float64(X), kernel.domain)
        low = pivoted_cholesky(kernel, points, max_rank=left, tol=0.5 * tol)
        if low.status not in (Status.CONVERGED, Status.COMPLETE):
            return None
        out.append(_Scaled(low.factor, low.trace_error, 0.5 * tol, rows))
    return Factors(out, rows)


def _is_worth_trying(kernel: Kernel, X: Any, most: int, tol: float) -> bool:
    """Whether a factor with at most `most` columns is worth trying.

    It is not if the error of some rows falls so slowly that, at that rate, it stays above `tol`.
    """
    if kernel.flags.definiteness in (Definiteness.CONDITIONAL, Definiteness.INDEFINITE) or most < 1:
        return False
    n = n_rows(X)
    if most <= _TRIED:
        return True
    some = as_float64(X[:: -(-n // _TRIED_ROWS)])
    low = pivoted_cholesky(kernel, Points(some, kernel.domain), max_rank=_TRIED, tol=tol)
    trace = float(engine.diagonal(kernel.program, some).sum())
    return bool(low.trace_error <= tol ** (_TRIED / most) * trace)


class LowRank:
    """Statistics from the factors of both matrices."""

    def __init__(self, x: Factors, y: Factors) -> None:
        self.x, self.y, self.n = x, y, len(x.columns)
        self.blocks = x.blocks

    def statistics(self, draws: list[Draw]) -> Array:
        """Unbiased HSIC of each pair of kernels (rows, kernel of y running faster) and draw."""
        x, y = self.x, self.y
        found = over_permutations(self._traces, draws) - of_chance(x.shares, y.shares, self.blocks)
        out = np.outer(x.traces, y.traces) * found / n_pairs(self.blocks)
        return np.asarray(out.reshape(len(out), -1).T)

    def _traces(self, permutations: Array) -> Array:
        """tr(K~ L~) - n p~'q~ / (n - 2) of each permutation, or the same in blocks.

        Rows are multiplied in float32, some at a time, and added in float64.
        """
        n, x, y, F, G = self.n, self.x, self.y, self.x.columns, self.y.columns
        rows = max(1, _GATHERED // (4 * G.shape[1]))
        product = np.zeros((len(permutations), F.shape[1], G.shape[1]))
        for some in pieces(len(permutations), max(1, rows // n)):
            for at in pieces(n, rows):
                product[some] += F[at].T @ np.take(G, permutations[some, at], axis=0)
        squares = product[:, : x.rank, : y.rank] ** 2
        traces = np.add.reduceat(np.add.reduceat(squares, x.starts, axis=1), y.starts, axis=2)
        return np.asarray(traces - product[:, x.rank :, y.rank :])

    @property
    def errors(self) -> Array:
        """How far each statistic can be from that of the whole matrices.

        tr(K~ L~) - |F'G|^2 is between 0 and tr(E_K) |L~| + tr(E_L) |K~|, and so is p'q - p'q of the
        factors, because the diagonal of a matrix is at most its largest eigenvalue; and that is at
        most the trace.
        """
        x, y, largest = self.x, self.y, max(float(leverage(self.blocks).max()), 1.0)
        bounds = np.outer(x.errors, y.traces + y.errors) + np.outer(x.traces + x.errors, y.errors)
        return largest * bounds.ravel() / n_pairs(self.blocks)

    def effect(self, pair: int, weights: Array | None = None) -> Effect:
        """See `standardised`."""
        blocks, matrices = list(pieces(self.n, _ROWS)), self.matrices(pair)

        def both(rows: slice) -> list[Array]:
            return [matrix.columns[rows].astype(np.float64) for matrix in matrices]

        def grams(rows: slice) -> list[Array]:
            A, B = both(rows)
            return [A.T @ B, A.T @ A, B.T @ B]

        ab, aa, bb = (sum(P[1:], P[0]) for P in zip(*map_threads(grams, blocks), strict=True))

        def sums(rows: slice) -> Array:
            A, B = both(rows)
            products = [(A @ ab) * B, (A @ aa) * A, (B @ bb) * B, A * A, B * B]
            return np.array([P.sum(axis=1) for P in products])

        xy, xx, yy, p, q = np.concatenate(map_threads(sums, blocks), axis=1)
        found = standardised(xy, xx, yy, p, q, self.blocks, weights)
        return found.rescaled(self.n**2 * matrices[0].scale * matrices[1].scale)

    def matrices(self, pair: int) -> tuple[LowRankMatrix, LowRankMatrix]:
        """Of one pair of kernels."""
        i, j = divmod(pair, len(self.y))
        return self.x[i], self.y[j]
