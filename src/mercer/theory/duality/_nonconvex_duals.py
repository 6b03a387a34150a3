"""Problems that are not convex, with their closed-form duals.

Sources are those of `_closed_duals`; Remark 19 needs lambda >= 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from mercer._array import Array
from mercer.exceptions import InputError
from mercer.theory.duality._closed_duals import PrimalDual, both
from mercer.theory.duality._conjugates import inside
from mercer.theory.duality._solve import attained, cvxpy, symmetric, vector

_LARGEST_PARTITION = 16  # the primal tries all of 2^15 partitions


def two_way_partition(W: Any) -> PrimalDual:
    """min x'Wx with xi^2 = 1; max -1'nu with W + diag(nu) positive semidefinite.

    All partitions are tried. The problem is not convex, and the dual is only a lower bound.

    Parameters
    ----------
    W : array_like of shape (n, n)
        Symmetric, n <= 16. W_ij is the cost of having i and j on the same side.

    Examples
    --------
    Three that repel each other cannot all be apart:

    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> found = duality.two_way_partition(np.ones((3, 3)) - np.eye(3))
    >>> found.primal, round(found.dual, 6)
    (-2.0, -3.0)
    """
    cp, W = cvxpy(), symmetric(W, "W")
    n = len(W)
    if n > _LARGEST_PARTITION:
        raise InputError(f"W must have at most {_LARGEST_PARTITION} rows, got {n}")
    bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1  # the last is always 0
    signs = 1.0 - 2.0 * bits
    costs = np.sum((signs @ W) * signs, axis=1)
    best = int(np.argmin(costs))
    nu = cp.Variable(n)
    attained(cp.sum(nu), [W + cp.diag(nu) >> 0])

    def g(nu: Array) -> float:
        smallest = np.linalg.eigvalsh(W + np.diag(nu))[0]
        return -nu.sum() if inside((-smallest, W)) else -np.inf

    return both(costs[best], signs[best], g, nu.value)


def trust_region(A: Any, b: Any) -> PrimalDual:
    """min x'Ax + 2b'x with x'x <= 1; max -b'(A + lambda I)^+ b - lambda with A + lambda I >= 0.

    Also lambda >= 0, and b lies in the range of A + lambda I. Duality is strong although the
    problem need not be convex. No solver is needed: |x(lambda)| = 1 is one equation in lambda.

    Parameters
    ----------
    A : array_like of shape (n, n)
        Symmetric. Its eigenvalues may be negative.
    b : array_like of shape (n,)
        Half the slope at 0.

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
        feasible = inside((-(w[0] + lam), w), (outside, b), (-lam, lam))
        return c @ solution(w + lam) - lam if feasible else -np.inf

    lam = max(0.0, -w[0])
    low = w + lam
    x = solution(low)
    if np.linalg.norm(x) > 1.0 or np.any(np.abs(c[low <= rounding]) > 4.0 * rounding):
        # |x| falls through 1; solved for the step above `lam`, which may be tiny
        ends = 2.0 * rounding, 2.0 * np.linalg.norm(b)
        step = brentq(
            lambda step: np.linalg.norm(solution(low + step)) - 1.0,
            *ends,
            xtol=1e-300,
            maxiter=1000,
        )
        lam, x = lam + step, solution(low + step)
    elif lam > 0.0:  # the hard case: go to the sphere along a null vector of A + lambda I
        x[0] = np.sqrt(1.0 - np.sum(x[1:] ** 2))
    x = V @ x
    return both(x @ A @ x + 2.0 * b @ x, x, g, lam)
