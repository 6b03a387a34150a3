"""When a search has ended: arrived, left for infinity, or at the end of what rounding allows."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mercer import engine
from mercer._array import Array, Points, is_sparse
from mercer._status import Status
from mercer.preimages._driver import Stop
from mercer.preimages._problem import Problem
from mercer.preimages._state import State
from mercer.rigor._derivative_bounds import coefficient_sizes
from mercer.space import feature

_BULK = 1e-4  # of sum |a_i| k(0): objectives above are not tails
_STILL = 1e-6  # of the kernel's own length: fixed-point steps below are no steps
_NEAR = 1e-3  # of k(0): kernel values above mean that a point of the element is near
_TAIL = 1e6  # times the objective: sizes of its terms above are those of other places
_FAR = 1e8  # times the extent of the points: nothing is found beyond
_ROUNDING = 8 * np.finfo(float).eps


class StoppingRule:
    """Says which rows have converged, have escaped to infinity, or left the range of numbers."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.radial = problem.program.kind == "radial"
        self.flat = max(tol, 1e-8)  # below the root of rounding the objective cannot tell

    def __call__(self, state: State, owners: Array) -> Stop:
        """Which rows stop; residuals are gradients over the size they are compared with."""
        norm = state.gradient_norm
        residual = norm / self.problem.scale(state, owners)
        broken = ~(np.isfinite(state.value) & np.isfinite(norm))
        small = (residual <= self.tol) | (norm <= self.problem.gradient_rounding(state))
        small &= ~broken
        arrived, gone = small, self._gone_far(state.points)
        if self.radial and small.any():
            arrived, left = self._tails(state, owners, np.flatnonzero(small))
            gone |= left
        ended = [(Status.CONVERGED, arrived)]
        if state.cusp is not None:
            ended.append((Status.AT_POINT, small & (state.cusp > 0)))
        ended += [(Status.ESCAPED, gone), (Status.UNDEFINED, broken)]
        return Stop(np.where(broken, 0.0, residual), ended)

    def level(self, rise: Array, new: State, old: State, owners: Array) -> Array:
        """Steps whose change is rounding, but that make the gradient smaller."""
        # the largest kernel value is of order one in the units of the shift, unless it is a tail
        size = old.terms if old.terms is not None else self._sizes[owners]
        slack = _ROUNDING * np.minimum(size, _TAIL * np.abs(old.value))
        falling = new.gradient_norm < old.gradient_norm
        return np.asarray((rise <= slack) & falling)

    def _tails(self, state: State, owners: Array, rows: Array) -> tuple[Array, Array]:
        """Of rows with a tiny gradient: which have arrived, and which have left.

        A tiny gradient proves nothing in the tails. A row has arrived if the objective is not tiny,
        or the fixed-point step is, or a point of the element is near; it has left if psi <= 0 and
        none is.
        """
        arrived, gone = np.zeros((2, len(owners)), dtype=bool)
        if len(rows) < len(owners):
            state = state[rows]
        bulk = np.abs(state.objective) >= _BULK * self._sizes[owners[rows]]
        local = np.abs(state.value * state.stiffness) if state.stiffness is not None else 0.0
        still = state.local_norm**2 < _STILL**2 * local
        arrived[rows] = bulk | still
        unclear = np.flatnonzero(~arrived[rows])
        if unclear.size:
            near = self._nearness(state.points[unclear]) >= _NEAR
            arrived[rows[unclear[near]]] = True
            gone[rows[unclear[~near & (state.value[unclear] >= 0)]]] = True
        return arrived, gone

    def _nearness(self, points: Array) -> Array:
        """The largest kernel value between each row and the points of the element, over k(0)."""
        nearest = self.problem.nearest_point(points)
        own = np.abs(engine.diagonal(self.problem.program, points))
        phi = feature(self.problem.kernel, Points(nearest, self.problem.kernel.domain))
        pairs = np.abs(phi.fields(points, paired=True).value)
        return np.asarray(pairs / np.maximum(own, np.finfo(float).tiny))

    def _gone_far(self, points: Array) -> Array:
        middle, extent = self._extent
        if max(points.max(), -points.min()) < 0.5 * _FAR * extent / np.sqrt(points.shape[1]):
            return np.zeros(len(points), dtype=bool)
        return np.asarray(np.linalg.norm(points - middle, axis=1) > _FAR * extent)

    @cached_property
    def _sizes(self) -> Array:
        """sum_i |a_i| times the largest |k| over the extent of the points, per element."""
        if not self.radial:
            return np.atleast_1d(coefficient_sizes(self.problem.psi))
        u = np.array([0.0, self._extent[1] ** 2])
        top = float(np.max(np.abs(engine.evaluate(self.problem.program.profile, [u]).value)))
        return np.atleast_1d(coefficient_sizes(self.problem.psi)) * top

    @cached_property
    def _extent(self) -> tuple[Array, float]:
        points = self.problem.psi.points
        if is_sparse(points):
            middle = np.asarray(points.mean(axis=0)).reshape(-1)
            return middle, float(np.sqrt(points.multiply(points).sum(axis=1).max())) + 1.0
        middle = points.mean(axis=0)
        spread = float(np.max(np.linalg.norm(points - middle, axis=1)))
        return middle, max(spread, 1.0 + float(np.linalg.norm(middle)))
