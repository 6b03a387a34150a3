"""What imputation leaves open, chosen on observed entries that are hidden."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.kernels import Gaussian, Kernel
from mercer.methods.imputation._rounds import Move, Settings, Trial, try_out
from mercer.methods.pca._filters import Filter

_ROWS = 400  # on which choices are tried
_FACTORS = (1.0, 0.25, 4.0)  # of the median squared distance
_SHARE, _LARGEST_SHARE = 0.1, 0.3  # of the observed entries that are hidden
_WANTED = 200  # hidden entries, where the larger share is not too much


@dataclass(frozen=True, eq=False)
class Choice:
    """The units of columns, the kernel, the rounds, and what their result is worth."""

    offset: Array = field(repr=False)
    scale: Array = field(repr=False)
    settings: Settings | None
    moves: tuple[Move, ...]
    trust: Array = field(repr=False)
    error: float  # on hidden entries, over that of column means
    expected: float = float("nan")  # the same with the trust


def choose(
    X: Array,
    w: Array,
    kernel: Kernel | None,
    filter: Filter,  # noqa: A002
    n_components: float | None,
    scale_columns: str,
    n_landmarks: int | None,
    max_iter: int,
    rng: np.random.Generator,
) -> Choice:
    """Try units first, then length scales, each with the rounds that suit it."""
    units = _units(X, w, kernel, scale_columns)
    some = np.arange(len(X))
    if len(X) > _ROWS:
        some = np.sort(rng.choice(len(X), _ROWS, replace=False))
    hidden = _hidden(~np.isnan(X[some]), rng)
    seed = int(rng.integers(2**31))
    best: tuple[float, Choice] | None = None
    for offset, scale in units:
        T = (X[some] - offset) / scale
        length = _median_distance(np.where(hidden, np.nan, T), w[some])
        if length == 0.0 or not hidden.any():
            continue
        k = Gaussian(length) if kernel is None else kernel
        settings = Settings(k, filter, n_components, None, seed)
        found = try_out(T, w[some], hidden, settings, max_iter)
        cost = found.error
        if len(units) > 1:  # in units of the data, times in those of each column
            gap, spread = found.residual * scale, units[0][1]
            v = w[some, None]
            cost = float(np.sum(v * gap**2)) * float(np.sum(v * (gap / spread) ** 2))
        if best is None or cost < best[0]:
            best = cost, _choice(offset, scale, settings, found)
    if best is None:
        offset, scale = units[0]
        return Choice(offset, scale, None, (), np.zeros_like(scale), float("nan"))
    chosen = best[1]
    if kernel is None:
        chosen = _other_lengths(X[some], w[some], hidden, chosen, max_iter)
    assert chosen.settings is not None
    return replace(chosen, settings=replace(chosen.settings, n_landmarks=n_landmarks))


def _choice(offset: Array, scale: Array, settings: Settings, found: Trial) -> Choice:
    return Choice(offset, scale, settings, found.moves, found.trust, found.error, found.expected)


def _other_lengths(X: Array, w: Array, hidden: Array, chosen: Choice, max_iter: int) -> Choice:
    """The best of the length scales, for units that have been chosen."""
    first = chosen.settings
    assert first is not None
    assert isinstance(first.kernel, Gaussian)
    T = (X - chosen.offset) / chosen.scale
    for factor in _FACTORS[1:]:
        k = Gaussian(first.kernel.length_scale * float(np.sqrt(factor)))
        settings = replace(first, kernel=k)
        found = try_out(T, w, hidden, settings, max_iter)
        if found.error < chosen.error:
            chosen = _choice(chosen.offset, chosen.scale, settings, found)
    return chosen


def _units(
    X: Array, w: Array, kernel: Kernel | None, scale_columns: str
) -> list[tuple[Array, Array]]:
    """Offsets and scales of columns to be tried: standardised ones first."""
    if kernel is not None:
        return [(np.zeros(X.shape[1]), np.ones(X.shape[1]))]
    seen = ~np.isnan(X)
    mass = w @ seen
    mean = (w @ np.where(seen, X, 0.0)) / mass
    spread = np.sqrt((w @ np.where(seen, X - mean, 0.0) ** 2) / mass)
    floor = 1e-12 * np.abs(mean)  # below: rounding of a constant column
    spread = np.where(spread > floor, spread, 1.0)
    own = mean, spread
    alike = mean, np.full_like(spread, np.sqrt(np.mean(spread**2)))
    return {"auto": [own, alike], "std": [own], "none": [alike]}[scale_columns]


def _hidden(seen: Array, rng: np.random.Generator) -> Array:
    """Entries to hide: every row keeps one, every column two."""
    share = np.clip(_WANTED / max(int(seen.sum()), 1), _SHARE, _LARGEST_SHARE)
    hidden = seen & (rng.random(seen.shape) < share)
    hidden[~(seen & ~hidden).any(axis=1)] = False
    hidden[:, (seen & ~hidden).sum(axis=0) < 2] = False
    return np.asarray(hidden)


def _median_distance(T: Array, w: Array) -> float:
    """The median distance between rows, from the columns that both have; 0 where there is none."""
    seen = (~np.isnan(T)).astype(float)
    Z = np.where(np.isnan(T), 0.0, T)
    squares = (Z**2) @ seen.T
    shared = seen @ seen.T
    D: Any = np.maximum(squares + squares.T - 2.0 * Z @ Z.T, 0.0)
    i, j = np.nonzero(np.triu((shared > 0.0) & (1e-12 * (squares + squares.T) < D), k=1))
    if not i.size:
        return 0.0
    d2 = D[i, j] * (T.shape[1] / shared[i, j])
    order = np.argsort(d2, kind="stable")
    total = np.cumsum((w[i] * w[j])[order])
    return float(np.sqrt(d2[order][np.searchsorted(total, 0.5 * total[-1])]))
