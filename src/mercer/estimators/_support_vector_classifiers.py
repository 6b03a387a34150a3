"""Support vector classification with a duality gap: SVC and NuSVC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from mercer._array import Array, positive
from mercer.estimators._supervised_machine import SupervisedMachine
from mercer.estimators._support_vector_machine import Problem, checked_share
from mercer.methods.machines._losses import HingeLoss, Loss
from mercer.methods.machines._support_vectors import (
    Classification,
    NuClassification,
    loss_weights,
)


@dataclass(eq=False, repr=False, kw_only=True)
class Classifier(ClassifierMixin, SupervisedMachine):  # type: ignore[misc]
    """Classification of two or more classes: problems of pairs, or of each class and the rest."""

    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machine to rows X with labels y.

        A `sample_weight` of 2 is the same as repeating the row.
        """
        return self._fit_labels(X, y, sample_weight, self.class_weight)

    def decision_function(self, X: Any) -> Array:
        """Return f(x) + c: positive for `classes_[1]`, shape (m,).

        For more than two classes shape (m, classes). For problems of one class and the rest: their
        values. For pairs: the number of pairs that a class wins, plus a part below 1/2 that grows
        with the values by which it wins.
        """
        return self._class_scores(X)

    def predict(self, X: Any) -> Array:
        """Return the class of each row of X."""
        return self._predicted_classes(X)


@dataclass(eq=False, repr=False, kw_only=True)
class SVC(Classifier):
    """Support vector classification with a duality gap.

    Minimises

        |f|^2 / 2 + C sum_i w_i max(0, 1 - y_i (f(x_i) + c))

    over functions f of the space of the kernel and intercepts c, with y_i = 1 or -1 and sample
    weights w_i. With more than two classes there is one such problem for each pair.

    Parameters
    ----------
    kernel : Kernel, str or "auto"
        "auto", the default, is the Gaussian kernel with 2 s^2 = m^2, m the median distance between
        distinct rows. "precomputed" takes Gram matrices instead of rows. Other names as in
        `KernelPCA`.
    C : float
        > 0: the weight of the losses. Infinity is the hard margin, for classes that the kernel
        separates. The default 1 is scikit-learn's.
    gamma : float, optional
        For kernels given by name, as in scikit-learn.
    scale_columns : {"auto", "std", "none"}
        The units in which the automatic kernel sees the columns, as in `KernelNovelty`: the default
        "auto" divides columns of different units by their standard deviations.
    fit_intercept : bool, default=True
        Whether to fit an intercept c.
    class_weight : dict or "balanced", optional
        Factors of C for each class; by default all are 1.
    tol : float
        The relative duality gap at which the fit stops. At the default 1e-4 the objective is
        within 0.01 % of the smallest possible one.
    max_iter : int
        The largest number of rounds of the solver; with the default 10,000 the gap decides.
    time_limit : float, optional
        Seconds allowed for each problem; by default there is no limit. A fit that stops early
        warns, and `certificate_` has its gap.
    warm_start : bool, default=False
        Whether `fit` continues from the last fit: to finish one that stopped early, or for a series
        of values of C.
    n_jobs, verbose
        As in `KernelPCA`.

    Attributes
    ----------
    element_ : Element
        f; a batch with one element per pair of classes if there are more than two.
    intercept_ : array of shape (problems,)
    certificate_ : SupportVectorCertificate, or a tuple with one for each pair
        Objectives, duality gap, optimality conditions, and shares of support vectors.
    support_, support_vectors_, dual_coef_
        Row numbers and points of the support vectors (one number for equal rows), and their
        coefficients, shape (problems, support vectors).
    classes_ : array
    kernel_, scaler_, n_iter_

    See Also
    --------
    NuSVC : the share of support vectors is given instead of C.

    Notes
    -----
    The fit is within `certificate_.gap` of the optimum by weak duality, whatever the solver did.
    Equal rows of a class are merged, so that a weight of 2 is the same as repeating the row.

    Predictions are values of `element_`. So, for a classifier with fewer vectors, compress the
    element of a copy: `small = copy(model); small.element_ = mc.compress(f, 20).element` with
    f = `model.element_`. Its decision function differs by at most `compress(f, 20).error` times
    sqrt(k(x, x)).

    For probabilities use `KernelLogisticRegression`, or
    `sklearn.calibration.CalibratedClassifierCV(SVC(), ensemble=False)`; neither is random.

    References
    ----------
    C. Cortes and V. Vapnik, Support-vector networks, Machine Learning 20, 1995. R.-E. Fan, P.-H.
    Chen, C.-J. Lin, Working set selection using second order information, JMLR 6, 2005.

    Examples
    --------
    >>> import mercer as mc
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mc.SVC(C=10.0).fit(X[50:], y[50:])
    >>> model.certificate_.relative_gap < 1e-4
    True
    >>> float(model.score(X[50:], y[50:]))
    0.97
    """

    C: float = 1.0

    @property
    def loss_(self) -> Loss:
        """The hinge loss."""
        return HingeLoss()

    def _problem(self, y: Array, weights: Array) -> Problem:
        if isinstance(self.C, float) and np.inf == self.C:
            bounds = np.where(weights > 0.0, np.inf, 0.0)
        else:
            bounds = loss_weights(positive(self.C, "C"), weights)
        return Classification(y, bounds, self.fit_intercept)


@dataclass(eq=False, repr=False, kw_only=True)
class NuSVC(Classifier):
    """Support vector classification with the share of support vectors as a parameter.

    Minimises

        |f|^2 / 2 - nu s W + sum_i w_i max(0, s - y_i (f(x_i) + c)),    W = sum_i w_i

    over f, the intercept c and the margin s; f and c are then divided by s. At most a share nu of
    the rows have a margin below s, and at least a share nu are support vectors. If nu is too small
    for classes that overlap, f and s are zero.

    Parameters
    ----------
    kernel, gamma, scale_columns, fit_intercept, class_weight, tol, max_iter, \
time_limit, warm_start, n_jobs, verbose
        As in `SVC`.
    nu : float
        In (0, 1]; at most twice the share of the smaller class. The default 0.5 is scikit-learn's.

    Attributes
    ----------
    element_, intercept_, certificate_, support_, support_vectors_, dual_coef_, classes_, kernel_, \
scaler_, n_iter_
        As in `SVC`.

    Examples
    --------
    >>> import mercer as mc
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = mc.estimators.NuSVC(nu=0.1).fit(X[50:], y[50:]).certificate_
    >>> found.at_bound <= 0.1 <= found.free + found.at_bound
    True
    """

    nu: float = 0.5

    def _problem(self, y: Array, weights: Array) -> Problem:
        return NuClassification(
            y, loss_weights(1.0, weights), checked_share(self.nu), self.fit_intercept
        )
