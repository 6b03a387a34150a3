"""Dot-product kernels: a profile of the inner product t = <x, y>, such as a power series."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer._array import as_vector, non_negative, positive, positive_int, positive_length, real
from mercer.engine import Dot, Program, Var
from mercer.exceptions import InputError
from mercer.kernels._domain import Domain, OpenBall, Vectors
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._parameters import checked
from mercer.kernels._profile import recorded

_WHOLE = 64  # exponents up to here are multiplied out by every engine
_scale = partial(positive_length, limit=1e150)


def _degree(value: Any, name: str) -> int:
    degree = positive_int(value, name)
    if degree > 10**18 or int(float(degree)) != degree:
        raise InputError(f"{name} must be at most 10**18, and exact in float64, got {degree}")
    return degree


class DotProduct(Kernel):
    """k(x, y) = profile(<x, y>). A subclass only has to define `profile`.

    Such a kernel is positive definite in every dimension exactly when the profile is a power series
    with non-negative coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> class Cosh(mc.DotProduct):
    ...     def profile(self, t):
    ...         return 0.5 * (np.exp(t) + np.exp(-t))
    >>> Cosh()([[1.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 1.5431]])
    """

    @abstractmethod
    def profile(self, t: Any) -> Any:
        """Return k as a function of t = <x, y>."""

    def lower(self) -> Program:
        """One inner product, and the recorded profile."""
        return Program((Dot(),), recorded(self, Var(0)))


@dataclass(frozen=True)
class Linear(DotProduct):
    """Linear kernel k(x, y) = <x, y>.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    flags = Flags(Definiteness.POSITIVE, True, None, False, False)

    def profile(self, t: Any) -> Any:
        return t


@dataclass(frozen=True)
@checked(degree=_degree, scale=_scale, offset=non_negative)
class Polynomial(DotProduct):
    """Polynomial kernel k(x, y) = (<x, y> / s + c)^p.

    Source: Honeine 2024, equation (B.2). scikit-learn's parametrisation: `from_gamma`.

    Parameters
    ----------
    degree : int
        The degree p >= 1.
    scale : float
        s > 0.
    offset : float
        c >= 0; at 0 the kernel is homogeneous.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Polynomial(2)([[1.0]], [[2.0]])
    array([[9.]])
    """

    degree: int = 3
    scale: float = 1.0
    offset: float = 1.0

    def __post_init__(self) -> None:
        if self.offset > 1.0 and self.degree * math.log10(self.offset) > 300.0:
            raise InputError(
                f"offset^degree, the kernel at the origin, overflows for {self!r}; use a smaller "
                "offset, and a smaller scale in proportion"
            )

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Positive definite; convex on the whole line for even degrees and degree one."""
        convex = True if self.degree == 1 or self.degree % 2 == 0 else None
        return Flags(Definiteness.POSITIVE, convex, None, False, False)

    @classmethod
    def from_gamma(cls, degree: int, gamma: float, coef0: float = 1.0) -> Polynomial:
        """Return (gamma <x, y> + coef0)^degree, as scikit-learn writes it: s = 1 / gamma."""
        return cls(degree, 1.0 / positive(gamma, "gamma"), coef0)

    def profile(self, t: Any) -> Any:
        return (t / self.scale + self.offset) ** self.degree


@dataclass(frozen=True)
@checked(scale=_scale)
class Exponential(DotProduct):
    """Exponential dot-product kernel k(x, y) = exp(<x, y> / s).

    Normalised it is the Gaussian kernel of length scale sqrt(s). Source: Honeine 2024, equation
    (B.3).

    Parameters
    ----------
    scale : float
        s > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Exponential(2.0)([[1.0]], [[2.0]]).round(4)
    array([[2.7183]])
    """

    scale: float = 1.0

    flags = Flags(Definiteness.POSITIVE, True, None, None, True)  # characteristic on bounded sets

    @classmethod
    def from_gamma(cls, gamma: float) -> Exponential:
        """Return exp(gamma <x, y>): s = 1 / gamma."""
        return cls(1.0 / positive(gamma, "gamma"))

    def profile(self, t: Any) -> Any:
        return np.exp(t / self.scale)


@dataclass(frozen=True)
@checked(scale=_scale, offset=real)
class Sigmoid(DotProduct):
    """Sigmoid kernel k(x, y) = tanh(<x, y> / s + c): a tanh neuron used as a kernel.

    Nothing is claimed about its definiteness. For every c the power series of tanh(t + c) has a
    negative coefficient, so for all s and c the kernel is neither positive definite nor
    conditionally so on sets with the origin in their interior. With c < 0 a single point near the
    origin shows this, k(0, 0) = tanh(c) < 0. Otherwise two close points with 2 a tanh(a + c) > 1,
    a = |x|^2 / s, show it. Elsewhere the kernel may be positive definite. Source: Honeine 2024,
    appendix B. scikit-learn's parametrisation: `from_gamma`.

    Parameters
    ----------
    scale : float
        s > 0.
    offset : float
        c, of any sign.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Sigmoid(2.0, 1.0)([[1.0]], [[-2.0], [2.0]]).round(4)
    array([[0.   , 0.964]])
    >>> mc.Sigmoid().flags.is_positive_definite is None
    True
    """

    scale: float = 1.0
    offset: float = 0.0

    flags = Flags(Definiteness.UNKNOWN, False, None, None)

    @classmethod
    def from_gamma(cls, gamma: float, coef0: float = 0.0) -> Sigmoid:
        """Return tanh(gamma <x, y> + coef0), as scikit-learn writes it: s = 1 / gamma."""
        return cls(1.0 / positive(gamma, "gamma"), coef0)

    def profile(self, t: Any) -> Any:
        return np.tanh(t / self.scale + self.offset)


@dataclass(frozen=True)
@checked(scale=_scale)
class Geometric(DotProduct):
    """Geometric kernel k(x, y) = 1 / (1 - <x, y> / s) on the open ball |x|^2 < s.

    The sum of all powers of <x, y> / s, for s = 1 also called Vovk's infinite polynomial
    (`VovkPolynomial` has finitely many). All coefficients are positive, so it is universal on every
    compact part of the ball. Points on the sphere or outside are refused; to find pre-images,
    search in a closed ball inside it (`preimage(psi, region=Ball(origin, radius))`). Source:
    Honeine 2024, appendix B, where the denominator is misprinted with a power.

    Parameters
    ----------
    scale : float
        s > 0, the squared radius of the ball.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Geometric()([[0.5, 0.0]], [[0.4, 0.6]])
    array([[1.25]])
    """

    scale: float = 1.0

    flags = Flags(Definiteness.POSITIVE, True, None, None, True)

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return OpenBall(math.sqrt(self.scale))

    def profile(self, t: Any) -> Any:
        return 1.0 / (1.0 - t / self.scale)


@dataclass(frozen=True)
@checked(degree=_degree)
class VovkPolynomial(DotProduct):
    """Vovk's real polynomial k(x, y) = 1 + t + ... + t^(p-1) = (1 - t^p) / (1 - t), t = <x, y>.

    Computed as a product, which is exact at t = 1 too. `Geometric` has all powers. Source: Honeine
    2024, appendix B, where the denominator is misprinted with a power.

    Parameters
    ----------
    degree : int
        The number p >= 1 of powers; the highest is p - 1.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.VovkPolynomial(3)([[1.0, 0.0]], [[1.0, 0.0], [2.0, 5.0]])
    array([[3., 7.]])
    """

    degree: int = 3

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Positive definite; convex on the whole line if the highest power is 0, 1 or even."""
        convex = True if self.degree <= 2 or self.degree % 2 == 1 else None
        return Flags(Definiteness.POSITIVE, convex, None, False, False)

    def profile(self, t: Any) -> Any:
        """S_p from S_2m = (1 + t^m) S_m and S_(m+1) = 1 + t S_m, along the binary digits of p."""
        if self.degree == 1:
            return 1.0 + 0.0 * t
        total: Any = 1.0  # S_m
        power = t  # t^m
        for digit in f"{self.degree:b}"[1:]:
            total = (1.0 + power) * total
            power = power**2
            if digit == "1":
                total = 1.0 + t * total
                power = t * power
        return total


