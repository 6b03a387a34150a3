"""Leading eigenpairs of a Gram operator: by LAPACK, block Lanczos or power iteration."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, frozen, one_of, positive, positive_int
from mercer._checkpoint import checkpointed, generator_state
from mercer._progress import Callback, check_callback, report
from mercer._random import as_generator
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, Kernel
from mercer.linalg._blocked_products import matmul
from mercer.linalg._dense import EPS, all_pairs, check_finite, largest_pairs
from mercer.linalg._inputs import refuses_overflow
from mercer.linalg._lanczos import BlockLanczos
from mercer.linalg._operator import GramOperator

DENSE_UP_TO = 1_500
_DENSE_AT_MOST = 10_000
_METHODS = ("dense", "krylov")
_SMALL = 1_000  # points below which BLAS threads cost more than they gain on a busy machine


@dataclass(frozen=True, eq=False)
class EigenPairs:
    """Leading eigenpairs S v = lambda v of a Gram operator.

    Attributes
    ----------
    values : array of shape (k,)
        Eigenvalues, descending. Those of a positive definite kernel are >= 0 up to rounding.
    vectors : array of shape (n, k)
        Orthonormal columns; the largest entry of each is positive.
    residuals : array of shape (k,)
        |S v - lambda v|.
    n_iter : int
        Passes over the kernel; 0 for `dense`.
    method : str
        `dense`, `krylov` or `power`.
    status : Status

    Examples
    --------
    The linear kernel, centred: variances along the principal axes, times n.

    >>> import mercer as mc
    >>> X = [[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]]
    >>> pairs = mc.linalg.eigenpairs(mc.Linear(), X, 2, centred=True)
    >>> pairs.values.round(6), bool(pairs.residuals.max() < 1e-12)
    (array([16.,  4.]), True)
    """

    values: Array
    vectors: Array
    residuals: Array
    n_iter: int
    method: str
    status: Status

    @classmethod
    def of(
        cls, values: Array, V: Array, images: Array, n_iter: int, method: str, status: Status
    ) -> EigenPairs:
        """Pairs with their residuals from S V, and the sign of each vector."""
        residuals = np.linalg.norm(images - values * V, axis=0)
        return cls(frozen(values), frozen(V * signs(V)), frozen(residuals), n_iter, method, status)


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
        The operator S, as in `GramOperator`; K itself by default.
    method : {None, "dense", "krylov"}
        `dense` forms the matrix for LAPACK: n^2 numbers, n^3 steps. `krylov` is block Lanczos, a
        few n k numbers; its products use a matrix that is formed once for up to 10,000 points, and
        are kernel sums beyond. None takes `dense` up to 1,500 points (10,000 if more than a fifth
        of all pairs are wanted) and `krylov` for more.
    tol : float, default=1e-8
        For `krylov`: stop when every |S v - lambda v| <= tol |lambda_1|.
    max_iter : int, default=200
        For `krylov`: passes over the kernel, each with a block of 8 to 64 columns. A few more are
        done if they are needed to have k vectors at all.
    random_state : int, Generator, RandomState or None
        For `krylov`: draws the starting block.
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
    >>> pairs = mc.linalg.eigenpairs(mc.Linear(), [[3.0], [4.0]], 2)
    >>> pairs.values.round(6) + 0.0
    array([25.,  0.])
    >>> pairs.vectors[:, 0].round(6)
    array([0.6, 0.8])
    """
    S = GramOperator(kernel, X, centred=centred, weights=weights)
    return operator_pairs(S, n_components, method, tol, max_iter, random_state, callback)


@refuses_overflow
def power_iteration(
    kernel: Kernel,
    X: Any,
    *,
    centred: bool = False,
    weights: Any = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    random_state: Any = None,
    callback: Callback | None = None,
) -> EigenPairs:
    """Power iteration v <- S v / |S v| for the eigenvalue of largest modulus.

    Each step is one kernel sum, O(n^2), and the error of v falls by the factor
    |lambda_2 / lambda_1|. For a positive definite kernel v'Sv never falls. If the two eigenvalues
    are close, `eigenpairs` needs far fewer steps.

    Parameters
    ----------
    kernel, X, centred, weights, random_state, callback
        As in `eigenpairs`.
    tol : float, default=1e-6
        Stop when |S v - lambda v| <= tol |lambda|.
    max_iter : int, default=1000

    Returns
    -------
    EigenPairs
        One pair.

    References
    ----------
    A. Rudi and P. Gaillard, Kernel methods (lecture notes, 2021), section 4.

    Examples
    --------
    >>> import mercer as mc
    >>> pair = mc.linalg.power_iteration(mc.Linear(), [[3.0], [4.0]], random_state=0)
    >>> pair.values.round(6), pair.vectors[:, 0].round(6), pair.status.name
    (array([25.]), array([0.6, 0.8]), 'CONVERGED')
    """
    S = GramOperator(kernel, X, centred=centred, weights=weights)
    positive(tol, "tol")
    positive_int(max_iter, "max_iter")
    check_callback(callback)
    check_finite(S.own)
    v = as_generator(random_state).standard_normal(S.shape[0])
    v /= np.linalg.norm(v)
    status = Status.MAX_ITER
    for n_iter in range(1, max_iter + 1):
        image = S @ v
        value = float(v @ image)
        residual = float(np.linalg.norm(image - value * v))
        size = float(np.linalg.norm(image))
        if residual <= tol * abs(value) or size == 0.0:
            status = Status.CONVERGED
            break
        if report("power iteration", n_iter, residual / size, callback=callback):
            status = Status.STOPPED
            break
        if n_iter < max_iter:
            v = image / size
    return EigenPairs.of(np.array([value]), v[:, None], image[:, None], n_iter, "power", status)


