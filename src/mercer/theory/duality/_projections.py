"""Projections on convex sets, and optimality as a fixed point of a projected gradient step.

Sakulwongtana, Proposition 1.4.2 and Definitions 1.4.8 to 1.4.10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array, non_negative, real
from mercer.exceptions import InputError
from mercer.theory._checks import array_function, in_range
from mercer.theory.duality._solve import matrix_and_vector, vector


def project_ball(x: Any, centre: Any, radius: float) -> Array:
    """c + (x - c) min(1, r / |x - c|): the nearest point of the ball of centre c and radius r.

    Parameters
    ----------
    x : array_like of shape (d,)
        The point to project.
    centre : array_like of shape (d,)
        c.
    radius : float
        r >= 0.

    Examples
    --------
    >>> from mercer.theory import duality
    >>> duality.project_ball([3.0, 4.0], [0.0, 0.0], 1.0)
    array([0.6, 0.8])
    """
    x = vector(x, "x")
    centre = vector(centre, "centre", len(x))
    distance = float(np.linalg.norm(x - centre))
    radius = non_negative(radius, "radius")
    return np.asarray(x if distance <= radius else centre + (x - centre) * (radius / distance))


@in_range
def project_halfspace(x: Any, a: Any, b: float) -> Array:
    """x - max(0, a'x - b) a / |a|^2: the nearest point of {y : a'y <= b}.

    Parameters
    ----------
    x : array_like of shape (d,)
        The point to project.
    a : array_like of shape (d,)
        The normal, not zero.
    b : float
        The bound.

    Examples
    --------
    >>> from mercer.theory import duality
    >>> duality.project_halfspace([2.0, 2.0], [1.0, 1.0], 2.0)
    array([1., 1.])
    """
    x = vector(x, "x")
    a = vector(a, "a", len(x))
    size = np.abs(a).max(initial=0.0)
    if size == 0.0:
        raise InputError("a must not be zero")
    a, excess = a / size, float(a @ x) - real(b, "b")  # the square of a small a may be zero
    return np.asarray(x - max(0.0, excess) / size * (a / (a @ a)))


def project_affine(x: Any, A: Any, b: Any) -> Array:
    """x - A^+ (Ax - b): the nearest point of {y : Ay = b}.

    Parameters
    ----------
    x : array_like of shape (d,)
        The point to project.
    A, b : array_like of shape (m, d), (m,)
        The equations.

    Examples
    --------
    >>> from mercer.theory import duality
    >>> duality.project_affine([0.0, 0.0], [[1.0, 1.0]], [2.0]).round(9)
    array([1., 1.])
    """
    A, b = matrix_and_vector(A, b)
    x = vector(x, "x", A.shape[1])
    return np.asarray(x - np.linalg.pinv(A) @ (A @ x - b))


def optimality_residual(
    x: Any, gradient: Any, project: Callable[[Array], Array] = lambda z: z
) -> float:
    """|x - P(x - gradient)|: zero if and only if x minimises a convex f over the set of P.

    That is the first-order condition gradient'(y - x) >= 0 for all y of the set. On all of R^d: the
    gradient is zero. On Ay = b: the gradient is in the range of A'. On y >= 0: each entry of the
    gradient is >= 0, and 0 where x > 0.

    Parameters
    ----------
    x : array_like of shape (d,)
        A point of the set.
    gradient : array_like of shape (d,)
        The gradient of f at x.
    project : callable
        P, from a point to the nearest point of the set. The default is the whole space, P(z) = z.

    Examples
    --------
    (x1 - 1)^2 + (x2 + 1)^2 on x >= 0 is smallest at (1, 0), where the gradient is (0, 2):

    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> duality.optimality_residual([1.0, 0.0], [0.0, 2.0], lambda z: np.maximum(z, 0.0))
    0.0
    """
    x = vector(x, "x")
    step = x - vector(gradient, "gradient", len(x))
    return float(np.linalg.norm(x - array_function(project, "project")(step)))
