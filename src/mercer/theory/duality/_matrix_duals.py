"""Duals of quadratic and semidefinite programs, of partitioning, and of the trust region problem.

Sakulwongtana, Remarks 14, 16, 18 and 19, Definitions 1.5.3 and 1.5.12; duals are maximised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from mercer._array import Array
from mercer.exceptions import InputError
from mercer.theory.duality._primal_dual import PrimalDual, both, where
from mercer.theory.duality._solve import (
    attained,
    cvxpy,
    matrices,
    matrix,
    symmetric,
    vector,
)

_LARGEST_PARTITION = 16  # the primal tries all of 2^15 partitions


def quadratic_program(P: Any, A: Any, b: Any) -> PrimalDual:
    """min x'Px with Ax <= b; max -lambda'AP^-1A'lambda / 4 - b'lambda with lambda >= 0.

    Parameters
    ----------
    P : array_like of shape (n, n)
        Symmetric positive definite.
    A, b : array_like of shape (m, n) and (m,)

    Examples
    --------
    Minimise x^2 subject to -x <= -1:

    >>> from mercer.theory import duality
    >>> found = duality.quadratic_program([[1.0]], [[-1.0]], [-1.0])
    >>> round(found.primal, 6), round(found.dual, 6), found.multipliers[0].round(6)
    (1.0, 1.0, array([2.]))
    """
    cp = cvxpy()
    P, A = symmetric(P, "P"), matrix(A, "A")
    b = vector(b, "b", A.shape[0])
    w = np.linalg.eigvalsh(P)
    if not w[0] > 1e-14 * len(w) * w[-1]:  # beyond rounding, so that a Cholesky factor exists
        raise InputError("P must be positive definite")
    if len(P) != A.shape[1]:
        raise InputError(f"P must have {A.shape[1]} rows, as A has columns, got {len(P)}")
    R = np.linalg.cholesky(P)
    B = np.linalg.solve(R, A.T)  # B'B = A P^-1 A'

    def g(lam: Array) -> float:
        return where(-np.sum((B @ lam) ** 2) / 4.0 - b @ lam, (-lam, lam))

    x, lam = cp.Variable(A.shape[1]), cp.Variable(len(b))
    value = attained(cp.sum_squares(R.T @ x), [A @ x <= b])
    attained(cp.sum_squares(B @ lam) / 4 + b @ lam, [lam >= 0])
    return both(value, x.value, g, lam.value)


def two_way_partition(W: Any) -> PrimalDual:
    """min x'Wx with xi^2 = 1; max -1'nu with W + diag(nu) positive semidefinite.

    W_ij is the cost of having i and j on the same side. The problem is not convex, and the dual is
    only a lower bound: here duality is weak.

    Parameters
    ----------
    W : array_like of shape (n, n)
        Symmetric, n at most 16: all partitions are tried.

    Examples
    --------
    Three that repel each other cannot all be apart:

    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> found = duality.two_way_partition(np.ones((3, 3)) - np.eye(3))
    >>> found.primal, round(found.dual, 6)
    (-2.0, -3.0)
    """
    cp = cvxpy()
    W = symmetric(W, "W")
    n = len(W)
    if n > _LARGEST_PARTITION:
        raise InputError(f"W must have at most {_LARGEST_PARTITION} rows, got {n}")

    def g(nu: Array) -> float:
        return where(-nu.sum(), (-np.linalg.eigvalsh(W + np.diag(nu))[0], W))

    bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1  # the last is always 0
    signs = 1.0 - 2.0 * bits
    costs = np.sum((signs @ W) * signs, axis=1)
    best = int(np.argmin(costs))
    nu = cp.Variable(n)
    attained(cp.sum(nu), [W + cp.diag(nu) >> 0])
    return both(costs[best], signs[best], g, nu.value)


def trust_region(A: Any, b: Any) -> PrimalDual:
    """min x'Ax + 2b'x with x'x <= 1; max -b'(A + lambda I)^+ b - lambda with A + lambda I >= 0.

    Also lambda >= 0, and b lies in the range of A + lambda I. Duality is strong although the
    problem is not convex: A may have negative eigenvalues. No solver is needed; |x(lambda)| = 1 is
    one equation in lambda.

    Parameters
    ----------
    A : array_like of shape (n, n)
        Symmetric.
    b : array_like of shape (n,)

    Examples
    --------
    -x^2 + 2x on [-1, 1] is smallest at -1:

    >>> from mercer.theory import duality
    >>> found = duality.trust_region([[-1.0]], [1.0])
    >>> round(found.primal, 6), round(found.dual, 6), found.x.round(6)
    (-3.0, -3.0, array([-1.]))
    """
    A = symmetric(A, "A")
    b = vector(b, "b", len(A))
    w, V = np.linalg.eigh(A)
    c = V.T @ b
    rounding = 1e-12 * (np.abs(w).max() + np.abs(b).max())  # below, an eigenvalue or entry is 0

    def solution(shifted: Array) -> Array:
        """-(A + lambda I)^+ b in the basis of the eigenvectors, from w + lambda."""
        positive = shifted > rounding
        return np.where(positive, -c / np.where(positive, shifted, 1.0), 0.0)

    def g(lam: Array) -> float:
        outside = np.abs(c[w + lam <= rounding])  # the part of b that is not in the range
        return where(c @ solution(w + lam) - lam, (-(w[0] + lam), w), (outside, b), (-lam, lam))

    lam = max(0.0, -w[0])
    low = w + lam
    x = solution(low)
    if np.linalg.norm(x) > 1.0 or np.any(np.abs(c[low <= rounding]) > 4.0 * rounding):
        # |x| falls through 1; solved for the step above `lam`, which may be tiny
        ends = 2.0 * rounding, 2.0 * np.linalg.norm(b)
        excess = lambda step: np.linalg.norm(solution(low + step)) - 1.0  # noqa: E731
        step = brentq(excess, *ends, xtol=1e-300, maxiter=1000)
        lam, x = lam + step, solution(low + step)
    elif lam > 0.0:  # the hard case: go to the sphere along a null vector of A + lambda I
        x[0] = np.sqrt(1.0 - np.sum(x[1:] ** 2))
    x = V @ x
    return both(x @ A @ x + 2.0 * b @ x, x, g, lam)


def semidefinite_program(c: Any, F: Any, G: Any) -> PrimalDual:
    """min c'x with sum_i xi Fi <= G; max -tr(GZ) with tr(Fi Z) + ci = 0, Z >= 0, in the PSD order.

    Parameters
    ----------
    c : array_like of shape (n,)
    F : sequence of n array_like of shape (k, k)
        Symmetric.
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
    cp = cvxpy()
    G, F = symmetric(G, "G"), matrices(F, "F", symmetric)
    c = vector(c, "c", len(F))
    if not F or {Fi.shape for Fi in F} != {G.shape}:
        raise InputError(f"F must hold at least one matrix, all of the shape {G.shape} of G")

    def g(Z: Array) -> float:
        equalities = [abs(np.sum(Fi * Z) + ci) for Fi, ci in zip(F, c, strict=True)]
        return where(-np.sum(G * Z), (equalities, c), (-np.linalg.eigvalsh(Z)[0], Z))

    x, Z = cp.Variable(len(c)), cp.Variable(G.shape, symmetric=True)
    value = attained(c @ x, [G - sum(x[i] * Fi for i, Fi in enumerate(F)) >> 0])
    traces = [cp.trace(Fi @ Z) + ci == 0 for Fi, ci in zip(F, c, strict=True)]
    attained(cp.trace(G @ Z), [Z >> 0, *traces])
    return both(value, x.value, g, Z.value)
