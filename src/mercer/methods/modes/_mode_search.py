"""Modes without labels: Newton's method wherever it climbs, mean shift elsewhere."""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer.methods.modes._density_sum import DensityState, DensitySum
from mercer.methods.modes._merging import merge_ends

_MAX_STEPS = 300
_MANY_COLUMNS = 20
_LONGEST = 0.5  # of the kernel's length: a step of Newton's method
_ARRIVED = 1e-6  # of the kernel's length
_FALL = 1e-6  # of the density: less is the accuracy of sums
_AT_MODE = 1e-3  # of the kernel's length: the farthest a mode may be by Newton's method


def find_modes(density: DensitySum, start: Array) -> Array:
    """The modes of a smooth density that a quick ascent from some starts finds, shape (k, d)."""
    ends, _ = newton_ascent(density, density.forth(start), _MAX_STEPS)
    here = density.at(ends, 2)
    top = here.is_top(_AT_MODE * density.length)  # not on a shoulder
    if not top.any():  # all at the border of being a mode
        top[np.argmax(here.density)] = True
    return density.back(merge_ends(density, np.empty((0, ends.shape[1])), ends[top])[1])


def newton_ascent(density: DensitySum, start: Array, max_steps: int) -> tuple[Array, Array]:
    """Where ascents end, and which of them have arrived.

    Ends are modes of the density; which start reaches which is not decided by mean shift.
    """
    Z, active = start.copy(), np.arange(len(start))
    safe, before = Z.copy(), np.full(len(Z), -np.inf)  # where mean shift would have gone; density
    for _ in range(max_steps):
        here = density.at(Z[active], 2)
        step = _steps(density, here)
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


def _steps(density: DensitySum, here: DensityState) -> Array:
    """Newton's steps with the sizes of the eigenvalues, cut to half a length; or mean shift.

    Where the Hessian is indefinite they lead away from a saddle. Beyond a few columns, where
    eigenvectors are dear, mean shift is used there.
    """
    assert here.hessian is not None
    if here.gradient.shape[1] > _MANY_COLUMNS:
        newton = here.newton_step()
        short = np.linalg.norm(newton, axis=1) <= _LONGEST * density.length
        return np.where(short[:, None], newton, here.step)
    values, vectors = np.linalg.eigh(here.hessian)
    sizes = np.maximum(np.abs(values), 1e-12 * np.abs(values).max(axis=1, keepdims=True))
    along = np.einsum("ijk,ij->ik", vectors, here.gradient)
    step = np.einsum("ijk,ik->ij", vectors, along / np.maximum(sizes, np.finfo(float).tiny))
    length = np.linalg.norm(step, axis=1)
    with np.errstate(invalid="ignore"):
        step *= np.fmin(1.0, _LONGEST * density.length / np.maximum(length, 1e-300))[:, None]
    return np.where(np.isfinite(step).all(axis=1, keepdims=True), step, here.step)
