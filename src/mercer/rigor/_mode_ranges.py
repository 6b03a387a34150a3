"""Ranges of the gradient and Hessian of a positive kernel sum over boxes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer._array import Array
from mercer.rigor._enclosure import Terms
from mercer.rigor._intervals import Interval, as_interval, down, enclose, up
from mercer.rigor._mode_reach import far_reach

_TILE = 64  # boxes that share their near points
_PAIRS = 1 << 15  # boxes times points that are worked on at once


@dataclass(frozen=True, eq=False)
class Local:
    """Ranges for F = -psi on m boxes: gradient at e, gradient and Hessian over the boxes."""

    at: Interval  # (m, d)
    slope: Interval  # (m, d)
    hessian: Interval  # (m, d, d)


@dataclass(frozen=True)
class Cutoff:
    """A squared distance beyond which terms hardly count, and bounds on what they add.

    Per unit of weight, for values, and for entries of gradient and Hessian in scaled coordinates.
    """

    squared: float
    value: float
    slope: float
    bend: float


@dataclass(frozen=True, eq=False)
class Boxes:
    """F = -psi = -sum_i a_i k(x_i, .) with a_i > 0, k a decreasing profile of one distance.

    Attributes
    ----------
    terms : Terms
    widest : float
        Squared distances between points of the search are at most this.
    """

    terms: Terms
    widest: float

    @property
    def dim(self) -> int:
        """The number of coordinates."""
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
        """Where terms hardly count any more, for all of them together beside the smallest one."""
        profile, a = self.terms.program.profile, self.terms.coef
        edges = self.widest * np.logspace(-8.0, 0.0, 161)
        jet = enclose(profile, [Interval(edges, np.full(161, self.widest))], 2)
        value, first, second = (
            np.broadcast_to(as_interval(x).known().size, edges.shape)
            for x in (jet.value, jet.first[0], jet.second[0][0])
        )
        slope = up(2.0 * np.sqrt(self.widest) * first)
        bend = up(up(2.0 * first) + up(4.0 * self.widest * second))
        start = float(np.ravel(as_interval(enclose(profile, [_ZERO]).value).lo)[0])
        half = edges[min(int(np.count_nonzero(value > start / 2)), len(edges) - 1)]
        fine = bend * a.sum() <= 1e-14 * a.min() * start / half  # a bend of the usual size
        if not fine.any():
            return Cutoff(np.inf, 0.0, 0.0, 0.0)
        i = int(np.argmax(fine))
        return Cutoff(float(edges[i]), float(value[i]), float(slope[i]), float(bend[i]))

    def highest(self, low: Array, high: Array) -> Array:
        """An upper bound of psi over each box; -inf on boxes that are out of reach."""
        bound = np.full(len(low), -np.inf)
        for i in range(0, len(low), _TILE):
            terms, dropped = self._near(
                low[i : i + _TILE].min(axis=0), high[i : i + _TILE].max(axis=0)
            )
            if terms is None:
                continue
            rest = up(dropped * self.cutoff.value)
            step = max(1, _PAIRS // len(terms.coef))
            for j in range(i, min(i + _TILE, len(low)), step):
                box = slice(j, min(j + step, i + _TILE))
                found = terms.weighed(terms.at(low[box], high[box], 0).value)
                bound[box] = up(rest - found.lo)
        return bound

    def local(self, low: Array, high: Array, e: Array) -> tuple[Array, Local]:
        """Which boxes are in reach of a point, and the ranges on those; e is inside the boxes."""
        near, parts = [], []
        for i in range(0, len(low), _TILE):
            rows = slice(i, i + _TILE)
            terms, dropped = self._near(low[rows].min(axis=0), high[rows].max(axis=0))
            if terms is None:
                near.append(np.zeros(len(low[rows]), dtype=bool))
                continue
            step = max(1, _PAIRS // len(terms.coef))
            for j in range(i, min(i + _TILE, len(low)), step):
                box = slice(j, min(j + step, i + _TILE, len(low)))
                ok, part = self._ranges(terms, dropped, low[box], high[box], e[box])
                near.append(ok)
                parts.append(part)
        return np.concatenate(near), _stacked(parts, self.dim)

    def _near(self, low: Array, high: Array) -> tuple[Terms | None, float]:
        """The terms that count on a box, None if it is out of reach; the weight of the others."""
        t = self.terms
        u = _squared(t, low[None], high[None]).lo[0]
        if u.min() > self.reach:
            return None, 0.0
        keep = u <= self.cutoff.squared
        if keep.all():
            return t, 0.0
        few = Terms(t.program, t.points[keep], t.coef[keep], t.weight[keep], t.axes)
        return few, float(t.weight[~keep].sum()) * (1 + 1e-9)

    def _ranges(
        self, t: Terms, dropped: float, low: Array, high: Array, e: Array
    ) -> tuple[Array, Local]:
        nearest = _squared(t, low, high).lo.min(axis=1)
        ok = nearest <= self.reach
        low, high, e = low[ok], high[ok], e[ok]
        if nearest[ok].min(initial=np.inf) > 0.0:
            t = _Apart(t.program, t.points, t.coef, t.weight, t.axes)
        hull, thin = t.at(low, high, 2), t.at(e, e, 1)
        d, second = self.dim, hull.second or {}
        at = columns([t.weighed(x) for x in thin.first], len(low))
        slope = columns([t.weighed(x) for x in hull.first], len(low))
        entries = [t.weighed(second[min(i, j), max(i, j)]) for i in range(d) for j in range(d)]
        flat = columns(entries, len(low))
        off = up(dropped * self.cutoff.slope * self.scale)
        bend = up(dropped * self.cutoff.bend * np.outer(self.scale, self.scale)) * (1 + 1e-9)
        H = flat.lo.reshape(-1, d, d) - bend, flat.hi.reshape(-1, d, d) + bend
        at, slope = (Interval(x.lo - off, x.hi + off) for x in (at, slope))
        return ok, Local(at, slope, Interval(down(H[0]), up(H[1])))


class _Apart(Terms):
    """Terms on boxes without points, where the profile need not be written in the distance."""

    radial = None


_ZERO = Interval(np.zeros(1), np.zeros(1))


def _squared(t: Terms, low: Array, high: Array) -> Interval:
    """Squared distances between boxes and points, (m, n)."""
    return t._variable(0, low, high, 0)[0]


def columns(parts: list[Interval], rows: int) -> Interval:
    """Intervals of shape (rows,) side by side."""
    lo = [np.broadcast_to(p.lo, (rows,)) for p in parts]
    hi = [np.broadcast_to(p.hi, (rows,)) for p in parts]
    return Interval(np.stack(lo, axis=1), np.stack(hi, axis=1))


def _stacked(parts: list[Local], d: int) -> Local:
    def joined(name: str, shape: tuple[int, ...]) -> Interval:
        lo = [np.empty((0, *shape))] + [getattr(p, name).lo for p in parts]
        hi = [np.empty((0, *shape))] + [getattr(p, name).hi for p in parts]
        return Interval(np.concatenate(lo), np.concatenate(hi))

    return Local(joined("at", (d,)), joined("slope", (d,)), joined("hessian", (d, d)))
