"""Duals of norm problems: least squares norm, least norm, and approximation in a norm.

Sakulwongtana, Remarks 11, 13 and 22, Proposition 1.5.2 and Definition 1.5.9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, as_numbers
from mercer.exceptions import InputError
from mercer.theory.duality._primal_dual import PrimalDual, both, where
from mercer.theory.duality._solve import attained, cvxpy, matrix, vector

_LARGEST_EXPONENT = 100.0  # cvxpy rounds q to a fraction with a denominator of at most 1,024


def least_norm(A: Any, b: Any) -> PrimalDual:
    """min x'x with Ax = b; max -nu'AA'nu / 4 - b'nu.

    Parameters
    ----------
    A, b : array_like of shape (m, n) and (m,)

    Examples
    --------
    >>> from mercer.theory import duality
    >>> found = duality.least_norm([[1.0, 1.0]], [2.0])
    >>> round(found.primal, 9), round(found.dual, 9), found.multipliers[0].round(9)
    (2.0, 2.0, array([-2.]))
    """
    A = matrix(A, "A")
    b = vector(b, "b", A.shape[0])

    def g(nu: Array) -> float:
        return float(-(nu @ A @ A.T @ nu) / 4.0 - b @ nu)

    x = np.linalg.pinv(A) @ b
    if not np.allclose(A @ x, b):
        raise InputError("A x = b has no solution")
    return both(x @ x, x, g, -2.0 * np.linalg.pinv(A @ A.T) @ b)


def norm_minimisation(A: Any, b: Any, p: float = 2.0) -> PrimalDual:
    """min |x|_p with Ax = b; max b'nu with |A'nu|_q <= 1, where 1/p + 1/q = 1.

    |.|_q is the dual norm, |v|_q = max u'v over |u|_p <= 1. Here L = |x|_p - nu'(Ax - b).

    Parameters
    ----------
    A, b : array_like of shape (m, n) and (m,)
    p : float, default=2.0
        At least 1; `np.inf` for the largest entry.

    Examples
    --------
    The point of x1 + 2 x2 = 2 with the smallest |x1| + |x2| is (0, 1):

    >>> from mercer.theory import duality
    >>> found = duality.norm_minimisation([[1.0, 2.0]], [2.0], p=1)
    >>> round(found.primal, 6), round(found.dual, 6), found.multipliers[0].round(6)
    (1.0, 1.0, array([0.5]))
    """
    cp, q = cvxpy(), _dual_exponent(p)
    A = matrix(A, "A")
    b = vector(b, "b", A.shape[0])

    def g(nu: Array) -> float:
        return where(b @ nu, (np.linalg.norm(A.T @ nu, q) - 1.0, 0.0))

    x, nu = cp.Variable(A.shape[1]), cp.Variable(len(b))
    value = attained(cp.norm(x, p), [A @ x == b])
    attained(-b @ nu, [cp.norm(A.T @ nu, q) <= 1])
    return both(value, x.value, g, nu.value)


def norm_approximation(A: Any, b: Any, p: float = 2.0) -> PrimalDual:
    """min |Ax - b|_p; max b'nu with A'nu = 0 and |nu|_q <= 1, where 1/p + 1/q = 1.

    Without constraints the dual function would be the constant p*: so the problem is written as
    min |y|_p with y = Ax - b.

    Parameters
    ----------
    A, b : array_like of shape (m, n) and (m,)
    p : float, default=2.0
        At least 1; `np.inf` for the largest entry.

    Examples
    --------
    The constant nearest to 0, 1 and 5 in absolute deviations is their median:

    >>> from mercer.theory import duality
    >>> found = duality.norm_approximation([[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0], p=1)
    >>> round(found.primal, 6), round(found.dual, 6), found.x.round(6)
    (5.0, 5.0, array([1.]))
    """
    cp, q = cvxpy(), _dual_exponent(p)
    A = matrix(A, "A")
    b = vector(b, "b", A.shape[0])

    def g(nu: Array) -> float:
        return where(b @ nu, (np.abs(A.T @ nu), A), (np.linalg.norm(nu, q) - 1.0, 0.0))

    x, nu = cp.Variable(A.shape[1]), cp.Variable(len(b))
    value = attained(cp.norm(A @ x - b, p))
    attained(-b @ nu, [A.T @ nu == 0, cp.norm(nu, q) <= 1])
    return both(value, x.value, g, nu.value)


def _dual_exponent(p: float) -> float:
    """q with 1/p + 1/q = 1."""
    given = as_numbers(p, "p")
    if given.ndim or not (1.0 <= given <= _LARGEST_EXPONENT or given == np.inf):
        raise InputError(f"p must be >= 1, at most {_LARGEST_EXPONENT:g} or inf, got {p!r}")
    return 1.0 if p == np.inf else np.inf if p == 1 else p / (p - 1.0)
