"""Mean shift clustering as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from mercer._array import Array, Points, as_points, one_of, positive_int
from mercer._status import Status
from mercer.estimators._base import KernelEstimator
from mercer.estimators._kernel_parameter import density_kernel, is_auto
from mercer.estimators._validation import (
    check_rows,
    check_weights,
    fit_column_scaler,
    float_type,
)
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Kernel, Scales, Vectors
from mercer.methods import Modes, mean_shift
from mercer.methods.modes._basins import nearest_center
from mercer.methods.modes._blurring import blurring_mean_shift
from mercer.methods.modes._convergence_bandwidth import ConvergenceBandwidth, convergence_bandwidth
from mercer.methods.modes._density_sum import DensitySum
from mercer.methods.modes._mean_shift import assign_to_modes
from mercer.space import mean_embedding
from mercer.space._points import unique

_LABELS = ("basin", "nearest")


@dataclass(eq=False, repr=False)
class MeanShift(ClusterMixin, KernelEstimator):  # type: ignore[misc]
    """Mean shift clustering: rows that climb to the same mode of the density are one cluster.

    The density is f = sum_i w_i k(x_i, .), up to a constant. `mean_shift` climbs it from every row,
    or from `seeds`.

    Parameters
    ----------
    kernel : Kernel or {"auto", "gaussian", "epanechnikov", "flat", "exponential"}
        Any kernel of one squared distance with a convex profile. "auto" is the Gaussian. "flat" is
        scikit-learn's mean shift, which climbs the density of "epanechnikov".
    bandwidth : float, {"auto", "silverman", "scott", "modes", "likelihood", "stable"}
        A number h > 0 or a rule to choose it. h is the `length_scale` of kernels that have one, and
        the radius of windows; other kernels are taken at x / h. "stable" is the middle of the range
        of bandwidths over which the number of modes stays the same (`scale_space`): the best rule
        for clusters, and the slowest. For the others see `density_scale`; they smooth too much
        where there are many clusters. "auto" is "silverman" if the kernel is given by name, and
        leaves a kernel object as it is. A flat kernel of radius 2 h is about as wide as a Gaussian
        of length scale h.
    seeds : array_like of shape (m, d), optional
        Starts, instead of every row (scikit-learn's name; `start` elsewhere in mercer).
    scale_columns : {"none", "std"}
        "std" chooses the bandwidth in units of the columns' standard deviations: `kernel_` is then
        a kernel of the scaled columns. "none" takes columns as they are, as is right for a kernel
        or a bandwidth in the units of the data; "std" beside one is refused.
    bin_seeding : bool, default=False
        Start from the centres of the cells of a grid of width h that hold at least `min_bin_freq`
        rows.
    min_bin_freq : int, default=1
    labels : {"basin", "nearest"}
        "basin" is the mode that a row climbs to (-1 if it is not among those found), "nearest" the
        mode nearest in the metric of the kernel, as in scikit-learn.
    min_cluster_size : int, default=1
        Smaller clusters are dropped; their rows get the label -1.
    blurring : bool, default=False
        Move the rows themselves (`blurring_mean_shift`). Centres are where they meet, and `predict`
        takes the nearest.
    tol : float, default=1e-6
        In length scales: an ascent ends when its steps are shorter.
    max_iter : int, default=1000
    n_jobs : int or None
        Threads; None is all cores, unlike in scikit-learn.
    verbose : bool or int, default=False
        Show a progress bar on stderr.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        The modes; the largest cluster comes first.
    labels_ : array of shape (n,)
    modes_ : Modes
        The density and its curvature at each mode, and whether it is proved to be a maximum. None
        for `blurring`.
    kernel_ : Kernel
    density_ : Element
        f.
    guarantee_ : ConvergenceBandwidth
        Whether theory guarantees a single mode, to which every ascent converges, and why.
    n_iter_ : int
        The largest number of steps of an ascent.

    See Also
    --------
    mean_shift : the function behind it.
    scale_space : the number of modes for every bandwidth.

    References
    ----------
    D. Comaniciu and P. Meer, Mean shift: a robust approach toward feature space analysis, 2002.
    S. Pal and P. Vepakomma, Convergence of mean shift algorithms for large bandwidths, 2025.

    Examples
    --------
    >>> import mercer as mc
    >>> X = [[1.0, 1.0], [2.0, 1.0], [1.0, 0.0], [4.0, 7.0], [3.0, 5.0], [3.0, 6.0]]
    >>> model = mc.MeanShift(bandwidth=1.0).fit(X)
    >>> model.labels_, model.predict([[0.0, 0.0], [5.0, 5.0]])
    (array([0, 0, 0, 1, 1, 1]), array([0, 1]))
    """

    kernel: Any = "auto"
    _: KW_ONLY
    bandwidth: Any = "auto"
    scale_columns: str = "none"
    seeds: Any = None
    bin_seeding: bool = False
    min_bin_freq: int = 1
    labels: str = "basin"
    min_cluster_size: int = 1
    blurring: bool = False
    tol: float = 1e-6
    max_iter: int = 1000
    n_jobs: int | None = None
    verbose: bool | int = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MeanShift:
        """Find the modes and the mode of each row.

        Parameters
        ----------
        X : array_like of shape (n, d)
        y : ignored
        sample_weight : array_like of shape (n,), optional
            A weight of 2 is the same as repeating the row. Rows of weight 0 are only labelled.
        """
        one_of(self.labels, _LABELS, "labels")
        positive_int(self.min_bin_freq, "min_bin_freq")
        positive_int(self.min_cluster_size, "min_cluster_size")
        X = check_rows(self, X, reset=True)
        w = check_weights(sample_weight, X)
        Z = np.asarray(X, dtype=np.float64)
        points = Points(as_points(Z), Vectors())
        with self._fitting(X):
            self.kernel_ = self._chosen_kernel(points, w)
            self.density_ = mean_embedding(self.kernel_, points, weights=w)
            centres, labels = self._blurred(Z, w) if self.blurring else self._climbed(Z)
        mass = np.ones(len(Z)) if w is None else w
        labels, centres = _without_small(labels, centres, mass, self.min_cluster_size)
        self.cluster_centers_ = centres.astype(float_type(X), copy=False)
        self.labels_ = labels
        self._guarantee: ConvergenceBandwidth | None = None
        return self

    @property
    def guarantee_(self) -> ConvergenceBandwidth:
        """Whether theory guarantees a single mode, and why; computed when first read."""
        check_is_fitted(self)
        if self._guarantee is None:
            psi = self.density_
            used = psi.coef.tile(slice(None), slice(None))[:, 0] > 0.0
            self._guarantee = convergence_bandwidth(self.kernel_, psi.points[used])
        return self._guarantee

    def predict(self, X: Any) -> Array:
        """Return the number of the mode that each row climbs to, -1 for none of them.

        Parameters
        ----------
        X : array_like of shape (m, d)
        """
        check_is_fitted(self)
        Z = np.asarray(check_rows(self, X, reset=False), dtype=np.float64)
        centres = np.asarray(self.cluster_centers_, dtype=np.float64)
        with self._running():
            if self.blurring or self.labels == "nearest":
                return self._nearest(Z, centres)
            return assign_to_modes(self.density_, centres, Z, tol=self.tol, max_iter=self.max_iter)

    # --- helpers ------------------------------------------------------------------------------

    def _chosen_kernel(self, points: Points, w: Array | None) -> Kernel:
        """The kernel, in the units of the data."""
        named = isinstance(self.bandwidth, str)
        given = not named or (is_auto(self.bandwidth) and isinstance(self.kernel, Kernel))
        scaler = fit_column_scaler(self.scale_columns, points.array, w, in_data_units=given)
        if scaler is not None:
            points = Points(scaler.transform(points.array), points.domain)
        kernel = density_kernel(self.kernel, self.bandwidth, points, w, for_mean_shift=True)
        return kernel if scaler is None else kernel.transform(Scales(scaler.scale_))

    def _nearest(self, Z: Array, centres: Array) -> Array:
        """The number of the centre nearest in the metric of the kernel, -1 without centres."""
        target = DensitySum.of(self.density_)
        return nearest_center(target.forth(Z), target.forth(centres))[1]

    def _climbed(self, Z: Array) -> tuple[Array, Array]:
        settings = {"tol": self.tol, "max_iter": self.max_iter}
        chosen = self._starts(Z)
        starts = self.density_.support if chosen is None else chosen
        found = mean_shift(self.density_, starts, **settings)  # type: ignore[arg-type]
        self.modes_: Modes | None = found
        self.n_iter_ = int(found.n_iter.max(initial=0))
        late = int(np.sum(found.status == Status.MAX_ITER))
        if late:
            warnings.warn(
                f"{late} of {len(found.status)} ascents were still moving after max_iter = "
                f"{self.max_iter} steps and have no label; raise max_iter or tol",
                MercerWarning,
                stacklevel=3,
            )
        if not len(found):
            raise InputError("no start reached a mode; raise max_iter, or give seeds near the data")
        if self.labels == "nearest":
            return found.points, self._nearest(Z, found.points)
        if chosen is None:
            return found.points, found.labels
        return found.points, assign_to_modes(self.density_, found.points, Z, **settings)  # type: ignore[arg-type]

    def _blurred(self, Z: Array, w: Array | None) -> tuple[Array, Array]:
        found = blurring_mean_shift(
            self.kernel_, Z, weights=w, tol=self.tol, max_iter=self.max_iter
        )
        if not found.converged:
            warnings.warn(
                f"points were still moving after max_iter = {self.max_iter} steps; raise it",
                MercerWarning,
                stacklevel=3,
            )
        self.modes_, self.n_iter_ = None, found.n_iter
        share = np.ones(len(Z)) if w is None else w
        mass = np.bincount(found.labels, share)
        sums = np.stack([np.bincount(found.labels, share * c) for c in found.points.T], axis=1)
        with np.errstate(invalid="ignore"):
            return sums / mass[:, None], found.labels

    def _starts(self, Z: Array) -> Array | None:
        if self.seeds is not None:
            return np.asarray(as_points(self.seeds, "seeds"), dtype=np.float64)
        if not self.bin_seeding:
            return None
        target = DensitySum.of(self.density_)
        width = getattr(self.kernel_, "length_scale", None) or target.length
        cells, group = unique(np.round(target.forth(Z) / width) + 0.0)
        middles = target.back(cells[np.bincount(group) >= self.min_bin_freq] * width)
        return middles if len(middles) else Z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _without_small(
    labels: Array, centres: Array, weights: Array, least: int
) -> tuple[Array, Array]:
    """Drop clusters of fewer rows, and number the others by the weight of their rows.

    Clusters of the same weight are ordered by their position, so the order of rows does not matter.
    """
    found = labels >= 0
    mass = np.bincount(labels[found], weights[found], minlength=len(centres))
    extent = float(np.abs(centres).max(initial=0.0))
    place = np.round(centres / (1e-9 * extent)) if extent > 0.0 else centres
    share = np.round(mass / (mass.max(initial=0.0) or 1.0), 9)
    order = np.lexsort((*place.T[::-1], -share))
    keep = order[mass[order] >= least] if least > 1 else order[mass[order] > 0.0]
    rank = np.full(len(centres) + 1, -1)  # one more: -1 stays -1
    rank[keep] = np.arange(len(keep))
    return rank[labels], centres[keep]
