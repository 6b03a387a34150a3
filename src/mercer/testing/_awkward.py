"""Valid kernels that break code written for the Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import kernels as mk
from mercer.kernels import Definiteness, Flags, Kernel, Radial


@dataclass(frozen=True)
class OneMethod(Radial):
    """A kernel with one method and no claims: k(u) = 1 / (1 + u / s^2)."""

    scale: float = 1.0

    def profile(self, u: Any) -> Any:
        return 1.0 / (1.0 + u / self.scale**2)


@dataclass(frozen=True)
class Opaque(Radial):
    """k(u) = (1 + u)^-2: a profile with a comparison, so not recorded; with derivatives."""

    flags = Flags(Definiteness.POSITIVE, True, True, True)

    def profile(self, u: Any) -> Any:
        return np.where(u < np.inf, (1.0 + u) ** -2, 0.0).astype(u.dtype)

    def profile_derivatives(self, u: Any) -> tuple[Any, Any]:
        return -2.0 * (1.0 + u) ** -3, 6.0 * (1.0 + u) ** -4


def awkward_kernels() -> list[Kernel]:
    """Return kernels on three columns that break code written for the Gaussian kernel.

    All are positive definite, and differentiable except at x = y. Some have a k(x, x) that is not
    constant, are sums and products of different kinds, have cusps at x = y or a length scale per
    column, or depend only on some columns or on a projection. Some are normalised, one is a class
    with a single method, and one has a profile that cannot be recorded.

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
    plane = mk.Matrix([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0]])
    return [
        mk.Linear() + 0.5,
        mk.Polynomial(3, scale=2.0, offset=0.5),
        mk.Polynomial(2, scale=1.5, offset=0.0),
        mk.Exponential(3.0),
        mk.Laplace(0.7),
        mk.Matern(1.5, 1.2) + 0.3 * mk.Laplace(2.0),
        mk.Gaussian(1.2) * mk.Linear() + 0.3 * mk.Laplace(0.8),
        (mk.Gaussian(0.8) + 0.5) * (mk.InverseMultiquadric(2.0, 0.7) + mk.Matern(2.5, 1.5)),
        mk.Gaussian(1.0).transform(mk.Scales([0.5, 1.0, 4.0])),
        mk.Gaussian(0.9).transform(mk.Columns([0, 2]))
        * mk.Polynomial(2).transform(mk.Columns([1])),
        mk.Laplace(1.0).transform(mk.Columns([2])) + mk.Gaussian(1.0).transform(mk.Columns([0, 1])),
        (mk.RationalQuadratic(0.7, 1.0) + mk.Exponential(9.0)).transform(plane),
        mk.Normalised(mk.Polynomial(2) + mk.Gaussian(1.0)),
        mk.Normalised(mk.Exponential(4.0) * mk.Laplace(2.0)) * (mk.Linear() + 1.0),
        one,
        opaque,
        2.0 * opaque.transform(mk.Scales([1.0, 2.0, 0.5])) * mk.Linear() + one,
    ]
