"""Concentration inequalities: how far a random variable can be from its mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import as_vector, non_negative, positive, real
from mercer.exceptions import InputError
from mercer.theory._checks import in_range, real_function

_HUGE = 1e300  # for an infinite moment: the difference of two is a number


@in_range
def markov(mean: float, t: float) -> float:
    """Markov's inequality: P(X >= t) <= E[X] / t for X >= 0 and t > 0.

    Parameters
    ----------
    mean : float
        E[X] >= 0.
    t : float
        > 0.

    Examples
    --------
    At most a tenth of a group can have ten times the mean income.

    >>> import mercer as mc
    >>> mc.theory.learning.markov(mean=3000.0, t=30000.0)
    0.1
    """
    return min(1.0, non_negative(mean, "mean") / positive(t, "t"))


@in_range
def chebyshev(variance: float, t: float) -> float:
    """Chebyshev's inequality: P(|X - E[X]| >= t) <= var(X) / t^2.

    For the mean of n independent copies the variance is var(X) / n.

    Parameters
    ----------
    variance : float
        var(X) >= 0.
    t : float
        > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.chebyshev(variance=1.0, t=2.0)
    0.25
    """
    return min(1.0, non_negative(variance, "variance") / positive(t, "t") ** 2)


@in_range
def popoviciu(low: float, high: float) -> float:
    """Popoviciu's inequality: var(X) <= (high - low)^2 / 4 if low <= X <= high.

    A fair coin with the values `low` and `high` attains it.

    Parameters
    ----------
    low, high : float
        low <= high.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.popoviciu(0.0, 1.0)
    0.25
    """
    return 0.25 * _width(low, high) ** 2


def chernoff(log_mgf: Callable[[float], float], t: float, largest: float = np.inf) -> float:
    """Chernoff's bound: P(X >= t) <= inf_s exp(log E[exp(s X)] - s t) over 0 < s < `largest`.

    Parameters
    ----------
    log_mgf : callable
        s -> log E[exp(s X)], which is convex.
    t : float
    largest : float
        The moment generating function is finite below this.

    Examples
    --------
    For a standard normal X the bound is exp(-t^2 / 2).

    >>> import math
    >>> import mercer as mc
    >>> bound = mc.theory.learning.chernoff(lambda s: s**2 / 2, t=3.0)
    >>> math.isclose(bound, math.exp(-4.5), rel_tol=1e-6)
    True
    """
    from scipy.optimize import minimize_scalar  # slow to import

    t, f = real(t, "t"), real_function(log_mgf, "log_mgf")
    largest = np.inf if largest == np.inf else positive(largest, "largest")

    def exponent(x: float) -> float:  # x in (0, 1), so that s runs to `largest` or infinity
        s = x / (1.0 - x) if np.isinf(largest) else x * largest
        value = f(s)
        if value == -np.inf:
            raise InputError(f"log_mgf must be above -inf, got -inf at {s:.6g}")
        return min(value - s * t, _HUGE)

    found = minimize_scalar(exponent, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
    return float(np.exp(min(0.0, found.fun)))


@in_range
def hoeffding_lemma(low: float, high: float, s: float) -> float:
    """Hoeffding's lemma: E[exp(s (X - E[X]))] <= exp(s^2 (high - low)^2 / 8) if low <= X <= high.

    Parameters
    ----------
    low, high : float
        low <= high.
    s : float
        Any number.

    Examples
    --------
    >>> import mercer as mc
    >>> round(mc.theory.learning.hoeffding_lemma(-1.0, 1.0, s=0.5), 4)
    1.1331
    """
    return float(np.exp(real(s, "s") ** 2 * _width(low, high) ** 2 / 8.0))


@in_range
def hoeffding(widths: Any, t: float) -> float:
    """Hoeffding's inequality for the mean of independent bounded variables.

        P(|mean - E[mean]| >= t) <= 2 exp(-2 n^2 t^2 / sum_i widths_i^2)

    Parameters
    ----------
    widths : array_like of shape (n,)
        b_i - a_i, where a_i <= X_i <= b_i.
    t : float
        > 0.

    Examples
    --------
    A thousand yes-or-no answers: the probability that the share is off by more than 0.05 is at most

    >>> import mercer as mc
    >>> round(mc.theory.learning.hoeffding([1.0] * 1000, t=0.05), 4)
    0.0135
    """
    c = _widths(widths)
    return _two_sided(2.0 * (len(c) * positive(t, "t")) ** 2, c)


@in_range
def mcdiarmid(changes: Any, t: float) -> float:
    """McDiarmid's inequality for a function F of independent variables.

        P(|F - E[F]| >= t) <= 2 exp(-2 t^2 / sum_i changes_i^2)

    Parameters
    ----------
    changes : array_like of shape (n,)
        The largest change of F if only the i-th variable changes.
    t : float
        > 0.

    Examples
    --------
    The mean is such a function, and the bound is that of Hoeffding.

    >>> import numpy as np
    >>> import mercer as mc
    >>> round(mc.theory.learning.mcdiarmid(np.full(1000, 1 / 1000), t=0.05), 4)
    0.0135
    """
    return _two_sided(2.0 * positive(t, "t") ** 2, _widths(changes))


def _two_sided(numerator: float, widths: Any) -> float:
    total = float(np.sum(widths**2))
    return min(1.0, 2.0 * float(np.exp(-numerator / total))) if total > 0.0 else 0.0


def _width(low: float, high: float) -> float:
    width = real(high, "high") - real(low, "low")
    if width < 0.0:
        raise InputError(f"low must be at most high, got {low!r} and {high!r}")
    return width


def _widths(widths: Any) -> Any:
    c = as_vector(widths, "widths").astype(np.float64)
    if (c < 0.0).any():
        raise InputError("widths must be >= 0")
    return c
