"""Support vector machines: the primal and dual problems of classification, regression and novelty.

Each class holds one problem for rows with labels or targets y and bounds u (C times the weight of
each row); f is the function without the intercept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mercer._array import Array, Points
from mercer._certificate import FitCertificate
from mercer._status import Status
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import check_moderate, refuses_overflow
from mercer.methods.machines._dual_solver import DualProblem, DualSolution, solve_dual

_LARGEST = 1e100  # weight of a loss, which bounds a variable: objectives are quadratic in it


def loss_weights(C: float, weights: Array) -> Array:
    """C times the weight of each row."""
    if C * float(weights.max()) > _LARGEST:
        raise InputError(f"C times the largest weight must be at most {_LARGEST:g}; rescale them")
    return np.asarray(C * weights)


class SupportVectorProblem(ABC):
    """A dual problem, its objectives, and the intercept that its multipliers give."""

    dual: DualProblem
    start: Array

    @abstractmethod
    def objectives(self, b: Array, values: Array, levels: Array) -> tuple[float, float]:
        """The primal and the dual objective."""

    @abstractmethod
    def intercept(self, levels: Array) -> float:
        """What is added to f."""

    def margin(self, values: Array, levels: Array) -> float:
        """The divisor of f and the intercept that gives points on the margin the value +-1."""
        return 1.0

    def fit(self, kernel: Kernel, X: Points, **options: Any) -> MachineFit:
        """Solve the problem: `fit_support_vectors`."""
        return fit_support_vectors(kernel, X, self, **options)


class Classification(SupportVectorProblem):
    """min |f|^2 / 2 + sum_i u_i max(0, 1 - y_i (f(x_i) + c)), y_i = 1 or -1.

    Dual: max sum_i a_i - |f|^2 / 2 with f = sum_i a_i y_i k(x_i, .), 0 <= a_i <= u_i, and
    sum_i a_i y_i = 0 if there is an intercept c. Infinite bounds are the hard margin.
    """

    def __init__(self, y: Array, bounds: Array, fit_intercept: bool = True) -> None:
        self.y, self.bounds, self.hard = y, bounds, bool(np.isinf(bounds).any())
        self.dual = _one_per_row(-y, y * bounds, (np.arange(len(y)),) if fit_intercept else None)
        self.start = np.zeros(len(y))

    def objectives(self, b: Array, values: Array, levels: Array) -> tuple[float, float]:
        square = float(b @ values)
        dual = float(b @ self.y) - 0.5 * square
        if self.hard:  # f is divided by its least margin, which is then 1
            least = self.margin(values, levels)
            return (0.5 * square / least**2 if least > 0.0 else np.inf), dual
        losses = np.maximum(0.0, 1.0 - self._margins(values, levels))
        return 0.5 * square + float(self.bounds @ losses), dual

    def intercept(self, levels: Array) -> float:
        return -float(levels[0]) if len(levels) else 0.0

    def margin(self, values: Array, levels: Array) -> float:
        return float(self._margins(values, levels)[self.bounds > 0.0].min()) if self.hard else 1.0

    def _margins(self, values: Array, levels: Array) -> Array:
        return np.asarray(self.y * (values + self.intercept(levels)))


class NuClassification(SupportVectorProblem):
    """min |f|^2 / 2 - nu s W + sum_i u_i max(0, s - y_i (f(x_i) + c)) over f, c and s, W = sum u.

    Dual: max -|f|^2 / 2 with f = sum_i a_i y_i k(x_i, .), 0 <= a_i <= u_i, sum_i a_i = nu W,
    and sum_i a_i y_i = 0 if there is an intercept. At most a share nu of the weight has a margin
    below s, and at least a share nu are support vectors.
    """

    def __init__(self, y: Array, bounds: Array, nu: float, fit_intercept: bool = True) -> None:
        self.y, self.bounds, self.total = y, bounds, nu * float(bounds.sum())
        sides = [np.flatnonzero(y == side) for side in (1.0, -1.0)]
        zeros = np.zeros(len(y))
        if fit_intercept:
            self.dual = _one_per_row(zeros, y * bounds, tuple(sides))
            filled = sum(_filled(bounds, side, 0.5 * self.total) for side in sides)
            self.start = y * filled
        else:
            whole = np.arange(len(y))
            self.dual = DualProblem(whole, y, zeros, zeros, bounds, (whole,))
            self.start = _filled(bounds, whole, self.total)

    def objectives(self, b: Array, values: Array, levels: Array) -> tuple[float, float]:
        square = float((self.dual.signs * b) @ values)
        s = self.margin(values, levels)
        margins = self.y * (values + self.intercept(levels))
        losses = float(self.bounds @ np.maximum(0.0, s - margins))
        return 0.5 * square - s * self.total + losses, -0.5 * square

    def intercept(self, levels: Array) -> float:
        return -0.5 * float(levels[0] + levels[1]) if len(levels) == 2 else 0.0

    def margin(self, values: Array, levels: Array) -> float:
        return 0.5 * float(levels[0] - levels[1]) if len(levels) == 2 else float(levels[0])


class Regression(SupportVectorProblem):
    """min |f|^2 / 2 + sum_i u_i max(0, |y_i - f(x_i) - c| - epsilon).

    Dual: max <y, b> - epsilon |b|_1 - |f|^2 / 2 with f = sum_i b_i k(x_i, .), |b_i| <= u_i, and
    sum_i b_i = 0 if there is an intercept c. The parts of b above and below zero are two variables.
    """

    def __init__(self, y: Array, bounds: Array, epsilon: float, fit_intercept: bool = True) -> None:
        self.y, self.bounds, self.epsilon = y, bounds, epsilon
        groups = (np.arange(2 * len(y)),) if fit_intercept else None
        self.dual = _two_per_row(epsilon - y, -epsilon - y, bounds, groups)
        self.start = np.zeros(2 * len(y))

    def objectives(self, b: Array, values: Array, levels: Array) -> tuple[float, float]:
        square = float(b @ values[self.dual.rows])
        misses = np.abs(self.y - values - self.intercept(levels)) - self.epsilon
        losses = float(self.bounds @ np.maximum(0.0, misses))
        return 0.5 * square + losses, -0.5 * square - float(b @ self.dual.linear)

    def intercept(self, levels: Array) -> float:
        return -float(levels[0]) if len(levels) else 0.0


class NuRegression(SupportVectorProblem):
    """min |f|^2 / 2 + nu e W + sum_i u_i max(0, |y_i - f(x_i) - c| - e) over f, c and e, W = sum u.

    Dual: as that of `Regression` without epsilon, and with |b|_1 = nu W.
    """

    def __init__(self, y: Array, bounds: Array, nu: float, fit_intercept: bool = True) -> None:
        self.y, self.bounds, self.total = y, bounds, nu * float(bounds.sum())
        n = len(y)
        whole, half = np.arange(n), _filled(bounds, np.arange(n), 0.5 * self.total)
        if fit_intercept:
            self.dual = _two_per_row(-y, -y, bounds, (whole, n + whole))
            self.start = np.concatenate([half, -half])
        else:
            rows, signs = np.tile(whole, 2), np.repeat([1.0, -1.0], n)
            linear, both = np.concatenate([-y, y]), np.tile(bounds, 2)
            self.dual = DualProblem(rows, signs, linear, 0.0 * both, both, (np.arange(2 * n),))
            self.start = np.tile(half, 2)

    def objectives(self, b: Array, values: Array, levels: Array) -> tuple[float, float]:
        square = float((self.dual.signs * b) @ values[self.dual.rows])
        e = self.tube(levels)
        misses = np.abs(self.y - values - self.intercept(levels)) - e
        losses = float(self.bounds @ np.maximum(0.0, misses))
        return 0.5 * square + e * self.total + losses, -0.5 * square - float(b @ self.dual.linear)

    def intercept(self, levels: Array) -> float:
        return -0.5 * float(levels[0] + levels[1]) if len(levels) == 2 else 0.0

    def tube(self, levels: Array) -> float:
        """e: how far a target may be from the function without a loss."""
        e = 0.5 * (levels[1] - levels[0]) if len(levels) == 2 else -levels[0]
        return max(float(e), 0.0)


class OneClass(SupportVectorProblem):
    """min |f|^2 / 2 - nu s W + sum_i u_i max(0, s - f(x_i)) over f and s, W = sum u.

    Dual: max -|f|^2 / 2 with f = sum_i a_i k(x_i, .), 0 <= a_i <= u_i, sum_i a_i = nu W.
    """

    def __init__(self, bounds: Array, nu: float) -> None:
        self.bounds, self.total = bounds, nu * float(bounds.sum())
        whole = np.arange(len(bounds))
        self.dual = _one_per_row(np.zeros(len(bounds)), bounds, (whole,))
        self.start = _filled(bounds, whole, self.total)

    def objectives(self, b: Array, values: Array, levels: Array) -> tuple[float, float]:
        square, s = float(b @ values), float(levels[0])
        losses = float(self.bounds @ np.maximum(0.0, s - values))
        return 0.5 * square - s * self.total + losses, -0.5 * square

    def intercept(self, levels: Array) -> float:
        return -float(levels[0])


@dataclass(frozen=True)
class SupportVectorCertificate(FitCertificate):
    """How far a support vector machine is from optimal, and where its points lie.

    Attributes
    ----------
    primal, dual, stationarity, feasibility, complementarity, gap, relative_gap
        As in `FitCertificate`.
    outside, free, at_bound : float
        Shares of the weight of the points with a variable of 0 (they have no loss), between its
        bounds (on the margin), and at its upper bound (within the margin or beyond it). For the
        nu-machines `at_bound <= nu <= free + at_bound`.
    """

    outside: float
    free: float
    at_bound: float


@dataclass(frozen=True, eq=False)
class MachineFit:
    """A fitted machine: the solution of a support vector problem, or of one with smooth losses.

    Attributes
    ----------
    coef : array of shape (n,), or (n, classes) for the softmax loss
        f = sum_i coef_i k(x_i, .); zero for points that are not support vectors.
    intercept : float, or array of shape (classes,)
    certificate : FitCertificate
    variables : array
        The variables of the solver, for support vectors as shares of their bounds (if those are
        finite); a later fit can continue from them, even with other bounds.
    n_iter : int
    status : Status
    """

    coef: Array
    intercept: float
    certificate: FitCertificate
    variables: Array
    n_iter: int
    status: Status


@refuses_overflow
def fit_support_vectors(
    kernel: Kernel,
    X: Points,
    problem: SupportVectorProblem,
    *,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    time_limit: float = np.inf,
    start: Array | None = None,
) -> MachineFit:
    """Solve a support vector problem to a relative duality gap of `tol`.

    `start` are the variables of an earlier fit, perhaps with other bounds. After `max_iter`
    rounds or `time_limit` seconds the fit reached so far is returned, with its gap.
    """
    check_moderate(kernel, X)
    dual = problem.dual
    bounds = np.maximum(-dual.lower, dual.upper)
    unit = np.where((bounds > 0.0) & np.isfinite(bounds), bounds, 1.0)
    first = problem.start if start is None else _feasible(start * unit, problem)
    solution = solve_dual(
        kernel.program,
        X,
        dual,
        first,
        problem.objectives,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
    )
    b, n = solution.variables, len(X)
    scale = problem.margin(solution.values, solution.levels)
    if scale <= 0.0:  # the classes overlap: no hard margin, or f is zero because nu is too small
        scale = 1.0
    return MachineFit(
        coef=np.bincount(dual.rows, dual.signs * b, n) / scale,
        intercept=problem.intercept(solution.levels) / scale,
        certificate=_certificate(problem, solution),
        variables=b / unit,
        n_iter=solution.n_iter,
        status=solution.status,
    )


def _feasible(b: Array, problem: SupportVectorProblem) -> Array:
    """Variables near b that satisfy the constraints: as few as possible leave their bounds."""
    dual = problem.dual
    b = np.clip(b, dual.lower, dual.upper)
    for group in dual.groups or ():
        missing = float(problem.start[group].sum() - b[group].sum())
        up, down = dual.upper[group] - b[group], b[group] - dual.lower[group]
        free_first = np.argsort((up == 0.0) | (down == 0.0), kind="stable")
        at, room = group[free_first], (up if missing > 0.0 else down)[free_first]
        before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
        b[at] += np.sign(missing) * np.clip(abs(missing) - before, 0.0, room)
    return np.asarray(np.clip(b, dual.lower, dual.upper))


def _certificate(problem: SupportVectorProblem, solution: DualSolution) -> SupportVectorCertificate:
    dual, size = problem.dual, np.abs(solution.variables)
    bounds = np.maximum(np.abs(dual.lower), dual.upper)
    n = len(solution.values)
    support = np.bincount(dual.rows, size > 0.0, n) > 0
    full = np.bincount(dual.rows, (size > 0.0) & (size == bounds), n) > 0
    weights = np.where(np.isfinite(bounds[:n]), bounds[:n], 1.0)
    shares = weights / weights.sum()
    outside, at_bound = float(shares @ ~support), float(shares @ full)
    found = {f.name: getattr(solution.certificate, f.name) for f in fields(FitCertificate)}
    free = float(shares @ (support & ~full))
    return SupportVectorCertificate(**found, outside=outside, free=free, at_bound=at_bound)


def _one_per_row(linear: Array, far: Array, groups: tuple[Array, ...] | None) -> DualProblem:
    """One variable per row between 0 and `far`, which may be negative."""
    n, zeros = len(linear), np.zeros(len(linear))
    lower, upper = np.minimum(zeros, far), np.maximum(zeros, far)
    return DualProblem(np.arange(n), np.ones(n), linear, lower, upper, groups)


def _two_per_row(
    above: Array, below: Array, bounds: Array, groups: tuple[Array, ...] | None
) -> DualProblem:
    """Two variables per row, with their linear terms: one >= 0 and one <= 0."""
    n, zeros = len(bounds), np.zeros(len(bounds))
    return DualProblem(
        rows=np.tile(np.arange(n), 2),
        signs=np.ones(2 * n),
        linear=np.concatenate([above, below]),
        lower=np.concatenate([zeros, -bounds]),
        upper=np.concatenate([bounds, zeros]),
        groups=groups,
    )


def _filled(bounds: Array, at: Array, total: float) -> Array:
    """Variables with this sum: the first ones at their bounds, the others zero."""
    b, before = np.zeros(len(bounds)), np.cumsum(bounds[at]) - bounds[at]
    b[at] = np.clip(total - before, 0.0, bounds[at])
    if total > float(bounds[at].sum()) * (1.0 + 1e-12):
        raise InputError("nu is too large: a class has too little weight for it; lower nu")
    return b
