"""Rates of first-order methods: what theory guarantees after t steps, and rules for steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, as_vector, non_negative, positive, positive_int, real
from mercer.exceptions import InputError
from mercer.theory._checks import in_range


def short_step(step_size: float, smoothness: float) -> tuple[float, float]:
    """The step and the smoothness L, with step < 2 / L: longer steps may diverge."""
    step, L = positive(step_size, "step_size"), positive(smoothness, "smoothness")
    if not step < 2.0 / L:
        raise InputError(f"step_size must be below 2 / smoothness = {2.0 / L:g}, got {step:g}")
    return step, L


def positive_steps(steps: Any) -> Array:
    """Step sizes > 0, at least one."""
    steps = as_vector(steps, "steps").astype(np.float64)
    if not len(steps) or not (steps > 0.0).all():
        raise InputError("steps must be > 0, and at least one")
    return np.asarray(steps)


@in_range
def smooth_rate(
    n_steps: int, step_size: float, smoothness: float, distance: float, excess: float = 0.0
) -> Array:
    """f(x_t) - min f <= [D^2 / (2 step) + (step L - 1)_+ / (2 - step L) (f(x_0) - min f)] / t.

    For gradient descent, projected or not, on a convex f whose gradient is L-Lipschitz, with
    D = |x_0 - x*| and steps below 2 / L. With steps of 1 / L it is L D^2 / (2 t). The worst f loses
    L D^2 / (4 t + 2), so this is too large by a factor of 2 + 1 / t.

    Parameters
    ----------
    n_steps : int
        >= 1.
    step_size, smoothness : float
        step and L, both > 0, with step < 2 / L.
    distance : float
        D >= 0, or an upper bound on it.
    excess : float, default=0
        f(x_0) - min f >= 0, or an upper bound on it. Needed for steps beyond 1 / L.

    Returns
    -------
    array of shape (n_steps + 1,)
        For t = 0, 1, ...; the first is infinite.

    References
    ----------
    Y. Drori and M. Teboulle, Performance of first-order methods for smooth convex minimization: a
    novel approach, Mathematical Programming 145, 2014.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.first_order.smooth_rate(4, step_size=0.5, smoothness=2.0, distance=1.0)
    array([       inf, 1.        , 0.5       , 0.33333333, 0.25      ])
    """
    step, L = short_step(step_size, smoothness)
    top = non_negative(distance, "distance") ** 2 / (2.0 * step)
    top += max(step * L - 1.0, 0.0) / (2.0 - step * L) * non_negative(excess, "excess")
    return np.concatenate([[np.inf], top / np.arange(1, positive_int(n_steps, "n_steps") + 1)])


@in_range
def strongly_convex_rate(
    n_steps: int, step_size: float, smoothness: float, strong_convexity: float, excess: float
) -> Array:
    """f(x_t) - min f <= (1 - step mu (2 - step L))^t (f(x_0) - min f).

    For steps below 2 / L. It needs only f(x) - min f <= |grad f(x)|^2 / (2 mu), which mu-strongly
    convex functions satisfy. Steps of 1 / L make it smallest, (1 - mu / L)^t. (Steps of
    2 / (mu + L) are the best for the distance |x_t - x*|.)

    Parameters
    ----------
    n_steps : int
        >= 1.
    step_size, smoothness : float
        step and L, both > 0, with step < 2 / L.
    strong_convexity : float
        mu, from 0 to L.
    excess : float
        f(x_0) - min f >= 0, or an upper bound on it.

    Returns
    -------
    ndarray of shape (n_steps + 1,)
        For t = 0, 1, ...

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.first_order.strongly_convex_rate(3, 0.5, 2.0, 1.0, excess=8.0)
    array([8., 4., 2., 1.])
    """
    step, L = short_step(step_size, smoothness)
    mu = non_negative(strong_convexity, "strong_convexity")
    if mu > L:
        raise InputError(f"strong_convexity must be at most smoothness, got {mu:g} and {L:g}")
    ratio = 1.0 - step * mu * (2.0 - step * L)
    return np.asarray(
        non_negative(excess, "excess") * ratio ** np.arange(positive_int(n_steps, "n_steps") + 1)
    )


@in_range
def subgradient_rate(steps: Any, lipschitz: float, distance: float) -> Array:
    """min_i f(x_i) - min f <= (D^2 + L^2 sum_i step_i^2) / (2 sum_i step_i), i = 0, ..., t.

    The same holds for f at the average of x_0, ..., x_t with the steps as weights. D = |x_0 - x*|,
    and L bounds the subgradients; for the stochastic method L^2 bounds E|u|^2, and the bound is on
    means. It goes to zero only if sum_i step_i diverges, and faster than sum_i step_i^2.

    Parameters
    ----------
    steps : array_like of shape (t,)
        Step sizes > 0.
    lipschitz : float
        L > 0.
    distance : float
        D >= 0, or an upper bound on it.

    Returns
    -------
    array of shape (t + 1,)
        For x_0 alone, x_0 and x_1, ...; the last one is that of t steps, whose last point has not
        been used for a step.

    Examples
    --------
    >>> import mercer as mc
    >>> fo = mc.theory.first_order
    >>> fo.subgradient_rate(fo.constant_steps(4, 1.0, 1.0), lipschitz=1.0, distance=1.0)
    array([1.25      , 0.75      , 0.58333333, 0.5       , 0.5       ])
    """
    steps = positive_steps(steps)
    L, D = positive(lipschitz, "lipschitz"), non_negative(distance, "distance")
    rate = (D**2 + L**2 * np.cumsum(steps**2)) / (2.0 * np.cumsum(steps))
    return np.append(rate, rate[-1])


@in_range
def constant_steps(n_steps: int, distance: float, lipschitz: float) -> Array:
    """D / (L sqrt(t)) for each of t steps: gives the smallest bound, L D / sqrt(t), if t is known.

    Parameters
    ----------
    n_steps : int
        t >= 1.
    distance : float
        D > 0.
    lipschitz : float
        L > 0, which bounds the subgradients.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.first_order.constant_steps(4, distance=1.0, lipschitz=2.0)
    array([0.25, 0.25, 0.25, 0.25])
    """
    n = positive_int(n_steps, "n_steps")
    step = positive(distance, "distance") / positive(lipschitz, "lipschitz") / n**0.5
    return np.full(n, positive(step, "distance / lipschitz"))


@in_range
def decreasing_steps(n_steps: int, scale: float, power: float = 0.5) -> Array:
    """scale / (i + 1)^power for i = 0, 1, ...

    With power = 1/2 the bound is of order log(t) / sqrt(t), and 1 / sqrt(t) for the average over
    the second half on a bounded set; with power = 1 it is of order 1 / log(t). Larger powers stop
    short: their sum is finite.

    Parameters
    ----------
    n_steps : int
        >= 1.
    scale : float
        > 0, the first step.
    power : float, default=0.5
        In [1/2, 1].

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.first_order.decreasing_steps(4, scale=1.0, power=1.0)
    array([1.        , 0.5       , 0.33333333, 0.25      ])
    """
    if not 0.5 <= real(power, "power") <= 1.0:
        raise InputError(f"power must lie in [1/2, 1], got {power!r}")
    i = np.arange(1, positive_int(n_steps, "n_steps") + 1)
    return np.asarray(positive(scale, "scale") / i**power)


@in_range
def tail_rate(steps: Any, lipschitz: float, diameter: float) -> float:
    """(R^2 + L^2 sum_i step_i^2) / (2 sum_i step_i) over the second half of the steps.

    The bound of `subgradient_rate` restarted half way, for a set of diameter R: it holds for
    f at `Run.tail_average`, and is of order 1 / sqrt(t) for `decreasing_steps(t, scale)`.

    Parameters
    ----------
    steps : array_like of shape (t,)
        Step sizes > 0.
    lipschitz : float
        L > 0, which bounds the subgradients.
    diameter : float
        R >= 0, of the set.

    Examples
    --------
    >>> import mercer as mc
    >>> fo = mc.theory.first_order
    >>> [round(fo.tail_rate(fo.decreasing_steps(t, 1.0), 1.0, 1.0), 3) for t in (100, 10_000)]
    [0.145, 0.014]
    """
    steps = positive_steps(steps)
    return float(subgradient_rate(steps[len(steps) // 2 :], lipschitz, diameter)[-1])


@in_range
def matching_steps(error: float, smoothness: float, distance: float) -> int:
    """The number of steps t = L D^2 / (2 error), rounded up, of gradient descent with steps 1 / L.

    After these the optimisation error is at most `error`. If `error` is the statistical error, more
    steps do not pay.

    Parameters
    ----------
    error : float
        > 0.
    smoothness : float
        L > 0, the Lipschitz constant of the gradient.
    distance : float
        D = |x_0 - x*| >= 0, or an upper bound on it.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.first_order.matching_steps(0.01, smoothness=2.0, distance=1.0)
    100
    """
    size = positive(smoothness, "smoothness") * non_negative(distance, "distance") ** 2
    return max(1, int(np.ceil(size / (2.0 * positive(error, "error")) * (1.0 - 1e-12))))


@in_range
def ridge_cost(n: int, d: int) -> dict[str, float]:
    """Multiplications of ridge regression on n rows in d dimensions, by three methods.

    "primal", n d^2 + d^3 / 3: the d x d system; "dual", n^2 d + n^3 / 3: the n x n system of a
    kernel; "step", 2 n d: one step of gradient descent, which is the cheapest as long as it takes
    fewer than about d / 2 steps.

    Parameters
    ----------
    n, d : int
        Rows and columns, >= 1.

    Returns
    -------
    dict
        With the keys "primal", "dual" and "step".

    Examples
    --------
    >>> import mercer as mc
    >>> costs = mc.theory.first_order.ridge_cost(n=10_000, d=100)
    >>> min(costs, key=costs.get), costs["primal"] < costs["dual"]
    ('step', True)
    """
    n, d = positive_int(n, "n"), positive_int(d, "d")
    return {"primal": n * d**2 + d**3 / 3, "dual": n**2 * d + n**3 / 3, "step": 2.0 * n * d}
