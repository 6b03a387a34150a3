"""Kernel logistic regression: probabilities of classes, with a duality gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array, positive
from mercer.estimators._support_vector_classifiers import Classifier
from mercer.estimators._support_vector_machine import Problem
from mercer.methods.machines._losses import LogisticLoss, Loss
from mercer.methods.machines._newton import SmoothProblem
from mercer.methods.machines._softmax import SoftmaxProblem
from mercer.methods.machines._support_vectors import loss_weights


@dataclass(eq=False, repr=False, kw_only=True)
class KernelLogisticRegression(Classifier):
    """Logistic regression in the space of a kernel, with a duality gap.

    Minimises

        |f|^2 / 2 + C sum_i w_i log(1 + exp(-y_i (f(x_i) + c)))

    over functions f of the space of the kernel and intercepts c, with y_i = 1 or -1 and sample
    weights w_i. The probability of the second class at x is 1 / (1 + exp(-f(x) - c)). With more
    than two classes there is one function f_k and one intercept c_k for each, and the sum of
    |f_k|^2 / 2 minus C times the log-likelihood is minimised, where probabilities are proportional
    to exp(f_k(x) + c_k) (softmax).

    Parameters
    ----------
    kernel, gamma, scale_columns, fit_intercept, class_weight, tol, time_limit, n_jobs, verbose
        As in `SVC`.
    C : float
        > 0: the weight of the losses. The default 1 is that of scikit-learn's LogisticRegression.
    max_iter : int
        The largest number of Newton steps; the default 100 is not reached unless C is huge.
    warm_start : bool, default=False
        Whether `fit` continues from the last fit, as in `SVC`.

    Attributes
    ----------
    element_ : Element
        f; a batch with one element per class if there are more than two.
    intercept_ : array of shape (functions,)
    certificate_ : FitCertificate
        Objectives, duality gap and optimality conditions.
    support_, support_vectors_, dual_coef_
        Row numbers of the distinct rows, the rows, and their coefficients, shape (functions, rows).
        All rows have one: logistic regression is not sparse.
    classes_ : array
    kernel_, scaler_, n_iter_

    See Also
    --------
    SVC : sparse, without probabilities.

    Notes
    -----
    Newton's method: each step is a ridge problem with weights, by Cholesky up to 10,000 distinct
    rows and by preconditioned conjugate gradients above; with more than two classes by conjugate
    gradients for all of them together. The dual point that bounds the gap is the gradient of the
    losses, with parts of it scaled so that its sums are zero if there is an intercept. Equal rows
    of a class are merged, so that a weight of 2 is the same as repeating the row.

    References
    ----------
    J. Zhu and T. Hastie, Kernel logistic regression and the import vector machine, Journal of
    Computational and Graphical Statistics 14, 2005.

    Examples
    --------
    >>> import mercer as mc
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mc.KernelLogisticRegression(C=10.0).fit(X[50:], y[50:])
    >>> model.certificate_.relative_gap < 1e-4
    True
    >>> model.predict_proba(X[[60, 120]]).round(2)
    array([[0.91, 0.09],
           [0.01, 0.99]])
    """

    C: float = 1.0
    max_iter: int = 100
    _classes: ClassVar[str] = "jointly"

    @property
    def loss_(self) -> Loss:
        """The logistic loss."""
        return LogisticLoss()

    def _problem(self, y: Array, weights: Array) -> Problem:
        bounds = loss_weights(positive(self.C, "C"), weights)
        if self._jointly:
            return SoftmaxProblem(y, bounds, len(self.classes_), self.fit_intercept)
        return SmoothProblem(LogisticLoss(), y, bounds, self.fit_intercept)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class for the rows of X, shape (m, classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probability of each class, shape (m, classes)."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.asarray(-np.logaddexp(0.0, np.column_stack([values, -values])))
        return np.asarray(values - np.logaddexp.reduce(values, axis=1, keepdims=True))
