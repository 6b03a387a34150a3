"""Refinement of a compression: move its points uphill by L-BFGS, coefficients eliminated."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer.exceptions import InputError
from mercer.preimages._problem import spread
from mercer.preimages.compression._target import ExplainedNorm, Target

_PAIRS = 12
_ARMIJO = 1e-4
_HALVINGS = 12
_GAIN = 1e-6  # of the squared error: a step that promises less is not taken
_ROUNDING = 1e-15  # of |psi|^2
_LIGHT = 1e-4  # of the mean weight: lighter points move as if they had this weight
_METRIC_DIMENSIONS = 500


@dataclass
class _Refinement:
    """L-BFGS for all points at once.

    The first guess of the inverse Hessian is that of Gauss and Newton point by point,
    (2 |B_i|^2 d_x d_y k(z_i, z_i))^-1: light points need long steps.
    """

    target: Target
    now: ExplainedNorm
    metric: Array
    spread: float  # of the points of psi: no step is longer
    pairs: deque[tuple[Array, Array, float]] = field(default_factory=lambda: deque(maxlen=_PAIRS))

    def direction(self) -> Array:
        """The two-loop recursion, uphill."""
        q = self.now.gradient.copy()
        used = []
        for s, y, product in reversed(self.pairs):
            a = float(np.sum(s * q)) / product
            q -= a * y
            used.append(a)
        tiny = float(np.finfo(float).tiny)
        floor = max(_LIGHT * float(self.now.weight.mean()), tiny)
        stiffness = 2.0 * np.maximum(self.now.weight, floor)[:, None]
        q = q @ self.metric / stiffness
        if self.pairs:
            _, y, product = self.pairs[-1]
            q *= product / max(float(np.sum(y * (y @ self.metric / stiffness))), tiny)
        for (s, y, product), a in zip(self.pairs, reversed(used), strict=True):
            q += (a - float(np.sum(y * q)) / product) * s
        return q

    def step(self) -> bool:
        """Go uphill; False where there is nothing to gain."""
        p, g = self.direction(), self.now.gradient
        slope = float(np.sum(p * g))
        if not (slope > 0 and np.isfinite(p).all()):
            self.pairs.clear()
            p = self.direction()
            slope = float(np.sum(p * g))
        left = max(self.target.total - self.now.value, 0.0)
        if not slope > max(_GAIN * left, _ROUNDING * self.target.total):
            return False
        longest = float(np.sqrt(np.sum(p**2, axis=1).max()))
        t = min(1.0, self.spread / longest) if longest > 0 else 1.0
        for _ in range(_HALVINGS):
            tried = self._try(t * p)
            rise = -np.inf if tried is None else tried.value - self.now.value
            if tried is not None and rise >= _ARMIJO * t * slope:
                s, y = t * p, g - tried.gradient
                product = float(np.sum(s * y))
                if product > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
                    self.pairs.append((s, y, product))
                self.now = tried
                return True
            bend = 2.0 * (t * slope - rise)
            t *= float(np.clip(t * slope / bend, 0.1, 0.5)) if np.isfinite(bend) else 0.1
        if not self.pairs:
            return False
        self.pairs.clear()
        return self.step()

    def _try(self, change: Array) -> ExplainedNorm | None:
        """E after a change; None outside the domain of the kernel, or where it overflows."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                tried = self.target.explained(self.now.points + change)
        except InputError:
            return None
        fine = np.isfinite(tried.value) and np.isfinite(tried.gradient).all()
        return tried if fine else None


def refine_points(target: Target, Z: Array, max_iter: int) -> tuple[Array, float, int]:
    """Points that explain at least as much of the target as Z, how much, and the steps taken."""
    apart = spread(target.points)
    metric = _metric(target, Z[-1:], apart)
    walk = _Refinement(target, target.explained(Z), metric, apart)
    steps = 0
    while steps < max_iter and walk.step():
        steps += 1
    return walk.now.points, walk.now.value, steps


def _metric(target: Target, z: Array, apart: float) -> Array:
    """(d_x d_y k(z, z))^+, the metric of the feature map at z; a length where there is none."""
    d = z.shape[1]
    own = max(float(engine.diagonal(target.program, z)[0]), np.finfo(float).tiny)
    fallback = apart**2 / own * np.eye(d)
    if d > _METRIC_DIMENSIONS or any(target.program.cusps):
        return fallback
    M = engine.pairwise_derivative(target.program, z, z, mixed=True)[0, 0]
    if not np.isfinite(M).all() or not np.trace(M) > 0:
        return fallback
    return np.asarray(np.linalg.pinv(0.5 * (M + M.T), rcond=1e-8, hermitian=True))
