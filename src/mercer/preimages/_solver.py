"""Solvers: the base classes of all methods for pre-images, and of those that iterate.

An iterative solver proposes a step (`direction`). `_Descent` takes it, shortened until the
objective falls enough (Armijo), and `_stopping.py` decides when a row has ended. The loop is
`_driver.walk`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._array import Array, positive, positive_int
from mercer._progress import Callback
from mercer._status import Status
from mercer.kernels._parameters import checked
from mercer.preimages._driver import Search, State, Stop, Walk, row_norms, row_products, walk
from mercer.preimages._problem import Problem
from mercer.preimages._result import History
from mercer.preimages._stopping import StoppingRule

_ARMIJO = 1e-4  # of the fall that the slope predicts: the usual choice (Nocedal and Wright, 3.1)
_KINKS = 20  # short steps across a kink, or in place, after which the search has ended there
_SHORTENINGS = 40  # after which a step is below rounding: each at least halves it


class Solver(ABC):
    """Base of the solvers of `preimage`: a frozen dataclass of settings.

    `preimage` gives it a `Problem` (elements, an objective, a constraint), and computes distances,
    gradients and certificates of the points that it returns.

    Examples
    --------
    A solver that returns the mean of the element's points:

    >>> import numpy as np
    >>> import mercer as mc
    >>> class Mean(mc.preimages.Solver):
    ...     def solve(self, problem, start):
    ...         mean = problem.psi.points.mean(axis=0)
    ...         return mc.preimages.SolverResult.computed(np.tile(mean, (problem.batch, 1)))
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0], [5.0]])
    >>> back = mc.preimage(psi, Mean())
    >>> back.points, back.status[0].name
    (array([[2.]]), 'COMPUTED')
    """

    needs_start: bool = False  # does it iterate from starting points?

    @abstractmethod
    def solve(self, problem: Problem, start: Any) -> SolverResult:
        """Return a point for each element; `start` has shape (s, b, d), None if not needed."""


@dataclass(frozen=True, eq=False)
class SolverResult:
    """What a solver returns: one row for each element of its problem.

    Attributes
    ----------
    points : array of shape (b, d), or other points of the kernel's domain
    status : object array of `Status`, shape (b,)
    n_iter, n_evaluations : arrays of shape (b,)
    history : History or None
    state : State or None
        The objective and its derivatives at the points, where the solver knows them.

    Examples
    --------
    >>> import mercer as mc
    >>> [s.name for s in mc.preimages.SolverResult.computed([[0.0], [1.0]]).status]
    ['COMPUTED', 'COMPUTED']
    """

    points: Any
    status: Array
    n_iter: Array
    n_evaluations: Array
    history: History | None = None
    state: State | None = None

    @classmethod
    def computed(cls, points: Any) -> SolverResult:
        """Points that were computed without iterating."""
        zeros = np.zeros(len(points), dtype=int)
        return cls(points, np.full(len(points), Status.COMPUTED, dtype=object), zeros, zeros)

    def part(self, rows: slice) -> SolverResult:
        """The result of some of the elements, without the path."""
        counts = self.n_iter[rows], self.n_evaluations[rows]
        state = None if self.state is None else self.state[rows]
        return SolverResult(self.points[rows], self.status[rows], *counts, None, state)


@dataclass(frozen=True)
@checked(tol=positive, max_iter=positive_int)
class IterativeSolver(Solver):
    """Settings that iterative solvers share; `FixedPoint` describes them."""

    tol: float = 1e-10
    max_iter: int = 1000

    needs_start = True
    order = 1  # derivatives that `direction` needs
    guarded = True  # is a step taken only if the objective falls?

    def memory(self, problem: Problem) -> Any:
        """What the solver keeps between iterations; None if nothing."""
        return None

    @abstractmethod
    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        """The step to try first, for each row."""

    def learn(self, memory: Any, moved: Array, old: State, new: State) -> None:
        """Update the memory after a step; `moved` is False for rows that could not take it."""

    def keep(self, memory: Any, rows: Array) -> Any:
        """The memory of some rows only."""
        return memory

    def solve(
        self,
        problem: Problem,
        start: Array,
        *,
        history: bool = False,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Search from every start; keep the best result for each element."""
        s, b, d = start.shape
        search = _Descent(self, problem, np.tile(np.arange(b), s))
        begin = start.reshape(s * b, d).astype(float)
        found = walk(search, begin, callback=callback, record=history)
        value = found.state.objective.reshape(s, b)
        first = np.argmin(np.where(np.isnan(value), np.inf, value), axis=0)
        best = first * b + np.arange(b)
        state = found.state if s == 1 else found.state[best]
        evaluations = search.n_evaluations.reshape(s, b).sum(axis=0)
        path = _history(found, best, problem.offset) if history else None
        counts = found.n_iter[best], evaluations
        return SolverResult(state.points, found.status[best], *counts, path, state)


