"""Denoising: into a principal subspace, shrunk, back to the data, and as far as it is trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.engine import n_rows, pieces
from mercer.methods._readout import Readout
from mercer.preimages import preimage
from mercer.preimages._solver import Solver
from mercer.space import Subspace, feature

_BLOCK = 4096  # rows that are denoised at once
_STEP = 1e-3  # of the noise: the step of a directional derivative


@dataclass(frozen=True, eq=False)
class Denoiser:
    """y -> y + trust (D(y) - y), D(y) the pre-image of mu + sum_l w_l <k(y, .) - mu, f_l> f_l.

    Attributes
    ----------
    plane : Subspace
        mu and the f_l.
    weights : array of shape (r,)
        The filter's weights w_l in [0, 1].
    way_back : Readout, Solver or None
        From elements to data: a regression on coordinates, or a solver for `preimage`, started at
        y; None is the default solver.
    trust : float
        In [0, 1]; 1 is the pre-image itself.
    """

    plane: Subspace
    weights: Array = field(repr=False)
    way_back: Readout | Solver | None = None
    trust: float = 1.0

    def __call__(self, Y: Any) -> Array:
        """The rows of Y, denoised."""
        Y = self.plane.origin.kernel.points(Y, "Y")
        parts = [self._block(Y[rows]) for rows in pieces(n_rows(Y), _BLOCK)]
        return np.concatenate(parts).astype(np.float32 if Y.dtype == np.float32 else np.float64)

    def _block(self, Y: Any) -> Array:
        y = np.asarray(Y.toarray() if is_sparse(Y) else Y, dtype=np.float64)
        if self.trust == 0.0:
            return y
        found = self.reconstruct(self.shrunk(Y), y)
        return np.asarray(y + self.trust * (found - y)) if self.trust < 1.0 else found

    def shrunk(self, Y: Any) -> Array:
        """Coordinates of the features of Y, times the weights."""
        c = self.plane.coordinates(feature(self.plane.origin.kernel, Y))
        return np.asarray(c, dtype=np.float64) * self.weights

    def reconstruct(self, coordinates: Array, start: Any = None) -> Array:
        """Data points of coordinates in the subspace."""
        if isinstance(self.way_back, Readout):
            return self.way_back(coordinates)
        found = preimage(self.plane.element(coordinates), self.way_back, start=start)
        return np.asarray(found.points, dtype=np.float64)


@dataclass(frozen=True)
class SteinRisk:
    """What denoising is worth, without clean data: Stein's estimate for noise of variance s^2.

    With r(y) = D(y) - y, the mean squared error per entry of y + t r(y) is estimated without bias
    by s^2 + (t^2 |r|^2 + 2 t s^2 div r) / size. It is least at t = -s^2 div r / |r|^2.

    Attributes
    ----------
    variance : float
        s^2.
    moved : float
        |r|^2 per entry.
    divergence : float
        div r per entry; the share of the noise that is taken out, with a minus.
    """

    variance: float
    moved: float
    divergence: float

    @property
    def trust(self) -> float:
        """The best t in [0, 1]."""
        if self.moved <= 0.0:
            return 0.0
        return float(np.clip(-self.variance * self.divergence / self.moved, 0.0, 1.0))

    def at(self, trust: float) -> float:
        """The estimated mean squared error per entry."""
        v = self.variance
        return v + trust**2 * self.moved + 2.0 * trust * v * self.divergence


def stein_risk(
    denoise: Callable[[Array], Array], Y: Array, sigma: float, rng: np.random.Generator
) -> SteinRisk:
    """Estimate the risk of a denoiser on rows it was not fitted to.

    The divergence is that of the whole batch, from one random direction of signs: exact on average,
    and sharp because it is summed over all entries.
    """
    signs = rng.choice([-1.0, 1.0], size=Y.shape)
    step = _STEP * sigma if sigma > 0.0 else 1e-6 * float(np.abs(Y).max() or 1.0)
    moved = denoise(Y) - Y
    there = Y + step * signs
    slope = np.sum(signs * (denoise(there) - there - moved)) / step
    return SteinRisk(sigma**2, float(np.mean(moved**2)), float(slope) / Y.size)
