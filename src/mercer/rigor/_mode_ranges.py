"""Ranges of a positive kernel sum over boxes, and which of its points with a cusp are modes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mercer._array import Array
from mercer.engine import Const, Expr, Var, pieces
from mercer.engine.programs._expr import Add, Matern, Mul
from mercer.engine.programs._log_profile import log_expr
from mercer.exceptions import InputError
from mercer.rigor._enclosure import Terms, radial_slopes
from mercer.rigor._intervals import Interval, down, up
from mercer.rigor._profile_enclosure import ZERO, profile_ranges

_TILE = 64  # boxes that share their near points
_PAIRS = 1 << 15  # boxes times points that are worked on at once
_SLACK = 1e-11  # of constants and norms that are rounded
_GRID = 1200  # cells of squared distances on which the reach of a mode is searched


class Local(NamedTuple):
    """Ranges for F = -psi on m boxes: gradient at e, gradient and Hessian over the boxes."""

    at: Interval  # (m, d)
    slope: Interval  # (m, d)
    hessian: Interval  # (m, d, d)


class Cutoff(NamedTuple):
    """A squared distance beyond which terms are negligible, and bounds on what they add.

    Per unit of weight, for values, and for entries of gradient and Hessian in scaled coordinates.
    """

    squared: float
    value: float
    slope: float
    bend: float


@dataclass(frozen=True, eq=False)
class Density:
    """F = -psi = -sum_i a_i k(x_i, .) with a_i > 0, k a decreasing profile of one distance."""

    terms: Terms
    widest: float  # squared distances between points of the search are at most this

    @property
    def dim(self) -> int:
        return int(self.terms.points.shape[1])

    @cached_property
    def scale(self) -> Array:
        """Lengths of the axes in the kernel's metric are multiplied by these."""
        return np.asarray(np.sqrt(np.diag(self.terms.metrics[0][0])))

    @cached_property
    def reach(self) -> float:
        """U such that no mode is farther than sqrt(U) from all points; see `far_reach`."""
        return far_reach(self.terms.program.profile, self.dim, self.widest)

    @cached_property
    def cutoff(self) -> Cutoff:
        """Where all terms together are negligible beside the smallest one."""
        profile, a = self.terms.program.profile, self.terms.coef
        edges = self.widest * np.logspace(-8.0, 0.0, 161)
        beyond = Interval(edges, np.full(161, self.widest))
        value, first, second = (x.size for x in profile_ranges(profile, beyond, 2))
        slope = up(2.0 * np.sqrt(self.widest) * first)
        bend = up(up(2.0 * first) + up(4.0 * self.widest * second))
        start = float(profile_ranges(profile, ZERO)[0].lo[0])
        half = edges[min(int(np.count_nonzero(value > start / 2)), len(edges) - 1)]
        fine = bend * a.sum() <= 1e-14 * a.min() * start / half  # a bend of the usual size
        if not fine.any():
            return Cutoff(np.inf, 0.0, 0.0, 0.0)
        i = int(np.argmax(fine))
        return Cutoff(float(edges[i]), float(value[i]), float(slope[i]), float(bend[i]))

    def highest(self, low: Array, high: Array) -> Array:
        """An upper bound of psi over each box; -inf on boxes that are out of reach."""
        bound = np.full(len(low), -np.inf)
        for box, terms, dropped in self._tiles(low, high):
            found = terms.weighed(terms.at(low[box], high[box], 0).value)
            bound[box] = up(up(dropped * self.cutoff.value) - found.lo)
        return bound

    def local(self, low: Array, high: Array, e: Array) -> tuple[Array, Local]:
        """Which boxes are in reach of a point, and the ranges on those; e is inside the boxes."""
        d, near = self.dim, np.zeros(len(low), dtype=bool)
        parts = [Local(*(Interval(np.empty(s), np.empty(s)) for s in ((0, d), (0, d), (0, d, d))))]
        for box, t, dropped in self._tiles(low, high):
            near[box] = _squared(t, low[box], high[box]).lo.min(axis=1) <= self.reach
            a, b, c = (x[box][near[box]] for x in (low, high, e))
            hull = t.at(a, b, 2)
            off = up(dropped * self.cutoff.slope * self.scale)
            bend = up(dropped * self.cutoff.bend * np.outer(self.scale, self.scale)) * (1 + 1e-9)
            at, slope = (
                Interval(x.lo - off, x.hi + off)
                for x in (t.gradient(t.at(c, c, 1)), t.gradient(hull))
            )
            H = t.hessian(hull)
            parts.append(Local(at, slope, Interval(down(H.lo - bend), up(H.hi + bend))))
        return near, Local(*(Interval.joined(column) for column in zip(*parts, strict=True)))

    def _tiles(self, low: Array, high: Array) -> Iterator[tuple[slice, Terms, float]]:
        """Boxes in reach, a few at a time, the terms that matter there, and the others' weight."""
        t = self.terms
        for tile in pieces(len(low), _TILE):
            hull = low[tile].min(axis=0, keepdims=True), high[tile].max(axis=0, keepdims=True)
            u = _squared(t, *hull).lo[0]
            if u.min() > self.reach:
                continue
            keep = u <= self.cutoff.squared
            few = Terms(t.program, t.points[keep], t.coef[keep], t.weight[keep], t.axes)
            dropped = float(t.weight[~keep].sum()) * (1 + 1e-9)
            for rows in pieces(tile.stop, max(1, _PAIRS // len(few.coef)), tile.start):
                yield rows, t if keep.all() else few, dropped


def _squared(t: Terms, low: Array, high: Array) -> Interval:
    """Squared distances between boxes and points, (m, n)."""
    return t.variable(0, low, high, 0)[0]


def far_reach(profile: Expr, dim: int, widest: float) -> float:
    """U such that d k'(u) + 2 u k''(u) > 0 for U < u <= widest; infinite where none is proved.

    Twice this, summed over the points, is the trace of the Hessian, which is <= 0 at a mode: so no
    mode is farther than sqrt(U) from all points. For a Gaussian U = d s^2.
    """
    match profile:
        case Add(left=Const(), right=inner) | Add(left=inner, right=Const()):
            return far_reach(inner, dim, widest)
        case Add(left=a, right=b):
            return max(far_reach(a, dim, widest), far_reach(b, dim, widest))
        case Mul(left=Const(value=c), right=inner) if c > 0:
            return far_reach(inner, dim, widest)
        case Matern(arg=Mul(left=Const(value=c), right=Var()), nu=nu):
            # -2 u k'' / k' is z for nu = 3/2 and z^2 / (1 + z) for nu = 5/2
            z = float(dim) if nu == 1.5 else (dim + math.sqrt(dim * dim + 4.0 * dim)) / 2.0
            return z * z / c * (1 + 1e-12)
    return _by_logarithm(profile, dim, widest)


def _by_logarithm(profile: Expr, dim: int, widest: float) -> float:
    """With k = exp(L) the sum is k (d L' + 2 u (L'' + L'^2)), which does not underflow."""
    edges = widest * np.logspace(-12.0, 0.0, _GRID + 1)
    u = Interval(edges[:-1], edges[1:])
    log_profile = log_expr(profile)
    try:
        if log_profile is None:
            raise InputError("no logarithm")
        _, first, second = profile_ranges(log_profile, u, 2)
        second = second + first.square()
    except InputError:
        _, first, second = profile_ranges(profile, u, 2)
    trace = (float(dim) * first + 2.0 * u * second).known()
    bad = np.flatnonzero(~(trace.lo > 0))
    if not len(bad):
        return float(up(edges[0]))
    return float(up(edges[bad[-1] + 1])) if bad[-1] + 1 < _GRID else math.inf


# --- points with a cusp, such as Laplace's --------------------------------------------------------


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
        falls, turns = _judge_cusps(density, rows, low[rows], high[rows])
        peak[rows], decided[rows] = falls, falls | turns
        rows = rows[~(falls | turns) & (half[rows] > finest)]
        half[rows] /= 2
    rest = low[~decided], high[~decided]
    return Cusps(X[peak], low[decided], high[decided], rest)


def _judge_cusps(density: Density, rows: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Points from which psi falls in all directions, and boxes without critical points."""
    t, s = density.terms, density.scale
    least, most = np.empty(len(rows)), np.empty(len(rows))
    for part in pieces(len(rows), max(1, _PAIRS // len(t.coef))):
        others = np.arange(len(t.coef)) != rows[part, None]
        G = t.gradient(t.at(low[part], high[part], 1), others)
        nearest = np.where((G.lo < 0) & (G.hi > 0), 0.0, np.minimum(np.abs(G.lo), np.abs(G.hi)))
        least[part] = np.linalg.norm(nearest / s, axis=1)
        most[part] = np.linalg.norm(G.size / s, axis=1)
    reach = np.linalg.norm(np.maximum(high - t.points[rows], t.points[rows] - low) * s, axis=1)
    flat, steep = (t.coef[rows] * slope for slope in radial_slopes(t, s, reach * (1 + _SLACK)))
    return most * (1 + _SLACK) < flat * (1 - _SLACK), least * (1 - _SLACK) > steep * (1 + _SLACK)