class _Descent(Search):
    """Descends the objective of a problem from several starts per element.

    `owners` are the elements that the rows belong to.
    """

    def __init__(self, solver: IterativeSolver, problem: Problem, owners: Array) -> None:
        self.solver, self.problem, self.owners = solver, problem, owners
        self.max_iter = solver.max_iter
        self.rule = StoppingRule(problem, solver.tol)
        self.memory = solver.memory(problem)
        self.n_evaluations = np.zeros(len(owners), dtype=int)
        self.failed = np.zeros(len(owners), dtype=bool)  # the solver's own direction led nowhere
        self.stuck = np.zeros(len(owners), dtype=bool)  # nor did the steepest one
        self.kinks = np.zeros(len(owners), dtype=int)  # short steps across a kink, or in place

    def at(self, points: Array, rows: Array) -> State:
        """The objective at the nearest points that meet the constraint."""
        owners = self.owners[rows]
        self.n_evaluations[rows] += 1
        points = self.problem.constraint.project(points, owners)
        return self.problem.at(points, owners, self.solver.order)

    def stop(self, state: State, rows: Array, iteration: int) -> Stop:
        return self.rule(state, self.owners[rows], self.stuck)

    def keep(self, going: Array) -> None:
        self.memory = self.solver.keep(self.memory, going)
        self.failed, self.stuck = self.failed[going], self.stuck[going]
        self.kinks = self.kinks[going]

    def step(self, state: State, rows: Array) -> State:
        """Move every row downhill; after a failure, along the steepest descent."""
        direction = self.solver.direction(self.problem, state, self.owners[rows], self.memory)
        if not self.solver.guarded:
            return self.at(state.points + direction, rows)
        slope = row_products(direction, state.gradient)
        replaced = self.failed | ~((slope < 0) & (slope > -np.inf))
        if replaced.any():
            direction[replaced] = steepest(self.problem, state[replaced])
        if state.cusp is not None and (peaks := state.cusp < 0).any():
            direction[peaks] = _leave_peaks(self.problem, state[peaks])
        new, moved = self._line_search(state, rows, direction)
        new = self._snap(new, rows)
        moved &= np.any(new.points != state.points, axis=1)  # not back to the point it came from
        self.solver.learn(self.memory, moved, state, new)
        owners = self.owners[rows]
        self.kinks += self.rule.jumps(state, new, owners) | self.rule.idle(state, new, owners)
        self.stuck = (self.failed & ~moved) | (self.kinks >= _KINKS)
        self.failed = ~moved
        return new

    def _line_search(self, state: State, rows: Array, direction: Array) -> tuple[State, Array]:
        """Backtrack until the objective falls by a fraction of what the slope predicts."""
        new, moved = state, np.zeros(len(rows), dtype=bool)
        t = np.ones(len(rows))
        todo = np.arange(len(rows))
        for _ in range(_SHORTENINGS):
            old = state[todo]
            tried = self.at(old.points + t[todo, None] * direction[todo], rows[todo])
            rise = tried.rise_from(old)
            gap = tried.points - old.points
            expected = row_products(gap, old.gradient)
            good = rise <= _ARMIJO * expected
            if not good.all():
                good |= self.rule.level(rise, tried, old, self.owners[rows[todo]])
            good &= np.any(gap != 0, axis=1)
            if good.all() and len(todo) == len(rows):
                return tried, good  # the usual case: nothing to copy
            new = new.updated(todo[good], tried[good])
            moved[todo[good]] = True
            bad = ~good
            if not bad.any():
                break
            # to the minimum of the parabola through the values and the slope
            factor = -expected[bad] / (2.0 * (rise[bad] - expected[bad]))
            factor = np.nan_to_num(factor, nan=0.1, posinf=0.5, neginf=0.1)
            t[todo[bad]] *= np.clip(factor, 0.1, 0.5)
            todo = todo[bad]
        return new, moved

    def _snap(self, state: State, rows: Array) -> State:
        """Where the kernel has cusps, minimisers may be points of the element: try the nearest."""
        if not self.problem.has_point_cusps or not self.problem.constraint.is_free:
            return state
        tried = self.at(self.problem.nearest_point(state.points), rows)
        better = tried.rise_from(state) < 0
        return state.updated(np.flatnonzero(better), tried[better]) if better.any() else state


def _history(found: Walk, rows: Array, offset: float) -> History:
    """The paths of some rows, NaN once a row has stopped."""
    m, d = found.state.points.shape
    points = np.full((len(found.path), m, d), np.nan)
    value, norm = (np.full((len(found.path), m), np.nan) for _ in range(2))
    for t, (at, *parts) in enumerate(found.path):
        points[t, at], value[t, at], norm[t, at] = parts
    return History(points[:, rows], value[:, rows] + offset, norm[:, rows])


def steepest(problem: Problem, state: State) -> Array:
    """Downhill with the length of the fixed-point step where there is one, else a short step."""
    if state.stiffness is None:
        return _short_steps(problem, state)
    step = problem.fixed_point_step(replace(state, stiffness=np.abs(state.stiffness)))
    # longer steps where psi <= 0 jump over minimisers
    step = problem.shortened(step, state.points, problem.length, state.value >= 0)
    fine = np.isfinite(row_products(step, state.gradient))
    return step if fine.all() else np.where(fine[:, None], step, _short_steps(problem, state))


def _short_steps(problem: Problem, state: State) -> Array:
    """Along the gradient, a thousandth of the spread of the points, or of the distance to 0."""
    unit = np.nan_to_num(-state.gradient / state.local_norm[:, None])
    length = np.maximum(row_norms(state.points), problem.spread)[:, None]
    return np.asarray(unit * (1e-3 * length))


def _leave_peaks(problem: Problem, state: State) -> Array:
    """Off a point with a cusp and a negative coefficient, from which every direction goes down."""
    unit = -state.gradient / state.local_norm[:, None]
    diagonal = state.points.shape[1] ** -0.5
    return np.asarray(problem.nudge * np.where(np.isfinite(unit), unit, diagonal))
