"""Text tables. Cells stay text until they are worked on, so what is not comes out as it went in."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array
from mercer.cli._data import Choice, Data, choose_columns
from mercer.cli._output import replacing
from mercer.cli._problems import DataProblem, counted, listed

_BLOCK = 20_000  # rows that are strings of Python at once
_MISSING = ("", "na", "nan", "n/a", "null", "none")
_TEXT = np.dtypes.StringDType()  # 16 bytes per short cell


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    separator: str = ","
    newline: str = "\n"


@dataclass(frozen=True, eq=False)
class TextTable(Data):
    """A CSV or TSV file.

    Attributes
    ----------
    header : tuple of str or None
        The names of all columns, if the file has them.
    cells : tuple of arrays of strings
        All columns.
    used : tuple of int
        Which of them `values` holds.
    """

    header: tuple[str, ...] | None = None
    cells: tuple[Any, ...] = field(default=(), repr=False)
    used: tuple[int, ...] = ()
    dialect: Dialect = Dialect()

    has_names: ClassVar[bool] = True

    def label(self, row: int) -> str:
        """As an editor counts."""
        return f"line {row + 1 + (self.header is not None)}"

    def write(self, values: Array, output: Path) -> None:
        """Cells whose value did not change keep their text."""
        cells = list(self.cells)
        for j, i in enumerate(self.used):
            changed = values[:, j] != self.values[:, j]  # and NaN differs from everything
            cells[i] = self.cells[i].copy()
            cells[i][changed] = as_text(values[changed, j])
        write_table(output, self.header, cells, self._dialect_for(output))

    def write_scores(self, score: Array, is_anomaly: Array, output: Path) -> None:
        """Two more columns."""
        extra = [as_text(score), as_truth(is_anomaly)]
        header = None if self.header is None else (*self.header, *score_names(self.header))
        write_table(output, header, [*self.cells, *extra], self._dialect_for(output))

    def _dialect_for(self, output: Path) -> Dialect:
        if output.suffix.lower() == self.path.suffix.lower():
            return self.dialect
        return Dialect("\t" if output.suffix.lower() == ".tsv" else ",", self.dialect.newline)


def read_csv(path: Path, choice: Choice) -> TextTable:
    """Read a text table; refuse what is not rectangular."""
    dialect = _dialect(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter=dialect.separator, strict=True)
            header, cells = _columns(path, rows, choice.header)
    except UnicodeDecodeError as error:
        raise DataProblem(f"{path} is not UTF-8 text; save it as CSV in UTF-8") from error
    except csv.Error as error:
        raise DataProblem(f"{path} is not a table: line {rows.line_num}: {error}") from error
    names = header or tuple(str(i + 1) for i in range(len(cells)))
    first = 2 if header else 1

    def numbers(i: int) -> Array | str:
        return as_numbers(cells[i], choice.missing, first)

    used, values, left = choose_columns(path, names, choice, numbers)
    return TextTable(
        path, values, tuple(names[i] for i in used), left, header, tuple(cells), used, dialect
    )


def write_table(
    output: Path, header: Iterable[str] | None, cells: Iterable[Any], dialect: Dialect | None = None
) -> None:
    """Write columns of strings."""
    cells, dialect = list(cells), dialect or Dialect()
    with replacing(output) as part, part.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=dialect.separator, lineterminator=dialect.newline)
        if header is not None:
            writer.writerow(header)
        for start in range(0, len(cells[0]), _BLOCK):
            block = [column[start : start + _BLOCK].tolist() for column in cells]
            writer.writerows(zip(*block, strict=True))


def score_names(names: Iterable[str]) -> tuple[str, str]:
    """`score` and `is_anomaly`, or the next names that are free."""
    taken, found = set(names), []
    for name in ("score", "is_anomaly"):
        number, free = 2, name
        while free in taken:
            number, free = number + 1, f"{name}_{number}"
        found.append(free)
    return found[0], found[1]


def as_text(values: Array) -> Any:
    """Numbers in twelve digits: more would be rounding."""
    return np.array([f"{value:.12g}" for value in values.tolist()], dtype=_TEXT)


def as_truth(mask: Array) -> Array:
    """Words of a text table."""
    return np.where(mask, "true", "false")


def as_numbers(cells: Any, markers: tuple[str, ...], first_line: int) -> Array | str:
    """The values of cells, NaN where there are none; or why they are no numbers."""
    plain = np.strings.strip(cells)
    lower = np.strings.lower(plain)
    missing = np.zeros(len(cells), dtype=bool)
    for marker in _MISSING:
        missing |= lower == marker
    for marker in markers:
        missing |= plain == marker.strip()
    plain[missing] = "nan"
    try:
        if np.any(np.strings.find(plain, "_") >= 0):  # Python's 1_000 is text elsewhere
            raise ValueError
        return np.asarray(plain.astype(np.float64))
    except ValueError:
        return _why_no_numbers(plain, first_line)


def _why_no_numbers(cells: Any, first_line: int) -> str:
    bad = [i for i, cell in enumerate(cells.tolist()) if not _is_number(cell)]
    if len(bad) + int(np.sum(cells == "nan")) == len(cells):
        return "text"
    cell = str(cells[bad[0]])
    hint = ", decimal commas are not read" if re.fullmatch(r"[-+]?\d+,\d+", cell) else ""
    count, verb = counted(len(cells), "cell"), "is" if len(bad) == 1 else "are"
    few = f"{len(bad):,} of {count} {verb} no number"
    return f"{few}, the first is {cell[:30]!r} in line {first_line + bad[0]}{hint}"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _dialect(path: Path) -> Dialect:
    """The separator that the first line has most of, and how lines end."""
    with path.open("rb") as file:
        line = file.readline(1_000_000)
    newline = "\r\n" if line.endswith(b"\r\n") else "\n"
    if path.suffix.lower() == ".tsv":
        return Dialect("\t", newline)
    bare = re.sub(rb'"[^"]*"', b"", line)
    separators = (",", ";", "\t", "|")
    return Dialect(max(separators, key=lambda s: bare.count(s.encode())), newline)


def _columns(path: Path, rows: Any, named: bool) -> tuple[tuple[str, ...] | None, list[Any]]:
    """The header and the columns, read in blocks."""
    first = next(rows, None)
    if not first:
        raise DataProblem(f"{path} is empty")
    if named:
        _check_header(path, first)
    todo = _rectangular(path, rows, len(first))
    todo = todo if named else chain([first], todo)
    parts = []
    while block := list(islice(todo, _BLOCK)):
        parts.append([np.array(column, dtype=_TEXT) for column in zip(*block, strict=True)])
    if not parts:
        raise DataProblem(f"{path} has a first line with names and no rows")
    cells = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return tuple(first) if named else None, cells


def _check_header(path: Path, names: list[str]) -> None:
    """Numbers instead of names are a lost row, unless they count the columns."""
    count = list(map(str, range(len(names) + 1)))
    if all(map(_is_number, names)) and names not in (count[:-1], count[1:]):
        raise DataProblem(
            f"the first line of {path} holds numbers ({listed(names, 4)}), not names; add a line "
            "with names, or --no-header"
        )


def _rectangular(path: Path, rows: Any, width: int) -> Iterator[list[str]]:
    """Rows of equal length; blank lines may stand at the end, or be the empty cell of a column."""
    blank = 0
    for row in rows:
        if not row and width == 1:
            yield [""]
        elif not row:
            blank = blank or rows.line_num
        elif blank:
            raise DataProblem(f"line {blank} of {path} is blank; take it out")
        elif len(row) != width:
            raise DataProblem(
                f"line {rows.line_num} of {path} has {counted(len(row), 'cell')} and the first "
                f"line {width}; "
                "is the file complete?"
            )
        else:
            yield row
