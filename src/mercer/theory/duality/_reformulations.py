"""Problems that become linear, cone, semidefinite or geometric programs.

Sakulwongtana, Remarks 7 and 9, Propositions 1.4.9 to 1.4.14 (with lower left blocks transposed),
Definitions 1.4.13, 1.4.21 to 1.4.24 and 1.4.31 (with weights > 0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

from mercer._array import Array, check_same_columns, real
from mercer.exceptions import InputError
from mercer.theory.duality._solve import (
    Optimum,
    attained,
    cvxpy,
    expression,
    matrices,
    matrix,
    matrix_and_vector,
    symmetric,
    vector,
)


def chebyshev_centre(A: Any, b: Any) -> Optimum:
    """Centre and radius of the largest ball in Ax <= b: max r with ai'x + r |ai| <= bi.

    Parameters
    ----------
    A, b : array_like of shape (m, n), (m,)
        The polyhedron.

    Examples
    --------
    The triangle x1 >= 0, x2 >= 0, 3 x1 + 4 x2 <= 12:

    >>> from mercer.theory import duality
    >>> triangle = [[-1.0, 0.0], [0.0, -1.0], [3.0, 4.0]]
    >>> centre, radius = duality.chebyshev_centre(triangle, [0.0, 0.0, 12.0])
    >>> centre.round(6), round(radius, 6)
    (array([1., 1.]), 1.0)
    """
    A, b = matrix_and_vector(A, b)
    x, r = cvxpy().Variable(A.shape[1]), cvxpy().Variable(nonneg=True)
    value = attained(-r, [A @ x + r * np.linalg.norm(A, axis=1) <= b])
    return Optimum(x.value, -value)


def robust_lp(c: Any, A: Any, b: Any, P: Sequence[Any]) -> Optimum:
    """min c'x with a'x <= bi for all a in {ai + Pi u : |u| <= 1}: ai'x + |Pi'x| <= bi.

    Parameters
    ----------
    c : array_like of shape (n,)
        Costs.
    A, b : array_like of shape (m, n), (m,)
        The nominal ai and the bounds bi.
    P : sequence of m arrays of shape (n, k_i)
        Pi; the half-axes of the i-th ellipsoid are its singular values.

    Examples
    --------
    Maximise x with a x <= 1 for all a in [0.5, 1.5]:

    >>> from mercer.theory import duality
    >>> found = duality.robust_lp([-1.0], [[1.0]], [1.0], [[[0.5]]])
    >>> round(-found.value, 6)
    0.666667
    """
    cp, (A, b) = cvxpy(), matrix_and_vector(A, b)
    c, P = vector(c, "c", A.shape[1]), matrices(P, "P")
    if [Pi.shape[0] for Pi in P] != [len(c)] * len(b):
        raise InputError(f"P must hold {len(b)} matrices with {len(c)} rows")
    x = cp.Variable(len(c))
    rows = zip(A, b, P, strict=True)
    value = attained(c @ x, [a @ x + cp.norm(Pi.T @ x) <= bi for a, bi, Pi in rows])
    return Optimum(x.value, value)


def chance_lp(c: Any, A: Any, b: Any, covariances: Sequence[Any], eta: float) -> Optimum:
    """min c'x with P(a'x <= bi) >= eta, a ~ N(ai, Si): ai'x + Phi^-1(eta) |Si^(1/2) x| <= bi.

    Phi is the standard normal distribution function.

    Parameters
    ----------
    c : array_like of shape (n,)
        Costs.
    A, b : array_like of shape (m, n), (m,)
        The means ai and the bounds bi.
    covariances : sequence of m arrays of shape (n, n)
        Si, positive semidefinite.
    eta : float
        The probability, 1/2 <= eta < 1.

    Examples
    --------
    Maximise x with P(a x <= 1) >= 0.975 for a ~ N(1, 0.5^2):

    >>> from mercer.theory import duality
    >>> found = duality.chance_lp([-1.0], [[1.0]], [1.0], [[[0.25]]], 0.975)
    >>> round(-found.value, 4)  # 1 / (1 + 1.96 * 0.5)
    0.5051
    """
    eta = real(eta, "eta")
    if not 0.5 <= eta < 1.0:
        raise InputError(f"eta must be at least 0.5 and below 1, got {eta!r}")
    roots = [_root(S) for S in matrices(covariances, "covariances", symmetric)]
    return robust_lp(c, A, b, [norm.ppf(eta) * R for R in roots])


def _root(S: Array) -> Array:
    """R with R R' = S, so that |R'x| = |S^(1/2) x|."""
    w, V = np.linalg.eigh(S)
    if w[0] < -1e-12 * w[-1]:  # beyond rounding
        raise InputError("covariances must be positive semidefinite")
    return np.asarray(V * np.sqrt(np.maximum(w, 0.0)))


def linear_fractional(
    c: Any, d: float, e: Any, f: float, G: Any, h: Any, A: Any = None, b: Any = None
) -> Optimum:
    """min (c'x + d) / (e'x + f) with Gx <= h, Ax = b and e'x + f > 0: a linear program.

    With y = x / (e'x + f) and z = 1 / (e'x + f): min c'y + dz with Gy <= hz, Ay = bz, e'y + fz = 1,
    z >= 0.

    Parameters
    ----------
    c, e : array_like of shape (n,)
        Slopes of the numerator and the denominator.
    d, f : float
        Their values at x = 0.
    G, h : array_like of shape (m, n), (m,)
        The inequalities.
    A, b : array_like of shape (p, n), (p,), optional
        The equalities.

    Examples
    --------
    The smallest (x + 2) / (x + 1) for 0 <= x <= 3:

    >>> from mercer.theory import duality
    >>> found = duality.linear_fractional([1.0], 2.0, [1.0], 1.0, [[1.0], [-1.0]], [3.0, 0.0])
    >>> found.x.round(5), round(found.value, 6)
    (array([3.]), 1.25)
    """
    G, h = matrix_and_vector(G, h, "Gh")
    c, e = vector(c, "c", G.shape[1]), vector(e, "e", G.shape[1])
    y, z = cvxpy().Variable(len(c)), cvxpy().Variable(nonneg=True)
    d, f = real(d, "d"), real(f, "f")
    constraints = [G @ y <= h * z, e @ y + f * z == 1]
    if A is not None:
        A, b = matrix_and_vector(A, b)
        check_same_columns(G, A, ("G", "A"))
        constraints.append(A @ y == b * z)
    value = attained(c @ y + d * z, constraints)
    if z.value <= 1e-7 * np.abs(y.value).max(initial=0.0):  # x = y / z is infinite for the solver
        raise InputError(f"the infimum {value:g} is approached as |x| grows, but not attained")
    return Optimum(y.value / z.value, value)


def geometric_program(
    objective: tuple[Any, Any],
    constraints: Sequence[tuple[Any, Any]] = (),
    equalities: Sequence[tuple[Any, Any]] = (),
) -> Optimum:
    """min f0(x) with fi(x) <= 1, hj(x) = 1, x > 0; f posynomials sum_k ck prod_j xj^ajk.

    With y = log x, log f is log sum_k exp(ak'y + log ck), which is convex; monomials hj are affine.

    Parameters
    ----------
    objective : pair of array_like
        (coefficients ck > 0 of shape (K,), exponents ajk of shape (K, n)) of f0.
    constraints : sequence of pairs
        The same for each fi.
    equalities : sequence of pairs
        The same for each hj, with K = 1.

    Examples
    --------
    The smallest x1 + x2 with x1 x2 >= 4, which is 4 / (x1 x2) <= 1:

    >>> from mercer.theory import duality
    >>> sum_of_both = ([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> found = duality.geometric_program(sum_of_both, [([4.0], [[-1.0, -1.0]])])
    >>> round(found.value, 5), found.x.round(3)
    (4.0, array([2., 2.]))
    """
    cp = cvxpy()
    f0, *f = [_exponents(p) for p in (objective, *constraints)]
    h = [_exponents(p) for p in equalities]
    if {a.shape[1] for a, _ in f + h} - {f0[0].shape[1]}:
        raise InputError("exponents must have one column for each variable")
    if any(len(a) != 1 for a, _ in h):
        raise InputError("equalities must be monomials: one coefficient each")
    y = cp.Variable(f0[0].shape[1])
    limits = [cp.log_sum_exp(a @ y + log_c) <= 0 for a, log_c in f]
    limits += [a @ y + log_c == 0 for a, log_c in h]
    value = attained(cp.log_sum_exp(f0[0] @ y + f0[1]), limits)
    with np.errstate(over="ignore"):
        x, value = np.exp(y.value), float(np.exp(value))
    if not np.isfinite([*x, value]).all():
        raise InputError("the infimum is approached as x grows, but not attained")
    return Optimum(x, value)


def _exponents(posynomial: tuple[Any, Any]) -> tuple[Array, Array]:
    """The exponents and log c."""
    if not isinstance(posynomial, tuple | list) or len(posynomial) != 2:
        raise InputError("a posynomial must be a pair: coefficients and exponents")
    coefficients, exponents = posynomial
    exponents, coefficients = matrix_and_vector(exponents, coefficients)
    if not np.all(coefficients > 0.0):
        raise InputError("coefficients of a posynomial must be > 0")
    return exponents, np.log(coefficients)


def perron_frobenius(A: Any) -> Optimum:
    """Largest eigenvalue of a positive matrix: the smallest t with Av <= tv for some v > 0.

    A geometric program: min t with sum_j Aij vj / (t vi) <= 1.

    Parameters
    ----------
    A : array_like of shape (n, n)
        Entries > 0.

    Returns
    -------
    Optimum
        `x` is the eigenvector v with sum 1, `value` the eigenvalue t.

    Examples
    --------
    >>> from mercer.theory import duality
    >>> found = duality.perron_frobenius([[1.0, 2.0], [3.0, 2.0]])
    >>> round(found.value, 5), found.x.round(4)
    (4.0, array([0.4, 0.6]))
    """
    A = matrix(A, "A")
    n = len(A)
    if A.shape != (n, n) or not np.all(A > 0.0):
        raise InputError("A must be a square matrix with entries > 0")
    eye, t = np.eye(n), np.full((n, 1), -1.0)  # variables: t, v1, ..., vn
    rows = [(A[i], np.hstack([t, eye - eye[i]])) for i in range(n)]
    scale = ([1.0], [np.append(0.0, eye[0])])  # v1 = 1
    found = geometric_program(([1.0], [np.append(1.0, np.zeros(n))]), rows, [scale])
    return Optimum(found.x[1:] / found.x[1:].sum(), found.value)


def norm_lmi(A: Any, t: Any) -> Any:
    """[[tI, A], [A', tI]], which is positive semidefinite if and only if |A|_2 <= t.

    With one column it is the second-order cone, |a| <= t.

    Parameters
    ----------
    A : array_like of shape (m, n), or cvxpy expression
        The matrix.
    t : float or cvxpy expression
        The bound.

    Returns
    -------
    cvxpy expression of shape (m + n, m + n)

    Examples
    --------
    The smallest eigenvalue is t - |A|_2:

    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> M = duality.norm_lmi([[3.0], [4.0]], 4.0).value
    >>> round(float(np.linalg.eigvalsh(M).min()), 6)
    -1.0
    """
    cp = cvxpy()
    A = A if isinstance(A, cp.Expression) else matrix(A, "A")
    t = expression(t, "t")
    return cp.bmat([[t * np.eye(A.shape[0]), A], [A.T, t * np.eye(A.shape[1])]])


def minimise_eigenvalue(A: Sequence[Any]) -> Optimum:
    """min over x of the largest eigenvalue of A0 + sum_i xi Ai, symmetric: min t with A(x) <= tI.

    Parameters
    ----------
    A : sequence of arrays of shape (k, k)
        A0, A1, ...: symmetric, at least two.

    Examples
    --------
    diag(1 + x, 3 - x):

    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> found = duality.minimise_eigenvalue([np.diag([1.0, 3.0]), np.diag([1.0, -1.0])])
    >>> round(found.value, 6), found.x.round(6)
    (2.0, array([1.]))
    """
    x, S = _affine_matrix(A, symmetric)
    t = cvxpy().Variable()
    value = attained(t, [t * np.eye(S.shape[0]) - S >> 0])
    return Optimum(x.value, value)


def minimise_spectral_norm(A: Sequence[Any]) -> Optimum:
    """min over x of the largest singular value of A0 + sum_i xi Ai: min t with `norm_lmi` >= 0.

    Parameters
    ----------
    A : sequence of arrays of shape (k, l)
        A0, A1, ...: at least two.

    Examples
    --------
    The column (1, 3) + x (1, 1) is shortest at x = -2:

    >>> from mercer.theory import duality
    >>> found = duality.minimise_spectral_norm([[[1.0], [3.0]], [[1.0], [1.0]]])
    >>> round(found.value, 6), found.x.round(6)
    (1.414214, array([-2.]))
    """
    x, S = _affine_matrix(A, matrix)
    t = cvxpy().Variable()
    value = attained(t, [norm_lmi(S, t) >> 0])
    return Optimum(x.value, value)


def _affine_matrix(A: Any, made: Callable[[Any, str], Array]) -> tuple[Any, Any]:
    """x, and A0 + sum_i xi Ai."""
    found = matrices(A, "A", made)
    if len(found) < 2 or len({M.shape for M in found}) > 1:
        raise InputError("A must hold A0, A1, ...: at least two matrices of the same shape")
    x = cvxpy().Variable(len(found) - 1)
    return x, found[0] + sum(x[i] * M for i, M in enumerate(found[1:]))


def scalarise(objectives: Sequence[Any], weights: Any, constraints: Sequence[Any] = ()) -> Array:
    """Return a Pareto optimal point: the values Fi(x) where x minimises sum_i weights_i Fi(x).

    No feasible point is at least as good in every Fi and better in one.

    Parameters
    ----------
    objectives : list of cvxpy expressions
        The Fi, convex. Their variables hold x afterwards.
    weights : array_like of shape (number of objectives,)
        > 0: weights of zero may give a point that is dominated.
    constraints : sequence of cvxpy constraints
        None by default.

    Examples
    --------
    x^2 and (x - 2)^2 with equal weights: x = 1.

    >>> import cvxpy as cp
    >>> from mercer.theory import duality
    >>> x = cp.Variable()
    >>> duality.scalarise([x**2, (x - 2) ** 2], [1.0, 1.0]).round(6)
    array([1., 1.])
    """
    if not isinstance(objectives, list | tuple) or not objectives:
        raise InputError("objectives must be a list of expressions, at least one")
    objectives = [expression(F, "objectives") for F in objectives]
    weights = vector(weights, "weights", len(objectives))
    if not np.all(weights > 0.0):
        raise InputError("weights must be > 0: a weight of zero may give a point that is dominated")
    attained(sum(w * F for w, F in zip(weights, objectives, strict=True)), constraints)
    return np.array([float(np.sum(F.value)) for F in objectives])
