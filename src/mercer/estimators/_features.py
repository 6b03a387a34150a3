"""Nystroem and RandomFeatures: explicit features that approximate a kernel, as transformers."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_array, check_is_fitted

from mercer import linalg
from mercer._array import Array, plain, positive_int, unmasked
from mercer._random import as_generator
from mercer.engine import n_columns, n_rows
from mercer.estimators import _summaries as summaries
from mercer.estimators._base import FloatTransformerMixin, KernelEstimator
from mercer.estimators._inverse_regression import fit_ridge_inverse
from mercer.estimators._kernel_parameter import resolve_kernel, set_kernel_tags
from mercer.estimators._validation import check_rows, float_type, framed
from mercer.exceptions import InputError, MercerWarning, UnavailableError


@dataclass(eq=False, repr=False)
class _KernelFeatures(ClassNamePrefixFeaturesOutMixin, FloatTransformerMixin, KernelEstimator):  # type: ignore[misc]
    """Parameters, `transform` and `inverse_transform` of both transformers."""

    kernel: Any = "auto"
    n_components: int = 100
    _: KW_ONLY
    gamma: float | None = None
    random_state: Any = None
    verbose: bool | int = False
    _summary = summaries.features

    @abstractmethod
    def _features(self, X: Any) -> Array:
        """The features of checked points."""

    def transform(self, X: Any) -> Array:
        """Return the features z(x_i), dense, shape (m, r); float32 for float32 points."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        with self._running():
            return _in_type_of(X, self._features(X))

    def inverse_transform(self, Z: Any) -> Any:
        """Return points for features, x = intercept + B'z, by the ridge regression of `fit`.

        `set_output` decides if they are a frame, as for `transform`, with the columns of `fit`.
        """
        check_is_fitted(self)
        if not self.kernel_.domain.is_vector:
            raise InputError(
                f"points of {self.kernel_!r} are not vectors, so they cannot be regressed on "
                "features; use preimage with Candidates"
            )
        given, Z = Z, plain(unmasked(Z, "Z"), "Z")
        Z = check_array(Z, dtype=[np.float64, np.float32], input_name="Z")
        if Z.shape[1] != self.n_components_:
            raise InputError(
                f"Z has {Z.shape[1]} features, but {type(self).__name__} gives {self.n_components_}"
            )
        out = self.inverse_intercept_ + Z @ self.inverse_coef_
        return framed(self, np.asarray(out, dtype=Z.dtype), given)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_kernel_tags(tags, self.kernel)
        return tags


