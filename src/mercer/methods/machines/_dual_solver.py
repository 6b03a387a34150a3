"""Dual problems of support vector machines, solved on small working sets of variables.

Each round takes the variables that violate optimality most, minimises over them with the others
fixed, and adds the change to the function by a kernel sum. No row of the kernel matrix is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._certificate import FitCertificate, relative_gap
from mercer._progress import report
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.engine import Dense, Program, as_float64, n_rows
from mercer.engine._compiled import core, core_allowed, instruction_set

WORKING_SET = 768  # variables at most
_SHARE = 4  # of all variables: more than a quarter at once costs more than it saves
_FEWEST = 256
_STEPS = 20  # per variable of a working set, before a Newton step
_NEWTON_STEPS = 10  # per working set; the rest is left to later rounds
_INNER = 0.03  # of the violation: to which a working set is minimised
_NEGLIGIBLE = 1e-8  # of the largest possible |f|^2: below it f is zero
_RIDGE = 1e-13  # of the mean diagonal: makes a singular kernel matrix regular
_FLAT = 1e-12  # smallest curvature, in directions in which the kernel matrix is singular


@dataclass(frozen=True, eq=False)
class DualProblem:
    """Minimise |f|^2 / 2 + <l, b> over b, where f = sum_i e_i b_i k(x_{r_i}, .).

    Variables stay within bounds, and the sum of b over each group stays what it is. The C-SVM has
    one variable per row, with e = 1, l = -y, bounds 0 and C y, and a single group.

    Attributes
    ----------
    rows : array of int, shape (m,)
        r: the point of each variable.
    signs : array of shape (m,)
        e: 1 or -1.
    linear : array of shape (m,)
        l.
    lower, upper : array of shape (m,)
    groups : tuple of arrays of int, or None
        The variables of each group; None if no sum is fixed.
    """

    rows: Array
    signs: Array
    linear: Array
    lower: Array
    upper: Array
    groups: tuple[Array, ...] | None


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Variables of a dual problem, and how far they are from optimal.

    Attributes
    ----------
    variables : array of shape (m,)
    values : array of shape (n,)
        f at the points.
    levels : array of shape (number of groups,)
        The multiplier of each group: the gradient is at least this where a variable can rise, and
        at most this where it can fall.
    certificate : FitCertificate
    n_iter : int
        Rounds.
    status : Status
    """

    variables: Array
    values: Array
    levels: Array
    certificate: FitCertificate
    n_iter: int
    status: Status


Objectives = Callable[[Array, Array, Array], tuple[float, float]]


def solve_dual(
    program: Program,
    X: Points,
    problem: DualProblem,
    start: Array,
    objectives: Objectives,
    *,
    tol: float,
    max_iter: int,
    time_limit: float = np.inf,
) -> DualSolution:
    """Solve a dual problem to a relative duality gap of `tol`.

    `start` satisfies all constraints. `objectives(b, values, levels)` returns the primal and
    the dual objective. After `max_iter` rounds or `time_limit` seconds the best point so far is
    returned, with its gap.
    """
    state = _State(program, as_float64(X.array), problem, start)
    deadline, n_iter, moves = monotonic() + time_limit, 0, True
    with single_threaded_blas():  # vectors are short: threads would wait for each other
        while True:
            violation, levels = state.violation()
            primal, dual = objectives(state.b, state.values, levels)
            gap, status = relative_gap(primal, dual), None
            if gap <= tol:
                status = Status.CONVERGED
            elif max(abs(primal), abs(dual)) <= _NEGLIGIBLE * state.size**2:
                status = Status.COMPLETE
            elif violation <= state.rounding or not moves:
                status = Status.STALLED
            elif n_iter >= max_iter or monotonic() > deadline:
                status = Status.MAX_ITER
            elif report("dual", n_iter, gap):
                status = Status.STOPPED
            if status is None:
                moves = state.improve(violation)
                n_iter += 1
            elif not state.exact:  # the changes that were added up have gathered rounding errors
                state.sum_again()
                moves = True
            else:
                break
    certificate = FitCertificate(primal, dual, *state.conditions(levels))
    return DualSolution(state.b, state.values, levels, certificate, n_iter, status)


