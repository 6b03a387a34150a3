"""Kernel machines with any convex loss."""

from __future__ import annotations

from dataclasses import dataclass

from mercer._array import Array, positive
from mercer.estimators._loss_machine import LossMachine
from mercer.estimators._support_vector_machine import Problem
from mercer.methods.machines._losses import AbsoluteLoss, EpsilonInsensitiveLoss, HingeLoss
from mercer.methods.machines._newton import SmoothProblem
from mercer.methods.machines._support_vectors import Classification, Regression, loss_weights


@dataclass(eq=False, repr=False, kw_only=True)
class KernelMachine(LossMachine):
    """Regression or classification with a convex loss l, and a duality gap.

    Minimises

        |f|^2 / 2 + C sum_i w_i l(y_i, f(x_i) + c)

    over functions f of the space of the kernel and intercepts c, with sample weights w_i. The loss
    determines whether y are targets or labels. With C = 1 / (n a) this is the mean loss plus
    (a / 2) |f|^2, times a constant.

    Parameters
    ----------
    kernel, gamma, scale_columns, fit_intercept, tol, max_iter, time_limit, warm_start, n_jobs, \
verbose
        As in `SVC`.
    loss : str or a convex loss of `mercer.methods`
        "square", the default, (y - t)^2; "absolute", |y - t|; "epsilon_insensitive",
        max(|y - t| - 0.1, 0) (for other values give `EpsilonInsensitiveLoss(epsilon)`); and for
        classification "hinge", max(0, 1 - y t), "logistic", log(1 + exp(-y t)), and
        "squared_margin", (1 - y t)^2.
    C : float
        > 0: the weight of the losses. The default 1 is that of `SVC`.

    Attributes
    ----------
    element_, intercept_, certificate_, support_, support_vectors_, dual_coef_, kernel_, scaler_, \
n_iter_
        As in `SVC`.
    classes_ : array
        For classification losses. More than two classes are compared in pairs with the hinge loss,
        and each against the rest otherwise.

    See Also
    --------
    SVC, SVR, KernelLogisticRegression : one loss each, with features that only this loss has.

    Notes
    -----
    Losses with a derivative are minimised by Newton's method (a single step for squares, a ridge
    problem), the others by the dual solver of `SVC`.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.linspace(0.0, 6.0, 50)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[10] = 100.0  # an outlier
    >>> robust = mc.estimators.KernelMachine(loss="absolute", C=10.0).fit(X, y)
    >>> float(np.median(np.abs(robust.predict(X) - np.sin(X[:, 0])))) < 0.01
    True
    """

    C: float = 1.0

    @property
    def _classes(self) -> str:  # type: ignore[override]
        return "pairs" if isinstance(self.loss_, HingeLoss) else "rest"

    def _problem(self, y: Array, weights: Array) -> Problem:
        loss, bounds = self.loss_, loss_weights(positive(self.C, "C"), weights)
        if isinstance(loss, HingeLoss):
            return Classification(y, bounds, self.fit_intercept)
        if isinstance(loss, AbsoluteLoss | EpsilonInsensitiveLoss):
            epsilon = getattr(loss, "epsilon", 0.0)
            return Regression(y, bounds, epsilon, self.fit_intercept)
        return SmoothProblem(loss, y, bounds, self.fit_intercept)
