"""Sums over coordinates, v(x, y) = sum_c f(x_c, y_c), on tiles: by the core, or by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._config import get_options
from mercer._errors import InputError
from mercer.engine._compiled import core, instruction_set

_KINDS = ("minimum", "harmonic", "chi2", "differing")  # as the core numbers them
_FEW_LABELS = 2**24  # whole numbers that float32 holds


def comparable(X: Any, Y: Any = None) -> tuple[Array, Array]:
    """Points and queries (None: the points) as the core reads them, objects as whole numbers."""
    Y = X if Y is None else Y
    if is_sparse(X) or is_sparse(Y):
        raise InputError("this kernel compares coordinate by coordinate: use X.toarray()")
    if X.dtype == object or Y.dtype == object:
        return _codes(X, Y)
    dtype = np.result_type(X, Y)
    x = np.ascontiguousarray(X, dtype=dtype)
    return x, x if Y is X else np.ascontiguousarray(Y, dtype=dtype)


def coordinate_sums(kind: str, Y: Array, X: Array, dtype: Any) -> Array:
    """The sums between rows of Y and rows of X, shape (len(Y), len(X)), in the given type."""
    if kind == "equal":
        return _share(coordinate_sums("differing", Y, X, dtype), X.shape[1])
    if core() is None or get_options().engine == "blocked":
        return _sums(_TERMS[kind], Y, X).astype(dtype)
    out = np.empty((Y.shape[0], X.shape[0]), dtype=X.dtype)
    core().coordinate_sums(_KINDS.index(kind), Y, X, out, instruction_set())
    return out.astype(dtype, copy=False)


def aligned_sums(kind: str, Y: Array, X: Array) -> Array:
    """The sums between row j of Y and row j of X, shape (len(Y),)."""
    if kind == "equal":
        return _share(aligned_sums("differing", Y, X), X.shape[1])
    return np.asarray(_TERMS[kind](Y, X).sum(axis=1, dtype=np.float64))


def totals(X: Any) -> Array:
    """The sum of the coordinates of each row, in float64."""
    return np.asarray(X.sum(axis=1, dtype=np.float64)).reshape(-1)


def _sums(term: Callable[[Any, Any], Any], Y: Array, X: Array) -> Array:
    out = np.zeros((Y.shape[0], X.shape[0]))
    for k in range(X.shape[1]):
        out += term(Y[:, k, None], X[None, :, k])
    return out


def _share(differing: Array, columns: int) -> Array:
    return np.asarray((columns - differing) / differing.dtype.type(columns))


def _harmonic(y: Any, x: Any) -> Any:
    """Smaller times share: symmetric to the last bit, and nothing overflows."""
    total = x + y
    return np.minimum(x, y) * (np.maximum(x, y) / np.where(total == 0, 1, total))


def _chi2(y: Any, x: Any) -> Any:
    total, gap = x + y, x - y
    return gap * (gap / np.where(total == 0, 1, total))


_TERMS: dict[str, Callable[[Any, Any], Any]] = {
    "minimum": np.minimum,
    "harmonic": _harmonic,
    "chi2": _chi2,
    "differing": np.not_equal,
}


def _codes(X: Array, Y: Array) -> tuple[Array, Array]:
    """Whole numbers that are equal where the objects of a column are."""
    n, columns = X.shape
    same = X is Y
    out = np.empty((n if same else n + len(Y), columns))
    most = 0
    for c in range(columns):
        known: dict[Any, int] = {}
        labels = X[:, c].tolist() if same else X[:, c].tolist() + Y[:, c].tolist()
        out[:, c] = [known.setdefault(label, len(known)) for label in labels]
        most = max(most, len(known))
    out = out.astype(np.float32) if most <= _FEW_LABELS else out
    x = out[:n]
    return x, x if same else out[n:]
