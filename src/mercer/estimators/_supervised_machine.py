"""Supervised machines: their problems for labels or targets, and classes from their values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import check_consistent_length

from mercer._array import LARGEST, Array
from mercer.engine import n_rows
from mercer.estimators import _summaries as summaries
from mercer.estimators._support_vector_machine import Problem, SupportVectorMachine
from mercer.estimators._validation import check_flags, check_labels, check_targets
from mercer.exceptions import InputError
from mercer.methods._rows import distinct_index


@dataclass(eq=False, repr=False, kw_only=True)
class SupervisedMachine(SupportVectorMachine):
    """A machine that learns labels or targets."""

    fit_intercept: bool = True
    _classes: ClassVar[str] = "pairs"  # of several classes; or each and the "rest", or "jointly"
    _summary = summaries.machine

    @abstractmethod
    def _problem(self, y: Array, weights: Array) -> Problem:
        """The problem of labels 1 and -1, of several classes jointly, or of targets."""

    def _fit_targets(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit the machine to targets."""
        check_flags(self, "fit_intercept")
        targets = check_targets(self, y, single=True)[0][:, 0]
        with self._fitting(X):
            points, w = self._training_rows(X, sample_weight, double=True)
            check_consistent_length(np.empty(n_rows(points)), targets)
            self.n_samples_fit_, self.is_weighted_ = len(targets), not _all_one(w)
            rows, mass = distinct_index(points.array, w, targets)
            self._solve(points, [(rows, self._problem(targets[rows], mass))])
        return self

    def _fit_labels(self, X: Any, y: Any, sample_weight: Any, class_weight: Any) -> Any:
        """Fit the machine to labels of two or more classes."""
        check_flags(self, "fit_intercept")
        classes, index = check_labels(self, y)
        with self._fitting(X):
            points, w = self._training_rows(X, sample_weight, double=True)
            check_consistent_length(np.empty(n_rows(points)), index)
            self.classes_ = classes
            weights = np.ones(len(index)) if w is None else w
            if len(np.unique(index[weights > 0.0])) < 2:
                raise InputError(
                    f"{type(self).__name__} needs rows of at least two classes, got 1 class"
                )
            rows, mass = distinct_index(points.array, weights, index)
            factors = self._class_factors(np.bincount(index, weights), class_weight)
            self.n_samples_fit_, self.is_weighted_ = len(index), not _all_one(w, factors)
            mass = mass * factors[index[rows]]
            problems = []
            if self._jointly:
                problems.append((rows, self._problem(index[rows], mass)))
            for negative, positive_class in self._splits():
                chosen = np.flatnonzero(np.isin(index[rows], (*negative, positive_class)))
                sign = np.where(index[rows[chosen]] == positive_class, 1.0, -1.0)
                problems.append((rows[chosen], self._problem(sign, mass[chosen])))
            self._solve(points, problems)
        return self

    @property
    def _jointly(self) -> bool:
        return self._classes == "jointly" and len(self.classes_) > 2

    def _splits(self) -> list[tuple[tuple[int, ...], int]]:
        """The classes with the sign -1 and the class with the sign 1, in each problem of two."""
        n = len(self.classes_)
        if self._jointly:
            return []
        if n == 2 or self._classes == "pairs":
            return [((a,), b) for a, b in combinations(range(n), 2)]
        return [(tuple(k for k in range(n) if k != one), one) for one in range(n)]

    def _class_factors(self, totals: Array, class_weight: Any) -> Array:
        """The factor of each class, given the total weight of its rows."""
        if class_weight is None:
            return np.ones(len(totals))
        if isinstance(class_weight, str) and class_weight == "balanced":
            present = totals > 0.0
            mean = totals.sum() / np.count_nonzero(present)
            return np.asarray(np.divide(mean, totals, out=np.zeros(len(totals)), where=present))
        factors = compute_class_weight(class_weight, classes=self.classes_, y=self.classes_)
        return np.asarray(factors, dtype=np.float64)

    def _class_scores(self, X: Any) -> Array:
        """`decision_function` of classifiers."""
        values = self._values(X)
        n_classes = len(self.classes_)
        if n_classes == 2:
            return np.asarray(values[:, 0])
        if self._classes != "pairs":
            return values
        values = np.clip(values, -LARGEST, LARGEST)  # sums of infinite values would be NaN
        votes, sums = np.zeros((2, len(values), n_classes))
        for k, (a, b) in enumerate(combinations(range(n_classes), 2)):
            votes[:, a] += values[:, k] < 0.0
            votes[:, b] += values[:, k] >= 0.0
            sums[:, a] -= values[:, k]
            sums[:, b] += values[:, k]
        return np.asarray(votes + sums / (3.0 * (np.abs(sums) + 1.0)))

    def _predicted_classes(self, X: Any) -> Array:
        """`predict` of classifiers."""
        values = self._class_scores(X)
        index = (values >= 0.0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[index])


def _all_one(*weights: Array | None) -> bool:
    return all(w is None or bool(np.all(w == 1.0)) for w in weights)
