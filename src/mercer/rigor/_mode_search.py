"""All modes of a positive kernel sum, by branch and bound over density."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import evaluate
from mercer.rigor._box_bounds import smallest_eigenvalue
from mercer.rigor._branch_and_bound import Boxes, branch_and_bound
from mercer.rigor._enclosure import Terms
from mercer.rigor._intervals import Interval, as_interval, mean_value, offsets, plus, up
from mercer.rigor._mode_cusps import decide_cusps
from mercer.rigor._mode_ranges import Density, Local

_BATCH = 2048  # boxes that are looked at in one round
_MARGIN = 0.125  # a box is judged with this part of its width around it
_SMALL = 1e-4  # of the searched box: boxes that rounding may stop from being cut
_REFINE, _NEWTON = 100, 30  # steps that locate a mode
_LOCATED = 1e-8  # of the searched box: a mode in a larger box is undecided
_EPS = float(np.finfo(float).eps)


def _bends_up(x: Local, scale: Array) -> Array:
    """Boxes with a direction v in which F bends down everywhere: psi has no maximum there."""
    middle = np.nan_to_num((x.hessian.lo + x.hessian.hi) / 2) / np.outer(scale, scale)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    v = np.linalg.eigh(middle)[1][:, :, 0] / scale
    terms = x.hessian * (v[:, :, None] * v[:, None, :])
    total = functools.reduce(
        operator.add, (terms[:, i, j] for i, j in np.ndindex(middle.shape[1:]))
    )
    size = np.einsum("mi,mij,mj->m", np.abs(v), x.hessian.size, np.abs(v))
    return np.asarray(total.known().hi + 8 * _EPS * size < 0)


def krawczyk(x: Local, D: Interval) -> Interval:
    """Where in e + D critical points can be, relative to e: -Y g(e) + (I - Y H) D."""
    d = D.lo.shape[1]
    middle = (x.hessian.lo + x.hessian.hi) / 2
    fine = np.isfinite(middle).all(axis=(1, 2))
    middle = np.where(fine[:, None, None], middle, np.eye(d))
    size = np.abs(middle).max(axis=(1, 2)) + 1e-300
    fine &= np.abs(np.linalg.det(middle / size[:, None, None])) > 1e-12
    middle = np.where(fine[:, None, None], middle, np.eye(d))
    Y = np.linalg.inv(middle)  # any matrix is right; this one is good
    step: Any = 0
    rest = as_interval(np.eye(d))
    for k in range(d):
        step = plus(step, x.at[:, None, k] * -Y[:, :, k])
        rest = rest + x.hessian[:, None, k] * -Y[:, :, k, None]
    K = mean_value(step, rest, D)
    wild = ~fine[:, None]
    return Interval(np.where(wild, -np.inf, K.lo), np.where(wild, np.inf, K.hi))


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Of m boxes: which may hold modes and must be cut, and which hold exactly one.

    `low` and `high` are the boxes with their margins, in which the mode is the only critical point;
    `left` and `right` enclose it. On boxes that are `stuck` a part of the gradient varies by no
    more than what it is rounded by: to cut them would not help.
    """

    open: Array
    found: Array
    stuck: Array
    low: Array
    high: Array
    left: Array
    right: Array


def judge(density: Density, low: Array, high: Array, margin: float = _MARGIN) -> Verdicts:
    """Judge boxes by the gradient and the Hessian of F over them and a margin around them.

    A margin, because a mode on the border of a box would be inside of none.
    """
    around = margin * (high - low)
    wide_low, wide_high = low - around, high + around
    e = low + (high - low) / 2
    near, x = density.local(wide_low, wide_high, e)
    opened, found, stuck = near.copy(), np.zeros(len(low), bool), np.zeros(len(low), bool)
    left, right = wide_low.copy(), wide_high.copy()
    if near.any():
        rows = np.flatnonzero(near)
        inner = offsets(low[rows], high[rows], e[rows])
        outer = offsets(wide_low[rows], wide_high[rows], e[rows])
        g = mean_value(x.at, x.hessian, inner)
        g = Interval(np.maximum(g.lo, x.slope.lo), np.minimum(g.hi, x.slope.hi))
        none = ((g.lo > 0) | (g.hi < 0)).any(axis=1) | _bends_up(x, density.scale)
        K = krawczyk(x, outer)
        none |= ((K.hi < inner.lo) | (K.lo > inner.hi)).any(axis=1)
        thin = np.zeros(inner.lo.shape, dtype=bool)
        definite = smallest_eigenvalue(x.hessian, density.scale, thin) > 0
        # strictly inside of the box as it is, not as it was rounded outward
        inside = ((K.lo > 0.999 * outer.lo) & (K.hi < 0.999 * outer.hi)).all(axis=1)
        one = definite & inside & ~none
        left[rows[one]], right[rows[one]] = _placed(e[rows[one]], K[one])
        found[rows], opened[rows] = one, ~(none | one)
        stuck[rows] = (g.hi - g.lo <= 4 * (x.at.hi - x.at.lo)).any(axis=1)
    return Verdicts(opened, found, stuck, wide_low, wide_high, left, right)


