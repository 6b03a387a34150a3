"""Tail probabilities of weighted sums of chi-squares, with proved error bounds.

The null distributions of MMD and HSIC are such sums. Their moment generating function M is known:

    P(Q > q) = (1 / 2 pi) int M(s) exp(-s q) / s dt,  s = c + i t,

for every c > 0 where M is finite. The integral is computed as a sum over t = k step, whose error is
bounded. A line c near the saddle point keeps the *relative* error small far out in the tail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, as_vector, real
from mercer.exceptions import InputError

_EPS = float(np.finfo(np.float64).eps)
_GOAL = 1e-11  # of the tail probability, for each part of the error
_ENTRIES = 1 << 19  # frequencies times weights that are computed at once
_MOST = 1 << 21  # and in all: a fraction of a second; the error bound says what is missing
_FARTHEST = 1e100  # any line is valid; squares of the frequencies on this one do not overflow
_LEAST = -690.0  # logarithm of the smallest probability that is computed


class Tail(NamedTuple):
    """A tail probability, and a bound on its error.

    Attributes
    ----------
    value : float
        The probability.
    error : float
        The bound.

    Examples
    --------
    >>> from mercer.methods import Tail
    >>> Tail(0.25, 0.5).bounds
    (0.0, 0.75)
    """

    value: float
    error: float

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval that holds the probability."""
        return max(self.value - self.error, 0.0), min(self.value + self.error, 1.0)


class Remainder(NamedTuple):
    """Weights >= 0 that are known only by their sum, sum of squares, and a bound on each."""

    sum: float = 0.0
    squares: float = 0.0
    largest: float = 0.0


@np.errstate(all="ignore")  # overflow makes the error bound large
def weighted_chi_square_tail(
    weights: Any,
    q: float,
    *,
    degrees: Any = None,
    offsets: Any = None,
    remainder: tuple[float, float, float] | None = None,
) -> Tail:
    """Return P(Q > q) for Q = sum_l w_l chi2_l, independent, and a bound on the error.

    Parameters
    ----------
    weights : array_like of shape (r,)
        w_l, of either sign.
    q : float
    degrees : array_like of shape (r,), optional
        Degrees of freedom > 0 of the chi-squares, not necessarily integers; 1 by default.
    offsets : array_like of shape (r,), optional
        o_l of noncentral chi-squares (z + o_l)^2 + ...; 0 by default. Their squares are the
        noncentrality parameters.
    remainder : (float, float, float), optional
        Further weights >= 0, of one degree of freedom each, of which only the sum T, the sum of
        squares F and an upper bound are known. They count as one weight F / T with T^2 / F
        degrees, which has the same mean and variance; the error includes the effect of this.

    Returns
    -------
    Tail
        `value`, `error` and `bounds`. The error is usually below 1e-10 of the value. It is larger
        for two or three very different weights, where the integrand decays slowly.

    Notes
    -----
    The sum over k exceeds the integral by sum_{n >= 1} e^(n b c) P(Q > q + n b) + e^(-n b c)
    P(Q > q - n b), b = 2 pi / step, by Poisson's summation formula. The first part is bounded by
    Chernoff's inequality at a point c' > c, the second by P <= 1. The terms beyond the last one are
    bounded by the decay of |M|, and by summation by parts. The lower tail is the upper one of -Q.

    References
    ----------
    Imhof, Computing the distribution of quadratic forms in normal variables, Biometrika 48, 1961.
    Davies, The distribution of a linear combination of chi-squared random variables, Applied
    Statistics 29, 1980 (step and error on the line c = 0).

    Examples
    --------
    >>> from mercer.methods import weighted_chi_square_tail
    >>> tail = weighted_chi_square_tail([3.0, 1.0, -0.5], 10.0)
    >>> round(tail.value, 10), tail.error < 1e-11
    (0.0815658032, True)
    """
    w = as_vector(weights, "weights").astype(np.float64)
    h = np.ones(len(w)) if degrees is None else as_vector(degrees, "degrees", len(w)) * 1.0
    o = np.zeros(len(w)) if offsets is None else as_vector(offsets, "offsets", len(w)) * 1.0
    if len(h) and h.min() <= 0:
        raise InputError(f"degrees must be > 0, got {h.min()}")
    if remainder is not None and (not isinstance(remainder, list | tuple) or len(remainder) != 3):
        raise InputError("remainder must be three numbers: sum, sum of squares, upper bound")
    rest = Remainder(*(real(v, "remainder") for v in remainder or ()))
    if min(rest) < 0 or rest.squares > rest.largest * rest.sum * (1 + 1e-9):
        raise InputError(f"remainder must be numbers >= 0 with F <= largest * T, got {tuple(rest)}")
    q, size = real(q, "q"), max(float(np.abs(w).max(initial=0.0)), rest.largest)
    if size == 0.0 or not np.isfinite(q / size):
        return Tail(float(q < 0), 0.0)
    rest = Remainder(rest.sum / size, rest.squares / size / size, rest.largest / size)
    terms = _Terms.of(w / size, h, o**2, rest)
    q = q / size
    for sign, sure in ((1.0, 0.0), (-1.0, 1.0)):
        if (sign * terms.w <= 0).all() and sign * q >= 0:
            return Tail(sure, 0.0)  # outside the support
    if len(terms.w) == 1 and not terms.squares.any() and not terms.rest.squares:
        from scipy.special import gammainc, gammaincc

        tails = (gammaincc, gammainc) if terms.w[0] > 0 else (gammainc, gammaincc)
        value, other = (float(tail(0.5 * terms.h[0], 0.5 * q / terms.w[0])) for tail in tails)
        return Tail(value, 1e-12 * min(value, other) + _EPS * (value > other))
    if q >= terms.mean:
        return _upper(terms, q)
    value, error = _upper(terms.negative(), -q)
    return Tail(1.0 - value, min(error + _EPS, 1.0))


