"""Coefficients of a batch of elements: an (n, b) matrix that is rarely written out.

`Dense` is the matrix itself; `Selection` has one entry per column (what `feature` gives); `LowRank`
is a product of two thin matrices (what a projection gives); `Stacked` puts such blocks on top of
each other (what adding two elements gives). Engines ask for the parts they need, tile by tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array


@dataclass(frozen=True, eq=False)
class Dense:
    """Coefficients written out, shape (n, b)."""

    array: Array

    @property
    def shape(self) -> tuple[int, int]:
        """(points, elements)."""
        return self.array.shape[0], self.array.shape[1]

    @property
    def dtype(self) -> Any:
        """The floating-point type."""
        return self.array.dtype

    def tile(self, rows: slice, columns: slice) -> Array:
        """The entries of some points for some elements."""
        return self.array[rows, columns]

    def columns(self, index: Any) -> Coef:
        """The coefficients of some of the elements."""
        return Dense(self.array[:, index])

    def scale(self, factor: Any) -> Coef:
        """Multiply every element by a number, or each by its own."""
        return Dense(self.array * factor)

    def combine(self, B: Array) -> Coef:
        """Coefficients of the elements psi_j' = sum_j B[j, j'] psi_j."""
        return Dense(self.array @ B)

    def weigh(self, V: Array) -> Array:
        """V' C for a matrix V with one row per point: shape (columns of V, b)."""
        return V.T @ self.array

    def rows(self, rows: slice) -> Coef:
        """The coefficients of some of the points."""
        return Dense(self.array[rows])

    def merged(self, groups: Array, size: int) -> Coef:
        """Add up the coefficients of equal points: row i goes to row groups[i]."""
        out = np.zeros((size, self.shape[1]), dtype=self.dtype)
        np.add.at(out, groups, self.array)
        return Dense(out)


@dataclass(frozen=True, eq=False)
class Selection:
    """Element j is value[j] times the feature of point index[j]; shape (n, b)."""

    index: Array
    value: Array
    n_points: int

    @property
    def shape(self) -> tuple[int, int]:
        """(points, elements)."""
        return self.n_points, self.index.shape[0]

    @property
    def dtype(self) -> Any:
        """The floating-point type."""
        return self.value.dtype

    def tile(self, rows: slice, columns: slice) -> Array:
        """The entries of some points for some elements."""
        start, stop, _ = rows.indices(self.n_points)
        index, value = self.index[columns], self.value[columns]
        out = np.zeros((stop - start, index.shape[0]), dtype=self.dtype)
        inside = np.flatnonzero((index >= start) & (index < stop))
        out[index[inside] - start, inside] = value[inside]
        return out

    def columns(self, index: Any) -> Coef:
        """The coefficients of some of the elements."""
        return Selection(self.index[index], self.value[index], self.n_points)

    def scale(self, factor: Any) -> Coef:
        """Multiply every element by a number, or each by its own."""
        return Selection(self.index, self.value * factor, self.n_points)

    def combine(self, B: Array) -> Coef:
        """Coefficients of the elements psi_j' = sum_j B[j, j'] psi_j."""
        out = np.zeros((self.n_points, B.shape[1]), dtype=np.result_type(self.dtype, B.dtype))
        np.add.at(out, self.index, self.value[:, None] * B)
        return Dense(out)

    def weigh(self, V: Array) -> Array:
        """V' C for a matrix V with one row per point: shape (columns of V, b)."""
        return (V[self.index] * self.value[:, None]).T

    def rows(self, rows: slice) -> Coef:
        """The coefficients of some of the points."""
        start, stop, _ = rows.indices(self.n_points)
        inside = (self.index >= start) & (self.index < stop)
        index = np.where(inside, self.index - start, 0)
        return Selection(index, np.where(inside, self.value, self.dtype.type(0)), stop - start)

    def merged(self, groups: Array, size: int) -> Coef:
        """Add up the coefficients of equal points: row i goes to row groups[i]."""
        return Selection(groups[self.index], self.value, size)


