"""Problems whose dual function has a closed form: a value, a point, multipliers and g.

Sakulwongtana, Remarks 11 to 14, 16 to 19 and 22, Definitions 1.5.3, 1.5.9, 1.5.10 and 1.5.12, and
Proposition 1.5.3, from which most of them follow. Duals are maximised, and the Lagrangian of
Remark 12 has -lambda'x for x'x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._array import Array, as_numbers, instance
from mercer.exceptions import InputError
from mercer.theory.duality._conjugates import ConjugatePair, inside
from mercer.theory.duality._solve import (
    attained,
    cvxpy,
    matrices,
    matrix_and_vector,
    symmetric,
    vector,
)

_LARGEST_EXPONENT = 100.0  # cvxpy rounds q to a fraction with a denominator of at most 1,024


@dataclass(frozen=True, eq=False)
class PrimalDual:
    """A solved problem and its dual.

    The multipliers come from the solver, and `dual` is g of them, in closed form. A feasible x and
    `gap == 0` prove that both are optimal; without strong duality `gap >= 0`, up to rounding.

    Attributes
    ----------
    primal, dual : float
        p*, the smallest value of f0, and d*, the largest value of g.
    x, multipliers : ndarray, tuple of ndarray
        Where they are attained.
    g : callable
        The dual function in closed form: `g(*multipliers)`. It is -inf outside its domain, which
        is checked to a relative 1e-6.
    """

    primal: float
    dual: float
    x: Array
    multipliers: tuple[Array, ...]
    g: Callable[..., float]

    @property
    def gap(self) -> float:
        """p* - d*."""
        return self.primal - self.dual


def both(primal: Any, x: Any, g: Callable[..., float], *multipliers: Any) -> PrimalDual:
    """The two sides of a solved problem."""
    found = tuple(np.asarray(m) for m in multipliers)
    return PrimalDual(float(primal), float(g(*found)), np.asarray(x), found, g)


def conjugate_form(
    pair: ConjugatePair, *, A: Any = None, b: Any = None, C: Any = None, d: Any = None
) -> PrimalDual:
    """min f(x) with Ax <= b, Cx = d; max -f*(-A'lambda - C'nu) - b'lambda - d'nu, lambda >= 0.

    Where f* is known, so is the dual.

    Parameters
    ----------
    pair : ConjugatePair
        f and f*, such as `CONJUGATES["negative entropy"]`.
    A, b : array_like of shape (m, n), (m,), optional
        The inequalities. Without them there is no lambda.
    C, d : array_like of shape (p, n), (p,), optional
        The equalities. Without them there is no nu. One kind of constraint is needed.

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
    inequality, equality = A is not None, C is not None
    sides = [matrix_and_vector(A, b)] if inequality else []
    sides += [matrix_and_vector(C, d, "Cd")] if equality else []
    if not sides or sides[0][0].shape[1] != sides[-1][0].shape[1]:
        raise InputError("A or C must be given, with as many columns as x has entries")

    def g(*multipliers: Array) -> float:
        if inequality and not inside((-multipliers[0], multipliers[0])):  # lambda >= 0
            return -np.inf
        pairs = list(zip(sides, multipliers, strict=True))
        slope = np.sum([M.T @ m for (M, _), m in pairs], axis=0)
        return -pair.conjugate(-slope) - sum(float(v @ m) for (_, v), m in pairs)

    x = cvxpy().Variable(sides[0][0].shape[1])
    constraints = [M @ x == v for M, v in sides]
    if inequality:
        constraints[0] = sides[0][0] @ x <= sides[0][1]
    value = attained(pair.f(x), constraints)
    found = both(value, x.value, g, *(c.dual_value for c in constraints))
    if found.dual == -np.inf:  # a bounded problem has multipliers with a finite dual
        raise InputError(
            "the problem is unbounded below, or clarabel does not solve it: its multipliers are "
            "outside of the domain of f*; add bounds on x, or rescale the problem"
        )
    return found


def least_norm(A: Any, b: Any) -> PrimalDual:
    """min x'x with Ax = b; max -nu'AA'nu / 4 - b'nu.

    Parameters
    ----------
    A, b : array_like of shape (m, n), (m,)
        The equalities.

    Examples
    --------
    >>> from mercer.theory import duality
    >>> found = duality.least_norm([[1.0, 1.0]], [2.0])
    >>> round(found.primal, 6), round(found.dual, 6), found.multipliers[0].round(6)
    (2.0, 2.0, array([-2.]))
    """
    A, b = matrix_and_vector(A, b)
    pair = ConjugatePair(cvxpy().sum_squares, lambda y: float(y @ y) / 4.0)
    return conjugate_form(pair, C=A, d=b)


