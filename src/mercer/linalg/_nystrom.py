"""Nystrom: a kernel matrix of low rank from landmarks, and features of new points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, check_same_columns, frozen, positive_int
from mercer._random import as_generator
from mercer._status import Status
from mercer._threads import map_threads, single_threaded_blas
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._blocked_products import blocks
from mercer.linalg._inputs import double_points, one_of, require_definite
from mercer.linalg._landmarks import RULES

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Nystrom:
    """K ~ L L' = C W^+ C' with C = k(X, Z) and W = k(Z, Z) for landmarks Z.

    L L' is the Gram matrix of the features of X projected on the span of those of Z, so K - L L' is
    positive semi-definite, and zero on the rows and columns of landmarks that are points of X.

    Attributes
    ----------
    kernel : Kernel
    landmarks : the r landmarks Z; those that depend on others to rounding are left out
    index : array of shape (r,) or None
        Their row numbers in X, where they are rows.
    factor : array of shape (n, r)
        L.
    trace_error : float
        trace(K) - |L|_F^2, exact: the trace norm of K - L L'.
    status : Status
        SOLVED, or TRUNCATED if landmarks were left out.
    triangle : array of shape (r, r)
        Lower triangular T with W = T T', so that L = C T'^-1.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer import linalg
    >>> low = linalg.nystrom(mc.Linear(), [[1.0, 0.0], [0.0, 3.0], [2.0, 0.0]], 2, rule="pivoted")
    >>> low.index, low.trace_error
    (array([1, 2]), 0.0)
    >>> z = low.map([[5.0, 0.0], [1.0, 1.0]])
    >>> z @ z.T
    array([[25.,  5.],
           [ 5.,  2.]])
    """

    kernel: Kernel
    landmarks: Any
    index: Array | None
    factor: Array
    trace_error: float
    status: Status
    triangle: Array

    @property
    def rank(self) -> int:
        """The number of features r."""
        return int(self.factor.shape[1])

    def map(self, Y: Any) -> Array:
        """Return features z(y_j), shape (m, r), with z(x)'z(y) ~ k(x, y); those of X are L."""
        Y = double_points(self.kernel, Y, "Y")
        check_same_columns(self.landmarks, Y, ("the landmarks", "Y"))
        return _features(self.kernel, Y, self.landmarks, self.triangle)


def nystrom(
    kernel: Kernel, X: Any, n_landmarks: int, *, rule: str = "uniform", random_state: Any = None
) -> Nystrom:
    """Approximate K by its projection on the features of some landmarks, L L' = C W^+ C'.

    W^+ is never formed: W = T T' by a pivoted Cholesky factorisation that leaves out landmarks
    whose features depend on the others to rounding, and L = C T'^-1. O(n r^2) operations, n r
    numbers.

    Parameters
    ----------
    kernel : Kernel
        Not known to be indefinite.
    X : array_like of shape (n, d), or other points of the kernel's domain
    n_landmarks : int
        The number of landmarks; more than n are n.
    rule : {"uniform", "kmeans", "leverage", "pivoted"}
        How landmarks are chosen: rows at random; centres of k-means (dense vectors only); rows at
        random by approximate ridge leverage scores (see `leverage_scores`, with as many points in
        its sketch, and a penalty of what that sketch leaves of the trace over their number); the
        greedy pivots of `pivoted_cholesky`.
    random_state : int, Generator, RandomState or None
        Draws landmarks; not used by `pivoted`.

    Returns
    -------
    Nystrom

    References
    ----------
    C. Williams and M. Seeger, Using the Nystrom method to speed up kernel machines (2001); A. Rudi
    and P. Gaillard, Kernel methods (lecture notes, 2021), section 4.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> from mercer import linalg
    >>> X = np.linspace(0.0, 3.0, 200)[:, None]
    >>> low = linalg.nystrom(mc.Gaussian(1.0), X, 8, rule="pivoted")
    >>> low.factor.shape, low.trace_error < 1e-3
    ((200, 8), True)
    >>> np.allclose(low.map(X), low.factor)
    True
    """
    require_definite(kernel, "nystrom")
    points = double_points(kernel, X)
    size = min(positive_int(n_landmarks, "n_landmarks"), n_rows(points))
    choose = RULES[one_of(rule, tuple(RULES), "rule")]
    with single_threaded_blas():  # threads are for blocks, see `_blocked_products`
        Z, index = choose(kernel, points, size, as_generator(random_state))
        n_chosen = n_rows(Z)
        order, T = _independent(kernel, Z)
        Z, index = Z[order], None if index is None else frozen(index[order])
        L = _features(kernel, points, Z, T)
    left = engine.diagonal(kernel.program, points).astype(np.float64) - np.einsum("ij,ij->i", L, L)
    status = Status.SOLVED if len(T) == n_chosen else Status.TRUNCATED
    error = max(float(left.sum()), 0.0)
    return Nystrom(kernel, Z, index, frozen(L), error, status, frozen(T))


def _independent(kernel: Kernel, Z: Any) -> tuple[Array, Array]:
    """Which landmarks are independent to rounding, and T with W = T T' for them.

    Features are scaled to length one before they are compared, so that a kernel whose k(x, x)
    varies by orders of magnitude does not lose its small ones.
    """
    from scipy.linalg.lapack import dpstrf

    if n_rows(Z) == 0:
        return np.zeros(0, dtype=np.intp), np.zeros((0, 0))
    W = engine.gram(kernel.program, Z, Z).astype(np.float64)
    length = np.sqrt(np.maximum(W.diagonal(), 0.0))
    length[length == 0.0] = 1.0
    W /= length[:, None]
    W /= length[None, :]
    T, order, rank, info = dpstrf(W, tol=max(10, len(W)) * _EPS, lower=1)
    if info < 0:
        raise InputError("the kernel matrix of the landmarks has NaN entries")
    order = np.asarray(order[:rank] - 1, dtype=np.intp)
    return order, np.tril(T[:rank, :rank]) * length[order][:, None]


def _features(kernel: Kernel, Y: Any, Z: Any, T: Array) -> Array:
    """k(Y, Z) T'^-1, in the memory of k(Y, Z)."""
    from scipy.linalg.blas import dtrsm

    if len(T) == 0:
        return np.zeros((n_rows(Y), 0))
    C = np.ascontiguousarray(engine.gram(kernel.program, Y, Z), dtype=np.float64)
    T = np.asfortranarray(T)

    def solve(rows: slice) -> None:
        dtrsm(1.0, T, C[rows].T, lower=1, overwrite_b=1)  # T^-1 C', whose columns are rows of C

    map_threads(solve, blocks(len(C), len(T) ** 2))
    return C
