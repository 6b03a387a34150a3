"""Solve with cvxpy and clarabel (extra `theory`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, as_dense_points, as_vector, real
from mercer.exceptions import InputError, MercerWarning

_LARGEST = 1e75  # of an entry of a problem: products of four such numbers do not overflow


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
    listed = isinstance(constraints, list | tuple)
    if not listed or not all(isinstance(c, cp.Constraint) for c in constraints):
        raise InputError("constraints must be a list of comparisons of cvxpy expressions: x >= 0")
    problem = cp.Problem(cp.Minimize(expression(objective, "the objective")), list(constraints))
    if not problem.is_dcp():
        raise InputError("the problem must be convex (problem.is_dcp() of cvxpy)")
    try:
        with warnings.catch_warnings(action="ignore"):
            problem.solve(solver=cp.CLARABEL)
    except (cp.SolverError, ValueError) as error:  # ValueError: NaN and infinity
        raise InputError(f"clarabel does not solve the problem: {error}") from error
    if problem.status == cp.settings.USER_LIMIT:
        raise InputError("clarabel does not solve the problem in its steps; it may be infeasible")
    if problem.status.endswith("inaccurate"):
        warnings.warn("the solution may be inaccurate; rescale the problem", MercerWarning, 3)
    return float(np.sum(problem.value))


def attained(objective: Any, constraints: Sequence[Any] = ()) -> float:
    """`minimum`, which must be finite."""
    value = minimum(objective, constraints)
    if not np.isfinite(value):
        raise InputError(f"the problem is {'infeasible' if value > 0 else 'unbounded below'}")
    return value


def expression(value: Any, name: str) -> Any:
    """A scalar expression of cvxpy, which may be a number."""
    cp = cvxpy()
    if not isinstance(value, cp.Expression):
        return cp.Constant(real(value, name))
    if not value.is_scalar() or value.is_complex():
        raise InputError(f"{name} must be a single real number, got shape {value.shape}")
    return value


def vector(a: Any, name: str, length: int | None = None) -> Array:
    """A vector of numbers up to 1e75."""
    return _of_size(as_vector(a, name, length), name)


def matrix(A: Any, name: str) -> Array:
    """A matrix of numbers up to 1e75."""
    return _of_size(as_dense_points(A, name), name)


def matrices(given: Any, name: str, made: Callable[[Any, str], Array] = matrix) -> list[Array]:
    """A list of matrices."""
    if not isinstance(given, Sequence) and np.ndim(given) != 3:
        raise InputError(f"{name} must be a list of matrices, got {type(given).__name__}")
    return [made(M, name) for M in given]


def _of_size(a: Array, name: str) -> Array:
    a = a.astype(np.float64)
    if np.abs(a).max(initial=0.0) > _LARGEST:
        raise InputError(f"{name} has entries above {_LARGEST:g}; rescale the problem")
    return a


def matrix_and_vector(A: Any, b: Any, names: str = "Ab") -> tuple[Array, Array]:
    """A of shape (m, n), and b of shape (m,)."""
    A = matrix(A, names[0])
    return A, vector(b, names[1], len(A))


def symmetric(A: Any, name: str) -> Array:
    """A as a symmetric matrix."""
    S = matrix(A, name)
    if S.shape[0] != S.shape[1] or not np.allclose(S, S.T):
        raise InputError(f"{name} must be a symmetric matrix; use ({name} + {name}.T) / 2")
    return S
