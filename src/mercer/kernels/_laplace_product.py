"""The product of Laplace kernels over the columns: the kernel of the Manhattan distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array, positive, positive_length
from mercer.engine import Coordinates, Program, Var
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel
from mercer.kernels._measures import SpectralMeasure
from mercer.kernels._parameters import checked


@dataclass(frozen=True)
@checked(length_scale=positive_length)
class LaplaceProduct(Kernel):
    """Product of Laplace kernels over the columns, k(x, y) = exp(-sum_c |x_c - y_c| / l).

    Columns enter one by one, so a large difference in one of them counts less than it does in the
    Euclidean distance of `Laplace`. This suits tables, whose columns measure different things: it
    is the kernel of `KernelImputer`. It has no derivatives in mercer, so pre-images are sought
    among candidates.

    Parameters
    ----------
    length_scale : float
        The length l > 0. The sum grows with the number of columns; for standardised columns a
        multiple of their number is a good start.

    See Also
    --------
    Laplace : the same with the Euclidean distance.

    References
    ----------
    The same as scikit-learn's `laplacian_kernel`, with gamma = 1 / l.

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
        """The sum of absolute differences, and its exponential."""
        distance = Var(0, nonnegative=True)
        return Program((Coordinates("absolute"),), np.exp(-distance / self.length_scale))

    def spectral_measure(self, dim: int) -> SpectralMeasure:
        """Return independent Cauchy frequencies of scale 1 / l."""
        return CauchyProduct(self.length_scale, dim)


@dataclass(frozen=True)
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
