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

# A violation below this share of the largest term may be rounding inside f. Some 1e4 units in the
# last place: a false refutation is worse than a miss.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ConvexityCheck:
    """Whether an inequality holds at the points that were tried.

    A violation disproves the property; finding none among these points proves nothing.

    Attributes
    ----------
    holds : bool
        Whether `margin` >= 0, up to rounding of the largest term.
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
    f, gradient = _proper(f), array_function(gradient, "gradient")
    pairs = permutations(as_dense_points(X), 2)
    return _check((f(y), -f(x), -np.dot(gradient(x), y - x), (x, y)) for x, y in pairs)


def second_order_convexity(hessian: Function, X: Any) -> ConvexityCheck:
    """The Hessian is positive semidefinite at every row; the margin is its smallest eigenvalue.

    Parameters
    ----------
    hessian : callable
        From a point of shape (d,) to a matrix of shape (d, d).
    X : array_like of shape (n, d)
        Points of the domain.

    Examples
    --------
    x1 x2 is not convex; the smallest eigenvalue of its Hessian is -1:

    >>> from mercer.theory import duality
    >>> duality.second_order_convexity(lambda x: [[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0]]).margin
    -1.0
    """
    hessian = array_function(hessian, "hessian", 2)
    return _check((hessian(x), (x,)) for x in as_dense_points(X))


def jensen(f: Function, X: Any) -> ConvexityCheck:
    """f(theta x + (1 - theta) y) <= theta f(x) + (1 - theta) f(y), theta = 1/4, 1/2, 3/4.

    All pairs of rows are tried.

    Parameters
    ----------
    f : callable
        From a point of shape (d,) to a number, or to infinity outside the domain.
    X : array_like of shape (n, d)
        Points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> X = np.random.default_rng(0).normal(size=(10, 2))
    >>> [duality.jensen(f, X).holds for f in (np.linalg.norm, lambda x: -np.linalg.norm(x))]
    [True, False]
    """
    f = _proper(f)
    return _check((t * f(x), (1 - t) * f(y), -f(z), (x, y)) for x, y, z, t in _segments(X))


def quasiconvexity(f: Function, X: Any) -> ConvexityCheck:
    """f(theta x + (1 - theta) y) <= max(f(x), f(y)), theta = 1/4, 1/2, 3/4: convex sublevel sets.

    All pairs of rows are tried.

    Parameters
    ----------
    f : callable
        From a point of shape (d,) to a number, or to infinity outside the domain.
    X : array_like of shape (n, d)
        Points.

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
    f = _proper(f)
    return _check((max(f(x), f(y)), -f(z), (x, y)) for x, y, z, _ in _segments(X))


def log_concavity(f: Function, gradient: Function, hessian: Function, X: Any) -> ConvexityCheck:
    """f(x) Hessian(x) <= gradient(x) gradient(x)' in the PSD order, at every row: log f is concave.

    The margin is that of both sides over f(x)^2, whose difference is minus the Hessian of log f.

    Parameters
    ----------
    f, gradient, hessian : callable
        From a point of shape (d,) to a number > 0, a vector, and a matrix of shape (d, d).
    X : array_like of shape (n, d)
        Points of the domain.

    Examples
    --------
    The normal density is log-concave:

    >>> import numpy as np
    >>> from mercer.theory import duality
    >>> X = np.linspace(-3, 3, 13)[:, None]
    >>> f = lambda x: np.exp(-x @ x / 2)
    >>> duality.log_concavity(f, lambda x: -x * f(x), lambda x: [[(x @ x - 1) * f(x)]], X).holds
    True
    """
    f, gradient = _proper(f), array_function(gradient, "gradient")
    hessian, X = array_function(hessian, "hessian", 2), as_dense_points(X)
    if not all(0.0 < f(x) < np.inf for x in X):
        raise InputError("f must be > 0 and finite at every row of X")
    slopes = ((np.divide(gradient(x), f(x)), x) for x in X)
    return _check((np.outer(s, s), -np.divide(hessian(x), f(x)), (x,)) for s, x in slopes)


def _proper(f: Function) -> Function:
    """f, whose values are checked: numbers, or +infinity outside its domain."""
    f = real_function(f, "f")

    def checked(x: Array) -> float:
        value = f(x)
        if value == -np.inf:
            raise InputError(f"f must be a number or +infinity, but is -infinity at {x}")
        return value

    return checked


def _segments(X: Any) -> Iterable[tuple[Array, Array, Array, float]]:
    """All pairs of rows x and y, with theta x + (1 - theta) y and theta."""
    for x, y in combinations(as_dense_points(X), 2):
        for theta in (0.25, 0.5, 0.75):
            yield x, y, theta * x + (1.0 - theta) * y, theta


def _check(cases: Iterable[tuple[Any, ...]]) -> ConvexityCheck:
    """Each case has terms, numbers or matrices, whose sum must be >= 0, and a witness.

    f may be +infinity, so a term of +infinity satisfies its case, and one of -infinity does not.
    """
    margin, largest, where = np.inf, 0.0, None
    with np.errstate(over="ignore", invalid="ignore"):
        for *terms, witness in cases:
            total = np.sum(terms, axis=0)
            if np.ndim(total) and not np.isfinite(total).all():
                raise InputError(f"derivatives must be finite, but are not at {witness[0]}")
            if np.ndim(total):
                total = np.linalg.eigvalsh(total)[0]
            elif np.inf in terms:
                total = np.inf
            if np.isfinite(total):
                largest = max(largest, float(np.max(np.abs(terms))))
            if total < margin or where is None:
                margin, where = float(total), witness
    if where is None:
        raise InputError("X must have at least two rows")
    return ConvexityCheck(bool(margin >= -_ROUNDING * largest), margin, where)
