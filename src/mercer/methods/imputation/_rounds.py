"""Rounds of imputation: principal components of completed rows, and missing entries from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import Dense, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.methods.pca._filters import Filter
from mercer.methods.pca._kernel_pca import kernel_pca
from mercer.methods.pca._smoother import Smoother
from mercer.space import Subspace, feature

# relative to the whole scatter of the features: from next to none to nothing but the mean
STRENGTHS = np.logspace(-6.0, 0.5, 14)
_SOLVE_TOL = 3e-3  # of the size of the missing entries; the rounds go on anyway
_SOLVE_ITER = 20
_LEAST = 1e-3  # of one minus a leverage: rows that next to nothing else can predict
_TOP = 1.0 - 1e-6  # a filter weight of 1 would let a row predict itself and nothing else
_NEIGHBOURS = 10
_BLOCK = 1024  # rows whose distances are held at once
_REACHES = (1.0, 1.7)
_WORTH = 2e-3  # of the error: a round that gains less is the last
_PRIOR = 40.0  # entries of an average column that stand in for those a column lacks
_CHOSEN = 6.0  # strengths, rounds, units, length: about so many numbers are chosen


@dataclass(frozen=True)
class Settings:
    """What every round needs: kernel, filter, and how components are computed."""

    kernel: Kernel
    filter: Filter
    n_components: float | None = None
    n_landmarks: int | None = None
    seed: int = 0


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

    def weights(self, strength: float | None) -> Array:
        """The filter's weights; the strength is relative to the whole scatter."""
        values, total = self.plane.eigenvalues, self.plane.total
        assert values is not None
        assert total is not None
        noise = None if strength is None else strength * total
        return np.minimum(self.filter.weights(values, noise), _TOP)

    def smoother(self, strength: float | None) -> Smoother:
        """The smoother of a filter of that strength."""
        return Smoother(self.C, self.weights(strength) / self.plane.eigenvalues, self.w)


