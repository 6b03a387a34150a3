"""Kernel PCA: the affine subspace of H that holds most of the scatter of the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, as_weights, positive_int
from mercer._errors import InputError
from mercer._progress import Callback
from mercer._threads import single_threaded_blas
from mercer.kernels import Kernel
from mercer.linalg import EigenPairs, eigenpairs, gram_operator, nystrom
from mercer.space import Element, Subspace

_ALL_AT_MOST = 10_000  # points whose eigenvalues are all computed
_ROUNDING = 1e-12  # of the largest eigenvalue: below, a direction is noise of the arithmetic
_FIRST = 32  # components that are tried first where a share of the scatter is wanted


def kernel_pca(
    kernel: Kernel,
    X: Any,
    n_components: float | None = None,
    *,
    weights: Any = None,
    centred: bool = True,
    n_landmarks: int | None = None,
    rule: str = "uniform",
    method: str | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Subspace:
    """Return the affine subspace mu + span(f_1, ..., f_r) nearest to the features of X.

    With weights w that sum to one, mu = sum_i w_i k(x_i, .), and the f_l are the leading unit
    eigenvectors of the scatter sum_i weights_i (k(x_i, .) - mu) (k(x_i, .) - mu)'. Its eigenvalues
    are those of the centred Gram matrix; divided by sum(weights) they are variances.

    Parameters
    ----------
    kernel : Kernel
        Positive definite; conditionally so is enough where `centred`.
    X : array_like of shape (n, d), or whatever the kernel's domain holds
    n_components : int, float or None
        A number r >= 1; or a share in (0, 1) of the scatter to be held; or None for every direction
        whose eigenvalue is not rounding. Fewer come back where the features span fewer.
    weights : array_like of shape (n,), optional
        Weights >= 0; a weight of 2 is a row that stands twice.
    centred : bool, default=True
        False takes the origin 0 of H in place of mu.
    n_landmarks : int, optional
        Work in the span of the features of so many landmarks (Nystrom): O(n m^2) steps and n m
        numbers, and a subspace that needs only the landmarks. What of the scatter they cannot see
        is reported as `plane.neglected`.
    rule : {"uniform", "kmeans", "leverage", "pivoted"}
        How landmarks are chosen, see `mercer.linalg.nystrom`.
    method : {None, "dense", "krylov"}
        The eigen-solver without landmarks, see `mercer.linalg.eigenpairs`; None chooses.
    tol, max_iter, random_state, callback
        For `krylov`; `random_state` also draws landmarks.

    Returns
    -------
    Subspace
        With `eigenvalues`, descending; `total`, the whole scatter; and `neglected`, what of it the
        landmarks cannot see (0 without landmarks).

    References
    ----------
    SPEC H1, H2; ERRATA 001-4 and 003-4. B. Scholkopf, A. Smola and K.-R. Muller, Nonlinear
    component analysis as a kernel eigenvalue problem, 1998.

    Examples
    --------
    The linear kernel gives principal components, the mean included.

    >>> import mercer as mc
    >>> X = [[1.0, 0.0], [3.0, 0.0], [2.0, 1.0], [2.0, -1.0], [5.0, 0.0]]
    >>> plane = mc.kernel_pca(mc.Linear(), X, 1)
    >>> plane.eigenvalues.round(2), round(plane.total, 2)
    (array([9.2]), 11.2)
    >>> mc.preimage(plane.project(mc.feature(mc.Linear(), [[4.0, 1.0]]))).points.round(2)
    array([[4., 0.]])
    """
    _check_number(n_components)
    settings = {"tol": tol, "max_iter": max_iter, "callback": callback}
    if n_landmarks is not None:
        return _from_landmarks(
            kernel, X, n_components, weights, centred, n_landmarks, rule, random_state
        )
    S = gram_operator(kernel, X, centred=centred, weights=weights)
    total, n = S.trace, S.shape[0]
    most = n - 1 if centred and n > 1 else n

    def pairs(k: int) -> EigenPairs:
        return eigenpairs(
            kernel, S.points, k, centred=centred, weights=weights, method=method,
            random_state=random_state, **settings,  # type: ignore[arg-type]
        )  # fmt: skip

    found = _enough(pairs, n_components, most, total)
    values, vectors = _kept(found.values, found.vectors, n_components, total)
    coef = vectors / np.sqrt(values)
    if weights is not None:
        coef *= np.sqrt(np.asarray(weights, dtype=np.float64))[:, None]
    share = as_weights(weights, n)
    if centred:
        coef -= np.outer(share, coef.sum(axis=0))
    origin = Element(kernel, S.points, share if centred else np.zeros(n))
    directions = Element(kernel, S.points, coef)
    return Subspace(origin, directions, eigenvalues=values, total=total)


def _check_number(n_components: Any) -> None:
    if n_components is None:
        return
    if isinstance(n_components, float | np.floating):
        if not 0.0 < n_components < 1.0:
            raise InputError(
                f"a share n_components must lie in (0, 1), got {float(n_components)!r}; give an "
                "integer for a number of components"
            )
    else:
        positive_int(n_components, "n_components")


def _enough(pairs: Any, n_components: Any, most: int, total: float) -> EigenPairs:
    """Eigenpairs until there are as many as asked for, or they hold the share asked for."""
    if n_components is None:
        if most > _ALL_AT_MOST:
            raise InputError(
                f"all components of more than {_ALL_AT_MOST} points need all eigenvalues; give "
                "n_components, or n_landmarks"
            )
        return pairs(most)  # type: ignore[no-any-return]
    if not isinstance(n_components, float | np.floating):
        return pairs(min(int(n_components), most))  # type: ignore[no-any-return]
    k = min(_FIRST, most)
    while True:
        found: EigenPairs = pairs(k)
        if k == most or found.values.sum() >= n_components * total:
            return found
        k = min(4 * k, most)


def _kept(values: Array, vectors: Array, n_components: Any, total: float) -> tuple[Array, Array]:
    """Directions above rounding, and no more than the share asks for."""
    kept = values > _ROUNDING * max(float(values[0]), 0.0)
    if not kept.any():
        raise InputError("all points have the same feature: there is no direction of scatter")
    if isinstance(n_components, float | np.floating):
        before = np.concatenate([[0.0], np.cumsum(values)[:-1]])
        kept &= before < n_components * total
    return values[kept], vectors[:, kept]


def _from_landmarks(
    kernel: Kernel,
    X: Any,
    n_components: Any,
    weights: Any,
    centred: bool,
    n_landmarks: int,
    rule: str,
    random_state: Any,
) -> Subspace:
    """PCA of the features of X projected on the span of those of the landmarks.

    Their coordinates in an orthonormal basis of that span are the rows of L, and the basis is
    sum_j (T'^-1)_jl k(z_j, .), so everything is r x r after one pass over L.
    """
    from scipy.linalg import solve_triangular

    low = nystrom(kernel, X, n_landmarks, rule=rule, random_state=random_state)
    L, n = low.factor, low.factor.shape[0]
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    share = as_weights(weights, n)
    mean = share @ L if centred else np.zeros(L.shape[1])
    scatter = (L * w[:, None]).T @ L - w.sum() * np.outer(mean, mean)
    with single_threaded_blas():
        values, vectors = np.linalg.eigh(scatter)
    values, vectors = values[::-1], vectors[:, ::-1]
    own = kernel.diag(kernel.points(X)).astype(np.float64)
    lost = float(w @ np.maximum(own - np.einsum("ij,ij->i", L, L), 0.0))
    total = float(values.sum()) + lost
    if n_components is not None and not isinstance(n_components, float | np.floating):
        values, vectors = values[:n_components], vectors[:, :n_components]
    values, vectors = _kept(values, vectors, n_components, total)
    coef = solve_triangular(low.triangle.T, np.column_stack([vectors, mean]), lower=False)
    origin = Element(kernel, low.landmarks, coef[:, -1])
    directions = Element(kernel, low.landmarks, coef[:, :-1])
    return Subspace(origin, directions, eigenvalues=values, total=total, neglected=lost)
