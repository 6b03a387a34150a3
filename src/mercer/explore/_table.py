"""A table to explore, and the rows of it that are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from mercer._array import Array
from mercer.exceptions import InputError

ROWS = 2000  # a refined picture of this many takes about a second


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of numbers, and notes on where they came from.

    Attributes
    ----------
    name : str
        The name of the file.
    columns : tuple of str
        Names of the columns.
    values : array of shape (n, d)
        NaN where a value is missing.
    left_out : mapping of str to str
        Columns of the file that are not here, and why.
    notes : tuple of str
        Sentences about how the file was read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.explore import Table
    >>> Table("a.csv", ("x", "y"), np.zeros((3, 2))).columns
    ('x', 'y')
    """

    name: str
    columns: tuple[str, ...]
    values: Array
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Sample:
    """Complete rows of one or two columns, no more than `most`."""

    X: Array  # shape (n, d)
    spread: Array  # standard deviations of the columns, in which bandwidths are measured
    complete: int  # rows without missing values
    missing: int  # rows that were left out


@lru_cache(maxsize=16)  # the slider asks for the same rows again and again
def sample(table: Table, columns: tuple[int, ...], most: int = ROWS) -> Sample:
    """Return the complete rows of some columns; if there are too many, a random sample of them."""
    values = np.asarray(table.values[:, list(columns)], dtype=np.float64)
    X = values[~np.isnan(values).any(axis=1)]
    complete = len(X)
    if complete < 3:
        raise InputError(
            f"{table.name} has {complete} rows without missing values in these columns; choose "
            "columns with at least 3"
        )
    if complete > most:
        chosen = np.random.default_rng(0).choice(complete, most, replace=False)
        X = X[np.sort(chosen)]
    for j, column in enumerate(columns):
        if np.ptp(X[:, j]) == 0.0:
            raise InputError(
                f"all values of {table.columns[column]!r} in {table.name} are equal; choose "
                "another column"
            )
    return Sample(X, spread(X), complete, len(values) - complete)


def spread(X: Array) -> Array:
    """Standard deviations of columns; no square overflows or underflows."""
    unit = np.abs(X).max(axis=0)
    return np.asarray(unit * (X / unit).std(axis=0))
