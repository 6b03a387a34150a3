"""Modes alone, not who reaches them: Newton's method wherever it climbs."""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer.methods._ascent import merged_ends
from mercer.methods._climbed import Climbed

_MOST = 300  # steps
_LONGEST = 0.5  # of the kernel's length: a step of Newton's method
_ARRIVED = 1e-6  # of the kernel's length
_AT_MODE = 1e-3  # of the kernel's length: the farthest a mode may be by Newton's method
_FALL = 1e-6  # of the density: less is the accuracy of sums


def quick_modes(density: Climbed, starts: Array) -> Array:
    """The modes of a smooth density that an ascent from some starts finds, shape (k, d).

    Steps are Newton's where the Hessian is definite and they are short and climb, else those of
    mean shift. Which start reaches which mode is not that of mean shift; each mode is one of it.
    """
    ends = _climbed(density, density.forth(starts))
    found = density.at(ends, 2)
    assert found.hessian is not None
    left = _steps(density, found.step, found.gradient, found.hessian)
    top = np.linalg.eigvalsh(found.hessian)[:, -1] < 0.0
    top &= np.linalg.norm(left, axis=1) <= _AT_MODE * density.length  # not on a shoulder
    if not top.any():  # all at the border of being a mode
        top[np.argmax(found.density)] = True
    return density.back(merged_ends(density, ends[top])[1])


def _climbed(density: Climbed, starts: Array) -> Array:
    """Where each ascent ends."""
    Z, active = starts.copy(), np.arange(len(starts))
    safe, before = Z.copy(), np.full(len(Z), -np.inf)  # where mean shift would have gone; density
    for _ in range(_MOST):
        here = density.at(Z[active], 2)
        assert here.hessian is not None
        step = _steps(density, here.step, here.gradient, here.hessian)
        fell = here.density < (1.0 - _FALL) * before[active]
        back, fine = active[fell], active[~fell]
        Z[back] = safe[back]
        safe[fine], before[fine] = Z[fine] + here.step[~fell], here.density[~fell]
        Z[fine] += step[~fell]
        active = active[fell | (np.linalg.norm(step, axis=1) > _ARRIVED * density.length)]
        if not active.size:
            break
    return Z


def _steps(density: Climbed, shift: Array, g: Array, H: Array) -> Array:
    """Newton's steps where the Hessian is definite and they are short, else those of mean shift."""
    step = shift.copy()
    rows = np.flatnonzero(np.linalg.eigvalsh(H)[:, -1] < 0.0)
    if rows.size:
        newton = np.linalg.solve(H[rows], -g[rows, :, None])[:, :, 0]
        short = np.linalg.norm(newton, axis=1) <= _LONGEST * density.length
        step[rows[short]] = newton[short]
    return step