def standard_lp(c: Any, A: Any, b: Any) -> PrimalDual:
    """min c'x with Ax = b, x >= 0; max -b'nu with A'nu + c >= 0.

    Parameters
    ----------
    c : array_like of shape (n,)
        Costs.
    A, b : array_like of shape (m, n), (m,)
        The equalities.

    Examples
    --------
    Buy one unit of x1 + x2 at prices 2 and 3:

    >>> from mercer.theory import duality
    >>> found = duality.standard_lp([2.0, 3.0], [[1.0, 1.0]], [1.0])
    >>> round(found.primal, 6), round(found.dual, 6), found.multipliers[0].round(6)
    (2.0, 2.0, array([-2.]))
    """
    A, b = matrix_and_vector(A, b)
    c = vector(c, "c", A.shape[1])
    pair = ConjugatePair(
        lambda x: c @ x + cvxpy().transforms.indicator([x >= 0]),
        lambda y: 0.0 if inside((y - c, c)) else np.inf,
    )
    return conjugate_form(pair, C=A, d=b)


def inequality_lp(c: Any, A: Any, b: Any) -> PrimalDual:
    """min c'x with Ax <= b; max -b'lambda with A'lambda + c = 0, lambda >= 0.

    Parameters
    ----------
    c : array_like of shape (n,)
        Costs.
    A, b : array_like of shape (m, n), (m,)
        The inequalities.

    Examples
    --------
    The largest x1 + x2 with x1 <= 1 and x2 <= 3; the multipliers are the prices of the bounds:

    >>> from mercer.theory import duality
    >>> found = duality.inequality_lp([-1.0, -1.0], [[1.0, 0.0], [0.0, 1.0]], [1.0, 3.0])
    >>> round(found.primal, 6), round(found.dual, 6), found.multipliers[0].round(6)
    (-4.0, -4.0, array([1., 1.]))
    """
    A, b = matrix_and_vector(A, b)
    c = vector(c, "c", A.shape[1])
    pair = ConjugatePair(lambda x: c @ x, lambda y: 0.0 if inside((abs(y - c), c)) else np.inf)
    return conjugate_form(pair, A=A, b=b)


def box_lp(c: Any, A: Any, b: Any) -> PrimalDual:
    """min c'x with Ax = b, -1 <= x <= 1; max -b'nu - |A'nu + c|_1.

    The box is part of the domain of f0, so the dual has no constraints.

    Parameters
    ----------
    c : array_like of shape (n,)
        Costs.
    A, b : array_like of shape (m, n), (m,)
        The equalities.

    Examples
    --------
    >>> from mercer.theory import duality
    >>> found = duality.box_lp([1.0, 2.0], [[1.0, 1.0]], [0.0])
    >>> round(found.primal, 6), round(found.dual, 6), found.x.round(6)
    (-1.0, -1.0, array([ 1., -1.]))
    """
    cp, (A, b) = cvxpy(), matrix_and_vector(A, b)
    c = vector(c, "c", A.shape[1])
    pair = ConjugatePair(
        lambda x: c @ x + cp.transforms.indicator([cp.abs(x) <= 1]),
        lambda y: float(np.abs(y - c).sum()),
    )
    return conjugate_form(pair, C=A, d=b)


def norm_minimisation(A: Any, b: Any, p: float = 2.0) -> PrimalDual:
    """min |x|_p with Ax = b; max b'nu with |A'nu|_q <= 1, where 1/p + 1/q = 1.

    |.|_q is the dual norm, |v|_q = max u'v over |u|_p <= 1.

    Parameters
    ----------
    A, b : array_like of shape (m, n), (m,)
        The equalities.
    p : float, default=2
        From 1 to 100, or `np.inf`.

    Examples
    --------
    The point of x1 + 2 x2 = 2 with the smallest |x1| + |x2| is (0, 1):

    >>> from mercer.theory import duality
    >>> found = duality.norm_minimisation([[1.0, 2.0]], [2.0], p=1)
    >>> round(found.primal, 6), round(found.dual, 6), found.multipliers[0].round(6)
    (1.0, 1.0, array([0.5]))
    """
    A, b = matrix_and_vector(A, b)
    return conjugate_form(_norm(p), C=-A, d=-b)  # so that g has b'nu, without a minus sign


