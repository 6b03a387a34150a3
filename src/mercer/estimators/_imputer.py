"""Imputation of missing values as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mercer._array import Array
from mercer.estimators import _summaries as summaries
from mercer.estimators._base import FloatTransformerMixin, KernelEstimator
from mercer.estimators._kernel_parameter import is_auto, resolve_kernel
from mercer.estimators._validation import check_flags, check_weights, validated
from mercer.exceptions import InputError
from mercer.methods import fit_imputer
from mercer.methods.imputation._imputer import masked_as_nan


@dataclass(eq=False, repr=False)
class KernelImputer(FloatTransformerMixin, KernelEstimator):
    """Fill missing values by kernel ridge regression; observed values are not changed.

    Missing values start at the means of their columns. In each round every column is regressed on
    the others, from the rows in which it is observed, and its missing values are predicted
    (`fit_imputer`). `transform` applies the regressions of all rounds in their order, so that
    `fit_transform(X)` equals `fit(X).transform(X)`. A row with nothing observed gets the column
    means.

    Parameters
    ----------
    kernel : Kernel, str or "auto"
        "auto" standardises the columns, so that units do not matter, and takes the kernel of
        `fit_imputer`. Any other kernel is in the units of X; names as in `KernelPCA`.
    n_landmarks, max_iter, tol
        As for `fit_imputer`.
    add_indicator : bool, default=False
        Append a column of zeros and ones for every column that had missing values in `fit`.
    keep_empty_features : bool, default=False
        Whether columns without any observed value in `fit` are filled with 0 and kept, or dropped.
    random_state : int, Generator, RandomState or None, default=0
        Chooses landmarks, and which entries are hidden for `error_`. An integer makes the result
        reproducible.
    n_jobs : int or None
        Threads; None is all cores, unlike in scikit-learn.
    verbose : bool or int, default=False
        Show a progress bar on stderr.

    Attributes
    ----------
    imputer_ : mercer.methods.Imputer
        The fitted map.
    error_ : array of shape (d,)
        Root mean squared error of each column in its standard deviations, from entries of up to
        150 rows that were hidden (`Imputer.error`): about 1 if the other columns do not help,
        and more often too large than too small. NaN if none could be hidden, and for columns
        without any observed value.
    kernel_, changes_, status_
        As in `Imputer`.
    n_iter_ : int
        Rounds in `fit`.

    Notes
    -----
    Entries of columns that the others do not predict get about the column means. If entries are
    missing because of their value, they are not missing at random, and `error_` is too optimistic.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> t = np.linspace(0.0, 2.0, 100)[:, None]
    >>> model = mc.KernelImputer().fit(np.hstack([t, 3.0 * t + 1.0, t**2]))
    >>> model.transform([[1.0, np.nan, np.nan]]).round(1)
    array([[1., 4., 1.]])
    """

    kernel: Any = "auto"
    _: KW_ONLY
    n_landmarks: int = 300
    max_iter: int = 3
    tol: float = 1e-2
    add_indicator: bool = False
    keep_empty_features: bool = False
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool | int = False
    _summary = summaries.imputer

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelImputer:
        """Complete the rows of X, NaN or masked where missing, and learn to complete others.

        With `sample_weight`, a weight of 2 is the same as repeating the row; y is ignored.
        """
        check_flags(self, "add_indicator", "keep_empty_features")
        X = self._validated(X, reset=True)
        weights = check_weights(sample_weight, X)
        counted = slice(None) if weights is None else weights > 0.0
        self._empty = np.isnan(X[counted]).all(axis=0)
        self._indicated = np.flatnonzero(np.isnan(X[counted]).any(axis=0))
        if self._empty.all():
            raise InputError("X has no observed value; at least one is needed")
        kernel = None
        if not is_auto(self.kernel):
            kernel = resolve_kernel(self.kernel, np.zeros((1, int((~self._empty).sum()))))
        with self._fitting(X):
            imputer = fit_imputer(
                self._without_empty(X), kernel, weights=weights, n_landmarks=self.n_landmarks,
                max_iter=self.max_iter, tol=self.tol, random_state=self.random_state,
            )  # fmt: skip
        self.imputer_, self.kernel_ = imputer, imputer.kernel
        self.changes_, self.status_ = imputer.changes, imputer.status
        self.error_ = np.full(X.shape[1], np.nan)
        self.error_[~self._empty] = imputer.error
        self.n_iter_ = max(len(imputer.changes), 1)  # scikit-learn requires at least one
        return self

    def transform(self, X: Any) -> Array:
        """Return X with its missing values filled, shape (m, d_out)."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        with self._running():
            filled: Array = self.imputer_(self._without_empty(X))
        if self.keep_empty_features and self._empty.any():
            whole = np.where(np.isnan(X), X.dtype.type(0.0), X)
            whole[:, ~self._empty] = filled
            filled = whole
        if not self.add_indicator:
            return filled
        return np.hstack([filled, np.isnan(X[:, self._indicated]).astype(X.dtype)])

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that `transform` gives.

        `input_features` are the names of the columns of X; by default those seen in `fit`, or x0,
        x1, ...
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        kept = names if self.keep_empty_features else names[~self._empty]
        if not self.add_indicator:
            return np.asarray(kept, dtype=object)
        flags = [f"missingindicator_{name}" for name in names[self._indicated]]
        return np.asarray([*kept, *flags], dtype=object)

    def _without_empty(self, X: Array) -> Array:
        return X[:, ~self._empty] if self._empty.any() else X

    def _validated(self, X: Any, *, reset: bool) -> Array:
        types = [np.float64, np.float32]
        X = masked_as_nan(X)
        X = validated(self, X, dtype=types, ensure_all_finite="allow-nan", reset=reset)
        return np.asarray(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
