"""Dual problems of support vector machines, solved on small working sets of variables.

Each round takes the variables that violate optimality most, minimises over them with the others
fixed, and adds the change to the function by a kernel sum. No row of the kernel matrix is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._config import get_options
from mercer._certificate import FitCertificate, relative_gap
from mercer._progress import report
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.engine import Dense, Program, as_float64, n_rows
from mercer.engine._compiled import core, core_allowed, instruction_set

WORKING_SET = 2048  # variables at most
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


class _SummedKernel:
    """Kernel sums by the engine; in single precision for a start, which is twice as fast."""

    def __init__(self, program: Program, X: Any) -> None:
        self.program, self.X = program, X
        self.single = isinstance(X, np.ndarray) and X.dtype == np.float64
        self.X32 = X.astype(np.float32) if self.single else X

    def matrix(self, rows: Array) -> Array:
        """k(x_i, x_j) for some rows i, j."""
        points = self.X[rows]
        return engine.gram(self.program, points, points)

    def sums(self, rows: Array, coef: Array) -> Array:
        """sum_i coef_i k(x_i, .) over some rows i, at all points."""
        X = self.X32 if self.single else self.X
        coef = coef[:, None].astype(np.float32 if self.single else np.float64)
        return engine.fields(self.program, X[rows], X, Dense(coef)).value[:, 0]


class _StoredKernel:
    """Rows of the kernel matrix, computed when they are first summed, and kept."""

    single = False

    def __init__(self, program: Program, X: Any) -> None:
        self.block, n = engine.GramBlocks(program, X), n_rows(X)
        self.K, self.place = np.empty((0, n)), np.full(n, -1)

    def matrix(self, rows: Array) -> Array:
        known = self.place[rows] >= 0
        old, new, M = rows[known], rows[~known], np.empty((len(rows), len(rows)))
        M[known] = self.K[self.place[old]][:, rows]
        if len(new):
            M[np.ix_(~known, known)] = M[np.ix_(known, ~known)].T
            M[np.ix_(~known, ~known)] = self.block(new, new)
        return M

    def sums(self, rows: Array, coef: Array) -> Array:
        new = np.unique(rows[self.place[rows] < 0])
        if len(new):
            self.place[new] = len(self.K) + np.arange(len(new))
            self.K = np.vstack([self.K, self.block(new, slice(None))])
        return coef @ self.K[self.place[rows]]


class _State:
    """The variables b, and f at all points."""

    def __init__(self, program: Program, X: Array, problem: DualProblem, start: Array) -> None:
        self.program, self.X, self.problem = program, X, problem
        self.start, self.b = start, start.copy()
        self.random = np.random.default_rng(0)
        self.group = np.zeros(len(start), dtype=np.int64)  # the number of each variable's group
        for k, members in enumerate(problem.groups or ()):
            self.group[members] = k
        self.largest = float(np.abs(engine.diagonal(program, X)).max())
        few = 8.0 * n_rows(X) ** 2 <= 2**20 * get_options().working_memory
        self.kernel = _StoredKernel(program, X) if few else _SummedKernel(program, X)
        self.values, self.exact, self.error = np.zeros(n_rows(X)), True, 0.0
        if start.any():
            self.sum_again()

    def sum_again(self) -> None:
        """f at the points, from all variables, in double precision."""
        at = np.flatnonzero(self.b)
        self.kernel.single = False
        self.values, self.exact, self.error = self._sums(at, self.b[at]), True, 0.0

    def _sums(self, at: Array, b: Array) -> Array:
        """sum_i e_i b_i k(x_{r_i}, .) at the points."""
        return self.kernel.sums(self.problem.rows[at], self.problem.signs[at] * b)

    def violation(self) -> tuple[float, Array]:
        """The largest violation of optimality, and the level of each group."""
        p, b = self.problem, self.b
        self.gradient = p.signs * self.values[p.rows] + p.linear
        rises, falls = b < p.upper, b > p.lower
        self.free = rises & falls
        low = np.where(rises, self.gradient, np.inf)
        high = np.where(falls, self.gradient, -np.inf)
        mass = float(np.abs(b).sum())
        self.size = mass * np.sqrt(self.largest)  # |f| is at most this
        slope = self.largest * mass + float(np.abs(p.linear).max())
        self.rounding = np.finfo(float).eps * slope + self.error  # of the gradient
        if p.groups is None:
            self.excess = np.maximum(-low, high)
            self.worst = [int(self.excess.argmax())]
            return float(self.excess.max()), np.zeros(0)
        levels, self.worst, largest = np.zeros(len(p.groups)), [], 0.0
        for k, group in enumerate(p.groups):
            i, j = group[low[group].argmin()], group[high[group].argmax()]
            self.worst += [i, j]
            largest = max(largest, float(high[j] - low[i]))
            between = self.gradient[group[self.free[group]]]
            ends = [v for v in (low[i], high[j]) if np.isfinite(v)]
            if len(between):
                levels[k] = float(np.median(between))
            elif ends:
                levels[k] = float(np.mean(ends))
        level = levels[self.group]
        self.excess = np.maximum(level - low, high - level)
        return largest, levels

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
        """Minimise over a working set of variables; whether any of them moved."""
        p, chosen, start = self.problem, *self._working_set()
        rows, e = p.rows[chosen], p.signs[chosen]
        M = self.kernel.matrix(rows)
        if np.any(e < 0.0):
            M *= np.outer(e, e)
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
        if not len(moved):
            return False
        self.values += self._sums(chosen[moved], change[moved])
        self.exact = False
        self.error += float(np.abs(e * self.values[rows] + p.linear[chosen] - g).max())
        return True

    def _working_set(self) -> tuple[Array, Array]:
        """Variables to minimise over, sorted by group, and where each group begins.

        Those between their bounds, the worst of each group, and a random sample of the others
        that violate optimality. The most violating ones would be too much alike: once a few of
        them have moved, the others have nothing to do.
        """
        free = np.flatnonzero(self.free)
        size = min(max(len(self.b) // 16, 256, 2 * len(free)), WORKING_SET)
        others = np.flatnonzero((self.excess > 0.0) & ~self.free)
        free = self._sample(free, size * 3 // 4)
        others = self._sample(others, size - len(free))
        chosen = np.unique(np.concatenate([free, others, self.worst]))
        if self.problem.groups is None:
            return chosen, np.zeros(0, dtype=np.int64)
        group = self.group[chosen]
        ends = np.cumsum(np.bincount(group, minlength=len(self.problem.groups)))
        return chosen[np.argsort(group, kind="stable")], np.concatenate([[0], ends])

    def _sample(self, variables: Array, count: int) -> Array:
        if len(variables) <= count:
            return variables
        return self.random.choice(variables, count, replace=False, shuffle=False)


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
