"""Mean shift clustering as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from mercer._array import (
    Array,
    Points,
    as_dense_points,
    as_points,
    check_same_columns,
    header,
    one_of,
    positive_int,
)
from mercer._chunks import Chunks
from mercer._status import Status
from mercer.estimators import _summaries as summaries
from mercer.estimators._base import KernelEstimator
from mercer.estimators._kernel_parameter import density_kernel, is_auto
from mercer.estimators._mean_shift_pieces import fit_in_pieces, nearest_of_piece
from mercer.estimators._validation import (
    by_pieces,
    check_flags,
    check_rows,
    check_weights,
    fit_column_scaler,
    float_type,
)
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Gaussian, Kernel, Matrix, Scales, Vectors
from mercer.methods import Modes, mean_shift, significant_modes
from mercer.methods._rows import nearest
from mercer.methods.density._bandwidth import kernel_deviation
from mercer.methods.density._density import weights_of
from mercer.methods.modes._blurring import blurring_mean_shift
from mercer.methods.modes._convergence_bandwidth import ConvergenceBandwidth, convergence_bandwidth
from mercer.methods.modes._density_sum import DensitySum
from mercer.methods.modes._mean_shift import assign_to_modes
from mercer.methods.modes._merging import without_small
from mercer.methods.modes._significance import SignificantModes
from mercer.space import mean_embedding
from mercer.space._points import unique


@dataclass(eq=False, repr=False)
class MeanShift(ClusterMixin, KernelEstimator):  # type: ignore[misc]
    """Mean shift clustering: rows that move uphill to the same mode of a density are one cluster.

    The density is f = sum_i w_i k(x_i, .), up to a constant. By default
    `significant_modes` chooses the bandwidth, and in more than two columns the number of principal
    components, and merges modes that are not significant into others. If only one is left, the data
    show no clusters, and `significant_.message` says so. With a kernel or bandwidth of your own,
    this is classical mean shift, `mean_shift` from every row or from `seeds`, and every mode is a
    cluster.

    Parameters
    ----------
    kernel : Kernel or {"auto", "gaussian", "epanechnikov", "flat", "exponential"}
        Any kernel of one squared distance with a convex profile. "auto" is the Gaussian, for which
        modes can be tested quickly. "flat" is scikit-learn's mean shift, which maximises the
        density of "epanechnikov".
    bandwidth : float, {"auto", "silverman", "scott", "modes", "likelihood", "stable"}
        A number h > 0 or a rule to choose it. h is the `length_scale` of kernels that have one, and
        the radius of windows; other kernels are taken at x / h. "auto" leaves a kernel object as it
        is; for a kernel given by name it is that of `significant_modes`. With a kernel other than
        the Gaussian, `seeds`, `bin_seeding` or `blurring`, only the bandwidth (that of the same
        standard deviation) and the components are taken from there, and no mode is tested. "stable"
        is the middle of the range of bandwidths over which the number of modes stays the same
        (`scale_space`). The others are rules for densities, see `density_scale`.
    seeds : array_like of shape (m, d), optional
        Starting points, instead of every row (scikit-learn's name; `start` elsewhere in mercer).
    scale_columns : {"auto", "none", "std"}
        "std" chooses the bandwidth and components in units of the columns' standard deviations:
        `kernel_` is then a kernel of the scaled columns. "none" takes columns as they are. "auto"
        is "none" if the columns seem to have the same unit, and "std" otherwise, because clusters
        should not depend on units. A kernel or a bandwidth that you give is in the units of the
        data; "std" together with one is refused.
    bin_seeding : bool, default=False
        Start from the centres of the cells of a grid of width h that hold at least `min_bin_freq`
        rows.
    min_bin_freq : int, default=1
    labels : {"basin", "nearest"}
        "basin" is the mode that a row climbs to (-1 if it is not among those found); with the
        default bandwidth rows climb from neighbour to neighbour, and a new row gets the label of
        the nearest fitted one. "nearest" is the mode nearest in the metric of the kernel, as in
        scikit-learn.
    min_cluster_size : int, default=1
        Smaller clusters are dropped; their rows get the label -1.
    blurring : bool, default=False
        Move the rows themselves (`blurring_mean_shift`). Centres are where they meet, and `predict`
        takes the nearest.
    tol : float, default=1e-6
        An ascent ends when its steps are shorter than this many length scales.
    max_iter : int, default=1000
    n_jobs : int or None
        Threads; None is all cores, unlike in scikit-learn.
    verbose : bool or int, default=False
        Show a progress bar on stderr.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        The modes; the largest cluster comes first. On components, the mean of the rows with the
        kernel's weights at the mode.
    labels_ : array of shape (n,)
    significance_ : array of shape (k,) or None
        t of each cluster's mode, infinite for the highest one; None if modes were not tested.
    significant_ : SignificantModes or None
        The test that chose the bandwidth: its `message`, the critical t, and more. None if the
        bandwidth was given, or chosen by another rule.
    components_ : array of shape (q, d) or None
        Rows are clustered in the coordinates `(X - X.mean(axis=0)) @ components_.T`; None if
        these are as many as columns (`kernel_` then measures distances in them), or the
        bandwidth was given.
    modes_ : Modes
        The density and its curvature at each mode, and whether it is proved to be a maximum, in
        the coordinates of the components if there are any. None for `blurring`.
    kernel_ : Kernel
    density_ : Element
        f.
    guarantee_ : ConvergenceBandwidth
        Whether theory guarantees a single mode, to which every ascent converges, and why.
    n_iter_ : int
        The largest number of steps of an ascent.

    See Also
    --------
    significant_modes, mean_shift : the functions behind it.
    scale_space : the number of modes for every bandwidth.

    References
    ----------
    D. Comaniciu and P. Meer, Mean shift: a robust approach toward feature space analysis, 2002.
    S. Pal and P. Vepakomma, Convergence of mean shift algorithms for large bandwidths, 2025.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> model = mc.MeanShift().fit(np.concatenate([rng.normal(m, 1.0, (50, 8)) for m in (0, 4)]))
    >>> model.significant_.message, np.bincount(model.labels_)
    ('2 clusters: each mode has t >= 2.50', array([50, 50]))

    Classical mean shift, with a bandwidth:

    >>> X = [[1.0, 1.0], [2.0, 1.0], [1.0, 0.0], [4.0, 7.0], [3.0, 5.0], [3.0, 6.0]]
    >>> model = mc.MeanShift(bandwidth=1.0).fit(X)
    >>> model.labels_, model.predict([[0.0, 0.0], [5.0, 5.0]])
    (array([0, 0, 0, 1, 1, 1]), array([0, 1]))
    """

    kernel: Any = "auto"
    _: KW_ONLY
    bandwidth: Any = "auto"
    scale_columns: str = "auto"
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
    _takes_pieces: ClassVar = True
    _summary = summaries.clusters

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MeanShift:
        """Find the modes and the mode of each row.

        Parameters
        ----------
        X : array_like of shape (n, d)
        y : ignored
        sample_weight : array_like of shape (n,), optional
            A weight of 2 is the same as repeating the row. Rows of weight 0 are only labelled.
        """
        one_of(self.labels, ("basin", "nearest"), "labels")
        check_flags(self, "bin_seeding", "blurring")
        positive_int(self.min_bin_freq, "min_bin_freq")
        positive_int(self.min_cluster_size, "min_cluster_size")
        names, X = header(X), check_rows(self, X, reset=True)
        w = check_weights(sample_weight, X)
        self._guarantee: ConvergenceBandwidth | None = None
        if isinstance(X, Chunks):
            with self._fitting(X):
                fit_in_pieces(self, X, w)
            return self
        Z = np.asarray(X, dtype=np.float64)
        self.significant_: SignificantModes | None = None
        self.significance_: Array | None = None
        self.components_: Array | None = None
        with self._fitting(X):
            self._choose_kernel(Points(as_points(Z), Vectors(), names), w)
            U = self._seen(Z)
            if self.blurring:
                modes, labels = self._blurred(U, w)
            elif self.significance_ is not None:
                modes, labels = self._significant(U)
            else:
                modes, labels = self._climbed(U)
            mass = np.ones(len(Z)) if w is None else w
            labels, keep = without_small(labels, modes, mass, self.min_cluster_size)
            self._modes = modes[keep]
            centres = self._modes if self.components_ is None else self._lifted(Z, U, mass)
        if self.significance_ is not None:
            self.significance_ = self.significance_[keep]
        self.cluster_centers_ = centres.astype(float_type(X))
        self.labels_ = labels
        return self

    @property
    def guarantee_(self) -> ConvergenceBandwidth:
        """Whether theory guarantees a single mode, and why; computed when first read."""
        check_is_fitted(self)
        if self._guarantee is None:
            psi = self._density
            used = psi.points[weights_of(psi) > 0.0]
            self._guarantee = convergence_bandwidth(psi.kernel, used)
        return self._guarantee

    @by_pieces(dtype=np.intp)
    def predict(self, X: Any) -> Any:
        """Return the number of the cluster of each row, -1 for none of them.

        Parameters
        ----------
        X : array_like of shape (m, d)
        """
        check_is_fitted(self)
        U = self._seen(np.asarray(check_rows(self, X, reset=False), dtype=np.float64))
        with self._running():
            if self.blurring or self.labels == "nearest":
                return self._nearest(U, self._modes)
            if self.significance_ is not None:
                forth = DensitySum.of(self._density).forth
                return self.labels_[nearest(forth(self._density.points), forth(U))[1]]
            return assign_to_modes(
                self._density, self._modes, U, tol=self.tol, max_iter=self.max_iter
            )

    def _predict_in_pieces(self, X: Chunks) -> Any:
        in_pieces = isinstance(self.density_.points, Chunks)
        return self._nearest(X, self._modes).collected() if in_pieces else None

    # --- helpers ------------------------------------------------------------------------------

    def _choose_kernel(self, rows: Points, w: Array | None) -> None:
        """Set the kernel, the components, and the density of rows in the units of the data."""
        Z, points = rows.array, rows
        given = not isinstance(self.bandwidth, str) or (
            is_auto(self.bandwidth) and isinstance(self.kernel, Kernel)
        )
        scaler = fit_column_scaler(self.scale_columns, Z, w, in_data_units=given)
        if scaler is not None:
            points = Points(scaler.transform(Z), rows.domain)
        scales = np.ones(Z.shape[1]) if scaler is None else scaler.scale_
        bandwidth, axes = self.bandwidth, None
        if is_auto(bandwidth) and not given:
            found = significant_modes(points, weights=w)
            if scaler is not None:
                found = replace(found, points=scaler.inverse_transform(found.points))
            self.significant_ = found
            axes = found.components / scales
            points = points[:, : len(axes)]  # only their number counts below
            unit = density_kernel(self.kernel, 1.0, points, w, for_mean_shift=True)
            bandwidth = found.bandwidth
            if not isinstance(unit, Gaussian):
                bandwidth /= kernel_deviation(unit, points.shape[1])
            elif self.seeds is None and not self.bin_seeding and not self.blurring:
                self.significance_ = found.significance
        kernel = density_kernel(self.kernel, bandwidth, points, w, for_mean_shift=True)
        self._origin = Z.mean(axis=0)
        if axes is None:
            self.kernel_ = kernel if scaler is None else kernel.transform(Scales(scales))
        else:
            self.kernel_ = kernel.transform(Matrix(axes))
        checked = Points(Z, self.kernel_.domain, rows.header)
        self.density_ = self._density = mean_embedding(self.kernel_, checked, weights=w)
        if axes is not None and len(axes) < Z.shape[1]:
            self.components_ = axes
            self._density = mean_embedding(kernel, self._seen(Z), weights=w)

    def _seen(self, Z: Array) -> Array:
        """Rows in the coordinates in which they are clustered."""
        return Z if self.components_ is None else (Z - self._origin) @ self.components_.T

    def _lifted(self, Z: Array, U: Array, mass: Array) -> Array:
        """The mean of the data with the weights of the kernel at each mode, shape (k, d).

        The mean need not project onto the mode; it is moved along the components so that it does.
        """
        assert self.components_ is not None
        back = np.linalg.pinv(self.components_).T
        centres = np.empty((len(self._modes), Z.shape[1]))
        for j, mode in enumerate(self._modes):
            weight = mass * self._density.kernel(mode[None], U)[0]
            weight /= weight.sum()
            centres[j] = self._origin + weight @ (Z - self._origin) + (mode - weight @ U) @ back
        return centres

    def _significant(self, U: Array) -> tuple[Array, Array]:
        """The modes above the highest rows of clusters, and the labels of rows.

        On a plateau an ascent may take too long; the highest row itself is then the mode.
        """
        assert self.significant_ is not None
        starts = self._seen(self.significant_.points)
        found = self._ascent(Points(starts, Vectors()))
        late = found.labels < 0
        number = found.labels.copy()
        number[late] = len(found) + np.arange(late.sum())
        modes = np.concatenate([found.points, starts[late]])
        self.significance_ = np.zeros(len(modes))
        np.maximum.at(self.significance_, number, self.significant_.significance)  # two may meet
        if self.labels == "nearest":
            return modes, self._nearest(U, modes)
        return modes, number[self.significant_.labels]

    def _nearest(self, Z: Any, centres: Array) -> Any:
        """The number of the centre nearest in the metric of the kernel, -1 without centres."""
        target = DensitySum.of(self._density)
        if isinstance(Z, Chunks):
            return Z.mapped(nearest_of_piece, target.maps, target.forth(centres), dtype=np.intp)
        return nearest(target.forth(centres), target.forth(Z))[1]

    def _climbed(self, U: Array) -> tuple[Array, Array]:
        starts = self._starts(U)
        found = self._ascent(self._density.support if starts is None else starts)
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
            return found.points, self._nearest(U, found.points)
        if starts is None:
            return found.points, found.labels
        return found.points, assign_to_modes(
            self._density, found.points, U, tol=self.tol, max_iter=self.max_iter
        )

    def _ascent(self, starts: Any) -> Modes:
        found = mean_shift(self._density, starts, tol=self.tol, max_iter=self.max_iter)
        self.modes_: Modes | None = found
        self.n_iter_ = int(found.n_iter.max(initial=0))
        return found

    def _blurred(self, Z: Array, w: Array | None) -> tuple[Array, Array]:
        found = blurring_mean_shift(
            self._density.kernel, Z, weights=w, tol=self.tol, max_iter=self.max_iter
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
            seeds = as_dense_points(self.seeds, "seeds")
            check_same_columns(self.density_.points, seeds, ("X", "seeds"))
            return self._seen(seeds)
        if not self.bin_seeding:
            return None
        target = DensitySum.of(self._density)
        width = getattr(self._density.kernel, "length_scale", None) or target.length
        cells, group = unique(np.round(target.forth(Z) / width) + 0.0)
        middles = target.back(cells[np.bincount(group) >= self.min_bin_freq] * width)
        return middles if len(middles) else Z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
