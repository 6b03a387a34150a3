"""Rows in pieces on a Dask cluster: each function of a piece is a task there.

The only module that imports Dask.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self
from uuid import uuid4

import dask
import dask.array
import numpy as np
from dask.delayed import Delayed, delayed

from mercer._array import as_numbers
from mercer._checkpoint import fingerprint
from mercer._chunks._base import TWO_KINDS, Chunks, Function, added
from mercer._config import get_options, options
from mercer._frames import is_chunked
from mercer._progress import report
from mercer.exceptions import InputError

with contextlib.suppress(ImportError):
    # Dask imports it when it computes; if that is inside of `config.set`, its defaults are lost
    import distributed  # noqa: F401

_BRANCHES = 8  # results that one task adds


class DaskChunks(Chunks):
    """Pieces of a Dask array, dataframe or series; a column holds delayed blocks.

    Only totals, chosen rows and the number of rows of each piece are sent to the client. All that a
    task needs besides its blocks is part of the graph, so that it can be sent again if a worker is
    lost.
    """

    @classmethod
    def of(cls, X: Any, name: str = "X") -> DaskChunks:
        """Return a Dask collection in pieces; unknown numbers of rows are computed."""
        if isinstance(X, dask.array.Array):
            if X.ndim not in (1, 2):
                raise InputError(f"{name} must have one or two dimensions, got shape {X.shape}")
            if X.ndim == 2 and len(X.chunks[1]) > 1:
                X = X.rechunk({1: -1})
            tail, dtype, sizes = X.shape[1:], X.dtype, X.chunks[0]
            blocks = [
                _named("rows", _of_shape, block, (size, *tail), name)
                for block, size in zip(X.to_delayed().reshape(-1), sizes, strict=True)
            ]
        elif hasattr(X, "to_delayed") and hasattr(X, "_meta") and hasattr(X, "dtypes"):
            meta = X._meta
            head = np.asarray(as_numbers(X._meta_nonempty, name))  # refuses text and dates
            blocks = [_named("numbers", _numbers, block) for block in X.to_delayed()]
            tail, dtype = head.shape[1:], _float_type(meta)
            sizes = (np.nan,)
        else:
            raise InputError(
                f"{name} must be a Dask array, dataframe or series, got {type(X).__name__}; "
                "others have no rows"
            )
        if np.isnan(np.asarray(sizes, dtype=np.float64)).any():
            sizes = dask.compute(*[_named("sizes", len, block) for block in blocks])
        if np.isnan(np.asarray(tail, dtype=np.float64)).any():
            raise InputError(f"{name} has an unknown number of columns; use compute_chunk_sizes()")
        used = [i for i, size in enumerate(sizes) if size]
        if not used:
            raise InputError(f"{name} has no rows: at least one is needed")
        shape = tuple(int(t) for t in tail)
        return cls(tuple(int(sizes[i]) for i in used), shape, dtype, ([blocks[i] for i in used],))

    def mapped(
        self, function: Function, *arguments: Any, tail: tuple[int, ...] = (), dtype: Any = None
    ) -> Self:
        call = _call(function, arguments)
        column = [_named(_label(function), _run, call, *b) for b in self._blocks]
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
        if not isinstance(other, DaskChunks):
            raise InputError(TWO_KINDS)
        call, label, blocks = _call(function, arguments), _label(function), other._blocks
        column = [
            _tree([_named(label, _run, call, *mine, *b) for b in blocks[i if half else 0 :]], add)
            for i, mine in enumerate(self._blocks)
        ]
        return replace(self, tail=tail, dtype=np.dtype(dtype), columns=(column,))

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.gathered(fingerprint))

    def total(
        self, function: Function, *arguments: Any, add: Function | None = None, task: str = "rows"
    ) -> Any:
        report(task, 0, 1.0, total=1)
        try:
            whole = _tree(list(self.mapped(function, *arguments).columns[0]), add)
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
                return dask.compute(whole)[0]
        finally:
            report(task, 1, 0.0, total=1)

    def collected(self) -> dask.array.Array:
        arrays = [
            dask.array.from_delayed(block, (size, *self.tail), dtype=self.dtype)
            for block, size in zip(self.columns[0], self.sizes, strict=True)
        ]
        return dask.array.concatenate(arrays)

    @property
    def _blocks(self) -> list[tuple[Any, ...]]:
        return list(zip(*self.columns, strict=True))

    def _column(self, array: Any, name: str) -> list[Any]:
        if is_chunked(array):
            given = array if isinstance(array, DaskChunks) else DaskChunks.of(array, name)
            if len(given) != len(self):
                raise InputError(f"{name} must have {len(self)} rows, got {len(given)}")
            if given.sizes != self.sizes:
                rows = given.collected().rechunk({0: self.sizes})
                given = DaskChunks.of(rows, name)
            return given.columns[0]
        self._check_count(array, name)
        return self._constants([array[rows] for rows in self.slices])

    def _constants(self, values: Sequence[Any]) -> list[Any]:
        return [delayed(value, pure=False, traverse=False) for value in values]


class _Call:
    """What all tasks of one pass share: a function, its arguments, and the options in force."""

    def __init__(self, function: Function, arguments: tuple[Any, ...]) -> None:
        self.function, self.arguments, self.options = function, arguments, vars(get_options())

    def __call__(self, *blocks: Any) -> Any:
        with options(**self.options):
            return self.function(*blocks, *self.arguments)


def _call(function: Function, arguments: tuple[Any, ...]) -> Delayed:
    return delayed(_Call(function, arguments), pure=False, traverse=False)


def _run(call: _Call, *blocks: Any) -> Any:
    return call(*blocks)


def _named(label: str, function: Function, *arguments: Any) -> Delayed:
    """A task that the dashboard shows as `label`."""
    return delayed(function, pure=False)(*arguments, dask_key_name=f"{label}-0{uuid4().hex}")


def _label(function: Function) -> str:
    inner = getattr(function, "function", function)
    return f"mercer-{getattr(inner, '__name__', 'rows').strip('_').replace('_', '-')}"


def _tree(parts: list[Delayed], add: Function | None) -> Delayed:
    """The sum of results, a few at a time, in a fixed order."""
    while len(parts) > 1:
        groups = [parts[i : i + _BRANCHES] for i in range(0, len(parts), _BRANCHES)]
        parts = [_named("mercer-sum", _joined, add or added, group) for group in groups]
    return parts[0]


def _joined(add: Function, parts: list[Any]) -> Any:
    out = parts[0]
    for part in parts[1:]:
        out = add(out, part)
    return out


def _of_shape(block: Any, shape: tuple[float, ...], name: str) -> Any:
    """The block, if it has the shape that Dask reports (NaN where unknown)."""
    if len(block.shape) != len(shape) or any(
        a != b for a, b in zip(block.shape, shape, strict=True) if not np.isnan(b)
    ):
        raise InputError(
            f"{name} has a chunk of shape {block.shape}, but Dask says {shape}; "
            "a function that changes shapes needs map_blocks(..., chunks=...)"
        )
    return block


def _numbers(block: Any) -> Any:
    """A block of a dataframe or series as an array; an empty one has nothing to check."""
    if not len(block):
        return np.empty(block.shape)
    return as_numbers(block, "a chunk").astype(_float_type(block), copy=False)


def _float_type(frame: Any) -> Any:
    """float32 if all columns are, of NumPy, pandas or Arrow (float is the latter's name for it)."""
    names = {str(kind).lower().removesuffix("[pyarrow]") for kind in np.atleast_1d(frame.dtypes)}
    return np.dtype(np.float32 if names <= {"float32", "float"} else np.float64)
