"""Power series of the inner product t = <x, y>, with coefficients that are not negative."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import as_vector, positive, positive_int
from mercer.exceptions import InputError
from mercer.kernels._domain import Domain, OpenBall, Vectors
from mercer.kernels._dot_product import DotProduct, positive_scale
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._parameters import checked

_WHOLE = 64  # exponents up to here are multiplied out by every engine


@dataclass(frozen=True)
@checked(scale=positive_scale)
class Geometric(DotProduct):
    """Geometric kernel k(x, y) = 1 / (1 - <x, y> / s) on the open ball |x|^2 < s.

    The sum of all powers of <x, y> / s, for s = 1 also called Vovk's infinite polynomial. All
    coefficients are positive, so it is universal on every compact part of the ball. Points on the
    sphere or outside are refused; give searches for pre-images a closed ball inside it
    (`preimage(psi, domain=Ball(origin, radius))`), or a step may leave it.

    Parameters
    ----------
    scale : float
        s > 0, the squared radius of the ball.

    See Also
    --------
    VovkPolynomial : finitely many of the powers, on all of R^d.

    References
    ----------
    P. Honeine, Theoretical insights on the pre-image resolution in machine learning (2024),
    appendix B, where the denominator is misprinted with a power.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Geometric()([[0.5, 0.0]], [[0.4, 0.6]])
    array([[1.25]])
    """

    scale: float = 1.0

    flags = Flags(Definiteness.POSITIVE, True, None, None, True)

    @property
    def domain(self) -> Domain:
        return OpenBall(math.sqrt(self.scale))

    def profile(self, t: Any) -> Any:
        return 1.0 / (1.0 - t / self.scale)


@dataclass(frozen=True)
@checked(degree=positive_int)
class VovkPolynomial(DotProduct):
    """Vovk's real polynomial k(x, y) = 1 + t + ... + t^(p-1) = (1 - t^p) / (1 - t), t = <x, y>.

    Computed as a product, which is exact at t = 1 too.

    Parameters
    ----------
    degree : int
        The number p >= 1 of powers; the highest is p - 1.

    See Also
    --------
    Geometric : all powers, on the open unit ball.

    References
    ----------
    P. Honeine, Theoretical insights on the pre-image resolution in machine learning (2024),
    appendix B, where the denominator is misprinted with a power.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.VovkPolynomial(3)([[1.0, 0.0]], [[1.0, 0.0], [2.0, 5.0]])
    array([[3., 7.]])
    """

    degree: int = 3

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Positive definite; convex on the whole line up to t, and where the top power is even."""
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


@dataclass(frozen=True, repr=False)
class Taylor(DotProduct):
    """Taylor-series kernel k(x, y) = a_0 + a_1 t + ... + a_N t^N, t = <x, y>, with all a_n >= 0.

    A series with infinitely many terms and a closed form f(t) is better written as what it is:
    subclass `DotProduct`, return f(t) from `profile`, and let `domain` be
    `mercer.kernels.OpenBall(sqrt(r))`, r the radius of convergence (the example of `OpenBall`
    does that; `Exponential` and `Geometric` are such kernels). Without a closed form the first
    coefficients do, and `radius` keeps points where they stand for the whole series.

    Parameters
    ----------
    coefficients : sequence of float
        a_0, ..., a_N >= 0, not all zero; kept as a tuple.
    radius : float
        Radius of convergence r > 0 of the series: points must have |x|^2 < r. Infinite by default,
        which takes all vectors.

    References
    ----------
    P. Sakulwongtana, Advanced topics in machine learning (lecture notes), Definition 2.1.3 and
    Lemma 2.1.1.

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

    def __post_init__(self) -> None:
        a = as_vector(self.coefficients, "coefficients").astype(np.float64)
        if a.size == 0 or a.min() < 0.0 or a.max() == 0.0:
            raise InputError(
                "coefficients must be >= 0, with one > 0 among them, for a positive definite "
                f"kernel; got {a.tolist()}"
            )
        object.__setattr__(self, "coefficients", tuple(a.tolist()))
        radius = math.inf if self.radius == math.inf else positive(self.radius, "radius")
        object.__setattr__(self, "radius", radius)

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Positive definite; convex on the whole line without odd powers from the third on."""
        convex = None if any(self.coefficients[3::2]) else True
        return Flags(Definiteness.POSITIVE, convex, None, False, False)

    @property
    def domain(self) -> Domain:
        return Vectors() if self.radius == math.inf else OpenBall(math.sqrt(self.radius))

    def profile(self, t: Any) -> Any:
        total = _polynomial(self.coefficients, t)
        return total + 0.0 * t if isinstance(total, float) else total

    def __repr__(self) -> str:
        radius = "" if self.radius == math.inf else f", radius={self.radius!r}"
        return f"Taylor(coefficients={self.coefficients!r}{radius})"


def _polynomial(a: tuple[float, ...], t: Any) -> Any:
    """a_0 + ... + a_N t^N as low(t) + t^m high(t), m a power of two: as deep as log N only."""
    if not any(a[1:]):
        return a[0]
    m = 1 << (len(a) - 1).bit_length() - 1
    low, high = _polynomial(a[:m], t), _polynomial(a[m:], t)
    if isinstance(high, float) and high == 0.0:
        return low
    return low + _power_of(t, m) * high


def _power_of(t: Any, m: int) -> Any:
    """t^m for a power of two, by powers that are multiplied out for any sign of t."""
    return t**m if m <= _WHOLE else _power_of(t, m // 2) ** 2
