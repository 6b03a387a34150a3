"""Text tables: encodings, separators, decimal commas, and numbers as text."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO, TextIOWrapper
from itertools import islice
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.cli._data import Selection
from mercer.cli._files import Output, Source
from mercer.cli._terminal import DataError

BLOCK = 20_000  # rows held as Python strings at a time, to bound the memory
TEXT = np.dtypes.StringDType()  # 16 bytes per short cell
_HEAD = 100_000  # bytes of a file that show its separator
_SAMPLE = 1_000  # cells of a column, or lines of a file, that show how numbers are written
_MISSING = ("", "na", "nan", "n/a", "#n/a", "null", "none")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how cells begin that spreadsheets may run
_MARKS = {"utf-8-sig": (codecs.BOM_UTF8,), "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)}
_GROUPED = {  # 1,234.5 or 1.234,5; also with the spaces that French programs write
    sign: re.compile(
        rf"[-+]?[1-9]\d{{0,2}}([{other}\u00a0\u202f])\d{{3}}(\1\d{{3}})*([{sign}]\d*)?"
    )
    for sign, other in ((".", ","), (",", "."))
}


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    separator: str = ","
    decimal: str = "."
    newline: str = "\n"
    encoding: str = "utf-8"


def encodings(source: Source, data: bytes, asked: str | None) -> list[str]:
    """Encodings to try, in this order."""
    marked = [name for name, marks in _MARKS.items() if data.startswith(marks)]
    if marked or asked:
        return marked or [asked or ""]
    if b"\0" in data[:_SAMPLE]:
        raise DataError(
            f"{source} is not a text table; if it is text in UTF-16, give --encoding utf-16-le"
        )
    return ["utf-8", "cp1252"]


def find_dialect(source: Source, data: bytes, encoding: str, selection: Selection) -> Dialect:
    """Find the separator and the line ending in the first lines."""
    whole = len(data) <= _HEAD
    head = data[:_HEAD].decode(encoding, "strict" if whole else "ignore")
    head = head if whole else head[: head.rfind("\n") + 1] or head
    signs = (";\t|" if selection.decimal == "," else ",;\t|") + " " * (".txt" in source.suffix)
    signs = selection.separator or ("\t" if ".tsv" in source.suffix else signs)
    newline = "\r\n" if "\r\n" in head else "\n"
    return Dialect(find_separator(head, signs), newline=newline, encoding=encoding)


def find_separator(text: str, candidates: str) -> str:
    """The separator that gives rows of equal length, and the most numbers in their cells."""

    def merit(separator: str) -> tuple[bool, float, int]:
        lines = csv.reader(StringIO(text, newline=""), delimiter=separator)
        try:
            rows = [row for row in islice(lines, _SAMPLE) if row]
        except csv.Error:
            return False, 0.0, 0
        width = len(rows[0]) if rows else 0
        if width < 2 or any(len(row) != width for row in rows):
            return False, 0.0, width
        cells = [cell.strip() for row in rows[1:] or rows for cell in row]
        decimals = "." if separator == "," else ".,"
        numbers = sum(any(_number(c, d) is not None for d in decimals) for c in cells)
        return True, numbers / len(cells), width

    return max(candidates, key=merit)


def is_missing(cells: Any, markers: tuple[str, ...]) -> Array:
    plain = np.strings.strip(cells)
    lower = np.strings.lower(plain)
    missing = np.zeros(len(cells), dtype=bool)
    for word in _MISSING:
        missing |= lower == word
    for marker in markers:
        missing |= plain == marker.strip()
    return missing


def as_numbers(cells: Any, markers: tuple[str, ...], decimal: str = ".") -> tuple[Array, Array]:
    """Return numbers, NaN where there is none, and which cells are neither number nor missing."""
    plain = np.strings.strip(cells)
    plain[is_missing(cells, markers)] = "nan"
    strange = "_" if decimal == "." else "."  # float() reads 1_000
    try:
        if np.any(np.strings.find(plain, strange) >= 0):
            raise ValueError
        text = np.strings.replace(plain, decimal, ".")
        return text.astype(np.float64), np.zeros(len(cells), dtype=bool)
    except ValueError:
        found = [_number(cell, decimal) for cell in plain.tolist()]
        bad = np.array([number is None for number in found])
        return np.array(found, dtype=np.float64), bad


def find_decimal(source: Source, names: Sequence[str], columns: list[Any], markers: Any) -> str:
    """The decimal sign that the cells show; an error if they contradict each other."""
    if not any((np.strings.find(column, ",") >= 0).any() for column in columns):
        return "."
    comma, point, either = "", "", ""
    for name, column in zip(names, columns, strict=True):
        cells = column[~is_missing(column, markers)][:_SAMPLE]
        (p, no_p), (c, no_c) = (as_numbers(cells, (), decimal) for decimal in ".,")
        if 2 * min(no_p.sum(), no_c.sum()) > len(cells):
            continue  # text
        commas = np.strings.find(cells, ",") >= 0
        differ = ~no_p & ~no_c & (p != c) & ~np.isnan(p)  # 1,234 and 1.234
        for i in np.flatnonzero(no_p | no_c | differ).tolist():
            where = f"{cells[i]!r} in column {name!r}"
            comma = comma or (where if no_p[i] and not no_c[i] else "")
            point = point or (where if not no_p[i] and (no_c[i] or not commas[i]) else "")
            either = either or (where if differ[i] and commas[i] else "")
    cure = "say which sign is right with --decimal , or --decimal ."
    if comma and point:
        raise DataError(f"{source} has decimal commas ({comma}) and points ({point}); {cure}")
    if either and not comma and not point:
        raise DataError(f"{source}: the comma of {either} may group digits or not; {cure}")
    return "," if comma else "."


def _number(cell: str, decimal: str = ".") -> float | None:
    """The number in a cell, if there is one."""
    if _GROUPED[decimal].fullmatch(cell):
        cell = re.sub(f"[^-+0-9{decimal}]", "", cell)
    if decimal == ",":
        cell = "_" if "." in cell else cell.replace(",", ".")
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, with either decimal sign."""
    return _number(cell) is not None or _number(cell, ",") is not None


