"""Landmarks: a few points that stand for all of them, by rules of the kernel and the points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from mercer import engine
from mercer._array import Array, Points, is_sparse, positive, positive_int
from mercer._random import as_generator
from mercer._threads import map_threads, single_threaded_blas
from mercer.engine import n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._cholesky import lower_root
from mercer.linalg._inputs import double_points, require_definite
from mercer.linalg._pivoted_cholesky import pivoted_cholesky

_BLOCK = 1024  # points whose scores are computed at once
_LLOYD = 10  # iterations of k-means: landmarks need not be optimal


Landmarks: TypeAlias = tuple[Any, Array | None]
"""Points, and their row numbers where they are rows of X."""

Rule: TypeAlias = Callable[[Kernel, Any, int, np.random.Generator], Landmarks]


def uniform(kernel: Kernel, X: Any, size: int, rng: np.random.Generator) -> Landmarks:  # noqa: ARG001
    """Rows drawn without replacement."""
    index = rng.choice(n_rows(X), size, replace=False)
    return X[index], index


def pivoted(kernel: Kernel, X: Any, size: int, rng: np.random.Generator) -> Landmarks:  # noqa: ARG001
    """The pivots of `pivoted_cholesky`: greedy, and the same every time."""
    low = pivoted_cholesky(kernel, Points(X, kernel.domain), max_rank=size, tol=0.0)
    return X[low.pivots], low.pivots


def leverage(kernel: Kernel, X: Any, size: int, rng: np.random.Generator) -> Landmarks:
    """Rows drawn without replacement, with probabilities proportional to their leverage.

    The penalty of the scores is what a first uniform sample leaves of the trace, for each landmark:
    then about as many directions count as there are landmarks.
    """
    n = n_rows(X)
    first = rng.choice(n, size, replace=False)
    left = _unexplained(kernel, X, first, 0.0)
    penalty = float(left.sum()) / size
    own = engine.diagonal(kernel.program, X).astype(np.float64)
    if penalty <= 1e-14 * float(own.sum()):  # the sample already explains everything
        return X[first], first
    scores = np.clip(_unexplained(kernel, X, first, penalty * size / n) / penalty, 1e-12, 1.0)
    index = rng.choice(n, size, replace=False, p=scores / scores.sum())
    return X[index], index


def kmeans(kernel: Kernel, X: Any, size: int, rng: np.random.Generator) -> Landmarks:
    """Centres of k-means, started by k-means++, where the kernel measures distances.

    A kernel on mapped points is clustered there; centres are means of the original points.
    """
    from sklearn.cluster import KMeans

    if not kernel.domain.is_vector or is_sparse(X):
        raise InputError('rule="kmeans" needs dense points that are vectors; use another rule')
    maps = {getattr(v, "maps", ()) for v in kernel.program.variables}
    Z = engine.apply_all(maps.pop() if len(maps) == 1 else (), X)
    distinct = np.unique(Z, axis=0).shape[0]
    seed = int(rng.integers(2**31 - 1))
    model = KMeans(min(size, distinct), n_init=1, max_iter=_LLOYD, random_state=seed)
    labels = model.fit(Z).labels_
    counts = np.bincount(labels)
    sums = np.zeros((counts.size, X.shape[1]))
    np.add.at(sums, labels, X)
    return (sums / np.maximum(counts, 1)[:, None])[counts > 0], None


RULES: dict[str, Rule] = {
    "uniform": uniform,
    "kmeans": kmeans,
    "leverage": leverage,
    "pivoted": pivoted,
}


def leverage_scores(
    kernel: Kernel, X: Any, penalty: float, *, n_sketch: int | None = None, random_state: Any = None
) -> Array:
    """Return ridge leverage scores, l_i = [K (K + penalty I)^-1]_ii, approximately.

    From s points J drawn uniformly,

        l_i ~ (k(x_i, x_i) - k_iJ (K_JJ + (s/n) penalty I)^-1 k_Ji) / penalty,

    clipped to [0, 1]: what ridge regression on J leaves of the feature of x_i. With s = n the
    formula is exact. The scores sum to the effective dimension, the number of directions that a
    penalty of this size leaves free.

    Parameters
    ----------
    kernel : Kernel
        Not known to be indefinite.
    X : array_like of shape (n, d), or other points of the kernel's domain
    penalty : float
        > 0.
    n_sketch : int or None
        The number s of points in J; None for n, the exact scores at O(n^3).
    random_state : int, Generator, RandomState or None
        Draws J.

    Returns
    -------
    array of shape (n,)

    References
    ----------
    Alaoui, Mahoney (2015), Fast randomized kernel ridge regression with statistical guarantees;
    Musco, Musco (2017), Recursive sampling for the Nystrom method.

    Examples
    --------
    A point that stands alone has more leverage than one of a pair.

    >>> import mercer as mc
    >>> from mercer import linalg
    >>> linalg.leverage_scores(mc.Gaussian(1.0), [[0.0], [0.0], [9.0]], 0.5).round(4)
    array([0.4   , 0.4   , 0.6667])
    """
    require_definite(kernel, "leverage_scores")
    points = double_points(kernel, X)
    positive(penalty, "penalty")
    n = n_rows(points)
    s = n if n_sketch is None else min(n, positive_int(n_sketch, "n_sketch"))
    J = np.arange(n) if s == n else as_generator(random_state).choice(n, s, replace=False)
    with single_threaded_blas():
        left = _unexplained(kernel, points, J, penalty * s / n)
    return np.clip(left / penalty, 0.0, 1.0)


def _unexplained(kernel: Kernel, X: Any, J: Array, ridge: float) -> Array:
    """k(x_i, x_i) - k_iJ (K_JJ + ridge I)^-1 k_Ji, shape (n,)."""
    from scipy.linalg import solve_triangular

    program, Z = kernel.program, X[J]
    W = engine.gram(program, Z, Z).astype(np.float64)
    L, _ = lower_root(W + ridge * np.eye(len(W)))
    left = engine.diagonal(program, X).astype(np.float64)

    def explain(rows: slice) -> None:
        C = engine.gram(program, Z, X[rows]).astype(np.float64)
        V = solve_triangular(L, C, lower=True, overwrite_b=True, check_finite=False)
        left[rows] -= np.einsum("ij,ij->j", V, V)

    map_threads(explain, list(pieces(n_rows(X), _BLOCK)))
    return np.maximum(left, 0.0)