def _narrowed(density: Density, left: Array, right: Array) -> tuple[Array, Array]:
    """What Krawczyk's operator leaves of boxes that are known to hold one critical point."""
    e = left + (right - left) / 2
    near, x = density.local(left, right, e)
    K = krawczyk(x, offsets(left[near], right[near], e[near]))
    a, b = left.copy(), right.copy()
    low, high = _placed(e[near], K)
    a[near], b[near] = np.maximum(left[near], low), np.minimum(right[near], high)
    return a, b


def _polished(density: Density, left: Array, right: Array) -> tuple[Array, Array]:
    """Small boxes that hold the critical point of boxes that Krawczyk's operator does not narrow.

    Newton's method finds the point; a small box about it that the operator maps into itself holds
    a critical point, which is the only one of the large box.
    """
    e = left + (right - left) / 2
    for _ in range(_NEWTON):
        near, x = density.local(e, e, e)
        g, H = ((y.lo + y.hi) / 2 for y in (x.at, x.hessian))
        fine = np.isfinite(H).all(axis=(1, 2)) & (np.abs(np.linalg.det(H)) > 0)
        step = np.linalg.solve(np.where(fine[:, None, None], H, np.eye(H.shape[1])), g[:, :, None])
        rows = np.flatnonzero(near)[fine]
        e[rows] = np.clip(e[rows] - step[fine, :, 0], left[rows], right[rows])
    left, right, todo = left.copy(), right.copy(), np.arange(len(left))
    for power in range(13, 0, -1):
        if not todo.size:
            break
        half = 0.5 * 10.0**-power * (right[todo] - left[todo])
        a, b = np.maximum(e[todo] - half, left[todo]), np.minimum(e[todo] + half, right[todo])
        near, x = density.local(a, b, e[todo])
        D = offsets(a[near], b[near], e[todo][near])
        K = krawczyk(x, D)
        inside = ((K.lo > 0.999 * D.lo) & (K.hi < 0.999 * D.hi)).all(axis=1)
        rows = todo[np.flatnonzero(near)[inside]]
        left[rows], right[rows] = _placed(e[rows], K[inside])
        todo = np.setdiff1d(todo, rows)
    return left, right


def _placed(e: Array, K: Interval) -> tuple[Array, Array]:
    """The box e + K, rounded outward."""
    slack = 4 * _EPS * (np.abs(e) + np.abs(K.lo) + np.abs(K.hi))
    return e + K.lo - slack, e + K.hi + slack


# --- the search -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FoundModes:
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
        low, high, widest = _root(terms)
        density = Density(terms, widest)
        size = float(((high - low) * density.scale).max())
        search = ModeSearch(density, level, size, tol)
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


def _root(terms: Terms) -> tuple[Array, Array, float]:
    """The box around the points, with a margin, and the largest squared distance in twice of it."""
    scale = np.sqrt(np.diag(terms.metrics[0][0]))
    low, high = terms.points.min(axis=0), terms.points.max(axis=0)
    jet = evaluate(terms.program.profile, [np.zeros(1)], order=1)
    length = float(np.sqrt(np.ravel(jet.value)[0] / abs(np.ravel(jet.first[0])[0]) / 2))
    # points may be far nearer to each other than the kernel is wide: rounding needs room, too
    margin = (0.02 * float(((high - low) * scale).max()) + 1e-3 * length) / scale
    low, high = low - margin, high + margin
    wide = (high - low) * 0.5
    u = terms.variable(0, (low - wide)[None], (high + wide)[None], 0)[0]
    return low, high, float(u.hi.max())


