"""Coefficients of a batch of elements: an (n, b) matrix that is rarely written out.

`Dense` is the matrix itself; `SingleFeatures` has one entry per column (what `feature` gives);
`LowRank` is a product of two thin matrices (what a projection gives); `Stacked` puts such blocks on
top of each other (what adding two elements gives). Engines ask for the parts they need, tile by
tile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array


class _Coefficients(ABC):
    """A matrix of coefficients, shape (points, elements)."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(points, elements)."""

    @property
    @abstractmethod
    def dtype(self) -> Any:
        """The floating-point type."""

    @abstractmethod
    def tile(self, rows: slice, columns: Any) -> Array:
        """The entries of some points for some elements."""

    @abstractmethod
    def rows(self, rows: slice) -> Coef:
        """The coefficients of some of the points."""

    @abstractmethod
    def columns(self, index: Any) -> Coef:
        """The coefficients of some of the elements."""

    @abstractmethod
    def scale(self, factor: Any) -> Coef:
        """Multiply every element by a number, or each by its own."""

    @abstractmethod
    def combine(self, B: Array) -> Coef:
        """Coefficients of the elements psi_j' = sum_j B[j, j'] psi_j."""

    @abstractmethod
    def weigh(self, V: Array) -> Array:
        """V' C for a matrix V with one row per point: shape (columns of V, b)."""

    @abstractmethod
    def merged(self, groups: Array, size: int) -> Coef:
        """Add up the coefficients of equal points: row i goes to row groups[i]."""


@dataclass(frozen=True, eq=False)
class Dense(_Coefficients):
    """Coefficients written out, shape (n, b)."""

    array: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape[0], self.array.shape[1]

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def tile(self, rows: slice, columns: Any) -> Array:
        return self.array[rows, columns]

    def rows(self, rows: slice) -> Dense:
        return Dense(self.array[rows])

    def columns(self, index: Any) -> Dense:
        return Dense(self.array[:, index])

    def scale(self, factor: Any) -> Dense:
        return Dense(self.array * factor)

    def combine(self, B: Array) -> Dense:
        return Dense(self.array @ B)

    def weigh(self, V: Array) -> Array:
        return V.T @ self.array

    def merged(self, groups: Array, size: int) -> Dense:
        return Dense(_sums_of_groups(self.array, groups, size))


@dataclass(frozen=True, eq=False)
class SingleFeatures(_Coefficients):
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

    def tile(self, rows: slice, columns: Any) -> Array:
        start, stop, _ = rows.indices(self.n_points)
        index, value = self.index[columns], self.value[columns]
        out = np.zeros((stop - start, index.shape[0]), dtype=self.dtype)
        inside = np.flatnonzero((index >= start) & (index < stop))
        out[index[inside] - start, inside] = value[inside]
        return out

    def rows(self, rows: slice) -> SingleFeatures:
        start, stop, _ = rows.indices(self.n_points)
        inside = (self.index >= start) & (self.index < stop)
        index = np.where(inside, self.index - start, 0)
        return SingleFeatures(index, np.where(inside, self.value, self.dtype.type(0)), stop - start)

    def columns(self, index: Any) -> SingleFeatures:
        return SingleFeatures(self.index[index], self.value[index], self.n_points)

    def scale(self, factor: Any) -> SingleFeatures:
        return SingleFeatures(self.index, self.value * factor, self.n_points)

    def combine(self, B: Array) -> Dense:
        return Dense(_sums_of_groups(self.value[:, None] * B, self.index, self.n_points))

    def weigh(self, V: Array) -> Array:
        return (V[self.index] * self.value[:, None]).T

    def merged(self, groups: Array, size: int) -> SingleFeatures:
        return SingleFeatures(groups[self.index], self.value, size)


@dataclass(frozen=True, eq=False)
class LowRank(_Coefficients):
    """The product left @ right of an (n, r) and an (r, b) matrix."""

    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.left.shape[0], self.right.shape[1]

    @property
    def dtype(self) -> Any:
        return np.result_type(self.left, self.right)

    def tile(self, rows: slice, columns: Any) -> Array:
        return self.left[rows] @ self.right[:, columns]

    def rows(self, rows: slice) -> LowRank:
        return LowRank(self.left[rows], self.right)

    def columns(self, index: Any) -> LowRank:
        return LowRank(self.left, self.right[:, index])

    def scale(self, factor: Any) -> LowRank:
        return LowRank(self.left, self.right * factor)

    def combine(self, B: Array) -> LowRank:
        return LowRank(self.left, self.right @ B)

    def weigh(self, V: Array) -> Array:
        return (V.T @ self.left) @ self.right

    def merged(self, groups: Array, size: int) -> LowRank:
        return LowRank(_sums_of_groups(self.left, groups, size), self.right)


@dataclass(frozen=True, eq=False)
class Stacked(_Coefficients):
    """Blocks on top of each other, one per group of points, with equal numbers of elements."""

    parts: tuple[Dense | SingleFeatures | LowRank, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return sum(p.shape[0] for p in self.parts), self.parts[0].shape[1]

    @property
    def dtype(self) -> Any:
        return np.result_type(*(p.dtype for p in self.parts))

    def blocks(self) -> list[tuple[slice, Dense | SingleFeatures | LowRank]]:
        """Each part with the rows it stands on."""
        stops = np.cumsum([p.shape[0] for p in self.parts]).tolist()
        starts = [0, *stops[:-1]]
        return [(slice(a, b), p) for a, b, p in zip(starts, stops, self.parts, strict=True)]

    def tile(self, rows: slice, columns: Any) -> Array:
        return np.vstack([p.tile(r, columns) for r, p in self._cut(rows)]).astype(self.dtype)

    def rows(self, rows: slice) -> Coef:
        return stack([p.rows(r) for r, p in self._cut(rows)])

    def columns(self, index: Any) -> Coef:
        return stack([p.columns(index) for p in self.parts])

    def scale(self, factor: Any) -> Coef:
        return stack([p.scale(factor) for p in self.parts])

    def combine(self, B: Array) -> Coef:
        return stack([p.combine(B) for p in self.parts])

    def weigh(self, V: Array) -> Array:
        return np.asarray(sum(p.weigh(V[rows]) for rows, p in self.blocks()))

    def merged(self, groups: Array, size: int) -> Dense:
        """Written out, because blocks may share points now."""
        out = np.zeros((size, self.shape[1]), dtype=self.dtype)
        for rows, part in self.blocks():
            np.add.at(out, groups[rows], part.tile(slice(None), slice(None)))
        return Dense(out)

    def _cut(self, rows: slice) -> list[tuple[slice, Dense | SingleFeatures | LowRank]]:
        start, stop, _ = rows.indices(self.shape[0])
        cut = []
        for where, part in self.blocks():
            first, last = max(start, where.start), min(stop, where.stop)
            if first < last:
                cut.append((slice(first - where.start, last - where.start), part))
        return cut


Coef = Dense | SingleFeatures | LowRank | Stacked


def stack(coefs: Sequence[Coef]) -> Coef:
    """Put coefficients on top of each other."""
    parts: list[Any] = []
    for coef in coefs:
        parts.extend(coef.parts if isinstance(coef, Stacked) else [coef])
    return parts[0] if len(parts) == 1 else Stacked(tuple(parts))


def _sums_of_groups(array: Array, groups: Array, size: int) -> Array:
    """Row i of the array added to row groups[i]."""
    out = np.zeros((size, array.shape[1]), dtype=array.dtype)
    np.add.at(out, groups, array)
    return out
