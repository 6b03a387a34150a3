"""Parameters, the solver and the fitted function of all support vector machines."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, Points, positive, positive_int
from mercer._threads import map_threads, thread_count
from mercer.engine import n_rows
from mercer.estimators._base import RowsEstimator
from mercer.estimators._validation import check_flags
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Precomputed
from mercer.methods.machines._gradient_descent import DescentProblem
from mercer.methods.machines._newton import SmoothProblem
from mercer.methods.machines._softmax import SoftmaxProblem
from mercer.methods.machines._support_vectors import MachineFit, SupportVectorProblem
from mercer.space import Element

Problem = SupportVectorProblem | SmoothProblem | SoftmaxProblem | DescentProblem
_PER_THREAD = 4  # problems, so that no thread waits long for the last one


@dataclass(eq=False, repr=False, kw_only=True)
class SupportVectorMachine(RowsEstimator):
    """Parameters and the fitted function of all support vector machines."""

    kernel: Any = field(default="auto", kw_only=False)
    scale_columns: str = "auto"
    tol: float = 1e-4
    max_iter: int = 10_000
    time_limit: float | None = None
    warm_start: bool = False

    def _solve(self, X: Points, problems: list[tuple[Array, Problem]]) -> None:
        """Solve problems, each on some of the rows, and set the attributes of a fit."""
        check_flags(self, "warm_start")
        limit = np.inf if self.time_limit is None else positive(self.time_limit, "time_limit")
        known = getattr(self, "_variables", []) if self.warm_start else []
        tol, max_iter = positive(self.tol, "tol"), positive_int(self.max_iter, "max_iter")

        def fit(i: int) -> MachineFit:
            rows, problem = problems[i]
            start = known[i] if i < len(known) and len(known[i]) == len(problem.start) else None
            return problem.fit(
                self.kernel_, X[rows], tol=tol, max_iter=max_iter, time_limit=limit, start=start
            )

        # many problems share the threads; a few take turns, each with all threads
        many = len(problems) >= _PER_THREAD * thread_count()
        dual = all(isinstance(problem, SupportVectorProblem) for _, problem in problems)
        run = map_threads if many and dual else map
        fits = list(run(fit, range(len(problems))))
        self._variables = [fit.variables for fit in fits]
        parts = []  # of the coefficients: a problem has one function, or one for each class
        for (rows, _), found in zip(problems, fits, strict=True):
            parts.append(np.zeros((n_rows(X), *found.coef.shape[1:])))
            parts[-1][rows] = found.coef
        coef = np.column_stack(parts)
        self.support_ = np.flatnonzero(coef.any(axis=1))
        if not len(self.support_):
            self.support_ = np.arange(1)
        self.support_vectors_ = X[self.support_].array
        self.dual_coef_ = coef[self.support_].T
        self.intercept_ = np.hstack([fit.intercept for fit in fits])
        self.n_iter_ = max(fit.n_iter for fit in fits)
        certificates = tuple(fit.certificate for fit in fits)
        self.certificate_ = certificates[0] if len(fits) == 1 else certificates
        single = coef.shape[1] == 1
        self.element_ = Element(
            self.kernel_, X[self.support_], self.dual_coef_[0] if single else self.dual_coef_.T
        )
        unfinished = [fit for fit in fits if not fit.status.ok]
        if unfinished:
            gap = max(fit.certificate.relative_gap for fit in unfinished)
            warnings.warn(
                f"{type(self).__name__} {unfinished[0].status.value}. Its relative duality gap is "
                f"{gap:.1e}",
                MercerWarning,
                stacklevel=3,
            )

    def _values(self, X: Any) -> Array:
        """The fitted functions with their intercepts at the rows of X, shape (m, problems)."""
        X = self._new_rows(X)
        with self._running():
            if isinstance(self.kernel_, Precomputed):
                f = self.element_
                values = np.asarray(X)[:, f.points] @ f.coef.tile(slice(None), slice(None))
            else:
                values = np.asarray(self.element_(X)).reshape(n_rows(X), -1)
        return np.asarray(values + self.intercept_, dtype=np.float64)


def checked_share(nu: Any) -> float:
    value = positive(nu, "nu")
    if value > 1.0:
        raise InputError(f"nu must lie in (0, 1], got {nu!r}")
    return value
