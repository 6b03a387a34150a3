"""Refinement of a compression: move its points by L-BFGS, with the coefficients eliminated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer._progress import Callback, report
from mercer.exceptions import InputError
from mercer.preimages._problem import spread
from mercer.preimages.compression._target import Target

_PAIRS = 12
_GAIN = 1e-6  # of the squared error: a step that gains less is the last
_ROUNDING = 1e-15  # of |psi|^2
_LIGHT = 1e-4  # of the mean weight: lighter points move as if they had this weight
_METRIC_DIMENSIONS = 500
_TINY = float(np.finfo(float).tiny)


class MovedPoints(NamedTuple):
    """Points that explain at least as much as those they come from."""

    points: Array
    error: float  # squared
    n_iter: int
    stopped: bool  # by the callback


def move_points(
    target: Target, Z: Array, max_iter: int, callback: Callback | None = None
) -> MovedPoints:
    """Move the points Z so that they explain more of the target.

    All points move at once. Their units are those in which the Gauss-Newton Hessian, point by point
    2 |B_i|^2 d_x d_y k(z_i, z_i), is the identity, because light points need long steps.
    """
    from scipy.optimize import minimize

    best = target.explained(Z)
    left = max(target.total - best.value, _ROUNDING * target.total)
    weight = np.maximum(best.weight, max(_LIGHT * float(best.weight.mean()), _TINY))
    unit, root = 1.0 / np.sqrt(2.0 * weight)[:, None], _inverse_root(target, Z[-1:])
    # the first step of SciPy has length one, and should be the Gauss-Newton step
    unit = unit * float(np.linalg.norm(best.gradient @ root * unit))
    if not unit.any():
        return MovedPoints(Z, target.total - best.value, 0, False)
    steps, stopped, before = 0, False, best.value

    def unexplained(step: Array) -> tuple[float, Array]:
        """The share of the error that is left, and its gradient; the total where undefined."""
        nonlocal best
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                tried = target.explained(Z + step.reshape(Z.shape) @ root * unit)
        except InputError:  # outside the domain of the kernel
            return target.total / left, np.zeros_like(step)
        if not (np.isfinite(tried.value) and np.isfinite(tried.gradient).all()):
            return target.total / left, np.zeros_like(step)
        best = tried if tried.value > best.value else best
        slope = -(tried.gradient @ root * unit).ravel() / left
        return (target.total - tried.value) / left, slope

    def after_step(_: Array) -> None:
        nonlocal steps, stopped, before
        steps, gain, before = steps + 1, best.value - before, best.value
        rest = max(target.total - best.value, 0.0)
        stopped = report("compression", steps, np.sqrt(rest / target.total), callback=callback)
        if stopped or gain <= _GAIN * rest or rest <= _ROUNDING * target.total:
            raise StopIteration

    settings = {"maxiter": max_iter, "maxcor": _PAIRS, "ftol": 0.0, "gtol": 0.0}
    how = {"method": "L-BFGS-B", "options": settings, "callback": after_step}
    minimize(unexplained, np.zeros(Z.size), jac=True, **how)
    return MovedPoints(best.points, target.total - best.value, steps, stopped)


def _inverse_root(target: Target, z: Array) -> Array:
    """(d_x d_y k(z, z))^(-1/2) of the metric of the feature map; else a length scale."""
    d = z.shape[1]
    own = max(float(engine.diagonal(target.program, z)[0]), _TINY)
    fallback: Array = spread(target.points) / np.sqrt(own) * np.eye(d)
    if d > _METRIC_DIMENSIONS or any(target.program.cusps):
        return fallback
    M = engine.pairwise_derivative(target.program, z, z, mixed=True)[0, 0]
    if not np.isfinite(M).all() or not np.trace(M) > 0:
        return fallback
    values, vectors = np.linalg.eigh(0.5 * (M + M.T))
    scales = np.where(values > 1e-8 * values[-1], values, np.inf) ** -0.5
    return np.asarray((vectors * scales) @ vectors.T)
