"""Points of any kind: checks, concatenation, comparison, distinct rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, Points, frozen, instance, is_sparse
from mercer._tensors import is_tensor, namespace
from mercer.kernels import Kernel


def concatenated(X: Any, Y: Any) -> Any:
    if is_tensor(X):
        return namespace(X).concat([X, Y], axis=0)
    if is_sparse(X) or is_sparse(Y):
        from scipy.sparse import csr_array, vstack

        return csr_array(vstack([X, Y], format="csr"))
    return frozen(np.concatenate([X, Y]))


def equal_points(X: Any, Y: Any) -> bool:
    """Whether two collections are known to hold the same points in the same order.

    Values are compared, which costs less than concatenating the two collections; Python objects
    must be the same objects, and sparse points and tensors the same array.
    """
    if X is Y or is_sparse(X) or is_sparse(Y) or is_tensor(X):
        return X is Y
    if X.shape != Y.shape or X.dtype != Y.dtype:
        return False
    if X.dtype == object:
        return all(x is y for x, y in zip(X.flat, Y.flat, strict=True))
    return np.array_equal(X, Y)


def unique(points: Any) -> tuple[Any, Array]:
    """Distinct points in the order of their first appearance, and which of them each row is."""
    if not is_sparse(points) and points.dtype.kind in "OV":
        first: dict[Any, int] = {}
        keys = points.tolist() if points.ndim == 1 else map(tuple, points.tolist())
        groups = np.array([first.setdefault(key, len(first)) for key in keys])
        return points[np.unique(groups, return_index=True)[1]], groups
    _, index, inverse = np.unique(number_keys(points), return_index=True, return_inverse=True)
    if is_sparse(points):
        collision = (points[index][inverse] != points).nnz > 0
        rows = points.toarray() if collision else points
    else:
        collision = not np.array_equal(points[index][inverse], points, equal_nan=True)
        rows = points
    if collision:  # two different rows have the same key
        _, index, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(index)
    return points[index[order]], np.argsort(order)[inverse.reshape(-1)]


def number_keys(X: Any) -> Array:
    """Return one 64-bit number per row of numbers, the same for equal rows; shape (n,).

    A hash: the mixed bits of its entries times a number for each column, summed modulo 2^64. Zeros
    add nothing, so that sparse and dense rows agree, and float32 counts as the float64 it equals.
    """
    columns = _column_factors(X.shape[1] if X.ndim == 2 else 1)
    if not is_sparse(X):
        return np.asarray(_mixed_bits(X.reshape(len(X), -1)) @ columns)
    X = X.copy()
    X.sum_duplicates()
    sums = np.zeros(X.nnz + 1, dtype=np.uint64)
    np.cumsum(_mixed_bits(X.data) * columns[X.indices], out=sums[1:])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _mixed_bits(values: Array) -> Array:
    """The bits of numbers, mixed one to one: round numbers differ only in their high bits."""
    doubles = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # -0.0 equals 0.0
    bits: Array = doubles.view(np.uint64)
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0xD6E8FEB86659FD93)
    bits ^= bits >> np.uint64(32)
    return bits


def _column_factors(count: int) -> Array:
    """The first odd numbers of a fixed random sequence (SplitMix64)."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((z ^ (z >> np.uint64(31))) | np.uint64(1))


def checked_points(kernel: Kernel, X: Any, name: str = "X", *, tensors: bool = True) -> Points:
    """Points checked by a kernel, tensors as NumPy arrays if `tensors` is False.

    Raises if `kernel` is not a Kernel.
    """
    instance(kernel, Kernel, "kernel")
    return kernel.points(X, name, tensors=tensors)
