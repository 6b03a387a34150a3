"""The matrix inversion lemma: systems with a low-rank matrix plus a multiple of the identity."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, as_points, is_sparse, positive
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.exceptions import InputError
from mercer.linalg._blocked_products import matmul, transposed_matmul, triangular_factor
from mercer.linalg._inputs import as_columns
from mercer.linalg._result import Solution


class ShiftedLowRank:
    """L L' + s I, factored once and solved often, at O(n r) for each right-hand side.

    The lemma is used as A = (B - L (R'R)^-1 L' B) / s with R from a QR decomposition of L stacked
    on sqrt(s) I: the matrix L'L + s I = R'R is never formed, so that its condition is not squared.
    """

    def __init__(self, L: Array, shift: float) -> None:
        self.L, self.shift = L, shift
        self.small = L.shape[1] < L.shape[0]
        self.R = triangular_factor(L if self.small else L.T, shift)

    def solve(self, B: Array) -> Array:
        """(L L' + s I)^-1 B."""
        if not self.small:
            return self._inner(B)
        out = matmul(self.L, self._inner(transposed_matmul(self.L, B)))
        np.subtract(B, out, out=out)
        out /= self.shift
        return out

    def _inner(self, T: Array) -> Array:
        """(R'R)^-1 T."""
        from scipy.linalg import solve_triangular

        half = solve_triangular(self.R, T, trans="T", check_finite=False)
        return np.asarray(solve_triangular(self.R, half, check_finite=False))


def woodbury(L: Any, B: Any, penalty: float) -> Solution:
    """Solve (L L' + penalty I) A = B in O(n r^2) operations for L of shape (n, r).

    The matrix inversion lemma, A = (B - L (L'L + penalty I)^-1 L' B) / penalty, in the singular
    vectors of L = U diag(s) V', where nothing cancels:

        A = U diag(1 / (s^2 + penalty)) U' B + (B - U U' B) / penalty.

    Parameters
    ----------
    L : array_like of shape (n, r)
        A factor of a matrix of low rank, such as `nystrom` and `pivoted_cholesky` give.
    B : array_like of shape (n,) or (n, b)
    penalty : float
        > 0.

    Returns
    -------
    Solution

    References
    ----------
    A. Rudi and P. Gaillard, Kernel methods (lecture notes, 2021), section 4.

    Examples
    --------
    >>> from mercer import linalg
    >>> linalg.woodbury([[1.0], [1.0]], [3.0, 0.0], 1.0).coef.round(6)
    array([ 2., -1.])
    """
    L = as_points(L, "L")
    if is_sparse(L):
        raise InputError("L must be dense; use L.toarray()")
    L = L.astype(np.float64, copy=False)
    B, single = as_columns(B, L.shape[0])
    penalty = positive(penalty, "penalty")
    with single_threaded_blas():  # threads are for blocks, see `_blocked_products`
        U, s, _ = np.linalg.svd(L, full_matrices=False)
        inside = transposed_matmul(U, B)
        A = matmul(U, inside / (s**2 + penalty)[:, None])
        if L.shape[1] < L.shape[0]:
            outside = B - matmul(U, inside)
            outside -= matmul(U, transposed_matmul(U, outside))  # again: what rounding left along U
            A += outside / penalty
        residual = relative(B - matmul(L, transposed_matmul(L, A)) - penalty * A, B)
    solution = Solution.direct(A, residual, len(A), "woodbury", Status.SOLVED)
    return solution.first() if single else solution


def relative(R: Array, B: Array) -> Array:
    """|R| / |B| column by column; zero where both are."""
    size, norm = np.linalg.norm(R, axis=0), np.linalg.norm(B, axis=0)
    return np.asarray(np.divide(size, norm, out=np.array(size), where=norm > 0))
