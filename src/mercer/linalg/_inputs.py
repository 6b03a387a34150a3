"""Inputs of this package: points in double precision, right-hand sides, weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, as_vector, as_weights
from mercer.engine import as_float64
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, Kernel


def check_kernel(kernel: Any) -> None:
    """Raise unless this is a kernel."""
    if not isinstance(kernel, Kernel):
        raise InputError(
            f"kernel must be a Kernel such as mercer.Gaussian(1.0), got {type(kernel).__name__}"
        )


def double_points(kernel: Kernel, X: Any, name: str = "X") -> Any:
    """The checked points of a kernel in float64, in which factorisations are computed."""
    return as_float64(kernel.points(X, name).array)


def as_columns(B: Any, n: int, name: str = "B") -> tuple[Array, bool]:
    """A finite float64 (n, b) matrix, and whether it was a single vector."""
    array = np.asarray(B)
    if array.ndim not in (1, 2) or array.shape[0] != n or array.size == 0:
        raise InputError(f"{name} must have shape ({n},) or ({n}, b), got {array.shape}")
    flat = as_vector(array.reshape(-1), name).astype(np.float64, copy=False)
    return flat.reshape(n, -1), array.ndim == 1


def raw_weights(weights: Any, n: int) -> Array | None:
    """Weights >= 0 with a positive sum, not scaled: a 2 is the same as repeating the row."""
    if weights is None:
        return None
    as_weights(weights, n)  # raises
    return as_vector(weights, "weights", n).astype(np.float64)


def require_definite(kernel: Kernel, what: str) -> None:
    """Raise for kernels that are known not to be positive definite, or only conditionally."""
    kind = kernel.flags.definiteness
    if kind in (Definiteness.CONDITIONAL, Definiteness.INDEFINITE):
        raise InputError(
            f"{what} needs a positive definite kernel, but {kernel!r} is {kind.name.lower()}"
        )


def one_of(value: Any, choices: tuple[str, ...], name: str) -> str:
    """Return value if it is one of the choices."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return str(value)
