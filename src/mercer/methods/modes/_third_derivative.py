"""How fast the Hessian of a kernel density can change near a point, by rigorous bounds."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from mercer._array import Array
from mercer.engine import pieces
from mercer.methods.modes._density_sum import DensitySum
from mercer.rigor import third_derivative_bounds

_FINE, _CELLS = 0.005, 5000  # width and number of the cells of distances, in lengths
_BLOCK = 1 << 18
_SUMS = 1.0 + 1e-9  # rounding of sums of positive terms
_SLACK = 1e-3  # of a cell: more than the rounding of a distance


@dataclass(frozen=True, eq=False)
class ThirdDerivatives:
    """Bounds on the third derivatives of the kernels of a density, on cells of distances."""

    density: DensitySum
    bounds: list[Array]  # of each group, one for each cell; the last cell has no end

    @classmethod
    def of(cls, density: DensitySum) -> ThirdDerivatives:
        edges = density.length * _FINE * np.arange(_CELLS + 1)
        tail = edges[-1] * np.geomspace(1.0, 1e15, 2001)
        bounds = []
        for group in density.groups:
            near = third_derivative_bounds(group.program.profile, edges[:-1], edges[1:])
            far = third_derivative_bounds(group.program.profile, tail[:-1], tail[1:])
            bounds.append(np.append(near, far.max()))
        return cls(density, bounds)

    def about(self, mode: Array, scale: float) -> HessianVariation:
        """As a function of the radius of a ball about one point, in units of `scale`."""
        width, masses = self.density.length * _FINE, []
        for _, _, Z, a in self.density.groups:
            mass = np.zeros(_CELLS + 1)
            for rows in pieces(len(Z), _BLOCK):
                distance = np.linalg.norm(Z[rows] - mode, axis=1)
                cell = np.minimum(distance / width, _CELLS).astype(np.intp)
                mass += np.bincount(cell, a[rows], len(mass))
            masses.append(mass * (_SUMS / scale))
        return HessianVariation(self.bounds, masses, scale, self.density.length)


@dataclass(frozen=True, eq=False)
class HessianVariation:
    """r -> sum_i a_i sup |D^3 k| over distances within r of |z_i - mode|."""

    bounds: list[Array]  # of each group, on cells
    masses: list[Array]  # of each group, in cells
    scale: float
    length: float

    def __call__(self, r: float) -> float:
        """A Lipschitz constant of the Hessian on the ball of radius r about the mode."""
        from scipy.ndimage import maximum_filter1d

        reach = 2 * int(np.ceil(r / (self.length * _FINE) + _SLACK)) + 1
        return sum(
            float(mass @ np.where(mass > 0.0, maximum_filter1d(bound, reach), 0.0))
            for bound, mass in zip(self.bounds, self.masses, strict=True)
        )

    def concave_radius(self, steepest: float, slope: float) -> float | None:
        """A ball on which f is strongly concave, its maximum within half the radius.

        The Hessian at the centre is at most -steepest, and the gradient there at most `slope`. On
        the ball the Hessian is at most -steepest / 2. Returns the largest such radius up to a
        length, or None.
        """
        if not steepest > 0.0:
            return None
        radii = self.length * np.geomspace(1.0, 1e-4, 60)
        # the condition is stricter for larger radii, which come first
        i = bisect_left(radii, True, key=lambda r: self(r) <= 0.5 * steepest / r)
        if i == len(radii) or slope > 0.25 * steepest * radii[i]:
            return None
        return float(radii[i])
