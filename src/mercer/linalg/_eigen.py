"""Leading eigenpairs of a Gram operator, by LAPACK or by block Lanczos."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, frozen, positive, positive_int
from mercer._progress import Callback
from mercer._random import as_generator
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, Kernel
from mercer.linalg._cholesky import check_finite
from mercer.linalg._inputs import one_of
from mercer.linalg._lanczos import BlockLanczos, Sizes
from mercer.linalg._operator import GramOperator, gram_operator
from mercer.linalg._power_iteration import signed

DENSE_UP_TO = 1_500
_DENSE_AT_MOST = 10_000
_METHODS = ("dense", "krylov")
_SMALL = 1_000  # points below which threads of BLAS cost more than they bring on a busy machine


@dataclass(frozen=True, eq=False)
class EigenPairs:
    """Leading eigenpairs S v = lambda v of a Gram operator.

    Attributes
    ----------
    values : array of shape (k,)
        The largest eigenvalues, descending. Those of a positive definite kernel are >= 0 up to
        rounding.
    vectors : array of shape (n, k)
        Orthonormal columns; the largest entry of each is positive.
    residuals : array of shape (k,)
        |S v - lambda v|, from a fresh product.
    n_iter : int
        Passes over the kernel before that; 0 for `dense`.
    method : str
    status : Status

    Examples
    --------
    The linear kernel, centred: variances along the principal axes, times n.

    >>> import mercer as mc
    >>> from mercer import linalg
    >>> X = [[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]]
    >>> pairs = linalg.eigenpairs(mc.Linear(), X, 2, centred=True)
    >>> pairs.values.round(6), bool(pairs.residuals.max() < 1e-12)
    (array([16.,  4.]), True)
    """

    values: Array
    vectors: Array
    residuals: Array
    n_iter: int
    method: str
    status: Status


def eigenpairs(
    kernel: Kernel,
    X: Any,
    n_components: int,
    *,
    centred: bool = False,
    weights: Any = None,
    method: str | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    random_state: Any = None,
    callback: Callback | None = None,
) -> EigenPairs:
    """Find the largest eigenpairs of S = D^(1/2) (I - 1 w') K (I - w 1') D^(1/2).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d), or other points of the kernel's domain
    n_components : int
        The number k of pairs, at most n. Beyond the rank of S eigenvalues are zero to rounding.
    centred, weights
        The operator S, as in `gram_operator`; K itself by default.
    method : {None, "dense", "krylov"}
        `dense` writes the matrix down for LAPACK: n^2 numbers, n^3 steps. `krylov` is block
        Lanczos, a few n k numbers; its products read a matrix that is written down once up to
        10,000 points, and are kernel sums beyond. None takes `dense` up to 1,500 points (10,000
        where more than a fifth of all pairs are wanted) and `krylov` for more.
    tol : float, default=1e-8
        For `krylov`: stop when every |S v - lambda v| <= tol |lambda_1|.
    max_iter : int, default=200
        For `krylov`: passes over the kernel, each with a block of 8 to 64 columns. A few more are
        done where that is needed to have k vectors at all.
    random_state : int, Generator, RandomState or None
        For `krylov`: draws the start.
    callback : callable, optional
        For `krylov`: called with a `Step` after each pass; stops by returning True.

    Returns
    -------
    EigenPairs
        `values, vectors, residuals, n_iter, method, status`.

    References
    ----------
    Y. Zhou and Y. Saad, Block Krylov-Schur method for large symmetric eigenvalue problems (2008).

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer import linalg
    >>> pairs = linalg.eigenpairs(mc.Linear(), [[3.0], [4.0]], 2)
    >>> pairs.values.round(6) + 0.0
    array([25.,  0.])
    >>> pairs.vectors[:, 0].round(6)
    array([0.6, 0.8])
    """
    S = gram_operator(kernel, X, centred=centred, weights=weights)
    return operator_pairs(S, n_components, method, tol, max_iter, random_state, callback)


def operator_pairs(
    S: GramOperator,
    n_components: int,
    method: str | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    random_state: Any = None,
    callback: Callback | None = None,
) -> EigenPairs:
    """`eigenpairs` of an operator that exists already, with what it has computed."""
    n, k = S.shape[0], positive_int(n_components, "n_components")
    if k > n:
        raise InputError(f"n_components must be at most the number of points, {n}, got {k}")
    positive(tol, "tol")
    positive_int(max_iter, "max_iter")
    if method is not None:
        one_of(method, _METHODS, "method")
    elif n <= DENSE_UP_TO or (n <= _DENSE_AT_MOST and 5 * k > n):
        method = "dense"
    if method == "dense":
        values, vectors, images = _dense(S, k)
        n_iter, status = 0, Status.SOLVED
    else:
        S = S.written() if n <= _DENSE_AT_MOST else S
        with single_threaded_blas():  # threads are for blocks, see `_blocked_products`
            rng = as_generator(random_state)
            run = BlockLanczos(S.matmat, n, Sizes.of(n, k), rng, _known_trace(S))
            run.run(tol, max_iter, callback)
        values, vectors, n_iter, status = run.values, run.vectors, run.n_iter, run.status
        images = S.matmat(vectors)
    residuals = np.linalg.norm(images - values * vectors, axis=0)
    values, vectors, residuals = map(frozen, (values, signed(vectors), residuals))
    return EigenPairs(values, vectors, residuals, n_iter, method or "krylov", status)


def _known_trace(S: GramOperator) -> float | None:
    """The trace, where it is the sum of eigenvalues that are known not to be negative."""
    kind = S.kernel.flags.definiteness
    conditional = S.centred and kind is Definiteness.CONDITIONAL
    return S.trace if conditional or kind is Definiteness.POSITIVE else None


def _dense(S: GramOperator, k: int) -> tuple[Array, Array, Array]:
    """The k largest pairs by LAPACK, descending, and S times the vectors."""
    from scipy.linalg import eigh
    from scipy.linalg.blas import dsymm

    n = S.shape[0]
    matrix = S.dense().T  # in the order of LAPACK
    check_finite(matrix)
    diagonal = matrix.diagonal().copy()
    # for many pairs divide and conquer finds all of them sooner than the other driver some
    most = 4 * k > n
    which: dict[str, Any] = {"driver": "evd"} if most else {"subset_by_index": [n - k, n - 1]}
    with single_threaded_blas() if n <= _SMALL else nullcontext():
        values, vectors = eigh(matrix, lower=True, overwrite_a=True, check_finite=False, **which)
        values = values[: -k - 1 : -1].copy()
        vectors = np.ascontiguousarray(vectors[:, : -k - 1 : -1])
        if most:  # the matrix has become its eigenvectors
            return values, vectors, S.matmat(vectors)
        np.fill_diagonal(matrix, diagonal)  # above it the matrix is as it was
        return values, vectors, dsymm(1.0, matrix, vectors, lower=False)