def complete(H: Smoother, Z: Array, missing: Array) -> Array:
    """Z with its missing entries solved for: z = (H z) there, the others held.

    Each column is then predicted by the rows where it is observed. Conjugate gradients on all
    columns at once, from what Z holds, for y = (w / D)^(1/2) z: that makes the operator
    symmetric, and D = 1 - diag(H) its diagonal about one.
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
        rr[on] = np.where(alpha > 0.0, new, 0.0)  # 0 where rounding has eaten the operator
    return Z


@dataclass(frozen=True)
class Move:
    """One round: how strong the filter is, and how far to go beyond what it says."""

    strength: float | None
    reach: float

    def of(self, parts: Components, Z: Array, missing: Array) -> Array:
        """The rows after the round."""
        return self.beyond(Z, complete(parts.smoother(self.strength), Z, missing))

    def beyond(self, Z: Array, completed: Array) -> Array:
        """Z + reach (completed - Z)."""
        return completed if self.reach == 1.0 else np.asarray(Z + self.reach * (completed - Z))


@dataclass(frozen=True, eq=False)
class Trial:
    """The rounds that did best on entries that were hidden, and what they were worth there."""

    moves: tuple[Move, ...]
    trust: Array = field(repr=False)  # one per column
    error: float  # squared, per hidden entry, over that of means: what choices are compared by
    expected: float  # the same with the trust of each column
    residual: Array = field(repr=False)  # on hidden entries, 0 elsewhere


def try_out(T: Array, w: Array, hidden: Array, settings: Settings, max_iter: int) -> Trial:
    """Hide entries, complete the rows, and keep in each round the move that does it best.

    T is NaN where missing. The first round tries all strengths, the others the neighbours of the
    last. It ends when the error on the hidden entries falls no more.
    """
    missing = np.isnan(T) | hidden
    truth, seen = np.where(hidden, T, 0.0), np.where(missing, np.nan, T)
    mean = np.where(hidden, observed_mean(seen, w), 0.0)
    v = w[:, None]
    base = max(float(np.sum(v * (truth - mean) ** 2)), np.finfo(float).tiny)

    def error_of(Z: Array) -> float:
        return float(np.sum(v * (np.where(hidden, Z, 0.0) - truth) ** 2)) / base

    Z = from_neighbours(seen, seen, w)
    error, moves = error_of(Z), list[Move]()
    grid: Any = STRENGTHS if settings.filter.needs_noise else [None]
    nearby = range(0, len(grid), 2)
    for _ in range(max_iter):
        parts = Components.of(Z, w, settings)
        if parts is None:
            break
        tried: list[tuple[float, int, Move, Array]] = []
        for i in nearby:
            completed = Move(grid[i], 1.0).of(parts, Z, missing)
            for reach in _REACHES:
                move = Move(grid[i], reach)
                there = move.beyond(Z, completed)
                tried.append((error_of(there), i, move, there))
        new, best, move, there = min(tried, key=lambda t: (t[0], -t[1]))
        if moves and new > (1.0 - _WORTH) * error:
            break
        error, Z = new, there
        moves.append(move)
        nearby = range(max(0, best - 1), min(len(grid), best + 2))
    guess = np.where(hidden, Z - mean, 0.0)
    cross, size = (np.sum(v * guess * other, axis=0) for other in (truth - mean, guess))
    trust = _worth(cross, size, base, hidden.sum(axis=0))
    expected = float(np.sum(v * (mean + trust * guess - truth) ** 2)) / base
    # one factor for all columns flatters less where choices are compared
    alike = float(np.clip(cross.sum() / max(size.sum(), np.finfo(float).tiny), 0.0, 1.0))
    residual = mean + alike * guess - truth
    return Trial(tuple(moves), trust, float(np.sum(v * residual**2)) / base, expected, residual)


def _worth(cross: Array, size: Array, base: float, n: Array) -> Array:
    """For each column the factor in [0, 1] that makes the most of a guess.

    It is the slope cross_j / size_j of the truth on the guess, of each column's n_j entries and
    `_PRIOR` average ones; times 1 - c / (n R^2), R^2 the share of all entries that the guess
    explains: as James and Stein shrink, for c things that were chosen on the same entries.
    """
    whole, total = float(cross.sum()), float(size.sum())
    if whole <= 0.0 or total <= 0.0:
        return np.zeros(len(cross))
    count = int(n.sum())
    share = min(whole**2 / (total * base), 1.0)
    kept = max(1.0 - _CHOSEN / (count * share), 0.0)
    prior = _PRIOR / count
    slopes = (cross + prior * whole) / (size + prior * total)
    return np.asarray(np.clip(kept * slopes, 0.0, 1.0))


def observed_mean(T: Array, w: Array) -> Array:
    """The mean of each column over the rows where it is observed; 0 where it is nowhere."""
    seen = ~np.isnan(T)
    mass = w @ seen
    return np.asarray((w @ np.where(seen, T, 0.0)) / np.where(mass > 0.0, mass, 1.0))


def from_neighbours(T: Array, R: Array, w: Array) -> Array:
    """T with missing entries from the rows of R that are near in what both have observed.

    Row j of R counts w_j exp(-(D_j / D_(10))^4) with D_j the mean squared difference over shared
    columns and D_(10) the tenth smallest of them. Entries that no row can give get the mean.
    """
    mean = observed_mean(R, w)
    out = np.where(np.isnan(T), mean, T)
    rows = np.flatnonzero(np.isnan(T).any(axis=1) & ~np.isnan(T).all(axis=1))
    known = ~np.isnan(R)
    known_, R0 = known.astype(float), np.where(known, R, 0.0)
    for part in pieces(len(rows), _BLOCK):
        t = T[rows[part]]
        seen = ~np.isnan(t)
        seen_, t0 = seen.astype(float), np.where(seen, t, 0.0)
        D = (t0**2) @ known_.T + seen_ @ (R0**2).T - 2.0 * t0 @ R0.T
        shared = seen_ @ known_.T
        with np.errstate(divide="ignore", invalid="ignore"):
            D = np.where(shared > 0.0, np.maximum(D, 0.0) / shared, np.inf)
        k = min(_NEIGHBOURS, D.shape[1]) - 1
        near = np.partition(D, k, axis=1)[:, k : k + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(D > 0.0, D / near, 0.0)
        V = w * np.exp(-(np.where(np.isfinite(ratio), ratio, np.inf) ** 4))
        mass = V @ known_
        guess = np.divide(V @ R0, mass, out=np.broadcast_to(mean, t.shape).copy(), where=mass > 0.0)
        out[rows[part]] = np.where(seen, t, guess)
    return out
