"""Bisection for quasi-convex problems: one feasibility check halves the interval of levels.

Sakulwongtana, Algorithm 1, where t = (t + u) / 2 should be (l + u) / 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, positive, real
from mercer.exceptions import InputError
from mercer.kernels._parameters import callable_function


class Bisection(NamedTuple):
    """The optimal value of a quasi-convex problem, enclosed.

    Attributes
    ----------
    x : object
        What `feasible` returned at the last feasible level; None if no level was feasible.
    value : float
        u after the last step: at most the tolerance above the optimum.
    n_iter : int
        Number of steps.
    brackets : ndarray of shape (n_iter + 1, 2)
        l and u, before the first step and after each.
    """

    x: Any
    value: float
    n_iter: int
    brackets: Array


def bisection(
    feasible: Callable[[float], Any], low: float, high: float, tol: float = 1e-6
) -> Bisection:
    """Minimise a quasi-convex f0: t = (l + u) / 2; if some x has f0(x) <= t then u = t, else l = t.

    Takes exactly ceil(log2((u - l) / tol)) steps.

    Parameters
    ----------
    feasible : callable
        From a level t to a point x with f0(x) <= t that satisfies the constraints, or to None if
        there is none.
    low, high : float
        l and u, with l <= p* <= u for the optimum p*.
    tol : float, default=1e-6
        > 0, the length at which the interval is short enough.

    Examples
    --------
    sqrt|x - 3| + 1 is not convex, but {x : f(x) <= t} is an interval around 3:

    >>> from mercer.theory import duality
    >>> found = duality.bisection(lambda t: 3.0 if t >= 1.0 else None, 0.0, 4.0, tol=0.5)
    >>> found.n_iter, found.brackets.tolist()
    (3, [[0.0, 4.0], [0.0, 2.0], [0.0, 1.0], [0.5, 1.0]])
    """
    low, high, tol = real(low, "low"), real(high, "high"), positive(tol, "tol")
    if low > high:
        raise InputError(f"low must be <= high, got {low!r} and {high!r}")
    callable_function(feasible, "feasible")
    x, brackets = None, [(low, high)]
    ratio = (high - low) / tol
    if not math.isfinite(ratio):
        raise InputError("(high - low) / tol must be a floating-point number; take a larger tol")
    steps = math.ceil(math.log2(ratio)) if ratio > 1.0 else 0
    for _ in range(steps):
        t = low / 2.0 + high / 2.0
        found = feasible(t)
        if found is None:
            low = t
        else:
            x, high = found, t
        brackets.append((low, high))
    return Bisection(x, high, steps, np.array(brackets))
