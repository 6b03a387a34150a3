"""What is read from a file or a folder: rows of numbers, and everything else to carry through."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np

from mercer._array import Array
from mercer.cli._problems import DataProblem, UsageProblem, counted, listed


@dataclass(frozen=True)
class Choice:
    """What the user said about reading.

    Attributes
    ----------
    columns, skip : tuple of str
        Names, or several names with commas between them.
    array : str or None
        Which array of an .npz file.
    missing : tuple of str
        What stands for a missing value, besides nothing and NaN.
    header : bool
        Whether the first line of a text table holds names.
    like : Data or None
        The rows that were learned from: their columns are wanted, even where they are empty.
    """

    columns: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    array: str | None = None
    missing: tuple[str, ...] = ()
    header: bool = True
    like: Data | None = None


@dataclass(frozen=True, eq=False)
class Data(ABC):
    """Rows of numbers and where they came from.

    Attributes
    ----------
    path : Path
    values : array of shape (n, d)
        NaN where a value is missing.
    names : tuple of str
        Of the columns of `values`.
    left_alone : dict
        Columns that are carried through, with the reason.
    """

    path: Path
    values: Array = field(repr=False)
    names: tuple[str, ...] = ()
    left_alone: dict[str, str] = field(default_factory=dict)

    row_word: ClassVar[str] = "row"
    has_names: ClassVar[bool] = False

    @property
    def one_unit(self) -> bool:
        """Whether all columns are in one unit, so that they are not scaled."""
        return False

    @property
    def size(self) -> str:
        """Of each row, in words."""
        return counted(self.values.shape[1], "column")

    def glimpse(self, row: int) -> str:
        """The first values of a row, where columns have names that say something."""
        shown = zip(self.names, self.values[row], strict=True) if self.has_names else ()
        return listed(f"{name} {value:.4g}" for name, value in islice(shown, 4))

    @abstractmethod
    def label(self, row: int) -> str:
        """What to call a row."""

    @abstractmethod
    def write(self, values: Array, output: Path) -> None:
        """Write everything that was read, with new values; what did not change stays as it was."""

    @abstractmethod
    def write_scores(self, score: Array, is_anomaly: Array, output: Path) -> None:
        """Write a score for each row."""


def check_rows(data: Data, at_least: int = 1) -> None:
    """Refuse what has too few rows, or infinite values."""
    n = len(data.values)
    if n < at_least:
        raise DataProblem(
            f"{data.path} has {counted(n, data.row_word)}, and at least {at_least} are needed"
        )
    i, j = _first(np.isinf(data.values))
    if i >= 0:
        raise DataProblem(f"{_cell(data, i, j)} is infinite; correct it or leave it empty")


def check_complete(data: Data) -> None:
    """Refuse missing values."""
    missing = np.isnan(data.values)
    i, j = _first(missing)
    if i >= 0:
        raise DataProblem(
            f"{data.path} has {counted(int(missing.sum()), 'missing value')}, the first in "
            f"{_place(data, i, j)}; fill them first: mercer impute {data.path} -o OUTPUT"
        )


def check_varies(data: Data) -> None:
    """Refuse rows that are all equal."""
    if not (data.values != data.values[0]).any():
        raise DataProblem(
            f"all {data.row_word}s of {data.path} are equal; there is no more to learn"
        )


def check_alike(data: Data, train: Data) -> None:
    """Refuse training rows of another size than the rows."""
    if data.size != train.size:
        raise DataProblem(
            f"the {data.row_word}s of {data.path} have {data.size} and those of {train.path} "
            f"{train.size}; they must be alike"
        )


def choose_columns(
    path: Path, names: Sequence[str], choice: Choice, numbers: Callable[[int], Array | str]
) -> tuple[tuple[int, ...], Array, dict[str, str]]:
    """Which columns of a table to work on, their values, and why others are left alone.

    Parameters
    ----------
    path : Path
        For messages.
    names : sequence of str
        Of all columns.
    choice : Choice
    numbers : callable
        The values of column i, or the reason why it has none.
    """
    asked, left = _asked(path, names, choice)
    used: dict[int, Array] = {}
    for i in asked:
        found = numbers(i)
        reason = found if isinstance(found, str) else _why_not(found, choice)
        if reason and (choice.columns or choice.like):
            raise DataProblem(
                f"column {names[i]!r} of {path} cannot be used ({reason}); numbers are needed"
            )
        if reason:
            left[names[i]] = reason
        else:
            used[i] = np.asarray(found)
    if not used:
        why = listed(f"{name} ({reason})" for name, reason in left.items())
        raise DataProblem(f"{path} has no column of numbers{': ' + why if why else ''}")
    return tuple(used), np.column_stack(list(used.values())), left


def _asked(path: Path, names: Sequence[str], choice: Choice) -> tuple[list[int], dict[str, str]]:
    """Columns to look at, and those that training rows do not have."""
    if choice.like is None:
        skipped = _positions(names, choice.skip, path)
        asked = _positions(names, choice.columns, path) if choice.columns else range(len(names))
        return [i for i in asked if i not in skipped], {}
    for name in choice.like.names:
        if names.count(name) != 1:
            how = "no column" if name not in names else "more than one column"
            raise DataProblem(
                f"{path} has {how} {name!r}, which {choice.like.path} has; leave it out with --skip"
            )
    known = choice.like.names + choice.skip
    reasons = choice.like.left_alone
    left = {name: reasons.get(name, "new") for name in names if name not in known}
    return [names.index(name) for name in choice.like.names], {} if choice.columns else left


def _positions(names: Sequence[str], asked: tuple[str, ...], path: Path) -> list[int]:
    """Of the columns that were asked for, in the order of the file."""
    wanted: list[str] = []
    for text in asked:
        wanted += [text] if text in names else [part.strip() for part in text.split(",")]
    for name in wanted:
        if name not in names:
            raise UsageProblem(f"{path} has no column {name!r}; it has {listed(names, 20)}")
    return [i for i, name in enumerate(names) if name in wanted]


def _why_not(values: Array, choice: Choice) -> str:
    """Why a column of numbers is no measurement, or nothing."""
    if choice.like is not None:
        return ""
    if np.isnan(values).all():
        return "empty"
    return "counts the rows" if not choice.columns and _counts_rows(values) else ""


def without_markers(values: Array, markers: tuple[str, ...]) -> Array:
    """NaN in place of numbers that stand for missing values."""
    for marker in markers:
        try:
            values[values == float(marker)] = np.nan
        except ValueError:
            continue  # text, which no number is equal to
    return values


def _counts_rows(values: Array) -> bool:
    """Whether a column is a, a + 1, a + 2, ...: a number of the row, not a measurement."""
    return len(values) > 2 and bool(np.all(np.diff(values) == 1.0))


def _first(mask: Array) -> tuple[int, int]:
    found = np.argwhere(mask)
    return (int(found[0, 0]), int(found[0, 1])) if len(found) else (-1, -1)


def _place(data: Data, row: int, column: int) -> str:
    if not data.names:
        return data.label(row)
    return f"column {data.names[column]!r}, {data.label(row)}"


def _cell(data: Data, row: int, column: int) -> str:
    return f"a value of {data.path} ({_place(data, row, column)})"