@dataclass
class ModeSearch:
    """Branch and bound: boxes are dropped, found to hold one mode, or cut.

    Attributes
    ----------
    density : Density
    level : float
    widest : float
        The width of the searched box, in scaled coordinates.
    tol : float
        Boxes narrower than this part of it are not cut.
    """

    density: Density
    level: float
    widest: float
    tol: float
    n_boxes: int = 0
    regions: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)
    clear: tuple[Array, Array] | None = None  # boxes whose modes are known from elsewhere
    small: list[Boxes] = field(default_factory=list)
    undecided: list[tuple[Array, Array]] = field(default_factory=list)

    def run(self, low: Array, high: Array, max_boxes: int) -> None:
        """Search a box; what is left goes to `undecided`."""
        left, self.n_boxes = branch_and_bound(
            Boxes.root(low, high),
            self._examined,
            self.density.scale,
            max_boxes=max_boxes,
            batch=_BATCH,
        )
        self.undecided.append((left.low, left.high))
        if self.small:
            self.undecided.append(_put_together(Boxes.joined(self.small), self.density.scale))

    def _examined(self, boxes: Boxes) -> Boxes:
        """Boxes that may hold modes and are worth cutting; others are dropped or set aside."""
        keep: Array = ~self._known(boxes.low, boxes.high)
        if self.level > 0:
            keep[keep] = self.density.highest(boxes.low[keep], boxes.high[keep]) >= self.level
        boxes = boxes[keep]
        if not len(boxes):
            return boxes
        v = judge(self.density, boxes.low, boxes.high)
        for i in np.flatnonzero(v.found):
            self._take(v.low[i], v.high[i], v.left[i], v.right[i])
        boxes, stuck = boxes[v.open], v.stuck[v.open]
        size = self._size(boxes.low, boxes.high)
        fine = (size <= self.tol * self.widest) | (stuck & (size <= _SMALL * self.widest))
        self.small.append(boxes[fine])
        return boxes[~fine]

    def _known(self, low: Array, high: Array) -> Array:
        """Boxes inside of a region whose only critical point is a mode that was found."""
        lows = [r[0][None] for r in self.regions]
        highs = [r[1][None] for r in self.regions]
        if self.clear is not None:
            lows, highs = [*lows, self.clear[0]], [*highs, self.clear[1]]
        inside = np.zeros(len(low), dtype=bool)
        if lows:
            every = np.concatenate(lows), np.concatenate(highs)
            for i in range(0, len(low), 256):
                rows = slice(i, i + 256)
                within = (low[rows, None] >= every[0]) & (high[rows, None] <= every[1])
                inside[rows] = np.any(np.all(within, axis=2), axis=1)
        return inside

    def _take(self, low: Array, high: Array, left: Array, right: Array) -> None:
        """Keep a region, unless its mode is known to be that of another."""
        if self.regions:
            lows, highs, lefts, rights = (np.array(x) for x in zip(*self.regions, strict=True))
            same = np.all((left >= lows) & (right <= highs), axis=1)
            same = same | np.all((lefts >= low) & (rights <= high), axis=1)
            if same.any():
                return
        self.regions.append((low, high, left, right))

    def _size(self, low: Array, high: Array) -> Array:
        return np.asarray(((high - low) * self.density.scale).max(axis=1, initial=0.0))

    def modes(self) -> tuple[Array, Array]:
        """Small boxes around modes; those that may be one, or are not located, are undecided."""
        d = self.density.dim
        if not self.regions:
            return np.empty((0, d)), np.empty((0, d))
        lows, highs, left, right = (np.array(x) for x in zip(*self.regions, strict=True))
        for _ in range(_REFINE):
            width = right - left
            left, right = _narrowed(self.density, left, right)
            if not (right - left < 0.98 * width).any():
                break
        far = np.flatnonzero(self._size(left, right) > _LOCATED * self.widest)
        if far.size:
            left[far], right[far] = _polished(self.density, left[far], right[far])
        keep = self._size(left, right) <= _LOCATED * self.widest
        self.undecided.append((lows[~keep], highs[~keep]))
        for i in range(len(left)):
            touch = ((left <= right[i]) & (right >= left[i])).all(axis=1) & keep
            touch[: i + 1] = False
            for j in np.flatnonzero(touch):
                one = _within(left[j], right[j], lows[i], highs[i]) or _within(
                    left[i], right[i], lows[j], highs[j]
                )
                keep[j] = False
                if not one:  # pragma: no cover - enclosures are far smaller than regions
                    self.undecided.append((lows[j : j + 1], highs[j : j + 1]))
        return left[keep], right[keep]


def _within(left: Array, right: Array, low: Array, high: Array) -> bool:
    return bool(((left >= low) & (right <= high)).all())


def _put_together(boxes: Boxes, scale: Array) -> tuple[Array, Array]:
    """The hulls of groups of small boxes that touch, or nearly do."""
    low, high = boxes.low, boxes.high
    if len(low) < 2:
        return low, high
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    width = float(((high - low) * scale).max())
    tree = cKDTree((low + (high - low) / 2) * scale)
    i, j = tree.query_pairs(1.01 * width, p=np.inf, output_type="ndarray").T
    graph = coo_array((np.ones(len(i)), (i, j)), shape=(len(low), len(low)))
    count, group = connected_components(graph, directed=False)
    lows = np.full((count, low.shape[1]), np.inf)
    highs = -lows
    np.minimum.at(lows, group, low)
    np.maximum.at(highs, group, high)
    return lows, highs
