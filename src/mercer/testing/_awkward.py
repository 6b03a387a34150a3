"""Valid kernels that break code written for the Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.kernels import (
    Columns,
    Definiteness,
    Exponential,
    Flags,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Matrix,
    Normalised,
    Polynomial,
    Radial,
    RationalQuadratic,
    Scales,
)

_TERMS = 20  # of the power series, enough for full precision on [0, 1]


@dataclass(frozen=True)
class OneMethod(Radial):
    """A kernel with one method and no claims: k(u) = 1 / (1 + u / s^2)."""

    scale: float = 1.0

    def profile(self, u: Any) -> Any:
        """1 / (1 + u / s^2)."""
        return 1.0 / (1.0 + u / self.scale**2)


@dataclass(frozen=True)
class Opaque(Radial):
    """k(u) = (1 - exp(-u)) / u: a profile that cannot be recorded, with its own derivatives.

    It is the integral of exp(-t u) over t in [0, 1], so it is completely monotone.
    """

    flags = Flags(Definiteness.POSITIVE, True, True, True)

    def profile(self, u: Any) -> Any:
        """The quotient, or its power series where the quotient would cancel."""
        return _series_or(u, 0, lambda v: -np.expm1(-v) / v)

    def profile_derivatives(self, u: Any) -> tuple[Any, Any]:
        """The first and second derivative."""
        first = _series_or(u, 1, lambda v: (np.exp(-v) * (1.0 + v) - 1.0) / v**2)
        second = _series_or(u, 2, lambda v: (2.0 - np.exp(-v) * (v * v + 2.0 * v + 2.0)) / v**3)
        return first, second


def _series_or(u: Any, order: int, closed: Any) -> Array:
    """sum_n (-1)^(n+l) u^n / (n! (n+l+1)) is the derivative of order l; used for u < 1."""
    u = np.asarray(u)
    small = np.minimum(u, 1.0)
    terms = [(-1.0) ** (n + order) / (math.factorial(n) * (n + order + 1)) for n in range(_TERMS)]
    series = np.polynomial.polynomial.polyval(small, terms)
    return np.asarray(np.where(u < 1.0, series, closed(np.maximum(u, 1.0))), dtype=u.dtype)


def awkward_kernels() -> list[Kernel]:
    """Return kernels on three columns that break code written for the Gaussian kernel.

    All are positive definite, and differentiable except at x = y. For some k(x, x) is not
    constant, some are sums and products of different kinds, have cusps at x = y, a length scale per
    column, or depend on some columns or a projection only. Some are normalised, one is a class with
    a single method, and one has a profile that cannot be recorded.

    Returns
    -------
    list of Kernel

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.testing import awkward_kernels
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> all(np.linalg.eigvalsh(k(X))[0] > -1e-9 for k in awkward_kernels())
    True
    >>> sum(bool(np.ptp(k.diag(X)) > 0.1) for k in awkward_kernels())
    9
    """
    one, opaque = OneMethod(1.5), Opaque()
    plane = Matrix([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0]])
    return [
        Linear() + 0.5,
        Polynomial(3, scale=2.0, offset=0.5),
        Polynomial(2, scale=1.5, offset=0.0),
        Exponential(3.0),
        Laplace(0.7),
        Matern(1.5, 1.2) + 0.3 * Laplace(2.0),
        Gaussian(1.2) * Linear() + 0.3 * Laplace(0.8),
        (Gaussian(0.8) + 0.5) * (InverseMultiquadric(2.0, 0.7) + Matern(2.5, 1.5)),
        Gaussian(1.0).transform(Scales([0.5, 1.0, 4.0])),
        Gaussian(0.9).transform(Columns([0, 2])) * Polynomial(2).transform(Columns([1])),
        Laplace(1.0).transform(Columns([2])) + Gaussian(1.0).transform(Columns([0, 1])),
        (RationalQuadratic(0.7, 1.0) + Exponential(9.0)).transform(plane),
        Normalised(Polynomial(2) + Gaussian(1.0)),
        Normalised(Exponential(4.0) * Laplace(2.0)) * (Linear() + 1.0),
        one,
        opaque,
        2.0 * opaque.transform(Scales([1.0, 2.0, 0.5])) * Linear() + one,
    ]
