"""Solve with cvxpy and clarabel (extra `theory`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, as_dense_points, as_vector
from mercer.exceptions import InputError


class Optimum(NamedTuple):
    """A solution and its value.

    Attributes
    ----------
    x : ndarray
        A point at which the optimum is attained.
    value : float
        The optimal value.
    """

    x: Array
    value: float


def cvxpy() -> Any:
    """The module, imported when a function first needs it."""
    try:
        import clarabel  # noqa: F401
        import cvxpy as cp
    except ImportError as error:
        raise ImportError("this needs cvxpy and clarabel: pip install 'mercer[theory]'") from error
    return cp


def minimum(objective: Any, constraints: Sequence[Any] = ()) -> float:
    """The smallest value of a cvxpy expression; inf if infeasible, -inf if unbounded."""
    cp = cvxpy()
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def attained(objective: Any, constraints: Sequence[Any] = ()) -> float:
    """`minimum`, where there must be one."""
    value = minimum(objective, constraints)
    if not np.isfinite(value):
        raise InputError(f"the problem is {'infeasible' if value > 0 else 'unbounded below'}")
    return value


def matrix_and_vector(A: Any, b: Any, names: str = "Ab") -> tuple[Array, Array]:
    """A of shape (m, n), and b of shape (m,)."""
    A = as_dense_points(A, names[0])
    return A, as_vector(b, names[1], len(A))


def symmetric(A: Any, name: str) -> Array:
    """A as a symmetric matrix."""
    S = as_dense_points(A, name)
    if S.shape[0] != S.shape[1] or not np.allclose(S, S.T):
        raise InputError(f"{name} must be a symmetric matrix; use ({name} + {name}.T) / 2")
    return S
