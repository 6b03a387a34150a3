"""Elements and their coefficients from a file.

Inside the library they are built from parts that were checked; here nothing was, and the engine
would read where a wrong row number says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array, frozen, positive_int
from mercer.engine import Coef, Dense, LowRank, Selection, Stacked, n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.space import Element

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def _element(kernel: Any, points: Any, coef: Any, batch: Any) -> Element:
    if not isinstance(kernel, Kernel) or not isinstance(coef, Coef):
        raise InputError("an element needs a kernel and coefficients")
    points = kernel.points(points, "points").array
    batch = None if batch is None else positive_int(batch, "batch")
    expected = (n_rows(points), 1 if batch is None else batch)
    if coef.shape != expected:
        raise InputError(f"the coefficients have shape {coef.shape}, not {expected}")
    return Element(kernel, points, coef, batch)


def _dense(array: Any) -> Dense:
    return Dense(_matrix(array))


def _selection(index: Any, value: Any, n_points: Any) -> Selection:
    value = _floats(value, 1)
    if not isinstance(index, np.ndarray) or index.dtype.kind != "i" or index.shape != value.shape:
        raise InputError("a selection needs one row number for each value")
    n_points = positive_int(n_points, "n_points")
    if index.size and (index.min() < 0 or index.max() >= n_points):
        raise InputError(f"a selection has row numbers beyond its {n_points} points")
    return Selection(index.astype(np.intp, copy=False), value, n_points)


def _low_rank(left: Any, right: Any) -> LowRank:
    left, right = _matrix(left), _matrix(right)
    if left.shape[1] != right.shape[0]:
        raise InputError(f"matrices of shapes {left.shape} and {right.shape} have no product")
    return LowRank(left, right)


def _stacked(parts: Any) -> Stacked:
    flat = isinstance(parts, tuple) and all(
        isinstance(p, Dense | Selection | LowRank) for p in parts
    )
    if not flat or len({p.shape[1] for p in parts}) != 1:
        raise InputError("stacked coefficients need blocks with equal numbers of elements")
    return Stacked(parts)


def _matrix(array: Any) -> Array:
    return _floats(array, 2)


def _floats(array: Any, ndim: int) -> Array:
    if not isinstance(array, np.ndarray) or array.ndim != ndim or array.dtype not in _FLOATS:
        raise InputError("coefficients must be arrays of float32 or float64")
    return frozen(array)


CHECKED: dict[type, Callable[..., Any]] = {
    Element: _element,
    Dense: _dense,
    Selection: _selection,
    LowRank: _low_rank,
    Stacked: _stacked,
}
