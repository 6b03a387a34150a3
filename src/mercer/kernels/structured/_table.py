"""Kernels of tables: one kernel per group of named columns, multiplied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, Points, as_points, frozen
from mercer._frames import as_frame, as_series, is_number, numbers_of
from mercer._random import as_generator
from mercer.engine import Block, Const, Program, Scales, Var
from mercer.exceptions import DomainError, InputError
from mercer.kernels._angular import Normalised
from mercer.kernels._bandwidth import median_scale
from mercer.kernels._domain import Domain
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._radial import Gaussian
from mercer.kernels.structured._categorical import Hamming
from mercer.kernels.structured._domains import is_missing
from mercer.kernels.structured._strings import Spectrum

_FEW = 50  # distinct strings that are still labels ...
_SHARE = 0.5  # ... if they are at most this share of the rows
_PAIRS = 10_000  # of rows, on which the length of `Hamming` is measured
_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


@dataclass(frozen=True)
class Tables(Domain):
    """Rows of a table: a pandas or polars frame, or a mapping of columns.

    Inside, a table is a structured array with one field per column, float64 for numbers and
    objects for the rest. Columns in no group are left out.
    """

    groups: tuple[Group, ...]
    by_name = True

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c for group in self.groups for c in group.columns))

    def check(self, X: Any, name: str) -> Any:
        """A structured array, once every group accepts its columns."""
        table = self._structured(X, name)
        for group in self.groups:
            try:
                group.domain.check(group.of(table), name)
            except InputError as error:
                raise DomainError(f"{name}, {', '.join(group.columns)}: {error}") from error
        return frozen(table)

    def _structured(self, X: Any, name: str) -> Array:
        wanted = self.columns
        if isinstance(X, np.ndarray) and X.dtype.names == wanted:
            return X
        columns = columns_of(X, wanted, name)
        dtype = [(c, values.dtype) for c, values in columns.items()]
        return np.rec.fromarrays(list(columns.values()), dtype=dtype).view(np.ndarray)

    def joined(self, other: Domain) -> Domain:
        assert isinstance(other, Tables)
        return Tables(tuple(dict.fromkeys(self.groups + other.groups)))

    @property
    def base(self) -> Domain:
        return Tables(())

    def __str__(self) -> str:
        return f"tables with the columns {', '.join(self.columns)}"


@dataclass(frozen=True)
class Group:
    """Columns that one kernel sees together, and the domain of that kernel."""

    columns: tuple[str, ...]
    domain: Domain

    def of(self, X: Array) -> Any:
        """Rows as the kernel takes them: a matrix of numbers, one column, or rows of labels."""
        if self.domain.is_vector:
            words = [c for c in self.columns if X.dtype[c].kind == "O"]
            if words:
                raise DomainError(f"column {words[0]!r} is not numeric, which its kernel needs")
            return np.column_stack([X[c] for c in self.columns])
        if len(self.columns) == 1:
            return X[self.columns[0]]
        return np.stack([X[c].astype(object) for c in self.columns], axis=1)


def column_names(X: Any, name: str = "X") -> list[str]:
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        return list(X.dtype.names)
    if isinstance(X, Mapping):
        return list(X)
    frame = as_frame(X, name)
    if frame is None:
        raise DomainError(
            f"{name} must be a table with named columns (a pandas or polars frame, or a mapping "
            f"of columns), got {type(X).__name__}"
        )
    if strange := [c for c in frame.columns if not isinstance(c, str)]:
        raise InputError(
            f"{name} has columns whose names are not text, such as {strange[0]!r}; rename them, in "
            f"pandas with {name}.rename(columns=str)"
        )
    return list(frame.columns)


def columns_of(X: Any, names: Iterable[str], name: str) -> dict[str, Array]:
    found, names = column_names(X, name), list(names)
    missing = [c for c in names if c not in found]
    if missing:
        raise DomainError(f"{name} has no column {missing[0]!r}; its columns are {found}")
    frame = as_frame(X, name)
    columns = {c: column_of(X if frame is None else frame, c, name) for c in names}
    lengths = {c: len(values) for c, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"{name} has columns of different lengths: {lengths}")
    if 0 in lengths.values():
        raise InputError(f"{name} has no points: at least one is needed")
    return columns


def column_of(X: Any, column: str, name: str = "X") -> Array:
    """One column as float64 numbers or as objects; missing values are refused."""
    given = X[column]
    if isinstance(given, np.ma.MaskedArray):
        raise InputError(f"column {column!r} of {name} is masked; fill in what is missing")
    series = as_series(given)
    if series is not None:
        if series.dtype.is_temporal():
            raise _holds_times(column, name)
        where = f"column {column!r} of {name}"
        given = numbers_of(series, where) if is_number(series.dtype) else series.to_list()
    words = isinstance(given, list | tuple) and any(isinstance(v, str | bytes) for v in given)
    try:
        values = np.asarray(given, dtype=object if words else None)  # as objects "a\0" is not "a"
    except ValueError:  # lists of several lengths
        values = np.empty(())
    if values.ndim != 1 or any(isinstance(v, list | np.ndarray) for v in values):
        raise InputError(f"column {column!r} of {name} must have one value per row")
    if values.dtype.kind in "mM":
        raise _holds_times(column, name)
    items = values.tolist()
    missing = [i for i, v in enumerate(items) if v is None or is_missing(v)]
    if missing:
        raise InputError(
            f"column {column!r} of {name} has a missing value in row {missing[0]}; fill it in, or "
            "make it a separate category"
        )
    if values.dtype.kind not in "biuf" and not all(isinstance(v, _NUMBERS) for v in items):
        return values.astype(object)
    try:
        numbers = values.astype(np.float64)  # nullable columns come as objects
    except OverflowError:
        numbers = np.full(1, np.inf)
    if not np.isfinite(numbers).all():
        raise InputError(f"column {column!r} of {name} holds infinity, or a number as large")
    return numbers


def _holds_times(column: Any, name: str) -> InputError:
    return InputError(
        f"column {column!r} of {name} holds times; turn it into numbers (days since a date, or "
        "the hour of the day for a kernel on the circle)"
    )


@dataclass(frozen=True)
class _GroupKernel:
    """The kernel of a group, as a function of two blocks of rows (or of one)."""

    group: Group
    kernel: Kernel

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        if Y is None:
            return self.kernel.diag(self._points(X))
        return self.kernel(self._points(X), self._points(Y))

    def _points(self, X: Array) -> Any:
        """Numbers were checked with the table; sequences and sets are converted here."""
        rows = self.group.of(X)
        return Points(rows, self.kernel.domain) if self.kernel.domain.is_vector else rows


@dataclass(frozen=True)
class Table(Kernel):
    """k(x, y) = prod_g k_g(x_g, y_g) over groups g of named columns of a table.

    Points are rows of a pandas or polars frame, or of a mapping of columns; columns that no group
    names are ignored. A product asks for similarity in every group; for similarity in some group,
    add tables, `Table({"age": k}) + Table({"city": l})`. There are no derivatives: pre-images come
    from `Candidates`, and are rows that `pandas.DataFrame` turns back into a frame. `table_kernel`
    chooses groups and kernels from the data.

    Parameters
    ----------
    groups : mapping of column names to kernels
        Each key is a column, or a tuple of columns that one kernel sees together: a matrix of
        numbers for kernels on vectors, labels for `Hamming` and `Overlap`, one column of strings
        for kernels such as `Spectrum`.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.kernels.Table({("age", "income"): mc.Gaussian(1.0), "city": mc.kernels.Hamming(1.0)})
    >>> rows = {"age": [1.0, 1.0], "income": [2.0, 2.0], "city": ["Bonn", "Rome"]}
    >>> k(rows).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    groups: Any

    def __post_init__(self) -> None:
        given = self.groups.items() if isinstance(self.groups, Mapping) else self.groups
        try:
            groups = tuple((_names(key), kernel) for key, kernel in given)
        except (TypeError, ValueError) as error:
            raise InputError(f"groups must map columns to kernels: {error}") from error
        if not groups:
            raise InputError("a table needs at least one group of columns")
        self._made_of(*(kernel for _, kernel in groups))
        object.__setattr__(self, "groups", groups)

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """A product of positive definite kernels is positive definite."""
        if all(kernel.flags.is_positive_definite for _, kernel in self.groups):
            return Flags(Definiteness.POSITIVE)
        return Flags(self.groups[0][1].flags.definiteness) if len(self.groups) == 1 else Flags()

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return Tables(tuple(Group(columns, kernel.domain) for columns, kernel in self.groups))

    def lower(self) -> Program:
        whole = Program((), Const(1.0))
        for columns, kernel in self.groups:
            part = _GroupKernel(Group(columns, kernel.domain), kernel)
            whole = whole * Program((Block(part, part),), Var(0))
        return whole

    def __repr__(self) -> str:
        keys = [columns[0] if len(columns) == 1 else columns for columns, _ in self.groups]
        parts = zip(keys, self.groups, strict=True)
        return "Table({" + ", ".join(f"{key!r}: {kernel!r}" for key, (_, kernel) in parts) + "})"


