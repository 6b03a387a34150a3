"""Denoising: into a principal subspace, shrunk, back to the data, and as far as it is trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import n_rows, pieces
from mercer.methods._rows import dense, spread_rows
from mercer.methods.pca._linear_inverse import Readout
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
        Y = self.plane.origin.kernel.points(Y, "Y").array
        parts = [self._block(Y[rows]) for rows in pieces(n_rows(Y), _BLOCK)]
        return np.concatenate(parts).astype(np.float32 if Y.dtype == np.float32 else np.float64)

    def _block(self, Y: Any) -> Array:
        y = dense(Y)
        if self.trust == 0.0:
            return y
        found = self.reconstruct(self.shrunk(Y), y)
        return np.asarray(y + self.trust * (found - y)) if self.trust < 1.0 else found

    def shrunk(self, Y: Any) -> Array:
        """Coordinates of the features of Y, times the weights."""
        c = self.plane.coordinates(feature(self.plane.origin.kernel, Y))
        return np.asarray(c, dtype=np.float64) * self.weights

    def reconstruct(self, coordinates: Array, start: Any = None) -> Any:
        """Data points of coordinates in the subspace."""
        if isinstance(self.way_back, Readout):
            return self.way_back(coordinates)
        iterates = self.way_back is None or self.way_back.needs_start
        psi = self.plane.element(coordinates)
        found = preimage(psi, self.way_back, start=start if iterates else None)
        vector = self.plane.origin.kernel.domain.is_vector
        return np.asarray(found.points, dtype=np.float64) if vector else found.points


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


def held_out_risk(denoiser: Denoiser, Y: Any, sigma: float) -> SteinRisk:
    """Estimate the risk of a denoiser on rows it was not fitted to, as if its `trust` were 1."""
    rows = dense(denoiser.plane.origin.kernel.points(Y).array)
    return _risk(lambda Z: denoiser.reconstruct(denoiser.shrunk(Z), Z), rows, sigma)


def stein_risk(
    denoiser: Denoiser,
    X: Any,
    sigma: float,
    *,
    weights: Any = None,
    mass: float | None = None,
    n_rows_used: int | None = None,
) -> SteinRisk:
    """Estimate the risk of a denoiser on the rows it was fitted to, each left out in turn.

    The filtered projection is a linear smoother: the share of row i in what comes back at x is

        s_i(x) = weight_i (1 / mass + sum_l w_l c_l(x) c_l(x_i) / lambda_l),

    and without row i the element at x is psi(x) + s_i(x) (psi(x_i) - k(x_i, .)) / (1 - s_i(x_i)).
    Equal rows are left out together, so that a row of weight 2 is a row that stands twice. The
    divergence is that of the whole batch, from one random direction of signs: exact on average, and
    sharp because it is summed over all entries.

    Parameters
    ----------
    denoiser : Denoiser
        Its `trust` is not looked at.
    X, weights
        What its subspace was fitted to.
    sigma : float
        The standard deviation of the noise.
    mass : float, optional
        The weight of all rows, where X holds only some of them.
    n_rows_used : int, optional
        The risk is averaged over so many of the distinct rows; by default enough for 20,000
        entries, at least 100.
    """
    X = denoiser.plane.origin.kernel.points(X).array
    rows, share = spread_rows(X, weights, n_rows_used or max(100, 20_000 // X.shape[1]))
    if mass is None:
        mass = float(n_rows(X)) if weights is None else float(np.sum(weights))
    return _risk(_LeftOut.of(denoiser, rows, share, mass), rows, sigma)


def _risk(back: Callable[[Array], Array], rows: Array, sigma: float) -> SteinRisk:
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=rows.shape)
    step = _STEP * sigma if sigma > 0.0 else 1e-6 * float(np.abs(rows).max() or 1.0)
    here, there = back(rows) - rows, back(rows + step * signs) - (rows + step * signs)
    slope = float(np.sum(signs * (there - here))) / step
    return SteinRisk(sigma**2, float(np.mean(here**2)), slope / rows.size)


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """A denoiser of some rows, each without itself."""

    denoiser: Denoiser
    rows: Array
    mass: Array
    total: float
    coordinates: Array  # of the rows, unweighted
    own: Array  # s_i(x_i)

    @classmethod
    def of(cls, denoiser: Denoiser, rows: Array, mass: Array, total: float) -> _LeftOut:
        kernel = denoiser.plane.origin.kernel
        c = np.asarray(denoiser.plane.coordinates(feature(kernel, rows)), dtype=np.float64)
        out = cls(denoiser, rows, mass, total, c, np.zeros(len(rows)))
        return replace(out, own=np.minimum(out._share(c), 1.0 - 1e-9))

    def _share(self, c: Array) -> Array:
        """s_i(x) from the coordinates of one x for each row i."""
        values = self.denoiser.plane.eigenvalues
        inner = np.einsum("ij,ij->i", c * (self.denoiser.weights / values), self.coordinates)
        return np.asarray(self.mass * (1.0 / self.total + inner))

    def __call__(self, Y: Array) -> Array:
        """What comes back at y_i without row i."""
        d = self.denoiser
        kernel = d.plane.origin.kernel
        c = np.asarray(d.plane.coordinates(feature(kernel, Y)), dtype=np.float64)
        factor = self._share(c) / (1.0 - self.own)
        shrunk, at_rows = c * d.weights, self.coordinates * d.weights
        if isinstance(d.way_back, Readout):
            return np.asarray(
                d.way_back(shrunk) + factor[:, None] * (d.way_back(at_rows) - self.rows)
            )
        psi = d.plane.element(shrunk + factor[:, None] * at_rows)
        psi = psi + d.plane.origin.combine(factor[None]) - feature(kernel, self.rows) * factor
        iterates = d.way_back is None or d.way_back.needs_start
        found = preimage(psi, d.way_back, start=Y if iterates else None)
        return np.asarray(found.points, dtype=np.float64)
