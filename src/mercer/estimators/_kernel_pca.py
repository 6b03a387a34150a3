"""Kernel PCA as a scikit-learn estimator, with a way back."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer._array import Array, as_points
from mercer.engine import n_rows as len_of
from mercer.engine import pieces
from mercer.estimators._base import KernelEstimator
from mercer.estimators._inputs import dtype_of, row_weights, validated
from mercer.estimators._kernel_parameter import resolve_kernel, set_kernel_tags
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Kernel, Precomputed
from mercer.methods import Denoiser, Filter, Readout, Truncation, held_out_risk, kernel_pca
from mercer.methods.denoising._fit_denoiser import check_choices, trusted, untrusted_denoiser
from mercer.methods.pca._landmark_pca import LandmarkScatter
from mercer.space import Subspace, feature

_MANY = 10_000  # rows whose components are all computed; more take landmarks
_LANDMARKS = 1_000
_BLOCK = 4096


def _has_landmarks(model: Any) -> bool:
    """Whether rows can be added later: their sums are kept in the span of landmarks."""
    if model.n_landmarks is None:
        raise AttributeError("partial_fit needs landmarks: give n_landmarks")
    return True


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):  # type: ignore[misc]
    """Kernel principal component analysis that finds its way back.

    Fits the affine subspace mu + span(f_1, ..., f_r) of the kernel's Hilbert space that is nearest
    to the features of the rows (`kernel_pca`). `transform` gives coordinates in it,
    c_l = <k(x, .) - mu, f_l>; `inverse_transform` the data point of mu + sum_l w_l c_l f_l, with
    weights w_l of a spectral filter; `denoise` takes rows there and back and keeps as much of the
    change as is worth it; `score_samples` is minus the squared distance to the subspace.

    Parameters
    ----------
    n_components : int, float or None
        A number of components; a share in (0, 1) of the scatter; or None for all that are not
        rounding (beyond 10,000 rows: all that 1,000 landmarks give).
    kernel : Kernel, str or "auto"
        "auto" is a Gaussian whose squared length scale is half the median squared distance between
        different rows. "precomputed" takes Gram matrices in place of rows. Strings as in
        scikit-learn ("rbf", "poly", ...) are accepted.
    gamma : float, optional
        For kernels that are given as strings.
    filter : Filter or None
        What becomes of weak components on the way back: `Truncation()` keeps all that there are,
        `Tikhonov(a)` weighs by lambda / (lambda + a), `Landweber(t)` likewise. None is
        `Truncation` where n_components is given and `Tikhonov` where it is not.
    noise : float or "auto"
        The standard deviation of the noise in the rows, which sets the strength of filters that
        were given none, and the trust. "auto" estimates it from the training rows
        (`noise_level`): fit to rows like those to be denoised, or say how noisy those are.
    trust : float or "auto"
        `denoise` returns y + trust (D(y) - y). "auto" takes the share that minimises Stein's
        estimate of the squared error, each row left out in turn: near 1 where noise is strong, near
        0 where denoising would do more harm than good.
    inverse : Solver, LearnedMap or None
        The way back: None is a linear regression on coordinates; a solver (`FixedPoint()`,
        `Newton()`, `ClosedForm()`, ...) finds pre-images; a `LearnedMap` is fitted to the training
        rows.
    n_landmarks : int, optional
        Work in the span of the features of so many landmarks: n x n_landmarks numbers, any n.
        Needed for `partial_fit`.
    rule : {"uniform", "kmeans", "leverage", "pivoted"}
        How landmarks are chosen.
    eigen_solver : {None, "dense", "krylov"}
        None chooses by size; see `mercer.linalg.eigenpairs`.
    whiten : bool, default=False
        Divide coordinates by their standard deviations over the training rows.
    tol, max_iter
        For `krylov`.
    random_state : int, Generator, RandomState or None
        For landmarks, and the start of `krylov`.
    n_jobs : int or None
        Threads; None is all cores, unlike in scikit-learn.

    Attributes
    ----------
    kernel_ : Kernel
    subspace_ : Subspace
    eigenvalues_ : array of shape (r,)
        Of the centred Gram matrix, not divided by n.
    explained_variance_ratio_ : array of shape (r,)
    noise_ : float or None
        The standard deviation of the noise that was given or estimated; None where none was needed.
    denoiser_ : Denoiser
        With the filter's `weights`, the `way_back` and the `trust`. The trust is found when it is
        first asked for, by `denoise` for example.
    mass_ : float
        The number of rows, or the sum of their weights.
    neglected_ : float
        The share of the scatter that landmarks could not see.

    See Also
    --------
    kernel_pca : the function behind it.
    KernelNovelty : an outlier detector on the distance to the subspace.

    References
    ----------
    SPEC H1-H4, D13; ERRATA 001-4, 003-4.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0.0, 2.0 * np.pi, 300)
    >>> circle = np.column_stack([np.cos(t), np.sin(t)])
    >>> noisy = circle + 0.2 * rng.normal(size=circle.shape)
    >>> model = mc.KernelPCA(noise=0.2).fit(noisy)
    >>> error = lambda X: float(np.mean((X - circle) ** 2))
    >>> error(model.denoise(noisy)) < 0.8 * error(noisy)
    True
    """

    def __init__(
        self,
        n_components: Any = None,
        *,
        kernel: Any = "auto",
        gamma: float | None = None,
        filter: Filter | None = None,  # noqa: A002
        noise: Any = "auto",
        trust: Any = "auto",
        inverse: Any = None,
        n_landmarks: int | None = None,
        rule: str = "uniform",
        eigen_solver: str | None = None,
        whiten: bool = False,
        tol: float = 1e-8,
        max_iter: int = 200,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.filter = filter
        self.noise = noise
        self.trust = trust
        self.inverse = inverse
        self.n_landmarks = n_landmarks
        self.rule = rule
        self.eigen_solver = eigen_solver
        self.whiten = whiten
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    # --- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Find the principal subspace of the rows of X.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n, d); a Gram matrix for "precomputed"
        y : ignored
        sample_weight : array_like of shape (n,), optional
            A weight of 2 is a row that stands twice, a weight of 0 one that is not there.
        """
        X = validated(self, X, reset=True)
        weights = row_weights(sample_weight, X)
        self.__dict__.pop("_sums", None)  # of an earlier fit
        with self._options():
            self.kernel_ = self._kernel_for(X, weights)
            points = self._points(X)
            landmarks = self.n_landmarks
            if landmarks is None and self.n_components is None and len_of(X) > _MANY:
                landmarks = _LANDMARKS
            if landmarks is None:
                plane = kernel_pca(
                    self.kernel_, points, self.n_components, weights=weights,
                    method=self.eigen_solver, tol=self.tol, max_iter=self.max_iter,
                    random_state=self.random_state,
                )  # fmt: skip
                self._settle(plane, points, weights, None)
            else:
                self._sums = LandmarkScatter.choose(
                    self.kernel_, points, landmarks, self.rule, self.random_state, weights
                )
                self._add(points, weights)
        return self

    @available_if(_has_landmarks)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Add rows to what was fitted; needs `n_landmarks`, chosen among the first rows.

        The kernel and the landmarks are those of the first call. Sums over all rows are kept, so
        that the subspace is that of all of them at once, in the span of the landmarks.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n, d)
        y : ignored
        sample_weight : array_like of shape (n,), optional
        """
        if not hasattr(self, "_sums"):
            return self.fit(X, y, sample_weight)
        X = validated(self, X, reset=False)
        with self._options():
            self._add(X, row_weights(sample_weight, X))
        return self

    def _add(self, X: Any, weights: Array | None) -> None:
        self._sums.add(X, weights)
        plane, vectors = self._sums.plane(self.n_components)
        vector = self.kernel_.domain.is_vector
        self._settle(plane, X, weights, self._sums.readout(plane, vectors) if vector else None)

    def _settle(
        self, plane: Subspace, X: Any, weights: Array | None, readout: Readout | None
    ) -> None:
        """Everything that follows from the subspace."""
        assert plane.eigenvalues is not None
        assert plane.total is not None
        self.subspace_ = plane
        self.eigenvalues_ = plane.eigenvalues
        self.explained_variance_ratio_ = plane.eigenvalues / plane.total
        self.neglected_ = plane.neglected / plane.total
        mass = float(len_of(X)) if weights is None else float(weights.sum())
        self.mass_ = self._sums.mass if hasattr(self, "_sums") else mass
        check_choices(self.noise, self.trust)
        self._denoiser, self._noise = untrusted_denoiser(
            plane, X, weights=weights, mass=self.mass_, filter=self._filter(), noise=self.noise,
            inverse=self.inverse if self.inverse is not None else readout,
        )  # fmt: skip
        self._weights, self._trusted = weights, False
        if hasattr(self, "_sums"):  # the rows are not kept, so this cannot wait
            self._choose_trust(X)

    def _choose_trust(self, X: Any) -> None:
        """The noise and the trust, which take a while, and which `transform` can do without."""
        with self._options():
            self._denoiser, self._noise = trusted(
                self._denoiser, X, weights=self._weights, noise=self.noise, sigma=self._noise,
                trust=self.trust, mass=self.mass_,
            )  # fmt: skip
        self._trusted, self._weights = True, None

    @property
    def denoiser_(self) -> Denoiser:
        """With the filter's `weights`, the `way_back` and the `trust`."""
        check_is_fitted(self)
        if not self._trusted:
            self._choose_trust(self.subspace_.origin.points)
        return self._denoiser

    @property
    def noise_(self) -> float | None:
        """The standard deviation of the noise that was given or estimated."""
        self.denoiser_  # noqa: B018
        return self._noise

    def _filter(self) -> Filter | None:
        """What a number of components asks for is the projection; else let the noise decide."""
        return (
            Truncation() if self.filter is None and self.n_components is not None else self.filter
        )

    # --- using --------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """Return the coordinates of the rows in the subspace, shape (m, r).

        Parameters
        ----------
        X : array_like or CSR matrix of shape (m, d); k(rows, training rows) for "precomputed"
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        with self._options():
            c = self._coordinates(X)
        if self.whiten:
            c = c / self._spread()
        return c.astype(dtype_of(X), copy=False)

    def inverse_transform(self, X: Any) -> Any:
        """Return the data points of coordinates: pre-images of mu + sum_l w_l c_l f_l.

        Parameters
        ----------
        X : array_like of shape (m, r)

        Returns
        -------
        array of shape (m, d)
            For kernels whose points are not vectors: training points, and their row numbers for
            "precomputed".
        """
        check_is_fitted(self)
        c = as_points(X, "X").astype(np.float64)
        if c.shape[1] != self.subspace_.dim:
            raise InputError(f"X must have {self.subspace_.dim} columns, got {c.shape[1]}")
        c = c * self._spread() if self.whiten else c
        with self._options():
            found = self._denoiser.reconstruct(c * self._denoiser.weights)
        return found.astype(np.float32) if dtype_of(X) == np.float32 else found

    def denoise(self, X: Any) -> Any:
        """Return the rows with noise taken out: y + trust (D(y) - y).

        D(y) is `inverse_transform(transform(y))`, with iterative solvers started at y.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (m, d)

        Returns
        -------
        array of shape (m, d)
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        if not self.kernel_.domain.is_vector:
            return self.inverse_transform(self._coordinates(X))
        if self.noise_ == 0.0 and self.denoiser_.trust == 0.0 and self.noise == "auto":
            warnings.warn(
                "no noise was found in the training rows, so nothing is changed; say how noisy the "
                "rows to be denoised are, KernelPCA(noise=...)",
                MercerWarning,
                stacklevel=2,
            )
        with self._options():
            return self.denoiser_(X)

    def score_samples(self, X: Any) -> Array:
        """Return minus the squared distance of each row's feature to the subspace, shape (m,)."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        if isinstance(self.kernel_, Precomputed):
            raise InputError(
                "score_samples needs k(x, x), which k(rows, training rows) does not hold; give a "
                "kernel instead of 'precomputed'"
            )
        with self._options():
            plane = self.subspace_
            squared = [
                plane.distance(feature(self.kernel_, X[rows])) ** 2
                for rows in pieces(len_of(X), _BLOCK)
            ]
        return -np.concatenate(squared)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared error of denoising, for model selection.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Noisy rows.
        y : array_like of shape (m, d), optional
            The same rows without noise. Without them (or with labels, which are ignored), the error
            is Stein's estimate at the level `noise_`: give a number as `noise` where estimators
            that are compared should agree on it.
        """
        check_is_fitted(self)
        if y is not None and np.shape(y) == np.shape(X):
            return -float(np.mean((np.asarray(self.denoise(X)) - np.asarray(y)) ** 2))
        X = validated(self, X, reset=False)
        if self.noise_ is None:
            return float(np.mean(self.score_samples(X)))
        with self._options():
            risk = held_out_risk(self.denoiser_, X, self.noise_)
        return -risk.at(self.denoiser_.trust)

    # --- helpers ------------------------------------------------------------------------------

    def _coordinates(self, X: Any) -> Array:
        plane = self.subspace_
        if isinstance(self.kernel_, Precomputed):
            f = plane.directions.coef.tile(slice(None), slice(None))
            return np.asarray(X @ f - plane.directions.inner(plane.origin), dtype=np.float64)
        return np.asarray(plane.coordinates(feature(self.kernel_, X)), dtype=np.float64)

    def _spread(self) -> Array:
        return np.sqrt(self.eigenvalues_ / self.mass_)

    def _kernel_for(self, X: Any, weights: Array | None) -> Kernel:
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            if self.gamma is not None:
                raise InputError("gamma is for kernels given as strings; leave it out")
            return Precomputed(X)
        return resolve_kernel(self.kernel, X, sample_weight=weights, gamma=self.gamma)

    def _points(self, X: Any) -> Any:
        return np.arange(len_of(X)) if isinstance(self.kernel_, Precomputed) else X

    @property
    def _n_features_out(self) -> int:
        return self.subspace_.dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_kernel_tags(tags, self.kernel)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
