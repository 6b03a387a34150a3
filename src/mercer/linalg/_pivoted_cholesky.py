"""Pivoted Cholesky factors: greedy low rank from the diagonal and a few columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer import engine
from mercer._array import Array, frozen, non_negative, positive_int
from mercer._status import Status
from mercer._threads import map_threads
from mercer.engine import n_rows, pieces
from mercer.kernels import Kernel
from mercer.linalg._inputs import double_points, refuses_overflow, require_definite

_EPS = float(np.finfo(np.float64).eps)
_SLACK = 32.0  # times eps k(x, x): rounding
INDEFINITE = 1e-6  # of k(x, x): values below minus this are not rounding errors
_FIRST = 32  # columns for which room is made at the start; doubled when they are used up
_ROWS = 1 << 14  # in one task: some columns of them stay in cache


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    """Pivoted Cholesky factor: K ~ L L' from r pivots, with K - L L' positive semi-definite.

    Attributes
    ----------
    factor : array of shape (n, r)
        L; lower triangular in the rows of the pivots.
    pivots : array of shape (r,)
        Row numbers in the order in which they were chosen.
    trace_error : float
        trace(K - L L'), a bound on every other unitarily invariant norm of the error.
    status : Status
        CONVERGED at tol, COMPLETE where only rounding is left, MAX_RANK, or INDEFINITE where the
        kernel turns out not to be positive definite.

    Examples
    --------
    >>> import mercer as mc
    >>> low = mc.linalg.pivoted_cholesky(mc.Linear(), [[1.0, 0.0], [0.0, 3.0], [2.0, 0.0]], tol=0.0)
    >>> low.pivots, low.rank, low.trace_error
    (array([1, 2]), 2, 0.0)
    """

    factor: Array
    pivots: Array
    trace_error: float
    status: Status

    @property
    def rank(self) -> int:
        """The number of pivots."""
        return int(self.pivots.size)


@refuses_overflow
def pivoted_cholesky(
    kernel: Kernel, X: Any, *, max_rank: int | None = 1000, tol: float = 1e-8
) -> PivotedCholesky:
    """Factor K ~ L L' greedily: each column takes the point that is approximated worst.

    With d = diag(K - L L'), the next pivot is p = argmax d and the next column
    (K[:, p] - L L[p]') / sqrt(d_p). Only the diagonal and r columns of K are ever computed:
    O(n r^2) operations, n r numbers.

    Parameters
    ----------
    kernel : Kernel
        Not known to be indefinite, nor to be positive definite only conditionally.
    X : array_like of shape (n, d), or other points of the kernel's domain
    max_rank : int or None, default=1000
        The largest r; None for n.
    tol : float, default=1e-8
        >= 0; stop when trace(K - L L') <= tol trace(K).

    Returns
    -------
    PivotedCholesky

    References
    ----------
    Harbrecht, Peters, Schneider (2012), On the low-rank approximation by the pivoted Cholesky
    decomposition.

    Examples
    --------
    Two points, one of them twice: rank two, exactly.

    >>> import mercer as mc
    >>> low = mc.linalg.pivoted_cholesky(mc.Gaussian(1.0), [[0.0], [0.0], [1.0]])
    >>> low.pivots, low.trace_error, low.status.name
    (array([0, 2]), 0.0, 'CONVERGED')
    >>> (low.factor @ low.factor.T).round(4)
    array([[1.    , 1.    , 0.6065],
           [1.    , 1.    , 0.6065],
           [0.6065, 0.6065, 1.    ]])
    """
    require_definite(kernel, "pivoted_cholesky")
    points = double_points(kernel, X)
    n = n_rows(points)
    most = n if max_rank is None else min(n, positive_int(max_rank, "max_rank"))
    non_negative(tol, "tol")
    own = engine.diagonal(kernel.program, points).astype(np.float64)
    work = _Factorisation(kernel.program, points, own, most)
    while (status := work.verdict(tol * float(own.sum()))) is None:
        work.add_column()
    factor, pivots = frozen(work.L[:, : len(work.pivots)]), np.array(work.pivots, dtype=np.intp)
    return PivotedCholesky(factor, frozen(pivots), work.error, status)


class _Block(NamedTuple):
    """What the next step needs to know about some rows."""

    error: float  # the sum of their diagonal entries of K - L L'
    largest: float  # of these entries, beyond rounding
    place: int  # of the largest
    indefinite: bool


class _Factorisation:
    """Columns of L so far, and the diagonal of K - L L'.

    All rows pass once through the cache for each column, in blocks on the thread pool.
    """

    def __init__(self, program: engine.Program, points: Any, own: Array, most: int) -> None:
        self.program, self.points, self.own, self.most = program, points, own, most
        self.left = own.copy()
        self.L = np.empty((len(own), min(most, _FIRST)), order="F")
        self.pivots: list[int] = []
        self.rows = list(pieces(len(own), _ROWS))
        self.blocks = map_threads(self._inspect, self.rows)

    @property
    def error(self) -> float:
        return sum(block.error for block in self.blocks)

    def verdict(self, level: float) -> Status | None:
        """Why to stop here; None to go on."""
        if any(block.indefinite for block in self.blocks):
            return Status.INDEFINITE
        if self.error <= level:
            return Status.CONVERGED
        if max(block.largest for block in self.blocks) <= 0.0:
            return Status.COMPLETE
        return Status.MAX_RANK if len(self.pivots) == self.most else None

    def add_column(self) -> None:
        """Add the column of the row that is approximated worst, the first one at ties."""
        r, best = len(self.pivots), int(np.argmax([block.largest for block in self.blocks]))
        p = self.rows[best].start + self.blocks[best].place
        if r == self.L.shape[1]:
            self.L = np.pad(self.L, ((0, 0), (0, min(self.most - r, r))))
        point, above, root = self.points[p : p + 1], self.L[p, :r].copy(), np.sqrt(self.left[p])
        self.pivots.append(p)

        def fill(rows: slice) -> _Block:
            column = engine.gram(self.program, self.points[rows], point)[:, 0].astype(np.float64)
            column -= self.L[rows, :r] @ above
            column /= root
            self.L[rows, r] = column
            self.left[rows] -= column * column
            if rows.start <= p < rows.stop:
                self.L[p, r], self.left[p] = root, 0.0
            return self._inspect(rows)

        self.blocks = map_threads(fill, self.rows)

    def _inspect(self, rows: slice) -> _Block:
        left, size = self.left[rows], np.abs(self.own[rows])
        beyond = left - _EPS * (_SLACK + len(self.pivots)) * size  # what is not rounding
        place = int(np.argmax(beyond))
        indefinite = bool(np.any(left < -INDEFINITE * size))
        return _Block(float(np.maximum(left, 0.0).sum()), float(beyond[place]), place, indefinite)
