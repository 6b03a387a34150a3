"""Kernels of sums over coordinates: histogram kernels, and one of the Manhattan distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse, positive, positive_int, positive_length
from mercer._tensors import host
from mercer.engine import Coordinates, Program, Var
from mercer.exceptions import DomainError
from mercer.kernels._domain import Domain, Vectors
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._measures import SpectralMeasure
from mercer.kernels._parameters import checked

_SUM = Var(0, nonnegative=True)


@dataclass(frozen=True)
class NonNegative(Domain):
    """Vectors whose coordinates are all >= 0: counts, histograms, spectra."""

    base = Vectors()

    def check(self, X: Any, name: str) -> Any:
        if is_sparse(X):
            raise DomainError(
                f"{name} is sparse, and this kernel compares all coordinates; use {name}.toarray()"
            )
        X = Vectors().check(X, name)
        negative = np.argwhere(host(X < 0))
        if negative.size:
            i, j = (int(k) for k in negative[0])
            raise DomainError(
                f"{name} must be >= 0, but entry ({i}, {j}) is {float(X[i, j])!r}; shift the "
                "columns, or use a kernel of distances"
            )
        return X


@dataclass(frozen=True)
class Minimum(Kernel):
    """Minimum kernel k(x, y) = sum_c min(x_c, y_c) of vectors >= 0.

    For histograms it is the size of their intersection; for times (one column), the covariance of
    Brownian motion. min(x, y) is the inner product of the indicator functions of [0, x] and [0, y],
    which is why it is positive definite. `Harmonic` is a smooth version. Source: Rudi and Gaillard
    2021, section 2.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Minimum()([[1.0, 3.0]], [[2.0, 2.0], [0.0, 5.0]])
    array([[3., 3.]])
    """

    flags = Flags(Definiteness.POSITIVE, universal=False)  # elements vanish at 0
    domain = NonNegative()

    def lower(self) -> Program:
        return Program((Coordinates("minimum"),), _SUM)


@dataclass(frozen=True)
class Harmonic(Kernel):
    """Harmonic kernel k(x, y) = sum_c x_c y_c / (x_c + y_c) of vectors >= 0, with 0 / 0 = 0.

    x y / (x + y) = int_0^inf (x exp(-t x)) (y exp(-t y)) dt, so it is positive definite. It is half
    the similarity 2 x y / (x + y) that is also called the additive chi-square kernel;
    `AdditiveChiSquare` here is minus the chi-square distance, as in scikit-learn. Source: Rudi and
    Gaillard 2021, section 2. The value at 0, which is not defined there, is the limit along both
    axes.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Harmonic()([[2.0, 0.0]], [[2.0, 0.0], [6.0, 1.0]])
    array([[1. , 1.5]])
    """

    flags = Flags(Definiteness.POSITIVE, universal=False)  # elements vanish at 0
    domain = NonNegative()

    def lower(self) -> Program:
        return Program((Coordinates("harmonic"),), _SUM)


@dataclass(frozen=True)
class AdditiveChiSquare(Kernel):
    """Additive chi-square kernel k(x, y) = -sum_c (x_c - y_c)^2 / (x_c + y_c), with 0 / 0 = 0.

    Conditionally positive definite: each term is 4 x y / (x + y) - x - y, and the terms in one
    point alone drop out of quadratic forms whose coefficients sum to zero. `ChiSquare` is its
    exponential. The same as scikit-learn's `additive_chi2_kernel`.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.AdditiveChiSquare()([[1.0, 0.0]], [[3.0, 0.0], [1.0, 1.0]])
    array([[-1., -1.]])
    """

    flags = Flags(Definiteness.CONDITIONAL)
    domain = NonNegative()

    def lower(self) -> Program:
        return Program((Coordinates("chi2"),), -_SUM)


@dataclass(frozen=True)
@checked(gamma=positive)
class ChiSquare(Kernel):
    """Chi-square kernel k(x, y) = exp(-gamma sum_c (x_c - y_c)^2 / (x_c + y_c)), with 0 / 0 = 0.

    The sum is a squared distance of features (Schoenberg), so this is the Gaussian kernel of those
    features: positive definite for every gamma, and, because the features of different points
    differ, universal. The same as scikit-learn's `chi2_kernel`. Source: A. Christmann and I.
    Steinwart, Universal kernels on non-standard input spaces (2010).

    Parameters
    ----------
    gamma : float
        > 0.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.ChiSquare(1.0)([[1.0, 0.0]], [[3.0, 0.0], [1.0, 0.0]]).round(4)
    array([[0.3679, 1.    ]])
    """

    gamma: float = 1.0

    flags = Flags(Definiteness.POSITIVE, universal=True)
    domain = NonNegative()

    def lower(self) -> Program:
        return Program((Coordinates("chi2"),), np.exp(-self.gamma * _SUM))


@dataclass(frozen=True)
@checked(length_scale=positive_length)
class LaplaceProduct(Kernel):
    """Product of Laplace kernels over the columns, k(x, y) = exp(-sum_c |x_c - y_c| / l).

    Columns enter one by one, so a large difference in one of them counts less than it does in the
    Euclidean distance of `Laplace`. This suits tables, whose columns measure different things: it
    is the kernel of `KernelImputer`. It has no derivatives in mercer, so pre-images are sought
    among candidates. The same as scikit-learn's `laplacian_kernel`, with gamma = 1 / l.

    Parameters
    ----------
    length_scale : float
        The length l > 0. The sum grows with the number of columns; for standardised columns a
        multiple of their number is a good start.

    See Also
    --------
    Laplace : the same with the Euclidean distance.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.LaplaceProduct(2.0)([[0.0, 0.0]], [[3.0, 1.0]]).round(4)
    array([[0.1353]])
    """

    length_scale: float = 1.0

    flags = Flags(Definiteness.POSITIVE, characteristic=True, universal=True)

    @classmethod
    def from_gamma(cls, gamma: float) -> LaplaceProduct:
        """Return exp(-gamma sum_c |x_c - y_c|): l = 1 / gamma."""
        return cls(1.0 / positive(gamma, "gamma"))

    def lower(self) -> Program:
        return Program((Coordinates("absolute"),), np.exp(-_SUM / self.length_scale))

    def spectral_measure(self, dim: int) -> SpectralMeasure:
        """Return independent Cauchy frequencies of scale 1 / l."""
        return CauchyProduct(self.length_scale, dim)


@dataclass(frozen=True)
@checked(dim=positive_int)
class CauchyProduct(SpectralMeasure):
    """Independent Cauchy frequencies of scale 1 / length_scale."""

    length_scale: float
    dim: int

    mass = 1.0

    def _density(self, w: Array) -> Array:
        u = self.length_scale * w
        return np.asarray(np.prod(self.length_scale / np.pi / (1.0 + u**2), axis=1))

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draws of shape (size, dim)."""
        return rng.standard_cauchy((size, self.dim)) / self.length_scale
