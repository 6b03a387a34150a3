"""The data of a command: rows of numbers, and the rest of the file that they came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, ClassVar

import numpy as np

from mercer._array import LARGEST, Array
from mercer._chunks import Chunks
from mercer._words import counted, listed
from mercer.cli._files import Output, Source
from mercer.cli._terminal import DataError, UsageError

CODES = "integer codes"  # why a column is not used
_SHORT = 20  # values; longer rows without names are not described
FEW_CODES = 20  # different integers; a column with more of them holds quantities, not codes


@dataclass(frozen=True)
class Selection:
    """Options that say what to read from a file."""

    columns: tuple[str, ...] = ()  # to use; each may hold several names, separated by commas
    skip: tuple[str, ...] = ()  # to leave alone, likewise
    include: tuple[str, ...] = ()  # to use although they look like row numbers or codes, likewise
    part: str | None = None  # name of the array in an .npz file, or of the sheet in a workbook
    missing: tuple[str, ...] = ()  # text that marks a missing value, besides empty cells and NaN
    header: bool = True  # whether the first line of a text table holds column names
    separator: str | None = None  # between the cells of a text table; None to find it
    decimal: str | None = None  # the decimal sign of a text table; None to find it
    encoding: str | None = None  # of a text table; None to find it
    max_expansion: float = 1.0  # gigabytes that a compressed file may take up in memory
    like: Data | None = None  # training data, whose columns are required, even if empty here


@dataclass(frozen=True, eq=False)
class Data(ABC):
    """Rows of numbers and the file they came from."""

    source: Source
    values: Any  # shape (n, d), NaN where a value is missing; or Chunks of a large file
    names: tuple[str, ...]  # of the columns of `values`
    unused: dict[str, str]  # columns that are written unchanged, and why
    used: tuple[int, ...]  # positions in the file of the columns of `values`
    # whether all columns have the same unit, as pixels do; such columns are not scaled
    same_unit: bool = field(default=False, kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)  # about how the file was read

    row_word: ClassVar[str] = "row"
    has_names: ClassVar[bool] = False

    @property
    def in_pieces(self) -> bool:
        """Whether the file is too large for memory; the rest is that of its first piece."""
        return isinstance(self.values, Chunks)

    def row(self, i: int) -> Array:
        """The values of one row."""
        return self.values.rows([i])[0] if self.in_pieces else self.values[i]  # type: ignore[no-any-return]

    @property
    def size(self) -> str:
        """The size of a row, in words."""
        return counted(self.values.shape[1], "column")

    def describe(self, row: Array) -> str:
        """The first values of a row, with the names of their columns if they have any."""
        if self.has_names:
            shown = [f"{name} {value:.4g}" for name, value in zip(self.names, row, strict=True)]
        else:
            shown = [f"{value:.4g}" for value in row] if len(row) <= _SHORT else []
        return listed(shown, 5)

    @abstractmethod
    def label(self, row: int) -> str:
        """The name of a row in messages."""

    @abstractmethod
    def write(self, values: Array, output: Output) -> None:
        """Write the input with new values; everything that did not change stays as it was."""

    @abstractmethod
    def write_columns(self, columns: dict[str, Array], output: Output) -> None:
        """Write the input with additional columns, or a table of these columns."""


def check_rows(data: Data, *, at_least: int = 1, complete: bool, cure: str = "") -> None:
    """Refuse too few rows, values that overflow and, if rows must be complete, missing ones.

    `cure` says what to do about missing values, if not to fill them.
    """
    n, source = len(data.values), data.source
    if n < at_least:
        raise DataError(f"{source} has {counted(n, data.row_word)}; at least {at_least} needed")
    if data.in_pieces:
        return  # values are checked as they are read
    fill = cure or f"fill them first: mercer impute {source.path} -o OUTPUT"
    # differences and sums of a few values must still be numbers of that type
    largest = min(LARGEST, 1e-3 * float(np.finfo(data.values.dtype).max))
    huge = f"correct or rescale what is infinite or above {largest:.2g}"
    masks = [
        (np.abs(data.values) > largest, "huge", huge),
        (np.isnan(data.values) & complete, "missing", fill),
    ]
    for mask, word, cure in masks:
        bad = np.argwhere(mask)
        if len(bad):
            row, column = bad[0].tolist()
            named = f"column {data.names[column]!r}, " if data.names else ""
            raise DataError(
                f"{source} has {counted(len(bad), f'{word} value')}, the first in {named}"
                f"{data.label(row)}; {cure}"
            )


def choose_columns(
    source: Source,
    names: Sequence[str],
    selection: Selection,
    numbers: Callable[[int], Array | str],
    *,
    may_be_codes: bool = True,
) -> tuple[Array, tuple[str, ...], dict[str, str], tuple[int, ...]]:
    """Return values, names, unused columns and positions, as `Data` has them.

    `numbers(i)` returns the values of column i, or the reason why it has none. If `may_be_codes`,
    columns of integer codes are not used unless they are asked for.
    """
    candidates, unused = _candidates(source, names, selection)
    if not candidates:
        raise UsageError(f"no column of {source} is left to use")
    wanted = set(_positions(names, selection.include, source)) if not selection.like else set()
    used: dict[int, Array] = {}
    for i in candidates:
        found = numbers(i)
        if not isinstance(found, str):
            used[i] = _without_markers(found, selection.missing)
            asked = bool(selection.columns or selection.like) or i in wanted
            found = _why_not(used[i], asked, may_be_codes) if selection.like is None else ""
        if not found:
            continue
        if selection.columns or selection.like:
            raise DataError(f"column {names[i]!r} of {source} does not hold numbers ({found})")
        unused[names[i]] = found
        used.pop(i, None)
    if not used:
        why = listed(f"{name} ({reason})" for name, reason in unused.items())
        codes = [name for name, reason in unused.items() if reason == CODES]
        cure = f"; to use codes, add --include {quote(','.join(codes))}" if codes else ""
        raise DataError(f"{source} has no column of numbers{': ' + why if why else ''}{cure}")
    values = np.column_stack(list(used.values()))
    return values, tuple(names[i] for i in used), unused, tuple(used)


def _without_markers(values: Array, markers: tuple[str, ...]) -> Array:
    """Replace numbers that mark missing values by NaN, in place."""
    for marker in markers:
        try:
            values[values == float(marker)] = np.nan
        except ValueError:
            continue  # the marker is text, which no number equals
    return values


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or the name with the first number (from 2) that is not taken."""
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}_{number}"
    return free


