"""Exact worst cases of first-order methods by performance estimation (PEPit)."""

import pytest


def worst_case(
    kind: str, n: int, *, step: float, smoothness: float, strong_convexity: float = 0.0
) -> float:
    """The largest f - min f after n steps over all functions of a kind, with |x_0 - x*| <= 1.

    For "strongly convex" functions f(x_0) - min f <= 1 instead. For "subgradient" the smallest
    value of the run, and `smoothness` is the Lipschitz constant.
    """
    pytest.importorskip("PEPit")
    from PEPit import PEP
    from PEPit.functions import (
        ConvexLipschitzFunction,
        SmoothConvexFunction,
        SmoothStronglyConvexFunction,
    )

    problem = PEP()
    if kind == "smooth":
        f = problem.declare_function(SmoothConvexFunction, L=smoothness)
    elif kind == "strongly convex":
        f = problem.declare_function(
            SmoothStronglyConvexFunction, L=smoothness, mu=strong_convexity
        )
    else:
        f = problem.declare_function(ConvexLipschitzFunction, M=smoothness)
    best = f.stationary_point()
    x = problem.set_initial_point()
    if kind == "strongly convex":
        problem.set_initial_condition(f(x) - f(best) <= 1)
    else:
        problem.set_initial_condition((x - best) ** 2 <= 1)
    for _ in range(n):
        if kind == "subgradient":
            g, value = f.oracle(x)
            problem.set_performance_metric(value - f(best))
            x = x - step * g
        else:
            x = x - step * f.gradient(x)
    problem.set_performance_metric(f(x) - f(best))
    return float(problem.solve(verbose=0))
