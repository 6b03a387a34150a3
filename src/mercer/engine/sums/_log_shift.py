"""Log-shifts: sums that carry a logarithmic scale per query, and how to add them.

A sum is stored as (s, shift) and means s * exp(shift). So a row keeps its direction even if all its
weights underflow, and partial sums over blocks of points can be added.
"""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer.engine.sums._derivatives import Moments


def merged(parts: list[tuple[list[Moments], Array]]) -> tuple[list[Moments], Array]:
    """Add partial sums that may carry different shifts."""
    moments, shift = parts[0]
    for other, other_shift in parts[1:]:
        high = np.maximum(shift, other_shift)
        scale, other_scale = factor(shift, high), factor(other_shift, high)
        for mine, theirs in zip(moments, other, strict=True):
            for key, array in theirs.items():
                extra = by_row(array, other_scale)
                mine[key] = by_row(mine[key], scale) + extra if key in mine else extra
            for key in mine.keys() - theirs.keys():
                mine[key] = by_row(mine[key], scale)
        shift = high
    return moments, shift


def raise_shift(moments: list[Moments], shift: Array, log: Array) -> Array:
    """Move to the larger of the old shift and the tile's, rescaling what was summed so far."""
    high: Array = np.maximum(shift, log.max(axis=1).astype(np.float64))
    if np.array_equal(high, shift):
        return shift
    scale = factor(shift, high)
    for part in moments:
        for key in part:
            part[key] = by_row(part[key], scale)
    return high


def factor(shift: Array, high: Array) -> Array:
    """What sums at `shift` are multiplied by to bring them to the shift `high`."""
    return np.exp(np.where(shift == high, 0.0, shift - finite(high)))


def finite(shift: Array) -> Array:
    """The shift, with 0 where it is infinite (every weight is zero)."""
    return np.where(np.isfinite(shift), shift, 0.0)


def by_row(array: Array, scale: Array) -> Array:
    """Multiply row j of an array of any number of axes by scale[j]."""
    return array * scale.reshape(-1, *(1,) * (array.ndim - 1))