class _Terms(NamedTuple):
    """Distinct weights with their degrees and noncentralities; the last may be the remainder."""

    w: Array
    h: Array
    squares: Array  # of the offsets
    rest: Remainder
    sign: float = 1.0  # of the weights of the remainder

    @classmethod
    def of(cls, w: Array, h: Array, squares: Array, rest: Remainder) -> _Terms:
        distinct, index = np.unique(w[w != 0], return_inverse=True)
        h, squares = (np.bincount(index, v[w != 0], len(distinct)) for v in (h, squares))
        if rest.squares > 0:
            distinct = np.append(distinct, rest.squares / rest.sum)
            h, squares = np.append(h, rest.sum**2 / rest.squares), np.append(squares, 0.0)
        return cls(distinct, h, squares, rest)

    def negative(self) -> _Terms:
        return self._replace(w=-self.w, sign=-1.0)

    @property
    def mean(self) -> float:
        return float(self.w @ (self.h + self.squares))

    @property
    def edge(self) -> float:
        """M is finite for 0 <= s < edge."""
        largest = max(float(self.w.max()), self.sign * self.rest.largest)
        return 0.5 / largest if largest > 0 else np.inf

    def log_M(self, s: Any) -> Array:
        """log M at real s."""
        v = 1.0 - 2.0 * np.multiply.outer(s, self.w)
        terms = -0.5 * self.h * np.log(v) + 0.5 * self.squares * (1.0 / v - 1.0)
        return np.asarray(terms.sum(axis=-1))

    def log_abs(self, c: float, t: Array) -> Array:
        """log |M(c + i t)|, which falls with t."""
        v = 1.0 - 2.0 * c * self.w
        modulus = v**2 + np.multiply.outer(t, 2.0 * self.w) ** 2
        log_abs = -0.25 * np.log(modulus) @ self.h
        return np.asarray(log_abs + 0.5 * (v / modulus - 1.0) @ self.squares)

    def phase(self, c: float, t: Array) -> Array:
        """The argument of M(c + i t)."""
        v, y = 1.0 - 2.0 * c * self.w, np.multiply.outer(t, 2.0 * self.w)
        return np.asarray(
            0.5 * np.arctan2(y, v) @ self.h + 0.5 * (y / (v**2 + y**2)) @ self.squares
        )

    def decay(self, c: float, t: float) -> float:
        """a such that |M(c + i T)| <= |M(c + i t)| (t / T)^a for T >= t."""
        y = (2.0 * t * self.w) ** 2
        return float(0.5 * self.h @ (y / ((1.0 - 2.0 * c * self.w) ** 2 + y)))


def _upper(terms: _Terms, q: float) -> Tail:
    """P(Q > q) for q >= the mean."""
    c = _saddle(terms, q)
    v = 1.0 - 2.0 * c * terms.w
    curvature = float((2.0 * terms.w**2 / v**2 * (terms.h + 2.0 * terms.squares / v)).sum())
    chernoff = float(terms.log_M(c)) - c * q  # log of a bound on P(Q > q)
    log_p = chernoff - 0.5 * np.log(2.0 * np.pi * (1.0 + c**2 * curvature))  # and of P, roughly
    if log_p < _LEAST:
        return Tail(0.0, max(5e-324, float(np.exp(chernoff))))
    step, aliases = _step(terms, q, c, log_p)
    value, error = _sum(terms, q, c, step, float(np.exp(log_p)))
    error += aliases + _change(terms, q, c)
    if not np.isfinite(value + error):
        return Tail(0.0, 1.0)
    return Tail(float(min(max(value, 0.0), 1.0)), float(min(error, 1.0)))


def _saddle(terms: _Terms, q: float) -> float:
    """The minimum of log M(s) - s q - log s, which is convex, by bisection of its slope."""

    def slope(s: float) -> float:
        v = 1.0 - 2.0 * s * terms.w
        return float((terms.w / v * (terms.h + terms.squares / v)).sum()) - q - 1.0 / s

    low, high = 0.0, min(terms.edge, 1.0)
    while high < min(terms.edge, _FARTHEST) and slope(high) < 0:
        low, high = high, min(2.0 * high, terms.edge)
    while high - low > 1e-3 * min(low, terms.edge - high):
        s = 0.5 * (low + high)
        low, high = (s, high) if slope(s) < 0 else (low, s)
        if s in (0.0, terms.edge) or high - low <= 4.0 * _EPS * s:
            break
    return low if low > 0 else high


