"""Kernel PCA: the principal subspace of the features of points."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Points, as_weights
from mercer._progress import Callback
from mercer.engine import diagonal
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg import EigenPairs, GramOperator
from mercer.linalg._eigen import operator_pairs
from mercer.linalg._inputs import raw_weights
from mercer.methods.pca._components import check_number, kept, signs
from mercer.methods.pca._landmark_pca import LandmarkScatter
from mercer.space import Element, Subspace

_MANY = 10_000  # points whose Gram matrix fits in memory (800 MB) and has all eigenvalues computed
_FIRST = 32  # components that are tried first if a share of the scatter is wanted


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
        Positive definite; conditionally positive definite is enough if `centred`.
    X : array_like of shape (n, d), or points of the kernel's domain
    n_components : int, float or None
        A number r >= 1; or a share in (0, 1) of the scatter; or None for every direction whose
        eigenvalue is above rounding. There are fewer if the features span fewer dimensions.
    weights : array_like of shape (n,), optional
        Weights >= 0; a weight of 2 is the same as repeating the row.
    centred : bool, default=True
        False takes the origin 0 of H in place of mu.
    n_landmarks : int, optional
        Work in the span of the features of m landmarks (Nystrom): O(n m^2) operations, n m numbers,
        and a subspace written on the landmarks. `plane.neglected` is the scatter outside the span.
    rule : {"uniform", "kmeans", "leverage", "pivoted"}
        How landmarks are chosen, see `mercer.linalg.nystrom`.
    method : {None, "dense", "krylov"}
        The eigen-solver without landmarks, see `mercer.linalg.eigenpairs`; None chooses.
    tol, max_iter, random_state, callback
        For `krylov`; `random_state` also draws landmarks.

    Returns
    -------
    Subspace
        With `eigenvalues`, descending; `total`, the whole scatter; and `neglected`, the scatter
        outside the span of the landmarks (0 without landmarks).

    References
    ----------
    B. Scholkopf, A. Smola and K.-R. Muller, Nonlinear component analysis as a kernel eigenvalue
    problem, 1998. P. Honeine and C. Richard, A closed-form solution for the pre-image problem in
    kernel-based machines, 2011, Section 2.2, with the mean added.

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
    check_number(n_components)
    if n_landmarks is not None:
        raw = raw_weights(weights, len(kernel.points(X)))
        scatter = LandmarkScatter.choose(kernel, X, n_landmarks, rule, random_state, raw)
        scatter.add(X, raw)
        return scatter.pca(n_components, centred=centred)[0]
    S = GramOperator(kernel, X, centred=centred, weights=weights)
    n = S.shape[0]
    if n <= _MANY:
        S = S.written()
    most = n - 1 if centred and n > 1 else n

    def pairs(k: int) -> EigenPairs:
        return operator_pairs(S, k, method, tol, max_iter, random_state, callback)

    share = isinstance(n_components, float | np.floating)
    if n_components is None and most > _MANY:
        raise InputError(
            f"all components of more than {_MANY} points need all eigenvalues; give "
            "n_components, or n_landmarks"
        )
    k = most if n_components is None else min(_FIRST if share else int(n_components), most)
    found = pairs(k)
    while share and k < most and found.values.sum() < n_components * S.trace:  # type: ignore[operator]
        k = min(4 * k, most)
        found = pairs(k)
    total = S.trace
    own = diagonal(kernel.program, S.points).astype(np.float64)
    size = float(own.sum() if S.weights is None else S.weights @ own)
    values, vectors = kept(found.values, found.vectors, n_components, total, size)
    root = None if S.weights is None else np.sqrt(S.weights)[:, None]
    # coordinates of the rows up to a factor, the same for a weight of 2 and for a repeated row
    at_rows = vectors if root is None else vectors / np.where(root > 0, root, np.inf)
    coef = vectors * signs(at_rows) / np.sqrt(values)
    if root is not None:
        coef *= root
    w = as_weights(weights, n)
    if centred:
        coef -= np.outer(w, coef.sum(axis=0))
    points = Points(S.points, kernel.domain)
    origin = Element(kernel, points, w if centred else np.zeros(n))
    directions = Element(kernel, points, coef)
    offset = coef.T @ S.mean if centred else np.zeros(len(values))
    return Subspace(origin, directions, eigenvalues=values, total=total, offset=offset)
