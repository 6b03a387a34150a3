"""Rounds of imputation: principal components of completed rows, and missing entries from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._errors import InputError
from mercer.engine import Dense, n_rows
from mercer.kernels import Kernel
from mercer.methods._filters import Filter
from mercer.methods._pca import kernel_pca
from mercer.space import Subspace, feature

# relative to the whole scatter of the features: from next to none to nothing but the mean
STRENGTHS = np.logspace(-6.0, 0.5, 14)
_SOLVE_TOL = 1e-4  # of the size of the missing entries; rounds outside go on anyway
_SOLVE_ITER = 30
_TOP = 1.0 - 1e-6  # a filter weight of 1 would let a row predict itself and nothing else
_PSEUDO = 4.0  # entries at which a prediction was worth nothing, added to what was held out


@dataclass(frozen=True)
class Settings:
    """What every round needs: kernel, filter, and how components are computed."""

    kernel: Kernel
    filter: Filter
    n_components: float | None = None
    n_landmarks: int | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Smoother:
    """x -> H x, H = 1 w'/W + C diag(phi / lambda) C' diag(w): columns smoothed over completed rows.

    C are the coordinates of the rows in their principal subspace, lambda its eigenvalues, phi a
    filter's weights. With phi = lambda / (lambda + a) this is kernel ridge regression of a column
    on the rows. I - H is symmetric and positive in the inner product of the weights w, once an
    entry of the column is held.
    """

    C: Array = field(repr=False)
    gain: Array = field(repr=False)
    w: Array = field(repr=False)

    def __call__(self, Z: Array) -> Array:
        """H Z."""
        weighted = self.w[:, None] * Z
        mean = weighted.sum(axis=0) / self.w.sum()
        return np.asarray(mean + (self.C * self.gain) @ (self.C.T @ weighted))

    @property
    def leverage(self) -> Array:
        """The diagonal of H."""
        own = np.einsum("ij,j,ij->i", self.C, self.gain, self.C)
        return np.asarray(self.w * (1.0 / self.w.sum() + own))

    def complete(self, Z: Array, missing: Array) -> Array:
        """Z with its missing entries solved for: z = (H z) there, the others held.

        Each column is then predicted by the rows where it is observed. Conjugate gradients on all
        columns at once, from what Z holds.
        """
        root = np.sqrt(self.w)[:, None]
        scale = root / np.sqrt(np.maximum(1.0 - self.leverage, 1e-3))[:, None]
        # y = x * root has a symmetric operator; the diagonal is divided out as well
        weight = np.where(missing, scale, 0.0)
        Z = np.array(Z)
        r = weight * (self(Z) - Z)
        p, rr = r.copy(), np.einsum("ij,ij->j", r, r)
        size = np.einsum("ij,ij->j", weight * Z, weight * Z) + rr
        unit = np.divide(weight, root**2)
        for _ in range(_SOLVE_ITER):
            going = rr > _SOLVE_TOL**2 * size
            if not going.any():
                break
            step = unit[:, going] * p[:, going]
            q = weight[:, going] * (step - self(step))
            pq = np.einsum("ij,ij->j", p[:, going], q)
            alpha = np.divide(rr[going], pq, out=np.zeros_like(pq), where=pq > 0.0)
            Z[:, going] += alpha * step
            r[:, going] -= alpha * q
            new = np.einsum("ij,ij->j", r[:, going], r[:, going])
            beta = np.divide(new, rr[going], out=np.zeros_like(new), where=rr[going] > 0.0)
            p[:, going] = r[:, going] + beta * p[:, going]
            rr[going] = np.where(alpha > 0.0, new, 0.0)
        return Z


@dataclass(frozen=True, eq=False)
class Components:
    """The principal subspace of completed rows, and their coordinates in it."""

    plane: Subspace
    C: Array
    w: Array
    filter: Filter

    @classmethod
    def of(cls, Z: Array, w: Array, settings: Settings) -> Components | None:
        """None where all rows have the same feature."""
        kernel, few = settings.kernel, settings.n_landmarks
        if few is not None and few >= n_rows(Z):
            few = None
        try:
            plane = kernel_pca(
                kernel, Z, settings.n_components, weights=w, n_landmarks=few,
                random_state=settings.seed,
            )  # fmt: skip
        except InputError:
            if np.ptp(Z, axis=0).any():
                raise
            return None
        assert plane.eigenvalues is not None
        if few is None and isinstance(plane.directions.coef, Dense):
            C = plane.directions.coef.array * plane.eigenvalues / w[:, None]
        else:
            C = np.asarray(plane.coordinates(feature(kernel, Z)), dtype=np.float64)
        return cls(plane, C, w, settings.filter)

    def weights(self, strength: float | None, trust: float) -> Array:
        """The filter's weights, times what predictions are worth."""
        values, total = self.plane.eigenvalues, self.plane.total
        assert values is not None
        assert total is not None
        noise = None if strength is None else strength * total
        return np.asarray(trust * np.minimum(self.filter.weights(values, noise), _TOP))

    def smoother(self, strength: float | None, trust: float = 1.0) -> Smoother:
        """The smoother of a filter of that strength."""
        return Smoother(self.C, self.weights(strength, trust) / self.plane.eigenvalues, self.w)


@dataclass(frozen=True, eq=False)
class Trial:
    """What a choice was worth on entries that were hidden."""

    strength: float | None
    trust: float
    error: float  # squared, weighted, per hidden entry, over that of the mean
    residual: Array = field(repr=False)  # on hidden entries, 0 elsewhere
    completed: Array = field(repr=False)


def try_out(T: Array, w: Array, hidden: Array, settings: Settings, rounds: int) -> Trial:
    """Hide entries, complete the rows in a few rounds, and choose the strength that does it best.

    T is centred, NaN where missing. Each round looks at all strengths in the first, then at the
    neighbours of the best.
    """
    missing = np.isnan(T) | hidden
    truth = np.where(hidden, T, 0.0)
    Z = np.where(missing, 0.0, T)
    Z = np.where(missing, _mean(Z, missing, w), Z)
    mean = np.where(hidden, _mean(Z, missing, w), 0.0)
    base = max(float(np.sum(w[:, None] * (truth - mean) ** 2)), np.finfo(float).tiny)
    grid: Any = STRENGTHS if settings.filter.needs_noise else [None]
    best, nearby = 0, range(len(grid))
    error, strength = 1.0, grid[-1]
    for _ in range(rounds):
        parts = Components.of(Z, w, settings)
        if parts is None:
            break
        found: dict[int, tuple[float, Array]] = {}
        for i in nearby:
            completed = parts.smoother(grid[i]).complete(Z, missing)
            gap = np.where(hidden, completed, 0.0) - truth
            found[i] = float(np.sum(w[:, None] * gap**2)) / base, completed
        best = min(found, key=lambda i: (found[i][0], -i))
        error, Z = found[best]
        strength = grid[best]
        nearby = range(max(0, best - 1), min(len(grid), best + 2))
    guess = np.where(hidden, Z - mean, 0.0)
    worth = float(np.sum(w[:, None] * guess * (truth - mean)))
    size = float(np.sum(w[:, None] * guess**2))
    slack = _PSEUDO * base / max(int(hidden.sum()), 1)
    trust = float(np.clip(worth / (size + slack), 0.0, 1.0))
    return Trial(strength, trust, error, np.where(hidden, Z, 0.0) - truth, Z)


def _mean(Z: Array, missing: Array, w: Array) -> Array:
    seen = w @ ~missing
    return np.asarray((w @ Z) / np.where(seen > 0.0, seen, 1.0))
