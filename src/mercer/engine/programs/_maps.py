"""Maps of points that are applied before the kernel: scales, columns, matrices, features.

Each map is a value; `apply` takes points (rows) to the space in which the kernel measures. A linear
map also has `pull`, which takes gradients back to the original coordinates (multiplication by the
transpose). After a map that is not linear, a kernel has values but no derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array, as_dense_points, as_vector, frozen, is_sparse, positive_length
from mercer._tensors import constant, is_tensor, namespace
from mercer.exceptions import InputError


class Map(ABC):
    """A map of points: an immutable, hashable value."""

    is_linear: ClassVar[bool] = False

    @property
    def in_dim(self) -> int | None:
        """The number of columns it needs; None if any number that is large enough will do."""
        return None

    @abstractmethod
    def apply(self, X: Any) -> Any:
        """Map the rows of X."""

    def check(self, columns: int, name: str) -> None:
        """Raise unless points with this many columns can be mapped."""
        if self.in_dim is not None and columns != self.in_dim:
            raise InputError(
                f"{name} has {columns} features, but the kernel's {type(self).__name__} "
                f"needs {self.in_dim}"
            )

    def out_dim(self, in_dim: int) -> int:
        """The number of columns of mapped points; for linear maps."""
        raise NotImplementedError  # pragma: no cover

    def pull(self, G: Array, in_dim: int) -> Array:
        """Take gradients (last axis) back to the `in_dim` original coordinates; for linear maps."""
        raise NotImplementedError  # pragma: no cover


class LinearMap(Map):
    """A linear map that is given by an array."""

    is_linear = True
    array: Array

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "array"):
            raise AttributeError(f"{type(self).__name__} is immutable")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((type(self), self.array.shape, self.array.tobytes()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array.tolist()})"

    def __reduce__(self) -> Any:
        return type(self), (np.array(self.array),)


class Scales(LinearMap):
    """Divide each coordinate by its own length: x -> x / s.

    Parameters
    ----------
    lengths : array_like of shape (d,)
        Positive lengths s, one per column.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0).transform(mc.Scales([1.0, 10.0]))
    >>> k([[0.0, 0.0]], [[1.0, 10.0]]).round(4)
    array([[0.3679]])
    """

    def __init__(self, lengths: Any) -> None:
        lengths = as_vector(lengths, "lengths").astype(np.float64)
        if lengths.size == 0 or np.any(lengths <= 0):
            raise InputError(f"lengths must all be > 0, got {lengths.tolist()}")
        for length in (lengths.min(), lengths.max()):
            positive_length(length, "each length")
        self.array = frozen(lengths + 0.0)

    @property
    def in_dim(self) -> int | None:
        return self.array.size

    def out_dim(self, in_dim: int) -> int:
        return in_dim

    def apply(self, X: Any) -> Any:
        if is_sparse(X):
            return X.multiply(1.0 / self.array[None, :]).tocsr()
        if is_tensor(X):
            return X / constant(self.array, X)
        with np.errstate(over="ignore"):  # beyond float32, numbers become infinite or zero
            return (X / self.array).astype(X.dtype, copy=False)

    def pull(self, G: Array, in_dim: int) -> Array:
        return self.apply(G)  # type: ignore[no-any-return]


class Columns(LinearMap):
    """Keep some columns; the kernel ignores the others.

    Parameters
    ----------
    indices : array_like of int
        Column numbers >= 0, each at most once.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Linear().transform(mc.Columns([1]))
    >>> k([[0.0, 2.0]], [[0.0, 3.0]])
    array([[6.]])
    """

    def __init__(self, indices: Any) -> None:
        array = np.asarray(indices)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise InputError(f"indices must be a list of column numbers, got {indices!r}")
        if array.min() < 0 or np.unique(array).size < array.size:
            raise InputError(f"indices must be >= 0 and distinct, got {array.tolist()}")
        if array.max() >= 2**63:
            raise InputError(f"indices must be below 2**63, got {array.tolist()}")
        self.array = frozen(array.astype(np.intp))

    def out_dim(self, in_dim: int) -> int:
        return self.array.size

    def check(self, columns: int, name: str) -> None:
        if columns <= self.array.max():
            raise InputError(
                f"{name} has {columns} features, but the kernel looks at column "
                f"{int(self.array.max())}"
            )

    def apply(self, X: Any) -> Any:
        if is_tensor(X):
            return namespace(X).take(X, constant(self.array, X), axis=1)
        return X[:, self.array]

    def pull(self, G: Array, in_dim: int) -> Array:
        if is_tensor(G):
            return G @ constant(np.eye(in_dim)[self.array], G)  # type: ignore[no-any-return]
        out = np.zeros((*G.shape[:-1], in_dim), dtype=G.dtype)
        out[..., self.array] = G
        return out


class Matrix(LinearMap):
    """Apply a matrix: x -> A x, so that squared distances become (x-y)' A'A (x-y).

    Parameters
    ----------
    A : array_like of shape (p, d)

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Linear().transform(mc.kernels.Matrix([[1.0, 1.0]]))
    >>> k([[1.0, 2.0]], [[3.0, 4.0]])
    array([[21.]])
    """

    def __init__(self, A: Any) -> None:
        self.array = frozen(as_dense_points(A, "A") + 0.0)  # no -0.0: equal maps, equal hash

    @property
    def in_dim(self) -> int | None:
        return int(self.array.shape[1])

    def out_dim(self, in_dim: int) -> int:
        return int(self.array.shape[0])

    def apply(self, X: Any) -> Any:
        if is_sparse(X):
            raise InputError(
                "a Matrix makes sparse points dense; apply it first, X @ A.T, or use X.toarray()"
            )
        if is_tensor(X):
            return X @ constant(self.array.T, X)
        return X @ self.array.T.astype(X.dtype)

    def pull(self, G: Array, in_dim: int) -> Array:
        A: Any = constant(self.array, G) if is_tensor(G) else self.array.astype(G.dtype)
        return G @ A  # type: ignore[no-any-return]


Maps = tuple[Map, ...]


def apply_all(maps: Maps, X: Any) -> Any:
    for step in maps:
        X = step.apply(X)
    return X


def column_rank(A: Array) -> int:
    """The rank of a matrix, whatever the units of its columns: they get unit length first."""
    length = np.linalg.norm(A, axis=0)
    return int(np.linalg.matrix_rank(A / np.where(length > 0.0, length, 1.0)))


def pull_all(maps: Maps, G: Array, in_dim: int) -> Array:
    """Pull a gradient back through all the maps, last to first."""
    dims = [in_dim]
    for step in maps:
        dims.append(step.out_dim(dims[-1]))
    for step, dim in zip(reversed(maps), reversed(dims[:-1]), strict=True):
        G = step.pull(G, dim)
    return G


def pull_both(maps: Maps, other_maps: Maps, T: Array, in_dim: int) -> Array:
    """Pull a matrix of derivatives (last two axes) back through two lists of maps."""
    xp = namespace(T)
    T = xp.matrix_transpose(pull_all(other_maps, T, in_dim))
    return xp.matrix_transpose(pull_all(maps, T, in_dim))  # type: ignore[no-any-return]
