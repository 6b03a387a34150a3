"""CSV, TSV and Excel tables. Cells are kept as text, so unused cells are written unchanged."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from io import BytesIO, TextIOWrapper
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array
from mercer._words import counted, listed
from mercer.cli._data import Data, Selection, choose_columns, choose_part, free_name
from mercer.cli._files import Output, Source, check_archive, check_expansion, refuse_damaged
from mercer.cli._parquet import as_arrow, write_parquet
from mercer.cli._terminal import DataError, require
from mercer.cli._text import (
    BLOCK,
    TEXT,
    Dialect,
    as_numbers,
    as_text,
    encodings,
    find_decimal,
    find_dialect,
    is_missing,
    is_number,
    write_table,
)

_ROW_BYTES, _CELL_BYTES = 64, 24  # of an empty list; of a cell in a list and as text
_GUESSED = "is not in UTF-8 and was read as Windows-1252; if letters are wrong, give --encoding"


@dataclass(frozen=True, eq=False)
class TextTable(Data):
    """A table whose cells are text."""

    header: tuple[str, ...] | None  # the names of all columns, if the file has them
    cells: list[Any]  # all columns, as arrays of strings
    dialect: Dialect
    line: str  # what messages call a row of the file

    has_names: ClassVar[bool] = True

    def label(self, row: int) -> str:
        """The line as in a text editor, or the row as in a spreadsheet."""
        return f"{self.line} {row + 1 + (self.header is not None)}"

    def write(self, values: Array, output: Output) -> None:
        """Cells whose value did not change keep their text."""
        cells, numbers = list(self.cells), {}
        for j, i in enumerate(self.used):
            changed = values[:, j] != self.values[:, j]  # NaN differs from everything
            cells[i] = self.cells[i].copy()
            cells[i][changed] = as_text(values[changed, j], self.dialect.decimal)
            if changed.any():
                numbers[i] = values[:, j]
        self._write([], cells, numbers, output)

    def write_columns(self, columns: dict[str, Array], output: Output) -> None:
        """Additional columns, after those of the file."""
        added = [as_text(column, self.dialect.decimal) for column in columns.values()]
        numbers = dict(enumerate(columns.values(), len(self.cells)))
        self._write(list(columns), [*self.cells, *added], numbers, output)

    def _write(self, new: list[str], cells: list[Any], numbers: Any, output: Output) -> None:
        names = self.header or tuple(str(i + 1) for i in range(len(self.cells)))
        names = (*names, *(free_name(name, names) for name in new))
        if output.is_text:
            header = None if self.header is None else names
            write_table(output, header, cells, self._dialect_of(output))
        else:
            write_parquet(as_arrow(names, cells, numbers, self.dialect.decimal), output)

    def _dialect_of(self, output: Output) -> Dialect:
        """That of the input, except for the separator if the format is another."""
        if output.suffix.removesuffix(".gz") == self.source.suffix.removesuffix(".gz"):
            return self.dialect
        comma = ";" if self.dialect.decimal == "," else ","
        return replace(self.dialect, separator="\t" if ".tsv" in output.suffix else comma)


def read_csv(source: Source, selection: Selection) -> TextTable:
    """Read a text table; refuse rows of unequal length."""
    data = source.read(selection.max_expansion)
    tried = encodings(source, data, selection.encoding)
    for encoding in tried:
        try:
            dialect = find_dialect(source, data, encoding, selection)
            file = TextIOWrapper(BytesIO(data), encoding, newline="")
            rows = csv.reader(file, delimiter=dialect.separator, strict=True)
            table = _table(source, selection, rows, dialect)
            guess = encoding == "cp1252" != selection.encoding
            return replace(table, notes=(f"{source} {_GUESSED}",)) if guess else table
        except UnicodeError:
            continue
        except csv.Error as error:
            raise DataError(f"{source} is not a table: line {rows.line_num}: {error}") from error
    raise DataError(
        f"{source} is not text in {' or '.join(tried)}; give its encoding with --encoding"
    )


def read_excel(source: Source, selection: Selection) -> TextTable:
    """Read a sheet of an Excel workbook; formulas count as their stored results."""
    openpyxl = require("openpyxl", "Excel files", "excel")
    with (
        refuse_damaged(f"{source} is not an Excel workbook (.xlsx), or is damaged"),
        warnings.catch_warnings(action="ignore"),
    ):
        check_archive(source, selection.max_expansion)
        book = openpyxl.load_workbook(source.content, read_only=True, data_only=True)
        sheets = _sheets(source, book, selection.max_expansion)
        book.close()
    filled = {name: rows for name, rows in sheets.items() if rows}
    rows = filled[choose_part(source, list(filled), "sheet", selection)]
    return _table(source, selection, iter(rows), Dialect(), line="row")


def _sheets(source: Source, book: Any, limit: float) -> dict[str, list[list[str]]]:
    """The cells of each sheet as text, without empty rows and columns at its end."""
    found, known = {}, 0
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # a file may state a wrong size
        rows: list[list[str]] = []
        width = 0
        for cells in sheet.iter_rows(values_only=True):
            row = [_cell_text(cell) for cell in cells]
            while row and not row[-1]:
                row.pop()
            rows.append(row)
            width = max(width, len(row))
            size = known + len(rows) * (_ROW_BYTES + _CELL_BYTES * width)
            check_expansion(source, size, limit, "more than ")  # one cell may be far away
        while rows and not rows[-1]:
            rows.pop()
        found[sheet.title] = [row + [""] * (width - len(row)) for row in rows]
        known += len(rows) * (_ROW_BYTES + _CELL_BYTES * width)
    return found


def _cell_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return "" if value is None else str(value)


def _table(
    source: Source, selection: Selection, rows: Any, dialect: Dialect, line: str = "line"
) -> TextTable:
    """Read all rows and find the columns of numbers."""
    header, cells = _columns(source, rows, selection.header)
    if line == "line" and rows.line_num > len(cells[0]) + (header is not None):
        line = "row"  # some cells have several lines
    names = header or tuple(str(i + 1) for i in range(len(cells)))
    markers = selection.missing
    decimal = selection.decimal or find_decimal(source, names, cells, markers)

    def numbers(i: int) -> Array | str:
        values, bad = as_numbers(cells[i], markers, decimal)
        if not bad.any():
            return values
        known = len(bad) - int(is_missing(cells[i], markers).sum())
        if bad.sum() == known:
            return "text"
        at = int(np.argmax(bad))
        verb = "is not a number" if bad.sum() == 1 else "are not numbers"
        few = f"{int(bad.sum()):,} of {counted(known, 'cell')} {verb}"
        where = f"{line} {at + 1 + (header is not None)}"
        why = f"{few}, the first is {str(cells[i][at])[:30]!r} in {where}"
        if 2 * bad.sum() > known:
            return why
        raise DataError(
            f"column {names[i]!r} of {source}: {why}; correct it, mark it as missing with "
            "--missing, or leave the column out with --skip"
        )

    chosen = choose_columns(source, names, selection, numbers)
    kept = replace(dialect, decimal=decimal)
    return TextTable(source, *chosen, header, cells, kept, line)


def _columns(source: Source, rows: Any, named: bool) -> tuple[tuple[str, ...] | None, list[Any]]:
    """Read the header and the columns, in blocks of rows."""
    first = next(rows, None)
    if not first:
        raise DataError(f"{source} is empty")
    if not any(first) and len(first) > 1:
        raise DataError(f"the first line of {source} is blank; delete it")
    if named:
        _check_header(source, first)
    todo = _rectangular(source, rows, len(first))
    todo = todo if named else chain([first], todo)
    parts = []
    while block := list(islice(todo, BLOCK)):
        parts.append([np.array(column, dtype=TEXT) for column in zip(*block, strict=True)])
    if not parts:
        raise DataError(f"{source} has column names but no rows")
    cells = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return tuple(first) if named else None, cells


def _check_header(source: Source, names: list[str]) -> None:
    """Refuse a header of numbers, which is probably data, unless it numbers the columns."""
    count = list(map(str, range(len(names) + 1)))
    if all(map(is_number, names)) and names not in (count[:-1], count[1:]):
        raise DataError(
            f"the first line of {source} holds numbers ({listed(names, 4)}), not names; add a "
            "line of column names, or use --no-header"
        )


def _rectangular(source: Source, rows: Any, width: int) -> Iterator[list[str]]:
    """Yield rows of equal length; blank lines may only follow the last row.

    In a table with a single column, a blank line is an empty cell.
    """
    blank = 0
    for row in rows:
        if not row and width == 1:
            yield [""]
        elif not row:
            blank = blank or rows.line_num
        elif blank:
            raise DataError(f"line {blank} of {source} is blank; delete it")
        elif len(row) != width:
            comma = rows.dialect.delimiter == "," and len(row) > width
            hint = "are there decimal commas (--decimal ,)?" if comma else "is the file complete?"
            raise DataError(
                f"line {rows.line_num} of {source} has {counted(len(row), 'cell')}, but the "
                f"first line has {width}; {hint}"
            )
        else:
            yield row
