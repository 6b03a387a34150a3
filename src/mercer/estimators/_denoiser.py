"""Denoising with kernel PCA as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from mercer._array import Array, Points, is_sparse, unmasked
from mercer.estimators._base import FloatTransformerMixin, SubspaceEstimator
from mercer.estimators._kernel_parameter import is_auto
from mercer.estimators._kernel_pca import KernelPCA
from mercer.estimators._validation import check_rows, check_weights, float_type, scaled, unscaled
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Kernel
from mercer.methods import Filter, Truncation, fit_denoiser
from mercer.methods.denoising._denoiser import held_out_risk


@dataclass(eq=False, repr=False, kw_only=True)
class KernelDenoiser(OneToOneFeatureMixin, FloatTransformerMixin, SubspaceEstimator):  # type: ignore[misc]
    """Remove noise from rows with kernel principal components.

    `fit` finds the principal subspace of the noisy rows, the level of their noise, and how much a
    change can be trusted. `transform` returns y + trust (D(y) - y): D projects the feature of y on
    the subspace, shrinks its coordinates by a spectral filter, and goes back to the data. The
    function behind it is `mercer.methods.fit_denoiser`.

    Parameters
    ----------
    n_components : int, float or None
        As in `KernelPCA`. None keeps all components, and lets the filter shrink the weak ones.
    kernel, gamma, scale_columns, inverse, n_landmarks, rule, random_state, n_jobs
        As in `KernelPCA`, except that rows must be vectors.
    filter : Filter or None
        How much of each component is kept: `Tikhonov(a)` weighs by lambda / (lambda + a),
        `Landweber(t)` similarly, `Truncation()` keeps all components unchanged. None is
        `Truncation` if `n_components` is given and `Tikhonov` otherwise.
    noise : float or "auto"
        The standard deviation of the noise in the rows. It sets the strength of filters that were
        given none, and the trust. With `scale_columns="std"` it is in units of the columns'
        standard deviations. "auto" estimates it from the training rows (`noise_level`): fit to rows
        that are as noisy as those to be denoised, or give the noise.
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
    noise_ : float
        The noise that was given or estimated.
    trust_ : float
        The trust that was given or chosen.

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
        shared = KernelPCA().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        with self._threads():
            pca = KernelPCA(**{name: getattr(self, name) for name in shared})
            pca.fit(X, sample_weight=weights)
            shrink = self.filter
            if shrink is None and self.n_components is not None:
                shrink = Truncation()
            rows = Points(scaled(pca.scaler_, X), pca.kernel_.domain)
            fitted = fit_denoiser(
                pca.subspace_, rows, weights=weights, filter=shrink, noise=self.noise,
                trust=self.trust, inverse=pca.inverse_,
            )  # fmt: skip
        self.pca_, self.denoiser_ = pca, fitted
        self.kernel_, self.scaler_ = pca.kernel_, pca.scaler_
        self.noise_, self.trust_ = fitted.noise, fitted.trust
        if self.noise_ == 0.0 and self.trust_ == 0.0 and is_auto(self.noise):
            warnings.warn(
                "no noise was found in the training rows, so nothing will be changed; say how "
                "noisy the rows to be denoised are, KernelDenoiser(noise=...)",
                MercerWarning,
                stacklevel=2,
            )
        return self

    def transform(self, X: Any) -> Array:
        """Return the rows of X with noise taken out, y + trust (D(y) - y), shape (m, d)."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        if self.trust_ == 0.0:  # unchanged to the last bit; scaling would round
            return np.array(X.toarray() if is_sparse(X) else X)
        with self._threads():
            found = self.denoiser_(scaled(self.scaler_, X))
        return np.asarray(unscaled(self.scaler_, found), dtype=float_type(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared error of denoising, for model selection.

        y are the rows of X without noise. Without them (or with labels, which are ignored), the
        error is Stein's estimate for the noise `noise_`: give a number as `noise` if estimators
        that are compared should agree on it.
        """
        X = self._new_rows(X)
        with self._threads():
            if y is not None and np.shape(y) == np.shape(X):
                clean = scaled(self.scaler_, np.asarray(unmasked(y, "y"), dtype=np.float64))
                return -float(np.mean((self.denoiser_(X) - clean) ** 2))
            return -held_out_risk(self.denoiser_, X).at(self.trust_)
