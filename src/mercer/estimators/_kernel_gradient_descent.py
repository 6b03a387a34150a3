"""Kernel gradient descent with early stopping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array, positive, real
from mercer._random import as_generator
from mercer.estimators._loss_machine import LossMachine
from mercer.estimators._support_vector_machine import Problem
from mercer.exceptions import InputError
from mercer.methods.machines._gradient_descent import DescentProblem


@dataclass(eq=False, repr=False, kw_only=True)
class KernelGradientDescent(LossMachine):
    """Regression or classification by gradient descent in a kernel's space, stopped early.

    Takes steps of gradient descent on the mean loss, from f = 0,

        f <- f - step sum_i w_i l'(y_i, f(x_i) + c) k(x_i, .) / sum_i w_i

    and likewise for the intercept c. There is no penalty: the number of steps takes its place, and
    is chosen on held-out rows.

    Parameters
    ----------
    kernel, gamma, scale_columns, fit_intercept, time_limit, n_jobs, verbose
        As in `SVC`.
    loss : str or a loss of `mercer.methods`
        "square" (the default), "logistic" or "squared_margin"; others have no derivative.
    max_iter : int
        The largest number of steps; 1000 by default.
    step_size : float, optional
        The default is 1 / (M (max k(x, x) + 1)), M the Lipschitz constant of the derivative of the
        loss, without the 1 if there is no intercept. Steps up to twice as long converge.
    validation_fraction : float, optional
        The share of the rows that is held out to choose the number of steps, 0.2 by default; the
        steps are then repeated on all rows. None takes `max_iter` steps.
    random_state : int, Generator, RandomState or None
        Draws the rows that are held out.
    tol : float
        Stop if the mean loss is below this share of the loss of f = 0; 1e-4 by default.
    warm_start : bool
        With `validation_fraction=None`: continue from the last fit with `max_iter` more steps.

    Attributes
    ----------
    certificate_ : DescentCertificate, or a tuple with one for each class
        The mean loss, the norm of its gradient, the step size and the loss on held-out rows.
    element_, intercept_, support_, support_vectors_, dual_coef_, classes_, kernel_, scaler_
        As in `SVC`.
    n_iter_ : int
        The number of steps taken; the largest one if there are several classes.

    See Also
    --------
    mercer.theory.learning.stopping_time : the number of steps that theory suggests.
    mercer.theory.bound : a bound on the risk, if `validation_fraction` is None.

    References
    ----------
    Y. Yao, L. Rosasco, A. Caponnetto, On early stopping in gradient descent learning, Constructive
    Approximation 26, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0.0, 6.0, (200, 1))
    >>> y = np.sin(X[:, 0]) + 0.5 * rng.normal(size=200)
    >>> model = mc.estimators.KernelGradientDescent(mc.Gaussian(0.5), random_state=0).fit(X, y)
    >>> model.n_iter_ < 1000, float(abs(model.predict([[1.5]]) - np.sin(1.5))[0]) < 0.1
    (True, True)
    """

    max_iter: int = 1000
    step_size: float | None = None
    validation_fraction: float | None = 0.2
    random_state: Any = None
    _classes: ClassVar[str] = "rest"

    def _problem(self, y: Array, weights: Array) -> Problem:
        step = None if self.step_size is None else positive(self.step_size, "step_size")
        return DescentProblem(
            self.loss_, y, weights, bool(self.fit_intercept), step, self._held_out(y)
        )

    def _held_out(self, y: Array) -> Array | None:
        if self.validation_fraction is None:
            return None
        share = real(self.validation_fraction, "validation_fraction")
        if not 0.0 < share < 1.0:
            raise InputError(f"validation_fraction must lie in (0, 1), got {share!r}; or give None")
        rows = as_generator(self.random_state).permutation(len(y))
        size = min(max(1, round(share * len(y))), len(y) - 1)
        return np.sort(rows[:size]) if size else None
