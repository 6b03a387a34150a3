"""Support vector machines with a duality gap: SVC, NuSVC, SVR, NuSVR and OneClassSVM."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from mercer._array import Array, Points, as_vector, non_negative, positive, positive_int
from mercer.engine import n_rows
from mercer.estimators._base import RowsEstimator
from mercer.estimators._validation import check_flags
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Precomputed
from mercer.methods._rows import distinct_index
from mercer.methods.machines._support_vectors import (
    Classification,
    NuClassification,
    NuRegression,
    OneClass,
    Regression,
    SupportVectorFit,
    SupportVectorProblem,
    fit_support_vectors,
)
from mercer.space import Element


@dataclass(eq=False, repr=False, kw_only=True)
class _SupportVectorMachine(RowsEstimator):
    """Parameters and the fitted function of all support vector machines."""

    kernel: Any = field(default="auto", kw_only=False)
    scale_columns: str = "auto"
    tol: float = 1e-4
    max_iter: int = 10_000
    time_limit: float | None = None
    warm_start: bool = False

    def _solve(self, X: Points, problems: list[tuple[Array, SupportVectorProblem]]) -> None:
        """Solve problems on some of the rows each, and set the attributes of a fit."""
        check_flags(self, "warm_start")
        limit = np.inf if self.time_limit is None else positive(self.time_limit, "time_limit")
        known = getattr(self, "_fits", []) if self.warm_start else []
        fits = []
        for i, (rows, problem) in enumerate(problems):
            start = None
            if i < len(known) and len(known[i].variables) == len(problem.start):
                start = known[i].variables
            fits.append(
                fit_support_vectors(
                    self.kernel_,
                    X[rows],
                    problem,
                    tol=positive(self.tol, "tol"),
                    max_iter=positive_int(self.max_iter, "max_iter"),
                    time_limit=limit,
                    start=start,
                )
            )
        self._fits: list[SupportVectorFit] = fits
        coef = np.zeros((n_rows(X), len(fits)))
        for k, (rows, _) in enumerate(problems):
            coef[rows, k] = fits[k].coef
        self.support_ = np.flatnonzero(coef.any(axis=1))
        if not len(self.support_):
            self.support_ = np.arange(1)
        self.support_vectors_ = X[self.support_].array
        self.dual_coef_ = coef[self.support_].T
        self.intercept_ = np.array([fit.intercept for fit in fits])
        self.n_iter_ = max(fit.n_iter for fit in fits)
        certificates = tuple(fit.certificate for fit in fits)
        single = len(fits) == 1
        self.certificate_ = certificates[0] if single else certificates
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
                values = np.asarray(X)[:, self.support_] @ self.dual_coef_.T
            else:
                values = np.asarray(self.element_(X)).reshape(n_rows(X), -1)
        return np.asarray(values + self.intercept_, dtype=np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class _Classifier(ClassifierMixin, _SupportVectorMachine):  # type: ignore[misc]
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
        labels = _targets(self, y)
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
            return np.divide(mean, totals, out=np.zeros(len(totals)), where=present)
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
            return values[:, 0]
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
        return NuClassification(y, weights, _share(self.nu), self.fit_intercept)


@dataclass(eq=False, repr=False, kw_only=True)
class _Regressor(RegressorMixin, _SupportVectorMachine):  # type: ignore[misc]
    """Regression on one target."""

    C: float = 1.0
    fit_intercept: bool = True

    @abstractmethod
    def _problem(self, y: Array, bounds: Array) -> SupportVectorProblem:
        """The problem of these targets."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machine to rows X with targets y.

        A `sample_weight` of 2 is the same as repeating the row.
        """
        check_flags(self, "fit_intercept")
        targets = _targets(self, y)
        if targets.dtype.kind == "O":
            targets = targets.astype(np.float64)
        targets = as_vector(targets, "y").astype(np.float64)
        with self._fitting(X):
            points, w = self._training_rows(X, sample_weight, double=True)
            check_consistent_length(np.empty(n_rows(points)), targets)
            rows, mass = distinct_index(points.array, w, targets)
            bounds = positive(self.C, "C") * mass
            self._solve(points, [(rows, self._problem(targets[rows], bounds))])
        return self

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

    def _problem(self, y: Array, bounds: Array) -> SupportVectorProblem:
        return Regression(y, bounds, non_negative(self.epsilon, "epsilon"), self.fit_intercept)


@dataclass(eq=False, repr=False, kw_only=True)
class NuSVR(_Regressor):
    """Support vector regression, with the share of support vectors as parameter.

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

    def _problem(self, y: Array, bounds: Array) -> SupportVectorProblem:
        return NuRegression(y, bounds, _share(self.nu), self.fit_intercept)


@dataclass(eq=False, repr=False, kw_only=True)
class OneClassSVM(OutlierMixin, _SupportVectorMachine):  # type: ignore[misc]
    """Novelty detection by a support vector machine.

    Minimises |f|^2 / 2 - nu s W + sum_i w_i max(0, s - f(x_i)) over f and s, W = sum_i w_i; rows
    with f(x) < s are outliers. At most a share nu of the training rows are.

    Parameters
    ----------
    kernel, gamma, scale_columns, tol, max_iter, time_limit, warm_start, n_jobs, verbose
        As in `SVC`.
    nu : float
        In (0, 1]. The default 0.5 is scikit-learn's, which flags half of the training rows;
        `KernelNovelty` states a rate of false alarms instead.

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Fit the machine to rows X; y is ignored."""
        with self._fitting(X):
            points, w = self._training_rows(X, sample_weight, double=True)
            rows, mass = distinct_index(points.array, w)
            self._solve(points, [(rows, OneClass(mass, _share(self.nu)))])
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


def _targets(estimator: Any, y: Any) -> Array:
    """Labels or targets as an array of one dimension, without NaN and infinity."""
    if y is None:
        raise InputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    return np.asarray(y)


def _share(nu: Any) -> float:
    value = positive(nu, "nu")
    if value > 1.0:
        raise InputError(f"nu must lie in (0, 1], got {nu!r}")
    return value
