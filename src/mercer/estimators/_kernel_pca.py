"""Kernel PCA as a scikit-learn transformer, with an inverse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer._array import Array, as_points
from mercer._chunks import Chunks, as_chunks
from mercer._frames import is_chunked
from mercer._progress import tracked
from mercer.engine import n_rows, pieces
from mercer.estimators import _summaries as summaries
from mercer.estimators._base import FloatTransformerMixin, SubspaceEstimator
from mercer.estimators._validation import (
    by_pieces,
    check_flags,
    check_weights,
    fit_moments,
    float_type,
    framed,
    of_piece,
    scaled,
    unscaled,
)
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, Precomputed
from mercer.methods import kernel_pca
from mercer.methods.pca._kernel_pca import (
    LandmarkScatter,
    check_number,
    fit_inverse,
    reconstruct,
)
from mercer.space import Subspace, feature

_MANY = 10_000  # rows whose Gram matrix fits in memory (800 MB); more rows take landmarks,
_LANDMARKS = 1_000  # at least: the leading eigenvalues of tables to 0.1 %, of images to 2 %
_BLOCK = 4096  # rows whose distances are computed at once


@dataclass(eq=False, repr=False, kw_only=True)
class KernelPCA(ClassNamePrefixFeaturesOutMixin, FloatTransformerMixin, SubspaceEstimator):  # type: ignore[misc]
    """Kernel principal component analysis with an inverse.

    Fits the affine subspace mu + span(f_1, ..., f_r) of the kernel's Hilbert space that is nearest
    to the features of the rows (`kernel_pca`). `transform` returns the coordinates
    c_l = <k(x, .) - mu, f_l>, `inverse_transform` the data point of mu + sum_l c_l f_l, and
    `score_samples` minus the squared distance to the subspace.

    Parameters
    ----------
    n_components : int, float or None
        A number of components; a share in (0, 1) of the scatter; or None for all above rounding.
    kernel : Kernel, str or "auto"
        "auto" is a Gaussian whose squared length scale is half the median squared distance between
        distinct rows. "precomputed" takes Gram matrices instead of rows. Other names: "gaussian"
        ("rbf"), "laplace", "matern", "polynomial" ("poly"), "sigmoid", "chi2", "linear", "cosine".
    gamma : float, optional
        > 0, for named kernels that have one, as in scikit-learn; 1 / d by default ("chi2": 1).
    scale_columns : {"none", "std", "auto"}
        Whether the automatic kernel sees columns as they are (the default, as in other kernel
        PCAs), or divided by their standard deviations; "auto" as in `KernelNovelty`. A kernel that
        is given is in the units of the data.
    inverse : Solver, LearnedMap or None
        How `inverse_transform` finds data points. None is `LinearInverse`, a linear regression on
        coordinates; a solver (`FixedPoint()`, `Newton()`, `ClosedForm()`, ...) finds pre-images; a
        `LearnedMap` is fitted to the training rows.
    n_landmarks : int, optional
        Work in the span of the features of this many landmarks (Nystrom), with n x n_landmarks
        numbers in memory, for any n. Needed for `partial_fit`. By default, more than 10,000 rows
        take 1,000 landmarks, or twice `n_components` if that is more, unless `eigen_solver` is
        given.
    rule : {"leverage", "uniform", "kmeans", "pivoted"}
        How landmarks are chosen, see `mercer.linalg.nystrom`. "leverage" prefers rows that the
        others explain poorly; on tables its eigenvalues are several times as accurate as those of
        "uniform".
    eigen_solver : {None, "dense", "krylov"}
        Without landmarks: None chooses by size, see `mercer.linalg.eigenpairs`.
    whiten : bool, default=False
        Divide coordinates by their standard deviations over the training rows.
    random_state : int, Generator, RandomState or None
        For landmarks, and the start of "krylov".
    n_jobs : int or None
        Threads; None is all cores, unlike in scikit-learn.
    verbose : bool or int, default=False
        Show a progress bar on stderr.

    Attributes
    ----------
    kernel_ : Kernel
        On scaled columns, if columns are scaled.
    subspace_ : Subspace
    eigenvalues_ : array of shape (r,)
        Of the centred Gram matrix, not divided by n.
    eigenvectors_ : array of shape (n, r)
        Of the centred Gram matrix, of length one, so that `fit_transform(X)` is
        `eigenvectors_ * sqrt(eigenvalues_)`, as in scikit-learn. With weights w, of the matrix
        whose entries are multiplied by sqrt(w_i w_j). Not available with landmarks.
    explained_variance_ratio_ : array of shape (r,)
    inverse_ : Solver
        The fitted inverse.
    mass_ : float
        The number of rows, or the sum of their weights.
    neglected_ : float
        The share of the scatter outside the span of the landmarks.
    scaler_ : StandardScaler or None
        Scales columns; None for `scale_columns="none"`.
    variance_ : float
        The unit of `score`: the mean variance of the columns in `fit` or the first `partial_fit`;
        the variance of the features if points are not vectors.

    Notes
    -----
    Rows in pieces (Dask arrays and dataframes) always take landmarks, chosen among a random sample
    of 20,000 rows; `transform`, `inverse_transform` and `score_samples` of such rows are lazy.

    See Also
    --------
    kernel_pca : the function behind it, with references.
    KernelDenoiser : removes noise with it.
    KernelNovelty : detects outliers by the distance to the subspace.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> t = np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False)
    >>> circle = np.column_stack([np.cos(t), np.sin(t)])
    >>> model = mc.KernelPCA(8).fit(circle)
    >>> Z = model.transform(circle)
    >>> Z.shape, bool(np.abs(model.inverse_transform(Z) - circle).max() < 1e-6)
    ((60, 8), True)
    """

    n_components: Any = field(default=None, kw_only=False)
    rule: str = "leverage"
    inverse: Any = None
    eigen_solver: str | None = None
    whiten: bool = False
    _takes_pieces: ClassVar = True
    _hints: ClassVar = {
        "partial_fit": "partial_fit needs landmarks: KernelPCA(n_landmarks=1000)",
        "eigenvectors_": "eigenvectors_ has a row for each training row, which `fit` finds without "
        "landmarks only; with landmarks it is transform(X) / sqrt(eigenvalues_)",
    }
    _summary = summaries.pca

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Find the principal subspace of the rows of X, dense or CSR.

        With `sample_weight`, a weight of 2 is the same as repeating the row; y is ignored.
        """
        check_flags(self, "whiten")
        check_number(self.n_components)
        self.__dict__.pop("_sums", None)  # of an earlier fit
        with self._fitting(X):
            X, weights = self._training_rows(X, sample_weight)
            landmarks = self._landmark_number(n_rows(X), isinstance(X.array, Chunks))
            if landmarks is not None:
                self._sums = LandmarkScatter.choose(
                    self.kernel_, X, landmarks, self.rule, self.random_state, weights
                )
                self._add(X, weights)
            else:
                plane = kernel_pca(
                    self.kernel_, X, self.n_components, weights=weights, method=self.eigen_solver,
                    random_state=self.random_state,
                )  # fmt: skip
                self.mass_ = float(n_rows(X)) if weights is None else float(weights.sum())
                self._set(plane, None, X, weights)
        if self.kernel_.domain.is_vector:
            moments = fit_moments(StandardScaler(with_mean=False), X.array, weights)
            self.variance_ = float(np.mean(moments.var_))
        else:
            self.variance_ = float(self.subspace_.total or 0.0) / self.mass_
        return self

    def _landmark_number(self, n: int, in_pieces: bool) -> int | None:
        """Return the number of landmarks for n rows, or None to work without landmarks."""
        few = n <= _MANY and not in_pieces
        if self.n_landmarks is not None or self.eigen_solver is not None or few:
            return self.n_landmarks
        if self.n_components is None:
            return _LANDMARKS
        if self.kernel_.flags.definiteness is not Definiteness.POSITIVE:
            return None
        return max(_LANDMARKS, 2 * int(self.n_components))

    @available_if(lambda self: self.n_landmarks is not None)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Add rows; needs `n_landmarks`.

        The first call chooses the kernel, the scale of the columns and the landmarks. Sums over all
        rows are kept, so the result is that of all rows at once, in the span of the landmarks.
        """
        if not hasattr(self, "_sums"):
            return self.fit(X, y, sample_weight)
        X = self._new_rows(X)
        with self._running():
            return self._add(X, check_weights(sample_weight, X))

    def _add(self, X: Any, weights: Array | None) -> KernelPCA:
        self._sums.add(X, weights)
        self.mass_ = self._sums.mass
        return self._set(*self._sums.pca(self.n_components), X, weights)

    def _set(self, plane: Subspace, linear: Any, X: Any, weights: Array | None) -> KernelPCA:
        total = float(plane.total or 0.0)
        self.subspace_, self.eigenvalues_ = plane, np.asarray(plane.eigenvalues)
        self.explained_variance_ratio_ = self.eigenvalues_ / total
        self.neglected_ = plane.neglected / total
        inverse = linear if self.inverse is None else self.inverse
        self.inverse_ = fit_inverse(inverse, plane, X, weights)
        return self

    @by_pieces(lambda self: (self.subspace_.dim,))
    def transform(self, X: Any) -> Array:
        """Return the coordinates of the rows of X in the subspace, shape (m, r).

        For "precomputed", X is k(rows, training rows).
        """
        X = self._new_rows(X)
        plane = self.subspace_
        with self._running():
            if isinstance(self.kernel_, Precomputed):
                f = plane.directions.coef.tile(slice(None), slice(None))
                c = np.asarray(X @ f - plane.directions.inner(plane.origin))
            else:
                c = np.asarray(plane.coordinates(feature(self.kernel_, X)))
        if self.whiten:
            c = c / self._spread()
        return c.astype(float_type(X), copy=False)

    def inverse_transform(self, X: Any) -> Any:
        """Return the data points of coordinates X, pre-images of mu + sum_l c_l f_l, shape (m, d).

        For kernels whose points are not vectors, these are training points; for "precomputed",
        their row numbers. `set_output` decides whether they are a frame, as for `transform`, with
        the columns of `fit`.
        """
        return framed(self, self._inverse(X), X)

    def _inverse(self, X: Any) -> Any:
        check_is_fitted(self)
        if is_chunked(X):
            rows, tail = as_chunks(X), (self.subspace_.origin.points.shape[1],)
            how: Any = {"tail": tail, "dtype": float_type(rows)}
            return rows.mapped(of_piece, self, "inverse_transform", **how).collected()
        given = as_points(X, "X")
        c = given.astype(np.float64)
        if c.shape[1] != self.subspace_.dim:
            raise InputError(f"X must have {self.subspace_.dim} columns, got {c.shape[1]}")
        c = c * self._spread() if self.whiten else c
        with self._running():
            found = reconstruct(self.subspace_, self.inverse_, c)
        found = unscaled(self.scaler_, found)
        return found.astype(np.float32) if float_type(given) == np.float32 else found

    @by_pieces(dtype=np.float64)
    def score_samples(self, X: Any) -> Array:
        """Return minus the squared distance of each row's feature to the subspace, shape (m,)."""
        X = self._new_rows(X)
        if isinstance(self.kernel_, Precomputed):
            raise InputError(
                "score_samples needs k(x, x), which k(rows, training rows) does not hold; give a "
                "kernel instead of 'precomputed'"
            )
        with self._running():
            return -squared_distances(self.subspace_, X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the explained variance, 1 - mean squared error / `variance_`.

        The error is that of `inverse_transform(transform(X))`, in the units in which the kernel
        sees columns: 1 is perfect, and 0 is no better than the mean of the training rows. Kernels
        can be compared by it, so `GridSearchCV` can choose a length scale. If points are not
        vectors, the error is the squared distance to the subspace, minus `score_samples`.
        """
        Z = self.transform(X)
        if self.kernel_.domain.is_vector:
            back = scaled(self.scaler_, self._inverse(Z))
            error = np.mean(np.square(back - self._new_rows(X)))
        else:
            error = -np.mean(self.score_samples(X))
        return 1.0 - float(error) / max(self.variance_, np.finfo(np.float64).tiny)

    @property
    def eigenvectors_(self) -> Array:
        """The unit eigenvectors of the centred Gram matrix, shape (n, r)."""
        if hasattr(self, "_sums"):
            raise AttributeError  # `__getattr__` says more
        plane = self.subspace_
        root = np.sqrt(self.mass_ * plane.origin.coef.array)
        coef = plane.directions.coef.array * np.sqrt(self.eigenvalues_)
        return np.asarray(np.divide(coef, root, out=np.zeros_like(coef), where=root > 0.0))

    def _spread(self) -> Array:
        return np.sqrt(self.eigenvalues_ / self.mass_)

    @property
    def _n_features_out(self) -> int:
        return self.subspace_.dim


def squared_distances(plane: Subspace, X: Any) -> Array:
    """Return the squared distances of the features of rows to a subspace, block by block."""
    kernel = plane.origin.kernel
    blocks = tracked(list(pieces(n_rows(X), _BLOCK)), "distances")
    return np.concatenate([plane.distance(feature(kernel, X[rows])) ** 2 for rows in blocks])
