"""Rounds of imputation (kernel PCA of completed rows, predicted missing entries), and their choice.

What is not given is chosen by predicting observed entries that are hidden for validation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine import Dense, pieces
from mercer.exceptions import InputError
from mercer.kernels import Gaussian, Kernel
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
_ENTRIES = 1 << 20  # of a block of columns: a few temporaries of 8 MB

_ROWS = 400  # on which choices are tried: a second or two
_FACTORS = (0.25, 4.0)  # of the median squared distance, tried besides 1
_SHARE, _LARGEST_SHARE = 0.1, 0.3  # of the observed entries that are hidden
_WANTED = 200  # hidden entries, if the larger share gives so many
# relative to the whole scatter of the features: from hardly any filter to nothing but the mean
_STRENGTHS = np.logspace(-6.0, 0.5, 14)
_RELAXATIONS = (1.0, 1.7)  # none, and about the best factor of successive over-relaxation
_WORTH = 2e-3  # of the error: a round that gains less is the last
_PRIOR = 40.0  # entries of an average column that are added to those of each column
_CHOSEN = 6.0  # strengths, rounds, units, length: about so many numbers are chosen
_TINY = float(np.finfo(np.float64).tiny)


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

    So each column is predicted from the rows in which it is observed.
    """
    out = np.empty_like(Z)
    for part in pieces(Z.shape[1], max(_ENTRIES // len(Z), 1)):
        out[:, part] = _solve(H, Z[:, part], missing[:, part])
    return out


def _solve(H: Smoother, Z: Array, missing: Array) -> Array:
    """Conjugate gradients on all columns at once, for y = (w / D)^(1/2) z with D = 1 - diag(H).

    The operator is then symmetric, with a diagonal near one.
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
    columns = list(pieces(T.shape[1], max(_ENTRIES // max(len(R), 1), 1)))
    for block in pieces(len(rows), _BLOCK):
        at = rows[block]
        D, shared = np.zeros((2, len(at), len(R)))
        for part in columns:
            (t, seen), (r, known) = _split(T[at, part]), _split(R[:, part])
            D += (t**2) @ known.T + seen @ (r**2).T - 2.0 * t @ r.T
            shared += seen @ known.T
        with np.errstate(divide="ignore", invalid="ignore"):
            D = np.where(shared > 0.0, np.maximum(D, 0.0) / shared, np.inf)
            k = min(_NEIGHBOURS, D.shape[1]) - 1
            ratio = np.where(D > 0.0, D / np.partition(D, k, axis=1)[:, k : k + 1], 0.0)
        V = w * np.exp(-(np.where(np.isfinite(ratio), ratio, np.inf) ** 4))
        for part in columns:
            (_, seen), (r, known) = _split(T[at, part]), _split(R[:, part])
            mass, old = V @ known, out[at, part]
            guess = np.divide(V @ r, mass, out=old.copy(), where=mass > 0.0)
            out[at, part] = np.where(seen > 0.0, old, guess)
    return out


def _split(T: Array) -> tuple[Array, Array]:
    """Entries, 0 where missing; and 1 where observed, 0 where missing."""
    missing = np.isnan(T)
    return np.where(missing, 0.0, T), (~missing).astype(np.float64)


# --- choices --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trial:
    """Units and settings, the rounds that suit them, and their error on hidden entries.

    The kernel sees (x - offset) / scale. Errors are squared, over those of column means; choices
    are compared by `error`, with one trust for all columns.
    """

    offset: Array = field(repr=False)
    scale: Array = field(repr=False)
    settings: Settings | None  # None if there are too few rows or entries to learn from
    # the filter's strength in each round, and over-relaxation (1 is none)
    rounds: tuple[tuple[float | None, float], ...] = ()
    trust: Any = 0.0  # the share in [0, 1] of the difference from each column's mean that is kept
    error: float = float("nan")
    expected: float = float("nan")  # with the trust of each column
    residual: Any = field(default=0.0, repr=False)  # of the hidden entries


def choose(
    X: Array,
    w: Array,
    kernel: Kernel | None,
    settings: dict[str, Any],
    scale_columns: str,
    max_iter: int,
    rng: np.random.Generator,
) -> Trial:
    """Try units first, then length scales, each with the rounds that suit it."""
    units = _units(X, w, kernel, scale_columns)
    if len(X) > _ROWS:
        some = np.sort(rng.choice(len(X), _ROWS, replace=False))
        X, w = X[some], w[some]
    hidden = _hide(~np.isnan(X), rng)
    at, column = np.nonzero(hidden)
    seed = int(rng.integers(2**31))
    trials: list[tuple[float, Trial]] = []
    for offset, scale in units:
        length = _median_distance(np.where(hidden, np.nan, (X - offset) / scale), w)
        if length == 0.0 or not at.size:
            continue
        first = Settings(Gaussian(length) if kernel is None else kernel, seed=seed, **settings)
        trial = _try(X, w, hidden, first, Trial(offset, scale, first), max_iter)
        # errors in the units of the data, times errors in the units of each column
        gap = trial.residual * scale[column]
        cost = float(w[at] @ gap**2) * float(w[at] @ (gap / units[0][1][column]) ** 2)
        trials.append((cost, trial))
    if not trials:
        return Trial(*units[0], None, trust=np.zeros(X.shape[1]))
    best = min(trials, key=lambda pair: pair[0])[1]
    chosen = best.settings
    if kernel is None and chosen is not None and isinstance(chosen.kernel, Gaussian):
        for factor in _FACTORS:
            other = Gaussian(chosen.kernel.length_scale * float(np.sqrt(factor)))
            trial = _try(X, w, hidden, replace(chosen, kernel=other), best, max_iter)
            best = min(best, trial, key=lambda trial: trial.error)
    return best


def _try(
    X: Array, w: Array, hidden: Array, settings: Settings, trial: Trial, max_iter: int
) -> Trial:
    """Hide entries, complete the rows, and keep in each round the filter that does it best.

    The first round tries all strengths, the others the neighbours of the last. It ends when the
    error on the hidden entries falls no more.
    """
    T = (X - trial.offset) / trial.scale
    at, column = np.nonzero(hidden)
    truth, v = T[hidden], w[at]
    T[hidden] = np.nan
    missing = np.isnan(T)
    mean = observed_mean(T, w)[column]
    base = max(float(v @ (truth - mean) ** 2), _TINY)
    Z = fill_from_neighbours(T, T, w)
    error, rounds = float(v @ (Z[hidden] - truth) ** 2) / base, list[tuple[float | None, float]]()
    grid: Any = _STRENGTHS if settings.filter.needs_noise else [None]
    nearby = range(0, len(grid), 2)
    for _ in range(max_iter):
        parts = Components.fit(Z, w, settings)
        if parts is None:
            break
        best = (np.inf, 0, 1.0, np.zeros(1))
        for i in reversed(nearby):  # of equal errors, the stronger filter
            change = complete(parts.smoother(grid[i]), Z, missing) - Z
            for relaxation in _RELAXATIONS:
                gap = Z[hidden] + relaxation * change[hidden] - truth
                new = float(v @ gap**2) / base
                if new < best[0]:
                    best = (new, i, relaxation, change)
        error, before, (i, relaxation) = best[0], error, best[1:3]
        if rounds and error > (1.0 - _WORTH) * before:
            break
        Z += relaxation * best[3]
        del best, change  # as large as the data
        rounds.append((grid[i], relaxation))
        nearby = range(max(0, i - 1), min(len(grid), i + 2))
    gain, guess, d = truth - mean, Z[hidden] - mean, X.shape[1]
    cross, size = (np.bincount(column, v * guess * other, d) for other in (gain, guess))
    trust = _trust(cross, size, base, np.bincount(column, minlength=d))
    # one factor for all columns is less optimistic when choices are compared
    common = float(np.clip(cross.sum() / max(size.sum(), _TINY), 0.0, 1.0))
    residual = common * guess - gain
    return replace(
        trial, settings=settings, rounds=tuple(rounds), trust=trust, residual=residual,
        error=float(v @ residual**2) / base,
        expected=float(v @ (trust[column] * guess - gain) ** 2) / base,
    )  # fmt: skip


def _trust(cross: Array, size: Array, base: float, n: Array) -> Array:
    """Return the factor in [0, 1] for each column that makes the most of a guess.

    It is the slope cross_j / size_j of the truth on the guess, from each column's n_j entries and
    `_PRIOR` average ones, times 1 - c / (n R^2), with R^2 the share of all entries that the guess
    explains: shrinkage as of James and Stein, for c numbers that were chosen on the same entries.
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


def _units(
    X: Array, w: Array, kernel: Kernel | None, scale_columns: str
) -> list[tuple[Array, Array]]:
    """Offsets and scales of columns to be tried."""
    if kernel is not None:
        return [(np.zeros(X.shape[1]), np.ones(X.shape[1]))]
    mean = observed_mean(X, w)
    spread = np.sqrt(observed_mean((X - mean) ** 2, w))
    spread = np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)  # below: a constant column
    own, common = spread, np.full_like(spread, np.sqrt(np.mean(spread**2)))
    scales = {"auto": [own, common], "std": [own], "none": [common]}[scale_columns]
    return [(mean, scale) for scale in scales]


def _hide(seen: Array, rng: np.random.Generator) -> Array:
    """Entries to hide: every row keeps one, every column two."""
    share = np.clip(_WANTED / max(int(seen.sum()), 1), _SHARE, _LARGEST_SHARE)
    hidden = seen & (rng.random(seen.shape) < share)
    hidden[~(seen & ~hidden).any(axis=1)] = False
    hidden[:, (seen & ~hidden).sum(axis=0) < 2] = False
    return np.asarray(hidden)


def _median_distance(T: Array, w: Array) -> float:
    """The median distance between rows, from the columns that both have; 0 if there is none."""
    seen = (~np.isnan(T)).astype(float)
    Z = np.where(np.isnan(T), 0.0, T)
    squares = (Z**2) @ seen.T
    shared = seen @ seen.T
    D = np.maximum(squares + squares.T - 2.0 * Z @ Z.T, 0.0)
    i, j = np.nonzero(np.triu((shared > 0.0) & (1e-12 * (squares + squares.T) < D), k=1))
    if not i.size:
        return 0.0
    d2 = D[i, j] * (T.shape[1] / shared[i, j])
    return float(np.sqrt(np.quantile(d2, 0.5, weights=w[i] * w[j], method="inverted_cdf")))