@dataclass(frozen=True, eq=False)
class LowRank:
    """The product left @ right of an (n, r) and an (r, b) matrix."""

    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        """(points, elements)."""
        return self.left.shape[0], self.right.shape[1]

    @property
    def dtype(self) -> Any:
        """The floating-point type."""
        return np.result_type(self.left, self.right)

    def tile(self, rows: slice, columns: slice) -> Array:
        """The entries of some points for some elements."""
        return self.left[rows] @ self.right[:, columns]

    def columns(self, index: Any) -> Coef:
        """The coefficients of some of the elements."""
        return LowRank(self.left, self.right[:, index])

    def scale(self, factor: Any) -> Coef:
        """Multiply every element by a number, or each by its own."""
        return LowRank(self.left, self.right * factor)

    def combine(self, B: Array) -> Coef:
        """Coefficients of the elements psi_j' = sum_j B[j, j'] psi_j."""
        return LowRank(self.left, self.right @ B)

    def weigh(self, V: Array) -> Array:
        """V' C for a matrix V with one row per point: shape (columns of V, b)."""
        return (V.T @ self.left) @ self.right

    def rows(self, rows: slice) -> Coef:
        """The coefficients of some of the points."""
        return LowRank(self.left[rows], self.right)

    def merged(self, groups: Array, size: int) -> Coef:
        """Add up the coefficients of equal points: row i goes to row groups[i]."""
        out = np.zeros((size, self.left.shape[1]), dtype=self.left.dtype)
        np.add.at(out, groups, self.left)
        return LowRank(out, self.right)


@dataclass(frozen=True, eq=False)
class Stacked:
    """Blocks on top of each other, one per group of points, with equal numbers of elements."""

    parts: tuple[Dense | Selection | LowRank, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """(points, elements)."""
        return sum(p.shape[0] for p in self.parts), self.parts[0].shape[1]

    @property
    def dtype(self) -> Any:
        """The floating-point type."""
        return np.result_type(*(p.dtype for p in self.parts))

    def blocks(self) -> list[tuple[slice, Dense | Selection | LowRank]]:
        """Each part with the rows it stands on."""
        stops = np.cumsum([p.shape[0] for p in self.parts]).tolist()
        starts = [0, *stops[:-1]]
        return [(slice(a, b), p) for a, b, p in zip(starts, stops, self.parts, strict=True)]

    def tile(self, rows: slice, columns: slice) -> Array:
        """The entries of some points for some elements."""
        return np.vstack([p.tile(r, columns) for r, p in self._cut(rows)]).astype(self.dtype)

    def columns(self, index: Any) -> Coef:
        """The coefficients of some of the elements."""
        return stack([p.columns(index) for p in self.parts])

    def scale(self, factor: Any) -> Coef:
        """Multiply every element by a number, or each by its own."""
        return stack([p.scale(factor) for p in self.parts])

    def combine(self, B: Array) -> Coef:
        """Coefficients of the elements psi_j' = sum_j B[j, j'] psi_j."""
        return stack([p.combine(B) for p in self.parts])

    def weigh(self, V: Array) -> Array:
        """V' C for a matrix V with one row per point: shape (columns of V, b)."""
        return np.asarray(sum(p.weigh(V[rows]) for rows, p in self.blocks()))

    def rows(self, rows: slice) -> Coef:
        """The coefficients of some of the points."""
        return stack([p.rows(r) for r, p in self._cut(rows)])

    def merged(self, groups: Array, size: int) -> Coef:
        """Add up the coefficients of equal points; written out, because blocks now overlap."""
        out = np.zeros((size, self.shape[1]), dtype=self.dtype)
        for rows, part in self.blocks():
            np.add.at(out, groups[rows], part.tile(slice(None), slice(None)))
        return Dense(out)

    def _cut(self, rows: slice) -> list[tuple[slice, Dense | Selection | LowRank]]:
        start, stop, _ = rows.indices(self.shape[0])
        cut = []
        for where, part in self.blocks():
            first, last = max(start, where.start), min(stop, where.stop)
            if first < last:
                cut.append((slice(first - where.start, last - where.start), part))
        return cut


Coef = Dense | Selection | LowRank | Stacked


def stack(coefs: Sequence[Coef]) -> Coef:
    """Put coefficients on top of each other."""
    parts: list[Dense | Selection | LowRank] = []
    for coef in coefs:
        parts.extend(coef.parts if isinstance(coef, Stacked) else [coef])
    return parts[0] if len(parts) == 1 else Stacked(tuple(parts))
