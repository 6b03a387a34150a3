"""A quick way up: Newton's method wherever it climbs, mean shift elsewhere."""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer.methods.modes._density_ascent import Climbed

_LONGEST = 0.5  # of the kernel's length: a step of Newton's method
_ARRIVED = 1e-6  # of the kernel's length
_FALL = 1e-6  # of the density: less is the accuracy of sums


def newton_climb(density: Climbed, starts: Array, max_steps: int) -> tuple[Array, Array]:
    """Where ascents end, and which of them have arrived.

    Steps are Newton's where the Hessian is definite and they are short and climb, else those of
    mean shift. Ends are modes of the density; which start reaches which is not that of mean shift.
    """
    Z, active = starts.copy(), np.arange(len(starts))
    safe, before = Z.copy(), np.full(len(Z), -np.inf)  # where mean shift would have gone; density
    for _ in range(max_steps):
        here = density.at(Z[active], 2)
        assert here.hessian is not None
        step = newton_steps(density, here.step, here.gradient, here.hessian)
        fell = here.density < (1.0 - _FALL) * before[active]
        back, fine = active[fell], active[~fell]
        Z[back] = safe[back]
        safe[fine], before[fine] = Z[fine] + here.step[~fell], here.density[~fell]
        Z[fine] += step[~fell]
        active = active[fell | (np.linalg.norm(step, axis=1) > _ARRIVED * density.length)]
        if not active.size:
            break
    arrived = np.ones(len(Z), dtype=bool)
    arrived[active] = False
    return Z, arrived


def newton_steps(density: Climbed, shift: Array, g: Array, H: Array) -> Array:
    """Newton's steps where the Hessian is definite and they are short, else those of mean shift."""
    step = shift.copy()
    rows = np.flatnonzero(np.linalg.eigvalsh(H)[:, -1] < 0.0)
    if rows.size:
        newton = np.linalg.solve(H[rows], -g[rows, :, None])[:, :, 0]
        short = np.linalg.norm(newton, axis=1) <= _LONGEST * density.length
        step[rows[short]] = newton[short]
    return step
