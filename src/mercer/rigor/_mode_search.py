"""All modes of a positive kernel sum, by branch and bound over density."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array
from mercer.engine import pieces, profile_at
from mercer.engine.programs._jets import plus
from mercer.rigor._box_bounds import smallest_eigenvalue
from mercer.rigor._branch_and_bound import Boxes, branch_and_bound
from mercer.rigor._enclosure import Terms
from mercer.rigor._intervals import EPS, Interval, as_interval, mean_value, offsets, up
from mercer.rigor._mode_ranges import Density, Local, decide_cusps

_BATCH = 2048  # boxes that are examined in one round
_MARGIN = 0.125  # a box is judged with this part of its width around it
_SMALL = 1e-4  # of the searched box: rounding may stop smaller boxes from being cut
_NEWTON = 30  # steps that locate a mode
_LOCATED = 1e-8  # of the searched box: a mode in a larger box is undecided


def krawczyk(x: Local, D: Interval) -> Interval:
    """Where in e + D critical points can be, relative to e: -Y g(e) + (I - Y H) D."""
    d = D.lo.shape[1]
    middle = (x.hessian.lo + x.hessian.hi) / 2
    fine = np.isfinite(middle).all(axis=(1, 2))
    middle = np.where(fine[:, None, None], middle, np.eye(d))
    size = np.abs(middle).max(axis=(1, 2)) + 1e-300
    fine &= np.abs(np.linalg.det(middle / size[:, None, None])) > 1e-12
    middle = np.where(fine[:, None, None], middle, np.eye(d))
    Y = np.linalg.inv(middle)  # any matrix is valid; this is a good one
    step: Any = 0
    rest = as_interval(np.eye(d))
    for k in range(d):
        step = plus(step, x.at[:, None, k] * -Y[:, :, k])
        rest = rest + x.hessian[:, None, k] * -Y[:, :, k, None]
    K = mean_value(step, rest, D)
    wild = ~fine[:, None]
    return Interval(np.where(wild, -np.inf, K.lo), np.where(wild, np.inf, K.hi))


def _maps_inside(K: Interval, D: Interval) -> Array:
    """Whether K is strictly inside the box itself, not only the box rounded outward."""
    return np.asarray(((K.lo > 0.999 * D.lo) & (K.hi < 0.999 * D.hi)).all(axis=1))


def _shifted_box(e: Array, K: Interval) -> tuple[Array, Array]:
    """The box e + K, rounded outward."""
    slack = 4 * EPS * (np.abs(e) + np.abs(K.lo) + np.abs(K.hi))
    return e + K.lo - slack, e + K.hi + slack


class Verdicts(NamedTuple):
    """Of m boxes: which may hold modes and must be cut, and those that hold exactly one.

    On boxes that are `stuck` a component of the gradient varies by no more than its rounding error:
    cutting them would not help. `regions` are boxes with their margins (low, high), in which a mode
    is the only critical point, and boxes that enclose it (left, right); shape (4, k, d).
    """

    open: Array
    stuck: Array
    regions: Array


def judge(density: Density, low: Array, high: Array) -> Verdicts:
    """Judge boxes by the gradient and the Hessian of F over them and a margin around them.

    Without the margin, a mode on the border of a box would be inside none.
    """
    around = _MARGIN * (high - low)
    wide_low, wide_high = low - around, high + around
    e = low + (high - low) / 2
    near, x = density.local(wide_low, wide_high, e)
    opened, stuck = near.copy(), np.zeros(len(low), bool)
    if not near.any():
        return Verdicts(opened, stuck, np.empty((4, 0, density.dim)))
    inner = offsets(low[near], high[near], e[near])
    outer = offsets(wide_low[near], wide_high[near], e[near])
    g = mean_value(x.at, x.hessian, inner)
    g = Interval(np.maximum(g.lo, x.slope.lo), np.minimum(g.hi, x.slope.hi))
    curve = smallest_eigenvalue(x.hessian, density.scale, np.zeros(inner.lo.shape, dtype=bool))
    K = krawczyk(x, outer)
    # no zero of the gradient, or psi bends up in some direction everywhere
    none = ((g.lo > 0) | (g.hi < 0)).any(axis=1) | (curve.hi < 0)
    none |= ((K.hi < inner.lo) | (K.lo > inner.hi)).any(axis=1)
    one = (curve.lo > 0) & _maps_inside(K, outer) & ~none
    opened[near] = ~(none | one)
    stuck[near] = (g.hi - g.lo <= 4 * (x.at.hi - x.at.lo)).any(axis=1)
    found = np.flatnonzero(near)[one]
    regions = np.stack([wide_low[found], wide_high[found], *_shifted_box(e[found], K[one])])
    return Verdicts(opened, stuck, regions)


def _locate(density: Density, left: Array, right: Array) -> tuple[Array, Array]:
    """Small boxes that hold the only critical point of larger ones.

    Newton's method finds the point. A small box about it that Krawczyk's operator maps into itself
    holds a critical point, which is the only one of the large box.
    """
    e = left + (right - left) / 2
    for _ in range(_NEWTON):
        near, x = density.local(e, e, e)
        g, H = ((y.lo + y.hi) / 2 for y in (x.at, x.hessian))
        fine = np.isfinite(H).all(axis=(1, 2)) & (np.abs(np.linalg.det(H)) > 0)
        step = np.linalg.solve(np.where(fine[:, None, None], H, np.eye(H.shape[1])), g[:, :, None])
        rows, before = np.flatnonzero(near)[fine], e.copy()
        e[rows] = np.clip(e[rows] - step[fine, :, 0], left[rows], right[rows])
        if np.allclose(e, before, rtol=4 * EPS, atol=0.0):
            break
    left, right, todo = left.copy(), right.copy(), np.arange(len(left))
    for power in range(13, 0, -1):
        half = 0.5 * 10.0**-power * (right[todo] - left[todo])
        a, b = np.maximum(e[todo] - half, left[todo]), np.minimum(e[todo] + half, right[todo])
        near, x = density.local(a, b, e[todo])
        D = offsets(a[near], b[near], e[todo][near])
        K = krawczyk(x, D)
        inside = _maps_inside(K, D)
        rows = todo[np.flatnonzero(near)[inside]]
        left[rows], right[rows] = _shifted_box(e[rows], K[inside])
        todo = np.setdiff1d(todo, rows)
        if not todo.size:
            break
    return left, right


# --- the search -----------------------------------------------------------------------------------


class FoundModes(NamedTuple):
    """Points with exactly one mode within `radius` of each, and boxes that may hold others."""

    points: Array
    radius: Array
    undecided: list[tuple[Array, Array]]
    n_boxes: int


def find_modes(terms: Terms, level: float, tol: float, max_boxes: int) -> FoundModes:
    """Find all modes of -F = sum_i a_i k(x_i, .), with proof; see `all_modes`.

    `terms` have positive coefficients, and a decreasing profile of one distance.
    """
    with np.errstate(all="ignore"):
        low, high, widest = _search_box(terms)
        density = Density(terms, widest)
        size = float(((high - low) * density.scale).max())
        search = ModeSearch(density, level, size, tol, np.empty((4, 0, density.dim)))
        peaks = np.empty((0, density.dim))
        if any(terms.program.cusps):
            cusps = decide_cusps(density, tol * size)
            peaks, search.clear = cusps.modes, (cusps.low, cusps.high)
            search.undecided.append(cusps.small)
        search.run(low, high, max_boxes)
        left, right = search.modes()
    middle = np.clip(left + (right - left) / 2, left, right)
    corner = np.linalg.norm(np.maximum(right - middle, middle - left), axis=1)
    radius = np.concatenate([np.zeros(len(peaks)), up(corner)])
    points = np.concatenate([peaks, middle])
    return FoundModes(points, radius, search.undecided, search.n_boxes)


def _search_box(terms: Terms) -> tuple[Array, Array, float]:
    """The box around the points, with a margin, and the largest squared distance in its double."""
    scale = np.sqrt(np.diag(terms.metrics[0][0]))
    low, high = terms.points.min(axis=0), terms.points.max(axis=0)
    top, slope = (x[0] for x in profile_at(terms.program.profile, np.zeros(1), 1))
    length = float(np.sqrt(top / abs(slope) / 2))
    # points may be far nearer to each other than the kernel is wide: rounding needs room, too
    margin = (0.02 * float(((high - low) * scale).max()) + 1e-3 * length) / scale
    low, high = low - margin, high + margin
    wide = (high - low) * 0.5
    u = terms.variable(0, (low - wide)[None], (high + wide)[None], 0)[0]
    return low, high, float(u.hi.max())


@dataclass
class ModeSearch:
    """Branch and bound: boxes are dropped, found to hold one mode, or cut."""

    density: Density
    level: float
    widest: float  # the width of the searched box, in scaled coordinates
    tol: float  # boxes narrower than this part of it are not cut
    regions: Array  # those of `Verdicts`
    n_boxes: int = 0
    clear: tuple[Array, Array] | None = None  # boxes whose modes are known from elsewhere
    small: list[Boxes] = field(default_factory=list)
    undecided: list[tuple[Array, Array]] = field(default_factory=list)

    def run(self, low: Array, high: Array, max_boxes: int) -> None:
        """Search a box; what is left goes to `undecided`."""
        root, scale = Boxes.root(low, high), self.density.scale
        left, self.n_boxes = branch_and_bound(
            root, self._examined, scale, max_boxes=max_boxes, batch=_BATCH
        )
        self.undecided.append((left.low, left.high))
        if self.small:
            self.undecided.append(_merge_touching(Boxes.joined(self.small), scale))

    def _examined(self, boxes: Boxes) -> Boxes:
        """Boxes that may hold modes and are worth cutting; others are dropped or set aside."""
        keep: Array = ~self._known(boxes.low, boxes.high)
        if self.level > 0:
            keep[keep] = self.density.highest(boxes.low[keep], boxes.high[keep]) >= self.level
        boxes = boxes[keep]
        if not len(boxes):
            return boxes
        v = judge(self.density, boxes.low, boxes.high)
        self.regions = np.concatenate([self.regions, v.regions], axis=1)
        boxes, stuck = boxes[v.open], v.stuck[v.open]
        size = self._size(boxes.low, boxes.high)
        fine = (size <= self.tol * self.widest) | (stuck & (size <= _SMALL * self.widest))
        self.small.append(boxes[fine])
        return boxes[~fine]

    def _known(self, low: Array, high: Array) -> Array:
        """Boxes inside a region whose only critical point is a mode that was found."""
        lows, highs = self.regions[:2]
        if self.clear is not None:
            lows, highs = (np.concatenate(x) for x in zip((lows, highs), self.clear, strict=True))
        inside = np.zeros(len(low), dtype=bool)
        for rows in pieces(len(low), 256):
            within = (low[rows, None] >= lows) & (high[rows, None] <= highs)
            inside[rows] = np.any(np.all(within, axis=2), axis=1)
        return inside

    def _size(self, low: Array, high: Array) -> Array:
        return np.asarray(((high - low) * self.density.scale).max(axis=1, initial=0.0))

    def modes(self) -> tuple[Array, Array]:
        """Small boxes around modes; those that may coincide, or are not located, are undecided."""
        lows, highs, left, right = self.regions
        if not len(left):
            return left, right
        left, right = _locate(self.density, left, right)
        keep = self._size(left, right) <= _LOCATED * self.widest
        self.undecided.append((lows[~keep], highs[~keep]))
        for i in range(len(left)):
            if not keep[i]:
                continue
            touch = keep & ((left <= right[i]) & (right >= left[i])).all(axis=1)
            touch[: i + 1] = False
            same = ((left >= lows[i]) & (right <= highs[i])).all(axis=1)
            same |= ((left[i] >= lows) & (right[i] <= highs)).all(axis=1)
            keep &= ~touch
            self.undecided.append((lows[touch & ~same], highs[touch & ~same]))
        return left[keep], right[keep]


def _merge_touching(boxes: Boxes, scale: Array) -> tuple[Array, Array]:
    """The hulls of groups of small boxes that touch, or nearly do."""
    low, high = boxes.low, boxes.high
    if len(low) < 2:
        return low, high
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    width = float(((high - low) * scale).max())
    tree = cKDTree(boxes.centres * scale)
    i, j = tree.query_pairs(1.01 * width, p=np.inf, output_type="ndarray").T
    graph = coo_array((np.ones(len(i)), (i, j)), shape=(len(low), len(low)))
    count, group = connected_components(graph, directed=False)
    lows = np.full((count, low.shape[1]), np.inf)
    highs = -lows
    np.minimum.at(lows, group, low)
    np.maximum.at(highs, group, high)
    return lows, highs
