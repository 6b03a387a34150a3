"""Nystrom: low-rank kernel matrices from landmarks, rules to choose landmarks, leverage scores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import (
    Array,
    Points,
    check_same_columns,
    frozen,
    is_sparse,
    one_of,
    positive,
    positive_int,
)  # fmt: skip
from mercer._random import as_generator
from mercer._status import Status
from mercer._threads import map_threads, single_threaded_blas
from mercer.engine import n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._blocked_products import blocks
from mercer.linalg._dense import EPS, check_finite, independent, solve_rows
from mercer.linalg._inputs import double_points, refuses_overflow, require_definite
from mercer.linalg._pivoted_cholesky import INDEFINITE, pivoted_cholesky

_RULES = ("uniform", "kmeans", "leverage", "pivoted")
_LLOYD = 10  # iterations of k-means: landmarks need not be optimal
_TRACE_ROWS = 2_000  # that a trace is estimated from, if more: its size is enough


@dataclass(frozen=True, eq=False)
class Nystrom:
    """Nystrom approximation K ~ L L' = C W^+ C', C = k(X, Z), W = k(Z, Z), for landmarks Z.

    L L' is the Gram matrix of the features of X projected on the span of those of Z, so K - L L' is
    positive semi-definite, and zero on the rows and columns of landmarks that are points of X.

    Attributes
    ----------
    kernel : Kernel
    landmarks : the r landmarks Z; those that are dependent to rounding are left out
    index : array of shape (r,) or None
        Their row numbers in X, if they are rows of X.
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
    >>> low = mc.linalg.nystrom(mc.Linear(), [[1, 0], [0, 3], [2, 0]], 2, rule="pivoted")
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


@refuses_overflow
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
        Positive definite on X.
    X : array_like of shape (n, d), or other points of the kernel's domain
    n_landmarks : int
        The number of landmarks; at most n are used.
    rule : {"uniform", "kmeans", "leverage", "pivoted"}
        How landmarks are chosen: rows at random; centres of k-means (dense vectors only); rows at
        random by approximate ridge leverage scores (see `leverage_scores`, with as many points in
        its sketch, and as penalty the trace that this sketch leaves unexplained, as estimated from
        2,000 rows, divided by their number); the greedy pivots of `pivoted_cholesky`.
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
    >>> X = np.linspace(0.0, 3.0, 200)[:, None]
    >>> low = mc.linalg.nystrom(mc.Gaussian(1.0), X, 8, rule="pivoted")
    >>> low.factor.shape, low.trace_error < 1e-3
    ((200, 8), True)
    >>> np.allclose(low.map(X), low.factor)
    True
    """
    points = double_points(kernel, X)
    checked = Points(points, kernel.domain)
    low = choose_landmarks(kernel, checked, n_landmarks, rule=rule, random_state=random_state)
    with single_threaded_blas():
        L = _features(kernel, points, low.landmarks, low.triangle)
    error = float(unexplained(kernel, points, L).sum())
    return replace(low, factor=frozen(L), trace_error=error)


@refuses_overflow
def choose_landmarks(
    kernel: Kernel, X: Any, n_landmarks: int, *, rule: str = "uniform", random_state: Any = None
) -> Nystrom:
    """As `nystrom`, without the features of X: the factor has no rows, and no trace is missing."""
    require_definite(kernel, "nystrom")
    points = double_points(kernel, X)
    size = min(positive_int(n_landmarks, "n_landmarks"), n_rows(points))
    one_of(rule, _RULES, "rule")
    with single_threaded_blas():  # threads are for blocks, see `_blocked_products`
        Z, index = _landmarks(kernel, points, size, rule, as_generator(random_state))
        order, T = _triangle(kernel, Z)
    status = Status.SOLVED if len(T) == n_rows(Z) else Status.TRUNCATED
    index = None if index is None else frozen(index[order])
    return Nystrom(kernel, Z[order], index, np.zeros((0, len(T))), 0.0, status, frozen(T))


@refuses_overflow
def leverage_scores(
    kernel: Kernel, X: Any, penalty: float, *, n_sketch: int | None = None, random_state: Any = None
) -> Array:
    """Return ridge leverage scores, l_i = [K (K + penalty I)^-1]_ii, approximately.

    From s points J drawn uniformly,

        l_i ~ (k(x_i, x_i) - k_iJ (K_JJ + (s/n) penalty I)^-1 k_Ji) / penalty,

    clipped to [0, 1]: what ridge regression on J leaves unexplained of the feature of x_i. With
    s = n the formula is exact. The scores sum to the effective dimension, the number of directions
    that a penalty of this size leaves free.

    Parameters
    ----------
    kernel, X, random_state
        As in `nystrom`.
    penalty : float
        > 0.
    n_sketch : int or None
        The number s of points in J; None for n, the exact scores at O(n^3).

    Returns
    -------
    array of shape (n,)

    References
    ----------
    Alaoui, Mahoney (2015), Fast randomized kernel ridge regression with statistical guarantees;
    Musco, Musco (2017), Recursive sampling for the Nystrom method.

    Examples
    --------
    An isolated point has more leverage than one of a pair.

    >>> import mercer as mc
    >>> mc.linalg.leverage_scores(mc.Gaussian(1.0), [[0.0], [0.0], [9.0]], 0.5).round(4)
    array([0.4   , 0.4   , 0.6667])
    """
    require_definite(kernel, "leverage_scores")
    points = double_points(kernel, X)
    positive(penalty, "penalty")
    n = n_rows(points)
    s = n if n_sketch is None else min(n, positive_int(n_sketch, "n_sketch"))
    J = np.arange(n) if s == n else as_generator(random_state).choice(n, s, replace=False)
    with single_threaded_blas():
        left = _left_by_ridge(kernel, points, points[J], penalty * s / n)
    return np.clip(left / penalty, 0.0, 1.0)


def _landmarks(
    kernel: Kernel, X: Any, size: int, rule: str, rng: np.random.Generator
) -> tuple[Any, Array | None]:
    if rule == "kmeans":
        return _centres(kernel, X, size, rng), None
    if rule == "pivoted":
        low = pivoted_cholesky(kernel, Points(X, kernel.domain), max_rank=size, tol=0.0)
        return X[low.pivots], low.pivots
    n = n_rows(X)
    index = rng.choice(n, size, replace=False)
    if rule == "leverage":
        # the penalty is the trace that the uniform sample leaves unexplained, per landmark: then
        # about as many directions matter as there are landmarks
        some = np.unique(np.linspace(0, n - 1, _TRACE_ROWS).astype(int))
        left = _left_by_ridge(kernel, X[some], X[index], 0.0)
        penalty = float(left.mean()) * n / size
        own = engine.diagonal(kernel.program, X)
        if penalty > 1e-14 * float(own.sum()):  # else the sample explains everything
            left = _left_by_ridge(kernel, X, X[index], penalty * size / n)
            scores = np.clip(left / penalty, 1e-12, 1.0)
            index = rng.choice(n, size, replace=False, p=scores / scores.sum())
    return X[index], index


def _centres(kernel: Kernel, X: Any, size: int, rng: np.random.Generator) -> Array:
    """Centres of k-means: means of points that are clustered in the kernel's own coordinates."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if not kernel.domain.is_vector or is_sparse(X):
        raise InputError('rule="kmeans" needs dense points that are vectors; use another rule')
    maps = {getattr(v, "maps", ()) for v in kernel.program.variables}
    Z = engine.apply_all(maps.pop() if len(maps) == 1 else (), X)
    distinct = np.unique(Z, axis=0).shape[0]
    seed = int(rng.integers(2**31 - 1))
    model = KMeans(min(size, distinct), n_init=1, max_iter=_LLOYD, random_state=seed)
    with warnings.catch_warnings():  # fewer clusters do no harm
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = model.fit(Z).labels_
    counts = np.bincount(labels)
    sums = np.zeros((counts.size, X.shape[1]))
    np.add.at(sums, labels, X)
    return np.asarray((sums / np.maximum(counts, 1)[:, None])[counts > 0])


