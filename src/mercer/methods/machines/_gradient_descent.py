"""Gradient descent on the mean loss in a kernel's space, stopped early."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from mercer._array import Array, Points
from mercer._certificate import FitCertificate
from mercer._progress import report
from mercer._status import Status
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg import GramOperator
from mercer.methods.machines._losses import Loss
from mercer.methods.machines._support_vectors import MachineFit

_PATIENCE = 20  # steps without a smaller held-out risk, and a third of all steps


@dataclass(frozen=True)
class DescentCertificate(FitCertificate):
    """What is known about a descent that stopped early.

    Attributes
    ----------
    primal : float
        The mean loss.
    dual : float
        0: no loss is smaller.
    stationarity : float
        The norm of the gradient of the mean loss, in the space of the kernel.
    step_size : float
    held_out_risk : float
        The mean loss on the rows that chose the number of steps; NaN if there were none.
    """

    step_size: float
    held_out_risk: float


@dataclass(frozen=True, eq=False)
class DescentProblem:
    """min sum_i u_i l(y_i, f(x_i) + c) / sum_i u_i, by gradient steps from f = 0 and c = 0.

    f <- f - step sum_i u_i l'(y_i, f(x_i) + c) k(x_i, .) / sum_i u_i. The fewer steps, the smoother
    f is: their number takes the place of a penalty.
    """

    loss: Loss
    y: Array
    weights: Array
    fit_intercept: bool
    step_size: float | None  # None: 1 / (M (max k(x, x) + fit_intercept))
    held_out: Array | None  # rows that choose the number of steps

    @property
    def start(self) -> Array:
        """a = 0 and c = 0."""
        return np.zeros(len(self.y) + 1)

    def fit(
        self,
        kernel: Kernel,
        X: Points,
        *,
        tol: float = 1e-4,
        max_iter: int = 1000,
        time_limit: float = np.inf,
        start: Array | None = None,
    ) -> MachineFit:
        """Take at most `max_iter` steps; fewer if held-out rows say so.

        The descent has converged if the mean loss is below `tol` times that of f = 0.
        """
        if not np.isfinite(self.loss.smoothness):
            raise InputError(
                f"gradient descent needs a loss with a Lipschitz derivative, not {self.loss!r}; "
                "use KernelSGD, or the logistic or the square loss"
            )
        K, deadline = GramOperator(kernel, X), monotonic() + time_limit
        step = self.step_size
        if step is None:
            step = 1.0 / (self.loss.smoothness * (_largest(kernel, X) + self.fit_intercept))
        first = self.start if start is None else start
        n_steps, status, risk = max_iter, Status.N_STEPS, np.nan
        if self.held_out is not None:
            seen = np.ones(len(self.y), dtype=bool)
            seen[self.held_out] = False
            trial = _Descent(self, K, step, self.start, np.where(seen, self.weights, 0.0))
            n_steps, risk = trial.best_length(self.held_out, max_iter, deadline)
            first = self.start
        descent = _Descent(self, K, step, first, self.weights)
        n_iter = 0
        while n_iter < n_steps:
            if descent.risk <= tol * descent.risk_of_zero:
                status = Status.CONVERGED
                break
            if monotonic() > deadline or report("gradient descent", n_iter, descent.risk):
                status = Status.STOPPED
                break
            descent.take_step()
            n_iter += 1
        certificate = DescentCertificate(
            descent.risk, 0.0, descent.slope(), 0.0, 0.0, step, float(risk)
        )
        variables = np.append(descent.a, descent.c)
        return MachineFit(descent.a, descent.c, certificate, variables, n_iter, status)


class _Descent:
    """Coefficients a, the intercept c, and predictions t = f + c at the points."""

    def __init__(
        self, problem: DescentProblem, K: Any, step: float, start: Array, weights: Array
    ) -> None:
        self.problem, self.K, self.step = problem, K, step
        self.u = weights / weights.sum()
        self.a, self.c = start[:-1].copy(), float(start[-1])
        self.t = (K @ self.a if self.a.any() else np.zeros(len(self.a))) + self.c
        self.risk_of_zero = float(self.u @ problem.loss(problem.y, np.zeros(len(self.a))))

    @property
    def risk(self) -> float:
        return float(self.u @ self.problem.loss(self.problem.y, self.t))

    def take_step(self) -> None:
        change = -self.step * self.u * self.problem.loss.subgradient(self.problem.y, self.t)
        shift = float(change.sum()) if self.problem.fit_intercept else 0.0
        self.a, self.c = self.a + change, self.c + shift
        self.t = self.t + self.K @ change + shift

    def best_length(self, rows: Array, most: int, deadline: float) -> tuple[int, float]:
        """The number of steps with the smallest mean loss on some rows, and that loss."""
        y, w = self.problem.y[rows], self.problem.weights[rows]
        best, smallest = 0, np.inf
        for n in range(most + 1):
            risk = float((w / w.sum()) @ self.problem.loss(y, self.t[rows]))
            if risk < smallest:
                best, smallest = n, risk
            if n - best > _PATIENCE + n // 3 or monotonic() > deadline:
                break
            if report("choosing the number of steps", n, risk):
                break
            self.take_step()
        return max(best, 1), smallest

    def slope(self) -> float:
        """|grad|, the norm of sum_i u_i l'(y_i, t_i) k(x_i, .)."""
        g = self.u * self.problem.loss.subgradient(self.problem.y, self.t)
        return float(np.sqrt(max(float(g @ (self.K @ g)), 0.0)))


def _largest(kernel: Kernel, X: Points) -> float:
    largest = float(kernel.diag(X).max())
    if not largest > 0.0:
        raise InputError("k(x, x) is zero for all rows: no function can be learned")
    return largest
