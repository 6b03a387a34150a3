"""Lower bounds of a pre-image objective over many boxes at once, and descent inside a box."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import pieces
from mercer.rigor._enclosure import Enclosure, Terms, radial_slopes
from mercer.rigor._intervals import EPS, Interval

_TILE = 1 << 15  # boxes times points that are worked on at once


@dataclass(frozen=True)
class Expansion:
    """The objective on m boxes, expanded at a point e of each.

    F(x) >= value + gradient . (x - e) + (x - e)' H (x - e) / 2 for some H between the bounds; terms
    without a bounded second derivative on the box are in `value` by their range.
    """

    value: Interval  # (m,)
    at_point: Interval  # F(e), (m,)
    gradient: Interval  # (m, k), of the smooth terms at e
    hessian: Interval  # (m, k, k)
    slope: Interval  # (m, k): the gradient of all terms over the box


@dataclass(frozen=True, eq=False)
class BoxObjective:
    """F(x) = k(x, x)/2 - psi(x), or -psi(x), for one element, with k free axes."""

    groups: tuple[Terms, ...]  # the terms of psi, and k(x, x)/2 as one more term
    scale: Array  # (k,): lengths of the axes in the kernel's metric are multiplied by these

    @property
    def axes(self) -> list[int]:
        return list(self.groups[0].axes)

    @property
    def has_cusps(self) -> bool:
        """Whether the profile has an infinite slope at distance zero, and is one of a distance."""
        main = self.groups[0]
        return main.is_radial and main.program.cusps == (True,)

    def values(self, low: Array, high: Array) -> Interval:
        """The range of F over each box, term by term."""
        out = Interval(np.empty(len(low)), np.empty(len(low)))
        for rows in pieces(len(low), self._batch):
            found: Any = 0.0
            for terms in self.groups:
                found = terms.weighed(terms.at(low[rows], high[rows], 0).value) + found
            out.lo[rows], out.hi[rows] = found.lo, found.hi
        return out

    def jet(self, X: Array) -> tuple[Array, Array, Array]:
        """F with gradient and Hessian at points, to rounding; 0 for what is not finite."""
        x = self.expand(X, X, X)
        value, g, H = ((y.lo + y.hi) / 2 for y in (x.at_point, x.gradient, x.hessian))
        H = np.nan_to_num(H, posinf=0.0, neginf=0.0) / np.outer(self.scale, self.scale)
        return value, np.nan_to_num(g, posinf=0.0, neginf=0.0) / self.scale, H

    def expand(self, low: Array, high: Array, e: Array, cusp: Array | None = None) -> Expansion:
        """Expand at e on the hull of e and the box; terms number `cusp` (or -1) are left out."""
        parts = []
        for rows in pieces(len(low), self._batch):
            left_out = None if cusp is None else cusp[rows]
            a = low[rows]
            b, c = (a, a) if low is high is e else (high[rows], e[rows])
            found = [_expand_terms(t, a, b, c, left_out) for t in self.groups]
            parts.append([functools.reduce(operator.add, c) for c in zip(*found, strict=True)])
        return Expansion(*(Interval.joined(column) for column in zip(*parts, strict=True)))

    def lower(
        self, low: Array, high: Array, e: Array, cusp: Array | None = None
    ) -> tuple[Array, Expansion]:
        """Lower bounds of F over the boxes by second-order expansion at e."""
        x = self.expand(low, high, e, cusp)
        axes, s = self.axes, self.scale
        left = (low[:, axes] - e[:, axes]) * s
        right = (high[:, axes] - e[:, axes]) * s
        slack = 4 * EPS * (np.abs(left) + np.abs(right))
        left, right = left - slack, right + slack
        g = (x.gradient.lo + x.gradient.hi) / 2 / s
        g_off = (x.gradient.hi - x.gradient.lo) / 2 / s + 4 * EPS * np.abs(g)
        curve = smallest_eigenvalue(x.hessian, s, (high == low)[:, axes]).lo
        far = np.maximum(np.abs(left), np.abs(right))
        smooth = _least_quadratic(g, curve[:, None], left, right) - g_off * far
        bound = x.value.lo + np.sum(smooth - 16 * EPS * np.abs(smooth), axis=1)
        mean = np.where(far > 0, x.slope.size / s * far, 0.0)
        bound = np.fmax(bound, x.at_point.lo - np.sum(mean, axis=1) * (1 + 16 * EPS))
        if cusp is not None and (cusp >= 0).any():
            rows = np.flatnonzero(cusp >= 0)
            g_norm = np.linalg.norm(np.abs(g) + g_off, axis=1) * (1 + 16 * EPS)
            rho = np.linalg.norm(far, axis=1) * (1 + 16 * EPS)
            main = self.groups[0]
            flat = radial_slopes(main, s, rho[rows])[0]
            rise = np.nan_to_num(main.coef[cusp[rows]] * flat, posinf=0.0) - g_norm[rows]
            bend = np.minimum(curve[rows], 0.0) / 2 * rho[rows] ** 2
            sharp = x.value.lo[rows] + np.minimum(rise * rho[rows] * (1 - 16 * EPS) + bend, 0.0)
            # for a fall at e the least is at rho or, the sum being concave, at 0
            bound[rows] = np.fmax(bound[rows], sharp)
        return np.where(np.isnan(bound), -np.inf, bound), x

    @property
    def _batch(self) -> int:
        return max(1, _TILE // len(self.groups[0].coef))


def _expand_terms(
    t: Terms, low: Array, high: Array, e: Array, cusp: Array | None
) -> tuple[Any, ...]:
    """What one group of terms adds to an `Expansion`."""
    hull = t.at(np.minimum(low, e), np.maximum(high, e), 2)
    point = e is low and e is high
    thin = hull if point else t.at(e, e, 1)
    mask, rough = _smooth(hull, thin, cusp)
    value = t.weighed(thin.value, mask)
    if rough is not None:
        value = value + t.weighed(rough, ~mask)
    gradient, slope = t.gradient(thin, mask), t.gradient(hull)
    return value, t.weighed(thin.value), gradient, t.hessian(hull, mask), slope


def _smooth(hull: Enclosure, thin: Enclosure, cusp: Array | None) -> tuple[Any, Interval | None]:
    """Which terms have bounded second derivatives; the ranges of the others, None if all have."""
    mask = np.ones(np.shape(hull.value.lo), dtype=bool)
    for entry in (hull.second or {}).values():
        if isinstance(entry, Interval):
            mask &= np.isfinite(entry.lo) & np.isfinite(entry.hi)
    rough = hull.value
    if cusp is not None:
        own = np.arange(mask.shape[1]) == cusp[:, None]
        mask &= ~own  # the cusp itself: k(0) here, and what it rises by is added outside
        rough = Interval(
            np.where(own, thin.value.lo, rough.lo), np.where(own, thin.value.hi, rough.hi)
        )
    return (None, None) if mask.all() else (mask, rough)


def smallest_eigenvalue(H: Interval, scale: Array, thin: Array) -> Interval:
    """Bounds on the smallest eigenvalue of every symmetric matrix between H.lo and H.hi.

    In scaled coordinates, without the axes along which the box is thin.
    """
    outer = np.outer(scale, scale)
    middle, radius = (H.lo + H.hi) / 2 / outer, (H.hi - H.lo) / 2 / outer
    finite = np.isfinite(middle).all(axis=(1, 2)) & np.isfinite(radius).all(axis=(1, 2))
    keep = ~thin[:, :, None] & ~thin[:, None, :]
    middle = np.where(keep & finite[:, None, None], middle, 0.0)
    radius = np.where(keep & finite[:, None, None], radius, 0.0)
    size = np.abs(middle).sum(axis=(1, 2))
    diagonal = np.arange(len(scale))
    middle[:, diagonal, diagonal] += np.where(thin, size[:, None], 0.0)
    least = np.linalg.eigvalsh(middle)[:, 0]
    spread = np.linalg.eigvalsh(radius)[:, -1]  # of a nonnegative matrix: its norm
    off = np.where(finite, spread + 64 * EPS * (size + radius.sum(axis=(1, 2))), np.inf)
    return Interval(least - off, least + off)


def _least_quadratic(g: Array, c: Array, left: Array, right: Array) -> Array:
    """The least of g t + c t^2 / 2 for left <= t <= right."""

    def at(t: Array) -> Array:
        return np.where(t == 0, 0.0, g * t + c / 2 * t * t)

    ends = np.minimum(at(left), at(right))
    inside = np.clip(-g / np.where(c > 0, c, 1.0), left, right)
    return np.where(c > 0, np.minimum(ends, at(inside)), ends)
