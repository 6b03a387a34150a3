"""Parquet tables; unused columns keep their Arrow types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array
from mercer.cli._data import Data, Selection, check_expansion, choose_columns, free_name
from mercer.cli._output import Output
from mercer.cli._terminal import DataError, require


@dataclass(frozen=True, eq=False)
class ParquetTable(Data):
    """A Parquet file."""

    table: Any  # a pyarrow.Table

    has_names: ClassVar[bool] = True

    def label(self, row: int) -> str:
        """The row number, from 1."""
        return f"row {row + 1}"

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
        _write(table, output)

    def write_columns(self, columns: dict[str, Array], output: Output) -> None:
        """Additional columns, after those of the file."""
        pa = require("pyarrow", "Parquet files")
        table = self.table
        for name, column in columns.items():
            table = table.append_column(free_name(name, self.table.column_names), pa.array(column))
        _write(table, output)


def read_parquet(path: Path, selection: Selection) -> ParquetTable:
    """Read a Parquet file."""
    pa = require("pyarrow", "Parquet files")
    parquet = require("pyarrow.parquet", "Parquet files")

    def is_one(kind: Any, *names: str) -> bool:
        return any(getattr(pa.types, f"is_{name}")(kind) for name in names)

    try:
        schema = parquet.read_schema(path)
        stored = path.stat().st_size
        check_expansion(path, _size_of_values(parquet.read_metadata(path)), stored, selection)
        text = [f.name for f in schema if is_one(f.type, "string", "large_string", "binary")]
        table = parquet.read_table(path, read_dictionary=text)  # repeated text is small
        check_expansion(path, sum(_size_of_text(table[name]) for name in text), stored, selection)
        table = table.cast(schema)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a Parquet file, or is damaged: {error}") from error
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows")
    index = _index_columns(table)

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

    chosen = choose_columns(path, table.column_names, selection, numbers)
    return ParquetTable(path, *chosen, table)


def _size_of_values(metadata: Any) -> int:
    """Bytes of a table in memory; repeated values are stored once in the file."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(j) for group in groups for j in range(metadata.num_columns)]
    return sum(max(chunk.total_uncompressed_size, 8 * chunk.num_values) for chunk in chunks)


def _size_of_text(column: Any) -> int:
    """Bytes of a column of text that was read with each distinct text once."""
    compute = require("pyarrow.compute", "Parquet files")
    lengths = [compute.binary_length(c.dictionary).take(c.indices) for c in column.chunks]
    return sum(compute.sum(part).as_py() or 0 for part in lengths)


def _index_columns(table: Any) -> set[str]:
    """Columns in which pandas stored its index."""
    stored = (table.schema.metadata or {}).get(b"pandas")
    try:
        names = json.loads(stored)["index_columns"] if stored else []
    except (KeyError, ValueError):
        names = []
    return {name for name in names if isinstance(name, str)}


def _write(table: Any, output: Output) -> None:
    parquet = require("pyarrow.parquet", "Parquet files")
    with output.file() as path:
        parquet.write_table(table, path)
