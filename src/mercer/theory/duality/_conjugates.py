"""Convex conjugates, numerically and in closed form, and the dual function that they give.

Sakulwongtana, Definition 1.3.8, Proposition 1.5.3 and Remark 15.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from mercer._array import Array, instance
from mercer.exceptions import InputError
from mercer.theory.duality._primal_dual import PrimalDual, both, where
from mercer.theory.duality._solve import attained, cvxpy, expression, matrix, minimum, vector


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
    """Return the conjugate f*(y) = sup_x y'x - f(x), computed with clarabel.

    Parameters
    ----------
    f : callable
        From a cvxpy variable of shape (n,) to a convex expression, such as `cvxpy.norm1`.
    y : array_like of shape (n,)

    Returns
    -------
    float
        inf where the supremum is not finite.

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


def conjugate_form(
    pair: ConjugatePair, *, A: Any = None, b: Any = None, C: Any = None, d: Any = None
) -> PrimalDual:
    """min f(x) with Ax <= b, Cx = d; max -f*(-A'lambda - C'nu) - b'lambda - d'nu, lambda >= 0.

    Where f* is known, so is the dual. The multipliers are those that clarabel finds with x; a zero
    gap shows that they are optimal.

    Parameters
    ----------
    pair : ConjugatePair
        f and f*, such as `CONJUGATES["negative entropy"]`.
    A, b : array_like of shape (m, n) and (m,), optional
    C, d : array_like of shape (p, n) and (p,), optional

    Examples
    --------
    Of all distributions on four points the uniform one has the largest entropy, log 4 = 1.386294:

    >>> from mercer.theory import duality
    >>> entropy = duality.CONJUGATES["negative entropy"]
    >>> found = duality.conjugate_form(entropy, C=[[1.0, 1.0, 1.0, 1.0]], d=[1.0])
    >>> round(found.primal, 6), round(found.dual, 6), found.x.round(4)
    (-1.386294, -1.386294, array([0.25, 0.25, 0.25, 0.25]))
    """
    instance(pair, ConjugatePair, "pair")
    given = [matrix(M, name) for M, name in ((A, "A"), (C, "C")) if M is not None]
    if not given or given[0].shape[1] != given[-1].shape[1]:
        raise InputError("A or C must be given, with as many columns as x has entries")
    n = given[0].shape[1]
    A, b = _constraint(A, b, n, "b")
    C, d = _constraint(C, d, n, "d")

    def g(lam: Array, nu: Array) -> float:
        value = -pair.conjugate(-A.T @ lam - C.T @ nu) - b @ lam - d @ nu
        return where(value, (-lam, lam))

    x = cvxpy().Variable(n)
    constraints = [A @ x <= b, C @ x == d]
    value = attained(pair.f(x), [c for c in constraints if c.size])
    lam, nu = (c.dual_value if c.size else np.zeros(0) for c in constraints)
    return both(value, x.value, g, lam, nu)


def _constraint(M: Any, rhs: Any, n: int, name: str) -> tuple[Array, Array]:
    if M is None:
        return np.zeros((0, n)), np.zeros(0)
    M = matrix(M, name)
    return M, vector(rhs, name, M.shape[0])


def _inside(value: Any, inside: Any) -> float:
    return float(value) if inside else np.inf


def _simplex(y: Array) -> bool:
    return bool(np.all(y >= 0.0) and np.isclose(y.sum(), 1.0))


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
        lambda y: _inside(np.sum(xlogy(y, y) - y), np.all(y >= 0.0)),
    ),
    "negative logarithm": ConjugatePair(  # -sum log x
        lambda x: -cvxpy().sum(cvxpy().log(x)),
        lambda y: _inside(-np.sum(1.0 + np.log(np.abs(y))), np.all(y < 0.0)),
    ),
    "log-sum-exp": ConjugatePair(
        lambda x: cvxpy().log_sum_exp(x),
        lambda y: _inside(np.sum(xlogy(y, y)), _simplex(y)),
    ),
    "sum of absolute values": ConjugatePair(
        lambda x: cvxpy().norm1(x),
        lambda y: _inside(0.0, np.all(np.abs(y) <= 1.0)),
    ),
}
