"""Collections of points: putting two together, and finding those that are equal."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mercer._array import Array, frozen, is_sparse


def concatenated(X: Any, Y: Any) -> Any:
    """The points of X, then those of Y."""
    if is_sparse(X) or is_sparse(Y):
        from scipy.sparse import csr_array, vstack

        return csr_array(vstack([X, Y], format="csr"))
    return frozen(np.concatenate([X, Y]))


def same(X: Any, Y: Any) -> bool:
    """Whether two collections are one: the same object, or views of the same memory."""
    if X is Y:
        return True
    if not (isinstance(X, np.ndarray) and isinstance(Y, np.ndarray)):
        return False
    return _layout(X) == _layout(Y)


def _layout(X: Array) -> tuple[Any, ...]:
    return X.ctypes.data, X.shape, X.strides, X.dtype


def unique(points: Any) -> tuple[Any, Array]:
    """Distinct points, in the order in which they first appear, and where each went."""
    if is_sparse(points) or points.dtype.kind in "OV":
        first: dict[Any, int] = {}
        keys = _sparse_keys(points) if is_sparse(points) else _object_keys(points)
        groups = np.array([first.setdefault(key, len(first)) for key in keys])
        return points[np.unique(groups, return_index=True)[1]], groups
    _, index, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(index.size, dtype=np.intp)
    order = np.argsort(index)
    rank[order] = np.arange(index.size)
    return points[index[order]], rank[inverse.reshape(-1)]


def _object_keys(points: Array) -> list[Any]:
    """The objects themselves; rows of labels as tuples."""
    keys: list[Any] = points.tolist()
    return keys if points.ndim == 1 else [tuple(row) for row in keys]


def _sparse_keys(points: Any) -> list[tuple[bytes, bytes]]:
    """A hashable stand-in for each row of a CSR matrix; equal for equal rows."""
    X = points.copy()
    X.eliminate_zeros()
    X.sort_indices()
    ends = X.indptr
    return [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in itertools.pairwise(ends)]
