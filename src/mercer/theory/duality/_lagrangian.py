"""The Lagrangian of a cvxpy problem, its dual function, and multipliers as sensitivities.

The standard form is: minimise f0(x) subject to fi(x) <= 0 and hj(x) = 0. A constraint `lhs <= rhs`
is f = lhs - rhs <= 0, and `lhs == rhs` is h = lhs - rhs = 0. A cone constraint, such as `S >> 0`,
is f = -S <= 0 in the order of the cone, with a multiplier in the dual cone. `Maximize(f)` is read
as minimising -f.

Sakulwongtana, Definitions 1.5.1 and 1.5.2, Proposition 1.5.1, Remark 20, and Lemma 1.5.1 with the
sign of lambda corrected; Boyd and Vandenberghe 2004, Convex Optimization, Sections 5.1 and 5.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from mercer._array import as_numbers
from mercer.exceptions import InputError, UnavailableError
from mercer.theory.duality._solve import cvxpy, minimum


class Sensitivity(NamedTuple):
    """The optimal value of a perturbed problem, and what the multipliers say about it.

    Attributes
    ----------
    value : float
        p*(u), by solving the perturbed problem.
    bound : float
        p*(0) - lambda'u, the tangent of p* at 0: a lower bound, without solving anything.
    """

    value: float
    bound: float


def lagrangian(problem: Any, multipliers: Sequence[Any] | None = None) -> Any:
    """Return the Lagrangian L = f0(x) + sum_i lambda_i'fi(x) + sum_j nu_j'hj(x).

    Parameters
    ----------
    problem : cvxpy Problem
        `Maximize(f)` is read as minimising -f.
    multipliers : sequence, optional
        lambda or nu for each of `problem.constraints`, in their order and shape. By default
        those of the solution, after `problem.solve()`.

    Returns
    -------
    cvxpy expression
        `.value` is L at the current values of the variables.

    Examples
    --------
    Minimise x^2 subject to 1 - x <= 0: L = x^2 + lambda (1 - x).

    >>> import cvxpy as cp
    >>> from mercer.theory import duality
    >>> x = cp.Variable(value=3.0)
    >>> problem = cp.Problem(cp.Minimize(x**2), [1 - x <= 0])
    >>> float(duality.lagrangian(problem, [2.0]).value)
    5.0
    """
    L = objective(problem)
    for pair in _pairs(problem, multipliers, "multipliers"):
        L = L + product(*pair)
    return L


def dual_function(problem: Any, multipliers: Sequence[Any] | None = None) -> float:
    """Return the dual function g(lambda, nu) = inf_x L(x, lambda, nu), of multipliers lambda >= 0.

    Weak duality: it is a lower bound of the optimal value p*. Strong duality: its maximum is p*,
    for instance if the problem is convex and some x has fi(x) < 0 (Slater). It is -inf where L is
    unbounded below, up to the tolerance of clarabel.

    Parameters
    ----------
    problem : cvxpy Problem
        Convex. It is not modified.
    multipliers : sequence, optional
        As in `lagrangian`, with lambda >= 0.

    Examples
    --------
    Minimise x^2 subject to 1 - x <= 0, with p* = 1: g(lambda) = lambda - lambda^2 / 4 is largest
    at lambda = 2.

    >>> import cvxpy as cp
    >>> from mercer.theory import duality
    >>> x = cp.Variable()
    >>> problem = cp.Problem(cp.Minimize(x**2), [1 - x <= 0])
    >>> [round(duality.dual_function(problem, [t]), 6) for t in (0.0, 1.0, 2.0, 3.0)]
    [0.0, 0.75, 1.0, 0.75]
    """
    L = lagrangian(problem, multipliers)
    if not L.is_convex():
        raise InputError("the Lagrangian must be convex: use multipliers >= 0 of a convex problem")
    with values_kept(problem):
        return minimum(L)


def sensitivity(problem: Any, changes: Sequence[Any]) -> Sensitivity:
    """Return p*(u) >= p*(0) - lambda*'u, with p*(u) the optimum subject to fi(x) <= ui, hj(x) = uj.

    A large multiplier means that tightening its constraint costs much; where p* is differentiable,
    lambda* = -dp*/du at u = 0.

    Parameters
    ----------
    problem : cvxpy Problem
        Solved. It is not modified.
    changes : sequence
        u for each of `problem.constraints`: a number, or an array of its shape.

    Examples
    --------
    Minimise x^2 subject to 1 - x <= u: p*(u) = (1 - u)^2, and lambda* = 2.

    >>> import cvxpy as cp
    >>> from mercer.theory import duality
    >>> x = cp.Variable()
    >>> problem = cp.Problem(cp.Minimize(x**2), [1 - x <= 0])
    >>> _ = problem.solve()
    >>> found = duality.sensitivity(problem, [0.1])
    >>> round(found.value, 6), round(found.bound, 6)
    (0.81, 0.8)
    """
    f0, found = objective(problem), optimal_multipliers(problem)
    for constraint in problem.constraints:
        _perturbed(constraint, 0.0)  # refuses other constraints
    pairs = _pairs(problem, () if changes is None else changes, "changes")
    moved = [_perturbed(c, u) for c, u in pairs]
    products = (np.sum(np.multiply(m, u)) for m, (_, u) in zip(found, pairs, strict=True))
    bound = float(f0.value - sum(products))
    with values_kept(problem):
        return Sensitivity(minimum(f0, moved), bound)


def objective(problem: Any) -> Any:
    """f0, which is minimised."""
    cp = cvxpy()
    if not isinstance(problem, cp.Problem):
        raise InputError(f"problem must be a cvxpy Problem, got {type(problem).__name__}")
    f = problem.objective.args[0]
    return f if isinstance(problem.objective, cp.Minimize) else -f


def product(constraint: Any, multiplier: Any) -> Any:
    """lambda'f(x) for one constraint, as an expression."""
    cp = cvxpy()
    f = constrained(constraint)
    if f is not None:
        return cp.sum(cp.multiply(multiplier, f))
    if len(constraint.args) == 1:
        multiplier = [np.broadcast_to(multiplier, constraint.args[0].shape)]
    pairs = zip(multiplier, constraint.args, strict=True)
    return -sum(cp.sum(cp.multiply(cp.reshape(m, a.shape, order="F"), a)) for m, a in pairs)


