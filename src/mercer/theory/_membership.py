"""Test whether a function on the circle is in the space of a kernel, from its coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, frozen
from mercer.exceptions import InputError
from mercer.kernels._circle import Circular
from mercer.theory._fourier import _coefficients, finite_values, log_terms, term_count

_RATIOS = 3  # ratios of the last octaves that must agree
_INSIDE, _OUTSIDE = 1.5, 0.75  # decay exponents; 1 is where sums of powers begin to converge
_TINY = 1e-290  # a coefficient after which zeros are underflow


@dataclass(frozen=True)
class Membership:
    """Whether a function is in the space of a kernel, and its partial squared norms.

    Attributes
    ----------
    inside : bool or None
        None where it is undecided.
    reason : str
        The rule that decided.
    is_exact : bool
        Whether the answer is a proof; else it extrapolates the trend of the last octaves.
    log_partial_norms : array of shape (L + 1,)
        log sum_{|l| <= m} |fhat_l|^2 / khat_l for m = 0, ..., L, which cannot overflow.
    exponent : float
        p, where the terms fall like l^-p over the last octaves (the smallest of the last three);
        infinite where they vanish, NaN where it was not needed.

    Examples
    --------
    >>> import mercer as mc
    >>> result = mc.theory.membership(mc.Periodic((1.0, 0.25)), [0.5, 1.0, 0.5])
    >>> result.inside, result.partial_norms
    (True, array([1., 3.]))
    """

    inside: bool | None
    reason: str
    is_exact: bool
    log_partial_norms: Array
    exponent: float

    @property
    def partial_norms(self) -> Array:
        """The partial squared norms; infinite beyond the range of float64."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_partial_norms)


def membership(
    kernel: Circular, coefficients: Callable[[Array], Any] | Any, n_terms: int | None = None
) -> Membership:
    """Decide if sum_l |fhat_l|^2 / khat_l is finite, that is, if f is in the space of k.

    An array holds all coefficients of a trigonometric polynomial, so the answer is exact. Of a
    function l -> fhat_l only |l| <= n_terms are evaluated, which proves nothing about a series: the
    answer extrapolates a trend. With T_j the sum of the terms of 2^j <= |l| < 2^(j+1) and
    p_j = 1 - log2(T_(j+1) / T_j), which is p for terms l^-p, f is

    - inside if the last three p_j are at least 1.5,
    - outside if they are at most 0.75, or (a proof) if fhat_l != 0 = khat_l for some l,
    - undecided otherwise: between lie the powers near l^-1, and 1 / (l log l), which diverges.

    If the coefficients are zero from some l on, it is undecided, unless they underflowed; then the
    octaves before that are used. Source: Sakulwongtana, Definition 2.2.3 and Remark 29; Rudi and
    Gaillard 2021, section 2.

    Parameters
    ----------
    kernel : Circular
    coefficients : callable, or array_like of shape (2L + 1,)
        Takes the array of whole numbers -n_terms, ..., n_terms and returns fhat_l; or fhat_l for
        l = -L, ..., L, all others being zero.
    n_terms : int, optional
        Only with a callable: at least 64, 4096 by default.

    Examples
    --------
    A top-hat jumps, so it is in no Sobolev space; a triangle is in the first.

    >>> import numpy as np
    >>> import mercer as mc
    >>> def top_hat(l):
    ...     return np.sinc(l / 2) / 2
    >>> k = mc.kernels.PeriodicSobolev(order=1)
    >>> mc.theory.membership(k, top_hat).inside
    False
    >>> mc.theory.membership(k, lambda l: top_hat(l) ** 2).inside
    True
    """
    if callable(coefficients):
        L = 4096 if n_terms is None else term_count(n_terms)
        if L < 64:
            raise InputError(f"n_terms must be at least 64 to show a trend, got {L}")
        f = finite_values(coefficients, np.arange(-L, L + 1), "coefficients").astype(np.complex128)
    elif n_terms is not None:
        raise InputError("n_terms is for functions l -> fhat_l; an array says how many it has")
    else:
        f = _coefficients(coefficients, "coefficients")
    both = log_terms(kernel, f)
    half = f.size // 2
    with np.errstate(invalid="ignore"):
        terms = np.logaddexp(both[half:], both[half::-1])  # of l and -l
    terms[0] = both[half]
    partial = frozen(np.logaddexp.accumulate(terms))
    missing = np.flatnonzero(terms == np.inf)
    if missing.size:
        reason = f"the coefficient of l = {missing[0]} is not zero, but that of the kernel is"
        return Membership(False, reason, True, partial, np.nan)
    if not callable(coefficients):
        reason = "a trigonometric polynomial: the sum is finite"
        return Membership(True, reason, True, partial, np.inf)
    inside, reason, exponent = _trend(terms, f)
    return Membership(inside, reason, False, partial, exponent)


def _trend(terms: Array, f: Array) -> tuple[bool | None, str, float]:
    """What the last octaves say, as `membership` documents it."""
    half = f.size // 2
    size = np.maximum(np.abs(f[half:]), np.abs(f[half::-1]))
    used = int(np.flatnonzero(size > 0)[-1]) if size.any() else 0
    if used < half // 2 and not 0.0 < size[used] < _TINY:
        reason = (
            f"the coefficients are zero from l = {used + 1} on, as far as was looked; pass them as "
            "an array if there are no others"
        )
        return None, reason, np.nan
    octaves = int(np.log2(used + 1))  # complete ones: 2^j <= l < 2^(j+1), j < octaves
    if octaves < _RATIOS + 1:
        reason = f"there are {octaves} octaves of coefficients that are not zero, too few to say"
        return None, reason, np.nan
    last = range(octaves - _RATIOS - 1, octaves)
    sums = np.array([np.logaddexp.reduce(terms[1 << j : 2 << j]) for j in last])
    with np.errstate(invalid="ignore"):
        p = 1.0 - np.diff(sums) / np.log(2.0)
    p = np.where(np.isnan(p), np.inf, p)  # two octaves without terms
    least, most = float(p.min()), float(p.max())
    seen = f"terms fall like l^-p with p from {least:.3g} to {most:.3g} up to l = {used}"
    if least >= _INSIDE:
        return True, f"{seen}, all above {_INSIDE}", least
    if most <= _OUTSIDE:
        return False, f"{seen}, all below {_OUTSIDE}", least
    return None, f"{seen}, too near 1", least