def _step(terms: _Terms, q: float, c: float, log_p: float) -> tuple[float, float]:
    """The distance between frequencies, and a bound on the aliasing error that it causes."""
    goal = np.log(_GOAL) + log_p
    further = c + min(terms.edge - c, 4.0 * c) * np.linspace(0.05, 0.95, 19)
    chernoff = terms.log_M(further) - further * q
    room = (further - c) / np.maximum(chernoff - goal, 1.0)
    best = int(np.argmax(room))
    period = max(1.0 / room[best], max(-goal, 1.0) / c, 2.0 * abs(q))  # 2 pi / step
    right = np.exp(chernoff[best]) / np.expm1(min(period * (further[best] - c), 700.0))
    left = 1.0 / np.expm1(min(period * c, 700.0))
    return 2.0 * np.pi / period, float(left + right)


def _sum(terms: _Terms, q: float, c: float, step: float, p: float) -> tuple[float, float]:
    """The sum over frequencies, a block at a time, until a bound on the rest is small."""
    size = terms.h @ (1.0 + 1.0 / np.abs(1.0 - 2.0 * c * terms.w)) + terms.squares.sum()
    total, rounding, first, rows = 0.0, 0.0, 0, 128
    while True:
        t = step * np.arange(first, first + rows + 1)
        log_abs = terms.log_abs(c, t) - c * q - 0.5 * np.log(c**2 + t**2)
        F = np.exp(log_abs)
        values = F * np.cos(terms.phase(c, t) - t * q - np.arctan2(t, c))
        if first == 0:
            values[0] *= 0.5
        total += float(values[:-1].sum())
        accuracy = 4.0 * (np.abs(log_abs) + (c + t) * abs(q) + size)
        rounding += _EPS * float(F @ accuracy)
        left = _truncation(terms, q, c, step, float(t[-1]), float(F[-1]))
        first += rows
        if left <= _GOAL * p or first * len(terms.w) > _MOST:
            return total * step / np.pi, left + rounding * step / np.pi
        rows = min(2 * rows, max(128, _ENTRIES // len(terms.w)))


def _truncation(terms: _Terms, q: float, c: float, step: float, t: float, F: float) -> float:
    """A bound on the terms from t on, where the first has the absolute value F.

    The sum of absolute values, or by parts: sum F_k z^k with z = exp(-i step q) is at most the
    variation of F over |1 - z|, and |F'| <= b |F| / t.
    """
    v, a = 1.0 - 2.0 * c * terms.w, terms.decay(c, t) + t**2 / (c**2 + t**2)
    plain = step + t / (a - 1.0) if a > 1.0 else np.inf
    b = 0.5 * terms.h.sum() + 0.5 * (terms.squares / v).sum() + 1.0
    turn = 2.0 * abs(np.sin(0.5 * step * q))
    by_parts = step * (1.0 + b / a) / turn if turn > 0 else np.inf
    return float(min(plain, by_parts) * F / np.pi)


def _change(terms: _Terms, q: float, c: float) -> float:
    """A bound on the effect of replacing the remainder by one weight.

    Both have a mean T and a variance 2 F, so the logarithms of their M differ by at most
    (4/3) |s|^3 (sum of cubes of both) / v, v = 1 - 2 c largest, or 1 for the lower tail. The cubes
    are at most largest F and F^2 / T. Both |M| fall at least as fast as that of F / largest^2
    chi-squares with the largest weight.
    """
    T, F, largest = terms.rest
    if F == 0.0:
        return 0.0
    v = min(1.0 - 2.0 * terms.sign * c * largest, 1.0)
    cubes = (4.0 / 3.0) * (largest * F + F**2 / T) / v
    bound = terms.sign * c * T + c**2 * F / v - c * q + np.log(cubes / np.pi)
    wide = max(1.0 + 2.0 * c * largest, 1.0) if terms.sign < 0 else 1.0
    head = _Terms(terms.w[:-1], terms.h[:-1], terms.squares[:-1], Remainder())
    worst = _Terms(np.array([largest / wide]), np.array([F / largest**2]), np.zeros(1), Remainder())
    t = np.append(0.0, np.geomspace(1e-6, 1e6, 2000) / max(np.sqrt(terms.w**2 @ terms.h), 1e-9))
    log_abs = head.log_abs(c, t) + worst.log_abs(0.0, t) + bound
    cells = c**2 * np.diff(t) + np.diff(t**3) / 3.0  # int |s|^2 dt
    a = head.decay(c, float(t[-1])) + worst.decay(0.0, float(t[-1]))
    beyond = np.exp(log_abs[-1]) * t[-1] * (c**2 + t[-1] ** 2) / (a - 3.0) if a > 3.0 else np.inf
    return float(np.exp(log_abs[:-1]) @ cells + beyond)
