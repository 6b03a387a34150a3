"""Support vector regression with a duality gap: SVR and NuSVR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import RegressorMixin

from mercer._array import Array, non_negative, positive
from mercer.estimators._supervised_machine import SupervisedMachine
from mercer.estimators._support_vector_machine import Problem, checked_share
from mercer.methods.machines._losses import EpsilonInsensitiveLoss, Loss
from mercer.methods.machines._support_vectors import NuRegression, Regression, loss_weights


@dataclass(eq=False, repr=False, kw_only=True)
class _Regressor(RegressorMixin, SupervisedMachine):  # type: ignore[misc]
    """Regression on one target."""

    C: float = 1.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machine to rows X with targets y.

        A `sample_weight` of 2 is the same as repeating the row.
        """
        return self._fit_targets(X, y, sample_weight)

    def predict(self, X: Any) -> Array:
        """Return f(x) + c for the rows of X, shape (m,)."""
        return self._values(X)[:, 0]


@dataclass(eq=False, repr=False, kw_only=True)
class SVR(_Regressor):
    """Support vector regression with a duality gap.

    Minimises

        |f|^2 / 2 + C sum_i w_i max(0, |y_i - f(x_i) - c| - epsilon)

    over functions f of the space of the kernel and intercepts c.

    Parameters
    ----------
    kernel, gamma, scale_columns, fit_intercept, tol, max_iter, time_limit, warm_start, n_jobs, \
verbose
        As in `SVC`.
    C : float
        > 0: the weight of the losses. The default 1 is scikit-learn's; it is in the units of y.
    epsilon : float
        >= 0: errors below it cost nothing. The default 0.1 is scikit-learn's; it is in the units
        of y.

    Attributes
    ----------
    element_, intercept_, certificate_, support_, support_vectors_, dual_coef_, kernel_, scaler_, \
n_iter_
        As in `SVC`.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.linspace(0.0, 6.0, 50)[:, None]
    >>> model = mc.SVR(C=10.0, epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> float(abs(model.predict([[1.5]]) - np.sin(1.5))[0]) < 0.02
    True
    """

    epsilon: float = 0.1

    @property
    def loss_(self) -> Loss:
        """The epsilon-insensitive loss."""
        return EpsilonInsensitiveLoss(self.epsilon)

    def _problem(self, y: Array, weights: Array) -> Problem:
        bounds = loss_weights(positive(self.C, "C"), weights)
        return Regression(y, bounds, non_negative(self.epsilon, "epsilon"), self.fit_intercept)


@dataclass(eq=False, repr=False, kw_only=True)
class NuSVR(_Regressor):
    """Support vector regression with the share of support vectors as a parameter.

    Minimises

        |f|^2 / 2 + C sum_i w_i (nu e + max(0, |y_i - f(x_i) - c| - e))

    over f, the intercept c and the width e >= 0. At most a share nu of the rows have an error above
    e, and at least a share nu are support vectors.

    Parameters
    ----------
    kernel, gamma, scale_columns, fit_intercept, tol, max_iter, time_limit, warm_start, n_jobs, \
verbose
        As in `SVC`.
    C : float
        > 0: the weight of the losses, as in `SVR`.
    nu : float
        In (0, 1]. The default 0.5 is scikit-learn's.

    Attributes
    ----------
    element_, intercept_, certificate_, support_, support_vectors_, dual_coef_, kernel_, scaler_, \
n_iter_
        As in `SVC`.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.linspace(0.0, 6.0, 50)[:, None]
    >>> model = mc.estimators.NuSVR(C=10.0).fit(X, np.sin(X[:, 0]))
    >>> float(abs(model.predict([[1.5]]) - np.sin(1.5))[0]) < 0.02
    True
    """

    nu: float = 0.5

    def _problem(self, y: Array, weights: Array) -> Problem:
        bounds = loss_weights(positive(self.C, "C"), weights)
        return NuRegression(y, bounds, checked_share(self.nu), self.fit_intercept)