def constrained(constraint: Any) -> Any:
    """The f of f(x) <= 0, or the h of h(x) = 0, as an expression; None for a cone."""
    kinds = cvxpy().constraints
    if is_equality(constraint) or isinstance(constraint, kinds.Inequality | kinds.NonPos):
        return constraint.expr
    return -constraint.args[0] if isinstance(constraint, kinds.NonNeg) else None


def is_equality(constraint: Any) -> bool:
    """Whether it is a constraint h(x) = 0."""
    return isinstance(constraint, cvxpy().constraints.Equality | cvxpy().constraints.Zero)


def optimal_multipliers(problem: Any) -> list[Any]:
    """lambda* and nu* of a solved problem."""
    duals = [dual for c in problem.constraints for dual in c.dual_variables]
    if any(x.value is None for x in [*problem.variables(), *duals]):
        raise InputError("the problem has no solution with multipliers; call problem.solve() first")
    return [c.dual_value for c in problem.constraints]


def _pairs(problem: Any, values: Sequence[Any] | None, name: str) -> list[tuple[Any, Any]]:
    """The constraints, each with its value; by default with its multiplier."""
    values = optimal_multipliers(problem) if values is None else values
    n = len(problem.constraints)
    if not isinstance(values, list | tuple) or len(values) != n:
        raise InputError(f"{name} must be a list with one entry for each of {n} constraints")
    return [(c, _of_shape(c, v, name)) for c, v in zip(problem.constraints, values, strict=True)]


def _of_shape(constraint: Any, value: Any, name: str) -> Any:
    """A number or array for a constraint, or for each of the parts of a cone."""
    several = constrained(constraint) is None and len(constraint.args) > 1
    parts = value if several and isinstance(value, list | tuple) else [value]
    given = [as_numbers(part, name) for part in parts]
    if several:
        good = [part.size for part in given] == [arg.size for arg in constraint.args]
    else:
        good = given[0].shape in ((), constraint.shape)
    if not good or not all(np.isfinite(part).all() for part in given):
        raise InputError(f"{name} must be finite, with the shape of the constraint {constraint}")
    return given if several else given[0]


def _perturbed(constraint: Any, u: Any) -> Any:
    """The constraint f(x) <= u, or h(x) = u."""
    kinds = cvxpy().constraints
    if isinstance(constraint, kinds.Inequality):
        return constraint.expr <= u
    if isinstance(constraint, kinds.Equality):
        return constraint.expr == u
    if isinstance(constraint, kinds.PSD):
        return constraint.args[0] + u >> 0
    raise UnavailableError("write the constraint with <=, >=, == or >> to perturb it")


@contextmanager
def values_kept(problem: Any) -> Iterator[None]:
    """Put the values of the variables back after another problem was solved with them."""
    kept = [(x, x.value) for x in problem.variables()]
    try:
        yield
    finally:
        for x, value in kept:
            x.save_value(value)
