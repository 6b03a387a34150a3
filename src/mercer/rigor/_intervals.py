"""Interval arithmetic on arrays, rounded outward.

An interval is a pair of arrays. NaN stands for a bound that is not known (0 times infinity) and is
passed on as such; `known` turns it into an infinite bound at the end. In sums of products the
integer 0 stands for a term that is identically zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

EPS = float(np.finfo(float).eps)
# Sums, products and NumPy's exp, log and powers are within 4 units in the last place.
_EPS = 8.0 * EPS
_TINY = float(np.finfo(float).tiny)
_MAX = float(np.finfo(float).max)  # a lower bound of every number that overflows


def down(x: Any) -> Any:
    """A little less than x, by more than the error of one operation."""
    return np.minimum(x * (1.0 - np.copysign(_EPS, x)) - _TINY, _MAX)


def up(x: Any) -> Any:
    """A little more than x."""
    return np.maximum(x * (1.0 + np.copysign(_EPS, x)) + _TINY, -_MAX)


@dataclass(frozen=True)
class Interval:
    """All numbers between two bounds, arrays of equal shape."""

    lo: Any
    hi: Any

    def __add__(self, other: Any) -> Interval:
        o = as_interval(other)
        lo, hi = self.lo + o.lo, self.hi + o.hi  # sums do not underflow
        lo, hi = lo * (1.0 - np.copysign(_EPS, lo)), hi * (1.0 + np.copysign(_EPS, hi))
        return Interval(np.minimum(lo, _MAX), np.maximum(hi, -_MAX))

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo)

    def __mul__(self, other: Any) -> Interval:
        o = as_interval(other)
        if self.is_nonnegative:
            if o.is_nonnegative:
                return Interval(np.maximum(down(self.lo * o.lo), 0.0), up(self.hi * o.hi))
            return _times_nonnegative(o, self)
        if o.is_nonnegative:
            return _times_nonnegative(self, o)
        if np.all(self.hi <= 0):
            return -_times_nonnegative(o, -self)
        if np.all(o.hi <= 0):
            return -_times_nonnegative(self, -o)
        a, b, c, d = self.lo * o.lo, self.lo * o.hi, self.hi * o.lo, self.hi * o.hi
        lowest = np.minimum(np.minimum(a, b), np.minimum(c, d))
        highest = np.maximum(np.maximum(a, b), np.maximum(c, d))
        return Interval(down(lowest), up(highest))

    __radd__ = __add__
    __rmul__ = __mul__

    @property
    def is_nonnegative(self) -> bool:
        return bool(np.all(self.lo >= 0))

    @property
    def size(self) -> Any:
        """The largest absolute value."""
        return np.maximum(np.abs(self.lo), np.abs(self.hi))

    def square(self) -> Interval:
        a, b = self.lo * self.lo, self.hi * self.hi
        straddles = (self.lo < 0) & (self.hi > 0)
        lowest = np.where(straddles, 0.0, np.maximum(down(np.minimum(a, b)), 0.0))
        return Interval(lowest, up(np.maximum(a, b)))

    def known(self) -> Interval:
        """With infinite bounds where none is known."""
        lo = np.where(np.isnan(self.lo), -np.inf, self.lo)
        return Interval(lo, np.where(np.isnan(self.hi), np.inf, self.hi))

    def where(self, mask: Any, other: float = 0.0) -> Interval:
        """Kept where the mask is true, a number elsewhere."""
        return Interval(np.where(mask, self.lo, other), np.where(mask, self.hi, other))

    def broadcast(self, shape: tuple[int, ...]) -> Interval:
        return Interval(np.broadcast_to(self.lo, shape), np.broadcast_to(self.hi, shape))

    def __getitem__(self, index: Any) -> Interval:
        return Interval(self.lo[index], self.hi[index])

    @staticmethod
    def stacked(parts: Sequence[Interval], rows: int) -> Interval:
        """Intervals of shape (rows,), or single ones, side by side: shape (rows, len(parts))."""
        wide = [part.broadcast((rows,)) for part in parts]
        return Interval(*(np.stack(ends, axis=1) for ends in zip(*map(_ends, wide), strict=True)))

    @staticmethod
    def joined(parts: Sequence[Interval]) -> Interval:
        """Intervals one after the other along the first axis."""
        return Interval(*(np.concatenate(ends) for ends in zip(*map(_ends, parts), strict=True)))


def _ends(x: Interval) -> tuple[Any, Any]:
    return x.lo, x.hi


def as_interval(value: Any) -> Interval:
    """An interval as it is, an exact number or array as a thin one."""
    return value if isinstance(value, Interval) else Interval(value, value)


def offsets(low: Any, high: Any, e: Any) -> Interval:
    """The boxes low <= x <= high relative to e, rounded outward."""
    left, right = low - e, high - e
    slack = _EPS / 4 * (np.abs(left) + np.abs(right))
    return Interval(left - slack, right + slack)


def mean_value(g: Any, H: Interval, D: Interval) -> Interval:
    """The range of g + H d for d in D, shapes (m, d), (m, d, d) and (m, d)."""
    for j in range(D.lo.shape[1]):
        g = g + H[:, :, j] * D[:, None, j]
    return as_interval(g).known()


def _times_nonnegative(a: Interval, b: Interval) -> Interval:
    """The product where b >= 0."""
    lowest = a.lo * np.where(a.lo < 0, b.hi, b.lo)
    return Interval(down(lowest), up(a.hi * np.where(a.hi < 0, b.lo, b.hi)))
