"""Bounds for finitely many functions, and the thresholds of a given number of digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, as_vector, non_negative, positive, positive_int
from mercer.exceptions import InputError
from mercer.theory._checks import in_range

_MOST_DIGITS = 7  # of thresholds that are listed, in 160 MB


@in_range
def finite_class_mean_bound(size: int, n: int, variance: float) -> float:
    """E max_f |E_n(f) - E(f)| <= size sqrt(variance / n), over a class of `size` functions.

    Parameters
    ----------
    size, n : int
        Functions, and rows of the sample.
    variance : float
        At least the variance of the loss of each function; 1 / 4 for losses between 0 and 1
        (`popoviciu`).

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.finite_class_mean_bound(20, 10_000, variance=0.25)
    0.1
    """
    root = np.sqrt(non_negative(variance, "variance") / positive_int(n, "n"))
    return float(positive_int(size, "size") * root)


@in_range
def finite_class_bound(size: float, n: int, delta: float, largest: float = 1.0) -> float:
    """With probability at least 1 - delta, for all functions of the class at once,

        |E_n(f) - E(f)| <= sqrt(2 M^2 log(2 size / delta) / n).

    Hoeffding's inequality for each function, and a union bound.

    Parameters
    ----------
    size : float
        The number of functions, or more.
    n : int
        Rows of the sample.
    delta : float
        In (0, 1].
    largest : float, default=1
        M >= |l(y, f(x))|.

    Examples
    --------
    Only the logarithm of the size matters.

    >>> import mercer as mc
    >>> round(mc.theory.learning.finite_class_bound(20, 10_000, delta=0.05), 3)
    0.037
    """
    size, delta = positive(size, "size"), probability(delta)
    if size < 1.0:
        raise InputError(f"size must be >= 1, got {size!r}")
    M = positive(largest, "largest")
    logarithm = np.log(2.0) + np.log(size) - np.log(delta)
    return float(M * np.sqrt(2.0 * logarithm / positive_int(n, "n")))


@in_range
def finite_class_expectation(size: float, n: int, delta: float, largest: float = 1.0) -> float:
    """E max_f |E_n(f) - E(f)| <= (1 - delta) t + delta M, with t from `finite_class_bound`.

    For losses between 0 and M, so that no deviation exceeds M. Every `delta` gives a bound.

    Parameters
    ----------
    size : float
        The number of functions, or more.
    n : int
        Rows of the sample.
    delta : float
        In (0, 1].
    largest : float, default=1
        M, the largest loss.

    Examples
    --------
    >>> import mercer as mc
    >>> round(mc.theory.learning.finite_class_expectation(20, 10_000, delta=0.001), 3)
    0.047
    """
    t = min(finite_class_bound(size, n, delta, largest), largest)
    return float((1.0 - delta) * t + delta * largest)


@dataclass(frozen=True)
class Thresholds:
    """Threshold functions f_a(x) = 1 if x >= a, else 0, with `digits` decimals of a in (-1, 1].

    There are 2 10^digits of them. More decimals come nearer to the best threshold, but need more
    rows to choose from: `excess_bound` is the sum of both errors.

    Attributes
    ----------
    digits : int
        p >= 0.

    Examples
    --------
    >>> import mercer as mc
    >>> coarse = mc.theory.learning.Thresholds(1)
    >>> len(coarse.values), coarse.fit([-0.5, 0.1, 0.33, 0.8], [0, 0, 1, 1])
    (20, 0.2)
    >>> mc.theory.learning.Thresholds.best(n=10_000, delta=0.05)
    Thresholds(digits=2)
    """

    digits: int

    def __post_init__(self) -> None:
        whole = isinstance(self.digits, int | np.integer) and not isinstance(self.digits, bool)
        if not whole or not 0 <= self.digits <= 300:  # 10^digits is a float
            raise InputError(
                f"digits must be a whole number between 0 and 300, got {self.digits!r}"
            )

    @classmethod
    def best(cls, n: int, delta: float) -> Thresholds:
        """Return the class with the smallest `excess_bound`."""
        # the first part grows with the digits, and the second is below 1e-15 beyond fifteen
        bounds = [cls(p).excess_bound(n, delta) for p in range(16)]
        return cls(int(np.argmin(bounds)))

    @property
    def size(self) -> int:
        """The number of functions, 2 10^digits."""
        return int(2 * 10**self.digits)

    @property
    def values(self) -> Array:
        """The thresholds a."""
        if self.digits > _MOST_DIGITS:
            raise InputError(f"values needs at most {_MOST_DIGITS} digits, got {self.digits}")
        steps = int(10**self.digits)
        return np.asarray(np.arange(1 - steps, steps + 1) / steps)

    def fit(self, x: Any, y: Any) -> float:
        """Return the first threshold with the fewest errors, for labels y of 0 and 1."""
        x = as_vector(x, "x")
        y = as_vector(y, "y", len(x))
        if not np.isin(y, (0, 1)).all():
            raise InputError("labels must be 0 or 1")
        order = np.argsort(x, kind="stable")
        below = np.searchsorted(x[order], self.values, side="left")  # rows with x < a
        ones = np.concatenate([[0], np.cumsum(y[order])])
        errors = ones[below] + (len(x) - below) - (ones[-1] - ones[below])
        return float(self.values[np.argmin(errors)])

    def deviation_bound(self, n: int, delta: float) -> float:
        """Return sqrt((4 + 6 p - 2 log delta) / n), a little more than `finite_class_bound`."""
        top = 4.0 + 6.0 * self.digits - 2.0 * np.log(probability(delta))
        return float(np.sqrt(top / positive_int(n, "n")))

    def excess_bound(self, n: int, delta: float) -> float:
        """Return 2 sqrt((4 + 6 p - 2 log delta) / n) + 10^-p.

        With probability at least 1 - delta, `fit` exceeds the risk of the best threshold by at
        most this, if x has a density of at most 1 on [-1, 1]. (With a density of 5 the second part
        could be five times as large.)
        """
        return 2.0 * self.deviation_bound(n, delta) + 10.0**-self.digits


def probability(delta: float) -> float:
    """A probability in (0, 1]."""
    if positive(delta, "delta") > 1.0:
        raise InputError(f"delta must lie in (0, 1], got {delta!r}")
    return float(delta)
