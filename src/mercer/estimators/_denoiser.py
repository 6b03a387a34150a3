"""Denoising with kernel PCA as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from mercer._array import Array, Points, as_numbers, is_sparse
from mercer._chunks import Chunks, sampled
from mercer.estimators import _summaries as summaries
from mercer.estimators._base import FloatTransformerMixin, SubspaceEstimator
from mercer.estimators._kernel_parameter import is_auto
from mercer.estimators._kernel_pca import KernelPCA
from mercer.estimators._validation import (
    by_pieces,
    check_rows,
    check_weights,
    fit_moments,
    float_type,
    scaled,
    unscaled,
)
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Kernel
from mercer.methods import Denoiser, Filter, Truncation, fit_denoiser
from mercer.methods.denoising._denoiser import held_out_risk
from mercer.methods.denoising._noise import noise_level

_ROUNDING = 1e-9  # of the share of rows in a sample


@dataclass(eq=False, repr=False, kw_only=True)
class KernelDenoiser(OneToOneFeatureMixin, FloatTransformerMixin, SubspaceEstimator):  # type: ignore[misc]
    """Remove noise from rows with kernel principal components.

    `fit` finds the principal subspace of the noisy rows, the level of their noise, and how much a
    change can be trusted. `transform` returns y + trust (D(y) - y): D projects the feature of y on
    the subspace, shrinks its coordinates by a spectral filter, and maps back to the data. Rows that
    were fitted are denoised as if they had been left out, so `fit_transform` and `transform` agree.
    The function behind it is `mercer.methods.fit_denoiser`.

    Parameters
    ----------
    n_components : int, float or None
        As in `KernelPCA`. None keeps all components, and lets the filter shrink the weak ones.
    kernel : Kernel, str or "auto"
        As in `KernelPCA`, on vectors. "auto" is the linear kernel if its estimated error is smaller
        than that of the automatic Gaussian kernel.
    gamma, scale_columns, inverse, n_landmarks, rule, random_state, n_jobs, verbose
        As in `KernelPCA`.
    filter : Filter or None
        How much of each component is kept: `Tikhonov(a)` multiplies it by lambda / (lambda + a),
        `Landweber(t)` similarly, `Truncation()` keeps all components unchanged. None is
        `Truncation` if `n_components` is given and `Tikhonov` otherwise.
    noise : float or "auto"
        The standard deviation of the noise in the rows. It sets the trust, and the strength of a
        filter without one. With `scale_columns="std"` it is in units of the columns'
        standard deviations. "auto" estimates it if the training rows allow that (`noise_level`):
        images, or many columns that a few factors explain. Otherwise, as in most tables, nothing is
        changed, and a warning asks for the noise. Fit to rows that are as noisy as those to be
        denoised, or give the noise.
    trust : float or "auto"
        The share in [0, 1] of the change that is kept. "auto" minimises Stein's estimate of the
        squared error, each row left out in turn: near 1 if noise is strong, near 0 if denoising
        would do more harm than good.

    Attributes
    ----------
    pca_ : KernelPCA
        The fitted subspace, with `kernel_`, `eigenvalues_` and so on.
    denoiser_ : mercer.methods.Denoiser
        The fitted map, on scaled columns if columns are scaled; its `weights` are the filter's.
    kernel_ : Kernel
    noise_, noise_error_ : float
        The noise that was given or estimated, and its standard error: 0 if it was given, infinity
        if it could not be estimated.
    trust_ : float
        The trust that was given or chosen.
    risk_ : float
        The estimated mean squared error per entry (Stein), in the units of the noise squared.

    References
    ----------
    S. Mika and others, Kernel PCA and de-noising in feature spaces, 1999. P. Honeine and
    C. Richard, A closed-form solution for the pre-image problem in kernel-based machines, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0.0, 2.0 * np.pi, 300)
    >>> circle = np.column_stack([np.cos(t), np.sin(t)])
    >>> noisy = circle + 0.2 * rng.normal(size=circle.shape)
    >>> denoised = mc.KernelDenoiser(noise=0.2).fit_transform(noisy)
    >>> error = lambda X: float(np.mean((X - circle) ** 2))
    >>> error(denoised) < 0.8 * error(noisy)
    True
    """

    n_components: Any = field(default=None, kw_only=False)
    filter: Filter | None = None
    noise: Any = "auto"
    trust: Any = "auto"
    inverse: Any = None
    _takes_pieces: ClassVar = True
    _summary = summaries.denoiser

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDenoiser:
        """Find the principal subspace of the rows of X, their noise, and the trust.

        With `sample_weight`, a weight of 2 is the same as repeating the row; y is ignored.
        """
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        if precomputed or (isinstance(self.kernel, Kernel) and not self.kernel.domain.is_vector):
            raise InputError(
                f"kernel={self.kernel!r}: only vectors have noise to take out; KernelPCA has an "
                "inverse_transform for other points"
            )
        X = check_rows(self, X, reset=True)
        weights = check_weights(sample_weight, X)
        some = (X, weights)  # rows from which the noise and the trust are estimated
        if isinstance(X, Chunks):
            some = sampled(X, weights)
        shared = KernelPCA().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        with self._fitting(X):
            pca = KernelPCA(**{name: getattr(self, name) for name in shared})
            fitted = self._denoiser(pca.fit(X, sample_weight=weights), *some)
            if is_auto(self.kernel) and fitted.noise > 0.0 and not is_sparse(X):
                # if few factors explain everything, the linear kernel does better
                linear = clone(pca).set_params(kernel="linear", scale_columns="none")
                scaler = StandardScaler(with_std=self.scale_columns == "std")
                fit_moments(scaler, X, weights)
                linear.fit(scaled(scaler, X), sample_weight=weights)
                linear.scaler_ = scaler  # centred: far from the origin, inner products lose digits
                other = self._denoiser(linear, *some)
                if other.risk < fitted.risk:
                    pca, fitted = linear, other
        self.pca_, self.denoiser_ = pca, fitted
        self.kernel_, self.scaler_ = pca.kernel_, pca.scaler_
        self.noise_, self.noise_error_ = fitted.noise, fitted.noise_error
        self.trust_, self.risk_ = fitted.trust, fitted.risk
        if self.noise_ == 0.0 and self.trust_ == 0.0 and is_auto(self.noise):
            warnings.warn(
                "the training rows do not tell how noisy they are, so nothing will be changed; "
                "give the standard deviation of the noise, KernelDenoiser(noise=...)",
                MercerWarning,
                stacklevel=2,
            )
        return self

    def _denoiser(self, pca: KernelPCA, X: Any, weights: Array | None) -> Denoiser:
        shrink = self.filter
        if shrink is None and self.n_components is not None:
            shrink = Truncation()
        rows = Points(scaled(pca.scaler_, X), pca.kernel_.domain)
        noise = self.noise
        share = pca.mass_ / (len(rows) if weights is None else float(np.sum(weights)))
        if share > 1.0 + _ROUNDING:  # a sample; its own size decides if noise can be estimated
            noise = noise_level(rows, weights=weights) if is_auto(noise) else noise
            weights = share * (np.ones(len(rows)) if weights is None else weights)
        return fit_denoiser(
            pca.subspace_, rows, weights=weights, filter=shrink, noise=noise,
            trust=self.trust, inverse=pca.inverse_,
        )  # fmt: skip

    @by_pieces(lambda self: (self.n_features_in_,))
    def transform(self, X: Any) -> Array:
        """Return the rows of X with the noise removed, y + trust (D(y) - y), shape (m, d)."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        if self.trust_ == 0.0:  # unchanged to the last bit; scaling would round
            return np.array(X.toarray() if is_sparse(X) else X)
        with self._running():
            found = self.denoiser_(scaled(self.scaler_, X))
        return np.asarray(unscaled(self.scaler_, found), dtype=float_type(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared error of denoising, for model selection.

        y are the rows of X without noise. Without them (or with labels, which are ignored), the
        error is Stein's estimate for the noise `noise_`: set `noise` to a number if you compare
        estimators, so that all use the same one.
        """
        X = self._new_rows(X)
        with self._running():
            if y is not None and np.shape(y) == np.shape(X):
                clean = scaled(self.scaler_, as_numbers(y, "y"))
                return -float(np.mean((self.denoiser_(X) - clean) ** 2))
            return -held_out_risk(self.denoiser_, X).at(self.trust_)
