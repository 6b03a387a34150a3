"""Modes at the points of a kernel sum with cusps, such as Laplace's: which points are modes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array
from mercer.rigor._enclosure import radial_slopes
from mercer.rigor._mode_ranges import Density

_PAIRS = 1 << 15
_SLACK = 1e-11  # of constants and norms that are rounded


@dataclass(frozen=True, eq=False)
class Cusps:
    """Points with a cusp that are modes, and boxes around the points that hold no other mode.

    `small` are boxes around points that remained undecided.
    """

    modes: Array
    low: Array
    high: Array
    small: tuple[Array, Array]


def decide_cusps(density: Density, finest: float) -> Cusps:
    """Judge each point x_j by the other terms on boxes around it, halved until that succeeds.

    With G the gradient of the others and q(r) = k(r^2), psi falls along all rays from x_j where
    |G| < a_j min |q'|, and has no critical point, x_j included, where |G| > a_j max |q'|; at
    x_j itself that is the test |R| <= eta. Norms are those of the kernel's metric.
    """
    from scipy.spatial import cKDTree

    X, count = density.terms.points, len(density.terms.points)
    nearest = cKDTree(X * density.scale).query(X * density.scale, k=2)[0][:, 1]
    half = 0.45 * nearest / np.sqrt(density.dim)
    low, high = X - half[:, None] / density.scale, X + half[:, None] / density.scale
    decided, peak = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    rows = np.arange(count)
    while len(rows):
        low[rows], high[rows] = (X[rows] + t * half[rows, None] / density.scale for t in (-1, 1))
        falls, turns = _judge(density, rows, low[rows], high[rows])
        peak[rows], decided[rows] = falls, falls | turns
        rows = rows[~(falls | turns) & (half[rows] > finest)]
        half[rows] /= 2
    rest = low[~decided], high[~decided]
    return Cusps(X[peak], low[decided], high[decided], rest)


def _judge(density: Density, rows: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Points from which psi falls in all directions, and boxes without critical points."""
    t, s = density.terms, density.scale
    least, most = np.empty(len(rows)), np.empty(len(rows))
    step = max(1, _PAIRS // len(t.coef))
    for i in range(0, len(rows), step):
        part = slice(i, i + step)
        others = np.arange(len(t.coef)) != rows[part, None]
        G = t.gradient(t.at(low[part], high[part], 1), others)
        nearest = np.where((G.lo < 0) & (G.hi > 0), 0.0, np.minimum(np.abs(G.lo), np.abs(G.hi)))
        least[part] = np.linalg.norm(nearest / s, axis=1)
        most[part] = np.linalg.norm(G.size / s, axis=1)
    reach = np.linalg.norm(np.maximum(high - t.points[rows], t.points[rows] - low) * s, axis=1)
    flat, steep = (t.coef[rows] * slope for slope in radial_slopes(t, s, reach * (1 + _SLACK)))
    return most * (1 + _SLACK) < flat * (1 - _SLACK), least * (1 - _SLACK) > steep * (1 + _SLACK)
