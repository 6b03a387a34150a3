"""Novelty and outlier detection with kernel PCA, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from mercer._array import Array, Points
from mercer._progress import tracked
from mercer.engine import n_rows, pieces
from mercer.estimators._base import SubspaceEstimator
from mercer.estimators._kernel_parameter import is_auto
from mercer.estimators._kernel_pca import squared_distances
from mercer.exceptions import InputError
from mercer.methods import kernel_pca
from mercer.methods._rows import distinct_rows, row_keys
from mercer.methods.pca._kernel_pca import check_number
from mercer.space import Subspace, feature

_MANY = 2_000  # rows whose components are all computed, in seconds; more take landmarks
_LANDMARKS = 1_000
_BLOCK = 2048  # rows whose errors are computed at once
_LEAST = 1e-4  # of the scatter must be left outside: in few dimensions errors would only fall
_ALONE = 1e-6  # a row whose leverage is this near to one has a direction of its own


@dataclass(eq=False, repr=False, kw_only=True)
class KernelNovelty(OutlierMixin, SubspaceEstimator):  # type: ignore[misc]
    """Novelty and outlier detection by the distance to the principal subspace.

    The score of x is minus the squared distance of k(x, .) to the affine subspace mu + span(f_1,
    ..., f_r) of kernel PCA, its reconstruction error: the nearer to zero, the more x is like the
    training rows. A training row is scored as if it had been left out; otherwise the errors of
    training rows would be far smaller than those of new ones.

    Parameters
    ----------
    kernel : Kernel, str or "auto"
        As in `KernelPCA`, except "precomputed".
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
    gamma, scale_columns, rule, random_state, n_jobs, verbose
        As in `KernelPCA`.

    Attributes
    ----------
    offset_ : float
        Rows with a lower score are outliers.
    n_components_ : int
    kernel_, subspace_, scaler_
        As in `KernelPCA`.

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

    kernel: Any = field(default="auto", kw_only=False)
    contamination: Any = "auto"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelNovelty:
        """Find the principal subspace of the rows of X, and the score at which outliers begin.

        With `sample_weight`, a weight of 2 is the same as repeating the row; y is ignored.
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
        with self._fitting(X):
            # in double precision: an error is a small difference of large numbers
            points, w = self._training_rows(X, sample_weight, double=True)
            array, mass = distinct_rows(points.array, w)
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
        parts = list(pieces(n_rows(rows), _BLOCK))

        def errors(part: slice) -> Array:
            return _left_out_errors(
                plane, rows[part], mass[part], total, outside=landmarks is not None
            )

        held = np.cumsum(np.asarray(plane.eigenvalues)) / float(plane.total or 1.0)
        if self.n_components is None:
            # the least error among the numbers that leave enough scatter outside
            mean = np.sum([mass[part] @ errors(part) for part in tracked(parts, "errors")], axis=0)
            allowed = max(int(np.count_nonzero(1.0 - held > _LEAST)), 1)
            number = 1 + int(np.argmin(mean[1 : allowed + 1]))
        elif isinstance(self.n_components, float | np.floating):
            number = min(1 + int(np.count_nonzero(held < self.n_components)), plane.dim)
        else:
            number = min(int(self.n_components), plane.dim)
        chosen = [errors(part)[:, number] for part in tracked(parts, "errors")]
        return plane.truncate(number), np.concatenate(chosen)

    def score_samples(self, X: Any) -> Array:
        """Return minus the squared distance of each row's feature to the subspace, shape (m,).

        For a row that equals a training row: to the subspace without it.
        """
        X = self._new_rows(X, double=True)
        points = self.kernel_.points(X)
        with self._running():
            scores = -squared_distances(self.subspace_, points)
        keys = row_keys(points.array)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._left_out[at], scores)

    def decision_function(self, X: Any) -> Array:
        """Return `score_samples(X) - offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """Return -1 for outliers and 1 for the others."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)


def _left_out_errors(plane: Subspace, X: Any, mass: Array, total: float, *, outside: bool) -> Array:
    """Squared errors of training rows without themselves, for the first 0, ..., r directions.

    Shape (b, r + 1). `outside` says that features have a part outside the span of the landmarks. It
    is the same with and without the row.
    """
    psi = feature(plane.origin.kernel, X)
    squared = np.asarray(plane.coordinates(psi), dtype=np.float64) ** 2
    offset = np.asarray(psi.distance(plane.origin), dtype=np.float64) ** 2
    rest = np.maximum(offset - squared.sum(axis=1), 0.0) if outside else 0.0 * offset
    inside = (offset - rest)[:, None] - _running_sums(squared)
    # one minus the leverage, the share of a row in itself
    shares = _running_sums(squared / np.asarray(plane.eigenvalues))
    others = 1.0 - mass[:, None] * (1.0 / total + shares)
    some = np.maximum(others, _ALONE)
    most = (inside[:, :1] / some[:, :1] ** 2) * np.ones_like(inside)  # to the mean of the others
    found = np.minimum(np.maximum(inside, 0.0) / some**2, most)
    return np.asarray(rest[:, None] + np.where(others > _ALONE, found, most))


def _running_sums(A: Array) -> Array:
    """Sums of the first 0, 1, ..., r columns."""
    return np.concatenate([np.zeros((len(A), 1)), np.cumsum(A, axis=1)], axis=1)


def _quantile(values: Array, weights: Array, q: float) -> float:
    """The least value with more than a share q of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    first = np.searchsorted(cumulative, q * cumulative[-1] * (1.0 + 1e-12), side="right")
    return float(values[order[min(int(first), len(order) - 1)]])
