"""Sizes and types of sets of points, and of the tiles that a sum over them is cut into.

Points are dense arrays, sparse ones, or objects of any kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._config import get_options
from mercer._tensors import is_tensor
from mercer._threads import thread_count

_ROWS, _TILE = 256, 1 << 20  # a tile of 1 MiB stays in cache; sums of at most 1,024 terms
_MANY_DIMENSIONS = 200  # BLAS does nearly all the work, and is faster on larger tiles
# larger still if each tile is passed over once: accumulators are read less often
_LARGE = 640, 4096
_SMALLEST = 8  # rows and columns, however little memory is allowed


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
    """The points in float64; tensors and points that are not numbers are unchanged."""
    if is_tensor(X):
        return X
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X


def as_float32(array: Array) -> Array:
    """The array in float32; numbers beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def dense(X: Any) -> Array:
    """The points as a dense array of float64."""
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)


def tile_sizes(arrays: int, dtype: Any, dim: int, bytes_per_row: int = 0) -> tuple[int, int]:
    """Queries and points of a tile, for `arrays` temporaries and `bytes_per_row` of results.

    They depend on the number of threads only if `working_memory` is tight, and partial sums are
    added in a fixed order. So results hardly depend on the number of threads.
    """
    budget = get_options().working_memory * 2**20 / thread_count()
    size = np.dtype(dtype).itemsize
    rows, columns = _ROWS, _TILE // (_ROWS * size)
    if dim > _MANY_DIMENSIONS:
        rows, columns = _LARGE if arrays == 1 else (2 * rows, 2 * columns)
    while rows > _SMALLEST and rows * (columns * size * arrays + bytes_per_row) > budget:
        rows //= 2
    while columns > _SMALLEST and rows * columns * size * arrays > budget:
        columns //= 2
    return rows, columns


def contiguous(array: Any, dtype: Any = None) -> Array:
    """The array in C order and aligned, as compiled code takes it, copied only if it is not.

    Arrays that another process sent may be unaligned.
    """
    return np.require(array, dtype, ["C", "A"])


def pieces(stop: int, size: int, start: int = 0) -> Iterator[slice]:
    """Slices of at most `size` that cover range(start, stop)."""
    return (slice(i, min(i + size, stop)) for i in range(start, stop, size))


def column_range(X: Array) -> tuple[Array, Array]:
    """Least and largest entry of each column; NaN for columns that contain one.

    Rows of few columns are laid side by side, because NumPy is slow on an axis of length two.
    """
    n, d = X.shape
    beside = max(1, 256 // d) if X.flags.c_contiguous else 1
    whole = n // beside * beside
    if beside == 1 or not whole:
        return X.min(axis=0), X.max(axis=0)
    wide, rest = X[:whole].reshape(-1, beside * d), X[whole:]
    least, largest = wide.min(axis=0).reshape(-1, d), wide.max(axis=0).reshape(-1, d)
    return np.vstack([least, rest]).min(axis=0), np.vstack([largest, rest]).max(axis=0)
