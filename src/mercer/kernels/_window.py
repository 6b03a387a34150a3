"""Radial kernels that are not positive definite: windows, and powers of the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer._array import non_negative, positive
from mercer.engine import cut
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._parameters import checked
from mercer.kernels._radial import Radial


@dataclass(frozen=True)
@checked(c=positive, rho=lambda rho, name: None if rho is None else positive(rho, name))
class Epanechnikov(Radial):
    """Epanechnikov kernel k(x, y) = c - |x - y|^2 inside the window |x - y|^2 <= rho, else 0.

    Neither positive definite nor conditionally so, for any c and rho: elements have no norm. Mean
    shift and pre-images use only its slope. With c = rho (the default) the profile is continuous
    and convex, which is what makes them descend.

    Parameters
    ----------
    c : float
        Height > 0 at distance zero.
    rho : float or None
        Squared radius > 0 of the window; None means c.

    References
    ----------
    Honeine 2024, equation (11) and appendix A; Example 6 wrongly calls it positive definite, and
    Theorem 18 needs c = rho.

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
        """Indefinite; convex only where the profile does not jump."""
        return Flags(Definiteness.INDEFINITE, self._window == self.c, False, None)

    @property
    def _window(self) -> float:
        return self.c if self.rho is None else self.rho

    def profile(self, u: Any) -> Any:
        return cut(self._window - u, self.c - u)


@dataclass(frozen=True)
@checked(rho=positive)
class Uniform(Radial):
    """Uniform kernel k(x, y) = 1 inside the window |x - y|^2 <= rho, else 0.

    The flat kernel of mean shift, whose steps are plain means of the points in the window: it is
    minus the slope of `Epanechnikov(c=rho)`, its shadow. Not positive definite: elements have no
    norm. Its own slope is zero wherever it has one. A pair exactly on the border may fall on either
    side of it by rounding; choose a rho between two of the distances where that matters. Source:
    Honeine 2024, Definition 1, with the sign corrected.

    Parameters
    ----------
    rho : float
        Squared radius > 0 of the window.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Uniform(1.0)([[0.0]], [[0.5], [2.0]])
    array([[1., 0.]])
    """

    rho: float = 1.0

    flags = Flags(Definiteness.INDEFINITE, False, False, None)

    def profile(self, u: Any) -> Any:
        """1 for u <= rho, else 0; written with u so that the compiled core takes it."""
        return cut(self.rho - u, 1.0 + 0.0 * u)


@dataclass(frozen=True)
@checked(p=positive, c=non_negative)
class NegativeDistance(Radial):
    """Negative distance kernel k(x, y) = c - |x - y|^p.

    Conditionally positive definite exactly for 0 < p <= 2: differences of mean embeddings have a
    norm (at p = 1 it is the energy distance), single features have not. Source: Honeine 2024,
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
        """Conditional up to p = 2; the profile -u^(p/2) is convex there too."""
        conditional = self.p <= 2.0
        kind = Definiteness.CONDITIONAL if conditional else Definiteness.INDEFINITE
        return Flags(kind, conditional, False, None)

    def profile(self, u: Any) -> Any:
        return self.c - u ** (self.p / 2.0)