def norm_approximation(A: Any, b: Any, p: float = 2.0) -> PrimalDual:
    """min |Ax - b|_p; max b'nu with A'nu = 0 and |nu|_q <= 1, where 1/p + 1/q = 1.

    Without constraints the dual function would be the constant p*: so the problem is written as
    min |y|_p with y = Ax - b.

    Parameters
    ----------
    A, b : array_like of shape (m, n), (m,)
        The system to solve approximately.
    p : float, default=2
        From 1 to 100, or `np.inf`.

    Examples
    --------
    The constant nearest to 0, 1 and 5 in absolute deviations is their median:

    >>> from mercer.theory import duality
    >>> found = duality.norm_approximation([[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0], p=1)
    >>> round(found.primal, 6), round(found.dual, 6), found.x.round(6)
    (5.0, 5.0, array([1.]))
    """
    A, b = matrix_and_vector(A, b)
    n = A.shape[1]
    found = conjugate_form(_norm(p, n, A), C=np.hstack([-A, np.eye(len(b))]), d=-b)
    return replace(found, x=found.x[:n])


def _norm(p: float, first: int = 0, scale: Any = 0.0) -> ConjugatePair:
    """|x|_p of all entries but the first ones; f*(y) = 0 if these are 0 and |y|_q <= 1, or inf."""
    given = as_numbers(p, "p")
    if given.ndim or not (1.0 <= given <= _LARGEST_EXPONENT or given == np.inf):
        raise InputError(f"p must be >= 1, at most {_LARGEST_EXPONENT:g} or inf, got {p!r}")
    q = 1.0 if p == np.inf else np.inf if p == 1 else p / (p - 1.0)

    def star(y: Array) -> float:
        free, length = np.abs(y[:first]), np.linalg.norm(y[first:], q)
        return 0.0 if inside((free, scale), (length - 1.0, 0.0)) else np.inf

    return ConjugatePair(lambda x: cvxpy().norm(x[first:], p), star)


def quadratic_program(P: Any, A: Any, b: Any) -> PrimalDual:
    """min x'Px with Ax <= b; max -lambda'AP^-1A'lambda / 4 - b'lambda with lambda >= 0.

    Parameters
    ----------
    P : array_like of shape (n, n)
        Symmetric and positive definite.
    A, b : array_like of shape (m, n), (m,)
        The inequalities.

    Examples
    --------
    Minimise x^2 subject to -x <= -1:

    >>> from mercer.theory import duality
    >>> found = duality.quadratic_program([[1.0]], [[-1.0]], [-1.0])
    >>> round(found.primal, 6), round(found.dual, 6), found.multipliers[0].round(6)
    (1.0, 1.0, array([2.]))
    """
    P, (A, b) = symmetric(P, "P"), matrix_and_vector(A, b)
    w = np.linalg.eigvalsh(P)
    if not w[0] > 1e-14 * len(w) * w[-1]:  # beyond rounding
        raise InputError("P must be positive definite")
    if len(P) != A.shape[1]:
        raise InputError(f"P must have {A.shape[1]} rows, as A has columns, got {len(P)}")
    pair = ConjugatePair(
        lambda x: cvxpy().quad_form(x, P), lambda y: float(y @ np.linalg.solve(P, y)) / 4.0
    )
    return conjugate_form(pair, A=A, b=b)


def semidefinite_program(c: Any, F: Any, G: Any) -> PrimalDual:
    """min c'x with sum_i xi Fi <= G; max -tr(GZ) with tr(Fi Z) + ci = 0, Z >= 0, in the PSD order.

    Parameters
    ----------
    c : array_like of shape (n,)
        Costs.
    F : sequence of n arrays of shape (k, k)
        Symmetric matrices, one for each entry of c.
    G : array_like of shape (k, k)
        Symmetric.

    Examples
    --------
    The largest eigenvalue of M is the smallest x with M <= x I:

    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> M = np.array([[0.0, 2.0], [2.0, 3.0]])
    >>> found = duality.semidefinite_program([1.0], [-np.eye(2)], -M)
    >>> round(found.primal, 6), round(found.dual, 6)
    (4.0, 4.0)
    """
    G, listed = symmetric(G, "G"), matrices(F, "F", symmetric)
    if not listed or {Fi.shape for Fi in listed} != {G.shape}:
        raise InputError(f"F must hold at least one matrix, all of the shape {G.shape} of G")
    F, c = np.array(listed), vector(c, "c", len(listed))
    x = cvxpy().Variable(len(c))

    def g(Z: Array) -> float:
        equalities = np.abs(np.sum(F * Z, axis=(1, 2)) + c)
        feasible = inside((equalities, c), (-np.linalg.eigvalsh(Z)[0], Z))
        return -np.sum(G * Z) if feasible else -np.inf

    slack = G - sum(x[i] * Fi for i, Fi in enumerate(F)) >> 0
    value = attained(c @ x, [slack])
    return both(value, x.value, g, slack.dual_value)
