"""Optimality conditions (Karush, Kuhn, Tucker) of a solved cvxpy problem."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer._array import is_sparse
from mercer._certificate import FitCertificate
from mercer.exceptions import InputError
from mercer.theory.duality._lagrangian import (
    constrained,
    is_equality,
    lagrangian,
    objective,
    optimal_multipliers,
    product,
    values_kept,
)
from mercer.theory.duality._solve import cvxpy, minimum


def kkt(problem: Any) -> FitCertificate:
    """Check fi(x) <= 0, hj(x) = 0, lambda >= 0, lambda_i fi(x) = 0 and 0 in dL(x, lambda, nu).

    The numbers come from the values that the variables and multipliers have now, whichever solver
    set them. If all are zero, a convex problem is solved.

    - `feasibility`: the largest violation of a constraint, or of lambda >= 0.
    - `complementarity`: the largest |lambda_i fi(x)|; for a cone, the inner product.
    - `stationarity`: the largest entry of x - p, where p minimises L(p) + |p - x|^2 / 2, the
      proximal point. It is zero exactly if x minimises L, and defined where L has no gradient:
      x - p is a subgradient of L at p. It never exceeds the norm of a subgradient at x, and is
      the gradient if L is linear.
    - `primal` is f0(x), and `dual` is L(p). With zero stationarity that is the dual function;
      otherwise it bounds the optimum from below up to |x - p| times the distance from p to the
      solution.

    The proximal point takes one call of clarabel, on a problem without constraints; the rest is
    arithmetic. Attributes of variables, such as `nonneg=True`, are part of the domain of f0.

    Parameters
    ----------
    problem : cvxpy Problem
        Convex and solved. It is not modified; `Maximize(f)` is read as minimising -f.

    Returns
    -------
    FitCertificate
        With `primal`, `dual`, `gap`, `feasibility`, `stationarity` and `complementarity`.

    References
    ----------
    Sakulwongtana, Definitions 1.5.8 and 2.8.10. Davis and Drusvyatskiy 2019, Stochastic
    model-based minimization of weakly convex functions, SIAM Journal on Optimization 29(1): the
    distance to the proximal point as a measure of stationarity.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from mercer.theory import kkt
    >>> x = cp.Variable()
    >>> problem = cp.Problem(cp.Minimize(x**2), [1 - x <= 0])
    >>> _ = problem.solve()
    >>> found = kkt(problem)
    >>> max(abs(found.gap), found.stationarity, found.feasibility, found.complementarity) < 1e-6
    True

    A point that is not optimal, with the same multiplier 2: the slack is 0.5, and L' = 2x - 2.

    >>> x.value = 1.5
    >>> found = kkt(problem)
    >>> round(found.complementarity, 6), round(found.stationarity, 6)
    (1.0, 0.333333)
    """
    f0 = objective(problem)
    is_complex = any(x.is_complex() for x in problem.variables())
    if not problem.is_dcp() or problem.is_mixed_integer() or is_complex:
        raise InputError("the problem must be convex (problem.is_dcp()), with real variables")
    violations = [0.0]  # of the constraints, and of lambda >= 0 or the dual cone
    slackness = [0.0]
    multipliers = []
    with np.errstate(divide="ignore", invalid="ignore"):  # cvxpy divides by the norm of 0
        for c, m in zip(problem.constraints, optimal_multipliers(problem), strict=True):
            violations.append(_largest(c.residual))
            f = constrained(c)
            if f is None:  # a cone
                violations.append(_largest(c.dual_residual))
                slackness.append(_largest(product(c, m).value))
            elif not is_equality(c):
                violations.append(_largest(np.minimum(m, 0.0)))
                slackness.append(_largest(m * f.value))
                m = np.maximum(m, 0.0)  # so that L is convex
            multipliers.append(m)
    stationarity, dual = _proximal_point(problem, multipliers)
    return FitCertificate(
        primal=float(f0.value),
        dual=dual,
        stationarity=stationarity,
        feasibility=max(violations),
        complementarity=max(slackness),
    )


def _proximal_point(problem: Any, multipliers: list[Any]) -> tuple[float, float]:
    """max |x - p| and L(p), where p minimises L(p) + |p - x|^2 / 2."""
    L = lagrangian(problem, multipliers)
    x = [(v, v.value) for v in problem.variables()]
    with values_kept(problem), warnings.catch_warnings():
        # "may be inaccurate": what is left of the error is in the answer
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        minimum(L + sum(cvxpy().sum_squares(v - at) / 2 for v, at in x))
        return max((_largest(v.value - at) for v, at in x), default=0.0), float(L.value)


def _largest(values: Any) -> float:
    return float(np.max(np.abs(values.toarray() if is_sparse(values) else values), initial=0.0))
