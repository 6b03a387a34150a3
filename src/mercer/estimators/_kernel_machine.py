"""Kernel machines with any convex loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from mercer._array import Array, one_of, positive
from mercer.estimators._supervised_machine import SupervisedMachine
from mercer.estimators._support_vector_machine import Problem
from mercer.exceptions import InputError
from mercer.methods.machines._losses import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    LogisticLoss,
    Loss,
    SquaredMarginLoss,
    SquareLoss,
)
from mercer.methods.machines._newton import SmoothProblem
from mercer.methods.machines._support_vectors import Classification, Regression

_NAMES: dict[str, Loss] = {
    "square": SquareLoss(),
    "absolute": AbsoluteLoss(),
    "epsilon_insensitive": EpsilonInsensitiveLoss(),
    "squared_margin": SquaredMarginLoss(),
    "hinge": HingeLoss(),
    "logistic": LogisticLoss(),
}


def _classifies(machine: KernelMachine) -> bool:
    return machine._checked_loss().classifies


@dataclass(eq=False, repr=False, kw_only=True)
class KernelMachine(SupervisedMachine):
    """Regression or classification with a convex loss l, and a duality gap.

    Minimises

        |f|^2 / 2 + C sum_i w_i l(y_i, f(x_i) + c)

    over functions f of the space of the kernel and intercepts c, with sample weights w_i. The loss
    says whether y are targets or labels. With C = 1 / (n a) this is the mean loss plus
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
        For losses of classification. Several classes are taken in pairs with the hinge loss, and
        each against the rest otherwise.

    See Also
    --------
    SVC, SVR, KernelLogisticRegression : with one loss each, and what only this loss offers.

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

    loss: Any = "square"
    C: float = 1.0

    def _checked_loss(self) -> Loss:
        loss = self.loss if isinstance(self.loss, Loss) else None
        if loss is None:
            loss = _NAMES[one_of(self.loss, tuple(_NAMES), "loss")]
        if not loss.convex:
            raise InputError(f"loss must be convex, and {loss!r} is not; use HingeLoss()")
        return loss

    @property
    def _classes(self) -> str:  # type: ignore[override]
        return "pairs" if isinstance(self._checked_loss(), HingeLoss) else "rest"

    def _problem(self, y: Array, weights: Array) -> Problem:
        loss, bounds = self._checked_loss(), positive(self.C, "C") * weights
        if isinstance(loss, HingeLoss):
            return Classification(y, bounds, self.fit_intercept)
        if isinstance(loss, AbsoluteLoss | EpsilonInsensitiveLoss):
            epsilon = getattr(loss, "epsilon", 0.0)
            return Regression(y, bounds, epsilon, self.fit_intercept)
        return SmoothProblem(loss, y, bounds, self.fit_intercept)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machine to rows X with targets or labels y.

        A `sample_weight` of 2 is the same as repeating the row.
        """
        if _classifies(self):
            return self._fit_labels(X, y, sample_weight, None)
        return self._fit_targets(X, y, sample_weight)

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Return f(x) + c as `SVC` does; for losses of classification."""
        return self._class_scores(X)

    def predict(self, X: Any) -> Array:
        """Return the class of each row of X, or f(x) + c for losses of regression."""
        return self._predicted_classes(X) if _classifies(self) else self._values(X)[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right classes, or the coefficient of determination R^2."""
        measure = accuracy_score if _classifies(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if _classifies(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags
