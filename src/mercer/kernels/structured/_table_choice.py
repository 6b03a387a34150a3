"""A kernel for a table, chosen from its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer._random import as_generator
from mercer.engine import Scales
from mercer.exceptions import InputError
from mercer.kernels._angular import Normalised
from mercer.kernels._bandwidth import median_scale
from mercer.kernels._kernel import Kernel
from mercer.kernels._radial import Gaussian
from mercer.kernels.structured._categorical import Hamming
from mercer.kernels.structured._strings import Spectrum
from mercer.kernels.structured._table import Table, column_names, column_of

_FEW = 50  # distinct strings that are still labels ...
_SHARE = 0.5  # ... if they are at most this share of the rows
_PAIRS = 10_000


def table_kernel(
    table: Any,
    *,
    numeric: Any = None,
    categorical: Any = None,
    text: Any = None,
    random_state: Any = 0,
) -> Table:
    """Return a product kernel for a table of numbers, labels and texts.

    - numbers: one `Gaussian` over all numeric columns, each divided by its standard deviation
      (constant columns are left as they are), with the median distance as its length scale;
    - labels: one `Hamming` over all of them, whose length is the mean number of labels in which two
      rows differ;
    - texts: for each column its own `Normalised(Spectrum(3) + 1.0)`, the cosine of counts of three
      letters (the constant is for texts shorter than that).

    Columns in none of the lists: numbers are numeric; booleans and categorical columns
    hold labels; strings are labels if at most 50 different ones make up at most half of the rows,
    else texts. Missing values are refused.

    Parameters
    ----------
    table : pandas or polars frame, or mapping of columns
    numeric, categorical, text : list of column names, optional
        How to treat some columns. Columns in none of the lists are still used; drop them from the
        table to leave them out.
    random_state : int, Generator, RandomState or None, default=0
        Draws the pairs of rows that the lengths are measured on.

    Examples
    --------
    >>> import mercer as mc
    >>> people = {"age": [30.0, 40.0, 50.0, 60.0], "city": ["Bonn", "Rome", "Bonn", "Rome"]}
    >>> mc.table_kernel(people)  # doctest: +ELLIPSIS
    Table({'age': Gaussian(...).transform(Scales([11.18...])), 'city': Hamming(length_scale=...)})
    """
    rng = as_generator(random_state)
    names = column_names(table, "table")
    if not names:
        raise InputError("table has no columns")
    wishes = {"numeric": numeric, "categorical": categorical, "text": text}
    said = _said(wishes, names)
    columns = {c: column_of(table, c, "table") for c in names}
    kinds = {c: said.get(c) or _kind(table[c], columns[c]) for c in names}
    groups: dict[Any, Kernel] = {}
    numbers = [c for c in names if kinds[c] == "numeric"]
    if numbers:
        groups[_key(numbers)] = _for_numbers([columns[c] for c in numbers], numbers, rng)
    labels = [c for c in names if kinds[c] == "categorical"]
    if labels:
        groups[_key(labels)] = _for_labels([columns[c] for c in labels], rng)
    texts = [c for c in names if kinds[c] == "text"]
    return Table(groups | {c: Normalised(Spectrum(3) + 1.0) for c in texts})


def _key(columns: list[str]) -> Any:
    return columns[0] if len(columns) == 1 else tuple(columns)


def _said(wishes: dict[str, Any], names: list[str]) -> dict[str, str]:
    """The kinds of columns that the caller chose."""
    said: dict[str, str] = {}
    for kind, columns in wishes.items():
        for c in [columns] if isinstance(columns, str) else (columns or []):
            if c not in names:
                raise InputError(f"{kind} names {c!r}, which is no column; there are {names}")
            if c in said:
                raise InputError(f"column {c!r} is listed both as {said[c]} and as {kind}")
            said[c] = kind
    return said


def _kind(column: Any, values: Array) -> str:
    declared = str(getattr(column, "dtype", "")).lower()
    if declared.startswith(("bool", "category", "categorical", "enum")):
        return "categorical"
    if values.dtype != object:
        return "numeric"
    if not all(isinstance(v, str) for v in values):
        return "categorical"
    different = len(set(values))
    return "categorical" if different <= min(_FEW, _SHARE * len(values)) else "text"


def _for_numbers(columns: list[Array], names: list[str], rng: np.random.Generator) -> Kernel:
    for c, values in zip(names, columns, strict=True):
        if values.dtype == object:
            raise InputError(f"column {c!r} is listed as numeric, but holds {values[0]!r}")
    X = np.column_stack(columns)
    spread = X.std(axis=0)
    scales = np.where(spread > 1e-12 * np.abs(X).max(axis=0), spread, 1.0)
    Z = X / scales
    moved = bool(np.any(Z[0] != Z))
    return Gaussian(median_scale(Z, random_state=rng) if moved else 1.0).transform(Scales(scales))


def _for_labels(columns: list[Array], rng: np.random.Generator) -> Kernel:
    n = len(columns[0])
    left, right = rng.integers(0, n, size=(2, _PAIRS))
    differing = sum(float(np.mean(values[left] != values[right])) for values in columns)
    return Hamming(max(differing, 0.5))
