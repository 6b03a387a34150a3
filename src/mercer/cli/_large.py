"""Files too large for memory: which they are, their pieces, and outputs made of pieces."""

from __future__ import annotations

import gzip
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli._data import Data, Selection
from mercer.cli._files import Output, Source
from mercer.cli._parquet import size_of_values
from mercer.cli._terminal import CommandError, DataError, UsageError, require
from mercer.cli._text import as_float
from mercer.io import open_rows
from mercer.io._npy import NpyFile

_SHARE = 0.25  # of the memory: reading, scaling and writing make copies
_PIECE = 1 << 25  # bytes of a piece of an array
_PARQUET = (".parquet", ".pq")
LANDMARKS = 1_000  # of models of many rows: they keep time and memory bounded


_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory() -> int:
    """Bytes that this process may take: of the machine, its container, and its address space."""
    if not hasattr(os, "sysconf"):  # Windows does not say: nothing is too large
        return sys.maxsize
    import resource

    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in map(Path, _CONTAINER):
        text = path.read_text().strip() if path.is_file() else ""
        limits += [int(text)] if text.isdigit() else []  # or "max"
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    return min(limits + [address_space] * (address_space != resource.RLIM_INFINITY))


def is_large(source: Source) -> bool:
    """Whether the numbers of a file would take much of the memory."""
    return _bytes(source) > _SHARE * memory()


def refuse_large(source: Source) -> None:
    """Refuse a file that is too large for a command that needs all rows."""
    if is_large(source):
        size, room = _bytes(source) / 1e9, memory() / 1e9
        raise DataError(
            f"{source} holds {size:.3g} GB of numbers, too many for {room:.3g} GB of memory, and "
            "this command, with these options, needs all rows of what it learns from; give it a "
            "sample of the rows (mercer anomalies: with --train), or use mercer.io.open_rows in "
            "Python, where estimators with n_landmarks read rows in pieces"
        )


def _bytes(source: Source) -> int:
    """Bytes of the numbers of an .npy or Parquet file; 0 for all that is read in other ways."""
    if source.is_folder or not isinstance(source.content, Path):
        return 0
    try:
        if source.suffix == ".npy":
            file = NpyFile.of(source.path)
            single = file.dtype.kind == "f" and file.dtype.itemsize <= 4
            return max(source.size, math.prod(file.shape) * (4 if single else 8))
        if source.suffix in _PARQUET:
            parquet = require("pyarrow.parquet", "Parquet files")
            return size_of_values(parquet.read_metadata(source.path))
    except CommandError:
        raise
    except Exception:  # noqa: BLE001 - the reader says what is wrong
        return 0
    return 0


def refuse_whole(wish: Any, option: str) -> None:
    """Refuse an option that needs all rows of a file too large for memory."""
    if wish:
        raise UsageError(f"{option} needs all rows in memory; leave it out for a file this large")


def in_pieces(source: Source, first: Data, selection: Selection) -> Data:
    """The data of a large file, whose `values` are read in pieces; `first` is its first piece."""
    refuse_whole(
        [text for text in selection.missing if not math.isnan(as_float(text))], "--missing"
    )
    columns: Any = first.used if source.suffix == ".npy" else first.names
    return replace(first, source=source, values=open_rows(source.path, columns))


def pieces_of(source: Source) -> Iterator[Source]:
    """A large file as several small ones in memory: row groups of a table, rows of an array.

    A file of another format is one piece.
    """
    if source.suffix == ".npy":
        file = NpyFile.of(source.path)
        n, *tail = file.shape
        size = max(1, _PIECE // max(1, math.prod(tail) * file.dtype.itemsize))
        for start in range(0, n, size):
            content = BytesIO()
            np.save(content, file.read(start, min(start + size, n)))
            yield Source(source.path, content.getvalue(), start)
        return
    if source.suffix not in _PARQUET:
        yield source
        return
    parquet = require("pyarrow.parquet", "Parquet files")
    with parquet.ParquetFile(source.path) as file:
        start = 0
        for i in range(file.num_row_groups):
            group, content = file.read_row_group(i), BytesIO()
            if len(group):
                parquet.write_table(group, content)
                yield Source(source.path, content.getvalue(), start)
            start += len(group)


@contextmanager
def joined(output: Output, source: Source) -> Iterator[Callable[[Callable[[Output], Any]], None]]:
    """Yield a function that takes what writes a piece, and appends that piece to the output.

    `source` is the file whose pieces they are.
    """
    if output.suffix == ".npz":
        raise UsageError("an .npz file cannot be written in pieces; give another format")
    with (
        output.file() as path,
        tempfile.TemporaryDirectory(dir=path.parent) as folder,
        ExitStack() as stack,
    ):
        part = Output(Path(folder) / f"part{output.suffix}", True, output.escape)
        if output.suffix == ".npy":
            add = _append_arrays(path, NpyFile.of(source.path).shape[0], stack)
        elif output.suffix in _PARQUET:
            add = _append_tables(path, stack)
        else:
            add = _append_text(path, stack)

        def append(write: Callable[[Output], Any]) -> None:
            write(part)
            add(part.path)

        yield append


def _append_arrays(path: Path, rows: int, stack: ExitStack) -> Callable[[Path], None]:
    out = stack.enter_context(path.open("wb"))
    kind: Any = None

    def add(part: Path) -> None:
        nonlocal kind
        found = np.load(part)
        if kind is None:
            kind = found.dtype
            shape = (rows, *found.shape[1:])
            header = {"descr": kind.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(out, header)
        if found.dtype != kind:
            raise DataError("the type of the results differs between pieces of the file")
        out.write(np.ascontiguousarray(found).data)

    return add


def _append_tables(path: Path, stack: ExitStack) -> Callable[[Path], None]:
    parquet = require("pyarrow.parquet", "Parquet files")
    out: list[Any] = []

    def add(part: Path) -> None:
        table = parquet.read_table(part)
        if not out:
            out.append(stack.enter_context(parquet.ParquetWriter(path, table.schema)))
        try:
            out[0].write_table(table.cast(out[0].schema))
        except ValueError as error:  # as pyarrow's are
            raise DataError(f"the types of columns differ between pieces: {error}") from error

    return add


def _append_text(path: Path, stack: ExitStack) -> Callable[[Path], None]:
    packed = path.suffix == ".gz"
    raw = stack.enter_context(path.open("wb"))
    out: Any = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0)) if packed else raw

    def add(part: Path) -> None:
        with gzip.open(part) if packed else part.open("rb") as file:
            first = file.readline()  # the names of the columns, which may hold line breaks
            while first.count(b'"') % 2:
                first += file.readline()
            if out.tell() == 0:
                out.write(first)
            while block := file.read(_PIECE):
                out.write(block)

    return add
