"""Support vector classification with a duality gap: SVC and NuSVC."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from mercer._array import Array, positive
from mercer.engine import n_rows
from mercer.estimators._support_vector_machine import (
    SupportVectorMachine,
    checked_share,
    checked_targets,
)
from mercer.estimators._validation import check_flags
from mercer.exceptions import InputError
from mercer.methods._rows import distinct_index
from mercer.methods.machines._support_vectors import (
    Classification,
    NuClassification,
    SupportVectorProblem,
)


@dataclass(eq=False, repr=False, kw_only=True)
class _Classifier(ClassifierMixin, SupportVectorMachine):  # type: ignore[misc]
    """Classification of two or more classes, one problem for each pair of classes."""

    fit_intercept: bool = True
    class_weight: Any = None

    @abstractmethod
    def _problem(self, y: Array, weights: Array) -> SupportVectorProblem:
        """The problem of labels 1 and -1."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machine to rows X with labels y.

        A `sample_weight` of 2 is the same as repeating the row.
        """
        check_flags(self, "fit_intercept")
        labels = checked_targets(self, y)
        check_classification_targets(labels)
        with self._fitting(X):
            points, w = self._training_rows(X, sample_weight, double=True)
            check_consistent_length(np.empty(n_rows(points)), labels)
            self.classes_, index = np.unique(labels, return_inverse=True)
            weights = np.ones(len(index)) if w is None else w
            if len(np.unique(index[weights > 0.0])) < 2:
                raise InputError(
                    f"{type(self).__name__} needs rows of at least two classes, got 1 class"
                )
            rows, mass = distinct_index(points.array, weights, index)
            mass = mass * self._class_factors(np.bincount(index, weights))[index[rows]]
            problems = []
            for a, b in combinations(range(len(self.classes_)), 2):
                of_pair = np.flatnonzero(np.isin(index[rows], (a, b)))
                sign = np.where(index[rows[of_pair]] == b, 1.0, -1.0)
                problems.append((rows[of_pair], self._problem(sign, mass[of_pair])))
            self._solve(points, problems)
        return self

    def _class_factors(self, totals: Array) -> Array:
        """The factor of each class, given the total weight of its rows."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            present = totals > 0.0
            mean = totals.sum() / np.count_nonzero(present)
            return np.asarray(np.divide(mean, totals, out=np.zeros(len(totals)), where=present))
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        return np.asarray(factors, dtype=np.float64)

    def decision_function(self, X: Any) -> Array:
        """Return f(x) + c: positive for `classes_[1]`, shape (m,).

        For more than two classes shape (m, classes): the number of pairs that a class wins, plus a
        part below 1/2 that grows with the values by which it wins.
        """
        values = self._values(X)
        n_classes = len(self.classes_)
        if n_classes == 2:
            return np.asarray(values[:, 0])
        votes, sums = np.zeros((2, len(values), n_classes))
        for k, (a, b) in enumerate(combinations(range(n_classes), 2)):
            votes[:, a] += values[:, k] < 0.0
            votes[:, b] += values[:, k] >= 0.0
            sums[:, a] -= values[:, k]
            sums[:, b] += values[:, k]
        return np.asarray(votes + sums / (3.0 * (np.abs(sums) + 1.0)))

    def predict(self, X: Any) -> Array:
        """Return the class of each row of X."""
        values = self.decision_function(X)
        index = (values >= 0.0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[index])


@dataclass(eq=False, repr=False, kw_only=True)
class SVC(_Classifier):
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
    fit_intercept : bool
        Whether there is an intercept c; by default there is, as in scikit-learn.
    class_weight : dict or "balanced", optional
        Factors of C for each class; by default all are 1.
    tol : float
        The relative duality gap at which the fit is done. At the default 1e-4 the objective is
        within 0.01 % of the smallest possible one.
    max_iter : int
        Rounds of the solver at most; with the default 10,000 the gap decides.
    time_limit : float, optional
        Seconds at most, for each problem; by default there is no limit. A fit that stops early
        warns, and `certificate_` tells its gap.
    warm_start : bool
        Whether `fit` goes on from the last fit: to finish one that stopped early, or along values
        of C. By default it begins anew.
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
    Equal rows of a class are merged, so that weights and repeated rows mean the same.

    For probabilities use `KernelLogisticRegression`, or
    `sklearn.calibration.CalibratedClassifierCV(SVC(), ensemble=False)`; nothing in them is random.

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

    def _problem(self, y: Array, weights: Array) -> SupportVectorProblem:
        C = np.inf if np.inf == self.C else positive(self.C, "C")
        return Classification(y, C * weights, self.fit_intercept)


@dataclass(eq=False, repr=False, kw_only=True)
class NuSVC(_Classifier):
    """Support vector classification, with the share of support vectors as parameter.

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

    def _problem(self, y: Array, weights: Array) -> SupportVectorProblem:
        return NuClassification(y, weights, checked_share(self.nu), self.fit_intercept)
