"""Modes without labels: Newton's method wherever it climbs, mean shift elsewhere."""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer._status import Status
from mercer.methods.modes._density_sum import DensitySum, heights, is_top
from mercer.methods.modes._merging import merge_ends
from mercer.preimages._driver import Search, Stop, walk
from mercer.preimages._state import State, row_norms, row_products

_MAX_ITER = 300
_LONGEST = 0.5  # of the kernel's length: a step of Newton's method
_ARRIVED = 1e-6  # of the kernel's length
_FALL = 1e-6  # of the density: less is the accuracy of sums
_AT_MODE = 1e-3  # of the kernel's length: the farthest a mode may be by Newton's method


def find_modes(density: DensitySum, start: Array) -> Array:
    """The modes of a smooth density in few columns that some starts reach, shape (k, d)."""
    ends = newton_ascent(density, density.forth(start), _MAX_ITER)[0]
    here = density.at(ends, 2)
    top = is_top(here, _AT_MODE * density.length)  # not on a shoulder
    if not top.any():  # all at the border of being a mode
        top[np.argmax(heights(here))] = True
    return density.back(merge_ends(density, ends[:0], ends[top])[1])


def newton_ascent(density: DensitySum, start: Array, max_iter: int) -> tuple[Array, Array]:
    """Where ascents end, and which of them have arrived.

    Ends are modes of the density; which start reaches which is not decided by mean shift.
    """
    found = walk(_NewtonAscent(density, max_iter), start)
    return found.state.points, found.status == Status.CONVERGED


class _NewtonAscent(Search):
    """Newton's method, with the step of mean shift instead where the density would fall."""

    def __init__(self, density: DensitySum, max_iter: int) -> None:
        self.density, self.max_iter = density, max_iter
        self.steps = np.empty(0)

    def at(self, points: Array, rows: Array) -> State:
        return self.density.at(points, 2)

    def stop(self, state: State, rows: Array, iteration: int) -> Stop:
        self.steps = self._newton_steps(state)
        length = row_norms(self.steps) / self.density.length
        return Stop(length, [(Status.CONVERGED, length <= _ARRIVED)])

    def keep(self, going: Array) -> None:
        self.steps = self.steps[going]

    def step(self, state: State, rows: Array) -> State:
        new = self.at(state.points + self.steps, rows)
        fell = np.flatnonzero(heights(new) < (1.0 - _FALL) * heights(state))
        if fell.size:
            safe = state.points[fell] + state.fixed_point_step[fell]
            new = new.updated(fell, self.at(safe, rows[fell]))
        return new

    def _newton_steps(self, state: State) -> Array:
        """Newton's steps with the sizes of the eigenvalues, cut to half a length.

        Where the Hessian is indefinite they lead away from a saddle.
        """
        longest = _LONGEST * self.density.length
        values, vectors = np.linalg.eigh(np.nan_to_num(state.hessian))
        sizes = np.abs(values)
        sizes = np.maximum(sizes, 1e-12 * sizes.max(axis=1, keepdims=True) + 1e-300)
        along = np.einsum("ijk,ij->ik", vectors, -state.gradient)
        step = np.einsum("ijk,ik->ij", vectors, along / sizes)
        step *= np.minimum(1.0, longest / np.maximum(row_norms(step), longest))[:, None]
        up = row_products(step, state.gradient) < 0.0
        return np.where(up[:, None], step, state.fixed_point_step)
