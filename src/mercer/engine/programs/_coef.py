"""Coefficients of a batch of elements: an (n, b) matrix that is rarely formed.

`Dense` is the matrix itself; `SingleFeatures` has one entry per column (from `feature`); `LowRank`
is a product of two thin matrices (from a projection); `Stacked` puts such blocks on top of each
other (from adding two elements). Engines ask for the parts they need, tile by tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._tensors import constant, host, is_tensor, namespace
from mercer.engine._sizes import pieces

_ENTRIES = 1 << 22  # of coefficients that are added up at a time


@dataclass(frozen=True, eq=False)
class Dense:
    """Coefficients as a matrix of shape (n, b). The other forms have the same methods."""

    array: Array

    @property
    def shape(self) -> tuple[int, int]:
        """(points, elements)."""
        return self.array.shape[0], self.array.shape[1]

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays that it consists of."""
        return (self.array,)

    def rebuilt(self, arrays: Sequence[Array]) -> Dense:
        """The same form with other arrays."""
        return Dense(*arrays)

    @property
    def is_repeated(self) -> bool:
        """Whether one row in memory stands for all points (equal weights)."""
        return not is_tensor(self.array) and self.array.strides[0] == 0

    @cached_property
    def sizes(self) -> Array:
        """sum_i |a_i| of each element, shape (b,), in float64."""
        return _absolute_sums(self)

    def tile(self, rows: slice, columns: Any) -> Array:
        """The entries of some points for some elements."""
        part = self.array[rows, columns]
        return np.array(part) if self.is_repeated else part  # BLAS rounds repeated rows differently

    def columns(self, index: Any) -> Dense:
        """The coefficients of some of the elements."""
        return Dense(_columns(self.array, index))

    def scale(self, factor: Any) -> Dense:
        """Multiply every element by a number, or each by its own."""
        array = self.array
        if self.is_repeated:
            return Dense(np.broadcast_to(array[:1] * factor, array.shape))
        return Dense(array * factor)

    def combine(self, B: Array) -> Dense:
        """Coefficients of the elements psi_j' = sum_j B[j, j'] psi_j."""
        return Dense(self.array @ B)

    def weigh(self, V: Array) -> Array:
        """V' C for a matrix V with one row per point: shape (columns of V, b)."""
        return V.T @ self.tile(slice(None), slice(None))

    def merged(self, groups: Array, size: int) -> Dense:
        """Add up the coefficients of equal points: row i goes to row groups[i]."""
        return Dense(_sums_of_groups(self.array, groups, size))


@dataclass(frozen=True, eq=False)
class SingleFeatures:
    """Element j is value[j] times the feature of point index[j]; shape (n, b)."""

    index: Array
    value: Array
    n_points: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_points, self.index.shape[0]

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def arrays(self) -> tuple[Array, ...]:
        return (self.value,)

    def rebuilt(self, arrays: Sequence[Array]) -> SingleFeatures:
        return SingleFeatures(host(self.index), arrays[0], self.n_points)

    @property
    def sizes(self) -> Array:
        return np.abs(self.value).astype(np.float64)

    def tile(self, rows: slice, columns: Any) -> Array:
        start, stop, _ = rows.indices(self.n_points)
        index, value = self.index[columns], self.value[columns]
        if is_tensor(value):
            xp = namespace(value)
            own = xp.arange(start, stop, device=value.device)[:, None] == index[None, :]
            return xp.where(own, value[None, :], xp.zeros_like(value)[None, :])  # type: ignore[no-any-return]
        out = np.zeros((stop - start, index.shape[0]), dtype=self.dtype)
        inside = np.flatnonzero((index >= start) & (index < stop))
        out[index[inside] - start, inside] = value[inside]
        return out

    def columns(self, index: Any) -> SingleFeatures:
        index = constant(index, self.value)
        return SingleFeatures(self.index[index], self.value[index], self.n_points)

    def scale(self, factor: Any) -> SingleFeatures:
        return SingleFeatures(self.index, self.value * factor, self.n_points)

    def combine(self, B: Array) -> Dense:
        if is_tensor(B):
            return Dense(self.tile(slice(None), slice(None)) @ B)
        return Dense(_sums_of_groups(self.value[:, None] * B, self.index, self.n_points))

    def weigh(self, V: Array) -> Array:
        chosen: Array = namespace(V).take(V, self.index, axis=0)
        return (chosen * self.value[:, None]).T

    def merged(self, groups: Array, size: int) -> SingleFeatures:
        return SingleFeatures(groups[self.index], self.value, size)


