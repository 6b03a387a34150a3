"""The global minimum of a pre-image objective, by branch and bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._status import Status
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.linalg._dense import saddle_free_steps
from mercer.rigor._box_bounds import BoxObjective
from mercer.rigor._branch_and_bound import Boxes, branch_and_bound
from mercer.rigor._intervals import Interval
from mercer.rigor._search_region import at_infinity, feature_bound, objective_scale, reach

_BATCH = 1024  # boxes that are split in one round
_START = 64  # boxes the root is cut into
_NEAR = 0.6  # a candidate this many widths outside a box may be expanded at
_CANDIDATES = 256
_NEWTON = 30  # steps of a descent
_PAIRS = 1 << 18  # boxes times candidates that are compared at once


@dataclass(frozen=True, eq=False)
class GlobalMinimum:
    """What branch and bound proved about one element: lower <= inf F <= F(point) <= upper.

    Attributes
    ----------
    point : array of shape (d,)
    lower, upper : float
        Of k(x, x)/2 - psi(x); without k(x, x)/2 for radial kernels.
    status : Status
        PROVED where upper is within the gap of the infimum, ESCAPED where points at infinity are
        as good, MAX_ITER otherwise.
    n_boxes, n_rounds : int

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.preimages import global_minimum
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [6.0]], [0.9, 1.0])
    >>> (found,) = global_minimum(psi)
    >>> found.upper - found.lower < 2e-6, round(found.upper, 6)
    (True, -1.0)
    """

    point: Array
    lower: float
    upper: float
    status: Status
    n_boxes: int
    n_rounds: int


def minimise(
    objective: BoxObjective,
    low: Array,
    high: Array,
    gap: float,
    max_boxes: int,
    starts: Any,
    definite: bool,
) -> GlobalMinimum:
    """Find the global minimum over a region, with proof.

    The region low <= x <= high may be infinite. `gap` is relative to the size of the objective,
    `starts` are candidates besides the points of the element, and `definite` says whether the
    kernel is positive definite.
    """
    with np.errstate(all="ignore"):
        scale = objective_scale(objective)
        search = MinimumSearch(objective, low, high, gap * scale, scale)
        search.begin(starts)
        if not np.isfinite(search.best):
            raise InputError("the objective overflows at the points of psi; scale them down")
        zero = len(objective.groups) == 1 and not objective.groups[0].coef.any()
        if zero or not objective.axes:
            lower = float(objective.values(low[None], high[None]).lo[0])
            ended = Status.PROVED if search.best - lower <= search.gap else Status.MAX_ITER
            return GlobalMinimum(search.point, lower, search.best, ended, 1, 0)
        far = at_infinity(objective, low, high)
        goal = min(search.best, far.hi) - search.gap
        kappa = feature_bound(objective, search.best) if definite else np.inf
        left, right, beyond = reach(objective, low, high, goal, kappa)
        search.root = np.maximum(low, left), np.minimum(high, right)
        proved = True
        if (search.root[0] <= search.root[1]).all():
            search.descend(search.points[:16])
            proved = search.run(far.hi, max_boxes)
            search.descend(search.point[None], polish=True)
    goal = min(search.best, far.hi) - search.gap
    thin = far.hi - far.lo <= search.gap  # else the limit is not known, but nothing is below goal
    escaped = search.best >= far.lo if thin else search.best > far.hi
    lower = min(beyond, goal if proved else search.floor)
    ended = (Status.ESCAPED if escaped else Status.PROVED) if proved else Status.MAX_ITER
    counts = search.n_boxes, search.n_rounds
    return GlobalMinimum(search.point, lower, search.best, ended, *counts)


@dataclass
class MinimumSearch:
    """Points found so far, and the boxes that may still hold something better."""

    objective: BoxObjective
    low: Array  # the region; infinite where it has no bound
    high: Array
    gap: float  # boxes that cannot be better by more than this are dropped
    scale: float  # the size of the objective
    best: float = np.inf
    point: Array = field(default_factory=lambda: np.empty(0))
    floor: float = np.inf  # the least bound of what was left unsplit
    points: Array = field(default_factory=lambda: np.empty((0, 0)))  # candidates, best first
    values: Array = field(default_factory=lambda: np.empty(0))
    cusps: Array = field(default_factory=lambda: np.empty(0, dtype=int))
    root: tuple[Array, Array] = (np.empty(0), np.empty(0))  # the box that is searched
    n_boxes: int = 0
    n_rounds: int = 0

    def begin(self, starts: Any) -> None:
        """Offer the points of the element, and the starts."""
        main = self.objective.groups[0]
        X = np.clip(main.points, self.low, self.high)
        here = (main.points == X).all(axis=1) & (main.coef > 0)
        self.offer(X, np.where(here, np.arange(len(X)), -1))
        if starts is not None:
            self.offer(np.clip(np.asarray(starts, dtype=float), self.low, self.high))

    def offer(self, X: Array, cusps: Array | None = None) -> None:
        """Take points of the region as candidates; the best of them is the answer so far."""
        value = self.objective.values(X, X).hi
        cusps = np.full(len(X), -1) if cusps is None else cusps
        if self.points.size:
            X, value = np.concatenate([self.points, X]), np.concatenate([self.values, value])
            cusps = np.concatenate([self.cusps, cusps])
        order = np.argsort(value, kind="stable")
        if value[order[0]] < self.best:
            self.best, self.point = float(value[order[0]]), X[order[0]]
        near = value[order] <= self.best + max(1e4 * self.gap, 0.01 * self.scale)
        keep = order[near][: max(_CANDIDATES, len(self.objective.groups[0].coef))]
        self.points, self.values, self.cusps = X[keep], value[keep], cusps[keep]

    def descend(self, X: Array, polish: bool = False) -> None:
        """Offer the points that damped Newton steps from X lead to, to rounding with `polish`.

        They stay in the root, in which the objective varies by more than the gap.
        """
        enough = 1e-18 * self.scale if polish else 1e-3 * self.gap
        axes = self.objective.axes
        low, high = self.root[0][axes], self.root[1][axes]
        found = []
        value, g, H = self.objective.jet(X)
        damp = np.ones(len(X))
        for _ in range(_NEWTON):
            move, gain = _newton(g, H, X[:, axes] <= low, X[:, axes] >= high)
            going = (gain > enough) & (damp > 1e-4)
            found.append(X[~going])
            if not going.any():
                break
            X, value, g, H, damp, move = (y[going] for y in (X, value, g, H, damp, move))
            Y = X.copy()
            Y[:, axes] += move * damp[:, None] / self.objective.scale
            Y[:, axes] = np.clip(np.where(np.isfinite(Y), Y, X)[:, axes], low, high)
            new = self.objective.jet(Y)
            better = new[0] < value
            X, value = np.where(better[:, None], Y, X), np.where(better, new[0], value)
            g = np.where(better[:, None], new[1], g)
            H = np.where(better[:, None, None], new[2], H)
            damp = np.where(better, np.minimum(4 * damp, 1.0), damp / 4)
        else:
            found.append(X)
        self.offer(np.concatenate(found))

    def run(self, target: float, max_boxes: int) -> bool:
        """Search the root; True when nothing is left that could be better by more than the gap.

        Boxes that cannot beat `target` by more than the gap are dropped too.
        """
        scale = np.zeros(len(self.low))
        scale[self.objective.axes] = self.objective.scale

        def ceiling() -> float:
            return min(self.best, target) - self.gap

        limits = {"max_boxes": max_boxes, "batch": _BATCH, "start": _START}
        left, self.n_boxes = branch_and_bound(
            Boxes.root(*self.root), partial(self._examined, ceiling), scale, ceiling, **limits
        )
        self.floor = float(left.bound.min(initial=np.inf))
        return self.floor >= ceiling()

    def _examined(self, ceiling: Callable[[], float], boxes: Boxes) -> Boxes:
        """Boxes that may hold something better, with their bounds; descents on the way."""
        self.n_rounds += 1
        bound = np.maximum(boxes.bound, self.objective.values(boxes.low, boxes.high).lo)
        boxes = replace(boxes, bound=bound)[bound < ceiling()]
        if not len(boxes):
            return boxes
        e, cusp = self._expansion_points(boxes)
        found, x = self.objective.lower(boxes.low, boxes.high, e, cusp)
        bound = np.maximum(boxes.bound, found)
        if (x.at_point.hi < self.best).any():
            self.descend(e[np.argsort(x.at_point.hi)[:4]])
        elif self.n_rounds % 8 == 5:
            self.descend(e[np.argsort(bound)[:8]])
        low, high, alive = self._monotone(boxes, x.slope)
        corners = alive & (high == low).all(axis=1)
        if corners.any():  # nothing is left to cut
            self.offer(low[corners])
            bound[corners] = self.objective.values(low[corners], high[corners]).lo
        return Boxes(low, high, bound)[alive & (bound < ceiling())]

    def _expansion_points(self, boxes: Boxes) -> tuple[Array, Array | None]:
        """The best candidate in or near each box, else its centre; and the cusp at that point."""
        low, high, e = boxes.low, boxes.high, boxes.centres
        cusp = np.full(len(low), -1)
        axes = self.objective.axes
        for rows in pieces(len(low), max(1, _PAIRS // len(self.points))):
            a, b = low[rows][:, None, axes], high[rows][:, None, axes]
            P = self.points[None, :, axes]
            outside = np.maximum(np.maximum(a - P, P - b), 0.0)  # in widths of the box
            outside = (outside / np.maximum(b - a, 1e-300)).max(axis=2)
            index = np.argmin(outside, axis=1)
            near = outside[np.arange(len(index)), index] <= _NEAR
            e[rows] = np.where(near[:, None], self.points[index], e[rows])
            cusp[rows] = np.where(near, self.cusps[index], -1)
        return e, cusp if self.objective.has_cusps else None

    def _monotone(self, boxes: Boxes, slope: Interval) -> tuple[Array, Array, Array]:
        """Drop boxes on which F rises or falls along an axis; keep the face, if one of the region.

        Elsewhere the box next to it, or what lies outside the root, is better or as good.
        """
        low, high = boxes.low.copy(), boxes.high.copy()
        alive = np.ones(len(low), dtype=bool)
        for i, axis in enumerate(self.objective.axes):
            wide = high[:, axis] > low[:, axis]
            rises, falls = wide & (slope.lo[:, i] > 0), wide & (slope.hi[:, i] < 0)
            at_low, at_high = low[:, axis] <= self.low[axis], high[:, axis] >= self.high[axis]
            high[:, axis] = np.where(rises & at_low, low[:, axis], high[:, axis])
            low[:, axis] = np.where(falls & at_high, high[:, axis], low[:, axis])
            alive &= ~((rises & ~at_low) | (falls & ~at_high))
        return low, high, alive


def _newton(g: Array, H: Array, at_low: Array, at_high: Array) -> tuple[Array, Array]:
    """Steps -|H|^-1 g along the axes that are not blocked by a face, and the fall they predict."""
    blocked = (at_low & (g > 0)) | (at_high & (g < 0))
    g = np.where(blocked, 0.0, g)
    H = np.where(blocked[:, :, None] | blocked[:, None, :], np.eye(g.shape[1]), H)
    move = saddle_free_steps(g, H, 1e-8)[0]
    return move, -np.sum(g * move, axis=1)
