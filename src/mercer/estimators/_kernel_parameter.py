"""The parameters `kernel` and `bandwidth` of estimators: values, names and rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import as_points, as_weights, positive
from mercer._chunks import Chunks, sampled
from mercer.exceptions import InputError
from mercer.kernels import (
    ChiSquare,
    Epanechnikov,
    Gaussian,
    Kernel,
    Laplace,
    LaplaceProduct,
    Matern,
    Polynomial,
    Sigmoid,
    Uniform,
    median_scale,
)
from mercer.kernels._coordinates import NonNegative
from mercer.kernels._names import ALIASES, KERNELS
from mercer.methods._rows import distinct_rows
from mercer.methods.density._bandwidth import BANDWIDTH_RULES, density_scale
from mercer.methods.density._density import with_bandwidth
from mercer.methods.modes._scale_space import scale_space

_FROM_GAMMA: dict[str, Callable[[float], Kernel]] = {
    "gaussian": Gaussian.from_gamma,
    "laplace": Laplace.from_gamma,
    "laplacian": LaplaceProduct.from_gamma,
    "matern": lambda gamma: Matern(1.5, 1.0 / positive(gamma, "gamma")),
    "polynomial": lambda gamma: Polynomial.from_gamma(3, gamma, 1.0),
    "sigmoid": lambda gamma: Sigmoid.from_gamma(gamma, 1.0),
    "chi2": ChiSquare,
}
_DENSITY_NAMES: dict[str, Kernel] = {
    "auto": Gaussian(1.0),
    "gaussian": Gaussian(1.0),
    "epanechnikov": Epanechnikov(1.0),
    "tophat": Uniform(1.0),
    "exponential": Laplace(1.0),
}
BANDWIDTHS = (*BANDWIDTH_RULES, "stable")


def resolve_kernel(
    kernel: Any, X: Any, *, sample_weight: Any = None, gamma: float | None = None
) -> Kernel:
    """Return the kernel of a `kernel` parameter, given the training points.

    A kernel is returned as it is. "auto" is the Gaussian kernel with 2 s^2 = m^2, m the median
    distance between distinct rows (s = 1 if no two rows differ). The other names follow
    scikit-learn's formulas and defaults: gamma is 1 / n_features if None, 1 for "chi2". "laplace"
    uses the Euclidean distance, "laplacian" the sum of absolute differences. A gamma that would be
    ignored is refused.
    """
    name = ALIASES.get(kernel, kernel) if isinstance(kernel, str) else None
    if name in _FROM_GAMMA:
        if gamma is None:
            gamma = 1.0 if name == "chi2" else 1.0 / np.shape(X)[1]
        return _FROM_GAMMA[name](gamma)
    if isinstance(kernel, Kernel):
        chosen = kernel
    elif name == "auto":
        chosen = Gaussian(_auto_length(X, sample_weight))
    elif name in KERNELS:
        chosen = KERNELS[name]()
    else:
        names = ", ".join(map(repr, ("auto", *KERNELS, *ALIASES)))
        cure = "; wrap a function in FromFunction" if callable(kernel) else ""
        raise InputError(
            f"kernel must be a kernel such as Gaussian(1.0), or one of {names}, got {kernel!r}"
            + cure
        )
    if gamma is not None:
        names = ", ".join(map(repr, _FROM_GAMMA))
        raise InputError(
            f"gamma={gamma!r} would be ignored by kernel={kernel!r}; leave it at None, or use one "
            f"of the kernels that have it: {names}"
        )
    return chosen


def density_kernel(
    kernel: Any,
    bandwidth: Any,
    X: Any,
    weights: Any,
    *,
    for_mean_shift: bool = False,
) -> Kernel:
    """Return the kernel that the two parameters specify, given the rows.

    A bandwidth is a length; a rule of `density_scale`; "stable", which is `scale_space(X).best`; or
    "auto": "silverman" for a kernel given by name, and no change for a kernel object. For mean
    shift "flat" is a name too: mean shift with a flat kernel climbs the density of "epanechnikov".
    """
    names = _DENSITY_NAMES
    if for_mean_shift:
        names = {**names, "flat": names["epanechnikov"]}
    named = isinstance(kernel, str) and kernel in names
    if not named and not isinstance(kernel, Kernel):
        known = ", ".join(map(repr, names))
        raise InputError(
            f"kernel must be a kernel such as Gaussian(1.0), or one of {known}, got {kernel!r}"
        )
    chosen: Kernel = names[kernel] if named else kernel
    if isinstance(bandwidth, str) and bandwidth == "auto":
        if not named:
            return chosen
        bandwidth = "silverman"
    if not isinstance(bandwidth, str):
        h = positive(bandwidth, "bandwidth")
    elif isinstance(X, Chunks):
        rows, share = sampled(X, weights)
        if weights is None or share is None:
            share = np.full(len(rows), len(X) / len(rows))  # so that the rule counts all rows
        else:
            share = share * (weights.total(np.sum) / share.sum())
        if bandwidth not in ("silverman", "scott", "modes"):
            raise InputError(
                f"bandwidth={bandwidth!r} needs all rows in memory; for rows in pieces give a "
                "number, or 'silverman', 'scott' or 'modes'"
            )
        h = density_scale(rows, rule=bandwidth, kernel=chosen, weights=share)
    elif bandwidth == "stable":
        h = scale_space(X, kernel=chosen, weights=weights).best
    elif bandwidth in BANDWIDTHS:
        h = density_scale(X, rule=bandwidth, kernel=chosen, weights=weights)
    else:
        known = ", ".join(map(repr, ("auto", *BANDWIDTHS)))
        raise InputError(f"bandwidth must be a number > 0 or a rule ({known}), got {bandwidth!r}")
    return with_bandwidth(chosen, h, X.shape[1])


def is_auto(parameter: Any) -> bool:
    """Whether the estimator chooses this parameter itself."""
    return isinstance(parameter, str) and parameter == "auto"


def set_kernel_tags(tags: Any, kernel: Any) -> None:
    """Tell scikit-learn which matrices an estimator with this kernel takes."""
    domain = kernel.domain if isinstance(kernel, Kernel) else None
    named = kernel if isinstance(kernel, str) else None
    histogram = named == "chi2" or isinstance(domain, NonNegative)
    tags.input_tags.sparse = not histogram and named != "laplacian"  # it compares coordinates
    tags.input_tags.positive_only = histogram
    tags.input_tags.pairwise = named == "precomputed"
    if domain is not None and not domain.is_vector:
        tags.input_tags.two_d_array = tags.input_tags.sparse = False


def _auto_length(X: Any, weights: Any) -> float:
    """s with 2 s^2 the squared median distance between distinct rows; 1 if no two rows differ."""
    if isinstance(X, Chunks):
        X, weights = sampled(X, weights)
    X = as_points(X)
    as_weights(weights, X.shape[0])  # raises if they are wrong
    rows, mass = distinct_rows(X, weights)
    if len(mass) < 2:
        return 1.0
    try:
        return median_scale(rows, weights=mass) / float(np.sqrt(2.0))
    except InputError as error:
        raise InputError(
            "rows differ, but so little that their squared distances are zero; rescale the data"
        ) from error
