"""Parquet tables, and their conversion from and to text; unused columns keep their types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array
from mercer.cli._data import Data, Selection, choose_columns, free_name
from mercer.cli._files import Output, Source, check_expansion
from mercer.cli._terminal import CommandError, DataError, require
from mercer.cli._text import TEXT, as_numbers, is_missing, write_table
from mercer.io._rows import index_columns

_LABEL = re.compile(r"\s*[-+]?(0\d|\d{16})")  # digits that are a label, such as 00123


@dataclass(frozen=True, eq=False)
class ParquetTable(Data):
    """A Parquet file."""

    table: Any  # a pyarrow.Table

    has_names: ClassVar[bool] = True

    def label(self, row: int) -> str:
        """The row number, from 1."""
        return f"row {self.source.first + row + 1}"

    def write(self, values: Array, output: Output) -> None:
        """Columns that did not change keep their type; others become floating point."""
        pa = require("pyarrow", "Parquet files")
        table = self.table
        for j, i in enumerate(self.used):
            if np.array_equal(values[:, j], self.values[:, j]):
                continue
            old = table.schema.field(i)
            kind = old.type if pa.types.is_floating(old.type) else pa.float64()
            column = pa.array(values[:, j].astype(kind.to_pandas_dtype()), type=kind)
            table = table.set_column(i, old.with_type(kind), column)
        write_parquet(table, output)

    def write_columns(self, columns: dict[str, Array], output: Output) -> None:
        """Additional columns, after those of the file."""
        pa = require("pyarrow", "Parquet files")
        table = self.table
        for name, column in columns.items():
            table = table.append_column(free_name(name, self.table.column_names), pa.array(column))
        write_parquet(table, output)


def read_parquet(source: Source, selection: Selection) -> ParquetTable:
    pa = require("pyarrow", "Parquet files")
    parquet = require("pyarrow.parquet", "Parquet files")

    def is_one(kind: Any, *names: str) -> bool:
        return any(getattr(pa.types, f"is_{name}")(kind) for name in names)

    try:
        metadata = parquet.read_metadata(source.content)
        schema = parquet.read_schema(source.content)
        check_expansion(source, size_of_values(metadata), selection.max_expansion)
        if twice := [name for name, count in Counter(schema.names).items() if count > 1]:
            raise DataError(f"{source} has several columns {twice[0]!r}; rename them")
        text = [f.name for f in schema if is_one(f.type, "string", "large_string", "binary")]
        table = parquet.read_table(source.content, read_dictionary=text)  # repeated text is small
        repeated = sum(_size_of_text(table[name]) for name in text)
        check_expansion(source, repeated, selection.max_expansion)
        table = table.cast(schema)
    except (CommandError, MemoryError):
        raise
    except Exception as error:  # also names that are not text
        raise DataError(f"{source} is not a Parquet file, or is damaged: {error}") from error
    if table.num_rows == 0:
        raise DataError(f"{source} has no rows")
    index = index_columns(table.schema)

    def numbers(i: int) -> Array | str:
        kind = table.schema.field(i).type
        if table.column_names[i] in index and not selection.columns:
            return "index"
        if is_one(kind, "string", "large_string", "dictionary"):
            return "text"
        if not is_one(kind, "integer", "floating", "decimal"):
            return f"of type {kind}"
        column = table.column(i).cast(pa.float64(), safe=False).to_numpy()
        return np.array(column, dtype=np.float64)

    chosen = choose_columns(source, table.column_names, selection, numbers)
    return ParquetTable(source, *chosen, table)


def size_of_values(metadata: Any) -> int:
    """Bytes of a table in memory; repeated values are stored once in the file.

    `column` of a damaged file may end the process (pyarrow does not catch the error), so only
    nested columns, which may have more values than rows, are looked at one by one.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    nested = [
        j for j in range(metadata.num_columns) if metadata.schema.column(j).max_repetition_level
    ]
    flat = 8 * (metadata.num_columns - len(nested))
    values = sum(max(g.total_byte_size, flat * g.num_rows) for g in groups)
    return int(values + sum(8 * g.column(j).num_values for g in groups for j in nested))


def _size_of_text(column: Any) -> int:
    """Bytes of a column of text that was read with each distinct text once."""
    compute = require("pyarrow.compute", "Parquet files")
    lengths = [compute.binary_length(c.dictionary).take(c.indices) for c in column.chunks]
    return sum(compute.sum(part).as_py() or 0 for part in lengths)


def write_parquet(table: Any, output: Output) -> None:
    """Write an Arrow table as Parquet, or as text if the output is a text table."""
    if output.is_text:
        cells = [_as_cells(table, i) for i in range(table.num_columns)]
        write_table(output, table.column_names, cells)
        return
    parquet = require("pyarrow.parquet", "Parquet files")
    with output.file() as path:
        parquet.write_table(table, path)


def _as_cells(table: Any, i: int) -> Any:
    pa = require("pyarrow", "Parquet files")
    try:
        column = table.column(i).cast(pa.string()).fill_null("")
    except pa.ArrowException as error:
        field = table.schema.field(i)
        raise DataError(
            f"column {field.name!r} of type {field.type} cannot be written as text; write a "
            ".parquet file"
        ) from error
    return np.array(column.to_pylist(), dtype=TEXT)


def as_arrow(
    names: Sequence[str], cells: Sequence[Any], numbers: dict[int, Array], decimal: str
) -> Any:
    """An Arrow table of text cells; `numbers` holds columns that are known to be numbers."""
    pa = require("pyarrow", "Parquet files")
    columns = [
        pa.array(numbers[i], from_pandas=True) if i in numbers else _as_typed(column, decimal)
        for i, column in enumerate(cells)
    ]
    return pa.table(columns, names=list(names))


def _as_typed(cells: Any, decimal: str) -> Any:
    """A column of integers, numbers, truth values, dates, times or else text."""
    pa = require("pyarrow", "Parquet files")
    values, bad = as_numbers(cells, (), decimal)
    missing, texts = is_missing(cells, ()), cells.tolist()
    if missing.all():
        return pa.array(texts)
    if not bad.any() and not any(map(_LABEL.match, texts)):
        whole = not (np.strings.find(cells, decimal) >= 0).any() and np.all(
            missing | (values == np.rint(values))
        )
        return pa.array(values, pa.int64() if whole else pa.float64(), mask=missing, safe=False)
    for kind in (pa.bool_(), pa.date32(), pa.timestamp("us")):
        try:
            return pa.array(texts, mask=missing).cast(kind)
        except pa.ArrowInvalid:
            continue
    return pa.array(texts)
