"""Duals of linear programs: standard form, inequalities, and a box.

Sakulwongtana, Remark 12 (where x'x in the Lagrangian should be -lambda'x), Remark 17, Definition
1.5.10; duals are maximised, not minimised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.theory.duality._primal_dual import PrimalDual, both, where
from mercer.theory.duality._solve import linear_minimum, matrix, vector


def standard_lp(c: Any, A: Any, b: Any) -> PrimalDual:
    """min c'x with Ax = b, x >= 0; max -b'nu with A'nu + c >= 0.

    Parameters
    ----------
    c, A, b : array_like of shape (n,), (m, n) and (m,)

    Examples
    --------
    Buy one unit of x1 + x2 at prices 2 and 3:

    >>> from mercer.theory import duality
    >>> found = duality.standard_lp([2.0, 3.0], [[1.0, 1.0]], [1.0])
    >>> found.primal, found.dual, found.x, found.multipliers[0]
    (2.0, 2.0, array([1., 0.]), array([-2.]))
    """
    c, A, b = _data(c, A, b)

    def g(nu: Array) -> float:
        return where(-b @ nu, (-(A.T @ nu + c), c))

    x, value = linear_minimum(c, A_eq=A, b_eq=b, bounds=(0, None))
    nu, _ = linear_minimum(b, A_ub=-A.T, b_ub=c)
    return both(value, x, g, nu)


def inequality_lp(c: Any, A: Any, b: Any) -> PrimalDual:
    """min c'x with Ax <= b; max -b'lambda with A'lambda + c = 0, lambda >= 0.

    Parameters
    ----------
    c, A, b : array_like of shape (n,), (m, n) and (m,)

    Examples
    --------
    The largest x1 + x2 with x1 <= 1 and x2 <= 3; the multipliers are the prices of the bounds:

    >>> from mercer.theory import duality
    >>> found = duality.inequality_lp([-1.0, -1.0], [[1.0, 0.0], [0.0, 1.0]], [1.0, 3.0])
    >>> found.primal, found.dual, found.multipliers[0]
    (-4.0, -4.0, array([1., 1.]))
    """
    c, A, b = _data(c, A, b)

    def g(lam: Array) -> float:
        return where(-b @ lam, (np.abs(A.T @ lam + c), c), (-lam, lam))

    x, value = linear_minimum(c, A_ub=A, b_ub=b)
    lam, _ = linear_minimum(b, A_eq=A.T, b_eq=-c, bounds=(0, None))
    return both(value, x, g, lam)


def box_lp(c: Any, A: Any, b: Any) -> PrimalDual:
    """min c'x with Ax = b, -1 <= x <= 1; max -b'nu - |A'nu + c|_1.

    The box is part of the domain of f0, so the dual has no constraints.

    Parameters
    ----------
    c, A, b : array_like of shape (n,), (m, n) and (m,)

    Examples
    --------
    >>> from mercer.theory import duality
    >>> found = duality.box_lp([1.0, 2.0], [[1.0, 1.0]], [0.0])
    >>> found.primal, found.dual, found.x
    (-1.0, -1.0, array([ 1., -1.]))
    """
    c, A, b = _data(c, A, b)

    def g(nu: Array) -> float:
        return float(-b @ nu - np.abs(A.T @ nu + c).sum())

    x, value = linear_minimum(c, A_eq=A, b_eq=b, bounds=(-1, 1))
    # |v|_1 is the smallest 1't with -t <= v <= t
    eye, ones = np.eye(len(c)), np.ones(len(c))
    limits = np.block([[A.T, -eye], [-A.T, -eye]])
    nu_t, _ = linear_minimum(np.append(b, ones), A_ub=limits, b_ub=np.append(-c, c))
    return both(value, x, g, nu_t[: len(b)])


def _data(c: Any, A: Any, b: Any) -> tuple[Array, Array, Array]:
    A = matrix(A, "A")
    return vector(c, "c", A.shape[1]), A, vector(b, "b", A.shape[0])
