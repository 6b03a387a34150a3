"""Modes alone, not who reaches them: Newton's method wherever it climbs."""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer.methods._ascent import merged_ends
from mercer.methods._climbed import Climbed

_MOST = 300  # steps
_LONGEST = 0.5  # of the kernel's length: a step of Newton's method
_ARRIVED = 1e-6  # of the kernel's length
_FALL = 1e-6  # of the density: less is the accuracy of sums


def quick_modes(density: Climbed, starts: Array) -> Array:
    """The modes of a smooth density that an ascent from some starts finds, shape (k, d).

    Steps are Newton's where the Hessian is definite and they are short and climb, else those of
    mean shift. Which start reaches which mode is not that of mean shift; each mode is one of it.
    """
    Z = density.forth(starts)
    ends, top = _climbed(density, Z), None
    found = density.at(ends, 2)
    assert found.hessian is not None
    top = np.linalg.eigvalsh(found.hessian)[:, -1] < 0.0
    if not top.any():  # all at the border of being a mode
        top[np.argmax(found.density)] = True
    return density.back(merged_ends(density, ends[top])[1])


def _climbed(density: Climbed, starts: Array) -> Array:
    """Where each ascent ends."""
    Z, m = starts.copy(), len(starts)
    safe, before = Z.copy(), np.full(m, -np.inf)  # the last step of mean shift, and the density
    active = np.arange(m)
    for _ in range(_MOST):
        here = density.at(Z[active], 2)
        assert here.hessian is not None
        fell = here.density < (1.0 - _FALL) * before[active]
        Z[active[fell]] = safe[active[fell]]
        here_z, value = Z[active[~fell]], here.density[~fell]
        step, is_newton = _steps(density, here.step, here.gradient, here.hessian)
        step, shift = step[~fell], here.step[~fell]
        going = np.ones(len(active), bool)
        going[~fell] = np.linalg.norm(step, axis=1) > _ARRIVED * density.length
        rows = active[~fell]
        safe[rows], before[rows] = here_z + shift, value
        Z[rows] = here_z + step
        active = active[going]
        if not active.size:
            break
    return Z


def _steps(density: Climbed, shift: Array, g: Array, H: Array) -> tuple[Array, Array]:
    """Newton's steps where they can be trusted, else those of mean shift; and where they are."""
    newton = np.linalg.eigvalsh(H)[:, -1] < 0.0
    step = shift.copy()
    if newton.any():
        rows = np.flatnonzero(newton)
        found = np.linalg.solve(H[rows], -g[rows, :, None])[:, :, 0]
        short = np.linalg.norm(found, axis=1) <= _LONGEST * density.length
        step[rows[short]] = found[short]
        newton[rows[~short]] = False
    return step, newton
