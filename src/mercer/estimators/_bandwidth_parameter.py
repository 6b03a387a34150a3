"""The parameters `kernel` and `bandwidth` of KernelDensity and MeanShift."""

from __future__ import annotations

from typing import Any

from mercer._array import Array, Points, positive
from mercer.exceptions import InputError
from mercer.kernels import Epanechnikov, Gaussian, Kernel, Laplace, Uniform
from mercer.methods.density._adaptive_density import stretched
from mercer.methods.density._bandwidth import BANDWIDTH_RULES, density_scale
from mercer.methods.modes._scale_space import scale_space

_NAMES: dict[str, Kernel] = {
    "auto": Gaussian(1.0),
    "gaussian": Gaussian(1.0),
    "epanechnikov": Epanechnikov(1.0),
    "tophat": Uniform(1.0),
    "exponential": Laplace(1.0),
}
BANDWIDTHS = (*BANDWIDTH_RULES, "stable")


def density_kernel(
    kernel: Any,
    bandwidth: Any,
    X: Array | Points,
    weights: Array | None,
    *,
    for_mean_shift: bool = False,
) -> Kernel:
    """Return the kernel that the two parameters specify, given the rows.

    A bandwidth is a length; a rule of `density_scale`; "stable", which is `scale_space(X).best`; or
    "auto": "silverman" for a kernel given by name, and no change for a kernel object. For mean
    shift "flat" is a name too: mean shift with a flat kernel climbs the density of "epanechnikov".
    """
    names = {**_NAMES, "flat": _NAMES["epanechnikov"]} if for_mean_shift else _NAMES
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
    elif bandwidth == "stable":
        h = scale_space(X, kernel=chosen, weights=weights).best
    elif bandwidth in BANDWIDTHS:
        h = density_scale(X, rule=bandwidth, kernel=chosen, weights=weights)
    else:
        known = ", ".join(map(repr, ("auto", *BANDWIDTHS)))
        raise InputError(f"bandwidth must be a number > 0 or a rule ({known}), got {bandwidth!r}")
    return stretched(chosen, h / getattr(chosen, "length_scale", 1.0), X.shape[1])
