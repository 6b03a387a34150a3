"""Linear systems with a kernel matrix or a low-rank matrix, plus a multiple of the identity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import (
    Array,
    Points,
    as_dense_points,
    non_negative,
    one_of,
    positive,
    positive_int,
)
from mercer._progress import Callback, check_callback
from mercer._status import Status
from mercer._threads import interruptible, single_threaded_blas
from mercer.engine import Dense
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._blocked_products import matmul, transposed_matmul, triangular_factor
from mercer.linalg._conjugate_gradients import ConjugateGradients, Product, relative
from mercer.linalg._dense import NotDefiniteError, by_cholesky, by_eigen
from mercer.linalg._inputs import as_columns, refuses_overflow
from mercer.linalg._nystrom import Nystrom, nystrom
from mercer.linalg._operator import GramOperator
from mercer.linalg._pivoted_cholesky import PivotedCholesky, pivoted_cholesky

DIRECT_UP_TO = 10_000
EIGEN_UP_TO = 3_000
_METHODS = ("cholesky", "cg", "eigen")
_PRECONDITIONERS = ("nystrom", "pivoted", "none")
_MOST = 1 << 26  # numbers that a preconditioner of default rank may hold


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of a linear system; with several right-hand sides one entry for each.

    Attributes
    ----------
    coef : array of shape (n,) or (n, b)
        The solution A.
    residual : float or array of shape (b,)
        |M A - B| / |B| of each column, from a fresh product with the matrix M, jitter left out
        (of kernel sums as exact as `options(tolerance=...)` asks for).
    n_iter : int or array of shape (b,)
        Iterations; 0 for a direct method.
    jitter : float
        What was added to the diagonal beyond the penalty because the matrix was not positive
        definite to rounding; 0 if nothing was.
    rank : int
        The number of eigenvalues used: n, or fewer if zero ones were left out.
    method : str
        The method used: `cholesky`, `eigen`, `cg` or `woodbury`.
    status : Status or tuple of b Status
        Why it stopped.

    Examples
    --------
    >>> import mercer as mc
    >>> twice = [[0.0], [0.0], [1.0]]  # a duplicate makes K singular
    >>> solution = mc.linalg.solve(mc.Gaussian(1.0), twice, [1.0, 1.0, 0.0], penalty=0.0)
    >>> solution.coef.round(4), solution.rank, solution.status.name
    (array([ 0.791 ,  0.791 , -0.9595]), 2, 'TRUNCATED')
    """

    coef: Array
    residual: Any
    n_iter: Any
    jitter: float
    rank: int
    method: str
    status: Status | tuple[Status, ...]

    @property
    def ok(self) -> bool:
        """Whether every column was solved as requested."""
        statuses = self.status if isinstance(self.status, tuple) else (self.status,)
        return all(status.ok for status in statuses)

    def first(self) -> Solution:
        """The solution for the first right-hand side, without the axis of columns."""
        assert isinstance(self.status, tuple)
        residual, n_iter = float(self.residual[0]), int(self.n_iter[0])
        return replace(
            self, coef=self.coef[:, 0], residual=residual, n_iter=n_iter, status=self.status[0]
        )


