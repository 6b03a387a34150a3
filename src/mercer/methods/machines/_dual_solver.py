"""Dual problems of support vector machines, solved on small working sets of variables.

Each round takes some of the variables that violate optimality, minimises over them with the others
fixed, and adds the change of the function at all points. Rows of the kernel matrix are kept if the
whole matrix would fit into the share of `working_memory` of one thread; otherwise the change is a
kernel sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._certificate import FitCertificate, relative_gap
from mercer._checkpoint import Place, checkpointed, generator_state, set_generator_state
from mercer._checkpoint import State as Kept
from mercer._config import get_options
from mercer._progress import report
from mercer._status import Status
from mercer._threads import single_threaded_blas, stop_if_interrupted, thread_count
from mercer.engine import Dense, Program, as_float64, n_rows
from mercer.methods.machines._working_set import solve_working_set

WORKING_SET = 2048  # variables at most, whose matrix takes 32 MiB
_FEWEST, _SHARE = 256, 16  # a working set has 256 variables, or a sixteenth of all
_INNER = 0.03  # share of the violation to which a working set is minimised
_NEGLIGIBLE = 1e-8  # of the largest possible |f|^2: below it f is zero


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
    deadline, n_iter, moves, stopped = monotonic() + time_limit, 0, True, False
    # vectors are short, so threads would wait for each other; single precision may overflow
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        place = checkpointed("dual", program, X.array, problem, start, tol)
        state = _State(program, as_float64(X.array), problem, start)
        if place.found is not None:
            n_iter, moves = state.take_up(place.found)
        while True:
            place.keep(partial(state.kept, n_iter, moves))
            stop_if_interrupted()
            violation, levels = state.violation()
            primal, dual = objectives(state.b, state.values, levels)
            gap, status = relative_gap(primal, dual), None
            if gap <= tol:
                status = Status.CONVERGED
            elif max(abs(primal), abs(dual)) <= _NEGLIGIBLE * state.size**2:
                status = Status.COMPLETE
            elif not (violation > state.rounding and moves):  # or NaN
                status = Status.STALLED
            elif n_iter >= max_iter or monotonic() > deadline:
                status = Status.MAX_ITER
            elif stopped or (stopped := report("dual", n_iter, gap)):
                status = Status.STOPPED
                place.keep(partial(state.kept, n_iter, moves), last=True)
                place = Place(None)  # what follows ends this run, and is no part of the next
            if status is None:
                moves = state.improve(violation, tol)
                n_iter += 1
            elif not state.exact:  # adding up changes has accumulated rounding errors
                state.sum_again()
                moves = True
            else:
                break
    certificate = FitCertificate(primal, dual, *state.conditions(levels))
    return DualSolution(state.b, state.values, levels, certificate, n_iter, status)


class _SummedKernel:
    """The kernel matrix of many points, none of which is kept."""

    def __init__(self, program: Program, X: Any) -> None:
        self.program, self.X, self.narrow = program, X, X
        if isinstance(X, np.ndarray) and X.dtype == np.float64:
            self.narrow = X.astype(np.float32)

    def matrix(self, rows: Array) -> Array:
        """k(x_i, x_j) for some rows i, j."""
        points = self.X[rows]
        return engine.gram(self.program, points, points)

    def sums(self, rows: Array, coef: Array, single: bool) -> Array:
        """sum_i coef_i k(x_i, .) over some rows i, at all points; perhaps in single precision."""
        X = self.narrow if single else self.X
        dtype = np.float32 if single and X is not self.X else np.float64
        coef = coef[:, None].astype(dtype)
        return np.asarray(engine.fields(self.program, X[rows], X, Dense(coef)).value[:, 0])


class _StoredKernel:
    """The kernel matrix of few points: a row is computed when it is first summed, and kept."""

    def __init__(self, program: Program, X: Any) -> None:
        self.block, n = engine.GramBlocks(program, X), n_rows(X)
        self.K, self.count = np.empty((n, n)), 0  # rows in the order in which they were computed
        self.place = np.full(n, -1)

    def matrix(self, rows: Array) -> Array:
        """k(x_i, x_j) for some rows i, j."""
        known = self.place[rows] >= 0
        new, M = rows[~known], np.empty((len(rows), len(rows)))
        M[known] = self.K[self.place[rows[known]]][:, rows]
        if len(new):
            M[np.ix_(~known, known)] = M[np.ix_(known, ~known)].T
            M[np.ix_(~known, ~known)] = self.block(new, new)
        return M

    def restore(self, place: Array) -> None:
        """Compute rows again, in the order of an earlier run."""
        order = np.argsort(place)[np.count_nonzero(place < 0) :]
        self.place, self.count = np.array(place), len(order)
        if len(order):
            self.K[: self.count] = self.block(order, slice(None))

    def sums(self, rows: Array, coef: Array, single: bool) -> Array:
        """sum_i coef_i k(x_i, .) over some rows i, at all points."""
        new = np.unique(rows[self.place[rows] < 0])
        if len(new):
            self.place[new] = self.count + np.arange(len(new))
            self.K[self.count : self.count + len(new)] = self.block(new, slice(None))
            self.count += len(new)
        return np.asarray(np.bincount(self.place[rows], coef, self.count) @ self.K[: self.count])


class _State:
    """The variables b, and f at all points.

    Changes of f are summed in single precision, which is twice as fast, until their error matters
    or the solver wants to stop. Then f is summed again in double precision.
    """

    def __init__(self, program: Program, X: Any, problem: DualProblem, start: Array) -> None:
        self.problem, self.start, self.b = problem, start, start.copy()
        self.random = np.random.default_rng(0)
        self.group = np.zeros(len(start), dtype=np.int64)  # the number of each variable's group
        for k, members in enumerate(problem.groups or ()):
            self.group[members] = k
        self.n, self.largest = n_rows(X), float(np.abs(engine.diagonal(program, X)).max())
        room = 2**20 * get_options().working_memory / thread_count()
        kernel = _StoredKernel if 8.0 * self.n**2 <= room else _SummedKernel
        self.kernel: _StoredKernel | _SummedKernel = kernel(program, X)
        self.sum_again()
        self.single = True

    def kept(self, n_iter: int, moves: bool) -> Kept:
        """What determines the remaining rounds."""
        found: Kept = {name: getattr(self, name) for name in ("single", "exact", "error")}
        found |= {"random": generator_state(self.random), "n_iter": n_iter, "moves": moves}
        if isinstance(self.kernel, _StoredKernel):  # sums are over rows in the order of this
            found["place"] = self.kernel.place.copy()
        return found | {"b": self.b.copy(), "values": self.values.copy()}

    def take_up(self, found: Kept) -> tuple[int, bool]:
        """Continue from an earlier run; return its rounds, and whether the last one moved."""
        self.single, self.exact, self.error = found["single"], found["exact"], found["error"]
        self.b, self.values = np.array(found["b"]), np.array(found["values"])
        set_generator_state(self.random, found["random"])
        if isinstance(self.kernel, _StoredKernel) and "place" in found:  # else memory was less
            self.kernel.restore(found["place"])
        return found["n_iter"], found["moves"]

    def sum_again(self) -> None:
        """f at the points, from all variables, in double precision from now on."""
        self.single, self.exact, self.error = False, True, 0.0
        at = np.flatnonzero(self.b)
        self.values = self._sums(at, self.b[at])

    def _sums(self, at: Array, b: Array) -> Array:
        """sum_i e_i b_i k(x_{r_i}, .) at the points, over some variables i."""
        if not len(at):
            return np.zeros(self.n)
        rows, coef = self.problem.rows[at], self.problem.signs[at] * b
        return self.kernel.sums(rows, coef, self.single)

    def violation(self) -> tuple[float, Array]:
        """The largest violation of optimality, and the level of each group.

        `excess` is how far the gradient of each variable is on the wrong side of the level.
        """
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
        levels, self.worst, violation = np.zeros(len(p.groups)), [], 0.0
        for k, group in enumerate(p.groups):
            i, j = group[low[group].argmin()], group[high[group].argmax()]
            self.worst += [i, j]
            violation = max(violation, float(high[j] - low[i]))
            free = self.gradient[group[self.free[group]]]
            ends = [v for v in (low[i], high[j]) if np.isfinite(v)]
            levels[k] = np.median(free) if len(free) else np.mean(ends) if ends else 0.0
        level = levels[self.group]
        self.excess = np.maximum(level - low, high - level)
        return violation, levels

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

    def improve(self, violation: float, tol: float) -> bool:
        """Minimise over a working set of variables; return whether any of them moved."""
        p, chosen, start = self.problem, *self._working_set()
        rows, e = p.rows[chosen], p.signs[chosen]
        M = self.kernel.matrix(rows)
        if np.any(e < 0.0):
            M *= np.outer(e, e)
        b, g = self.b[chosen], self.gradient[chosen]
        lower, upper = p.lower[chosen], p.upper[chosen]
        share = _INNER if len(chosen) < len(self.b) else min(_INNER, tol)  # nothing else moves
        stop = max(share * violation, self.rounding)
        solve_working_set(M, g, b, lower, upper, start, stop)
        change = b - self.b[chosen]
        self.b[chosen] = b
        moved = np.flatnonzero(change)
        if not len(moved):
            return False
        self.values += self._sums(chosen[moved], change[moved])
        self.exact = False
        # the gradient is known from M too: what differs is the error of the sums
        self.error += float(np.abs(e * self.values[rows] + p.linear[chosen] - g).max())
        return True

    def _working_set(self) -> tuple[Array, Array]:
        """Variables to minimise over, sorted by group, and where each group begins.

        They are those between their bounds, a random sample of the others that violate optimality,
        and the two of each group that violate it most, so that every round makes progress. The most
        violating ones alone would be too similar: after a few of them have moved, the others
        no longer violate optimality.
        """
        free, others = np.flatnonzero(self.free), np.flatnonzero((self.excess > 0.0) & ~self.free)
        size = min(max(len(self.b) // _SHARE, _FEWEST, 2 * len(free)), WORKING_SET)
        most = 3 * size // 4
        if len(free) > most:
            free = free[np.argpartition(-self.excess[free], most)[:most]]
        if len(others) > size - len(free):
            others = self.random.choice(others, size - len(free), replace=False, shuffle=False)
        chosen = np.unique(np.concatenate([free, others, self.worst]))
        if self.problem.groups is None:
            return chosen, np.zeros(0, dtype=np.int64)
        group = self.group[chosen]
        ends = np.cumsum(np.bincount(group, minlength=len(self.problem.groups)))
        return chosen[np.argsort(group, kind="stable")], np.concatenate([[0], ends])
