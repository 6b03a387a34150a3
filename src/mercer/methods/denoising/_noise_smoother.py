"""The noise that smoothers see: a bound on its variance from rows that are left out in turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array
from mercer._threads import single_threaded_blas
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, median_scale
from mercer.methods.pca._kernel_pca import kernel_pca
from mercer.methods.pca._linear_inverse import Readout
from mercer.space import feature

_SCALES = (1 / 32, 1 / 8, 1 / 2, 2.0)  # squared length scales, of the median squared distance
_STRENGTHS = 10.0 ** -np.arange(0.5, 4.1, 0.5)  # of the largest eigenvalue
_STEP = 1e-4  # of the spread of the data: the step of a directional derivative
_LEAST = 0.1  # smoothers that take out less than this share of the noise say little about it


def smooth_bound(X: Array, weights: Array) -> float:
    """Return a bound on the variance of noise, the smallest over some smoothers.

    Let r(x) = D(x) - x for a smoother D that does not know x. If D is linear near x with the
    Jacobian J of r, then E|r|^2 = bias^2 + s^2 |J|^2 per entry, so s^2 <= |r|^2 / |J|^2: tight
    where the smoother has no bias. |J|^2 is seen along one direction of random signs, and held
    between (div r)^2 and -div r, where it lies for every smoother that shrinks.
    """
    try:
        length = median_scale(X, weights=weights)
    except InputError:  # all rows are equal
        return np.inf
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=X.shape)
    step = _STEP * length / np.sqrt(X.shape[1])
    best = np.inf
    with single_threaded_blas():  # small matrices, which threads only slow down
        for scale in _SCALES:
            family = _Family.of(X, weights, Gaussian(float(np.sqrt(scale)) * length), step * signs)
            for strength in _STRENGTHS:
                here, there = family.residuals(float(strength))
                J = (there - here) / step
                taken = -float(np.mean(signs * J))  # -div r, per entry
                if taken >= _LEAST:
                    size = float(np.clip(np.mean(J**2), taken**2, max(taken, taken**2)))
                    best = min(best, float(np.mean(here**2)) / size)
    return best


@dataclass(frozen=True, eq=False)
class _Family:
    """Kernel smoothers of one length scale and every strength, each row without itself."""

    rows: Array
    moved: Array
    mass: Array
    values: Array
    coordinates: Array  # of the rows
    nearby: Array  # of the rows, moved a little
    readout: Readout

    @classmethod
    def of(cls, X: Array, weights: Array, kernel: Gaussian, step: Array) -> _Family:
        plane = kernel_pca(kernel, X, weights=weights)
        assert plane.eigenvalues is not None
        C, C2 = (np.asarray(plane.coordinates(feature(kernel, Z))) for Z in (X, X + step))
        back = Readout.of(plane, X, weights)
        return cls(X, X + step, weights, plane.eigenvalues, C, C2, back)

    def residuals(self, strength: float) -> tuple[Array, Array]:
        """D(x) - x at the rows and beside them."""
        w = self.values / (self.values + strength * self.values[0])
        total = float(self.mass.sum())

        def share(c: Array) -> Array:
            inner = np.einsum("ij,ij->i", c * (w / self.values), self.coordinates)
            return np.asarray(self.mass * (1.0 / total + inner))

        own = self.readout(self.coordinates * w)
        gap = (own - self.rows) / (1.0 - np.minimum(share(self.coordinates), 1.0 - 1e-9))[:, None]
        here = own + share(self.coordinates)[:, None] * gap
        there = self.readout(self.nearby * w) + share(self.nearby)[:, None] * gap
        return here - self.rows, there - self.moved