def _triangle(kernel: Kernel, Z: Any, ridge: float = 0.0) -> tuple[Array, Array]:
    """Which landmarks are independent to rounding, and T with W + ridge I = T T' for them.

    Features are scaled to length one before they are compared, so that a kernel whose k(x, x)
    varies by orders of magnitude does not lose its small ones.
    """
    if n_rows(Z) == 0:
        return np.zeros(0, dtype=np.intp), np.zeros((0, 0))
    W = np.ascontiguousarray(engine.gram(kernel.program, Z, Z), dtype=np.float64)
    check_finite(W)
    W[np.diag_indices(len(W))] += ridge
    length = np.sqrt(np.maximum(W.diagonal(), 0.0))
    length[length == 0.0] = 1.0
    W /= length[:, None]
    W /= length[None, :]
    order, T = independent(W, max(10, len(W)) * EPS)
    return order, T * length[order][:, None]


def _features(kernel: Kernel, Y: Any, Z: Any, T: Array) -> Array:
    """k(Y, Z) T'^-1, in the memory of k(Y, Z)."""
    if len(T) == 0:
        return np.zeros((n_rows(Y), 0))
    C = np.ascontiguousarray(engine.gram(kernel.program, Y, Z), dtype=np.float64)
    T = np.ascontiguousarray(T)
    map_threads(lambda rows: solve_rows(T, C[rows]), blocks(len(C), len(T) ** 2))
    return C


def unexplained(kernel: Kernel, X: Any, L: Array) -> Array:
    """k(x_i, x_i) - |z_i|^2 >= 0 for the features z_i in the rows of L."""
    own = engine.diagonal(kernel.program, X).astype(np.float64)
    left = own - np.einsum("ij,ij->i", L, L)
    if np.any(left < -INDEFINITE * np.abs(own)):
        raise InputError(
            f"{kernel!r} is not positive definite on these points, so landmarks cannot stand for "
            "them; use a positive definite kernel"
        )
    return np.asarray(np.maximum(left, 0.0))


def _left_by_ridge(kernel: Kernel, X: Any, Z: Any, ridge: float) -> Array:
    """k(x_i, x_i) - k_iZ (K_ZZ + ridge I)^-1 k_Zi, shape (n,)."""
    order, T = _triangle(kernel, Z, ridge)
    return unexplained(kernel, X, _features(kernel, X, Z[order], T))
