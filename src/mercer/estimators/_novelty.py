"""Novelty and outlier detection by the Mahalanobis distance in feature space."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from mercer._array import Array, Points, is_sparse, positive, positive_int
from mercer._progress import tracked
from mercer._random import as_generator
from mercer.engine import n_rows, pieces
from mercer.estimators import _summaries as summaries
from mercer.estimators._base import SubspaceEstimator
from mercer.exceptions import InputError
from mercer.methods import kernel_pca
from mercer.methods._rows import distinct_rows, row_keys
from mercer.methods.pca._kernel_pca import LandmarkScatter
from mercer.space import Subspace, feature

_MANY = 2_000  # rows whose components are all computed, in seconds; more take landmarks
_LANDMARKS = 1_000
_BLOCK = 2048  # rows that are scored at once


@dataclass(eq=False, repr=False, kw_only=True)
class KernelNovelty(OutlierMixin, SubspaceEstimator):  # type: ignore[misc]
    """Novelty and outlier detection by the Mahalanobis distance in feature space.

    The score of x is minus

        v(x) = a <k(x, .) - mu, (C + a)^-1 (k(x, .) - mu)> ,

    where mu is the mean and C the scatter sum_i (k(x_i, .) - mu) (k(x_i, .) - mu)' of the features
    of the training rows: the nearer to zero, the more x is like them. With the centred kernel, v is
    also the variance of Gaussian process regression at x. A training row is scored as if it had
    been left out, in closed form. The threshold is a quantile of these scores, so that a stated
    share of new rows like the training rows is flagged.

    Parameters
    ----------
    kernel : Kernel, str or "auto"
        As in `KernelPCA`, except "precomputed".
    false_alarm_rate : float
        In (0, 0.5]: the share of new rows like the training rows that `predict` flags. The default
        0.05 is a convention. If some training rows are outliers, it is about the share of training
        rows that are flagged.
    penalty : float
        > 0: a, in units of the trace of C per distinct row. The default 0.1 lies in a wide range
        (1e-8 to 0.3) over which results hardly change; 1 to 3 is better if training rows contain
        outliers that resemble each other.
    scale_columns : {"auto", "std", "none"}
        The units in which the automatic kernel sees the columns. "std" divides them by their
        standard deviations, "none" takes them as they are. The default "auto" is "none" if more
        than half of the columns span at least half of the range of the whole table, as pixels do,
        and "std" otherwise. A kernel that is given is in the units of the data.
    n_landmarks : int, optional
        As in `KernelPCA`; by default 1,000 if there are more than 2,000 distinct rows, which then
        take seconds instead of minutes.
    gamma, rule, random_state, n_jobs, verbose
        As in `KernelPCA`.

    Attributes
    ----------
    offset_ : float
        Rows with a lower score are outliers.
    penalty_ : float
        a, in the units of the eigenvalues of C.
    subspace_ : Subspace
        mu and the eigenvectors of C, with its eigenvalues.
    kernel_, scaler_
        As in `KernelPCA`; `scaler_` is None if columns are taken as they are.

    See Also
    --------
    KernelPCA : the subspace itself; its `score_samples` is the limit of a small penalty.

    Notes
    -----
    Without row i, of weight w out of a total t, mu and C change by multiples of
    h = k(x_i, .) - mu. So with M = <h, (C + a)^-1 h> the score without it is
    -a (t / (t - w))^2 M / (1 - w t / (t - w) M). If columns are scaled, the row is also scaled by
    the standard deviations of the others; the kernel and a are those of all rows.

    With n distinct rows the threshold is the value with rank ceil((1 - rate) (n + 1)) of v among
    rows left out, as in conformal prediction. With fewer than 1 / rate - 1 rows it is the largest,
    and the rate is 1 / (n + 1). The scores of landmarks are slightly too near to zero, so landmarks
    are chosen from one half of the rows, and the threshold from the other.

    References
    ----------
    B. Haasdonk and E. Pekalska, Classification with kernel Mahalanobis distance classifiers, 2009.
    M. Kemmler and others, One-class classification with Gaussian processes, Pattern Recognition 46,
    2013. R. F. Barber and others, Predictive inference with the jackknife+, Annals of Statistics
    49, 2021.

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
    false_alarm_rate: float = 0.05
    penalty: float = 0.1
    scale_columns: str = "auto"
    _summary = summaries.novelty

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelNovelty:
        """Find mean and scatter of the features of the rows of X, and the threshold.

        With `sample_weight`, a weight of 2 is the same as repeating the row; y is ignored.
        """
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise InputError(
                "kernel='precomputed' has no k(x, x) of new rows, which their distance needs; give "
                "a kernel"
            )
        rate = self.false_alarm_rate
        if not isinstance(rate, float | int | np.number) or not 0.0 < rate <= 0.5:
            raise InputError(f"false_alarm_rate must lie in (0, 0.5], got {rate!r}")
        penalty = positive(self.penalty, "penalty")
        with self._fitting(X):
            # in double precision: a distance is a small difference of large numbers
            points, w = self._training_rows(X, sample_weight, double=True)
            array, mass = distinct_rows(points.array, w)
            rows = Points(array, self.kernel_.domain)
            self.subspace_, fresh = self._subspace(rows, mass)
            self.penalty_ = penalty * float(self.subspace_.total or 0.0) / len(mass)
            if not np.isfinite(self.penalty_):
                raise InputError(
                    "the penalty times the weighted scatter overflows; use a smaller penalty or "
                    "smaller weights"
                )
            errors = self._left_out_errors(rows, mass, outside=bool(fresh.any()))
        keys = row_keys(rows.array)
        order = np.argsort(keys)
        self._keys, self._left_out = keys[order], -errors[order]
        counted = fresh if np.count_nonzero(fresh) * rate >= 1.0 else slice(None)
        errors, mass = errors[counted], mass[counted]
        # of n values the one with rank ceil((1 - rate) (n + 1)), at most the largest
        share = (1.0 - float(rate)) * (1.0 + 1.0 / len(mass)) * (1.0 - 1e-12)
        self.offset_ = -float(
            np.quantile(errors, min(share, 1.0), weights=mass, method="inverted_cdf")
        )
        return self

    def _subspace(self, rows: Points, mass: Array) -> tuple[Subspace, Array]:
        """Return all components, and which rows could not become landmarks (none if all did)."""
        n, landmarks = n_rows(rows), self.n_landmarks
        if landmarks is None:
            landmarks = _LANDMARKS if n > _MANY else n
        fresh = np.zeros(n, dtype=bool)
        if positive_int(landmarks, "n_landmarks") >= n:
            return kernel_pca(self.kernel_, rows, weights=mass), fresh
        rng = as_generator(self.random_state)
        fresh[rng.permutation(n)[max(landmarks, n // 2) :]] = True
        scatter = LandmarkScatter.choose(self.kernel_, rows[~fresh], landmarks, self.rule, rng)
        scatter.add(rows, mass)
        return scatter.pca(None)[0], fresh

    def _left_out_errors(self, rows: Points, mass: Array, *, outside: bool) -> Array:
        """v of each training row, left out of the scatter, the mean and the column scales.

        `outside` says that features have a part outside the span of the landmarks.
        """
        eps, total, found = np.finfo(float).eps, mass.sum(), []
        moved = rows
        if self.scaler_ is not None and not is_sparse(rows.array):
            moved = Points(_rescaled(rows.array, mass / total, self.scaler_.scale_), rows.domain)
        shrink = 1.0 / (np.asarray(self.subspace_.eigenvalues) + self.penalty_)
        for part in tracked(list(pieces(n_rows(rows), _BLOCK)), "distances"):
            c, rest = self._coordinates(rows[part])
            h = c
            if moved is not rows:
                h, rest = self._coordinates(moved[part])
            elif not outside:  # nothing but rounding
                rest = 0.0 * rest
            others = 1.0 / np.maximum(1.0 - mass[part] / total, eps)
            h = h + (others - 1.0)[:, None] * c  # from the mean of the others
            w = mass[part] * others
            own, cross, inside = c**2 @ shrink, (h * c) @ shrink, h**2 @ shrink
            # Sherman and Morrison; w cross has no unit, cross^2 alone may overflow
            inside += (w * cross) * cross / np.maximum(1.0 - w * own, eps)
            found.append(rest + self.penalty_ * inside)
        return np.concatenate(found)

    def _coordinates(self, X: Any) -> tuple[Array, Array]:
        """Coordinates of k(x, .) - mu in the subspace, and the squared length outside."""
        psi, plane = feature(self.kernel_, X), self.subspace_
        c = np.asarray(plane.coordinates(psi), dtype=np.float64)
        whole = np.asarray(psi.distance(plane.origin), dtype=np.float64) ** 2
        return c, np.maximum(whole - np.sum(c**2, axis=1), 0.0)

    def score_samples(self, X: Any) -> Array:
        """Return -v(x) for the rows of X, shape (m,); a training row is scored as left out."""
        X = self._new_rows(X, double=True)
        points = self.kernel_.points(X)
        scores = np.empty(n_rows(X))
        shrink = 1.0 / (np.asarray(self.subspace_.eigenvalues) + self.penalty_)
        with self._running():
            for part in tracked(list(pieces(n_rows(X), _BLOCK)), "distances"):
                c, rest = self._coordinates(points[part])
                scores[part] = -(rest + self.penalty_ * (c**2 @ shrink))
        keys = row_keys(points.array)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._left_out[at], scores)

    def decision_function(self, X: Any) -> Array:
        """Return `score_samples(X) - offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """Return -1 for outliers and 1 for the others."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)


def _rescaled(Z: Array, share: Array, scale: Array) -> Array:
    """Rows scaled by the standard deviations that the columns have without the row.

    `share` is the weight of each row. A column that is constant without it is not scaled.
    """
    rest = np.maximum(1.0 - share, np.finfo(float).eps)[:, None]
    variance = (1.0 - share[:, None] * Z**2 / rest) / rest
    constant = variance < 1e-9
    return np.asarray(
        Z * np.where(constant, scale, 1.0 / np.sqrt(np.where(constant, 1.0, variance)))
    )
