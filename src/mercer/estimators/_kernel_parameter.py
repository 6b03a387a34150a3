"""The `kernel` parameter of estimators: a kernel, a name that scikit-learn knows, or "auto"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import as_points, as_weights, is_sparse
from mercer.exceptions import InputError
from mercer.kernels import (
    ChiSquare,
    Cosine,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Polynomial,
    Sigmoid,
    median_scale,
)
from mercer.kernels._histogram import NonNegative

_FIXED: dict[str, Callable[[], Kernel]] = {"linear": Linear, "cosine": Cosine}
_WITH_GAMMA: dict[str, Callable[[float], Kernel]] = {
    "rbf": Gaussian.from_gamma,
    "gaussian": Gaussian.from_gamma,
    "poly": lambda gamma: Polynomial.from_gamma(3, gamma, 1.0),
    "polynomial": lambda gamma: Polynomial.from_gamma(3, gamma, 1.0),
    "sigmoid": lambda gamma: Sigmoid.from_gamma(gamma, 1.0),
    "laplace": Laplace.from_gamma,
    "chi2": ChiSquare,
}
_NAMES = ("auto", *_FIXED, *_WITH_GAMMA)


def resolve_kernel(
    kernel: Any, X: Any, *, sample_weight: Any = None, gamma: float | None = None
) -> Kernel:
    """Return the kernel that a `kernel` parameter stands for, given the training points.

    A kernel stands for itself. "auto" is the Gaussian kernel with 2 s^2 = m^2, m the median
    distance between distinct rows (s = 1 where no two rows differ). The other names are
    scikit-learn's, with its formulas and defaults:

    ========================  ==================================  =====================
    name                      k(x, y)                             gamma if None
    ========================  ==================================  =====================
    "rbf", "gaussian"         exp(-gamma |x - y|^2)               1 / n_features
    "laplace"                 exp(-gamma |x - y|)                 1 / n_features
    "poly", "polynomial"      (gamma <x, y> + 1)^3                1 / n_features
    "sigmoid"                 tanh(gamma <x, y> + 1)              1 / n_features
    "chi2"                    exp(-gamma chi2(x, y))              1
    "linear"                  <x, y>                              has none
    "cosine"                  <x, y> / (|x| |y|)                  has none
    ========================  ==================================  =====================

    "laplace" measures the Euclidean distance; it is not scikit-learn's "laplacian", which is
    refused. "precomputed" is for the estimators that support it to catch before they ask.

    Parameters
    ----------
    kernel : Kernel or str
    X : array_like or CSR matrix of shape (n, d)
        Training points; only their number of columns is used, and by "auto" their distances.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows in the median of "auto"; a weight of 2 is a row that stands twice.
    gamma : float, optional
        > 0, for the names that have one. Refused where it would be ignored.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from mercer.estimators._kernel_parameter import resolve_kernel
    >>> round(resolve_kernel("auto", [[0.0], [1.0], [3.0]]).length_scale, 4)  # the median is 2
    1.4142
    >>> resolve_kernel("poly", [[0.0, 1.0]], gamma=0.5)
    Polynomial(degree=3, scale=2.0, offset=1.0)
    """
    if isinstance(kernel, str) and kernel in _WITH_GAMMA:
        if gamma is None:
            gamma = 1.0 if kernel == "chi2" else 1.0 / np.shape(X)[1]
        return _WITH_GAMMA[kernel](gamma)
    chosen = _without_gamma(kernel, X, sample_weight)
    if gamma is not None:
        names = ", ".join(map(repr, _WITH_GAMMA))
        raise InputError(
            f"gamma={gamma!r} would be ignored by kernel={kernel!r}; leave it at None, or use one "
            f"of the kernels that have it: {names}"
        )
    return chosen


def set_kernel_tags(tags: Any, kernel: Any) -> None:
    """Tell scikit-learn which matrices an estimator with this kernel takes."""
    domain = kernel.domain if isinstance(kernel, Kernel) else None
    histogram = kernel == "chi2" or isinstance(domain, NonNegative)
    tags.input_tags.sparse = not histogram
    tags.input_tags.positive_only = histogram
    tags.input_tags.pairwise = isinstance(kernel, str) and kernel == "precomputed"
    if domain is not None and not domain.is_vector:
        tags.input_tags.two_d_array = tags.input_tags.sparse = False


def _without_gamma(kernel: Any, X: Any, sample_weight: Any) -> Kernel:
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in _FIXED:
        return _FIXED[kernel]()
    if isinstance(kernel, str) and kernel == "auto":
        return Gaussian(_auto_length(X, sample_weight))
    if isinstance(kernel, str) and kernel == "laplacian":
        raise InputError(
            'kernel="laplacian" is scikit-learn\'s kernel of the L1 distance, the sum of absolute '
            'differences; here there is kernel="laplace", exp(-gamma |x - y|) with the Euclidean '
            "distance, which is a different kernel for more than one feature"
        )
    names = ", ".join(map(repr, _NAMES))
    cure = "; wrap a function in FromFunction" if callable(kernel) else ""
    raise InputError(
        f"kernel must be a kernel such as Gaussian(1.0), or one of {names}, got {kernel!r}{cure}"
    )


def _auto_length(X: Any, weights: Any) -> float:
    """s with 2 s^2 the squared median distance between distinct rows; 1 where no two differ."""
    X = as_points(X)
    w = as_weights(weights, X.shape[0])
    weights = None if weights is None else np.asarray(weights)
    try:
        return median_scale(X, weights=weights) / float(np.sqrt(2.0))
    except InputError:  # all rows are equal, or, of many, all that it drew
        counted = np.flatnonzero(w > 0)
    apart = counted[_differ(X[counted], X[counted[:1]])]
    if apart.size == 0:
        return 1.0
    rows = np.concatenate([counted[:1], apart])
    weights = None if weights is None else weights[rows]
    try:
        return median_scale(X[rows], weights=weights) / float(np.sqrt(2.0))
    except InputError:  # so near to each other that their squared distances are zero
        return 1.0


def _differ(X: Any, row: Any) -> Any:
    """Whether each row of X differs from a single one, shape (n,)."""
    if not is_sparse(X):
        return (row != X).any(axis=1)
    copies = type(X)(np.ones((X.shape[0], 1))) @ row
    return np.asarray(abs(X - copies).sum(axis=1)).ravel() > 0
