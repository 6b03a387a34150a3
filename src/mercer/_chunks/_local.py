"""Rows in pieces that this process reads one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from mercer._array import Array
from mercer._chunks._base import TWO_KINDS, Chunks, Function, added
from mercer._config import get_options
from mercer._frames import is_chunked
from mercer._progress import tracked
from mercer.exceptions import InputError

_SHARE = 0.25  # of `working_memory` that one piece may take: functions make copies of it


class LocalChunks(Chunks):
    """Pieces of arrays, memory-mapped or not, or of files: a column holds functions that read."""

    @classmethod
    def of(cls, array: Any, rows: int | None = None) -> LocalChunks:
        """Return an array in pieces of `rows` rows; by default so few that copies fit in memory."""
        row_bytes = max(1, int(np.prod(array.shape[1:]))) * array.dtype.itemsize
        fit = int(_SHARE * get_options().working_memory * 2**20) // row_bytes
        size, n = rows or max(1, fit), len(array)
        sizes = tuple(min(size, n - i) for i in range(0, n, size))
        empty = cls(sizes, tuple(array.shape[1:]), array.dtype, ())
        return empty.zip(array)

    @classmethod
    def reading(
        cls, sizes: Sequence[int], tail: tuple[int, ...], dtype: Any, read: Callable[[int], Any]
    ) -> LocalChunks:
        """Return pieces of these sizes; read(i) loads the block of piece i."""
        used = [i for i, size in enumerate(sizes) if size]
        column = [partial(read, i) for i in used]
        return cls(tuple(sizes[i] for i in used), tail, np.dtype(dtype), (column,))

    def mapped(
        self, function: Function, *arguments: Any, tail: tuple[int, ...] = (), dtype: Any = None
    ) -> Self:
        column = [partial(self._call, i, function, arguments) for i in range(len(self.sizes))]
        return replace(self, tail=tail, dtype=np.dtype(dtype), columns=(column,))

    def crossed(
        self,
        other: Chunks,
        function: Function,
        *arguments: Any,
        half: bool = False,
        add: Function | None = None,
        tail: tuple[int, ...] = (),
        dtype: Any = None,
    ) -> Self:
        if not isinstance(other, LocalChunks):
            raise InputError(TWO_KINDS)

        def across(i: int) -> Any:
            mine, partners = self._blocks(i), range(i if half else 0, len(other.sizes))
            return _sum((function(*mine, *other._blocks(j), *arguments) for j in partners), add)

        column = [partial(across, i) for i in range(len(self.sizes))]
        return replace(self, tail=tail, dtype=np.dtype(dtype), columns=(column,))

    def total(
        self, function: Function, *arguments: Any, add: Function | None = None, task: str = "rows"
    ) -> Any:
        pieces = tracked(range(len(self.sizes)), task)
        return _sum((function(*self._blocks(i), *arguments) for i in pieces), add)

    def collected(self) -> Array:
        out = np.empty(self.shape, dtype=self.dtype)
        for i, rows in tracked(list(enumerate(self.slices)), "rows"):
            out[rows] = self._blocks(i)[0]
        return out

    def _blocks(self, i: int) -> list[Any]:
        return [column[i]() for column in self.columns]

    def _call(self, i: int, function: Function, arguments: tuple[Any, ...]) -> Any:
        return function(*self._blocks(i), *arguments)

    def _column(self, array: Any, name: str) -> Sequence[Any]:
        if is_chunked(array) and not isinstance(array, LocalChunks):
            raise InputError(TWO_KINDS)
        self._check_count(array, name)
        read = array._read if isinstance(array, LocalChunks) else array.__getitem__
        return [partial(read, rows) for rows in self.slices]

    def _read(self, rows: slice) -> Array:
        """Some rows of the first column, from the pieces that hold them."""
        own = [(column, s) for column, s in zip(self.columns[0], self.slices, strict=True)]
        used = [(column, s) for column, s in own if s.start < rows.stop and rows.start < s.stop]
        parts = [column()[max(rows.start - s.start, 0) : rows.stop - s.start] for column, s in used]
        return np.concatenate(parts)

    def _constants(self, values: Sequence[Any]) -> Sequence[Any]:
        return [partial(_same, value) for value in values]


def _same(value: Any) -> Any:
    return value


def _sum(parts: Any, add: Function | None) -> Any:
    parts = iter(parts)
    out, join = next(parts), add or added
    for part in parts:
        out = join(out, part)
    return out
