"""Rounds of imputation: kernel PCA of the completed rows, then predicted missing entries."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mercer._array import Array
from mercer.engine import Dense, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.methods.pca._filters import Filter
from mercer.methods.pca._kernel_pca import kernel_pca
from mercer.methods.pca._smoother import Smoother
from mercer.space import Subspace, feature

_SOLVE_TOL = 3e-3  # of the size of the missing entries; the next round goes on from there
_SOLVE_ITER = 20  # conjugate gradient steps; the tolerance is nearly always met before
_LEAST = 1e-3  # bound on 1 - leverage, for rows that the others can hardly predict
_LARGEST = 1.0 - 1e-6  # a filter weight of 1 would let a row predict itself and nothing else
_NEIGHBOURS = 10
_BLOCK = 1024  # rows whose distances are held at once


@dataclass(frozen=True)
class Settings:
    """What every round needs: the kernel, the filter, and how components are computed."""

    kernel: Kernel
    filter: Filter
    n_components: float | None = None
    n_landmarks: int | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Components:
    """The principal subspace of completed rows, and their coordinates C in it."""

    plane: Subspace
    C: Array = field(repr=False)
    w: Array = field(repr=False)
    filter: Filter

    @classmethod
    def fit(cls, Z: Array, w: Array, settings: Settings) -> Components | None:
        """Return None if all rows have the same feature."""
        kernel, landmarks = settings.kernel, settings.n_landmarks
        if landmarks is not None and landmarks >= len(Z):
            landmarks = None
        try:
            plane = kernel_pca(
                kernel, Z, settings.n_components, weights=w, n_landmarks=landmarks,
                random_state=settings.seed,
            )  # fmt: skip
        except InputError:
            if np.ptp(Z, axis=0).any():
                raise
            return None
        if landmarks is None and isinstance(plane.directions.coef, Dense):
            C = plane.directions.coef.array * np.asarray(plane.eigenvalues) / w[:, None]
        else:
            C = np.asarray(plane.coordinates(feature(kernel, Z)), dtype=np.float64)
        return cls(plane, C, w, settings.filter)

    def weights(self, strength: float | None) -> Array:
        """The filter's weights; the strength is relative to the whole scatter."""
        noise = None if strength is None else strength * float(self.plane.total or 0.0)
        return np.minimum(self.filter.weights(np.asarray(self.plane.eigenvalues), noise), _LARGEST)

    def smoother(self, strength: float | None) -> Smoother:
        """The smoother with a filter of that strength."""
        return Smoother(self.C, self.weights(strength) / self.plane.eigenvalues, self.w)


def complete(H: Smoother, Z: Array, missing: Array) -> Array:
    """Return Z with its missing entries solved for: z = (H z) there, the others held.

    So each column is predicted from the rows in which it is observed. This is done by conjugate
    gradients on all columns at once, started at Z, for y = (w / D)^(1/2) z with D = 1 - diag(H):
    the operator is then symmetric, with a diagonal near one.
    """
    scale = np.sqrt(H.w / np.maximum(1.0 - H.leverage, _LEAST))[:, None]
    weight = np.where(missing, scale, 0.0)
    back = weight / H.w[:, None]
    Z = np.array(Z)
    r = weight * (H(Z) - Z)
    p, rr = r.copy(), np.einsum("ij,ij->j", r, r)
    enough = _SOLVE_TOL**2 * (np.einsum("ij,ij->j", weight * Z, weight * Z) + rr)
    for _ in range(_SOLVE_ITER):
        on = np.flatnonzero(rr > enough)
        if not on.size:
            break
        step = back[:, on] * p[:, on]
        q = weight[:, on] * (step - H(step))
        pq = np.einsum("ij,ij->j", p[:, on], q)
        alpha = np.divide(rr[on], pq, out=np.zeros_like(pq), where=pq > 0.0)
        Z[:, on] += alpha * step
        r[:, on] -= alpha * q
        new = np.einsum("ij,ij->j", r[:, on], r[:, on])
        p[:, on] = r[:, on] + new / rr[on] * p[:, on]
        rr[on] = np.where(alpha > 0.0, new, 0.0)  # stop where p'Ap is no longer positive
    return Z


def observed_mean(T: Array, w: Array) -> Array:
    """Return the mean of each column over the rows in which it is observed; 0 if there is none."""
    seen = ~np.isnan(T)
    mass = w @ seen
    return np.asarray((w @ np.where(seen, T, 0.0)) / np.where(mass > 0.0, mass, 1.0))


def fill_from_neighbours(T: Array, R: Array, w: Array) -> Array:
    """Return T with missing entries from the rows of R that are near in the shared columns.

    Row j of R has weight w_j exp(-(D_j / D_(10))^4), with D_j the mean squared difference over
    shared columns and D_(10) the tenth smallest. Entries that no row can fill get the mean.
    """
    mean = observed_mean(R, w)
    out = np.where(np.isnan(T), mean, T)
    rows = np.flatnonzero(np.isnan(T).any(axis=1) & ~np.isnan(T).all(axis=1))
    known = (~np.isnan(R)).astype(float)
    R = np.where(np.isnan(R), 0.0, R)
    for part in pieces(len(rows), _BLOCK):
        t = T[rows[part]]
        seen = (~np.isnan(t)).astype(float)
        t0 = np.where(np.isnan(t), 0.0, t)
        D = (t0**2) @ known.T + seen @ (R**2).T - 2.0 * t0 @ R.T
        shared = seen @ known.T
        with np.errstate(divide="ignore", invalid="ignore"):
            D = np.where(shared > 0.0, np.maximum(D, 0.0) / shared, np.inf)
            k = min(_NEIGHBOURS, D.shape[1]) - 1
            ratio = np.where(D > 0.0, D / np.partition(D, k, axis=1)[:, k : k + 1], 0.0)
        V = w * np.exp(-(np.where(np.isfinite(ratio), ratio, np.inf) ** 4))
        mass = V @ known
        guess = np.divide(V @ R, mass, out=np.broadcast_to(mean, t.shape).copy(), where=mass > 0.0)
        out[rows[part]] = np.where(np.isnan(t), guess, t)
    return out
