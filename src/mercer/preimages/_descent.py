"""The loop of every iterative solver: a direction per row, a safeguard, rows retired when done.

A solver only says where to go (`direction`). The loop walks there if the objective falls enough
(Armijo), else less far, and judges when a row has arrived, has left for infinity, or cannot go on.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array, positive, positive_int
from mercer._progress import Callback, Step
from mercer._status import Status
from mercer.preimages._problem import Problem, best_of
from mercer.preimages._result import Found, History
from mercer.preimages._solver import Solver
from mercer.preimages._state import State, row_products
from mercer.preimages._stopping import Judge

_ARMIJO = 1e-4
_HALVINGS = 40


@dataclass(frozen=True)
class Descent(Solver):
    """Settings that iterative solvers share.

    Parameters
    ----------
    tol : float
        A row has converged when its gradient is at most tol times the bound of SPEC C4 (for radial
        kernels), or times the size of its two parts (for others).
    max_iter : int
    """

    tol: float = 1e-10
    max_iter: int = 1000

    needs_start = True
    order = 1  # derivatives that `direction` needs
    guarded = True  # is a step taken only if the objective falls?

    def __post_init__(self) -> None:
        object.__setattr__(self, "tol", positive(self.tol, "tol"))
        object.__setattr__(self, "max_iter", positive_int(self.max_iter, "max_iter"))

    def memory(self, problem: Problem, rows: int) -> Any:
        """What the solver keeps between iterations, for this many rows; None if nothing."""
        return None

    @abstractmethod
    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        """The step to try first, for each row."""

    def learn(self, memory: Any, rows: Array, old: State, new: State) -> None:
        """Update the memory of some rows after their steps."""

    def keep(self, memory: Any, rows: Array) -> Any:
        """The memory of some rows only."""
        return memory

    def solve(
        self,
        problem: Problem,
        starts: Array,
        *,
        history: bool = False,
        callback: Callback | None = None,
    ) -> Found:
        """Walk from every start; keep the best end of each element."""
        s, b, d = starts.shape
        owners = np.tile(np.arange(b), s)
        walk = _Walk(self, problem, starts.reshape(s * b, d).astype(float), owners, history)
        walk.run(callback)
        index, points = best_of(problem, walk.points.reshape(s, b, d))
        best = index * b + np.arange(b)
        evaluations = walk.n_evaluations.reshape(s, b).sum(axis=0)
        path = walk.history(best) if history else None
        return Found(points, walk.status[best], walk.n_iter[best], evaluations, path)


@dataclass
class _Walk:
    """One run of the loop; arrays have one row per start of each element."""

    solver: Descent
    problem: Problem
    points: Array
    owners: Array
    record: bool
    status: Array = field(init=False)
    n_iter: Array = field(init=False)
    n_evaluations: Array = field(init=False)
    path: list[tuple[Array, Array, Array]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        m = len(self.points)
        self.points = self.problem.constraint.project(self.points, self.owners)
        self.status = np.full(m, Status.MAX_ITER, dtype=object)
        self.n_iter = np.zeros(m, dtype=int)
        self.n_evaluations = np.ones(m, dtype=int)
        self.judge = Judge(self.problem, self.solver.tol)

    def run(self, callback: Callback | None) -> None:
        active = np.arange(len(self.points))
        state = self.problem.at(self.points, self.owners, self.solver.order)
        memory = self.solver.memory(self.problem, len(active))
        plain = np.zeros(len(active), dtype=bool)  # rows whose last direction led nowhere
        for iteration in range(self.solver.max_iter + 1):
            verdict, residual = self.judge(state, self.owners[active])
            self._record(active, state)
            going = np.array([v is None for v in verdict], dtype=bool)
            self.status[active[~going]] = verdict[~going]
            self.points[active] = state.points
            if not going.any() or iteration == self.solver.max_iter:
                return
            if callback is not None and callback(Step(iteration, float(residual.max()))):
                self.status[active[going]] = Status.STOPPED
                return
            if not going.all():
                active, state, plain = active[going], state[going], plain[going]
                memory = self.solver.keep(memory, going)
            new, moved = self._step(state, active, memory, plain)
            self.n_iter[active[moved]] += 1
            stuck = ~moved & plain
            if stuck.any():
                rows, rest = active[stuck], ~stuck
                self.status[rows] = self.judge.stalled(state[stuck], self.owners[rows])
                active, plain, moved = active[rest], plain[rest], moved[rest]
                memory, state, new = self.solver.keep(memory, rest), state[rest], new[rest]
            if not len(active):
                return
            self.solver.learn(memory, moved, state, new)
            plain, state = ~moved, new

    def _step(self, state: State, active: Array, memory: Any, plain: Array) -> tuple[State, Array]:
        """Move every row downhill; False for rows that could not be moved."""
        owners = self.owners[active]
        direction = self.solver.direction(self.problem, state, owners, memory)
        if not self.solver.guarded:
            new = self._at(state.points + direction, active)
            return new, np.ones(len(active), dtype=bool)
        if plain.any():
            direction[plain] = steepest(self.problem, state[plain])
        slope = row_products(direction, state.gradient)
        uphill = ~((slope < 0) & (slope > -np.inf))
        if uphill.any():
            direction[uphill] = steepest(self.problem, state[uphill])
        new, moved = self._search(state, active, direction)
        return (self._snapped(new, active), moved)

    def _search(self, state: State, active: Array, direction: Array) -> tuple[State, Array]:
        """Backtrack until the objective falls by a part of what the slope promises."""
        new, moved = state, np.zeros(len(active), dtype=bool)
        t = np.ones(len(active))
        todo = np.arange(len(active))
        for _ in range(_HALVINGS):
            if len(todo) == len(active):  # nothing to copy
                old, step = state, direction if (t == 1.0).all() else t[:, None] * direction
            else:
                old, step = state[todo], t[todo, None] * direction[todo]
            tried = self._at(old.points + step, active[todo])
            rise = tried.rise_from(old)
            gap = tried.points - old.points
            expected = row_products(gap, old.gradient)
            good = rise <= _ARMIJO * expected
            if not good.all():
                good |= self.judge.level(rise, tried, old, self.owners[active[todo]])
            if not (expected < 0).all():
                good &= np.any(gap != 0, axis=1)
            if good.all() and len(todo) == len(active):
                return tried, good  # the usual case: nothing to copy
            if good.any():
                new = new.updated(todo[good], tried[good])
                moved[todo[good]] = True
            bad = ~good
            if not bad.any():
                break
            t[todo[bad]] *= _shrink(rise[bad], expected[bad])
            todo = todo[bad]
        return new, moved

    def _at(self, points: Array, active: Array) -> State:
        owners = self.owners[active]
        points = self.problem.constraint.project(points, owners)
        self.n_evaluations[active] += 1
        return self.problem.at(points, owners, self.solver.order)

    def _snapped(self, state: State, active: Array) -> State:
        """Where the kernel has cusps minimisers may be points of the element: try the nearest."""
        if not self.problem.has_point_cusps or not self.problem.constraint.is_free:
            return state
        points = self.problem.nearest_point(state.points)
        tried = self._at(points, active)
        better = tried.rise_from(state) < 0
        return state.updated(np.flatnonzero(better), tried[better]) if better.any() else state

    def _record(self, active: Array, state: State) -> None:
        if not self.record:
            return
        m, d = self.points.shape
        row = (np.full((m, d), np.nan), np.full(m, np.nan), np.full(m, np.nan))
        objective = state.objective + self.problem.offset
        for to, part in zip(row, (state.points, objective, state.gradient_norm), strict=True):
            to[active] = part
        self.path.append(row)

    def history(self, rows: Array) -> History:
        """The paths of some rows."""
        points, objective, norm = (np.stack(part) for part in zip(*self.path, strict=True))
        return History(points[:, rows], objective[:, rows], norm[:, rows])


def _shrink(rise: Array, expected: Array) -> Array:
    """Factor from the parabola through the values and the slope, between 0.1 and 0.5."""
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = -expected / (2.0 * (rise - expected))
    return np.clip(np.nan_to_num(factor, nan=0.1, posinf=0.5, neginf=0.1), 0.1, 0.5)


def fixed_point_step(problem: Problem, state: State) -> Array:
    """-gradient / stiffness in the metric of the kernel: the published step, of either sign."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(-problem.precondition(state.gradient) / state.stiffness[:, None])


def steepest(problem: Problem, state: State) -> Array:
    """Downhill with the length of the fixed-point step where there is one, else of the gradient."""
    if state.stiffness is None:
        return _unit_steps(state)
    step = fixed_point_step(problem, replace(state, stiffness=np.abs(state.stiffness)))
    step = problem.shortened(step, state)
    fine = np.isfinite(row_products(step, state.gradient))
    return step if fine.all() else np.where(fine[:, None], step, _unit_steps(state))


def _unit_steps(state: State) -> Array:
    """Along the gradient, a thousandth of the way to the origin, or as much."""
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.nan_to_num(-state.gradient / state.local_norm[:, None])
    length = np.maximum(1e-3 * np.linalg.norm(state.points, axis=1, keepdims=True), 1e-3)
    return np.asarray(unit * length)
