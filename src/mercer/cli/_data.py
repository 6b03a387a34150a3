"""The data of a command: rows of numbers, and the rest of the file that they came from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from mercer._array import LARGEST, Array
from mercer.cli._output import Output
from mercer.cli._terminal import DataError, UsageError, counted, listed

_SHORT = 20  # values; longer rows without names are not described


@dataclass(frozen=True)
class Selection:
    """Options that say what to read from a file."""

    columns: tuple[str, ...] = ()  # to use; each may hold several names, separated by commas
    skip: tuple[str, ...] = ()  # to leave alone, likewise
    array: str | None = None  # name of the array in an .npz file
    missing: tuple[str, ...] = ()  # text that marks a missing value, besides empty cells and NaN
    header: bool = True  # whether the first line of a text table holds column names
    max_expansion: float = 1.0  # gigabytes that a compressed file may take up in memory
    like: Data | None = None  # training data, whose columns are required, even if empty here


@dataclass(frozen=True, eq=False)
class Data(ABC):
    """Rows of numbers and the file they came from."""

    path: Path
    values: Array  # shape (n, d), NaN where a value is missing
    names: tuple[str, ...]  # of the columns of `values`
    unused: dict[str, str]  # columns that are written unchanged, and why
    used: tuple[int, ...]  # positions in the file of the columns of `values`
    # whether all columns have the same unit, as pixels do; such columns are not scaled
    same_unit: bool = field(default=False, kw_only=True)

    row_word: ClassVar[str] = "row"
    has_names: ClassVar[bool] = False

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


def check_rows(data: Data, *, at_least: int = 1, complete: bool) -> None:
    """Refuse too few rows, values that overflow and, if rows must be complete, missing ones."""
    n, path = len(data.values), data.path
    if n < at_least:
        raise DataError(f"{path} has {counted(n, data.row_word)}; at least {at_least} needed")
    fill = f"fill them first: mercer impute {path} -o OUTPUT"
    largest = min(LARGEST, float(np.finfo(data.values.dtype).max))
    masks = [
        (np.abs(data.values) > largest, "infinite or huge", "correct or delete them"),
        (np.isnan(data.values) & complete, "missing", fill),
    ]
    for mask, word, cure in masks:
        bad = np.argwhere(mask)
        if len(bad):
            row, column = bad[0].tolist()
            named = f"column {data.names[column]!r}, " if data.names else ""
            raise DataError(
                f"{path} has {counted(len(bad), f'{word} value')}, the first in {named}"
                f"{data.label(row)}; {cure}"
            )


def check_expansion(path: Path, size: int, stored: int, selection: Selection) -> None:
    """Refuse data of `size` bytes in memory, if that is much more than the bytes on disk."""
    if size > 1e9 * selection.max_expansion and size > 4 * stored:
        raise DataError(
            f"{path} needs {size / 1e9:.1f} GB of memory, much more than its size on disk; allow "
            f"it with --max-expansion {math.ceil(size / 1e9)}"
        )


def choose_columns(
    path: Path, names: Sequence[str], selection: Selection, numbers: Callable[[int], Array | str]
) -> tuple[Array, tuple[str, ...], dict[str, str], tuple[int, ...]]:
    """Return values, names, unused columns and positions, as `Data` has them.

    `numbers(i)` returns the values of column i, or the reason why it has none.
    """
    candidates, unused = _candidates(path, names, selection)
    used: dict[int, Array] = {}
    for i in candidates:
        found = numbers(i)
        if not isinstance(found, str):
            used[i] = _without_markers(found, selection.missing)
            found = _why_not(used[i], selection)
        if not found:
            continue
        if selection.columns or selection.like:
            raise DataError(f"column {names[i]!r} of {path} does not hold numbers ({found})")
        unused[names[i]] = found
        used.pop(i, None)
    if not used:
        why = listed(f"{name} ({reason})" for name, reason in unused.items())
        raise DataError(f"{path} has no column of numbers{': ' + why if why else ''}")
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
    path: Path, names: Sequence[str], selection: Selection
) -> tuple[list[int], dict[str, str]]:
    """Columns that may be used, and those that are unused since the training rows lack them."""
    train = selection.like
    if train is None:
        skipped = _positions(names, selection.skip, path)
        chosen = selection.columns
        asked = _positions(names, chosen, path) if chosen else range(len(names))
        return [i for i in asked if i not in skipped], {}
    for name in train.names:
        if names.count(name) != 1:
            problem = "no column" if name not in names else "more than one column"
            raise DataError(
                f"{path} has {problem} {name!r}, which {train.path} has; leave it out with --skip"
            )
    known = train.names + selection.skip
    unused = {name: train.unused.get(name, "new") for name in names if name not in known}
    return [names.index(name) for name in train.names], {} if selection.columns else unused


def _positions(names: Sequence[str], asked: tuple[str, ...], path: Path) -> list[int]:
    """Positions of the named columns, in the order of the file."""
    wanted: list[str] = []
    for text in asked:
        wanted += [text] if text in names else [part.strip() for part in text.split(",")]
    for name in wanted:
        if name not in names:
            raise UsageError(f"{path} has no column {name!r}; it has {listed(names, 20)}")
    return [i for i, name in enumerate(names) if name in wanted]


def _why_not(values: Array, selection: Selection) -> str:
    """Why a column of numbers is not used; empty if it is."""
    if selection.like is not None:
        return ""
    if np.isnan(values).all():
        return "empty"
    counts_rows = len(values) > 2 and bool(np.all(values[1:] == values[:-1] + 1.0))
    return "row numbers" if counts_rows and not selection.columns else ""