@dataclass(frozen=True, eq=False)
class LowRank:
    """The product left @ right of an (n, r) and an (r, b) matrix."""

    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.left.shape[0], self.right.shape[1]

    @property
    def dtype(self) -> Any:
        return namespace(self.left).result_type(self.left, self.right)

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.left, self.right

    def rebuilt(self, arrays: Sequence[Array]) -> LowRank:
        return LowRank(*arrays)

    @cached_property
    def sizes(self) -> Array:
        return _absolute_sums(self)

    def tile(self, rows: slice, columns: Any) -> Array:
        return self.left[rows, :] @ self.right[:, columns]

    def columns(self, index: Any) -> LowRank:
        return LowRank(self.left, _columns(self.right, index))

    def scale(self, factor: Any) -> LowRank:
        return LowRank(self.left, self.right * factor)

    def combine(self, B: Array) -> LowRank:
        return LowRank(self.left, self.right @ B)

    def weigh(self, V: Array) -> Array:
        return (V.T @ self.left) @ self.right

    def merged(self, groups: Array, size: int) -> LowRank:
        return LowRank(_sums_of_groups(self.left, groups, size), self.right)


@dataclass(frozen=True, eq=False)
class Stacked:
    """Blocks on top of each other, one per group of points, with equal numbers of elements."""

    parts: tuple[Dense | SingleFeatures | LowRank, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return sum(p.shape[0] for p in self.parts), self.parts[0].shape[1]

    @property
    def dtype(self) -> Any:
        return namespace(*self.arrays).result_type(*(p.dtype for p in self.parts))

    @property
    def arrays(self) -> tuple[Array, ...]:
        return tuple(a for p in self.parts for a in p.arrays)

    def rebuilt(self, arrays: Sequence[Array]) -> Stacked:
        left = iter(arrays)
        return Stacked(tuple(p.rebuilt([next(left) for _ in p.arrays]) for p in self.parts))

    @property
    def sizes(self) -> Array:
        return np.asarray(sum(p.sizes for p in self.parts))

    def blocks(self) -> list[tuple[slice, Dense | SingleFeatures | LowRank]]:
        """Each part with its rows."""
        stops = np.cumsum([p.shape[0] for p in self.parts]).tolist()
        starts = [0, *stops[:-1]]
        return [(slice(a, b), p) for a, b, p in zip(starts, stops, self.parts, strict=True)]

    def tile(self, rows: slice, columns: Any) -> Array:
        start, stop, _ = rows.indices(self.shape[0])
        cut = []
        for where, part in self.blocks():
            first, last = max(start, where.start), min(stop, where.stop)
            if first < last:
                some = slice(first - where.start, last - where.start)
                cut.append(part.tile(some, columns))
        xp = namespace(*cut)
        return xp.astype(xp.concat(cut, axis=0), self.dtype, copy=False)  # type: ignore[no-any-return]

    def columns(self, index: Any) -> Coef:
        return stack([p.columns(index) for p in self.parts])

    def scale(self, factor: Any) -> Coef:
        return stack([p.scale(factor) for p in self.parts])

    def combine(self, B: Array) -> Coef:
        return stack([p.combine(B) for p in self.parts])

    def weigh(self, V: Array) -> Array:
        parts = [p.weigh(V[rows, :]) for rows, p in self.blocks()]
        return sum(parts[1:], start=parts[0])

    def merged(self, groups: Array, size: int) -> Dense:
        """Dense, because blocks may now share points."""
        out = np.zeros((size, self.shape[1]), dtype=self.dtype)
        for rows, part in self.blocks():
            np.add.at(out, groups[rows], part.tile(slice(None), slice(None)))
        return Dense(out)


Coef = Dense | SingleFeatures | LowRank | Stacked


def stack(coefs: Sequence[Coef]) -> Coef:
    parts: list[Any] = []
    for coef in coefs:
        parts.extend(coef.parts if isinstance(coef, Stacked) else [coef])
    return parts[0] if len(parts) == 1 else Stacked(tuple(parts))


def _columns(array: Array, index: Any) -> Array:
    """Some of the columns, by a slice or their numbers."""
    if is_tensor(array) and not isinstance(index, slice):
        return namespace(array).take(array, constant(index, array), axis=1)  # type: ignore[no-any-return]
    return array[:, index]


def _absolute_sums(coef: Dense | LowRank) -> Array:
    """sum_i |a_i| of each element, tile by tile."""
    n, b = coef.shape
    if isinstance(coef, Dense) and coef.is_repeated:
        return np.asarray(n * np.abs(coef.array[0]).astype(np.float64))
    total = np.zeros(b)
    for columns in pieces(b, _ENTRIES // 256):
        for rows in pieces(n, _ENTRIES // (columns.stop - columns.start)):
            total[columns] += np.abs(coef.tile(rows, columns)).sum(axis=0, dtype=np.float64)
    return total


def _sums_of_groups(array: Array, groups: Array, size: int) -> Array:
    out = np.zeros((size, array.shape[1]), dtype=array.dtype)
    np.add.at(out, groups, array)
    return out
