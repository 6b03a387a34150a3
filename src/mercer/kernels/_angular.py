"""Kernels of the angle theta between x and y."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import namespace
from mercer.engine import Dot, Expr, Norm, Opaque, Program, Var, cut
from mercer.exceptions import InputError
from mercer.kernels._domain import Domain, Vectors
from mercer.kernels._dot_product import Linear
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._normalised import Normalised

_COSINE = Normalised(Linear())
_NEAR = 16.0  # units of rounding by which a cosine of parallel vectors may miss 1


@dataclass(frozen=True)
class Cosine(Kernel):
    """Cosine kernel k(x, y) = <x, y> / (|x| |y|): `Normalised(Linear())` under its usual name.

    Blind to the length of a point, so not characteristic. The zero vector has no direction and is
    refused.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Cosine()([[3.0, 4.0]], [[1.0, 0.0], [6.0, 8.0]])
    array([[0.6, 1. ]])
    """

    flags = Flags(Definiteness.POSITIVE, None, None, False, False)

    domain = _COSINE.domain

    def lower(self) -> Program:
        return _COSINE.program


@dataclass(frozen=True)
class ArcCosine(Kernel):
    """Arc-cosine kernel k(x, y) = |x|^n |y|^n J_n(theta) / pi, theta the angle between x and y.

    J_0 = pi - theta, J_1 = sin theta + (pi - theta) cos theta and
    J_2 = 3 sin theta cos theta + (pi - theta) (1 + 2 cos^2 theta). It is 2 E[h(<w, x>) h(<w, y>)]
    over normal w, with h(z) = z^n for z > 0, else 0: the kernel of a wide layer of such neurons.

    The zero vector is refused for n = 0, where it has no direction; for n = 1 and 2 its feature is
    zero. Along a ray the kernel is a power of the length, so it is not characteristic.

    Order 0 has a cusp where x and y are parallel. As at every cusp the gradient there is the
    symmetric derivative, zero; so is the mixed derivative, which does not exist across the ray. At
    the zero vector order 1 has a cusp of that kind: the gradient in x is y / 2. Within rounding of
    parallel (an angle of about 1e-7, in float32 2e-3) vectors count as parallel.

    Parameters
    ----------
    order : {0, 1, 2}
        The power n.

    References
    ----------
    Cho and Saul, Kernel methods for deep learning, 2009, eq. 3 to 7.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.ArcCosine(0)([[1.0, 0.0]], [[2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    array([[1. , 0.5, 0. ]])
    >>> mc.kernels.ArcCosine(1)([[1.0, 0.0]], [[2.0, 0.0], [0.0, 0.0]])
    array([[2., 0.]])
    """

    order: int = 1

    flags = Flags(Definiteness.POSITIVE, None, None, False, False)

    def __post_init__(self) -> None:
        known = np.ndim(self.order) == 0 and not isinstance(self.order, bool | np.bool_)
        if not known or self.order not in (0, 1, 2):
            raise InputError(f"order must be 0, 1 or 2, got {self.order!r}")
        object.__setattr__(self, "order", int(self.order))

    @property
    def domain(self) -> Domain:
        return Vectors() if self.order else _COSINE.domain

    def lower(self) -> Program:
        t, N, M = Var(0), Var(1, nonnegative=True), Var(2, nonnegative=True)
        (x, unit_x), (y, unit_y) = _length(N), _length(M)
        c = (t * unit_x) * unit_y
        if self.order == 0:
            profile: Expr = Opaque(c, _angle, _angle_slopes)
        elif self.order == 1:
            # half of <x, y>, and an even function of c: at x = 0 only the half has a slope
            profile = 0.5 * t + (x * y) * Opaque(c, _even, _even_slopes)
        else:
            profile = (N * M) * Opaque(c, _second, _second_slopes)
        return Program((Dot(), Norm("row"), Norm("column")), profile)


def _length(N: Expr) -> tuple[Expr, Expr]:
    """|x| and 1 / |x| of N = |x|^2; 0 and 1 for the zero vector, both with finite slopes."""
    zero = cut(-N, 1.0)  # 1 where N = 0, else 0
    return (N + zero) ** 0.5 - zero, (N + zero) ** -0.5


def _sine_and_arc(c: Any) -> tuple[Any, Any, Any]:
    """c, sin(theta) and arcsin(c) = pi/2 - theta, with c at 1 or -1 where it is within rounding."""
    xp = namespace(c)
    gap = _NEAR * float(np.finfo(c.dtype).eps)
    c = xp.where(c > 1.0 - gap, xp.ones_like(c), xp.where(c < gap - 1.0, -xp.ones_like(c), c))
    return c, xp.sqrt((1.0 - c) * (1.0 + c)), xp.asin(c)


def _over(a: Any, s: Any) -> Any:
    """a / s, 0 where s = 0: there x and y are parallel, and c does not move to first order."""
    xp = namespace(s)
    safe = xp.where(s == 0, xp.ones_like(s), s)
    return xp.where(s == 0, xp.zeros_like(s), a / safe)


def _angle(c: Any) -> Any:
    """1 - theta / pi."""
    return 0.5 + _sine_and_arc(c)[2] / math.pi


def _angle_slopes(c: Any) -> tuple[Any, Any]:
    """1 / (pi sin) and cos / (pi sin^3)."""
    c, s, _ = _sine_and_arc(c)
    first = _over(1.0 / math.pi, s)
    return first, _over(c * first, s * s)


def _even(c: Any) -> Any:
    """J_1 / pi - cos / 2."""
    c, s, arc = _sine_and_arc(c)
    return (s + c * arc) / math.pi


def _even_slopes(c: Any) -> tuple[Any, Any]:
    """arcsin(c) / pi and 1 / (pi sin)."""
    _, s, arc = _sine_and_arc(c)
    return arc / math.pi, _over(1.0 / math.pi, s)


def _second(c: Any) -> Any:
    """J_2 / pi."""
    c, s, arc = _sine_and_arc(c)
    return (0.5 + arc / math.pi) * (1.0 + 2.0 * c * c) + (3.0 / math.pi) * s * c


def _second_slopes(c: Any) -> tuple[Any, Any]:
    """4 J_1 / pi and 4 J_0 / pi."""
    c, s, arc = _sine_and_arc(c)
    angle = 0.5 + arc / math.pi
    return (4.0 / math.pi) * s + 4.0 * c * angle, 4.0 * angle