def _names(key: Any) -> tuple[str, ...]:
    names = (key,) if isinstance(key, str) else tuple(key)
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise InputError(f"a group is a column name or a tuple of different ones, got {key!r}")
    return names


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
      letters (the constant handles texts shorter than that).

    For columns in none of the lists: numbers are numeric; booleans and categorical columns hold
    labels; strings are labels if there are at most 50 different ones, and at most half as many as
    rows, else texts. Missing values are refused.

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
    chosen = _chosen_kinds({"numeric": numeric, "categorical": categorical, "text": text}, names)
    columns = columns_of(table, names, "table")
    frame = as_frame(table)
    opened = table if frame is None else frame
    kinds = {c: chosen.get(c) or _kind(opened[c], columns[c]) for c in names}
    groups: dict[Any, Kernel] = {}
    if numbers := {c: columns[c] for c in names if kinds[c] == "numeric"}:
        groups[tuple(numbers)] = _numeric_kernel(numbers, rng)
    if labels := {c: columns[c] for c in names if kinds[c] == "categorical"}:
        left, right = rng.integers(0, len(columns[names[0]]), size=(2, _PAIRS))
        differing = sum(float(np.mean(c[left] != c[right])) for c in labels.values())
        groups[tuple(labels)] = Hamming(max(differing, 0.5))
    texts = [c for c in names if kinds[c] == "text"]
    return Table(groups | {c: Normalised(Spectrum(3) + 1.0) for c in texts})


