"""Critical points of a positive kernel sum over boxes: which have none, which have one mode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.rigor._box_bounds import _smallest_eigenvalue
from mercer.rigor._intervals import Interval, as_interval, plus
from mercer.rigor._mode_ranges import Boxes, Local, columns
from mercer.rigor._mode_reach import put_together

_BATCH = 2048  # boxes that are looked at in one round
_MARGIN = 0.125  # a box is judged with this part of its width around it
_SMALL = 1e-4  # of the searched box: boxes that rounding may stop from being cut
_REFINE = 100
_EPS = float(np.finfo(float).eps)


def _about(low: Array, high: Array, e: Array) -> Interval:
    """The box relative to e, rounded outward."""
    left, right = low - e, high - e
    slack = 2 * _EPS * (np.abs(left) + np.abs(right))
    return Interval(left - slack, right + slack)


def _turned(x: Local, D: Interval) -> Interval:
    """The gradient over e + D by the mean value theorem, cut with its range term by term."""
    total: Any = x.at
    for j in range(D.lo.shape[1]):
        total = total + x.hessian[:, :, j] * D[:, None, j]
    total = total.known()
    return Interval(np.maximum(total.lo, x.slope.lo), np.minimum(total.hi, x.slope.hi))


def _bends_up(x: Local, scale: Array) -> Array:
    """Boxes with a direction v in which F bends down everywhere: psi has no maximum there."""
    middle = np.nan_to_num((x.hessian.lo + x.hessian.hi) / 2) / np.outer(scale, scale)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    v = np.linalg.eigh(middle)[1][:, :, 0] / scale
    total: Any = 0
    for i in range(v.shape[1]):
        for j in range(v.shape[1]):
            total = plus(total, x.hessian[:, i, j] * (v[:, i] * v[:, j]))
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
    parts = []
    for i in range(d):
        total: Any = 0
        for k in range(d):
            total = plus(total, x.at[:, k] * -Y[:, i, k])
        for j in range(d):
            entry: Any = as_interval(np.full(len(Y), float(i == j)))
            for k in range(d):
                entry = entry + x.hessian[:, k, j] * -Y[:, i, k]
            total = plus(total, entry * D[:, j])
        parts.append(total)
    K = columns(parts, len(Y)).known()
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


def judge(boxes: Boxes, low: Array, high: Array, margin: float = _MARGIN) -> Verdicts:
    """Judge boxes by the gradient and the Hessian of F over them and a margin around them.

    A margin, because a mode on the border of a box would be inside of none.
    """
    around = margin * (high - low)
    wide_low, wide_high = low - around, high + around
    e = low + (high - low) / 2
    near, x = boxes.local(wide_low, wide_high, e)
    opened, found, stuck = near.copy(), np.zeros(len(low), bool), np.zeros(len(low), bool)
    left, right = wide_low.copy(), wide_high.copy()
    if near.any():
        rows = np.flatnonzero(near)
        inner = _about(low[rows], high[rows], e[rows])
        outer = _about(wide_low[rows], wide_high[rows], e[rows])
        g = _turned(x, inner)
        none = ((g.lo > 0) | (g.hi < 0)).any(axis=1) | _bends_up(x, boxes.scale)
        K = krawczyk(x, outer)
        none |= ((K.hi < inner.lo) | (K.lo > inner.hi)).any(axis=1)
        thin = np.zeros(inner.lo.shape, dtype=bool)
        definite = _smallest_eigenvalue(x.hessian, boxes.scale, thin) > 0
        # strictly inside of the box as it is, not as it was rounded outward
        inside = ((K.lo > 0.999 * outer.lo) & (K.hi < 0.999 * outer.hi)).all(axis=1)
        one = definite & inside & ~none
        slack = 4 * _EPS * (np.abs(e[rows]) + np.abs(K.lo) + np.abs(K.hi))
        left[rows] = np.where(one[:, None], e[rows] + K.lo - slack, left[rows])
        right[rows] = np.where(one[:, None], e[rows] + K.hi + slack, right[rows])
        found[rows], opened[rows] = one, ~(none | one)
        stuck[rows] = (g.hi - g.lo <= 4 * (x.at.hi - x.at.lo)).any(axis=1)
    return Verdicts(opened, found, stuck, wide_low, wide_high, left, right)


def _narrowed(boxes: Boxes, left: Array, right: Array) -> tuple[Array, Array]:
    """What Krawczyk's operator leaves of boxes that are known to hold one critical point."""
    e = left + (right - left) / 2
    near, x = boxes.local(left, right, e)
    K = krawczyk(x, _about(left[near], right[near], e[near]))
    slack = 4 * _EPS * (np.abs(e[near]) + np.abs(K.lo) + np.abs(K.hi))
    a, b = left.copy(), right.copy()
    a[near] = np.maximum(left[near], e[near] + K.lo - slack)
    b[near] = np.minimum(right[near], e[near] + K.hi + slack)
    return a, b


