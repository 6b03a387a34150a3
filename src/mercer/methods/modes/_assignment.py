"""Which of some known modes each start climbs to."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.methods.modes._ascent import Climber, ClimbStatus, merged_ends
from mercer.methods.modes._density_ascent import Climbed

_MANY = 1000  # starts for which basins are proved again


def reached(
    density: Any, modes: Array, starts: Array, *, tol: float = 1e-6, max_iter: int = 1000
) -> Array:
    """Return for each start the number of the mode that mean shift reaches, -1 for none of them.

    Parameters
    ----------
    density : Element or Density
    modes : array of shape (k, d)
        From `mean_shift` on the same density.
    starts : array of shape (m, d)
    tol, max_iter
        As for `mean_shift`.
    """
    if not len(modes):
        return np.full(len(starts), -1)
    target = Climbed.of(density, len(starts))
    Z, known = target.forth(starts), target.forth(modes)
    many = len(Z) >= _MANY
    climber = Climber(target, tol, max_iter, proves=many)
    if many:
        climber.look_for_modes(known)
    ends, held, status, _ = climber.climb(Z)
    labels = np.full(len(Z), -1)
    if climber.basins.known:
        centres = np.array([basin.mode for basin in climber.basins.known])
        numbers = _matching(centres, known, target.length)
        labels = np.where(held >= 0, numbers[held], -1)
    loose = np.flatnonzero((held < 0) & (status == ClimbStatus.CONVERGED))
    if loose.size:
        group, _, _ = merged_ends(target, np.concatenate([known, ends[loose]]))
        number = {int(g): j for j, g in reversed(list(enumerate(group[: len(known)])))}
        labels[loose] = [number.get(int(g), -1) for g in group[len(known) :]]
    return labels


def _matching(centres: Array, modes: Array, length: float) -> Array:
    """The number of the mode at each centre, -1 where there is none."""
    from scipy.spatial import cKDTree

    distance, nearest = cKDTree(modes).query(centres)
    return np.where(distance <= 1e-3 * length, nearest, -1)
