"""Novelty detection by a support vector machine: OneClassSVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from mercer._array import Array
from mercer.estimators import _summaries as summaries
from mercer.estimators._support_vector_machine import SupportVectorMachine, checked_share
from mercer.methods._rows import distinct_index
from mercer.methods.machines._support_vectors import OneClass, loss_weights


@dataclass(eq=False, repr=False, kw_only=True)
class OneClassSVM(OutlierMixin, SupportVectorMachine):  # type: ignore[misc]
    """Novelty detection by a support vector machine.

    Minimises |f|^2 / 2 - nu s W + sum_i w_i max(0, s - f(x_i)) over f and s, W = sum_i w_i; rows
    with f(x) < s are outliers. At most a share nu of the training rows are.

    Parameters
    ----------
    kernel, gamma, scale_columns, tol, max_iter, time_limit, warm_start, n_jobs, verbose
        As in `SVC`.
    nu : float
        In (0, 1]. The default 0.5 is scikit-learn's, which flags half of the training rows;
        `KernelNovelty` has a false alarm rate as its parameter instead.

    Attributes
    ----------
    offset_ : float
        s: rows with a lower score are outliers.
    element_, certificate_, support_, support_vectors_, dual_coef_, kernel_, scaler_, n_iter_
        As in `SVC`.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer import datasets
    >>> ring = datasets.ring(200, random_state=0).points
    >>> mc.estimators.OneClassSVM(nu=0.05).fit(ring).predict([[0.0, 1.0], [0.0, 3.0]])
    array([ 1, -1])
    """

    nu: float = 0.5
    _summary = summaries.one_class

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Fit the machine to rows X; y is ignored."""
        with self._fitting(X):
            points, w = self._training_rows(X, sample_weight, double=True)
            rows, mass = distinct_index(points.array, w)
            self._solve(points, [(rows, OneClass(loss_weights(1.0, mass), checked_share(self.nu)))])
        self.offset_ = -float(self.intercept_[0])
        return self

    def decision_function(self, X: Any) -> Array:
        """Return f(x) - s: negative for outliers, shape (m,)."""
        return self._values(X)[:, 0]

    def score_samples(self, X: Any) -> Array:
        """Return f(x) for the rows of X, shape (m,)."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Array:
        """Return -1 for outliers and 1 for the others."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)
