"""Flags: what is known about a kernel, such as definiteness, and about sums and products."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Definiteness(Enum):
    """Which quadratic forms sum_ij a_i a_j k(x_i, x_j) are never negative.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Epanechnikov().flags.definiteness.name
    'INDEFINITE'
    """

    POSITIVE = "all of them"
    CONDITIONAL = "those whose coefficients sum to zero, at least"
    INDEFINITE = "not all, even among coefficients that sum to zero"
    UNKNOWN = "nothing is claimed"


@dataclass(frozen=True)
class Flags:
    """Claims about a kernel; None where nothing is claimed. Every claim is tested on lattices.

    Attributes
    ----------
    definiteness : Definiteness
    convex_profile : bool or None
        The profile is convex, so fixed-point steps of a pre-image never increase the objective.
    completely_monotone : bool or None
        The profile is a mixture of exp(-t u): positive definite in every dimension.
    characteristic : bool or None
        Mean embeddings of different distributions differ.
    universal : bool or None
        On every compact set of points, elements approximate any continuous function arbitrarily
        well. Implies that Gram matrices of distinct points are not singular.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Gaussian(1.0).flags.completely_monotone
    True
    >>> (mc.Gaussian(1.0) + mc.Linear()).flags.is_positive_definite
    True
    """

    definiteness: Definiteness = Definiteness.UNKNOWN
    convex_profile: bool | None = None
    completely_monotone: bool | None = None
    characteristic: bool | None = None
    universal: bool | None = None

    @property
    def is_positive_definite(self) -> bool | None:
        """True or False if known, else None (a conditional kernel may be either)."""
        known = {Definiteness.POSITIVE: True, Definiteness.INDEFINITE: False}
        return known.get(self.definiteness)

    def plus(self, other: Flags, *, same_kind: bool) -> Flags:
        """The flags of a sum; `same_kind` when both profiles have the same variable."""
        return Flags(
            _sum_definiteness(self.definiteness, other.definiteness),
            (same_kind and self.convex_profile and other.convex_profile) or None,
            (same_kind and self.completely_monotone and other.completely_monotone) or None,
            # the squared MMD of a sum is the sum of the squared MMDs
            _with(self.characteristic, other) or _with(other.characteristic, self) or None,
            # the space of a sum holds the spaces of both
            _with(self.universal, other) or _with(other.universal, self) or None,
        )

    def times(self, other: Flags, *, same_kind: bool, constant: bool, stationary: bool) -> Flags:
        """The flags of a product; `constant` when one factor is a positive constant."""
        monotone = same_kind and self.completely_monotone and other.completely_monotone
        convex = monotone or (constant and self.convex_profile and other.convex_profile)
        both_pd = bool(self.is_positive_definite and other.is_positive_definite)
        positive, definiteness = Definiteness.POSITIVE, Definiteness.UNKNOWN
        if both_pd:
            definiteness = positive
        elif constant:
            own = self.definiteness
            definiteness = other.definiteness if own is positive else own
        carries = constant or (both_pd and stationary)
        return Flags(
            definiteness,
            convex or None,
            monotone or None,
            # the spectral measure of a product is a convolution: full support carries over
            (carries and (self.characteristic or other.characteristic)) or None,
            (carries and (self.universal or other.universal)) or None,
        )


def _with(claim: bool | None, other: Flags) -> bool:
    """A claim that adding any positive definite kernel leaves true."""
    return bool(claim and other.is_positive_definite)


def _sum_definiteness(a: Definiteness, b: Definiteness) -> Definiteness:
    known = {Definiteness.POSITIVE, Definiteness.CONDITIONAL}
    if not {a, b} <= known:
        return Definiteness.UNKNOWN
    return a if a is b else Definiteness.CONDITIONAL
