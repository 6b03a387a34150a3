"""Rows of files that are read in pieces: .npy arrays and Parquet tables."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer._array import Array, as_numbers
from mercer._chunks import Chunks, LocalChunks
from mercer._config import get_options
from mercer.exceptions import InputError, UnavailableError
from mercer.io._npy import NpyFile

_SHARE = 0.25  # of `working_memory` that a piece may take: functions make copies of it
_PARQUET = (".parquet", ".pq")
_NUMBERS = ("integer", "floating", "boolean", "decimal")


def open_rows(path: str | os.PathLike[str], columns: Sequence[Any] | None = None) -> Chunks:
    """Open a file whose rows are read in pieces, because it may be larger than memory.

    The functions and estimators that take rows in pieces take the result like an array; each pass
    over the rows reads the file once. A quarter of `options(working_memory=...)` limits the size of
    a piece.

    Parameters
    ----------
    path : str or path-like
        An .npy file of shape (n, d), or (n,), with numbers; or a Parquet file (.parquet, .pq),
        which needs pyarrow. Parquet files are read by row groups, which must fit into memory.
    columns : sequence, optional
        Columns to read: names in a Parquet file, numbers in an .npy file. All by default, but not
        the index of pandas. Text, dates and missing values are refused.

    Returns
    -------
    Chunks
        Rows with `shape`, `dtype` and `len`. float32 stays float32; other numbers become float64.

    Raises
    ------
    InputError
        If the file is damaged or does not hold numbers.

    See Also
    --------
    checkpoint : long computations that continue after an interruption.

    Notes
    -----
    Densities in up to three dimensions are fastest on `numpy.load(path, mmap_mode="r")`, which
    they read in pieces too. The file must not change while it is used.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", X)
    ...     rows = mc.io.open_rows(f"{folder}/rows.npy")
    ...     model = mc.KernelPCA(2, kernel=mc.Gaussian(1.0), n_landmarks=50, random_state=0)
    ...     model = model.fit(rows)
    >>> rows.shape, model.eigenvalues_.shape
    ((1000, 2), (2,))
    """
    path = Path(path)
    if columns is not None and (isinstance(columns, str) or not np.iterable(columns)):
        raise InputError(f"columns must be a list of names or numbers, got {columns!r}")
    if not path.is_file():
        raise InputError(f"{path} does not exist, or is not a file")
    suffix = path.suffix.lower()
    if suffix == ".npy":
        rows = _open_array(path, columns)
    elif suffix in _PARQUET:
        rows = _open_parquet(path, columns)
    else:
        raise InputError(
            f"{path} cannot be read in pieces; give an .npy or .parquet file (text tables can be "
            "converted with pyarrow.csv.open_csv)"
        )
    if not len(rows):
        raise InputError(f"{path} has no rows")
    return rows


def _open_array(path: Path, columns: Sequence[Any] | None) -> LocalChunks:
    try:
        file = NpyFile.of(path)
    except Exception as error:
        from zipfile import is_zipfile

        if is_zipfile(path):
            problem = "is an archive of arrays, not an .npy file; give its array alone"
            raise InputError(f"{path} {problem}") from error
        raise InputError(f"{path} is not an .npy file of numbers: {error}") from error
    shape, kind = file.shape, file.dtype
    if kind.kind not in "fiub" or kind.itemsize > 8 or len(shape) not in (1, 2):
        raise InputError(
            f"{path} holds {kind} of shape {shape}; numbers of at most 64 bits, "
            "shape (n, d) or (n,), are needed"
        )
    chosen = None if columns is None else _numbers(path, columns, shape)
    tail = shape[1:] if chosen is None else (len(chosen),)
    dtype = np.dtype(np.float32 if (kind.kind, kind.itemsize) == ("f", 4) else np.float64)
    size = _rows_of_piece(math.prod(shape[1:]))
    starts = range(0, shape[0], size)

    def read(i: int) -> Array:
        block = file.read(starts[i], min(starts[i] + size, shape[0]))
        block = block if chosen is None else block[:, chosen]
        if block.dtype.kind in "iu":
            block = as_numbers(block, str(path))  # refuses those that float64 cannot hold
        return _checked(path, block.astype(dtype, order="C", copy=False), starts[i])

    sizes = [min(size, shape[0] - start) for start in starts]
    return LocalChunks.reading(sizes, tail, dtype, _of_one_file(path, read))


def _of_one_file(path: Path, read: Callable[[int], Array]) -> Callable[[int], Array]:
    """A function that reads pieces, and raises if the file is no longer the one that it was."""

    def identity() -> tuple[int, ...]:
        try:
            found = path.stat()
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def check() -> None:
        if identity() != known:
            raise InputError(f"{path} was changed while it was used")

    def checked(i: int) -> Array:
        check()
        block = read(i)
        check()
        return block

    known = identity()
    return checked


def _numbers(path: Path, columns: Sequence[Any], shape: tuple[int, ...]) -> list[int]:
    whole = [isinstance(j, int | np.integer) and not isinstance(j, bool) for j in columns]
    chosen = [int(j) for j in columns] if all(whole) else []
    if len(shape) != 2 or not chosen:
        raise InputError(f"columns of {path} must be numbers below its number of columns")
    if min(chosen) < 0 or max(chosen) >= shape[1]:
        raise InputError(f"{path} has columns 0 to {shape[1] - 1}, got {chosen}")
    return chosen


def _open_parquet(path: Path, columns: Sequence[Any] | None) -> LocalChunks:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UnavailableError("Parquet files need pyarrow: pip install 'mercer[cli]'") from error
    try:
        with pq.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a Parquet file, or is damaged: {error}") from error
    index = index_columns(schema) if columns is None else set()
    names = [c for c in schema.names if c not in index] if columns is None else list(columns)
    for name in names:
        if schema.names.count(name) != 1:
            raise InputError(f"{path} has no single column {name!r}; it has {schema.names}")
        kind = schema.field(name).type
        if not any(getattr(pa.types, f"is_{k}")(kind) for k in _NUMBERS):
            raise InputError(
                f"column {name!r} of {path} is of type {kind}, not of numbers; give the columns "
                "to read"
            )
    if not names:
        raise InputError(f"{path} has no columns to read")
    narrow = all(schema.field(name).type == pa.float32() for name in names)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    size = _rows_of_piece(len(names))
    # neighbouring small groups are one piece; a large one is read as it is
    pieces: list[list[int]] = []
    for i, rows in enumerate(groups):
        if pieces and sum(groups[j] for j in pieces[-1]) + rows <= size:
            pieces[-1].append(i)
        else:
            pieces.append([i])
    sizes = [sum(groups[j] for j in piece) for piece in pieces]
    starts = np.cumsum([0, *sizes]).tolist()

    def read(i: int) -> Array:
        return _checked(path, _read_groups(path, pieces[i], names, dtype), starts[i])

    return LocalChunks.reading(sizes, (len(names),), dtype, _of_one_file(path, read))


def index_columns(schema: Any) -> set[str]:
    """Columns in which pandas stored its index."""
    stored = (schema.metadata or {}).get(b"pandas")
    try:
        names = json.loads(stored)["index_columns"] if stored else []
        return {name for name in names if isinstance(name, str)}
    except (LookupError, RecursionError, TypeError, ValueError):  # not as pandas writes it
        return set()


def _read_groups(path: Path, groups: list[int], names: list[str], dtype: Any) -> Array:
    """Columns of some row groups; integers that float64 cannot hold are refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table = file.read_row_groups(groups, columns=names, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is damaged, or was changed: {error}") from error
    out = np.empty((table.num_rows, len(names)), dtype=dtype)
    for j, name in enumerate(names):
        try:
            out[:, j] = table[name].cast(pa.from_numpy_dtype(dtype)).to_numpy()
        except pa.ArrowInvalid as error:
            raise InputError(f"column {name!r} of {path}: {error}") from error
    return out


def _rows_of_piece(width: int) -> int:
    return max(1, int(_SHARE * get_options().working_memory * 2**20) // (8 * max(1, width)))


def _checked(path: Path, block: Array, start: int) -> Array:
    """The block, if its numbers are finite: the file is checked as it is read."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = block.sum()  # cheap; if it is finite, all numbers are
    if not np.isfinite(total) and not np.isfinite(block).all():
        row = start + int(np.argmin(np.isfinite(block).reshape(len(block), -1).all(axis=1)))
        raise InputError(f"{path} has missing or infinite values, the first in row {row}")
    return block
