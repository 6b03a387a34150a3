"""Outliers and novelties: rows whose features are far from the principal subspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer._array import Array
from mercer.engine import n_rows, pieces
from mercer.estimators._base import KernelEstimator
from mercer.estimators._column_scaling import fit_column_scaler, scaled
from mercer.estimators._inputs import row_weights, validated
from mercer.estimators._kernel_parameter import is_auto, resolve_kernel, set_kernel_tags
from mercer.estimators._kernel_pca import squared_distances
from mercer.exceptions import InputError
from mercer.methods import kernel_pca
from mercer.methods._rows import row_keys
from mercer.methods.pca._components import check_number
from mercer.methods.pca._smoother import leverages, running_sums
from mercer.space import Subspace, feature

_MANY = 2_000  # rows whose components are all computed; more take landmarks
_LANDMARKS = 1_000
_BLOCK = 2048
_LEAST = 1e-4  # of the scatter must be left outside: in few dimensions errors would only fall
_ALL_OF_IT = 1e-6  # a row whose share in its own reconstruction is that near to one spans alone


class KernelNovelty(OutlierMixin, KernelEstimator):  # type: ignore[misc]
    """Outlier detection by the distance of features to their principal subspace.

    The score of x is minus the squared distance of k(x, .) to the affine subspace mu + span(f_1,
    ..., f_r) of kernel PCA, its reconstruction error: the nearer to zero, the more x is like the
    training rows. A row that equals a training row is scored as if that row had not been there, so
    that training rows and new ones are measured alike; without that, the errors of training rows
    are far too small.

    Parameters
    ----------
    kernel : Kernel, str or "auto"
        "auto" is a Gaussian whose squared length scale is half the median squared distance between
        different rows. Strings as in scikit-learn ("rbf", "poly", ...) are accepted, except
        "precomputed".
    n_components : int, float or None
        A number r of components; a share in (0, 1) of the scatter; or None for the number that
        reconstructs the training rows best, each left out in turn, among those that leave at least
        1e-4 of the scatter out. Give one for kernels with few features, such as "linear", where
        that would be nearly all of them.
    contamination : float or "auto"
        The share in (0, 0.5] of the training rows that are taken for outliers. "auto" takes rows
        for outliers whose error is beyond q3 + 1.5 (q3 - q1), where q1 and q3 are the quartiles of
        the errors of training rows, each left out in turn (the rule of box plots).
    gamma : float, optional
        For kernels that are given as strings.
    scale_columns : {"none", "std"}
        Whether the automatic kernel sees columns as they are, or divided by their standard
        deviations. A kernel that is given is in the units of the data.
    n_landmarks : int, optional
        Work in the span of the features of so many landmarks: n x n_landmarks numbers, any n.
        1,000 where there are more than 2,000 rows and n_components is None.
    rule : {"uniform", "kmeans", "leverage", "pivoted"}
        How landmarks are chosen.
    random_state : int, Generator, RandomState or None
        For landmarks.
    n_jobs : int or None
        Threads; None is all cores, unlike in scikit-learn.

    Attributes
    ----------
    kernel_ : Kernel
        On scaled columns, if columns are scaled.
    subspace_ : Subspace
    scaler_ : StandardScaler or None
        Scales columns; None for `scale_columns="none"`.
    n_components_ : int
    offset_ : float
        The score below which a row is taken for an outlier.

    See Also
    --------
    KernelPCA : the subspace itself, with coordinates and a way back.

    Notes
    -----
    The reconstruction of a row is a linear smoother, in which the row's own share is
    s_i = w_i (1 / sum(w) + sum_l c_l(x_i)^2 / lambda_l) with coordinates c_l. Without the row, and
    with everything else as it was, its squared error e_i is e_i / (1 - s_i)^2, and at most its
    squared distance to the mean of the others.

    References
    ----------
    SPEC H4. H. Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40, 2007.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer import datasets
    >>> ring = datasets.ring(200, random_state=0).points
    >>> detector = mc.KernelNovelty().fit(ring)
    >>> detector.predict([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    array([ 1, -1, -1])
    """

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        n_components: Any = None,
        contamination: Any = "auto",
        gamma: float | None = None,
        scale_columns: str = "none",
        n_landmarks: int | None = None,
        rule: str = "uniform",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.contamination = contamination
        self.gamma = gamma
        self.scale_columns = scale_columns
        self.n_landmarks = n_landmarks
        self.rule = rule
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelNovelty:
        """Find the principal subspace of the rows of X, and the score where outliers begin.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n, d)
        y : ignored
        sample_weight : array_like of shape (n,), optional
            A weight of 2 is a row that stands twice, a weight of 0 one that is not there.
        """
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise InputError(
                "kernel='precomputed' has no k(x, x) of new rows, which their distance needs; give "
                "a kernel"
            )
        check_number(self.n_components)
        _check_share(self.contamination)
        X = self._rows(X, reset=True)
        w = row_weights(sample_weight, X)
        given = not is_auto(self.kernel)
        self.scaler_ = fit_column_scaler(self.scale_columns, X, w, in_data_units=given)
        X = scaled(self.scaler_, X)
        with self._options():
            self.kernel_ = resolve_kernel(self.kernel, X, sample_weight=w, gamma=self.gamma)
            X = self.kernel_.points(X)
            keys, group = np.unique(row_keys(X.array), return_inverse=True)
            raw = np.ones(n_rows(X)) if w is None else w
            mass = np.bincount(group, raw, len(keys))[group]  # of all rows that equal a row
            self.subspace_, errors = self._subspace(X, w, mass)
        self.n_components_ = self.subspace_.dim
        counted = mass > 0.0
        self._keys = keys[np.unique(group[counted])]
        known = np.zeros(len(keys))
        known[group] = -errors
        self._left_out = known[np.unique(group[counted])]
        self.offset_ = _offset(-errors[counted], raw[counted], self.contamination)
        return self

    def _subspace(self, X: Any, w: Array | None, mass: Array) -> tuple[Subspace, Array]:
        """The subspace, and the squared error of each row without itself."""
        landmarks = self.n_landmarks
        if landmarks is None and self.n_components is None and n_rows(X) > _MANY:
            landmarks = _LANDMARKS
        exact = landmarks is None
        plane = kernel_pca(
            self.kernel_, X, self.n_components if exact else None, weights=w,
            n_landmarks=landmarks, rule=self.rule, random_state=self.random_state,
        )  # fmt: skip
        raw = np.ones(n_rows(X)) if w is None else w
        curves = _LeftOutErrors(plane, float(raw.sum()), landmarks=not exact)
        blocks = list(pieces(n_rows(X), _BLOCK))
        if self.n_components is None:
            mean = sum(raw[rows] @ curves(X[rows], mass[rows]) for rows in blocks)
            number = _best_number(np.asarray(mean), plane)
        else:
            number = _asked_number(self.n_components, plane)
        errors = [curves(X[rows], mass[rows])[:, number] for rows in blocks]
        return plane.truncate(number), np.concatenate(errors)

    def score_samples(self, X: Any) -> Array:
        """Return minus the squared distance of each row's feature to the subspace, shape (m,).

        Of a row that equals a training row: to the subspace without it.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (m, d)
        """
        check_is_fitted(self)
        X = self.kernel_.points(scaled(self.scaler_, self._rows(X, reset=False)))
        with self._options():
            scores = -squared_distances(self.subspace_, X, _BLOCK)
        keys = row_keys(X.array)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._left_out[at], scores)

    def decision_function(self, X: Any) -> Array:
        """Return `score_samples(X) - offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """Return -1 for outliers and 1 for the others."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Rows in double precision: an error is a small difference of large numbers."""
        X = validated(self, X, reset=reset)
        return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_kernel_tags(tags, self.kernel)
        return tags


@dataclass(frozen=True, eq=False)
class _LeftOutErrors:
    """Squared errors of training rows without themselves, for every number of components."""

    plane: Subspace
    total: float
    landmarks: bool

    def __call__(self, X: Any, mass: Array) -> Array:
        """Shape (b, r + 1), for the first 0, 1, ..., r directions."""
        plane = self.plane
        assert plane.eigenvalues is not None
        psi = feature(plane.origin.kernel, X)
        squared = np.asarray(plane.coordinates(psi), dtype=np.float64) ** 2
        offset = np.asarray(psi.distance(plane.origin), dtype=np.float64) ** 2
        # what is outside the span of the landmarks is the same with and without a row
        outside = np.maximum(offset - squared.sum(axis=1), 0.0) if self.landmarks else 0.0 * offset
        inside = (offset - outside)[:, None] - running_sums(squared)
        share = leverages(squared, plane.eigenvalues, mass, self.total)
        others = np.maximum(1.0 - share, _ALL_OF_IT)
        most = (inside[:, :1] / others[:, :1] ** 2) * np.ones_like(inside)
        found = np.minimum(np.maximum(inside, 0.0) / others**2, most)
        return np.asarray(outside[:, None] + np.where(1.0 - share > _ALL_OF_IT, found, most))


def _best_number(mean: Array, plane: Subspace) -> int:
    """The number of components with the least error, among those that leave enough out."""
    assert plane.eigenvalues is not None
    assert plane.total is not None
    left = plane.total - np.cumsum(plane.eigenvalues)
    allowed = max(int(np.count_nonzero(left > _LEAST * plane.total)), 1)
    return 1 + int(np.argmin(mean[1 : allowed + 1]))


def _asked_number(n_components: Any, plane: Subspace) -> int:
    assert plane.eigenvalues is not None
    assert plane.total is not None
    if isinstance(n_components, float | np.floating):
        held = np.cumsum(plane.eigenvalues) >= n_components * plane.total
        return int(np.argmax(held)) + 1 if held.any() else plane.dim
    return min(int(n_components), plane.dim)


def _check_share(contamination: Any) -> None:
    if isinstance(contamination, str):
        if contamination == "auto":
            return
    elif isinstance(contamination, float | int | np.number) and 0.0 < contamination <= 0.5:
        return
    raise InputError(f"contamination must be 'auto' or lie in (0, 0.5], got {contamination!r}")


def _offset(scores: Array, weights: Array, contamination: Any) -> float:
    if contamination != "auto":
        return _quantile(scores, weights, float(contamination))
    low, high = (_quantile(scores, weights, q) for q in (0.25, 0.75))
    return low - 1.5 * (high - low)


def _quantile(values: Array, weights: Array, q: float) -> float:
    """The least value with more than a share q of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    first = np.searchsorted(cumulative, q * cumulative[-1] * (1.0 + 1e-12), side="right")
    return float(values[order[min(int(first), len(order) - 1)]])
