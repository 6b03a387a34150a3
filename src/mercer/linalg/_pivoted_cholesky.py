"""Pivoted Cholesky factors: greedy low rank from the diagonal and a few columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, frozen, non_negative, positive_int
from mercer._status import Status
from mercer.engine import n_rows
from mercer.kernels import Kernel
from mercer.linalg._blocked_products import matmul
from mercer.linalg._inputs import double_points, refuses_overflow, require_definite

_EPS = float(np.finfo(np.float64).eps)
_SLACK = 32.0  # times eps: what of k(x, x) is rounding
INDEFINITE = 1e-6  # of k(x, x): below minus this is no rounding error, pivots being tiny or not
_FIRST = 32  # columns for which room is made at the start; doubled when they are used up


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    """K ~ L L' from r pivots; K - L L' is positive semi-definite and zero on their columns.

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
        Not known to be indefinite.
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
    left, total = own.copy(), float(own.sum())
    L = np.empty((n, min(most, _FIRST)), order="F")
    pivots: list[int] = []
    while True:
        status = _verdict(left, own, tol * total, len(pivots), most)
        if status is not None:
            break
        r = len(pivots)
        if r == L.shape[1]:
            L = np.pad(L, ((0, 0), (0, min(most - r, r))))
        p = int(np.argmax(left - _slack(own, r)))
        column = engine.gram(kernel.program, points, points[p : p + 1])[:, 0].astype(np.float64)
        column -= matmul(L[:, :r], L[p, :r, None])[:, 0]
        column /= np.sqrt(left[p])
        column[p] = np.sqrt(left[p])
        left -= column * column
        left[p] = 0.0
        L[:, r] = column
        pivots.append(p)
    factor = frozen(L[:, : len(pivots)])
    error = float(np.maximum(left, 0.0).sum())
    return PivotedCholesky(factor, frozen(np.array(pivots, dtype=np.intp)), error, status)


def _verdict(left: Array, own: Array, level: float, rank: int, most: int) -> Status | None:
    """Why to stop here; None to go on."""
    if np.any(left < -INDEFINITE * np.abs(own)):
        return Status.INDEFINITE
    if float(np.maximum(left, 0.0).sum()) <= level:
        return Status.CONVERGED
    if not np.any(left > _slack(own, rank)):
        return Status.COMPLETE
    return Status.MAX_RANK if rank == most else None


def _slack(own: Array, rank: int) -> Array:
    """What is rounding in a diagonal entry after `rank` subtractions."""
    return _EPS * (_SLACK + rank) * np.abs(own)
