"""Radial kernels: a profile of the squared distance u = |x - y|^2."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer._array import non_negative, positive, positive_length
from mercer.engine import Distance, Program, Var, cut, matern
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._measures import (
    GammaMixing,
    InverseGammaMixing,
    MixingMeasure,
    PointMass,
    ScaleMixture,
    SpectralMeasure,
)
from mercer.kernels._parameters import checked, optional, squared_length
from mercer.kernels._profile import recorded

_LARGEST_ALPHA = 1e30  # (1 + w / alpha)^-alpha = exp(-w) to rounding, unless both underflow
_SMALLEST_ALPHA = 1e-8
_MONOTONE = Flags(Definiteness.POSITIVE, True, True, True, True)


class Radial(Kernel):
    """k(x, y) = profile(|x - y|^2). A subclass only has to define `profile`.

    If the profile uses only arithmetic, `np.exp`, `np.log`, `np.sqrt` and powers, its derivatives,
    its logarithm and the fast paths are derived from it. Other functions work too; for derivatives,
    add a method `profile_derivatives(u)` that returns (k'(u), k''(u)).

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import mercer as mc
    >>> @dataclass(frozen=True)
    ... class Cauchy(mc.Radial):
    ...     scale: float = 1.0
    ...     def profile(self, u):
    ...         return 1 / (1 + u / self.scale**2)
    >>> k = Cauchy(2.0)
    >>> k([[0.0]], [[2.0]])
    array([[0.5]])
    >>> k.gradient([[0.0]], [[2.0]])
    array([[[0.25]]])
    """

    @abstractmethod
    def profile(self, u: Any) -> Any:
        """Return k as a function of u = |x - y|^2."""

    def lower(self) -> Program:
        """One squared distance, the recorded profile, and the spectral density if it is known."""
        try:
            spectrum = self.mixing_measure().spectral_density
        except UnavailableError:
            spectrum = None
        return Program((Distance(),), recorded(self, Var(0, nonnegative=True)), spectrum)

    def spectral_measure(self, dim: int) -> SpectralMeasure:
        """Normal frequencies whose variance follows the mixing measure."""
        return ScaleMixture(self.mixing_measure(), dim)


def _length_scale(value: Any, name: str) -> float:
    if np.ndim(value) == 1:
        raise InputError(
            f"{name} must be a single number; for one length per column write "
            "kernel.transform(Scales(lengths))"
        )
    return positive_length(value, name)


def _smoothness(nu: Any, name: str) -> float:
    if np.ndim(nu) != 0 or nu not in (0.5, 1.5, 2.5):
        raise InputError(f"{name} must be 0.5, 1.5 or 2.5, got {nu!r}")
    return float(nu)


@dataclass(frozen=True)
@checked(length_scale=_length_scale)
class Gaussian(Radial):
    """Gaussian kernel k(x, y) = exp(-|x - y|^2 / (2 s^2)).

    Source: Honeine 2024, equations (2) and (8). Other parametrisations: `from_gamma`, `from_width`.

    Parameters
    ----------
    length_scale : float
        The standard deviation s > 0; `median_scale` finds one from data.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Gaussian(1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    length_scale: float = 1.0

    flags = _MONOTONE

    @classmethod
    def from_gamma(cls, gamma: float) -> Gaussian:
        """Return exp(-gamma |x - y|^2), as scikit-learn writes it: s = 1 / sqrt(2 gamma)."""
        return cls(math.sqrt(0.5 / positive(gamma, "gamma")))

    @classmethod
    def from_width(cls, width: float) -> Gaussian:
        """Return exp(-|x - y|^2 / width^2): s = width / sqrt(2)."""
        return cls(float(positive(width, "width") / np.sqrt(2.0)))

    @property
    def gamma(self) -> float:
        """1 / (2 s^2)."""
        return 0.5 / self.length_scale**2

    def profile(self, u: Any) -> Any:
        return np.exp(-self.gamma * u)

    def mixing_measure(self) -> MixingMeasure:
        """All mass at t = 1 / (2 s^2)."""
        return PointMass(self.gamma)


@dataclass(frozen=True)
@checked(length_scale=_length_scale)
class Laplace(Radial):
    """Laplace (exponential) kernel k(x, y) = exp(-|x - y| / l), with the Euclidean distance.

    The profile's slope is infinite at x = y, so elements have cusps at their points. scikit-learn's
    `laplacian_kernel` uses the sum of absolute differences and is a different kernel for d > 1.
    Source: Honeine and Richard 2011, Table 1. Other parametrisations: `from_gamma`, `from_rate`.

    Parameters
    ----------
    length_scale : float
        The length l > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Laplace(2.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.0821]])
    """

    length_scale: float = 1.0

    flags = _MONOTONE

    @classmethod
    def from_gamma(cls, gamma: float) -> Laplace:
        """Return exp(-gamma |x - y|): l = 1 / gamma."""
        return cls(1.0 / positive(gamma, "gamma"))

    @classmethod
    def from_rate(cls, rate: float, bandwidth: float) -> Laplace:
        """Return exp(-rate |x - y| / bandwidth): l = bandwidth / rate."""
        return cls(positive(bandwidth, "bandwidth") / positive(rate, "rate"))

    def profile(self, u: Any) -> Any:
        return np.exp(-np.sqrt(u) / self.length_scale)

    def mixing_measure(self) -> MixingMeasure:
        """The Levy distribution, inverse Gamma with shape 1/2 and scale 1 / (4 l^2)."""
        return InverseGammaMixing(0.5, 0.25 / self.length_scale**2)


@dataclass(frozen=True)
@checked(nu=_smoothness, length_scale=_length_scale)
class Matern(Radial):
    """Matern kernel; nu says how smooth its functions are.

    With z = sqrt(2 nu) |x - y| / l: exp(-z) for nu = 1/2 (which is `Laplace`), (1 + z) exp(-z) for
    nu = 3/2 and (1 + z + z^2 / 3) exp(-z) for nu = 5/2.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}
    length_scale : float
        The length l > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Matern(1.5, 2.0)([[0.0]], [[1.0]]).round(4)
    array([[0.7849]])
    """

    nu: float = 1.5
    length_scale: float = 1.0

    flags = _MONOTONE

    def profile(self, u: Any) -> Any:
        w = (2.0 * self.nu / self.length_scale**2) * u
        return np.exp(-np.sqrt(w)) if self.nu == 0.5 else matern(w, self.nu)

    def mixing_measure(self) -> MixingMeasure:
        """Inverse Gamma with shape nu and scale nu / (2 l^2)."""
        return InverseGammaMixing(self.nu, 0.5 * self.nu / self.length_scale**2)


@dataclass(frozen=True)
@checked(alpha=positive, length_scale=_length_scale)
class RationalQuadratic(Radial):
    """Rational quadratic kernel k(x, y) = (1 + |x - y|^2 / (2 alpha l^2))^-alpha.

    A mixture of Gaussians of all scales; for large alpha the Gaussian of length scale l.

    Parameters
    ----------
    alpha : float
        Exponent between 1e-8 and 1e30.
    length_scale : float
        The length l > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.RationalQuadratic(1.0, 1.0)([[0.0]], [[2.0]]).round(4)
    array([[0.3333]])
    """

    alpha: float = 1.0
    length_scale: float = 1.0

    flags = _MONOTONE

    def __post_init__(self) -> None:
        if self.alpha > _LARGEST_ALPHA:
            raise InputError(
                f"alpha must be at most {_LARGEST_ALPHA:g}, got {self.alpha!r}; use "
                f"Gaussian({self.length_scale!r}), which is equal to rounding"
            )
        if self.alpha < _SMALLEST_ALPHA:
            raise InputError(
                f"alpha must be at least {_SMALLEST_ALPHA:g}, got {self.alpha!r}: nearly constant"
            )
        rate = 2.0 * self.alpha * self.length_scale**2
        positive_length(rate, "2 alpha length_scale^2", limit=1e150)

    def profile(self, u: Any) -> Any:
        return (1.0 + u / (2.0 * self.alpha * self.length_scale**2)) ** -self.alpha

    def mixing_measure(self) -> MixingMeasure:
        """Gamma with shape alpha and rate 2 alpha l^2."""
        return GammaMixing(self.alpha, 2.0 * self.alpha * self.length_scale**2)


@dataclass(frozen=True)
@checked(c=partial(positive_length, limit=1e100), p=positive)
class InverseMultiquadric(Radial):
    """Inverse multiquadric kernel k(x, y) = (c + |x - y|^2)^-p, also called inverse quadratic.

    Source: Honeine 2024, equation (10).

    Parameters
    ----------
    c : float
        Offset > 0; a squared length.
    p : float
        Exponent > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.InverseMultiquadric(1.0, 0.5)([[0.0]], [[0.0], [3.0]]).round(4)
    array([[1.    , 0.3162]])
    """

    c: float = 1.0
    p: float = 0.5

    flags = _MONOTONE

    def __post_init__(self) -> None:
        digits = -(self.p + 2.0) * math.log10(self.c)  # of k''(0) ~ c^(-p - 2)
        if digits > 303.0 or self.p > _LARGEST_ALPHA:
            raise InputError(
                f"c^-p leaves the range of numbers for c = {self.c!r} and p = {self.p!r}; use "
                "RationalQuadratic(alpha=p), which is 1 at distance 0"
            )

    def profile(self, u: Any) -> Any:
        return (self.c + u) ** -self.p

    def mixing_measure(self) -> MixingMeasure:
        """Gamma with shape p and rate c, of mass c^-p."""
        return GammaMixing(self.p, self.c, self.c**-self.p)


@dataclass(frozen=True)
@checked(c=squared_length, rho=optional(squared_length))
class Epanechnikov(Radial):
    """Epanechnikov kernel k(x, y) = c - |x - y|^2 inside the window |x - y|^2 <= rho, else 0.

    Neither positive definite nor conditionally so: elements have no norm. Mean shift and pre-images
    use only its slope. With c = rho (the default) the profile is continuous and convex, so their
    steps never increase the objective. Source: Honeine 2024, equation (11) and appendix A; Example
    6 wrongly calls it positive definite, and Theorem 18 needs c = rho.

    Parameters
    ----------
    c : float
        Height > 0 at distance zero, from 1e-150 to 1e150.
    rho : float or None
        Squared radius > 0 of the window, in the same range; None means c.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Epanechnikov(1.0)([[0.0]], [[0.5], [2.0]])
    array([[0.75, 0.  ]])
    """

    c: float = 1.0
    rho: float | None = None

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Indefinite; convex only if the profile does not jump."""
        return Flags(Definiteness.INDEFINITE, self.rho in (None, self.c), False, None)

    def profile(self, u: Any) -> Any:
        return cut((self.c if self.rho is None else self.rho) - u, self.c - u)


@dataclass(frozen=True)
@checked(rho=squared_length)
class Uniform(Radial):
    """Uniform kernel k(x, y) = 1 inside the window |x - y|^2 <= rho, else 0.

    The flat kernel of mean shift: steps are means of the points in the window. Minus the slope of
    `Epanechnikov(c=rho)`, its shadow. Not positive definite: elements have no norm. A pair on the
    border may fall on either side by rounding. Source: Honeine 2024, Definition 1, corrected.

    Parameters
    ----------
    rho : float
        Squared radius > 0 of the window, from 1e-150 to 1e150.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Uniform(1.0)([[0.0]], [[0.5], [2.0]])
    array([[1., 0.]])
    """

    rho: float = 1.0
    flags = Flags(Definiteness.INDEFINITE, False, False, None)

    def profile(self, u: Any) -> Any:
        return cut(self.rho - u, 1.0 + 0.0 * u)  # with u, so that the compiled core accepts it


@dataclass(frozen=True)
@checked(p=positive, c=non_negative)
class NegativeDistance(Radial):
    """Negative distance kernel k(x, y) = c - |x - y|^p.

    Conditionally positive definite exactly for 0 < p <= 2: differences of mean embeddings have a
    norm (at p = 1 it is the energy distance), single features do not. Source: Honeine 2024,
    section 2, with the powers restricted to p <= 2.

    Parameters
    ----------
    p : float
        Exponent > 0.
    c : float
        Offset >= 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.NegativeDistance()([[0.0]], [[2.0]])
    array([[-2.]])
    """

    p: float = 1.0
    c: float = 0.0

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Conditional up to p = 2, where the profile -u^(p/2) is convex too."""
        kind = Definiteness.CONDITIONAL if self.p <= 2.0 else Definiteness.INDEFINITE
        return Flags(kind, self.p <= 2.0, False, None)

    def profile(self, u: Any) -> Any:
        return self.c - u ** (self.p / 2.0)
