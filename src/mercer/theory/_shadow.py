"""Shadows: the kernel whose gradient is a mean shift with another kernel."""

from __future__ import annotations

import math

import numpy as np

from mercer import kernels as mk
from mercer._array import instance
from mercer.engine import profile_at
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels import Constant, Kernel, Matern, Product


def shadow(kernel: Kernel) -> Kernel:
    """Shadow of a radial kernel g: the kernel with profile k(u) = int_u^inf g(v) dv.

    So k'(u) = -g(u), u = |x - y|^2. Any positive multiple is a shadow as well (k' = -c g); this one
    has c = 1, which makes the shadow of a sum the sum of the shadows. The gradient of sum_i a_i
    k(x_i, .) points along the mean shift with weights a_i g(x_i, .). Source: Honeine 2024,
    Definition 1, with the sign corrected.

    Parameters
    ----------
    kernel : Kernel
        g: a Gaussian, Laplace, Matern, rational quadratic, inverse multiquadric or uniform kernel,
        or a sum, a positive multiple or a `transform` of such.

        An `UnavailableError` is raised if the integral diverges, or the shadow is not a kernel of
        the library.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.shadow(mc.Gaussian(2.0))
    8.0 * Gaussian(length_scale=2.0)
    >>> mc.theory.shadow(mc.InverseMultiquadric(1.0, 2.0))
    InverseMultiquadric(c=1.0, p=1.0)
    """
    instance(kernel, Kernel, "kernel")
    if not kernel.program.is_translation_invariant:
        raise InputError(f"a shadow belongs to a radial kernel, which {kernel!r} is not")
    match kernel:
        case mk.Sum(left=left, right=right):
            return shadow(left) + shadow(right)
        case (
            Product(left=Constant(value=c), right=other)
            | Product(left=other, right=Constant(value=c))
        ):
            return _times(c, shadow(other))
        case mk.Transformed(kernel=inner, point_map=point_map):
            return shadow(inner).transform(point_map)
        case mk.Gaussian(length_scale=length):
            return 2.0 * length**2 * kernel
        case mk.Laplace(length_scale=length):
            return shadow(Matern(0.5, length))
        case Matern(nu=nu, length_scale=length) if nu < 2.5:
            # with w = z^2: M_(nu + 1)'(w) = -M_nu(w) / (4 nu), where z must be the same:
            # z^2 = 2 nu u / l^2
            return 2.0 * length**2 * Matern(nu + 1.0, length * math.sqrt((nu + 1.0) / nu))
        case mk.InverseMultiquadric(c=c, p=p) if p > 1.0:
            return _times(1.0 / (p - 1.0), mk.InverseMultiquadric(c, p - 1.0))
        case mk.RationalQuadratic(alpha=alpha, length_scale=length) if alpha > 1.0:
            wider = mk.RationalQuadratic(alpha - 1.0, length * math.sqrt(alpha / (alpha - 1.0)))
            return _times(2.0 * alpha * length**2 / (alpha - 1.0), wider)
        case mk.Uniform(rho=rho):
            return mk.Epanechnikov(rho)
    diverges = isinstance(kernel, mk.InverseMultiquadric | mk.RationalQuadratic | Constant)
    if diverges or isinstance(kernel, mk.NegativeDistance):
        raise UnavailableError(
            f"{kernel!r} has no shadow: the integral of its profile diverges; it needs a profile "
            "that falls faster than 1 / u"
        )
    raise UnavailableError(f"no shadow of {kernel!r} is known")


def shadow_constant(k: Kernel, g: Kernel) -> float | None:
    """The number c > 0 with k'(u) = -c g(u) for all u = |x - y|^2 > 0; None if there is none.

    Profiles are compared at 20 values of u per decade from 1e-150 to 1e150, where g is not below
    1e-140 of its largest value there, to nine digits. Source: Honeine 2024, Definition 1, with the
    sign corrected.

    Parameters
    ----------
    k, g : Kernel
        Profiles of one squared distance; k with a derivative.

    Examples
    --------
    The Gaussian is its own shadow, with c = 1 / (2 s^2).

    >>> import mercer as mc
    >>> round(mc.theory.shadow_constant(mc.Gaussian(2.0), mc.Gaussian(2.0)), 12)
    0.125
    >>> mc.theory.shadow_constant(mc.Gaussian(2.0), mc.Gaussian(1.0)) is None
    True
    """
    for name, kernel in (("k", k), ("g", g)):
        instance(kernel, Kernel, name)
        if kernel.program.kind not in ("radial", "constant"):
            raise InputError(f"{kernel!r} is not a profile of one squared distance")
    if k.program.variables != g.program.variables:
        return None  # distances in different metrics, or none
    u = np.logspace(-150.0, 150.0, 6001)
    slope, weight = profile_at(k.program.profile, u, 1)[1], profile_at(g.program.profile, u)[0]
    finite = np.isfinite(slope) & np.isfinite(weight)
    slope, weight = slope[finite], weight[finite]
    seen = np.abs(weight) > 1e-140 * np.abs(weight).max(initial=0.0)
    if not seen.any():
        return None
    with np.errstate(over="ignore"):
        ratio = -slope[seen] / weight[seen]
    c = float(np.median(ratio))
    outside = np.abs(slope[~seen]).max(initial=0.0) > 1e-130 * np.abs(slope[seen]).max()
    if not 0.0 < c < math.inf or outside or np.abs(ratio - c).max() > 1e-9 * c:
        return None
    return c


def _times(factor: float, kernel: Kernel) -> Kernel:
    """A multiple, with leading constants combined."""
    if isinstance(kernel, Product) and isinstance(kernel.left, Constant):
        return _times(factor * kernel.left.value, kernel.right)
    return kernel if factor == 1.0 else factor * kernel
