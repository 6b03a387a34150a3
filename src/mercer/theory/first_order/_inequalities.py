"""Inequalities of smooth and of convex functions, checked at points; subdifferentials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import (
    Array,
    as_dense_points,
    as_numbers,
    as_vector,
    non_negative,
    positive,
    real,
)
from mercer.exceptions import InputError
from mercer.theory._checks import array_function, in_range, real_function


@dataclass(frozen=True)
class SmoothnessCheck:
    """By how much a smooth convex function satisfies its inequalities; negative if it does not.

    Attributes
    ----------
    descent : float
        Smallest f(x) - f(x+) - (1 / step - M / 2) |x+ - x|^2, where x+ = x - step grad f(x).
    cocoercivity : float
        Smallest <grad f(x) - grad f(y), x - y> - |grad f(x) - grad f(y)|^2 / M.
    contraction : float
        Smallest |x - y| - |x+ - y+|: gradient steps do not move points apart.
    gradient : float
        Smallest f(x) - min f - |grad f(x)|^2 / (2 M); NaN if min f is not given.
    """

    descent: float
    cocoercivity: float
    contraction: float
    gradient: float


@in_range
def check_smoothness(
    f: Callable[[Array], float],
    gradient: Callable[[Array], Array],
    X: Any,
    smoothness: float,
    *,
    step_size: float | None = None,
    smallest: float = np.nan,
) -> SmoothnessCheck:
    """Check the inequalities of a convex f with M-Lipschitz gradient at all pairs of points.

    Parameters
    ----------
    f, gradient : callable
        Functions of an array of shape (d,).
    X : array_like of shape (n, d)
    smoothness : float
        M > 0.
    step_size : float, optional
        > 0. Steps beyond 2 / M may move points apart. The default is 1 / M.
    smallest : float, optional
        min f.

    Examples
    --------
    The gradient of x^2 has the Lipschitz constant 2, not 1.

    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.linspace(-1.0, 1.0, 5)[:, None]
    >>> check = mc.theory.first_order.check_smoothness
    >>> check(lambda x: float(x @ x), lambda x: 2 * x, X, 2.0).cocoercivity >= 0
    True
    >>> check(lambda x: float(x @ x), lambda x: 2 * x, X, 1.0).cocoercivity < 0
    True
    """
    X, M = as_dense_points(X).astype(np.float64), positive(smoothness, "smoothness")
    step = 1.0 / M if step_size is None else positive(step_size, "step_size")
    if len(X) < 2:
        raise InputError("X must have at least two rows")
    least = as_numbers(smallest, "smallest")
    if least.ndim:
        raise InputError(f"smallest must be a number, got shape {least.shape}")
    value, slope = real_function(f, "f"), array_function(gradient, "gradient")
    G = np.array([slope(x) for x in X])
    values = np.array([value(x) for x in X])
    moved = X - step * G
    falls = values - np.array([value(x) for x in moved])
    squares = np.sum(G**2, axis=1)
    i, j = np.triu_indices(len(X), 1)
    dx, dg = X[i] - X[j], G[i] - G[j]
    apart = np.linalg.norm(moved[i] - moved[j], axis=1)
    return SmoothnessCheck(
        descent=float(np.min(falls - (1.0 / step - M / 2.0) * step**2 * squares)),
        cocoercivity=float(np.min(np.sum(dx * dg, axis=1) - np.sum(dg**2, axis=1) / M)),
        contraction=float(np.min(np.linalg.norm(dx, axis=1) - apart)),
        gradient=float(np.min(values - least - squares / (2.0 * M))),
    )


def subdifferential(f: Callable[[float], float], x: float) -> tuple[float, float]:
    """The subgradients of a convex f on the line at x: the interval [f'_-(x), f'_+(x)].

    From difference quotients over a short distance h, accurate to about eight digits where f has
    no second kink within h.

    Parameters
    ----------
    f : callable
        From a number to a number.
    x : float
        The point.

    Returns
    -------
    low, high : float
        f'_-(x) and f'_+(x).

    Examples
    --------
    >>> import mercer as mc
    >>> low, high = mc.theory.first_order.subdifferential(abs, 0.0)
    >>> round(low, 6), round(high, 6)
    (-1.0, 1.0)
    """
    x, value = real(x, "x"), real_function(f, "f")
    h = float(np.sqrt(np.finfo(float).eps)) * max(1.0, abs(x))  # balances bending and rounding
    middle = value(x)
    if not np.isfinite(middle):
        raise InputError(f"f must be finite at x = {x:g}; rescale it")
    return (middle - value(x - h)) / h, (value(x + h) - middle) / h


def l1_subdifferential(x: Any) -> tuple[Array, Array]:
    """The subgradients of |x_1| + ... + |x_d|: all u with low <= u <= high.

    A sum of functions of single coordinates has the product of their subdifferentials.

    Parameters
    ----------
    x : array_like of shape (d,)
        The point.

    Returns
    -------
    low, high : ndarray of shape (d,)
        Both sgn x_i where x_i is not 0; -1 and 1 where it is.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.first_order.l1_subdifferential([2.0, 0.0])
    (array([ 1., -1.]), array([1., 1.]))
    """
    s = np.sign(as_vector(x, "x").astype(np.float64))
    return np.where(s == 0.0, -1.0, s), np.where(s == 0.0, 1.0, s)


@in_range
def subgradient_slack(f: Callable[[Array], float], x: Any, u: Any, Y: Any) -> float:
    """Smallest f(y) - f(x) - <u, y - x> over rows y of Y: negative if u is not a subgradient.

    Parameters
    ----------
    f : callable
        From a point of shape (d,) to a number.
    x, u : array_like of shape (d,)
        A point, and a candidate subgradient there.
    Y : array_like of shape (m, d)
        Points to try.

    Examples
    --------
    >>> import mercer as mc
    >>> points = [[-1.0], [0.5], [2.0]]
    >>> slack = mc.theory.first_order.subgradient_slack
    >>> slack(lambda x: abs(x[0]), [0.0], [0.5], points) >= 0
    True
    >>> slack(lambda x: abs(x[0]), [0.0], [1.5], points) >= 0
    False
    """
    x, Y = as_vector(x, "x"), as_dense_points(Y, "Y")
    u = as_vector(u, "u", len(x))
    if Y.shape[1] != len(x):
        raise InputError(f"Y must have {len(x)} columns, as x has entries, got {Y.shape[1]}")
    value = real_function(f, "f")
    return min(value(y) - float(u @ (y - x)) for y in Y) - value(x)


@in_range
def tikhonov_step(X: Any, y: Any, w: Any, penalty: float, step_size: float) -> Array:
    """One step of gradient descent on mean_i (<w, x_i> - y_i)^2 + penalty |w|^2.

        w+ = (1 - 2 step penalty) w - (2 step / n) X'(Xw - y)

    Parameters
    ----------
    X : array_like of shape (n, d)
        Rows x_i.
    y : array_like of shape (n,)
        Targets.
    w : array_like of shape (d,)
        The weights before the step.
    penalty : float
        >= 0.
    step_size : float
        > 0.

    Returns
    -------
    ndarray of shape (d,)
        w+.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.first_order.tikhonov_step([[1.0], [1.0]], [1.0, 3.0], [0.0], 0.5, 0.25)
    array([1.])
    """
    X = as_dense_points(X).astype(np.float64)
    y, w = as_vector(y, "y", len(X)), as_vector(w, "w", X.shape[1])
    step, shrink = positive(step_size, "step_size"), non_negative(penalty, "penalty")
    slope = X.T @ (X @ w - y) / len(X)
    return np.asarray((1.0 - 2.0 * step * shrink) * w - 2.0 * step * slope)
