"""CSV and TSV tables. Cells are kept as text, so unused cells are written exactly as they were."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array
from mercer.cli._data import Data, Selection, choose_columns, free_name
from mercer.cli._output import Output
from mercer.cli._terminal import DataError, counted, listed

_BLOCK = 20_000  # rows held as Python strings at a time, to bound the memory
_MISSING = ("", "na", "nan", "n/a", "null", "none")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how cells begin that spreadsheets may run
_TEXT = np.dtypes.StringDType()  # 16 bytes per short cell


@dataclass(frozen=True, eq=False)
class TextTable(Data):
    """A CSV or TSV file."""

    header: tuple[str, ...] | None  # the names of all columns, if the file has them
    cells: list[Any]  # all columns, as arrays of strings
    separator: str
    newline: str

    has_names: ClassVar[bool] = True

    def label(self, row: int) -> str:
        """The line number, as in a text editor."""
        return f"line {row + 1 + (self.header is not None)}"

    def write(self, values: Array, output: Output) -> None:
        """Cells whose value did not change keep their text."""
        cells = list(self.cells)
        for j, i in enumerate(self.used):
            changed = values[:, j] != self.values[:, j]  # NaN differs from everything
            cells[i] = self.cells[i].copy()
            cells[i][changed] = as_text(values[changed, j])
        self._write(self.header, cells, output)

    def write_columns(self, columns: dict[str, Array], output: Output) -> None:
        """Additional columns, after those of the file."""
        header = self.header
        if header is not None:
            header = (*header, *(free_name(name, header) for name in columns))
        self._write(header, [*self.cells, *map(as_text, columns.values())], output)

    def _write(self, header: Sequence[str] | None, cells: list[Any], output: Output) -> None:
        separator = self.separator
        if output.suffix != self.path.suffix.lower():
            separator = "\t" if output.suffix == ".tsv" else ","
        write_table(output, header, cells, separator, self.newline)


def read_csv(path: Path, selection: Selection) -> TextTable:
    """Read a text table; refuse rows of unequal length."""
    separator, newline = _dialect(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter=separator, strict=True)
            header, cells = _columns(path, rows, selection.header)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV in UTF-8") from error
    except csv.Error as error:
        raise DataError(f"{path} is not a table: line {rows.line_num}: {error}") from error
    names = header or tuple(str(i + 1) for i in range(len(cells)))
    first = 2 if header else 1

    def numbers(i: int) -> Array | str:
        return as_numbers(cells[i], selection.missing, first)

    chosen = choose_columns(path, names, selection, numbers)
    return TextTable(path, *chosen, header, cells, separator, newline)


def write_table(
    output: Output,
    header: Iterable[str] | None,
    cells: Sequence[Any],
    separator: str = ",",
    newline: str = "\n",
) -> None:
    """Write columns of strings; file names that are not Unicode are written with escapes."""
    with (
        output.file() as path,
        path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        writer = csv.writer(file, delimiter=separator, lineterminator=newline)
        safe = escape_formulas if output.escape else list
        if header is not None:
            writer.writerow(safe(header))
        for start in range(0, len(cells[0]), _BLOCK):
            block = [safe(column[start : start + _BLOCK].tolist()) for column in cells]
            writer.writerows(zip(*block, strict=True))


def as_text(values: Array) -> Any:
    """Text cells of an array: true and false, integers, or numbers with twelve digits."""
    if values.dtype.kind == "b":
        return np.where(values, "true", "false")
    if values.dtype.kind != "f":
        return values.astype(str)
    return np.array([f"{value:.12g}" for value in values.tolist()], dtype=_TEXT)


def escape_formulas(cells: Iterable[str]) -> list[str]:
    """Put an apostrophe before text that spreadsheets would run as a formula; numbers stay."""
    return [f"'{c}" if c.startswith(_FORMULA) and not _is_number(c) else c for c in cells]


def as_numbers(cells: Any, markers: tuple[str, ...], first_line: int) -> Array | str:
    """Return the numbers in cells, NaN where they are missing; or why they are not numbers."""
    plain = np.strings.strip(cells)
    lower = np.strings.lower(plain)
    missing = np.zeros(len(cells), dtype=bool)
    for marker in _MISSING:
        missing |= lower == marker
    for marker in markers:
        missing |= plain == marker.strip()
    plain[missing] = "nan"
    try:
        if np.any(np.strings.find(plain, "_") >= 0):  # float() reads 1_000
            raise ValueError
        return np.asarray(plain.astype(np.float64))
    except ValueError:
        return _why_not_numbers(plain, first_line)


def _why_not_numbers(cells: Any, first_line: int) -> str:
    bad = [i for i, cell in enumerate(cells.tolist()) if not _is_number(cell)]
    if len(bad) + int(np.sum(cells == "nan")) == len(cells):
        return "text"
    cell = str(cells[bad[0]])
    hint = "; decimal commas are not supported" if re.fullmatch(r"[-+]?\d+,\d+", cell) else ""
    verb = "is not a number" if len(bad) == 1 else "are not numbers"
    few = f"{len(bad):,} of {counted(len(cells), 'cell')} {verb}"
    return f"{few}, the first is {cell[:30]!r} in line {first_line + bad[0]}{hint}"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _dialect(path: Path) -> tuple[str, str]:
    """Find the most frequent separator in the first line, and the line ending."""
    with path.open("rb") as file:
        line = file.readline(1_000_000)
    newline = "\r\n" if line.endswith(b"\r\n") else "\n"
    if path.suffix.lower() == ".tsv":
        return "\t", newline
    bare = re.sub(rb'"[^"]*"', b"", line)
    separators = (",", ";", "\t", "|")
    return max(separators, key=lambda s: bare.count(s.encode())), newline


def _columns(path: Path, rows: Any, named: bool) -> tuple[tuple[str, ...] | None, list[Any]]:
    """Read the header and the columns, in blocks of rows."""
    first = next(rows, None)
    if not first:
        raise DataError(f"{path} is empty")
    if named:
        _check_header(path, first)
    todo = _rectangular(path, rows, len(first))
    todo = todo if named else chain([first], todo)
    parts = []
    while block := list(islice(todo, _BLOCK)):
        parts.append([np.array(column, dtype=_TEXT) for column in zip(*block, strict=True)])
    if not parts:
        raise DataError(f"{path} has column names but no rows")
    cells = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return tuple(first) if named else None, cells


def _check_header(path: Path, names: list[str]) -> None:
    """Refuse a header of numbers, which is probably data, unless it numbers the columns."""
    count = list(map(str, range(len(names) + 1)))
    if all(map(_is_number, names)) and names not in (count[:-1], count[1:]):
        raise DataError(
            f"the first line of {path} holds numbers ({listed(names, 4)}), not names; add a line "
            "of column names, or use --no-header"
        )


def _rectangular(path: Path, rows: Any, width: int) -> Iterator[list[str]]:
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
            raise DataError(f"line {blank} of {path} is blank; delete it")
        elif len(row) != width:
            raise DataError(
                f"line {rows.line_num} of {path} has {counted(len(row), 'cell')}, but the "
                f"first line has {width}; is the file complete?"
            )
        else:
            yield row
