"""Profiles of kernels as expressions of the engine."""

from __future__ import annotations

from typing import Any

from mercer.engine import Const, Expr, Opaque, Var


def recorded(kernel: Any, variable: Var) -> Expr:
    """The profile as an expression, or as an opaque function where it cannot be recorded."""
    derivatives = getattr(kernel, "profile_derivatives", None)
    if derivatives is not None:
        return Opaque(variable, kernel.profile, derivatives)
    try:
        result = kernel.profile(variable)
        return result if isinstance(result, Expr) else Const(float(result))
    except (TypeError, AttributeError, ValueError):  # a function that accepts only arrays
        return Opaque(variable, kernel.profile)
