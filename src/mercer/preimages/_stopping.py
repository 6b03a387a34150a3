"""Stopping rule: has a search converged, escaped to infinity, or reached rounding?"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._status import Status
from mercer.preimages._driver import State, Stop, row_norms, row_products
from mercer.preimages._problem import Problem
from mercer.rigor import lipschitz
from mercer.space import feature

_BULK = 1e-4  # of sum |a_i| k(0): larger objectives are not in the tails
_STILL = 1e-6  # of the distance: a fixed-point step that is shorter leads nowhere
_NEAR = 1e-3  # of k(0): larger kernel values mean that a point of the element is near
_TAIL = 1e6  # times the objective: larger bounds on its terms are attained elsewhere
_OUTSIDE = 10.0  # times the reach of the points: psi is about (sum a_i) k(distance) from there on
_FAR = 1e8  # times their reach: nothing is found beyond
_JUMP = 1e-6  # of a bound on gradients: smaller changes may be rounding
_STEEP = 1e3  # bounds per length: gradients of smooth kernels change by a few
_UNKNOWN_LENGTH = 1e-6  # of the reach of the points, for kernels of several distances
_ROUNDING = 8 * np.finfo(float).eps


class StoppingRule:
    """Decides which rows have converged, escaped to infinity, or become NaN or infinite."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.flat = max(tol, 1e-8)  # below the root of eps the objective cannot tell points apart

    def __call__(self, state: State, owners: Array, stuck: Array) -> Stop:
        """Which rows stop; residuals are gradients divided by the size they are compared with.

        Rows that are stuck could not be moved, so they have converged or stalled.
        """
        norm = state.gradient_norm
        if state.size is None:  # a bound on gradients, else the sizes of their parts
            scale = self.problem.gradient_bounds[owners]
        else:
            scale = np.maximum(state.size * np.exp(state.shift), np.finfo(float).tiny)
        residual = norm / scale
        broken = ~(np.isfinite(state.value) & np.isfinite(norm))
        small = residual <= self.tol
        if state.terms is not None:  # parts of the gradient may vanish together
            small |= norm <= _ROUNDING * state.terms / self.problem.spread
        small |= stuck & (residual <= self.flat)
        small &= ~broken
        if state.cusp is not None:
            small &= state.cusp >= 0  # psi has a downward cusp where the coefficient is negative
        middle, reach = self.problem.extent
        away = self.problem.image(state.points) - middle
        distance = row_norms(away)
        arrived, gone = small.copy(), distance > _FAR * reach
        if self.problem.program.is_translation_invariant:
            gone &= row_products(self.problem.image(state.gradient), away) <= 0.0  # and going on
            if (rows := np.flatnonzero(small)).size:
                part = state[rows], owners[rows], away[rows], distance[rows]
                arrived[rows], left = self._tails(*part)
                gone[rows] |= left
        ended = [(Status.STALLED, stuck), (Status.CONVERGED, arrived)]
        if state.cusp is not None:
            ended.append((Status.AT_POINT, small & (state.cusp > 0)))
        ended += [(Status.ESCAPED, gone), (Status.UNDEFINED, broken)]
        return Stop(np.where(broken, 0.0, residual), ended)

    def level(self, rise: Array, new: State, old: State, owners: Array) -> Array:
        """Steps that change the objective only by rounding, but reduce the gradient."""
        falling = new.gradient_norm < old.gradient_norm
        return np.asarray((rise <= self._rounding(old, owners)) & falling)

    def idle(self, old: State, new: State, owners: Array) -> Array:
        """Steps that change the objective only by rounding, and do not reduce the gradient.

        Some are needed to leave a maximum; but two points may also alternate for ever.
        """
        level = np.abs(new.rise_from(old)) <= self._rounding(old, owners)
        return np.asarray(level & ~(new.gradient_norm < old.gradient_norm))

    def _rounding(self, old: State, owners: Array) -> Array:
        # the largest kernel value is of order one in the units of the shift, unless it is a tail
        size = old.terms if old.terms is not None else self._sizes[owners]
        return np.asarray(_ROUNDING * np.minimum(size, _TAIL * np.abs(old.value)))

    def jumps(self, old: State, new: State, owners: Array) -> Array:
        """Rows whose gradient changed by more than a smooth kernel allows for such a short step."""
        if not self._has_kinks:
            return np.zeros(len(owners), dtype=bool)
        before, after = (s.gradient * np.exp(s.shift)[:, None] for s in (old, new))
        jump = row_norms(after - before) / self.problem.gradient_bounds[owners]
        step = row_norms(self.problem.image(new.points - old.points))
        length = self.problem.length
        unit = length if np.isfinite(length) else _UNKNOWN_LENGTH * self.problem.extent[1]
        return np.asarray((jump > _JUMP) & (jump > _STEEP * step / unit))

    @cached_property
    def _has_kinks(self) -> bool:
        """Whether the gradient of a kernel of distances may jump."""
        smooth = np.isfinite(lipschitz(self.problem.psi)).all()
        return bool(self.problem.program.is_translation_invariant and not smooth)

    def _tails(
        self, state: State, owners: Array, away: Array, distance: Array
    ) -> tuple[Array, Array]:
        """Of rows with a small gradient: which have arrived, and which have left.

        A small gradient proves nothing in the tails. Among the points of the element a row has
        arrived if the objective differs from its limit at infinity, or the fixed-point step is
        tiny, or a point is near. It has left if psi is at most its limit and no point is near.
        Outside the points psi is about a multiple of k(distance): a row has arrived if the
        fixed-point step is short compared to the distance, and has left if it goes outward.
        """
        reach = self.problem.extent[1]
        outside = distance > _OUTSIDE * reach
        still = np.zeros(len(owners), dtype=bool)
        if state.stiffness is not None:
            step = row_norms(self.problem.image(self.problem.fixed_point_step(state)))
            unit = np.where(outside, distance, min(reach, self.problem.length))
            still = (step < _STILL * unit) & (state.stiffness != 0.0)
        above = state.objective - self._limits[owners]  # psi is this far below its limit
        bulk = np.abs(above) >= _BULK * self._sizes[owners]
        arrived = still | (bulk & ~outside)
        outward = row_products(self.problem.image(state.gradient), away) <= 0.0
        gone = outside & ~still & outward
        unclear = np.flatnonzero(~outside & ~arrived)
        if unclear.size:
            near = self._nearness(state.points[unclear]) >= _NEAR
            arrived[unclear] = near
            gone[unclear] = ~near & (above[unclear] >= 0)
        return arrived, gone

    def _nearness(self, points: Array) -> Array:
        """The largest kernel value between each row and the points of the element, over k(0)."""
        nearest = self.problem.nearest_point(points)
        own = engine.diagonal(self.problem.program, points) - self._kernel_limit
        phi = feature(self.problem.kernel, Points(nearest, self.problem.kernel.domain))
        gap = np.abs(phi.fields(points, paired=True).value - self._kernel_limit)
        return np.asarray(gap / np.maximum(np.abs(own), np.finfo(float).tiny))

    @cached_property
    def _sizes(self) -> Array:
        """sum_i |a_i| times the largest |k| over the reach of the points, per element."""
        largest, u = 1.0, np.array([0.0, min(self.problem.extent[1], 1e150) ** 2])  # finite
        if self.problem.program.kind == "radial":
            largest = np.abs(engine.profile_at(self.problem.program.profile, u)[0]).max()
        return np.asarray(self.problem.psi.coef.sizes * largest)

    @cached_property
    def _limits(self) -> Array:
        """The objective at infinity, per element."""
        psi = self.problem.psi
        total = psi.coef.weigh(np.ones((engine.n_rows(psi.points), 1)))[0]
        return np.asarray(-self._kernel_limit * total)

    @cached_property
    def _kernel_limit(self) -> float:
        """The limit of a radial kernel at infinity; 0 for those that grow with the distance."""
        if self.problem.program.kind != "radial":
            return 0.0
        far = min(1e75 * self.problem.extent[1], 1e150)  # its square is finite
        (limit,) = engine.profile_at(self.problem.program.profile, np.array([far**2]))[0]
        return float(limit) if abs(limit) <= abs(self.problem.program.value_at_zero) else 0.0
