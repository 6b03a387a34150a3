"""Sizes and types of sets of points: dense arrays, sparse ones, or objects of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, is_sparse


def n_rows(X: Any) -> int:
    """The number of points, of whatever kind they are."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape is not None else len(X)


def n_columns(X: Any) -> int:
    """The number of features; 0 for points that are not vectors."""
    shape = np.shape(X) if getattr(X, "shape", None) is None else X.shape
    return int(shape[1]) if len(shape) == 2 else 0


def tile_dtype(X: Any, Y: Any) -> Any:
    """float32 where both sets are, else float64 (points that are not numbers included)."""
    types = {getattr(X, "dtype", None), getattr(Y, "dtype", None)}
    return np.dtype(np.float32) if types == {np.dtype(np.float32)} else np.dtype(np.float64)


def as_float64(X: Any) -> Any:
    """The points in float64; points that are not numbers as they are."""
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X


def as_float32(array: Array) -> Array:
    """The array in float32; numbers beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def dense(X: Any) -> Array:
    """The points as a dense array of float64."""
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