class _State:
    """The variables b, and f at all points."""

    def __init__(self, program: Program, X: Array, problem: DualProblem, start: Array) -> None:
        self.program, self.X, self.problem = program, X, problem
        self.start, self.b = start, start.copy()
        self.order = np.random.default_rng(0).permutation(len(start))  # of variables that tie
        self.last: Array = self.order[:0]
        self.largest = float(np.abs(engine.diagonal(program, X)).max())
        self.sum_again()

    def sum_again(self) -> None:
        """f at the points, from all variables."""
        self.values, self.exact = np.zeros(n_rows(self.X)), True
        self._add(np.flatnonzero(self.b), self.b[self.b != 0.0])

    def _add(self, at: Array, change: Array) -> None:
        if not len(at):
            return
        rows, coef = self.problem.rows[at], (self.problem.signs[at] * change)[:, None]
        self.values += engine.fields(self.program, self.X[rows], self.X, Dense(coef)).value[:, 0]

    def violation(self) -> tuple[float, Array]:
        """The largest violation of optimality, and the level of each group."""
        p = self.problem
        self.gradient = p.signs * self.values[p.rows] + p.linear
        rises = np.where(self.b < p.upper, self.gradient, np.inf)
        falls = np.where(self.b > p.lower, self.gradient, -np.inf)
        mass = float(np.abs(self.b).sum())
        self.size = mass * np.sqrt(self.largest)  # |f| is at most this
        slope = self.largest * mass + float(np.abs(p.linear).max())
        self.rounding = np.finfo(float).eps * slope  # of the gradient
        if p.groups is None:
            self.up, self.down = -rises, falls
            return float(max(self.up.max(), self.down.max())), np.zeros(0)
        self.up, self.down, worst, levels = np.empty_like(rises), np.empty_like(rises), 0.0, []
        for group in p.groups:
            low, high = float(rises[group].min()), float(falls[group].max())
            self.up[group], self.down[group] = high - rises[group], falls[group] - low
            worst = max(worst, high - low)
            finite = [v for v in (low, high) if np.isfinite(v)]
            levels.append(float(np.mean(finite)) if finite else 0.0)
        return worst, np.array(levels)

    def conditions(self, levels: Array) -> tuple[float, float, float]:
        """Violations of stationarity, feasibility and complementarity.

        Multipliers of the bounds are the positive and negative parts of gradient minus level.
        """
        p, reduced = self.problem, self.gradient.copy()
        for group, level in zip(p.groups or (), levels, strict=True):
            reduced[group] -= level
        slack = np.where(reduced > 0.0, self.b - p.lower, p.upper - self.b)
        active = (slack > 0.0) & (np.abs(reduced) > 0.0)
        bounded = active & np.isfinite(slack)
        products = np.abs(reduced[bounded]) * slack[bounded]
        outside = np.maximum(p.lower - self.b, self.b - p.upper)
        drift = [abs(float(self.b[g].sum() - self.start[g].sum())) for g in p.groups or ()]
        return (
            float(np.abs(reduced[active]).max(initial=0.0)),
            float(max(outside.max(initial=0.0), *drift, 0.0)),
            float(products.max(initial=0.0)),
        )

    def improve(self, violation: float) -> bool:
        """Minimise over the variables that violate optimality most; whether any of them moved."""
        p, chosen = self.problem, self._working_set()
        members = [chosen] if p.groups is None else [np.intersect1d(g, chosen) for g in p.groups]
        chosen = np.concatenate(members)
        start = np.cumsum([0, *map(len, members)] if p.groups is not None else [], dtype=np.int64)
        points, e = self.X[p.rows[chosen]], p.signs[chosen]
        M = engine.gram(self.program, points, points) * np.outer(e, e)
        b, g = self.b[chosen], self.gradient[chosen]
        lower, upper = p.lower[chosen], p.upper[chosen]
        stop = max(_INNER * violation, self.rounding)
        for _ in range(_NEWTON_STEPS):
            most = _STEPS * len(chosen)
            if minimise_working_set(M, g, b, lower, upper, start, stop, most) < most:
                break
            _newton_step(M, g, b, lower, upper, start)
        change = b - self.b[chosen]
        self.b[chosen] = b
        moved = np.flatnonzero(change)
        self._add(chosen[moved], change[moved])
        self.exact &= not len(moved)
        self.last = chosen[np.argsort(-np.abs(change), kind="stable")]
        return len(moved) > 0

    def _working_set(self) -> Array:
        """Variables that were between their bounds, and those that violate optimality most."""
        p, last = self.problem, self.last
        size = min(WORKING_SET, max(len(self.b) // _SHARE, _FEWEST))
        between = last[(self.b[last] > p.lower[last]) & (self.b[last] < p.upper[last])]
        kept = between[: size // 2]
        half = (size - len(kept)) // 2
        return np.unique(
            np.concatenate([kept, self._worst(self.up, half), self._worst(self.down, half)])
        )

    def _worst(self, scores: Array, count: int) -> Array:
        scores = scores[self.order]
        if count < len(scores):
            worst = np.argpartition(-scores, count)[:count]
        else:
            worst = np.arange(len(scores))
        return self.order[worst[scores[worst] > 0.0]]


def minimise_working_set(
    M: Array,
    gradient: Array,
    b: Array,
    lower: Array,
    upper: Array,
    start: Array,
    tol: float,
    max_steps: int,
) -> int:
    """Minimise b'Mb / 2 + l'b over few variables, in place; return the number of steps.

    `gradient` is Mb + l. Group k, whose sum of b is kept, are the variables start[k] up to
    start[k + 1]; without groups variables move one at a time. The pair that moves is found by
    second-order selection (Fan, Chen, Lin, Working set selection using second order information
    for training support vector machines, JMLR 6, 2005).
    """
    if core_allowed():
        isa = instruction_set()
        steps: int = core().minimise_working_set(
            M, gradient, b, lower, upper, start, tol, max_steps, isa
        )
        return steps
    for step in range(max_steps):
        moves = (
            _pair(M, gradient, b, lower, upper, start, tol)
            if len(start)
            else _single(M, gradient, b, lower, upper, tol)
        )
        if moves is None:
            return step
        for i, t in moves:
            b[i] = np.clip(b[i] + t, lower[i], upper[i])
            gradient += t * M[i]
    return max_steps


def _newton_step(M: Array, g: Array, b: Array, lower: Array, upper: Array, start: Array) -> None:
    """Move all variables between their bounds towards their joint minimum, up to a bound.

    Where the kernel matrix is ill-conditioned, steps of pairs are short, and this is the way out.
    """
    free = np.flatnonzero((b > lower) & (b < upper))
    A = np.array([(free >= first) & (free < last) for first, last in pairwise(start)], dtype=float)
    A = A.reshape(-1, len(free))
    A = A[A.any(axis=1)]
    H = M[np.ix_(free, free)]
    H = H + _RIDGE * np.trace(H) / max(len(free), 1) * np.eye(len(free))
    system = np.block([[H, A.T], [A, np.zeros((len(A), len(A)))]])
    try:
        d = np.linalg.solve(system, np.concatenate([-g[free], np.zeros(len(A))]))[: len(free)]
    except np.linalg.LinAlgError:
        return
    room = np.where(d > 0.0, upper[free] - b[free], b[free] - lower[free])
    moves = d != 0.0
    t = float(np.min(room[moves] / np.abs(d[moves]), initial=1.0))
    b[free] = np.clip(b[free] + t * d, lower[free], upper[free])
    g += t * (M[:, free] @ d)


def _pair(
    M: Array, g: Array, b: Array, lower: Array, upper: Array, start: Array, tol: float
) -> list[tuple[int, float]] | None:
    """Two variables of a group that move by t and -t."""
    rises, falls = np.where(b < upper, g, np.inf), np.where(b > lower, g, -np.inf)
    groups = [slice(*ends) for ends in pairwise(start)]
    gaps = [falls[s].max(initial=-np.inf) - rises[s].min(initial=np.inf) for s in groups]
    group = groups[int(np.argmax(gaps))]
    if not max(gaps) > tol:
        return None
    i = group.start + int(np.argmin(rises[group]))
    slopes = np.where(b[group] > lower[group], g[group] - g[i], 0.0)
    curvature = np.maximum(M[i, i] + np.diagonal(M)[group] - 2.0 * M[i, group], _FLAT)
    gains = np.maximum(slopes, 0.0) ** 2 / curvature
    k = int(np.argmax(gains))
    j, t = group.start + k, float(slopes[k] / curvature[k])
    t = min(t, float(upper[i] - b[i]), float(b[j] - lower[j]))
    return [(i, t), (j, -t)]


def _single(
    M: Array, g: Array, b: Array, lower: Array, upper: Array, tol: float
) -> list[tuple[int, float]] | None:
    """The variable whose move lowers the objective most."""
    full = -g / np.maximum(np.diagonal(M), _FLAT)
    t = np.clip(full, lower - b, upper - b)
    gains = np.where(np.abs(g) > tol, -t * g - 0.5 * t**2 * np.maximum(np.diagonal(M), _FLAT), 0.0)
    i = int(np.argmax(gains))
    return [(i, float(t[i]))] if gains[i] > 0.0 else None