def as_text(values: Array, decimal: str = ".") -> Any:
    """Text cells of an array: true and false, integers, or numbers with twelve digits."""
    if values.dtype.kind == "b":
        return np.where(values, "true", "false")
    if values.dtype.kind != "f":
        return values.astype(str)
    cells = np.array([f"{value:.12g}" for value in values.tolist()], dtype=TEXT)
    return cells if decimal == "." else np.strings.replace(cells, ".", decimal)


def write_table(
    output: Output,
    header: Iterable[str] | None,
    cells: Sequence[Any],
    dialect: Dialect | None = None,
) -> None:
    """Write columns of strings; file names that are not Unicode are written with escapes."""
    how = dialect or Dialect("\t" if output.suffix.startswith(".tsv") else ",")
    with output.file() as path, path.open("wb") as raw:
        packed = output.suffix.endswith(".gz")
        binary = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if packed else raw
        with TextIOWrapper(binary, how.encoding, "backslashreplace", newline="") as file:
            safe = escape_formulas if output.escape else list

            def write(columns: list[list[str]]) -> None:
                # before Python 3.13, a lone "\r" was not quoted
                returns = any("\r" in cell for column in columns for cell in column)
                writer = csv.writer(
                    file,
                    delimiter=how.separator,
                    quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL,
                    lineterminator=how.newline,
                )
                writer.writerows(zip(*columns, strict=True))

            if header is not None:
                write([[name] for name in safe(header)])
            for start in range(0, len(cells[0]), BLOCK):
                write([safe(column[start : start + BLOCK].tolist()) for column in cells])


def escape_formulas(cells: Iterable[str]) -> list[str]:
    """Put an apostrophe before text that spreadsheets would run as a formula; numbers stay."""
    return [f"'{c}" if c.startswith(_FORMULA) and not is_number(c) else c for c in cells]


def as_float(text: str) -> float:
    """The number that text stands for, or NaN."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
