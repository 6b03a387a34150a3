"""Rows in pieces that this process reads one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property, partial
from itertools import count
from operator import add as concatenate
from typing import Any, Self

import numpy as np

from mercer._array import Array
from mercer._checkpoint import checkpointed, fingerprint
from mercer._chunks._base import TWO_KINDS, Chunks, Function, added
from mercer._config import get_options
from mercer._frames import is_chunked
from mercer._progress import tracked
from mercer.exceptions import InputError

_SHARE = 0.25  # of `working_memory` that one piece may take: functions make copies of it


class Column(list[Callable[[], Any]]):
    """Functions that read the blocks of a column.

    `origin` is what determines the blocks: other columns and a function of theirs, or an array.
    """

    def __init__(self, readers: Iterable[Callable[[], Any]], *origin: Any) -> None:
        super().__init__(readers)
        self.origin = origin

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the origin, or of all blocks."""
        return fingerprint(*self.origin or (fingerprint(read()) for read in self))

    def __add__(self, other: Any) -> Column:  # type: ignore[override]
        return Column([*self, *other], self, other)


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
        column = Column(partial(read, i) for i in used)
        return cls(tuple(sizes[i] for i in used), tail, np.dtype(dtype), (column,))

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.sizes, self.columns)

    def mapped(
        self, function: Function, *arguments: Any, tail: tuple[int, ...] = (), dtype: Any = None
    ) -> Self:
        readers = (partial(self._call, i, function, arguments) for i in range(len(self.sizes)))
        column = Column(readers, self.columns, function, arguments)
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

        readers = (partial(across, i) for i in range(len(self.sizes)))
        column = Column(readers, self.columns, other.columns, function, arguments, half)
        return replace(self, tail=tail, dtype=np.dtype(dtype), columns=(column,))

    def total(
        self, function: Function, *arguments: Any, add: Function | None = None, task: str = "rows"
    ) -> Any:
        join, n_pieces = add or added, len(self.sizes)
        if join is concatenate:  # a list of small results
            parts = (function(*self._blocks(i), *arguments) for i in tracked(range(n_pieces), task))
            return _sum(parts, add)
        place = checkpointed(f"sum over {task}", self, function, arguments)
        found: Any = place.found or {"pieces": 0}
        out: Any = None
        for i in tracked(range(int(found["pieces"]), n_pieces), task):
            part = function(*self._blocks(i), *arguments)
            if i and out is None:
                out = _restored(found, part)
            out = join(out, part) if i else part
            if i + 1 < n_pieces:
                place.keep(partial(_state, i + 1, out))
        place.forget_if_short()
        return out

    def collected(self) -> Array:
        out = np.empty(self.shape, dtype=self.dtype)
        for i, rows in tracked(list(enumerate(self.slices)), "rows"):
            out[rows] = self._blocks(i)[0]
        return out

    def _blocks(self, i: int) -> list[Any]:
        return [column[i]() for column in self.columns]

    def _call(self, i: int, function: Function, arguments: tuple[Any, ...]) -> Any:
        return function(*self._blocks(i), *arguments)

    def _column(self, array: Any, name: str) -> list[Any]:
        if is_chunked(array) and not isinstance(array, LocalChunks):
            raise InputError(TWO_KINDS)
        self._check_count(array, name)
        read = array._read if isinstance(array, LocalChunks) else array.__getitem__
        origin = (array.columns,) if isinstance(array, LocalChunks) else ()
        return Column((partial(read, rows) for rows in self.slices), *origin)

    def _read(self, rows: slice) -> Array:
        """Some rows of the first column, from the pieces that hold them."""
        own = [(column, s) for column, s in zip(self.columns[0], self.slices, strict=True)]
        used = [(column, s) for column, s in own if s.start < rows.stop and rows.start < s.stop]
        parts = [column()[max(rows.start - s.start, 0) : rows.stop - s.start] for column, s in used]
        return np.concatenate(parts)

    def _constants(self, values: Sequence[Any]) -> list[Any]:
        return Column((partial(_same, value) for value in values), list(values))


def _same(value: Any) -> Any:
    return value


def _sum(parts: Any, add: Function | None) -> Any:
    parts = iter(parts)
    out, join = next(parts), add or added
    for part in parts:
        out = join(out, part)
    return out


def _state(pieces: int, out: Any) -> dict[str, Any]:
    """A sum over the first pieces, as numbers by name; None is left out."""
    named = {f"part {i}": part for i, part in enumerate(_parts(out)) if part is not None}
    return {"pieces": pieces} | {name: np.array(part) for name, part in named.items()}


def _restored(found: dict[str, Any], like: Any) -> Any:
    """The sum of a state, made like the result of one piece."""
    return _like(like, (found.get(f"part {i}") for i in count()))


def _parts(value: Any) -> Iterator[Any]:
    """The numbers and arrays in tuples, dicts and dataclasses."""
    inner = _inner(value)
    for part in [value] if inner is None else inner.values():
        yield from [part] if inner is None else _parts(part)


def _like(value: Any, parts: Iterator[Any]) -> Any:
    """The reverse of `_parts`, for a value like another one."""
    inner = _inner(value)
    if inner is None:
        part = next(parts)
        return type(value)(part) if isinstance(value, int | float) and part is not None else part
    found = {key: _like(part, parts) for key, part in inner.items()}
    if isinstance(value, dict):
        return found
    if is_dataclass(value):
        return replace(value, **found)  # type: ignore[type-var]
    return tuple(found.values())


def _inner(value: Any) -> dict[Any, Any] | None:
    """What a tuple, dict or dataclass holds; None for anything else."""
    if isinstance(value, tuple):
        return dict(enumerate(value))
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    return value if isinstance(value, dict) else None