@refuses_overflow
def solve(
    kernel: Kernel,
    X: Any,
    B: Any,
    penalty: float,
    *,
    weights: Any = None,
    method: str | None = None,
    preconditioner: Any = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    random_state: Any = 0,
    callback: Callback | None = None,
) -> Solution:
    """Solve (K + penalty I) A = B for the Gram matrix K of X.

    With weights the system is (K + penalty D^-1) A = B, D = diag(weights), in the form
    A = D^(1/2) (D^(1/2) K D^(1/2) + penalty I)^-1 D^(1/2) B that also takes weights of zero: the
    minimiser of sum_i w_i (b_i - f(x_i))^2 + penalty |f|^2 over f = sum_i a_i k(x_i, .). Everything
    is computed in float64, except that the iterations of `cg` sum in float32 if there are more than
    10,000 points and the penalty is above the rounding error of K; residuals are float64.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d), or other points of the kernel's domain
    B : array_like of shape (n,) or (n, b)
        One or many right-hand sides.
    penalty : float
        >= 0. At 0 a singular K is normal: the result says what was done about it (`method`,
        `rank`, `jitter`, `status`), and `method="eigen"` always gives K^+ B.
    weights : array_like of shape (n,), optional
        Weights >= 0; a weight of 2 is the same as repeating the row.
    method : {None, "cholesky", "cg", "eigen"}
        `cholesky` factors K in place: n^2 numbers, n^3/3 steps. `cg` runs conjugate gradients on
        kernel sums, preconditioned by a low-rank factor of K: n r numbers. `eigen` leaves out
        eigenpairs of K that are zero to rounding, which gives the minimum-norm solution
        (K + penalty I)^+ B: three n^2 matrices. None takes `cholesky` up to 10,000 points and `cg`
        above; `eigen` in place of `cholesky` where the matrix is not positive definite, or
        singular at penalty 0 (up to 3,000 points; above, jitter is added).
    preconditioner : {None, "nystrom", "pivoted", "none"} or Nystrom or PivotedCholesky
        For `cg`: a low-rank approximation of K, from the same X. None is `nystrom`, with
        landmarks by leverage; the default rank is 4 sqrt(n), at most 1000 and at most 2^26 / n.
    tol : float, default=1e-8
        For `cg`: the relative residual |K A + penalty A - B| / |B| at which a column is done.
    max_iter : int, default=1000
        For `cg`: the largest number of iterations, each one pass over the kernel for all columns.
    random_state : int, Generator, RandomState or None, default=0
        For `cg`: draws the landmarks of the preconditioner.
    callback : callable, optional
        For `cg`: called with a `Step` after each iteration; stops it by returning True.

    Returns
    -------
    Solution
        `coef, residual, n_iter, jitter, rank, method, status`. Jitter starts at the rounding error
        of K, eps trace(K), and grows by tens up to 1e7 times that.

    See Also
    --------
    woodbury : for a matrix known by a low-rank factor.

    Examples
    --------
    >>> import mercer as mc
    >>> solution = mc.linalg.solve(mc.Gaussian(1.0), [[0.0], [1.0]], [1.0, 2.0], penalty=0.5)
    >>> solution.coef.round(4)
    array([0.1525, 1.2717])
    >>> solution.method, solution.status.name, solution.jitter
    ('cholesky', 'SOLVED', 0.0)
    """
    S = GramOperator(kernel, X, weights=weights)
    penalty = non_negative(penalty, "penalty")
    B, single = as_columns(B, S.shape[0])
    positive(tol, "tol")
    positive_int(max_iter, "max_iter")
    check_callback(callback)
    if method is not None:
        one_of(method, _METHODS, "method")
    root = None if S.weights is None else np.sqrt(S.weights)
    right = B if root is None else root[:, None] * B
    if method == "cg" or (method is None and S.shape[0] > DIRECT_UP_TO):
        with single_threaded_blas():  # threads are for blocks, see `_blocked_products`
            precondition = _preconditioner(S, preconditioner, penalty, random_state)
            scale = float(S.diag.max()) + penalty
            cg = ConjugateGradients(
                lambda V: S.matmat(V) + penalty * V,
                precondition,
                right,
                tol,
                scale,
                _product_in_float32(S, penalty),
                # the preconditioner may be drawn at random
                (S.kernel, S.points, S.weights, penalty, right, precondition(right[:, :1])),
            )
            cg.run(max_iter, callback)
        coef, statuses = cg.coef, tuple(cg.status)
        solution = Solution(coef, cg.residual, cg.n_iter, 0.0, len(coef), "cg", statuses)
    else:
        solution = _solve_dense(S, right, penalty, method)
    if root is not None:
        solution = replace(solution, coef=root[:, None] * solution.coef)
    return solution.first() if single else solution


@refuses_overflow
def woodbury(L: Any, B: Any, penalty: float) -> Solution:
    """Solve (L L' + penalty I) A = B in O(n r^2) operations for L of shape (n, r).

    The matrix inversion lemma, A = (B - L (L'L + penalty I)^-1 L' B) / penalty, is evaluated in the
    singular vectors of L = U diag(s) V', where nothing cancels:

        A = U diag(1 / (s^2 + penalty)) U' B + (B - U U' B) / penalty.

    Parameters
    ----------
    L : array_like of shape (n, r)
        A factor of a low-rank matrix, such as `nystrom` and `pivoted_cholesky` return.
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
    >>> import mercer as mc
    >>> mc.linalg.woodbury([[1.0], [1.0]], [3.0, 0.0], 1.0).coef.round(6)
    array([ 2., -1.])
    """
    L = as_dense_points(L, "L")
    B, single = as_columns(B, L.shape[0])
    penalty = positive(penalty, "penalty")
    with single_threaded_blas():  # threads are for blocks, see `_blocked_products`
        U, s, _ = interruptible(np.linalg.svd, L, False)
        inside = transposed_matmul(U, B)
        A = matmul(U, inside / (s**2 + penalty)[:, None])
        if L.shape[1] < L.shape[0]:
            outside = B - matmul(U, inside)
            outside -= matmul(U, transposed_matmul(U, outside))  # again: what rounding left along U
            A += outside / penalty
        residual = relative(B - matmul(L, transposed_matmul(L, A)) - penalty * A, B)
    solution = _direct(A, residual, len(A), "woodbury", Status.SOLVED)
    return solution.first() if single else solution


