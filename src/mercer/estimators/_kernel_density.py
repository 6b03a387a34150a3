"""Kernel density estimation as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from mercer._array import Array, Points, as_points, header
from mercer._chunks import Chunks
from mercer.estimators import _summaries as summaries
from mercer.estimators._base import KernelEstimator
from mercer.estimators._kernel_parameter import density_kernel
from mercer.estimators._validation import by_pieces, check_rows, check_weights
from mercer.kernels import Vectors
from mercer.methods import adaptive_density


@dataclass(eq=False, repr=False)
class KernelDensity(DensityMixin, KernelEstimator):  # type: ignore[misc]
    """Kernel density estimate f(x) = sum_i w_i k(x, x_i) / Z, with Z the integral of k.

    Parameters
    ----------
    kernel : Kernel, "auto" or str
        A radial kernel k >= 0 with a finite integral, or a sum of such kernels. "auto" is the
        Gaussian. "gaussian", "epanechnikov", "tophat" and "exponential" are those of scikit-learn.
    bandwidth : float, {"auto", "silverman", "scott", "modes", "likelihood", "stable"}
        A number h > 0 or a rule to choose it (`density_scale`; "stable" is that of `MeanShift`). h
        is the `length_scale` of kernels that have one; other kernels are taken at x / h. "auto" is
        "silverman" if the kernel is given by name, and leaves a kernel object as it is. Rules
        ignore constant columns: on rows that agree there, they change the density by a factor only.
    sensitivity : float
        0 for one length scale. Above 0, kernels are wider where the density is low (see
        `adaptive_density`); 1/2 is the choice of Abramson.
    n_jobs : int or None
        Threads; None is all cores, unlike in scikit-learn.
    verbose : bool or int, default=False
        Show a progress bar on stderr.

    Attributes
    ----------
    kernel_ : Kernel
        With its length scale; for an adaptive density, that of the pilot.
    density_ : Density

    See Also
    --------
    kernel_density, Density : the functions behind it, with derivatives.

    References
    ----------
    B. W. Silverman, Density Estimation for Statistics and Data Analysis, 1986.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> model = mc.KernelDensity().fit(X)
    >>> np.exp(model.score_samples([[0.0], [1.0]])).round(2)
    array([0.36, 0.25])
    >>> model.sample(2, random_state=0).shape
    (2, 1)
    """

    kernel: Any = "auto"
    _: KW_ONLY
    bandwidth: Any = "auto"
    sensitivity: float = 0.0
    n_jobs: int | None = None
    verbose: bool | int = False
    _takes_pieces: ClassVar = True
    _summary = summaries.density

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDensity:
        """Choose the bandwidth and build the density of the rows of X, shape (n, d).

        With `sample_weight`, a weight of 2 is the same as repeating the row; y is ignored.
        """
        names, X = header(X), check_rows(self, X, reset=True)
        w = check_weights(sample_weight, X)
        with self._fitting(X):
            points = Points(X if isinstance(X, Chunks) else as_points(X), Vectors(), names)
            rows = X if isinstance(X, Chunks) else points
            self.kernel_ = density_kernel(self.kernel, self.bandwidth, rows, w)
            self.density_ = adaptive_density(
                self.kernel_, points, weights=w, sensitivity=self.sensitivity
            )
        return self

    @by_pieces(dtype=np.float64)
    def score_samples(self, X: Any) -> Array:
        """Return log f(x_j) for the rows of X, shape (m,); -inf outside the support of a window."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False, double=True)  # logarithms are compared
        with self._running():
            return self.density_.log(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the log-likelihood of the rows of X, the sum of log f(x_j)."""
        return float(np.sum(self.score_samples(X)))  # of a Dask array too

    def _score_samples_in_pieces(self, X: Chunks) -> Any:
        in_pieces = isinstance(self.density_.elements[0].points, Chunks)
        double = X.mapped(np.asarray, np.float64, tail=X.tail, dtype=np.float64)
        return self.density_.log(double) if in_pieces else None

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Return independent draws from the density, shape (n_samples, d)."""
        check_is_fitted(self)
        return self.density_.sample(n_samples, random_state)
