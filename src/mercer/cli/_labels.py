"""A number for each row, beside everything that was read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mercer._array import Array
from mercer.cli._arrays import ArrayFile
from mercer.cli._csv import Dialect, TextTable, write_table
from mercer.cli._data import Data
from mercer.cli._images import ImageFolder
from mercer.cli._output import replacing
from mercer.cli._parquet import ParquetTable
from mercer.cli._problems import needed

_NAME = "cluster"


def write_labels(data: Data, labels: Array, output: Path) -> None:
    """Write a table with one more column, or a table of labels; of arrays also an .npz file."""
    if isinstance(data, ParquetTable):
        _write_parquet(data, labels, output)
    elif isinstance(data, TextTable):
        header = None if data.header is None else (*data.header, free_name(data.header))
        same = output.suffix.lower() == data.path.suffix.lower()
        separator = "\t" if output.suffix.lower() == ".tsv" else ","
        dialect = data.dialect if same else Dialect(separator, data.dialect.newline)
        write_table(output, header, [*data.cells, labels.astype(str)], dialect)
    elif isinstance(data, ArrayFile) and output.suffix.lower() == ".npz":
        arrays = {**data.others, data.key or "array": data.array}
        arrays[free_name(arrays)] = labels
        with replacing(output) as part, part.open("xb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    else:
        is_folder = isinstance(data, ImageFolder)
        names = np.array(data.files) if is_folder else np.arange(len(labels)).astype(str)  # type: ignore[attr-defined]
        write_table(output, ("file" if is_folder else "row", _NAME), (names, labels.astype(str)))


def free_name(taken: object) -> str:
    """`cluster`, or the next name that is free."""
    number, name = 2, _NAME
    while name in taken:  # type: ignore[operator]
        number, name = number + 1, f"{_NAME}_{number}"
    return name


def _write_parquet(data: ParquetTable, labels: Array, output: Path) -> None:
    pa, parquet = (needed(name, "Parquet files") for name in ("pyarrow", "pyarrow.parquet"))
    table = data.table.append_column(free_name(data.table.column_names), pa.array(labels))
    with replacing(output) as part:
        parquet.write_table(table, part)
