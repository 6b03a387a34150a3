"""Kernels on the circle: Fourier series of x - y with coefficients >= 0.

    k(x, y) = sum_l c_|l| exp(2 pi i l (x - y) / period)
            = c_0 + 2 sum_{l >= 1} c_l cos(2 pi l (x - y) / period)

Points are numbers; x and x + period are the same point of the circle. Flags hold on the circle,
that is for points within one period.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._array import Array, frozen, non_negative, positive_int, positive_length
from mercer.engine import Gap, Program, Scales, Var
from mercer.engine.programs._program import maps_of
from mercer.exceptions import DomainError, InputError, UnavailableError
from mercer.kernels._discrete_measures import Atoms, TableAtoms, ZetaAtoms, whole
from mercer.kernels._domain import Domain, Vectors
from mercer.kernels._dot_product import series_coefficients
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._parameters import checked
from mercer.kernels._profile import recorded

_TWO_PI = 2.0 * math.pi
_TURN = math.sqrt(_TWO_PI)  # width at which images and Fourier terms fall off equally fast
_NEGLIGIBLE = 45.0  # exp(-45) is far below rounding
_MOST_ATOMS = 1 << 22
_MOST_ORDER = 12  # beyond, only the first cosine of the kernel is above rounding


@dataclass(frozen=True)
class Circle(Domain):
    """Numbers in a single column; x and x + circumference are the same point."""

    circumference: float

    base = Vectors()

    def check(self, X: Any, name: str) -> Any:
        X = Vectors().check(X, name)
        if X.shape[1] != 1:
            raise DomainError(
                f"{name} has {X.shape[1]} columns, but a point of the circle is one number; select "
                "the column with kernel.transform(Columns([j]))"
            )
        return X


class Circular(Kernel):
    """k(x, y) = c_0 + 2 sum_l c_l cos(2 pi l (x - y) / period), with c_l >= 0.

    A subclass (`Periodic`, `JacobiTheta`, `PeriodicSobolev`) is a frozen dataclass with a field
    `period` and the methods `profile(v)`, the sum of the series, and `coefficient(l)`. For
    derivatives, add `profile_derivatives(v)`, which returns (k'(v), k''(v)), with k'' NaN at v = 0
    if there is a kink; if coefficients underflow, add `log_coefficient(l)`. Source: Sakulwongtana,
    Remark 28 and Definitions 2.2.1 to 2.2.3; Corollary 2.5.2 for characteristic kernels, where c_0
    may be zero.

    Examples
    --------
    The Poisson kernel, c_l = r^l:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import mercer as mc
    >>> @dataclass(frozen=True)
    ... class Poisson(mc.kernels.Circular):
    ...     radius: float = 0.5
    ...     period: float = 2 * np.pi
    ...     def profile(self, v):
    ...         r = self.radius
    ...         return (1 - r**2) / (1 - 2 * r * np.cos(v) + r**2)
    ...     def coefficient(self, l):
    ...         return self.radius ** np.abs(l)
    >>> Poisson()([[0.0]], [[0.0], [2 * np.pi], [np.pi]]).round(4)
    array([[3.    , 3.    , 0.3333]])
    """

    period: float

    @abstractmethod
    def profile(self, v: Any) -> Any:
        """Return k as a function of the wrapped gap v in [-period/2, period/2]."""

    @abstractmethod
    def coefficient(self, l: Any) -> Any:  # noqa: E741  (the l of the formula)
        """Return c_|l| for whole numbers l."""

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """The circle."""
        return Circle(self.period)

    def lower(self) -> Program:
        """One wrapped gap, and the profile of it."""
        return Program((Gap((), self.period),), recorded(self, Var(0)))

    def spectral_measure(self, dim: int) -> Atoms:
        """Atoms at integer frequencies; known for the kernels of this module."""
        if positive_int(dim, "dim") != 1:
            raise UnavailableError(f"points of {self!r} are single numbers, not {dim}")
        return self._atoms()

    def _atoms(self) -> Atoms:
        raise UnavailableError(f"{self!r} has no known spectral measure")


@dataclass(frozen=True)
@checked(coefficients=series_coefficients, period=positive_length)
class Periodic(Circular):
    """k(x, y) = c_0 + 2 sum_{l=1}^L c_l cos(2 pi l (x - y) / period): finitely many frequencies.

    Its space has at most 2L + 1 dimensions, so it is neither characteristic nor universal.

    Parameters
    ----------
    coefficients : tuple of float
        (c_0, ..., c_L), all >= 0 and not all zero.
    period : float, default=2 pi
        > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Periodic((1.0, 0.5), period=24.0)
    >>> k([[0.0]], [[0.0], [6.0], [12.0], [24.0]]).round(4)
    array([[2., 1., 0., 2.]])
    """

    coefficients: tuple[float, ...]
    period: float = _TWO_PI

    flags = Flags(Definiteness.POSITIVE, None, None, False, False)

    def profile(self, v: Any) -> Any:
        return self._moment(v, 0).real

    def profile_derivatives(self, v: Any) -> tuple[Any, Any]:
        w = _TWO_PI / self.period
        return -w * self._moment(v, 1).imag, -(w**2) * self._moment(v, 2).real

    def coefficient(self, l: Any) -> Any:  # noqa: E741
        """c_|l|, zero beyond the list."""
        return self._atoms().masses(l)

    def _atoms(self) -> Atoms:
        return TableAtoms(self.coefficients, self.period)

    def _moment(self, v: Any, power: int) -> Array:
        """sum_l l^power b_l z^l at z = exp(2 pi i v / period); b_l = 2 c_l, b_0 = c_0.

        By Horner's rule, whose error on the unit circle is about 2L rounding errors of sum b_l.
        """
        c = np.array(self.coefficients)
        order = np.arange(len(c), dtype=np.float64)
        weights = np.where(order == 0, 1.0, 2.0) * c * order**power
        angle = _TWO_PI / self.period * np.asarray(v, dtype=np.float64)
        return np.polyval(weights[::-1], np.cos(angle) + 1j * np.sin(angle))


@dataclass(frozen=True)
@checked(scale=positive_length, period=positive_length)
class JacobiTheta(Circular):
    """Jacobi theta kernel: the normal density with standard deviation s, wrapped around the circle.

        k(x, y) = sum_j N(x - y + j period; 0, s^2)
                = (1 / period) sum_l exp(-(2 pi s l / period)^2 / 2) exp(2 pi i l (x - y) / period)

    For the period 2 pi the coefficients are exp(-s^2 l^2 / 2) / (2 pi). The scale has the unit of
    the points whatever the period; k integrates to one over a period. Images are summed unless s is
    above 0.4 periods: their terms are all positive, so values have a small relative error. Either
    sum takes at most nine terms. Source: Sakulwongtana, Remark 29.

    Parameters
    ----------
    scale : float
        s > 0.
    period : float, default=2 pi
        > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.kernels.JacobiTheta(0.5)
    >>> k([[0.0]], [[0.0], [1.0], [3.0], [6.0]]).round(4)
    array([[0.7979, 0.108 , 0.    , 0.6796]])
    """

    scale: float
    period: float = _TWO_PI

    flags = Flags(Definiteness.POSITIVE, None, None, True, True)

    @property
    def _width(self) -> float:
        """The scale as an angle."""
        return _TWO_PI * self.scale / self.period

    def profile(self, v: Any) -> Any:
        if self._width >= _TURN:
            return self._series().profile(v)
        return sum(density for _, density in self._images(v))

    def profile_derivatives(self, v: Any) -> tuple[Any, Any]:
        if self._width >= _TURN:
            return self._series().profile_derivatives(v)
        s, terms = self.scale, self._images(v)
        first = sum(-u * density for u, density in terms) / s
        second = sum((u * u - 1.0) * density for u, density in terms) / s / s
        return first, second

    def coefficient(self, l: Any) -> Any:  # noqa: E741
        """exp(-(2 pi s l / period)^2 / 2) / period."""
        return np.exp(self.log_coefficient(l))

    def log_coefficient(self, l: Any) -> Any:  # noqa: E741
        """The logarithm of the coefficient, which itself soon underflows."""
        angle = self._width * whole(l)
        return -0.5 * angle**2 - math.log(self.period)

    def _atoms(self) -> Atoms:
        last = math.ceil(math.sqrt(2.0 * _NEGLIGIBLE) / self._width)
        if last > _MOST_ATOMS:
            raise UnavailableError(
                f"{self!r} is so narrow that its spectral measure has {last} atoms that count; "
                f"use Gaussian(length_scale={self.scale!r}), from which it does not differ"
            )
        return TableAtoms(self.coefficient(np.arange(last + 1)), self.period)

    def _images(self, v: Any) -> list[tuple[Array, Array]]:
        """(u, N(s u; 0, s^2)) of every image s u = v + j period that is not negligible.

        Images +-j are at most exp(-j (j - 1) period^2 / (2 s^2)) times the nearest one.
        """
        v = np.asarray(v, dtype=np.float64)
        v = v - self.period * np.rint(v / self.period)
        ratio = 2.0 * _NEGLIGIBLE * (self.scale / self.period) ** 2
        count = math.floor(0.5 + math.sqrt(0.25 + ratio))
        scale = 1.0 / (self.scale * math.sqrt(_TWO_PI))
        images = ((v + j * self.period) / self.scale for j in range(-count, count + 1))
        return [(u, scale * np.exp(-0.5 * u * u)) for u in images]

    def _series(self) -> Periodic:
        return Periodic(tuple(self.coefficient(np.arange(6)).tolist()), self.period)


@dataclass(frozen=True)
@checked(order=positive_int, constant=non_negative, period=positive_length)
class PeriodicSobolev(Circular):
    """Periodic Sobolev kernel: coefficients nu_0 and m^(-2s), summed by a Bernoulli polynomial.

        k(x, y) = nu_0 + 2 sum_{m >= 1} m^(-2s) cos(2 pi m (x - y) / period)
                = nu_0 + (-1)^(s-1) (2 pi)^(2s) / (2s)! B_2s({(x - y) / period})

    Its space holds the periodic functions with s derivatives in L2; see `mercer.theory`. Source:
    Rudi and Gaillard 2021, section 2.

    Parameters
    ----------
    order : int, default=1
        s, from 1 to 12. At s = 1 the kernel has a kink at x = y.
    constant : float, default=1.0
        nu_0 >= 0. At 0 the functions of the space have mean zero; the kernel is then still
        characteristic, but not universal.
    period : float, default=1.0
        > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.kernels.PeriodicSobolev()
    >>> k([[0.0]], [[0.0], [0.5], [1.0]]).round(4)
    array([[ 4.2899, -0.6449,  4.2899]])
    """

    order: int = 1
    constant: float = 1.0
    period: float = 1.0

    def __post_init__(self) -> None:
        if self.order > _MOST_ORDER:
            raise InputError(f"order must be at most {_MOST_ORDER}, got {self.order}")

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Characteristic; universal where constants are in the space."""
        return Flags(Definiteness.POSITIVE, None, None, True, self.constant > 0)

    def profile(self, v: Any) -> Any:
        """The polynomial in the squared gap to the antipode, where B_2s is even."""
        return self.constant + np.polyval(bernoulli(self.order), self._antipode(v)[0] ** 2)

    def profile_derivatives(self, v: Any) -> tuple[Any, Any]:
        """With q the polynomial in y = x^2: 2 x q' and 2 q' + 4 y q''; no second one at a kink."""
        x, sign = self._antipode(v)
        q1 = np.polyder(bernoulli(self.order))
        slope, y = np.polyval(q1, x * x), x * x
        second = 2.0 * slope + 4.0 * y * np.polyval(np.polyder(q1), y)
        if self.order == 1:
            second = np.where(sign == 0.0, np.nan, second)
        return -2.0 * sign * x * slope / self.period, second / self.period**2

    def coefficient(self, l: Any) -> Any:  # noqa: E741
        """nu_0 and |l|^(-2s)."""
        return self._atoms().masses(l)

    def _atoms(self) -> Atoms:
        return ZetaAtoms(self.constant, 2.0 * self.order, self.period)

    def _antipode(self, v: Any) -> tuple[Array, Array]:
        """1/2 - |t| for t = v / period wrapped, and the sign of t."""
        t = np.asarray(v, dtype=np.float64) / self.period
        t = t - np.rint(t)
        return 0.5 - np.abs(t), np.sign(t)


def period_of(kernel: Kernel) -> float | None:
    """The circumference of the shortest circle of points, or None; claims hold within one turn."""
    circles = list[float]()
    for v in kernel.program.variables:
        scales = [a.array[0] for a in maps_of(v) if isinstance(a, Scales)]
        if isinstance(v, Gap) and v.period is not None and len(scales) == len(v.maps):
            circles.append(float(np.prod([v.period, *scales])))
    return min(circles, default=None)


@lru_cache(maxsize=16)
def bernoulli(s: int) -> Array:
    """Coefficients in y = x^2, highest first, of (-1)^(s-1) (2 pi)^(2s) / (2s)! B_2s(1/2 + x).

    In powers of x, the terms alternate like those of a cosine, and hardly cancel for |x| <= 1/2:
    they are the derivatives 2 (-1)^(m-1) (2 pi)^(2m) eta(2s - 2m) of 2 sum_l l^(-2s) cos(2 pi l t)
    at t = 1/2, over (2m)!, with Dirichlet's eta(k) = (1 - 2^(1-k)) zeta(k) and eta(0) = 1/2.
    """
    from scipy.special import factorial, zeta

    m = np.arange(s, -1, -1)
    k = 2.0 * (s - m)
    eta = np.where(k > 0, (1.0 - 2.0 ** (1.0 - k)) * zeta(np.maximum(k, 2.0)), 0.5)
    return frozen(2.0 * (-1.0) ** (m - 1) * _TWO_PI ** (2 * m) * eta / factorial(2 * m))
