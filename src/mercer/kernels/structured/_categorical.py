"""Kernels of categories: they compare which columns of two rows of labels are equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, as_points, frozen, is_sparse, positive_length
from mercer._frames import as_frame, items_of, labels_of
from mercer.engine import Columns, Coordinates, Map, Program, Var
from mercer.exceptions import DomainError, InputError
from mercer.kernels._domain import Domain
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._parameters import checked
from mercer.kernels.structured._domains import is_missing

_EXACT_INTEGERS = 2**53


@dataclass(frozen=True)
class Categories(Domain):
    """Rows of labels: numbers, strings, or any other objects that can be hashed.

    Given as a two-dimensional array, a list of rows (lists, tuples or arrays), a data frame, or a
    plain list of labels, which is one column. Two labels are the same category if `a == b`; so 1,
    1.0 and True are one, and None is a category like any other. NaN and pandas' NA are refused:
    make missing values a category first, as in `X.fillna("missing")`.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Overlap().points([["red", 1], ["blue", None]]).array
    array([['red', 1],
           ['blue', None]], dtype=object)
    """

    def check(self, X: Any, name: str) -> Any:
        """A read-only matrix of finite numbers where all labels are numbers, else of objects."""
        labels = _as_matrix(X, name)
        if 0 in labels.shape:
            what = "rows" if labels.shape[0] == 0 else "columns"
            raise InputError(f"{name} has no {what}: shape {labels.shape}")
        _check_labels(labels, name)
        return frozen(labels if labels.dtype == object else as_points(labels, name))

    def can_map(self, point_map: Map) -> bool:
        """Columns of a numeric matrix can be chosen; sums and multiples of labels mean nothing."""
        return isinstance(point_map, Columns)


def _as_matrix(X: Any, name: str) -> Array:
    if is_sparse(X):
        raise DomainError(f"{name} is sparse, but zero is a category; use {name}.toarray()")
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; fill or drop the masked entries first")
    if isinstance(X, str | bytes) or not (hasattr(X, "__len__") or hasattr(X, "collect")):
        raise DomainError(f"{name} must be rows of labels, got {type(X).__name__}")
    frame, X = as_frame(X, name), items_of(X)
    if frame is not None:
        array: Array = labels_of(frame, name)
    else:
        array = np.asarray(X) if hasattr(X, "__array__") else _from_rows(list(X), name)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise DomainError(f"{name} must have shape (n_points, n_columns), got {array.shape}")
    if array.dtype.kind in "mM" and np.isnat(array).any():
        raise DomainError(f"{name} has missing times (NaT); fill or drop them first")
    kind = array.dtype.kind
    numeric = kind in "bf" or (kind in "iu" and _is_exact(array))
    return array if numeric else array.astype(object)


def _from_rows(rows: list[Any], name: str) -> Array:
    """A list of rows, or of the labels of one column; NumPy would turn 1 beside "a" into "1"."""
    one_column = not rows or not isinstance(rows[0], list | tuple | np.ndarray)
    rows = [[label] for label in rows] if one_column else [list(row) for row in rows]
    width = len(rows[0]) if rows else 0
    odd = next((i for i, row in enumerate(rows) if len(row) != width), None)
    if odd is not None:
        raise InputError(
            f"{name} must have rows of one length, but row 0 has {width} labels and row {odd} has "
            f"{len(rows[odd])}"
        )
    kinds = {type(label) for row in rows for label in row}
    if kinds and all(issubclass(k, int | float | np.number | np.bool_) for k in kinds):
        numbers = np.asarray(rows)
        if numbers.dtype.kind in "biuf" and _is_exact(numbers):
            return numbers
    labels = np.empty((len(rows), width), dtype=object)
    for i, row in enumerate(rows):
        for j, label in enumerate(row):
            labels[i, j] = label
    return labels


def _is_exact(numbers: Array) -> bool:
    """Whether float64 distinguishes them all; account numbers may be too large."""
    return bool(np.all(np.abs(numbers.astype(np.float64)) < _EXACT_INTEGERS))


def _check_labels(labels: Array, name: str) -> None:
    """Labels can be hashed, and each is equal to itself."""
    try:
        distinct = np.unique(labels) if labels.dtype != object else set(labels.ravel().tolist())
    except TypeError as error:
        raise DomainError(f"{name} has labels that cannot be hashed: {error}") from error
    if any(is_missing(label) for label in distinct):
        where = next(at for at, label in np.ndenumerate(labels) if is_missing(label))
        raise DomainError(
            f"{name} has a missing value, {labels[where]!r} at {where}; make it a category, as "
            f'{name}.fillna("missing") does, or drop the row'
        )


@dataclass(frozen=True)
@checked(length_scale=positive_length)
class Hamming(Kernel):
    """Hamming kernel k(x, y) = exp(-#{c : x_c != y_c} / l) of rows of categories.

    A product over columns of 1 where the labels are equal and exp(-1 / l) where they differ, each
    factor strictly positive definite on its categories; so for any values at finitely many rows
    some element takes them. On a numeric matrix columns can be chosen,
    `Hamming(1.0).transform(Columns([2, 3]))`, and combined with kernels of the other columns.
    `Categories` says what labels may be.

    Parameters
    ----------
    length_scale : float
        l > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.kernels.Hamming(1.0)
    >>> k([["red", "S"], ["red", "M"], ["blue", "L"]], [["red", "S"]]).round(4)
    array([[1.    ],
           [0.3679],
           [0.1353]])
    """

    length_scale: float = 1.0

    # a set of categories is discrete: compact means finite
    flags = Flags(Definiteness.POSITIVE, characteristic=True, universal=True)
    domain = Categories()

    def lower(self) -> Program:
        differing = Var(0, nonnegative=True)
        return Program((Coordinates("differing"),), np.exp(-differing / self.length_scale))


@dataclass(frozen=True)
class Overlap(Kernel):
    """Overlap kernel: the share of the columns in which two rows of categories are equal.

    The mean over columns of 1 where x_c = y_c, else 0; so it is an inner product of indicators.
    `Categories` says what labels may be.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Overlap()([["red", "S"], ["red", "M"], ["blue", "L"]], [["red", "S"]])
    array([[1. ],
           [0.5],
           [0. ]])
    """

    flags = Flags(Definiteness.POSITIVE)

    domain = Categories()

    def lower(self) -> Program:
        return Program((Coordinates("equal"),), Var(0, nonnegative=True))
