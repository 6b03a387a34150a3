"""Imputation's choices, made by predicting observed entries that are hidden for validation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.kernels import Gaussian, Kernel
from mercer.methods.imputation._rounds import (
    Components,
    Settings,
    complete,
    fill_from_neighbours,
    observed_mean,
)

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
    residual: Any = field(default=0.0, repr=False)  # of predicted hidden entries, 0 elsewhere


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
    seed = int(rng.integers(2**31))
    trials: list[tuple[float, Trial]] = []
    for offset, scale in units:
        length = _median_distance(np.where(hidden, np.nan, (X - offset) / scale), w)
        if length == 0.0 or not hidden.any():
            continue
        first = Settings(Gaussian(length) if kernel is None else kernel, seed=seed, **settings)
        trial = _try(X, w, hidden, Trial(offset, scale, first), max_iter)
        # errors in the units of the data, times errors in the units of each column
        gap, v = trial.residual * scale, w[:, None]
        cost = float(np.sum(v * gap**2)) * float(np.sum(v * (gap / units[0][1]) ** 2))
        trials.append((cost, trial))
    if not trials:
        return Trial(*units[0], None, trust=np.zeros(X.shape[1]))
    best = min(trials, key=lambda pair: pair[0])[1]
    chosen = best.settings
    if kernel is None and chosen is not None and isinstance(chosen.kernel, Gaussian):
        for factor in _FACTORS:
            other = Gaussian(chosen.kernel.length_scale * float(np.sqrt(factor)))
            start = replace(best, settings=replace(chosen, kernel=other))
            best = min(best, _try(X, w, hidden, start, max_iter), key=lambda trial: trial.error)
    return best


def _try(X: Array, w: Array, hidden: Array, trial: Trial, max_iter: int) -> Trial:
    """Hide entries, complete the rows, and keep in each round the filter that does it best.

    The first round tries all strengths, the others the neighbours of the last. It ends when the
    error on the hidden entries falls no more.
    """
    T = (X - trial.offset) / trial.scale
    settings = trial.settings
    assert settings is not None
    missing = np.isnan(T) | hidden
    truth, seen = np.where(hidden, T, 0.0), np.where(missing, np.nan, T)
    mean = np.where(hidden, observed_mean(seen, w), 0.0)
    v = w[:, None]
    base = max(float(np.sum(v * (truth - mean) ** 2)), np.finfo(float).tiny)

    def error_of(Z: Array) -> float:
        return float(np.sum(v * (np.where(hidden, Z, 0.0) - truth) ** 2)) / base

    Z = fill_from_neighbours(seen, seen, w)
    error, rounds = error_of(Z), list[tuple[float | None, float]]()
    grid: Any = _STRENGTHS if settings.filter.needs_noise else [None]
    nearby = range(0, len(grid), 2)
    for _ in range(max_iter):
        parts = Components.fit(Z, w, settings)
        if parts is None:
            break
        tried: list[tuple[float, int, float, Array]] = []
        for i in nearby:
            change = complete(parts.smoother(grid[i]), Z, missing) - Z
            for relaxation in _RELAXATIONS:
                there = Z + relaxation * change
                tried.append((error_of(there), i, relaxation, there))
        new, best, relaxation, there = min(tried, key=lambda t: (t[0], -t[1]))
        if rounds and new > (1.0 - _WORTH) * error:
            break
        error, Z = new, there
        rounds.append((grid[best], relaxation))
        nearby = range(max(0, best - 1), min(len(grid), best + 2))
    guess = np.where(hidden, Z - mean, 0.0)
    cross, size = (np.sum(v * guess * other, axis=0) for other in (truth - mean, guess))
    trust = _trust(cross, size, base, hidden.sum(axis=0))
    # one factor for all columns is less optimistic when choices are compared
    common = float(np.clip(cross.sum() / max(size.sum(), np.finfo(float).tiny), 0.0, 1.0))
    residual = mean + common * guess - truth
    return replace(
        trial, rounds=tuple(rounds), trust=trust, residual=residual,
        error=float(np.sum(v * residual**2)) / base,
        expected=float(np.sum(v * (mean + trust * guess - truth) ** 2)) / base,
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
    order = np.argsort(d2, kind="stable")
    total = np.cumsum((w[i] * w[j])[order])
    return float(np.sqrt(d2[order][np.searchsorted(total, 0.5 * total[-1])]))
