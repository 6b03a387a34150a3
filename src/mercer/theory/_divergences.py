"""Distances between distributions: f-divergences, integral probability metrics, limits of tests.

Distributions are probabilities of the same atoms. Densities are included: take probabilities of the
cells of a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import rel_entr

from mercer._array import Array, as_dense_points, as_numbers, as_vector, positive_int, real
from mercer.exceptions import InputError
from mercer.kernels._parameters import callable_function


def f_divergence(f: Callable[[Array], Array], p: Any, q: Any, *, slope: float = np.inf) -> float:
    """D_f(P, Q) = sum_i q_i f(p_i / q_i), for a convex f with f(1) = 0.

    It is >= 0, and convex in (P, Q).

    Parameters
    ----------
    f : callable
        Applied to arrays of ratios >= 0.
    p, q : array_like of shape (m,)
        Probabilities.
    slope : float
        The limit of f(t) / t for large t: the cost of mass of P where Q has none. The default is
        infinity.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> mc.theory.f_divergence(lambda t: np.abs(t - 1) / 2, [0.5, 0.5], [0.75, 0.25])
    0.25
    """
    p, q = _probabilities(p, q)
    on = q > 0.0
    outside = float(p[~on].sum())
    callable_function(f, "f")
    with np.errstate(over="ignore"):  # the divergence may be infinite
        values = as_numbers(f(p[on] / q[on]), "f(p / q)")
        if values.shape not in ((), q[on].shape) or np.isnan(values).any():
            raise InputError("f must give a number for each ratio p / q; at 0, take its limit")
        inside = float(np.sum(q[on] * values))
    slope = slope if slope == np.inf else real(slope, "slope")
    return inside + slope * outside if outside > 0.0 else inside


def total_variation(p: Any, q: Any) -> float:
    """TV(P, Q) = max_A |P(A) - Q(A)| = (1/2) sum_i |p_i - q_i|.

    Both an f-divergence, f(t) = |t - 1| / 2, and an integral probability metric, over indicators.

    Parameters
    ----------
    p, q : array_like of shape (m,)
        Probabilities of the same m atoms.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.total_variation([0.5, 0.5], [0.75, 0.25])
    0.25
    """
    p, q = _probabilities(p, q)
    return float(0.5 * np.abs(p - q).sum())


def kl_divergence(p: Any, q: Any) -> float:
    """KL(P, Q) = sum_i p_i log(p_i / q_i), Kullback and Leibler's; f(t) = t log t.

    Infinite if P has an atom that Q does not have. Pinsker: TV^2 <= KL / 2.

    Parameters
    ----------
    p, q : array_like of shape (m,)
        Probabilities of the same m atoms.

    Examples
    --------
    >>> import mercer as mc
    >>> round(mc.theory.kl_divergence([0.5, 0.5], [0.75, 0.25]), 4)
    0.1438
    """
    p, q = _probabilities(p, q)
    return float(np.sum(rel_entr(p, q)))  # p / q may overflow


def hellinger(p: Any, q: Any) -> float:
    """H(P, Q) = sqrt((1/2) sum_i (sqrt p_i - sqrt q_i)^2), between 0 and 1.

    H^2 is an f-divergence, f(t) = (sqrt t - 1)^2 / 2. H^2 <= TV <= H sqrt(2 - H^2).

    Parameters
    ----------
    p, q : array_like of shape (m,)
        Probabilities of the same m atoms.

    Examples
    --------
    >>> import mercer as mc
    >>> round(mc.theory.hellinger([0.5, 0.5], [0.75, 0.25]), 4)
    0.1846
    """
    p, q = _probabilities(p, q)
    return float(np.sqrt(0.5 * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2)))


def chi_square_divergence(p: Any, q: Any) -> float:
    """chi^2(P, Q) = sum_i (p_i - q_i)^2 / q_i, Pearson's; f(t) = (t - 1)^2.

    Infinite if P has an atom that Q does not have. KL <= log(1 + chi^2).

    Parameters
    ----------
    p, q : array_like of shape (m,)
        Probabilities of the same m atoms.

    Examples
    --------
    >>> import mercer as mc
    >>> round(mc.theory.chi_square_divergence([0.5, 0.5], [0.75, 0.25]), 4)
    0.3333
    """
    return f_divergence(lambda t: (t - 1.0) ** 2, p, q)


def integral_probability_metric(functions: Any, p: Any, q: Any) -> float:
    """max_f |E_P f - E_Q f| over finitely many functions.

    Over all indicators it is `total_variation`; over the unit ball of a kernel's space it is the
    maximum mean discrepancy, the root of `mmd`; over functions with slopes of at most 1 it
    is the Wasserstein distance (`scipy.stats.wasserstein_distance`).

    Parameters
    ----------
    functions : array_like of shape (m, number of functions)
        Their values at the atoms.
    p, q : array_like of shape (m,)
        Probabilities.

    Examples
    --------
    The difference of the means, and of the second moments, of two distributions on 0, 1, 2:

    >>> import mercer as mc
    >>> values = [[0.0, 0.0], [1.0, 1.0], [2.0, 4.0]]
    >>> mc.theory.integral_probability_metric(values, [0.5, 0.0, 0.5], [0.0, 1.0, 0.0])
    1.0
    """
    p, q = _probabilities(p, q)
    values = as_dense_points(functions, "functions")
    if len(values) != len(p):
        raise InputError(f"functions must have one row for each of the {len(p)} atoms")
    return float(np.abs(values.T @ (p - q)).max())


def largest_power(p: Any, q: Any, n: int, level: float = 0.05) -> float:
    """The power that no test of P against Q can exceed, with n independent rows.

        power <= level + TV(P^n, Q^n),    TV(P^n, Q^n)^2 <= 1 - (1 - H^2)^(2 n)

    Parameters
    ----------
    p, q : array_like of shape (m,)
        Probabilities of the same m atoms: the two distributions P and Q.
    n : int
        >= 1, rows of the sample.
    level : float, default=0.05
        The level of the test, in [0, 1].

    Examples
    --------
    >>> import mercer as mc
    >>> [round(mc.theory.largest_power([0.5, 0.5], [0.6, 0.4], n), 2) for n in (1, 10, 100)]
    [0.15, 0.36, 0.85]
    """
    n = positive_int(n, "n")
    if not 0.0 <= real(level, "level") <= 1.0:
        raise InputError(f"level must lie in [0, 1], got {level!r}")
    distance = np.sqrt(-np.expm1(2 * n * np.log1p(-(min(hellinger(p, q), 1.0 - 1e-16) ** 2))))
    return float(min(1.0, level + min(distance, n * total_variation(p, q))))


def _probabilities(p: Any, q: Any) -> tuple[Array, Array]:
    p = as_vector(p, "p").astype(np.float64)
    q = as_vector(q, "q", len(p)).astype(np.float64)
    for name, v in (("p", p), ("q", q)):
        if (v < 0.0).any() or abs(v.sum() - 1.0) > 1e-9 * len(v):
            raise InputError(f"{name} must be probabilities: >= 0 with sum 1, got {v.sum()!r}")
    return p, q
