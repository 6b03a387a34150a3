"""Checks of convexity on points: gradients, Hessians, Jensen, log-concavity, quasi-convexity.

Sakulwongtana, Lemmas 1.3.1 and 1.3.2, Definition 1.3.7, Propositions 1.3.10 and 1.3.12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np

from mercer._array import Array, as_dense_points
from mercer.exceptions import InputError
from mercer.theory._checks import array_function, real_function

_ROUNDING = 1e-10  # of the terms that are compared: f may be wrong in its last digits
_THETA = (0.25, 0.5, 0.75)


@dataclass(frozen=True, eq=False)
class ConvexityCheck:
    """Whether an inequality holds at the points that were tried.

    A violation refutes; that there is none among these points is no proof.

    Attributes
    ----------
    holds : bool
        Whether `margin` >= 0, up to rounding.
    margin : float
        The smallest value of the larger side minus the smaller side.
    witness : tuple of ndarray
        The point or the two points where the margin is smallest.
    """

    holds: bool
    margin: float
    witness: tuple[Array, ...]


Function = Callable[[Array], Any]


def first_order_convexity(f: Function, gradient: Function, X: Any) -> ConvexityCheck:
    """f(y) >= f(x) + gradient(x)'(y - x) for all pairs of rows: f is above its tangents.

    Parameters
    ----------
    f, gradient : callable
        From a point of shape (d,) to a number, and to a vector.
    X : array_like of shape (n, d)
        Points of the domain.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> X = np.linspace(-2, 2, 9)[:, None]
    >>> duality.first_order_convexity(lambda x: x @ x, lambda x: 2 * x, X).holds
    True
    >>> duality.first_order_convexity(lambda x: np.sin(x[0]), np.cos, X).holds
    False
    """
    f, gradient = real_function(f, "f"), array_function(gradient, "gradient")
    pairs = permutations(as_dense_points(X), 2)
    return _check((f(y), f(x) + gradient(x) @ (y - x), (x, y)) for x, y in pairs)


def second_order_convexity(hessian: Function, X: Any) -> ConvexityCheck:
    """The Hessian is positive semidefinite at every row; the margin is its smallest eigenvalue.

    Parameters
    ----------
    hessian : callable
        From a point of shape (d,) to a matrix.
    X : array_like of shape (n, d)
        Points of the domain, which is convex.

    Examples
    --------
    x1 x2 is not convex; the smallest eigenvalue of its Hessian is -1:

    >>> from mercer.theory import duality
    >>> duality.second_order_convexity(lambda x: [[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0]]).margin
    -1.0
    """
    hessian = array_function(hessian, "hessian", 2)
    return _check((_eigenvalues(hessian(x)), 0.0, (x,)) for x in as_dense_points(X))


def jensen(f: Function, X: Any) -> ConvexityCheck:
    """f(theta x + (1 - theta) y) <= theta f(x) + (1 - theta) f(y), theta = 1/4, 1/2, 3/4.

    Parameters
    ----------
    f : callable
        From a point of shape (d,) to a number.
    X : array_like of shape (n, d)
        Points of the domain; all pairs are tried.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> X = np.random.default_rng(0).normal(size=(10, 2))
    >>> [duality.jensen(f, X).holds for f in (np.linalg.norm, lambda x: -np.linalg.norm(x))]
    [True, False]
    """
    f = real_function(f, "f")
    return _check((t * f(x) + (1 - t) * f(y), f(z), (x, y)) for x, y, z, t in _segments(X))


def quasiconvexity(f: Function, X: Any) -> ConvexityCheck:
    """f(theta x + (1 - theta) y) <= max(f(x), f(y)), theta = 1/4, 1/2, 3/4: convex sublevel sets.

    Parameters
    ----------
    f : callable
        From a point of shape (d,) to a number.
    X : array_like of shape (n, d)
        Points of the domain; all pairs are tried.

    Examples
    --------
    sqrt|x| is quasi-convex, but not convex:

    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> X = np.linspace(-2, 2, 9)[:, None]
    >>> f = lambda x: np.sqrt(abs(x[0]))
    >>> duality.quasiconvexity(f, X).holds, duality.jensen(f, X).holds
    (True, False)
    """
    f = real_function(f, "f")
    return _check((max(f(x), f(y)), f(z), (x, y)) for x, y, z, _ in _segments(X))


def log_concavity(f: Function, gradient: Function, hessian: Function, X: Any) -> ConvexityCheck:
    """f(x) Hessian(x) <= gradient(x) gradient(x)' in the PSD order, at every row: log f is concave.

    Parameters
    ----------
    f, gradient, hessian : callable
        From a point of shape (d,) to a number > 0, a vector and a matrix.
    X : array_like of shape (n, d)
        Points of the domain, which is convex.

    Examples
    --------
    The normal density is log-concave, the Cauchy density is not:

    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> X = np.linspace(-3, 3, 13)[:, None]
    >>> f = lambda x: np.exp(-x @ x / 2)
    >>> duality.log_concavity(f, lambda x: -x * f(x), lambda x: np.diag(x**2 - 1) * f(x), X).holds
    True
    """
    f, gradient = real_function(f, "f"), array_function(gradient, "gradient")
    hessian, X = array_function(hessian, "hessian", 2), as_dense_points(X)
    if not all(0.0 < f(x) < np.inf for x in X):
        raise InputError("f must be > 0 and finite at every row of X")
    differences = ((np.outer(gradient(x), gradient(x)) - f(x) * hessian(x), x) for x in X)
    return _check((_eigenvalues(difference), 0.0, (x,)) for difference, x in differences)


def _eigenvalues(A: Array) -> Array:
    return np.linalg.eigvalsh(A) if np.isfinite(A).all() else np.full(len(A), np.nan)


def _segments(X: Any) -> Iterable[tuple[Array, Array, Array, float]]:
    """All pairs of rows x and y, with theta x + (1 - theta) y and theta."""
    for x, y in combinations(as_dense_points(X), 2):
        for theta in _THETA:
            yield x, y, theta * x + (1.0 - theta) * y, theta


def _check(sides: Iterable[tuple[Any, Any, tuple[Array, ...]]]) -> ConvexityCheck:
    """Compare (upper, lower, witness): upper >= lower, up to rounding of the larger of both."""
    holds, smallest, witness = True, np.inf, None
    with np.errstate(over="ignore", invalid="ignore"):
        for upper, lower, points in sides:
            gaps = np.where(np.equal(upper, np.inf), np.inf, np.subtract(upper, lower))
            margin = float(np.min(gaps))
            if np.isnan(margin):
                raise InputError("the two sides overflow; take points where f is smaller")
            scale = float(max(np.max(np.abs(upper)), np.max(np.abs(lower))))
            rounding = _ROUNDING * scale if np.isfinite(scale) else 0.0
            holds = holds and margin >= -rounding
            if margin < smallest or witness is None:
                smallest, witness = margin, points
    if witness is None:
        raise InputError("X must have at least two rows")
    return ConvexityCheck(holds, smallest, witness)
