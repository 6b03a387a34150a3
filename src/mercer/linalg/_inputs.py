"""Inputs and results of this package: points in float64, right-hand sides, overflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mercer._array import LARGEST, Array, Points, as_vector, as_weights, instance
from mercer._chunks import Chunks, weights_in_pieces
from mercer._tensors import is_tensor
from mercer.engine import as_float64, n_rows
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, Kernel

P = ParamSpec("P")
R = TypeVar("R")

OVERFLOW = "numbers overflow; bring the kernel's values (and weights, penalty, ...) nearer to 1"


def refuses_overflow(function: Callable[P, R]) -> Callable[P, R]:
    """Raise an InputError where numbers overflow, instead of a warning and a result with NaN."""

    @wraps(function)
    def checked(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                result = function(*arguments, **named)
        except np.linalg.LinAlgError as error:
            raise InputError(OVERFLOW) from error
        if is_tensor(result):
            return result
        whole = result if isinstance(result, tuple) else [result]
        parts = vars(result).values() if is_dataclass(result) else whole
        numbers = (np.asarray(part) for part in parts if isinstance(part, float | np.ndarray))
        if not all(np.isfinite(a).all() for a in numbers if a.dtype.kind == "f"):
            raise InputError(OVERFLOW)
        return result

    return checked


def check_moderate(kernel: Kernel, X: Points) -> None:
    """Raise if k(x, x) overflows, or would overflow when squared."""
    if not np.all(np.abs(kernel.diag(X)) <= LARGEST):  # or NaN
        raise InputError(OVERFLOW)


def double_points(kernel: Kernel, X: Any, name: str = "X") -> Any:
    """The checked points of a kernel in float64, in which factorisations are computed."""
    instance(kernel, Kernel, "kernel")
    return as_float64(kernel.points(X, name).array)


def as_columns(B: Any, n: int, name: str = "B") -> tuple[Array, bool]:
    """A finite float64 (n, b) matrix, and whether it was a single vector."""
    try:
        array = np.asarray(B)
    except ValueError as error:
        raise InputError(f"{name} must be an array of numbers: {error}") from error
    if array.ndim not in (1, 2) or array.shape[0] != n or array.size == 0:
        raise InputError(f"{name} must have shape ({n},) or ({n}, b), got {array.shape}")
    flat = as_vector(array.reshape(-1), name).astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        if not np.isfinite(flat @ flat):
            raise InputError(f"{name} has entries whose squares overflow; rescale it")
    return flat.reshape(n, -1), array.ndim == 1


def raw_weights(weights: Any, n: int, name: str = "weights") -> Array | None:
    """Unscaled weights >= 0 with a positive sum: a weight of 2 is the same as repeating the row."""
    if weights is None:
        return None
    as_weights(weights, n, name)  # raises
    return as_vector(weights, name, n).astype(np.float64)


def row_weights(weights: Any, X: Any, name: str = "weights") -> Any:
    """`raw_weights` of rows in memory or in pieces."""
    if not isinstance(X, Chunks):
        return raw_weights(weights, n_rows(X), name)
    return None if weights is None else weights_in_pieces(X, weights, name)


def require_definite(kernel: Kernel, what: str) -> None:
    """Raise for kernels that are known not to be positive definite, or only conditionally."""
    instance(kernel, Kernel, "kernel")
    kind = kernel.flags.definiteness
    if kind in (Definiteness.CONDITIONAL, Definiteness.INDEFINITE):
        raise InputError(
            f"{what} needs a positive definite kernel, but {kernel!r} is {kind.name.lower()}"
        )