@dataclass(eq=False, repr=False)
class Nystroem(_KernelFeatures):
    """Nystrom features z(x) with z(x)'z(y) ~ k(x, y), from landmarks among the training points.

    z(x) = T^-1 k(Z, x) with k(Z, Z) = T T': the coordinates of k(x, .) projected on the span of the
    landmarks. The error k(x, x) - |z(x)|^2 is never negative, and zero at landmarks. A linear model
    on these features approximates the kernel model, in O(n r^2) operations and n r numbers.

    `inverse_transform` is linear in the features: ridge regression of the training points on their
    features, with an intercept. For each column of the data the penalty is chosen from 29 values
    between 1e-12 and 1e2 times the largest eigenvalue of the features' scatter matrix, by the
    smallest generalised cross-validation score n RSS / (n - degrees of freedom)^2.

    Parameters
    ----------
    kernel : Kernel or str, default="auto"
        Any positive definite kernel; "auto" and other names as in `KernelPCA`. With a kernel on
        strings `fit` and `transform` take lists of strings, and there is no `inverse_transform`.
    n_components : int, default=100
        The number of landmarks; n if it is larger, with a warning.
    rule : {"uniform", "kmeans", "leverage", "pivoted"}, default="uniform"
        How landmarks are chosen, see `mercer.linalg.nystrom`: uniformly at random, centres of
        k-means (dense vectors only), at random by leverage, greedy pivots.
    gamma, random_state, verbose
        As in `KernelPCA`.

    Attributes
    ----------
    kernel_ : Kernel
    components_ : the landmarks, without those that depend linearly on others, up to rounding
    component_indices_ : array of shape (r,) or None
        Their rows in the training points; None for centres of k-means.
    n_components_ : int
        The number of features r.
    error_ : float
        The share of the trace of the kernel matrix that is neglected; exact.
    map_ : mercer.linalg.Nystrom
        The map, without its features of the training points.
    inverse_coef_, inverse_intercept_ : arrays of shape (r, d) and (d,)
        The inverse, x = intercept + z B.
    inverse_penalty_ : array of shape (d,)
        The ridge penalty of each column.

    See Also
    --------
    RandomFeatures : features that do not depend on the training points.

    References
    ----------
    C. Williams and M. Seeger, Using the Nystrom method to speed up kernel machines, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> nystroem = mc.Nystroem(mc.Gaussian(2.0), 40, rule="pivoted").fit(X)
    >>> Z = nystroem.transform(X)
    >>> Z.shape, bool(np.abs(Z @ Z.T - mc.Gaussian(2.0)(X)).max() < 1e-4), nystroem.error_ < 1e-5
    ((300, 40), True, True)
    >>> bool(np.abs(nystroem.inverse_transform(Z) - X).max() < 0.01)
    True
    """

    rule: str = field(default="uniform", kw_only=True)

    def fit(self, X: Any, y: Any = None) -> Nystroem:
        """Choose landmarks among the rows of X and fit the inverse; y is ignored."""
        X = check_rows(self, X, reset=True)
        with self._fitting(X):
            self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and return the features of the training points, which `fit` computes anyway."""
        X = check_rows(self, X, reset=True)
        with self._fitting(X):
            Z = _in_type_of(X, self._fit(X))
        Z.flags.writeable = True  # it is not shared
        return Z

    def _fit(self, X: Any) -> Array:
        kernel = resolve_kernel(self.kernel, X, gamma=self.gamma)
        if positive_int(self.n_components, "n_components") > n_rows(X):
            warnings.warn(
                f"n_components={self.n_components} is more than the {n_rows(X)} training points; "
                "all of them are landmarks", MercerWarning, stacklevel=3,
            )  # fmt: skip
        low = linalg.nystrom(
            kernel, X, self.n_components, rule=self.rule, random_state=self.random_state
        )
        if low.rank == 0:
            raise InputError(
                "k(x, x) is zero at every landmark, so there are no features; use more landmarks, "
                'rule="pivoted", or another kernel'
            )
        trace = float(kernel.diag(X).sum(dtype=np.float64))
        self.kernel_ = kernel
        self.components_ = low.landmarks
        self.component_indices_ = low.index
        self.n_components_ = low.rank
        self.error_ = low.trace_error / trace if trace > 0.0 else float("nan")
        self.map_ = replace(low, factor=np.empty((0, low.rank)))
        if kernel.domain.is_vector:
            found = fit_ridge_inverse(lambda rows: low.factor[rows], X)
            self.inverse_intercept_, self.inverse_coef_, self.inverse_penalty_ = found
        return low.factor

    def _features(self, X: Any) -> Array:
        return self.map_.map(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse &= not (isinstance(self.rule, str) and self.rule == "kmeans")
        return tags


@dataclass(eq=False, repr=False)
class RandomFeatures(_KernelFeatures):
    """Random Fourier features z(x) with E z(x)'z(y) = k(x, y).

    z(x) = sqrt(k(0) / m) (cos <w_1, x>, ..., cos <w_m, x>, sin <w_1, x>, ..., sin <w_m, x>) with
    w_j drawn from the spectral measure of the kernel. The error falls like m^(-1/2) for any
    training points; `Nystroem` has a smaller error if they lie near a low-dimensional set.
    `inverse_transform` is that of `Nystroem`.

    Parameters
    ----------
    kernel : Kernel or str, default="auto"
        A kernel with a spectral measure, such as `Gaussian`, `Laplace` and `Matern`, and sums,
        products and linear maps of them; or a name of one.
    n_components : int, default=100
        The number of features 2 m; an odd number is increased by one.
    kind : {"orthogonal", "plain"}, default="orthogonal"
        Frequencies in orthogonal blocks (smaller error), or independent ones.
    gamma, random_state, verbose
        As in `KernelPCA`.

    Attributes
    ----------
    n_components_ : int
        The number of features, even.
    error_ : float
        Root mean square of z(x)'z(y) - k(x, y) over 1000 random pairs of training points.
    map_ : mercer.linalg.RandomFeatures
        The map; its `frequencies` are the w_j.
    kernel_, inverse_coef_, inverse_intercept_, inverse_penalty_
        As in `Nystroem`.

    See Also
    --------
    Nystroem : features from landmarks, for every kernel.

    References
    ----------
    A. Rahimi and B. Recht, Random features for large-scale kernel machines, 2007. F. X. Yu and
    others, Orthogonal random features, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> features = mc.RandomFeatures(mc.Laplace(2.0), 1000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, features.error_ < 0.05
    ((300, 1000), True)
    >>> bool(np.abs(features.inverse_transform(Z) - X).max() < 0.1)
    True
    """

    kind: str = field(default="orthogonal", kw_only=True)

    def fit(self, X: Any, y: Any = None) -> RandomFeatures:
        """Draw frequencies, measure the error, and fit the inverse; y is ignored."""
        X = check_rows(self, X, reset=True)
        kernel = resolve_kernel(self.kernel, X, gamma=self.gamma)
        even = 2 * ((positive_int(self.n_components, "n_components") + 1) // 2)
        try:
            kernel.spectral_measure(n_columns(X) if kernel.domain.is_vector else 1)
        except UnavailableError as error:
            cure = "use Nystroem, which takes every positive definite kernel"
            raise UnavailableError(f"{error}; {cure}") from error
        rng = as_generator(self.random_state)
        drawn = linalg.random_features(kernel, n_columns(X), even, kind=self.kind, random_state=rng)
        self.kernel_, self.map_, self.n_components_ = kernel, drawn, drawn.n_features
        with self._fitting(X):
            self.error_ = drawn.error(X, random_state=rng)
            found = fit_ridge_inverse(lambda rows: drawn(X[rows]), X)
        self.inverse_intercept_, self.inverse_coef_, self.inverse_penalty_ = found
        return self

    def _features(self, X: Any) -> Array:
        return self.map_(X)


def _in_type_of(X: Any, Z: Array) -> Array:
    """Features in the precision of the rows."""
    with np.errstate(over="ignore"):
        out = Z.astype(float_type(X), copy=False)
    if out.dtype == np.float32 and not np.isfinite(out).all():
        raise InputError("features are too large for float32; give rows as float64")
    return out
