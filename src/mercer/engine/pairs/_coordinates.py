"""Sums over coordinates, v(x, y) = sum_c f(x_c, y_c), on tiles: by the core, or by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._tensors import namespace
from mercer.engine._compiled import core, core_allowed, instruction_set
from mercer.engine._sizes import contiguous
from mercer.exceptions import InputError

_KINDS = ("minimum", "harmonic", "chi2", "differing", "absolute")  # as the core numbers them


def comparable(X: Any, Y: Any = None) -> tuple[Array, Array]:
    """Points and queries (None: the points) as the core reads them, objects as whole numbers."""
    Y = X if Y is None else Y
    if is_sparse(X) or is_sparse(Y):
        raise InputError("this kernel compares coordinate by coordinate: use X.toarray()")
    if X.dtype == object or Y.dtype == object:
        return _codes(X, Y)
    dtype = np.result_type(X, Y)
    x = contiguous(X, dtype=dtype)
    return x, x if Y is X else contiguous(Y, dtype=dtype)


def coordinate_sums(kind: str, Y: Array, X: Array, out: Array | None = None) -> Array:
    """The sums between rows of Y and rows of X, shape (len(Y), len(X)); in `out` if given."""
    out = np.empty((Y.shape[0], X.shape[0]), dtype=X.dtype) if out is None else out
    known = "differing" if kind == "equal" else kind
    if core_allowed():
        core().coordinate_sums(_KINDS.index(known), Y, X, out, instruction_set())
    else:
        out[...] = _sums(_TERMS[known], Y, X)
    return _share(out, X.shape[1]) if kind == "equal" else out


def rowwise_sums(kind: str, Y: Array, X: Array) -> Array:
    """The sums between row j of Y and row j of X, shape (len(Y),)."""
    if kind == "equal":
        return _share(rowwise_sums("differing", Y, X), X.shape[1])
    return np.asarray(_TERMS[kind](Y, X).sum(axis=1, dtype=np.float64))


def tensor_sums(kind: str, y: Any, x: Any) -> Any:
    """The sums over the last axis of two tensors that broadcast."""
    xp, columns, total = namespace(x), x.shape[-1], 0.0
    for k in range(columns):
        a, b = y[..., k], x[..., k]
        match kind:
            case "minimum":
                term = xp.minimum(a, b)
            case "absolute":
                term = xp.abs(a - b)
            case "differing" | "equal":
                term = xp.astype((a != b) if kind == "differing" else (a == b), x.dtype)
            case _:
                sum_ = a + b
                inverse = 1.0 / xp.where(sum_ == 0, xp.ones_like(sum_), sum_)
                gap = a - b
                term = xp.minimum(a, b) * (xp.maximum(a, b) * inverse)
                term = term if kind == "harmonic" else gap * (gap * inverse)
        total = total + term
    return total / columns if kind == "equal" else total


def _sums(term: Callable[[Any, Any], Any], Y: Array, X: Array) -> Array:
    out = np.zeros((Y.shape[0], X.shape[0]))
    for k in range(X.shape[1]):
        out += term(Y[:, k, None], X[None, :, k])
    return out


def _share(differing: Array, columns: int) -> Array:
    """The share of equal columns, in place."""
    np.subtract(columns, differing, out=differing)
    differing /= columns
    return differing


def _harmonic(y: Any, x: Any) -> Any:
    """As min times (max / sum): symmetric to the last bit, and without overflow."""
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
    "absolute": lambda y, x: abs(x - y),
}


def _codes(X: Array, Y: Array) -> tuple[Array, Array]:
    """Whole numbers in place of objects: equal in a column if the objects are."""
    sets = [X] if Y is X else [X, Y]
    out = [np.empty(Z.shape) for Z in sets]
    for c in range(X.shape[1]):
        known: dict[Any, int] = {}
        for codes, Z in zip(out, sets, strict=True):
            codes[:, c] = [known.setdefault(label, len(known)) for label in Z[:, c].tolist()]
    return out[0], out[-1]
