"""Kernel machines with smooth losses, such as logistic regression, by Newton's method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from mercer._array import Array, Points
from mercer._certificate import FitCertificate, relative_gap
from mercer._checkpoint import Place, checkpointed
from mercer._progress import report
from mercer._status import Status
from mercer.kernels import Kernel
from mercer.linalg import GramOperator, nystrom, solve
from mercer.linalg._inputs import check_moderate, refuses_overflow
from mercer.linalg._solve import DIRECT_UP_TO
from mercer.methods.machines._losses import Loss
from mercer.methods.machines._support_vectors import MachineFit

_NEGLIGIBLE = 1e-12  # of the objective at zero: a gap below it is rounding
_DECREASE = 1e-4  # Armijo: share of the slope by which a step must lower the objective
_HALVINGS = 40
_SMALLEST = 1e-300  # curvature, so that its square root is not zero
_EPS = float(np.finfo(np.float64).eps)


class NewtonProblem(ABC):
    """A problem that Newton's method solves."""

    @property
    @abstractmethod
    def start(self) -> Array:
        """Coefficients and intercepts of zero."""

    @abstractmethod
    def _state(self, kernel: Kernel, X: Points, start: Array) -> NewtonState:
        """Where the search begins."""

    @refuses_overflow
    def fit(
        self,
        kernel: Kernel,
        X: Points,
        *,
        tol: float = 1e-5,
        max_iter: int = 100,
        time_limit: float = np.inf,
        start: Array | None = None,
    ) -> MachineFit:
        """Solve the problem to a relative duality gap of `tol`, as `fit_support_vectors` does."""
        check_moderate(kernel, X)
        start = self.start if start is None else start
        place = checkpointed("Newton", self, kernel, X.array, start, tol, max_iter)
        state = self._state(kernel, X, start)
        return _minimised(state, place, tol=tol, max_iter=max_iter, time_limit=time_limit)


@dataclass(frozen=True, eq=False)
class SmoothProblem(NewtonProblem):
    """min |f|^2 / 2 + sum_i u_i l(y_i, f(x_i) + c) for a convex loss l with a derivative.

    Dual: max -|f|^2 / 2 - sum_i u_i l*(y_i, -a_i / u_i) with f = sum_i a_i k(x_i, .), and
    sum_i a_i = 0 if there is an intercept c. At the optimum a_i = -u_i l'(y_i, f(x_i) + c).
    """

    loss: Loss
    y: Array
    bounds: Array  # u >= 0
    fit_intercept: bool = True

    @property
    def start(self) -> Array:
        """a = 0 and c = 0."""
        return np.zeros(len(self.y) + 1)

    def primal(self, square: float, t: Array) -> float:
        """The objective, given |f|^2 and t = f + c at the points."""
        return 0.5 * square + float(self.bounds @ self.loss(self.y, t))

    def dual_point(self, b: Array) -> tuple[float, float]:
        """Factors of the positive and the negative part of b that make its sum zero.

        Conjugates are finite at zero, so that they stay finite between zero and a gradient.
        """
        above, below = float(b[b > 0.0].sum()), float(-b[b < 0.0].sum())
        if not self.fit_intercept or above == below:
            return 1.0, 1.0
        least = min(above, below)
        return (least / above if above else 0.0), (least / below if below else 0.0)

    def dual(self, a: Array, f: Array) -> float:
        """The dual objective at coefficients a, of which f are the values at the points."""
        u = self.bounds
        slopes = np.divide(-a, u, out=np.zeros(len(u)), where=u > 0.0)
        conjugates = self.loss.conjugate(self.y, slopes)
        return -0.5 * float(a @ f) - float(u @ conjugates)

    def _state(self, kernel: Kernel, X: Points, start: Array) -> NewtonState:
        return _State(self, kernel, X, start)


def _minimised(
    state: NewtonState, place: Place, *, tol: float, max_iter: int, time_limit: float
) -> MachineFit:
    """Newton steps until the relative duality gap is `tol`, or a limit is reached."""
    deadline, n_iter, dual, moves = monotonic() + time_limit, 0, -np.inf, True
    if (earlier := place.found) is not None:
        state.a, state.c, n_iter = earlier["a"], earlier["c"], earlier["n_iter"]
        dual, moves = earlier["dual"], earlier["moves"]
    while True:
        kept = {"a": state.a, "c": state.c, "n_iter": n_iter, "dual": dual, "moves": moves}
        place.keep(kept.copy)
        primal, found = state.objectives()
        dual = max(dual, found)  # a lower bound holds wherever it was found
        gap = relative_gap(primal, dual)
        if gap <= tol or primal - dual <= _NEGLIGIBLE * state.largest:
            status = Status.CONVERGED
        elif not moves:
            status = Status.STALLED
        elif n_iter >= max_iter or monotonic() > deadline:
            status = Status.MAX_ITER
        elif report("Newton", n_iter, gap):
            status = Status.STOPPED
            place.keep(kept.copy, last=True)
        else:
            moves = state.improve(primal, gap)
            n_iter += 1
            continue
        break
    return MachineFit(
        coef=state.a,
        intercept=state.c,
        certificate=FitCertificate(primal, dual, *state.conditions(), complementarity=0.0),
        variables=np.append(state.a, state.c),
        n_iter=n_iter,
        status=status,
    )


