"""Log-shifts: sums that carry a scale of their own per query, and how to add them.

A sum is stored as (s, shift) and means s * exp(shift). Rows whose every weight underflows keep
their direction, and partial sums from blocks, parts of an element or machines can be added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine.programs._fields import Fields, Moments


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
    return np.exp(np.where(shift == high, 0.0, shift - finite(high)))


def finite(shift: Array) -> Array:
    return np.where(np.isfinite(shift), shift, 0.0)


def by_row(array: Array, scale: Array) -> Array:
    return array * scale.reshape(-1, *(1,) * (array.ndim - 1))


def total(parts: list[Fields]) -> Fields:
    """The sum of fields, brought to a common shift."""
    high = np.max([p.shift for p in parts], axis=0)

    def add(arrays: list[Any]) -> Any:
        if any(a is None for a in arrays):
            return None
        scaled_arrays = (
            by_row(a, factor(p.shift, high)) for a, p in zip(arrays, parts, strict=True)
        )
        return sum(scaled_arrays).astype(arrays[0].dtype)  # type: ignore[union-attr]

    slopes = tuple(add(list(s)) for s in _slopes(parts))
    names = ("value", "gradient", "hessian")
    value, gradient, hessian = (add([getattr(p, name) for p in parts]) for name in names)
    cusp, bounds = add([p.cusp for p in parts]), _bounds(parts)
    bound = None if bounds is None else np.sum(bounds, axis=0)
    return Fields(value, gradient, hessian, slopes, cusp, high, bound)


def mixed(inner: Fields, B: Array) -> Fields:
    """The fields of linear combinations of the elements: the batch axis times B."""

    def mix(a: Array | None) -> Any:
        if a is None:
            return None
        return np.moveaxis(np.tensordot(a, B.astype(a.dtype), axes=(1, 0)), -1, 1)

    slopes = tuple(mix(s) for s in inner.slopes)
    return Fields(
        mix(inner.value),
        mix(inner.gradient),
        mix(inner.hessian),
        slopes,
        mix(inner.cusp),
        inner.shift,
        None if inner.bound is None else inner.bound @ np.abs(B),
    )


def side_by_side(blocks: list[Fields]) -> Fields:
    """Fields of disjoint parts of a batch, brought to a common shift."""
    high = np.max([p.shift for p in blocks], axis=0)

    def join(arrays: list[Any]) -> Any:
        if any(a is None for a in arrays):
            return None
        parts = [by_row(a, factor(p.shift, high)) for a, p in zip(arrays, blocks, strict=True)]
        return np.concatenate(parts, axis=1).astype(arrays[0].dtype, copy=False)

    slopes = tuple(join(list(s)) for s in _slopes(blocks))
    names = ("value", "gradient", "hessian")
    value, gradient, hessian = (join([getattr(p, name) for p in blocks]) for name in names)
    cusp, bounds = join([p.cusp for p in blocks]), _bounds(blocks)
    bound = None if bounds is None else np.concatenate(bounds)
    return Fields(value, gradient, hessian, slopes, cusp, high, bound)


def _slopes(parts: list[Fields]) -> list[tuple[Array, ...]]:
    """The slopes of all parts by variable; none where a part has none (the spectral engine)."""
    known = all(p.slopes for p in parts)
    return list(zip(*(p.slopes for p in parts), strict=True)) if known else []


def _bounds(parts: list[Fields]) -> list[Array] | None:
    """The bounds of all parts, zero where a part is right to rounding; None if every part is."""
    if all(p.bound is None for p in parts):
        return None
    return [np.zeros(p.value.shape[1]) if p.bound is None else p.bound for p in parts]


def replaced(fields: Fields, rows: Array, other: Fields) -> Fields:
    """Fields with some of their rows taken from another computation, at least as accurate."""

    def put(a: Any, b: Any) -> Any:
        if a is None:
            return None
        out = np.array(a)
        out[rows] = b
        return out

    slopes = tuple(put(a, b) for a, b in _slopes([fields, other]))
    return Fields(
        put(fields.value, other.value),
        put(fields.gradient, other.gradient),
        put(fields.hessian, other.hessian),
        slopes,
        put(fields.cusp, other.cusp),
        put(fields.shift, other.shift),
        fields.bound,
    )
