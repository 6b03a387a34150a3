"""Novelty and outlier detection with kernel PCA, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer._array import Array, Points
from mercer.engine import n_rows, pieces
from mercer.estimators._base import KernelEstimator
from mercer.estimators._column_scaling import fit_column_scaler, scaled
from mercer.estimators._kernel_parameter import is_auto, resolve_kernel, set_kernel_tags
from mercer.estimators._kernel_pca import squared_distances
from mercer.estimators._validation import check_rows, check_weights
from mercer.exceptions import InputError
from mercer.methods import kernel_pca
from mercer.methods._rows import distinct_rows, row_keys
from mercer.methods.pca._components import check_number
from mercer.methods.pca._smoother import leverages, running_sums
from mercer.space import Subspace, feature

_MANY = 2_000  # rows whose components are all computed, in seconds; more take landmarks
_LANDMARKS = 1_000
_BLOCK = 2048  # rows whose errors are computed at once
_LEAST = 1e-4  # of the scatter must be left outside: in few dimensions errors would only fall
_ALONE = 1e-6  # a row whose leverage is this near to one has a direction of its own


class KernelNovelty(OutlierMixin, KernelEstimator):  # type: ignore[misc]
    """Novelty and outlier detection by the distance to the principal subspace.

    The score of x is minus the squared distance of k(x, .) to the affine subspace mu + span(f_1,
    ..., f_r) of kernel PCA, its reconstruction error: the nearer to zero, the more x is like the
    training rows. A training row is scored as if it had been left out; otherwise the errors of
    training rows would be far smaller than those of new ones.

    Parameters
    ----------
    kernel : Kernel, str or "auto"
        "auto" is a Gaussian whose squared length scale is half the median squared distance between
        distinct rows. Names as in `KernelPCA`, except "precomputed".
    n_components : int, float or None
        A number r of components; a share in (0, 1) of the scatter; or None for the number that
        reconstructs the training rows best, each left out in turn, among those that leave at least
        1e-4 of the scatter outside. Give a number for kernels with few features, such as "linear":
        None would take nearly all of them.
    contamination : float or "auto"
        The share in (0, 0.5] of the training rows that are outliers. "auto" is the rule of box
        plots: outliers have errors beyond q3 + 1.5 (q3 - q1), with the quartiles q1 and q3 of the
        errors of training rows, each left out in turn.
    n_landmarks : int, optional
        As in `KernelPCA`; 1,000 if there are more than 2,000 distinct rows and n_components is
        None.
    gamma, scale_columns, rule, random_state, n_jobs
        As in `KernelPCA`.

    Attributes
    ----------
    kernel_, subspace_, scaler_
        As in `KernelPCA`.
    n_components_ : int
    offset_ : float
        Rows with a lower score are outliers.

    See Also
    --------
    KernelPCA : the subspace itself, with coordinates and an inverse.

    Notes
    -----
    Reconstruction is a linear smoother. The leverage of row i, its share in its own
    reconstruction, is s_i = w_i (1 / sum(w) + sum_l c_l(x_i)^2 / lambda_l) with coordinates c_l.
    Without the row, its squared error e_i is e_i / (1 - s_i)^2, and at most its squared distance to
    the mean of the others.

    References
    ----------
    H. Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40, 2007.

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
        """Find the principal subspace of the rows of X, and the score at which outliers begin.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n, d)
        y : ignored
        sample_weight : array_like of shape (n,), optional
            A weight of 2 is the same as repeating the row, a weight of 0 as leaving it out.
        """
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise InputError(
                "kernel='precomputed' has no k(x, x) of new rows, which their distance needs; give "
                "a kernel"
            )
        check_number(self.n_components)
        share = self.contamination
        number = isinstance(share, float | int | np.number)
        if not is_auto(share) and not (number and 0.0 < share <= 0.5):
            raise InputError(f"contamination must be 'auto' or lie in (0, 0.5], got {share!r}")
        # in double precision: an error is a small difference of large numbers
        X = check_rows(self, X, reset=True, double=True)
        w = check_weights(sample_weight, X)
        given = not is_auto(self.kernel)
        self.scaler_ = fit_column_scaler(self.scale_columns, X, w, in_data_units=given)
        X = scaled(self.scaler_, X)
        with self._threads():
            self.kernel_ = resolve_kernel(self.kernel, X, sample_weight=w, gamma=self.gamma)
            array, mass = distinct_rows(self.kernel_.points(X).array, w)
            rows = Points(array, self.kernel_.domain)
            self.subspace_, errors = self._subspace(rows, mass)
        self.n_components_ = self.subspace_.dim
        keys = row_keys(rows.array)
        order = np.argsort(keys)
        self._keys, self._left_out = keys[order], -errors[order]
        if is_auto(share):
            low, high = (_quantile(-errors, mass, q) for q in (0.25, 0.75))
            self.offset_ = low - 1.5 * (high - low)
        else:
            self.offset_ = _quantile(-errors, mass, float(share))
        return self

    def _subspace(self, rows: Points, mass: Array) -> tuple[Subspace, Array]:
        """Return the subspace, and the squared error of each row without itself."""
        landmarks = self.n_landmarks
        if landmarks is None and self.n_components is None and n_rows(rows) > _MANY:
            landmarks = _LANDMARKS
        plane = kernel_pca(
            self.kernel_, rows, self.n_components if landmarks is None else None, weights=mass,
            n_landmarks=landmarks, rule=self.rule, random_state=self.random_state,
        )  # fmt: skip
        total = float(mass.sum())
        blocks = list(pieces(n_rows(rows), _BLOCK))

        def errors(part: slice) -> Array:
            return _left_out_errors(
                plane, rows[part], mass[part], total, outside=landmarks is not None
            )

        if self.n_components is None:
            mean = sum(mass[part] @ errors(part) for part in blocks)
            number = _best_number(np.asarray(mean), plane)
        else:
            number = _given_number(self.n_components, plane)
        return plane.truncate(number), np.concatenate([errors(part)[:, number] for part in blocks])

    def score_samples(self, X: Any) -> Array:
        """Return minus the squared distance of each row's feature to the subspace, shape (m,).

        For a row that equals a training row: to the subspace without it.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (m, d)
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False, double=True)
        X = self.kernel_.points(scaled(self.scaler_, X))
        with self._threads():
            scores = -squared_distances(self.subspace_, X)
        keys = row_keys(X.array)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._left_out[at], scores)

    def decision_function(self, X: Any) -> Array:
        """Return `score_samples(X) - offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """Return -1 for outliers and 1 for the others."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_kernel_tags(tags, self.kernel)
        return tags


def _left_out_errors(plane: Subspace, X: Any, mass: Array, total: float, *, outside: bool) -> Array:
    """Squared errors of training rows without themselves, for the first 0, ..., r directions.

    Shape (b, r + 1). `outside` says that features have a part outside the span of the landmarks. It
    is the same with and without the row.
    """
    psi = feature(plane.origin.kernel, X)
    squared = np.asarray(plane.coordinates(psi), dtype=np.float64) ** 2
    offset = np.asarray(psi.distance(plane.origin), dtype=np.float64) ** 2
    rest = np.maximum(offset - squared.sum(axis=1), 0.0) if outside else 0.0 * offset
    inside = (offset - rest)[:, None] - running_sums(squared)
    others = 1.0 - leverages(squared, np.asarray(plane.eigenvalues), mass, total)
    some = np.maximum(others, _ALONE)
    most = (inside[:, :1] / some[:, :1] ** 2) * np.ones_like(inside)  # to the mean of the others
    found = np.minimum(np.maximum(inside, 0.0) / some**2, most)
    return np.asarray(rest[:, None] + np.where(others > _ALONE, found, most))


def _best_number(mean: Array, plane: Subspace) -> int:
    """The number of components with the least error, among those that leave enough out."""
    total = float(plane.total or 0.0)
    left = total - np.cumsum(np.asarray(plane.eigenvalues))
    allowed = max(int(np.count_nonzero(left > _LEAST * total)), 1)
    return 1 + int(np.argmin(mean[1 : allowed + 1]))


def _given_number(n_components: Any, plane: Subspace) -> int:
    if isinstance(n_components, float | np.floating):
        held = np.cumsum(np.asarray(plane.eigenvalues)) >= n_components * float(plane.total or 0.0)
        return int(np.argmax(held)) + 1 if held.any() else plane.dim
    return min(int(n_components), plane.dim)


def _quantile(values: Array, weights: Array, q: float) -> float:
    """The least value with more than a share q of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    first = np.searchsorted(cumulative, q * cumulative[-1] * (1.0 + 1e-12), side="right")
    return float(values[order[min(int(first), len(order) - 1)]])