class NewtonState(ABC):
    """The coefficients a and the intercept c; functions f, t = f + c, and b = -u l'(y, t).

    With several classes all have one column for each.
    """

    a: Array
    c: Any
    f: Array
    t: Array
    b: Array
    K: GramOperator
    largest: float  # the objective at zero
    imbalance: float  # of the sums of the dual point

    @abstractmethod
    def objectives(self) -> tuple[float, float]:
        """Update f, t and b; return the primal objective here, and a dual one."""

    @abstractmethod
    def primal(self, square: float, t: Array) -> float:
        """The objective, given |f|^2 and t."""

    @abstractmethod
    def direction(self, gap: float) -> tuple[Array, Any]:
        """Newton's changes of a and c."""

    def improve(self, primal: float, gap: float) -> bool:
        """A Newton step, shortened until it lowers the objective; return whether it did."""
        change, shift = self.direction(gap)
        df = self.K @ change
        dt = df + shift
        square, cross = float(np.vdot(self.a, self.f)), float(np.vdot(change, self.f))
        bend = float(np.vdot(change, df))
        slope = cross - float(np.vdot(self.b, dt))
        if not slope < -4.0 * _EPS * abs(primal):
            return False
        step = 1.0
        for _ in range(_HALVINGS):
            norm = square + step * (2.0 * cross + step * bend)
            if self.primal(norm, self.t + step * dt) <= primal + _DECREASE * step * slope:
                self.a, self.c = self.a + step * change, self.c + step * shift
                return True
            step *= 0.5
        return False

    def conditions(self) -> tuple[float, float]:
        """Violations of a = b, and of the sums of the dual point being zero."""
        return float(np.abs(self.a - self.b).max()), self.imbalance


class _State(NewtonState):
    """One function, with a loss for each of its values."""

    def __init__(self, problem: SmoothProblem, kernel: Kernel, X: Points, start: Array) -> None:
        self.problem, self.kernel, self.X = problem, kernel, X
        self.a, self.c = start[:-1].copy(), float(start[-1])
        self.K = GramOperator(kernel, X)
        self.largest = problem.primal(0.0, np.zeros(len(X)))
        self.solver: dict[str, Any] = {}
        if len(X) > DIRECT_UP_TO:  # one preconditioner for all steps
            rank = min(int(4.0 * np.sqrt(len(X))), 1000)
            self.solver["preconditioner"] = nystrom(
                kernel, X, rank, rule="leverage", random_state=0
            )

    def objectives(self) -> tuple[float, float]:
        """The primal objective here; the dual one at the gradient of the losses, or at a."""
        p = self.problem
        self.f = self.K @ self.a
        self.t = self.f + self.c
        self.b = -p.bounds * p.loss.subgradient(p.y, self.t)
        parts = np.column_stack([np.maximum(self.b, 0.0), np.minimum(self.b, 0.0)])
        values = self.K @ parts
        self.Kb = values.sum(axis=1)
        factors = np.array(p.dual_point(self.b))
        self.imbalance = abs(float((parts @ factors).sum())) if p.fit_intercept else 0.0
        dual = max(p.dual(parts @ factors, values @ factors), p.dual(self.a, self.f))
        return p.primal(float(self.a @ self.f), self.t), dual

    def primal(self, square: float, t: Array) -> float:
        return self.problem.primal(square, t)

    def direction(self, gap: float) -> tuple[Array, float]:
        """Newton's changes d of a and s of c.

        a + d = b - D (K d + s) with D the curvatures, so that d = r - (K + D^-1)^-1 (K r + s) for
        r = b - a: a weighted ridge problem. With an intercept a + d has the sum zero.
        """
        p, r = self.problem, self.b - self.a
        D = np.maximum(p.bounds * p.loss.curvature(p.y, self.t), _SMALLEST)
        right = np.column_stack([self.Kb - self.f, np.ones(len(r))])
        tol = min(max(0.1 * gap, 1e-10), 1e-2)  # of conjugate gradients: steps need no more
        found = solve(self.kernel, self.X, right, 1.0, weights=D, tol=tol, **self.solver).coef
        change, ones = r - found[:, 0], found[:, 1]
        if not p.fit_intercept:
            return change, 0.0
        shift = float((self.a + change).sum() / ones.sum())
        return change - shift * ones, shift