def _candidates(
    source: Source, names: Sequence[str], selection: Selection
) -> tuple[list[int], dict[str, str]]:
    """Columns that may be used, and those that are unused since the training rows lack them."""
    train = selection.like
    if train is None:
        skipped = _positions(names, selection.skip, source)
        chosen = selection.columns and selection.columns + selection.include
        asked = _positions(names, chosen, source) if chosen else range(len(names))
        return [i for i in asked if i not in skipped], {}
    counts = Counter(names)
    for name in train.names:
        if counts[name] != 1:
            problem = "no column" if name not in names else "more than one column"
            raise DataError(
                f"{source} has {problem} {name!r}, which {train.source} has; leave it out with "
                "--skip"
            )
    known = {*train.names, *selection.skip}
    unused = {name: train.unused.get(name, "new") for name in names if name not in known}
    place = {name: i for i, name in enumerate(names)}
    return [place[name] for name in train.names], {} if selection.columns else unused


def _positions(names: Sequence[str], asked: tuple[str, ...], source: Source) -> list[int]:
    """Positions of the named columns, in the order in which they are named."""
    wanted: list[str] = []
    known = set(names)
    for text in asked:
        wanted += [text] if text in known else [part.strip() for part in text.split(",")]
    for name in wanted:
        if name not in known:
            raise UsageError(f"{source} has no column {name!r}; it has {listed(names, 20)}")
    order = {name: j for j, name in reversed(list(enumerate(wanted)))}
    found = [i for i, name in enumerate(names) if name in order]
    return sorted(found, key=lambda i: order[names[i]])


def choose_part(source: Source, names: list[str], what: str, selection: Selection) -> str:
    """The array or sheet to use: the one that is asked for, or the only one."""
    if selection.part is not None and selection.part not in names:
        raise UsageError(
            f"{source} has no {what} {selection.part!r}; it has {listed(names, 20) or 'none'}"
        )
    if not names:
        raise DataError(f"{source} is empty")
    if selection.part is None and len(names) > 1:
        raise UsageError(
            f"{source} has several {what}s ({listed(names, 20)}); choose one with --{what} NAME"
        )
    return selection.part or names[0]


def _why_not(values: Array, asked: bool, codes: bool) -> str:
    """Why a column of numbers is not used; empty if it is."""
    known = values[~np.isnan(values)]
    if not len(known):
        return "empty"
    if asked:
        return ""
    if len(values) > 2 and np.all(values[1:] == values[:-1] + 1.0):
        return "row numbers"
    few = codes and np.all(known == np.rint(known)) and 1 < len(np.unique(known)) <= FEW_CODES
    return CODES if few and 2 * len(np.unique(known)) <= len(known) else ""
