"""Parquet files, in Arrow's own types: columns that are not worked on keep theirs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array
from mercer.cli._csv import score_names
from mercer.cli._data import Choice, Data, choose_columns, without_markers
from mercer.cli._output import replacing
from mercer.cli._problems import DataProblem, needed


@dataclass(frozen=True, eq=False)
class ParquetTable(Data):
    """A Parquet file.

    Attributes
    ----------
    table : pyarrow.Table
    used : tuple of int
        Which of its columns `values` holds.
    """

    table: Any = field(default=None, repr=False)
    used: tuple[int, ...] = ()

    has_names: ClassVar[bool] = True

    def label(self, row: int) -> str:
        """Counted from 1."""
        return f"row {row + 1}"

    def write(self, values: Array, output: Path) -> None:
        """Columns that did not change keep their type; others become floating point."""
        pa = needed("pyarrow", "Parquet files")
        table = self.table
        for j, i in enumerate(self.used):
            if np.array_equal(values[:, j], self.values[:, j]):
                continue
            old = table.schema.field(i)
            kind = old.type if pa.types.is_floating(old.type) else pa.float64()
            column = pa.array(values[:, j].astype(kind.to_pandas_dtype()), type=kind)
            table = table.set_column(i, old.with_type(kind), column)
        _write(table, output)

    def write_scores(self, score: Array, is_anomaly: Array, output: Path) -> None:
        """Two more columns."""
        pa = needed("pyarrow", "Parquet files")
        table = self.table
        for name, column in zip(score_names(table.column_names), (score, is_anomaly), strict=True):
            table = table.append_column(name, pa.array(column))
        _write(table, output)


def read_parquet(path: Path, choice: Choice) -> ParquetTable:
    """Read a Parquet file."""
    pa = needed("pyarrow", "Parquet files")
    parquet = needed("pyarrow.parquet", "Parquet files")
    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataProblem(f"{path} is not a Parquet file, or a damaged one: {error}") from error
    if table.num_rows == 0:
        raise DataProblem(f"{path} has no rows")
    index = _index_columns(table)

    def numbers(i: int) -> Array | str:
        kind = table.schema.field(i).type
        if table.column_names[i] in index and not choice.columns:
            return "index"
        if not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        ):
            return "text" if _is_text(pa, kind) else f"of type {kind}"
        column = table.column(i).cast(pa.float64(), safe=False).to_numpy()
        return without_markers(np.array(column, dtype=np.float64), choice.missing)

    used, values, left = choose_columns(path, table.column_names, choice, numbers)
    return ParquetTable(path, values, tuple(table.column_names[i] for i in used), left, table, used)


def _is_text(pa: Any, kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    )


def _index_columns(table: Any) -> set[str]:
    """Columns that pandas stored its index in."""
    stored = (table.schema.metadata or {}).get(b"pandas")
    try:
        names = json.loads(stored)["index_columns"] if stored else []
    except (KeyError, ValueError):
        names = []
    return {name for name in names if isinstance(name, str)}


def _write(table: Any, output: Path) -> None:
    parquet = needed("pyarrow.parquet", "Parquet files")
    with replacing(output) as part:
        parquet.write_table(table, part)
