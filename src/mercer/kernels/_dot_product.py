"""Dot-product kernels: a profile of the inner product t = <x, y>."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer._array import non_negative, positive, positive_int, positive_length, real
from mercer.engine import Dot, Program, Var
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._parameters import checked
from mercer.kernels._radial import recorded

positive_scale = partial(positive_length, limit=1e150)


class DotProduct(Kernel):
    """k(x, y) = profile(<x, y>). One method makes a dot-product kernel.

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
@checked(degree=positive_int, scale=positive_scale, offset=non_negative)
class Polynomial(DotProduct):
    """Polynomial kernel k(x, y) = (<x, y> / s + c)^p.

    Parameters
    ----------
    degree : int
        The degree p >= 1.
    scale : float
        s > 0.
    offset : float
        c >= 0; at 0 the kernel is homogeneous.

    References
    ----------
    P. Honeine, Theoretical insights on the pre-image resolution in machine learning (2024),
    equation (B.2). scikit-learn's parametrisation: `from_gamma`.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Polynomial(2)([[1.0]], [[2.0]])
    array([[9.]])
    """

    degree: int = 3
    scale: float = 1.0
    offset: float = 1.0

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
@checked(scale=positive_scale)
class Exponential(DotProduct):
    """Exponential dot-product kernel k(x, y) = exp(<x, y> / s).

    Normalised it is the Gaussian kernel of length scale sqrt(s).

    Parameters
    ----------
    scale : float
        s > 0.

    References
    ----------
    P. Honeine, Theoretical insights on the pre-image resolution in machine learning (2024),
    equation (B.3).

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Exponential(2.0)([[1.0]], [[2.0]]).round(4)
    array([[2.7183]])
    """

    scale: float = 1.0

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """Positive definite, convex, universal; characteristic on bounded sets only."""
        return Flags(Definiteness.POSITIVE, True, None, None, True)

    @classmethod
    def from_gamma(cls, gamma: float) -> Exponential:
        """Return exp(gamma <x, y>): s = 1 / gamma."""
        return cls(1.0 / positive(gamma, "gamma"))

    def profile(self, t: Any) -> Any:
        return np.exp(t / self.scale)


@dataclass(frozen=True)
@checked(scale=positive_scale, offset=real)
class Sigmoid(DotProduct):
    """Sigmoid kernel k(x, y) = tanh(<x, y> / s + c): the neuron of a network taken as a kernel.

    Nothing is claimed about its definiteness, and little can be hoped for. No power series of tanh
    has non-negative coefficients only, so for no s and c is it positive definite, nor
    conditionally so, on any set with the origin in its interior. With c < 0 a single point near the
    origin shows it, k(0, 0) = tanh(c) < 0. Otherwise two near points do, wherever
    2 a tanh(a + c) > 1 with a = |x|^2 / s. On points that keep clear of both it may do no harm.

    Parameters
    ----------
    scale : float
        s > 0.
    offset : float
        c, of any sign.

    References
    ----------
    P. Honeine, Theoretical insights on the pre-image resolution in machine learning (2024),
    appendix B. scikit-learn's parametrisation: `from_gamma`.

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
