"""The region of a global search: a box beyond which no point of an element can be better."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from mercer._array import Array
from mercer.exceptions import InputError
from mercer.rigor._box_bounds import BoxObjective
from mercer.rigor._enclosure import Terms
from mercer.rigor._intervals import Interval, up
from mercer.rigor._profile_enclosure import enclose

_ZERO = 1e-280  # where k(x_i, x_i) = 0 up to underflow, psi is zero
_LARGEST = 480  # the largest box is 2^480 units of the kernel's metric wide


def objective_scale(objective: BoxObjective) -> float:
    """What a gap is relative to: sum |a_i| sup |k|, or (sum |a_i| sqrt(k(x_i, x_i)))^2."""
    main = objective.groups[0]
    if len(objective.groups) == 1:
        spread = main.points.max(axis=0) - main.points.min(axis=0)
        reach = [spread @ np.abs(B) @ spread or 1.0 for B, _ in main.metrics]
        ranges = [Interval(np.zeros(1), np.array([u])) for u in reach]
        top = enclose(main.program.profile, ranges).value.size
        return float(np.ravel(top)[0] * main.weight.sum())
    k = 2.0 * BoxObjective(objective.groups[1:], objective.scale).values(*[main.points] * 2).size
    scale = float(np.sum(main.weight * np.sqrt(k)) ** 2)
    return scale if scale > _ZERO else 1.0


def at_infinity(objective: BoxObjective, low: Array, high: Array) -> Interval:
    """The lowest limit of F along any unbounded axis; infinity if there is none."""
    best = Interval(math.inf, math.inf)
    if len(objective.groups) > 1:  # not a function of distances alone
        return best
    away = np.full(len(objective.groups[0].coef), np.inf)
    for axis in objective.axes:
        if np.isinf(low[axis]) or np.isinf(high[axis]):
            best = min(best, _beyond(objective, axis, away), key=lambda limit: limit.hi)
    return best


def reach(
    objective: BoxObjective, low: Array, high: Array, goal: float, kappa: float
) -> tuple[Array, Array, float]:
    """A box beyond which F >= goal everywhere in the region, and the bound of F that shows it.

    For kernels of distances by the range of the profile beyond a distance. For others `kappa`, with
    F > goal wherever sqrt(k(x, x)) > kappa (since |psi(x)| <= |psi| sqrt(k(x, x))).
    """
    radial = len(objective.groups) == 1
    points = objective.groups[0].points
    centre = (points.max(axis=0) + points.min(axis=0)) / 2 if radial else np.zeros(len(low))
    half = np.abs(points - centre).max(axis=0) if radial else np.zeros(len(low))
    unit = np.zeros(len(low))
    unit[objective.axes] = 1.0 / objective.scale

    def width(power: int) -> Array:
        return np.asarray(half + math.ldexp(1.0, power) * unit)

    def bound(power: int) -> float:
        """The least of the bounds beyond each wall, infinite where the box covers the region."""
        least = math.inf
        for axis in objective.axes:
            middle, wall = centre[axis], float(width(power)[axis])
            left, right = middle - wall, middle + wall
            if left > low[axis] or right < high[axis]:
                wall = min(wall, right - middle, middle - left)  # as rounded
                if radial:
                    offset = np.abs(points[:, axis] - middle)
                    away = np.maximum(wall * (1 - 1e-12) - offset * (1 + 1e-12), 0.0)
                    least = min(least, float(_beyond(objective, axis, away).lo))
                elif not _feature_norm(objective.groups[1], axis, wall) > kappa:
                    return -math.inf
                else:
                    least = min(least, goal)
        return least

    if bound(_LARGEST) < goal:
        raise InputError(
            "the objective is not known to grow, or to tend to a limit, far from the "
            "points of the element; give a Box as the region"
        )
    powers = range(1 - _LARGEST, _LARGEST)
    power = powers.start + bisect_left(powers, True, key=lambda power: bound(power) >= goal)
    wide = np.full(len(low), np.inf)  # along axes that are not free the region is all there is
    wide[objective.axes] = width(power)[objective.axes]
    return centre - wide, centre + wide, bound(power)


def _feature_norm(own: Terms, axis: int, wall: float) -> float:
    """A lower bound on sqrt(k(x, x)) where |x_j| >= wall along axis j."""
    norms = [
        Interval(np.array([u]), np.array([np.inf]))
        for u in (_least_square(B, axis) * (wall * wall) * (1 - 1e-9) for B, _ in own.metrics)
    ]
    k = np.ravel(enclose(own.program.profile, norms).value.lo)[0]
    return math.sqrt(k) * (1 - 1e-12) if k > 0 else -math.inf


def _beyond(objective: BoxObjective, axis: int, away: Array) -> Interval:
    """The range of F where |x_j - x_ij| >= away_i along axis j, for a program of distances."""
    main = objective.groups[0]
    ranges = []
    for B, _ in main.metrics:
        u = np.nan_to_num(_least_square(B, axis) * away**2 * (1 - 1e-9), nan=0.0, posinf=np.inf)
        end = np.full_like(u, np.inf)
        ranges.append(Interval(u[None], end[None]))
    value = enclose(main.program.profile, ranges).value.broadcast((1, len(main.coef)))
    found = main.weighed(value)
    return Interval(float(found.lo[0]), float(found.hi[0]))


def _least_square(B: Array, j: int) -> float:
    """min of z'Bz over z_j = 1: a Schur complement, 0 where it is 0 up to rounding."""
    others = np.arange(len(B)) != j
    side = B[others, j]
    rest = 0.0
    if side.any():
        rest = float(side @ np.linalg.pinv(B[np.ix_(others, others)], hermitian=True) @ side)
    left = float(B[j, j]) - rest
    return left if left > 1e-6 * float(B[j, j]) else 0.0


def feature_bound(objective: BoxObjective, best: float) -> float:
    """kappa with F(x) > best wherever sqrt(k(x, x)) > kappa: |psi| + sqrt(|psi|^2 + 2 best)."""
    main = objective.groups[0]
    psi = -BoxObjective((main,), objective.scale).values(main.points, main.points)
    squared = psi * Interval(main.coef, main.coef)
    total = float(np.sum(np.maximum(squared.hi, 0.0)) + np.sum(np.minimum(squared.hi, 0.0)))
    slack = (len(main.coef) + 20) * 2.3e-16 * float(np.sum(squared.size))
    norm2 = max(total + slack, 0.0)
    return float(up(math.sqrt(norm2) + math.sqrt(max(norm2 + 2.0 * best, 0.0)))) * (1 + 1e-12)
