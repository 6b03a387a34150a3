"""Kernels of angles: normalised kernels (angles of features), cosine and arc-cosine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._tensors import detached, host, is_tracked, namespace
from mercer.engine import Dot, Expr, Norm, Program, Unary, Var, cut, diagonal, gram
from mercer.exceptions import DomainError, InputError
from mercer.kernels._domain import Domain, Vectors
from mercer.kernels._dot_product import Exponential, Linear
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel, Product, Transformed
from mercer.kernels._radial import Gaussian

_NEAR = 16.0  # units of rounding by which a cosine of parallel vectors may differ from 1


@dataclass(frozen=True)
class _NonZero(Domain):
    """Points x with k(x, x) > 0."""

    kernel: Kernel

    def check(self, X: Any, name: str) -> Any:
        X = self.kernel.domain.check(X, name)
        length = host(diagonal(self.kernel.program, X))
        small = np.flatnonzero(~(length >= np.finfo(length.dtype).tiny))
        if small.size:
            row = int(small[0])
            why = "feature has no direction; drop such points or add a constant to the kernel"
            if length[row] > 0:  # a denormal number has few digits or none
                why = "digits are lost; scale the points or the kernel's parameters up"
            raise DomainError(
                f"{name} has a point with k(x, x) = {float(length[row])!r} (row {row}), whose {why}"
            )
        if (huge := np.flatnonzero(length == np.inf)).size:  # some are computed in logarithms
            row = int(huge[0])
            with np.errstate(all="ignore"):
                itself = host(gram(_normalised(self.kernel), X[row : row + 1], X[row : row + 1]))
            if np.isnan(itself).any():
                raise DomainError(
                    f"{name} has a point with k(x, x) = inf (row {row}); scale the points down"
                )
        return X

    @property
    def base(self) -> Domain:
        return self.kernel.domain.base


@dataclass(frozen=True)
class Normalised(Kernel):
    """k(x, y) / sqrt(k(x, x) k(y, y)): the cosine of the angle between two features.

    Parameters
    ----------
    kernel : Kernel
        Positive definite, with k(x, x) > 0 at the points it is used on.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Normalised(mc.Polynomial(2))([[1.0]], [[2.0]]).round(4)
    array([[0.9]])
    >>> k = mc.kernels.Normalised(mc.Exponential(4.0))
    >>> k([[1.0]], [[3.0]]) == mc.Gaussian(2.0)([[1.0]], [[3.0]])
    array([[ True]])
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        self._made_of(self.kernel)

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Positive definite if the kernel is."""
        definite = self.kernel.flags.is_positive_definite
        return Flags(Definiteness.POSITIVE) if definite else Flags()

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return _NonZero(self.kernel)

    def lower(self) -> Program:
        return _normalised(self.kernel)


def _normalised(kernel: Kernel) -> Program:
    """The program of Normalised(kernel), without differences of large exponents."""
    match kernel:
        case Exponential(scale=s):
            return Gaussian(math.sqrt(s)).program
        case Product(left=a, right=b) if (
            a.flags.is_positive_definite and b.flags.is_positive_definite
        ):
            return _normalised(a) * _normalised(b)
        case Transformed(kernel=a, point_map=T):
            return _normalised(a).mapped((T,))
    return kernel.program.normalised()


_COSINE = Normalised(Linear())


@dataclass(frozen=True)
class Cosine(Kernel):
    """Cosine kernel k(x, y) = <x, y> / (|x| |y|): `Normalised(Linear())` under its usual name.

    It ignores the length of a point, so it is not characteristic. The zero vector has no direction
    and is refused.

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

    Order 0 has a cusp where x and y are parallel. As at every cusp, the gradient there is set to
    the symmetric derivative, zero, and so is the mixed derivative, which does not exist across the
    ray. At the zero vector order 1 has such a cusp: the gradient in x is y / 2. Vectors within
    rounding of parallel (an angle of about 1e-7, in float32 2e-3) count as parallel. Source: Cho
    and Saul, Kernel methods for deep learning, 2009, eq. 3 to 7.

    Parameters
    ----------
    order : {0, 1, 2}
        The power n.

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
    def domain(self) -> Domain:  # type: ignore[override]
        return Vectors() if self.order else _COSINE.domain

    def lower(self) -> Program:
        t, N, M = Var(0), Var(1, nonnegative=True), Var(2, nonnegative=True)
        (x, unit_x), (y, unit_y) = _length(N), _length(M)
        J = _AngularProfile((t * unit_x) * unit_y, self.order)
        if self.order == 0:
            profile: Expr = J
        elif self.order == 1:
            # half of <x, y>, plus an even function of c; at x = 0 only the first has a slope
            profile = 0.5 * t + (x * y) * J
        else:
            profile = (N * M) * J
        return Program((Dot(), Norm("row"), Norm("column")), profile)


@dataclass(frozen=True)
class _AngularProfile(Unary):
    """J_n / pi as a function of c = cos(theta), without c / 2 for n = 1, and its derivatives."""

    n: int

    def derivatives(self, x: Any, order: int) -> tuple[Any, ...]:
        if not is_tracked(x):
            return self._jet(x)[: order + 1]
        # backpropagation through the root at s = 0 would give NaN, so there a Taylor polynomial
        xp, flat = namespace(x), abs(self._jet(detached(x))[3]) == 0
        f, f1, f2, _ = self._jet(detached(x))
        away = self._jet(xp.where(flat, xp.zeros_like(x), x))
        move = x - detached(x)
        near = f + (f1 + 0.5 * f2 * move) * move, f1 + f2 * move, f2
        return tuple(xp.where(flat, a, b) for a, b in zip(near, away[:3], strict=True))[: order + 1]

    def _jet(self, x: Any) -> tuple[Any, ...]:
        """J and its derivatives, and s = sin(theta)."""
        xp = namespace(x)
        gap = _NEAR * float(xp.finfo(x.dtype).eps)
        # within rounding of 1 or -1, c is set to 1 or -1
        c = xp.where(x > 1.0 - gap, xp.ones_like(x), xp.where(x < gap - 1.0, -xp.ones_like(x), x))
        s = xp.sqrt((1.0 - c) * (1.0 + c))
        arc = xp.asin(c) / math.pi  # 1/2 - theta / pi
        # 0 where s = 0: there x and y are parallel, and c does not move to first order
        flat = s == 0.0
        inverse = xp.where(flat, xp.zeros_like(s), 1.0 / xp.where(flat, xp.ones_like(s), s))
        angle, slope = 0.5 + arc, inverse / math.pi
        match self.n:
            case 0:
                jet = angle, slope, c * slope * inverse * inverse
            case 1:
                jet = s / math.pi + c * arc, arc, slope
            case _:
                value = angle * (1.0 + 2.0 * c * c) + (3.0 / math.pi) * s * c
                jet = value, (4.0 / math.pi) * s + 4.0 * c * angle, 4.0 * angle
        return *jet, s


def _length(N: Expr) -> tuple[Expr, Expr]:
    """|x| and 1 / |x| of N = |x|^2; 0 and 1 for the zero vector, both with finite slopes."""
    zero = cut(-N, 1.0)  # 1 where N = 0, else 0
    return (N + zero) ** 0.5 - zero, (N + zero) ** -0.5