# --- the search -----------------------------------------------------------------------------------


@dataclass
class ModeSearch:
    """Branch and bound: boxes are dropped, found to hold one mode, or cut.

    Attributes
    ----------
    boxes : Boxes
    level : float
    widest : float
        The width of the searched box, in scaled coordinates.
    tol : float
        Boxes narrower than this part of it are not cut.
    """

    boxes: Boxes
    level: float
    widest: float
    tol: float
    n_boxes: int = 0
    regions: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)
    clear: tuple[Array, Array] | None = None  # boxes whose modes are known from elsewhere
    small: list[tuple[Array, Array]] = field(default_factory=list)
    undecided: list[tuple[Array, Array]] = field(default_factory=list)

    def run(self, low: Array, high: Array, max_boxes: int) -> None:
        """Search a box; what is left goes to `undecided`."""
        low, high = low[None], high[None]
        while len(low):
            if self.n_boxes >= max_boxes:
                self.undecided.append((low, high))
                break
            now = slice(0, min(_BATCH, max_boxes - self.n_boxes))
            rest = slice(now.stop, None)
            a, b = self._round(low[now], high[now])
            low, high = np.concatenate([low[rest], a]), np.concatenate([high[rest], b])
        if self.small:
            lows, highs = (np.concatenate(x) for x in zip(*self.small, strict=True))
            self.undecided.append(put_together(lows, highs, self.boxes.scale))

    def _round(self, low: Array, high: Array) -> tuple[Array, Array]:
        self.n_boxes += len(low)
        keep: Array = ~self._known(low, high)
        if self.level > 0:
            keep[keep] = self.boxes.highest(low[keep], high[keep]) >= self.level
        low, high = low[keep], high[keep]
        if not len(low):
            return low, high
        v = judge(self.boxes, low, high)
        for i in np.flatnonzero(v.found):
            self._take(v.low[i], v.high[i], v.left[i], v.right[i])
        low, high = low[v.open], high[v.open]
        width = (high - low) * self.boxes.scale
        size = width.max(axis=1, initial=0.0)
        fine = (size <= self.tol * self.widest) | (v.stuck[v.open] & (size <= _SMALL * self.widest))
        if fine.any():
            self.small.append((low[fine], high[fine]))
        return _halved(low[~fine], high[~fine], width[~fine])

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

    def modes(self) -> tuple[Array, Array]:
        """Boxes of rounding size around each mode; modes that may be one are undecided, too."""
        d = self.boxes.dim
        if not self.regions:
            return np.empty((0, d)), np.empty((0, d))
        lows, highs, left, right = (np.array(x) for x in zip(*self.regions, strict=True))
        for _ in range(_REFINE):
            width = right - left
            left, right = _narrowed(self.boxes, left, right)
            if not (right - left < 0.98 * width).any():
                break
        keep = np.ones(len(left), dtype=bool)
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


def _halved(low: Array, high: Array, width: Array) -> tuple[Array, Array]:
    """Each box cut across its longest side, halves side by side so that tiles stay compact."""
    rows, side = np.arange(len(low)), np.argmax(width, axis=1) if len(low) else np.empty(0, int)
    middle = low[rows, side] + (high[rows, side] - low[rows, side]) / 2
    lows, highs = np.repeat(low, 2, axis=0), np.repeat(high, 2, axis=0)
    highs[2 * rows, side] = middle
    lows[2 * rows + 1, side] = middle
    return lows, highs