@refuses_overflow
def operator_pairs(
    S: GramOperator,
    n_components: int,
    method: str | None,
    tol: float,
    max_iter: int,
    random_state: Any,
    callback: Callback | None,
) -> EigenPairs:
    """`eigenpairs` of an existing operator, which reuses what it has computed."""
    n, k = S.shape[0], positive_int(n_components, "n_components")
    if k > n:
        raise InputError(f"n_components must be at most the number of points, {n}, got {k}")
    positive(tol, "tol")
    positive_int(max_iter, "max_iter")
    check_callback(callback)
    if method is not None:
        one_of(method, _METHODS, "method")
    elif n <= DENSE_UP_TO or (n <= _DENSE_AT_MOST and 5 * k > n):
        method = "dense"
    if method == "dense":
        values, vectors, images = _dense(S, k)
        return EigenPairs.of(values, vectors, images, 0, "dense", Status.SOLVED)
    check_finite(S.own)
    S = S.written() if n <= _DENSE_AT_MOST else S
    with single_threaded_blas():  # threads are for blocks, see `_blocked_products`
        kind = S.kernel.flags.definiteness
        conditional = S.centred and kind is Definiteness.CONDITIONAL
        # the sum of the eigenvalues, where it is known that none is negative
        trace = S.trace if conditional or kind is Definiteness.POSITIVE else None
        rng = as_generator(random_state)
        seed = generator_state(rng) if random_state is not None else None
        problem = S.kernel, S.points, S.centred, S.weights, k, tol, seed
        place = checkpointed("eigenvectors", *problem)
        run = BlockLanczos(S.matmat, n, k, rng, trace)
        run.run(tol, max_iter, callback, place)
    images = S.matmat(run.vectors)
    return EigenPairs.of(run.values, run.vectors, images, run.n_iter, "krylov", run.status)


def _dense(S: GramOperator, k: int) -> tuple[Array, Array, Array]:
    """The k largest pairs by LAPACK, descending, and S times the vectors."""
    report("eigenvectors")
    n, K = S.shape[0], S.dense()
    with single_threaded_blas() if n <= _SMALL else nullcontext():
        if 4 * k <= n:  # for more pairs it is faster to find all
            values, vectors = largest_pairs(K, k)
            values, vectors = values[::-1], np.ascontiguousarray(vectors[:, ::-1])
            images = matmul(K, vectors)
            if _are_pairs(values, vectors, images, k, max(K.max(), -K.min())):
                return values, vectors, images
        values, vectors = all_pairs(K)
        values, vectors = values[: -k - 1 : -1], np.ascontiguousarray(vectors[:, : -k - 1 : -1])
    return values, vectors, S.matmat(vectors)


def _are_pairs(values: Array, V: Array, images: Array, k: int, largest: float) -> bool:
    """Whether these are k orthonormal eigenvectors, to rounding; `largest` is max |S_ij|."""
    if len(values) < k:
        return False
    slack = 100.0 * len(V) * EPS
    gaps = np.abs(V.T @ V - np.eye(k)), np.abs(images - values * V)
    return bool(gaps[0].max() <= slack and gaps[1].max() <= slack * largest)


def signs(V: Array) -> Array:
    """1 or -1 for each column, such that its largest entry in absolute value becomes positive."""
    size = np.abs(V)
    # the first of entries that are equal to rounding, so that symmetric vectors have a sign too
    first = np.argmax(size > (1.0 - 1e-6) * size.max(axis=0), axis=0)
    return np.where(V[first, np.arange(V.shape[1])] < 0, -1.0, 1.0)
