"""Convex conjugates, numerically and in closed form.

Sakulwongtana, Definition 1.3.8 and Remark 15.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from mercer._array import Array
from mercer.exceptions import InputError
from mercer.theory.duality._solve import cvxpy, expression, minimum, vector


@dataclass(frozen=True)
class ConjugatePair:
    """A convex function and its conjugate f*(y) = sup_x y'x - f(x).

    Attributes
    ----------
    f : callable
        From a cvxpy variable (or an array) to a cvxpy expression.
    conjugate : callable
        f* in closed form, from an array to a number; inf outside its domain.
    """

    f: Callable[[Any], Any]
    conjugate: Callable[[Array], float]


def conjugate(f: Callable[[Any], Any], y: Any) -> float:
    """Return the conjugate f*(y) = sup_x y'x - f(x), computed with clarabel; it may be infinite.

    Parameters
    ----------
    f : callable
        From a cvxpy variable of shape (d,) to a convex expression, such as `cvxpy.norm1`.
    y : array_like of shape (d,)
        The slope.

    Examples
    --------
    The conjugate of sum x log x is sum exp(y - 1); that of a norm is 0 in the unit ball of the
    dual norm and inf outside:

    >>> import cvxpy as cp
    >>> from mercer.theory import duality
    >>> round(duality.conjugate(lambda x: -cp.sum(cp.entr(x)), [0.0, 1.0]), 6)
    1.367879
    >>> duality.conjugate(cp.norm1, [0.5, -1.5])
    inf
    """
    y = vector(y, "y")
    if not callable(f) or not len(y):
        raise InputError("f must be a function, and y must have at least one entry")
    x = cvxpy().Variable(len(y))
    return -minimum(expression(f(x), "f(x)") - y @ x) + 0.0


def inside(*sizes: tuple[Any, Any]) -> bool:
    """Whether each excess is at most 1e-6 times (1 + its scale).

    Clarabel solves to 1e-8, and multipliers of this accuracy must count as feasible for the dual.
    """
    return all(
        np.max(excess, initial=0.0) <= 1e-6 * (1.0 + np.max(np.abs(scale), initial=0.0))
        for excess, scale in sizes
    )


def _inside(value: Any, *excesses: Any) -> float:
    """The value of a conjugate, if its argument is in the domain."""
    return float(value) if inside(*((excess, 0.0) for excess in excesses)) else np.inf


def _times_log(y: Array) -> float:
    """sum y log y, where y < 0 is rounding."""
    return float(-np.sum(entr(np.maximum(y, 0.0))))


CONJUGATES = {
    "half squared norm": ConjugatePair(
        lambda x: cvxpy().sum_squares(x) / 2,
        lambda y: float(y @ y / 2.0),
    ),
    "negative entropy": ConjugatePair(  # sum x log x
        lambda x: -cvxpy().sum(cvxpy().entr(x)),
        lambda y: float(np.exp(y - 1.0).sum()),
    ),
    "exponential": ConjugatePair(  # sum exp x
        lambda x: cvxpy().sum(cvxpy().exp(x)),
        lambda y: _inside(_times_log(y) - y.sum(), -y),
    ),
    "negative logarithm": ConjugatePair(  # -sum log x
        lambda x: -cvxpy().sum(cvxpy().log(x)),
        lambda y: float(-np.sum(1.0 + np.log(-y))) if np.all(y < 0.0) else np.inf,
    ),
    "log-sum-exp": ConjugatePair(
        lambda x: cvxpy().log_sum_exp(x),
        lambda y: _inside(_times_log(y), -y, abs(y.sum() - 1.0)),
    ),
    "sum of absolute values": ConjugatePair(
        lambda x: cvxpy().norm1(x),
        lambda y: _inside(0.0, np.abs(y) - 1.0),
    ),
}