def series_coefficients(values: Any, name: str) -> tuple[float, ...]:
    a = as_vector(values, name).astype(np.float64)
    if a.size == 0 or a.min() < 0.0 or a.max() == 0.0:
        raise InputError(
            f"{name} must be >= 0, with one > 0 among them, for a positive definite kernel; got "
            f"{a.tolist()}"
        )
    return tuple(a.tolist())


def _radius(value: Any, name: str) -> float:
    return math.inf if np.ndim(value) == 0 and value == math.inf else _scale(value, name)


@dataclass(frozen=True, repr=False)
@checked(coefficients=series_coefficients, radius=_radius)
class Taylor(DotProduct):
    """Taylor-series kernel k(x, y) = a_0 + a_1 t + ... + a_N t^N, t = <x, y>, with all a_n >= 0.

    If an infinite series has a closed form f(t), subclass `DotProduct` instead: return f(t) from
    `profile`, and let `domain` be `mercer.kernels.OpenBall(sqrt(r))`, r the radius of convergence
    (as in the example of `OpenBall`; `Exponential` and `Geometric` are such kernels). Without a
    closed form, give the first coefficients; `radius` restricts points to where the whole series
    converges. Source: Sakulwongtana, Definition 2.1.3 and Lemma 2.1.1.

    Parameters
    ----------
    coefficients : sequence of float
        a_0, ..., a_N >= 0, not all zero; kept as a tuple.
    radius : float
        Radius of convergence r > 0 of the series: points must have |x|^2 < r. Infinite by default:
        all vectors are accepted.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Taylor([1.0, 0.0, 0.5])([[2.0]], [[-1.0], [1.0]])
    array([[3., 3.]])
    >>> mc.kernels.Taylor([1.0, 1.0, 1.0], radius=1.0)
    Taylor(coefficients=(1.0, 1.0, 1.0), radius=1.0)
    """

    coefficients: tuple[float, ...]
    radius: float = math.inf

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Positive definite; convex on the whole line if no odd power above t occurs."""
        convex = None if any(self.coefficients[3::2]) else True
        return Flags(Definiteness.POSITIVE, convex, None, False, False)

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return Vectors() if self.radius == math.inf else OpenBall(math.sqrt(self.radius))

    def profile(self, t: Any) -> Any:
        total = _polynomial(self.coefficients, t)
        return total + 0.0 * t if isinstance(total, float) else total

    def __repr__(self) -> str:
        radius = "" if self.radius == math.inf else f", radius={self.radius!r}"
        return f"Taylor(coefficients={self.coefficients!r}{radius})"


def _polynomial(a: tuple[float, ...], t: Any) -> Any:
    """a_0 + ... + a_N t^N as low(t) + t^m high(t), m a power of two: nested only log N deep."""
    if not any(a[1:]):
        return a[0]
    m = 1 << (len(a) - 1).bit_length() - 1
    low, high = _polynomial(a[:m], t), _polynomial(a[m:], t)
    if isinstance(high, float) and high == 0.0:
        return low
    return low + _power_of(t, m) * high


def _power_of(t: Any, m: int) -> Any:
    """t^m for m a power of two, from powers small enough to be multiplied out (t may be < 0)."""
    return t**m if m <= _WHOLE else _power_of(t, m // 2) ** 2
