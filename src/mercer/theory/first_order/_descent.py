"""Gradient descent and the subgradient method, with theoretical bounds for each run.

Both repeat x <- P(x - step u) with u a gradient or a subgradient at x, and P a projection on a
convex set. The guarantees depend on the function and on the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, as_vector, frozen, positive, positive_int
from mercer._random import as_generator
from mercer.exceptions import InputError
from mercer.theory._checks import array_function, real_function
from mercer.theory.first_order._rates import (
    positive_steps,
    short_step,
    smooth_rate,
    strongly_convex_rate,
    subgradient_rate,
)


@dataclass(frozen=True, eq=False)
class Run:
    """The iterates of a first-order method.

    Attributes
    ----------
    points : array of shape (t + 1, d)
        x_0, ..., x_t.
    values : array of shape (t + 1,)
        f at the points.
    steps : array of shape (t,)
        The step sizes.
    bound : array of shape (t + 1,)
        The guarantee for f - min f: of `values` for gradient descent, of `best_values` and of f at
        `average` for the subgradient method. Infinite where there is none.
    """

    points: Array
    values: Array
    steps: Array
    bound: Array

    @property
    def best_values(self) -> Array:
        """The smallest value so far, shape (t + 1,)."""
        return np.minimum.accumulate(self.values)

    @property
    def best(self) -> Array:
        """The point with the smallest value."""
        return np.asarray(self.points[np.argmin(self.values)])

    @property
    def average(self) -> Array:
        """sum_i step_i x_i / sum_i step_i: the average over the whole run."""
        return self._average(0)

    @property
    def tail_average(self) -> Array:
        """The same over the second half of the run, which forgets the start."""
        return self._average(len(self.steps) // 2)

    def _average(self, first: int) -> Array:
        if not len(self.steps):
            return np.asarray(self.points[-1])
        share = self.steps[first:] / self.steps[first:].max()  # the steps may be huge
        with np.errstate(over="ignore"):
            return np.asarray((share / share.sum()) @ self.points[first:-1])


def gradient_descent(
    f: Callable[[Array], float],
    gradient: Callable[[Array], Array],
    start: Any,
    n_steps: int,
    *,
    smoothness: float,
    strong_convexity: float = 0.0,
    step_size: float | None = None,
    project: Callable[[Array], Array] | None = None,
    minimiser: Any = None,
) -> Run:
    """Minimise a smooth convex f by x <- P(x - step grad f(x)).

    Parameters
    ----------
    f, gradient : callable
        Functions of an array of shape (d,).
    start : array_like of shape (d,)
        x_0, in the set if there is one.
    n_steps : int
    smoothness : float
        L > 0, a Lipschitz constant of the gradient.
    strong_convexity : float, default=0
        mu >= 0 with f(y) >= f(x) + <grad f(x), y - x> + mu |y - x|^2 / 2.
    step_size : float, optional
        In (0, 2 / L). The default 1 / L has the best bounds.
    project : callable, optional
        The projection P on a convex set, `mercer.theory.duality.project_ball` for instance.
    minimiser : array_like of shape (d,), optional
        A minimiser of f, over the set if there is one. With it the run has a bound: `smooth_rate`,
        or `strongly_convex_rate` where that is smaller and nothing is projected.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> run = mc.theory.first_order.gradient_descent(
    ...     lambda x: x[0] ** 2 + 5 * x[1] ** 2, lambda x: np.array([2 * x[0], 10 * x[1]]),
    ...     [3.0, 1.0], 20, smoothness=10.0, minimiser=[0.0, 0.0],
    ... )
    >>> bool(np.all(run.values <= run.bound)), float(run.values[-1].round(5))
    (True, 0.0012)
    """
    L = positive(smoothness, "smoothness")
    step, L = short_step(1.0 / L if step_size is None else step_size, L)
    steps = np.full(positive_int(n_steps, "n_steps"), step)
    points, values = _iterates(f, array_function(gradient, "gradient"), start, steps, project)
    bound = np.full(len(values), np.inf)
    if minimiser is not None:
        x = as_vector(minimiser, "minimiser", points.shape[1])
        excess = max(float(values[0]) - real_function(f, "f")(x), 0.0)
        distance = float(np.linalg.norm(points[0] - x))
        bound = smooth_rate(len(steps), step, L, distance, excess)
        if project is None:
            linear = strongly_convex_rate(len(steps), step, L, strong_convexity, excess)
            bound = np.minimum(bound, linear)
    return Run(points, values, frozen(steps), frozen(bound))


def subgradient_method(
    f: Callable[[Array], float],
    subgradient: Callable[..., Array],
    start: Any,
    steps: Any,
    *,
    project: Callable[[Array], Array] | None = None,
    lipschitz: float | None = None,
    minimiser: Any = None,
    random_state: Any = None,
) -> Run:
    """Minimise a convex f by x <- P(x - step_t u_t), u_t a subgradient of f at x.

    Values may rise on the way; the best value and the average converge. The method is
    stochastic if `random_state` is given: u_t is then random, with a mean that is a subgradient,
    and the bound holds in the mean over all runs.

    Parameters
    ----------
    f : callable
        A function of an array of shape (d,).
    subgradient : callable
        x -> u; (x, rng) -> u if `random_state` is given.
    start : array_like of shape (d,)
    steps : array_like of shape (t,)
        Step sizes > 0; see `constant_steps` and `decreasing_steps`.
    project : callable, optional
        The projection P on a convex set.
    lipschitz : float, optional
        L >= |u_t|, or L^2 >= E|u_t|^2. With it and `minimiser` the run has a bound,
        `subgradient_rate`.
    minimiser : array_like of shape (d,), optional
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> fo = mc.theory.first_order
    >>> run = fo.subgradient_method(
    ...     lambda x: abs(x[0]) + 2 * abs(x[1]), lambda x: np.sign(x) * [1, 2], [3.0, 1.0],
    ...     fo.constant_steps(400, distance=10**0.5, lipschitz=5**0.5), lipschitz=5**0.5,
    ...     minimiser=[0.0, 0.0],
    ... )
    >>> bool(np.all(run.best_values <= run.bound)), float(run.bound[-1].round(3))
    (True, 0.354)
    """
    steps, slope = positive_steps(steps), subgradient
    if random_state is not None and callable(subgradient):
        rng = as_generator(random_state)
        slope = lambda x: subgradient(x, rng)  # noqa: E731
    points, values = _iterates(f, array_function(slope, "subgradient"), start, steps, project)
    bound = np.full(len(values), np.inf)
    if minimiser is not None and lipschitz is not None:
        x = as_vector(minimiser, "minimiser", points.shape[1])
        bound = subgradient_rate(steps, lipschitz, float(np.linalg.norm(points[0] - x)))
    return Run(points, values, frozen(steps), frozen(bound))


def _iterates(
    f: Callable[[Array], float],
    slope: Callable[[Array], Array],
    start: Any,
    steps: Array,
    project: Callable[[Array], Array] | None,
) -> tuple[Array, Array]:
    value = real_function(f, "f")
    projected = None if project is None else array_function(project, "project")
    first = as_vector(np.atleast_1d(start), "start")
    points = np.empty((len(steps) + 1, len(first)))
    points[0] = first
    for t, step in enumerate(steps):
        with np.errstate(over="ignore", invalid="ignore"):
            x = points[t] - step * slope(points[t])
        if not np.isfinite(x).all():
            raise InputError("the iterates leave the range of numbers; take shorter steps")
        points[t + 1] = x if projected is None else projected(x)
    return frozen(points), frozen(np.array([value(x) for x in points]))
