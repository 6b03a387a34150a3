"""The `kernel` and `bandwidth` of estimators that climb or measure densities."""

from __future__ import annotations

from typing import Any

from mercer._array import Array, Points, positive
from mercer.exceptions import InputError
from mercer.kernels import Epanechnikov, Gaussian, Kernel, Laplace, Uniform
from mercer.methods.density._adaptive_density import stretched
from mercer.methods.density._bandwidth import density_scale
from mercer.methods.modes._scale_space import scale_space

_NAMES: dict[str, Kernel] = {
    "auto": Gaussian(1.0),
    "gaussian": Gaussian(1.0),
    "epanechnikov": Epanechnikov(1.0),
    "tophat": Uniform(1.0),
    "exponential": Laplace(1.0),
}


def density_kernel(
    kernel: Any, bandwidth: Any, X: Array | Points, weights: Array | None, *, climbed: bool = False
) -> Kernel:
    """Return the kernel that the two parameters stand for, given the rows.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel, or a name.
    bandwidth : float or str
        A length, a rule of `density_scale`, or "auto": a kernel that is an object stays as it is,
        one that is a name takes "silverman".
    X, weights
        The training rows.
    climbed : bool
        Whether "flat" is a name too, since the mean shift with a flat kernel is that of
        "epanechnikov", and "stable" a bandwidth, from `scale_space`.
    """
    names = _NAMES if not climbed else {**_NAMES, "flat": _NAMES["epanechnikov"]}
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
    if climbed and isinstance(bandwidth, str) and bandwidth == "stable":
        h = scale_space(X, kernel=chosen, weights=weights).best
    elif isinstance(bandwidth, str):
        h = density_scale(X, rule=bandwidth, kernel=chosen, weights=weights)
    else:
        h = positive(bandwidth, "bandwidth")
    return stretched(chosen, h / getattr(chosen, "length_scale", 1.0), X.shape[1])