class ShiftedLowRank:
    """L L' + s I, factored once for many solves, at O(n r) for each right-hand side.

    By the lemma, A = (B - L (R'R)^-1 L' B) / s with R from a QR decomposition of L stacked on
    sqrt(s) I: L'L + s I = R'R is never formed, so that the condition number is not squared.
    """

    def __init__(self, L: Array, shift: float) -> None:
        self.L, self.shift = L, shift
        self.small = L.shape[1] < L.shape[0]
        self.R = triangular_factor(L if self.small else L.T, shift)

    def solve(self, B: Array) -> Array:
        """(L L' + s I)^-1 B."""
        from scipy.linalg import cho_solve

        inside = transposed_matmul(self.L, B) if self.small else B
        inner: Array = cho_solve((self.R, False), inside, check_finite=False)
        if not self.small:
            return inner
        out = matmul(self.L, inner)
        np.subtract(B, out, out=out)
        out /= self.shift
        return out


def _solve_dense(S: GramOperator, B: Array, penalty: float, method: str | None) -> Solution:
    K, n = S.dense(), S.shape[0]
    exact = method is None and penalty == 0.0 and n <= EIGEN_UP_TO
    if method != "eigen":
        try:
            coef, rest, jitter = by_cholesky(K, B, penalty, jitter=not exact)
        except NotDefiniteError:
            if method == "cholesky":
                raise InputError(
                    "the matrix is not positive definite, even with jitter on its diagonal: use "
                    'method="eigen", or a larger penalty'
                ) from None
        else:
            status = Status.JITTERED if jitter else Status.SOLVED
            return _direct(coef, relative(rest, B), n, "cholesky", status, jitter)
    coef, rank = by_eigen(K, B, penalty)
    residual = relative(B - S.matmat(coef) - penalty * coef, B)
    status = Status.SOLVED if rank == n else Status.TRUNCATED
    return _direct(coef, residual, rank, "eigen", status)


def _preconditioner(S: GramOperator, given: Any, penalty: float, random_state: Any) -> Product:
    """Solve with L L' ~ S plus a shift, for a low-rank factor L."""
    n = S.shape[0]
    rank = max(1, min(n, 1000, int(4 * np.sqrt(n)), _MOST // n))
    low: Nystrom | PivotedCholesky
    points = Points(S.points, S.kernel.domain)
    if isinstance(given, Nystrom | PivotedCholesky):
        if given.factor.shape[0] != n:
            raise InputError(
                f"the preconditioner is of {given.factor.shape[0]} points, but X has {n}"
            )
        low = given
    elif given is None or one_of(given, _PRECONDITIONERS, "preconditioner") == "nystrom":
        low = nystrom(S.kernel, points, rank, rule="leverage", random_state=random_state)
    elif given == "pivoted":
        low = pivoted_cholesky(S.kernel, points, max_rank=rank, tol=1e-14)
    else:
        return np.copy
    L, trace_error = low.factor, low.trace_error
    if S.weights is not None:
        L = np.sqrt(S.weights)[:, None] * L
        trace_error = float(S.trace - np.sum(L * L))
    # a shift below the mean of what L leaves out would give that too much weight
    shift = max(penalty, trace_error / n, 1e-14 * S.trace)
    return ShiftedLowRank(L, shift).solve if L.shape[1] else np.copy


def _product_in_float32(S: GramOperator, penalty: float) -> Product | None:
    """Products with S + penalty I by sums in float32, which are cheaper.

    None if there are few points, if rounding, eps trace(S), might make the matrix indefinite, or if
    numbers overflow in float32.
    """
    if S.shape[0] <= DIRECT_UP_TO or penalty <= np.finfo(np.float32).eps * S.trace:
        return None
    if not isinstance(S.points, np.ndarray) or S.points.dtype != np.float64 or S.own.max() > 1e30:
        return None
    X, program = S.points.astype(np.float32), S.kernel.program
    root = 1.0 if S.weights is None else np.sqrt(S.weights)[:, None]

    def product(V: Array) -> Array:
        U = root * V
        size = np.linalg.norm(U, axis=0)
        size[size == 0.0] = 1.0
        value = engine.fields(program, X, X, Dense((U / size).astype(np.float32))).value
        return np.asarray(root * (value * size) + penalty * V)

    return product if np.isfinite(X).all() else None


def _direct(
    coef: Array, residual: Array, rank: int, method: str, status: Status, jitter: float = 0.0
) -> Solution:
    b = residual.size
    n_iter = np.zeros(b, dtype=np.intp)
    return Solution(coef, residual, n_iter, jitter, rank, method, (status,) * b)
