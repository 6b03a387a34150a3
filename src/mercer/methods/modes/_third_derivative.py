"""How fast the Hessian of a kernel density can change near a point, by rigorous bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array
from mercer.engine import pieces
from mercer.methods.modes._density_sum import DensitySum
from mercer.rigor import third_derivative_bounds

_FINE, _EVEN = 0.005, 5000  # width and number of the cells near zero, in lengths
_FAR, _GROWING = 1e6, 2000  # the end of the others, in lengths of the even part, and their number
_BLOCK = 1 << 18
_SUMS = 1.0 + 1e-9  # rounding of sums of positive terms


@dataclass(frozen=True, eq=False)
class ThirdDerivatives:
    """Bounds on the third derivatives of the kernels of a density, on cells of distances."""

    density: DensitySum
    edges: Array  # of the cells, ascending from zero; the last cell has no end
    bounds: list[_RangeMaximum]  # one for each group of the density

    @classmethod
    def of(cls, density: DensitySum) -> ThirdDerivatives:
        even = density.length * _FINE * np.arange(_EVEN + 1)
        edges = np.concatenate([even, even[-1] * np.geomspace(1.0, _FAR, _GROWING + 1)[1:]])
        ends = np.append(edges[1:], 1e6 * edges[-1])
        bounds = [third_derivative_bounds(p.profile, edges, ends) for p in density.programs]
        return cls(density, edges, [_RangeMaximum.of(b) for b in bounds])

    def about(self, mode: Array, scale: float) -> HessianVariation:
        """As a function of the radius of a ball about one point, in units of `scale`."""
        parts = []
        for bound, Z, a in zip(self.bounds, self.density.points, self.density.coef, strict=True):
            mass = np.zeros(len(self.edges))
            for rows in pieces(len(Z), _BLOCK):
                distance = np.linalg.norm(Z[rows] - mode, axis=1)
                cell = (distance / self.edges[1]).astype(np.intp)
                far = cell >= _EVEN
                cell[far] = np.searchsorted(self.edges, distance[far], side="right") - 1
                mass += np.bincount(cell, a[rows], len(mass))
            used = np.flatnonzero(mass)
            parts.append((bound, used, mass[used] * (_SUMS / scale)))
        return HessianVariation(self.edges, parts, scale, self.density.length)


@dataclass(frozen=True, eq=False)
class HessianVariation:
    """r -> sum_i a_i sup |D^3 k| over distances within r of |z_i - mode|."""

    edges: Array
    parts: list[tuple[_RangeMaximum, Array, Array]]  # of each group: |D^3 k|, cells used, mass
    scale: float
    length: float

    def __call__(self, r: float) -> float:
        """A Lipschitz constant of the Hessian on the ball of radius r about the mode."""
        total, t = 0.0, self.edges
        slack = 1e-9  # rounding of a distance, which is at most 1e-9 of it or of a length
        for bound, cells, mass in self.parts:
            near = t[cells] * (1.0 - slack) - r - slack * self.length
            end = t[np.minimum(cells + 1, len(t) - 1)] * (1.0 + slack) + r + slack * self.length
            low = np.searchsorted(t, np.maximum(near, 0.0), side="right") - 1
            high = np.searchsorted(t, end, side="right") - 1
            high[cells == len(t) - 1] = len(t) - 1
            total += float(mass @ bound(low, high))
        return total

    def concave_radius(self, steepest: float, slope: float) -> float | None:
        """A ball on which f is strongly concave, its maximum within half the radius.

        The Hessian at the centre is at most -steepest, and the gradient there at most `slope`. On
        the ball the Hessian is at most -steepest / 2. The largest such radius up to a length; None
        where there is none.
        """
        if not steepest > 0.0:
            return None
        radii = self.length * np.geomspace(1.0, 1e-4, 60)
        low, high = 0, len(radii)  # what is asked for grows with the radius: bisect
        while low < high:
            middle = (low + high) // 2
            fine = self(radii[middle]) <= 0.5 * steepest / radii[middle]
            low, high = (low, middle) if fine else (middle + 1, high)
        if low == len(radii) or slope > 0.25 * steepest * radii[low]:
            return None
        return float(radii[low])


@dataclass(frozen=True, eq=False)
class _RangeMaximum:
    """The largest of the entries low, ..., high of a list, for many ranges at once."""

    levels: Array  # row j holds the maxima of 2^j entries

    @classmethod
    def of(cls, values: Array) -> _RangeMaximum:
        levels = [values]
        while 2 ** len(levels) <= len(values):
            half = 2 ** (len(levels) - 1)
            following = levels[-1].copy()
            following[:-half] = np.maximum(levels[-1][:-half], levels[-1][half:])
            levels.append(following)
        return cls(np.array(levels))

    def __call__(self, low: Array, high: Array) -> Array:
        level = np.log2(high - low + 1).astype(np.intp)
        first, last = self.levels[level, low], self.levels[level, high + 1 - 2**level]
        return np.asarray(np.maximum(first, last))
