"""Checks shared by `mercer.theory`: formulas that overflow, and functions that users pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mercer._array import Array, as_numbers
from mercer.exceptions import InputError
from mercer.kernels._parameters import callable_function

_P = ParamSpec("_P")
_R = TypeVar("_R")


def in_range(formula: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse arguments with which a formula overflows, divides by zero or gives NaN."""

    @wraps(formula)
    def checked(*args: _P.args, **options: _P.kwargs) -> _R:
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return formula(*args, **options)
        except ArithmeticError as error:
            raise InputError(
                f"{formula.__name__} leaves the range of floating-point numbers: {error}; rescale "
                "its arguments"
            ) from error

    return checked


def real_function(f: Any, name: str) -> Callable[[Any], float]:
    """f, with its values checked: single numbers, possibly infinite."""
    callable_function(f, name)

    def checked(x: Any) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # the value shows it
            value = as_numbers(f(x), f"{name}(x)")
        if value.ndim or np.isnan(value):
            got = f"an array of shape {value.shape}" if value.ndim else "NaN"
            raise InputError(f"{name}(x) must be a number, got {got}")
        return float(value)

    return checked


def array_function(f: Any, name: str, axes: int = 1) -> Callable[[Array], Array]:
    """f, with its values checked: vectors as long as x, or matrices with two axes."""
    callable_function(f, name)

    def checked(x: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # the value shows it
            value = as_numbers(f(x), f"{name}(x)")
        if value.shape != (len(x),) * axes or np.isnan(value).any():
            got = "NaN" if np.isnan(value).any() else f"shape {value.shape}"
            raise InputError(f"{name}(x) must have shape {(len(x),) * axes}, got {got}")
        return value

    return checked