def _chosen_kinds(wishes: dict[str, Any], names: list[str]) -> dict[str, str]:
    """The kinds of columns that the caller chose."""
    chosen: dict[str, str] = {}
    for kind, columns in wishes.items():
        columns = () if columns is None else (columns,) if isinstance(columns, str) else columns
        if not isinstance(columns, list | tuple | set):
            raise InputError(f"{kind} must be a list of column names, got {columns!r}")
        for c in columns:
            if c not in names:
                raise InputError(f"{kind} names {c!r}, which is not a column; there are {names}")
            if c in chosen:
                raise InputError(f"column {c!r} is listed both as {chosen[c]} and as {kind}")
            chosen[c] = kind
    return chosen


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


def _numeric_kernel(columns: dict[str, Array], rng: np.random.Generator) -> Kernel:
    for c, values in columns.items():
        if values.dtype == object:
            raise InputError(f"column {c!r} is listed as numeric, but holds {values[0]!r}")
    X = as_points(np.column_stack(list(columns.values())), "the table")
    spread = X.std(axis=0)
    scales = np.where(spread > 1e-12 * np.abs(X).max(axis=0), spread, 1.0)
    Z = X / scales
    moved = bool(np.any(Z[0] != Z))
    return Gaussian(median_scale(Z, random_state=rng) if moved else 1.0).transform(Scales(scales))
