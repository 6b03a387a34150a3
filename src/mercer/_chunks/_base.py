"""Rows in pieces: functions of each piece, and sums over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import add as concatenate
from typing import Any, ClassVar, Self

import numpy as np

from mercer._array import Array
from mercer.exceptions import InputError

Block = Any
Function = Callable[..., Any]
TWO_KINDS = (
    "some rows are in a Dask collection and others in pieces of files; give all as Dask "
    "collections, or all as files or arrays"
)


class InPiecesError(InputError, AttributeError):
    """Code that needs all rows in memory was given rows in pieces."""


@dataclass(frozen=True, eq=False)
class Chunks(ABC):
    """n rows in pieces: one or more columns (points, their weights, ...) cut at the same rows.

    A method for many rows is written once, as sums over pieces and functions of pieces:

        moments = rows.total(lambda x: (x.sum(axis=0), x.T @ x))

    A function receives the blocks of one piece, one for each column, and then the `arguments`.
    Functions of pieces are lazy: `mapped` and `crossed` compute nothing before `total`, `rows` or
    `collected` does. `tail` and `dtype` are those of the first column.

    Attributes
    ----------
    sizes : tuple of int
        The number of rows of each piece; no piece is empty.
    tail : tuple of int
        The shape of one row.
    dtype : dtype
    columns : tuple of lists
        Each has one entry per piece, from which a subclass gets the block.
    """

    in_pieces: ClassVar = True

    sizes: tuple[int, ...]
    tail: tuple[int, ...]
    dtype: Any
    columns: tuple[list[Any], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d), or (n,)."""
        return (sum(self.sizes), *self.tail)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def slices(self) -> list[slice]:
        """The rows of each piece."""
        stops = np.cumsum([0, *self.sizes]).tolist()
        return [slice(a, b) for a, b in pairwise(stops)]

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of what determines the rows, for checkpoints."""

    @abstractmethod
    def mapped(
        self, function: Function, *arguments: Any, tail: tuple[int, ...] = (), dtype: Any = None
    ) -> Self:
        """Return function(piece, *arguments) for each piece: one result per row, or any value."""

    @abstractmethod
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
        """Return for each piece the sum of function(piece, q) over the pieces q of `other`.

        With `half`, piece i meets the pieces i, i + 1, ... only, for symmetric functions.
        """

    @abstractmethod
    def total(
        self, function: Function, *arguments: Any, add: Function | None = None, task: str = "rows"
    ) -> Any:
        """Return the sum over the pieces of function(piece, *arguments), added in a fixed order.

        Results are arrays or numbers, tuples or dicts of them, or anything that `add` joins.
        """

    @abstractmethod
    def collected(self) -> Any:
        """Return the first column for the user: a lazy Dask array on a cluster, else an array."""

    @abstractmethod
    def _column(self, array: Any, name: str) -> list[Any]:
        """Return n rows (an array, a Dask collection, or chunks of this kind) cut like these."""

    @abstractmethod
    def _constants(self, values: Sequence[Any]) -> list[Any]:
        """Return a column of one value per piece."""

    def zip(self, *others: Any, name: str = "y") -> Self:
        """Return these rows with more columns: arrays or other chunks of n rows, cut like these."""
        columns = list(self.columns)
        for other in others:
            if isinstance(other, Chunks):
                if type(other) is not type(self):
                    raise InputError(TWO_KINDS)
                if other.sizes == self.sizes:
                    columns += other.columns
                else:
                    columns += [
                        self._column(other.only(i), name) for i in range(len(other.columns))
                    ]
            else:
                columns.append(self._column(other, name))
        return replace(self, columns=tuple(columns))

    def each(self, values: Sequence[Any]) -> Self:
        """Return these rows with one more column, whose block in piece i is values[i]."""
        return replace(self, columns=(*self.columns, self._constants(values)))

    def whole(self, array: Array) -> Self:
        """Return an array as one piece of this kind."""
        column = self._constants([array])
        return replace(
            self, sizes=array.shape[:1], tail=array.shape[1:], dtype=array.dtype, columns=(column,)
        )

    def only(self, column: int) -> Self:
        """Return one of the columns."""
        return replace(self, columns=(self.columns[column],))

    def _check_count(self, array: Any, name: str) -> None:
        try:
            count = array.shape[0] if hasattr(array, "shape") else len(array)
        except (TypeError, IndexError) as error:
            raise InputError(f"{name} must have {len(self)} rows, got {array!r}") from error
        if count != len(self):
            raise InputError(f"{name} must have {len(self)} rows, got {count}")

    def concat(self, other: Chunks) -> Self:
        """Return these pieces followed by those of `other`, which has as many columns."""
        if type(other) is not type(self):
            raise InputError(TWO_KINDS)
        columns = tuple(a + b for a, b in zip(self.columns, other.columns, strict=True))
        dtype = np.result_type(self.dtype, other.dtype)
        return replace(self, sizes=self.sizes + other.sizes, columns=columns, dtype=dtype)

    def gathered(self, function: Function, *arguments: Any, task: str = "rows") -> list[Any]:
        """Return [function(piece, *arguments)] for all pieces; the results must be small."""
        found: list[Any] = self.total(_Listed(function), *arguments, add=concatenate, task=task)
        return found

    def rows(self, index: Any) -> Array:
        """Return chosen rows of the first column as an array, in the order of `index`."""
        index = np.asarray(index)
        stops = np.cumsum(self.sizes)
        order = np.argsort(index, kind="stable")
        piece = np.searchsorted(stops, index[order], side="right")
        local = index[order] - (stops - np.asarray(self.sizes))[piece]
        chosen = [local[piece == i] for i in range(len(self.sizes))]
        used = [i for i, c in enumerate(chosen) if c.size]
        some = replace(self.only(0), sizes=tuple(chosen[i].size for i in used))
        some = replace(some, columns=([self.columns[0][i] for i in used],))
        found = some.each([chosen[i] for i in used]).gathered(_taken, task="chosen rows")
        out = np.concatenate(found)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return np.asarray(out[back])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        raise _in_pieces()

    def __getitem__(self, rows: Any) -> Any:
        raise _in_pieces()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise _in_pieces()


def _in_pieces() -> InPiecesError:
    return InPiecesError(
        "this computation needs all rows in memory, but they come in pieces (a Dask collection, or "
        "files); use n_landmarks or seeds where there is such a parameter, take a sample of the "
        "rows, or X.compute() if they fit"
    )


def added(a: Any, b: Any) -> Any:
    """a + b, entry by entry in tuples and dicts."""
    if isinstance(a, tuple):
        return tuple(added(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return {key: added(value, b[key]) for key, value in a.items()}
    return a + b


@dataclass(frozen=True)
class _Listed:
    """Returns [function(...)], so that results of pieces are added as lists."""

    function: Function

    def __call__(self, *arguments: Any) -> list[Any]:
        return [self.function(*arguments)]


def _taken(block: Any, index: Array) -> Array:
    return np.asarray(block[index])
