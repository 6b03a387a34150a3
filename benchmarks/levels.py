"""Levels: how often tests reject where the null hypothesis is true, over 2,000 data sets.

The p-values of permutation tests are exact for every sample size, so their samples are small, which
is quick. Approximate null distributions are checked at 500 rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

import mercer as mc
from benchmarks._harness import Array, Settings
from benchmarks._replications import PValue, rejections
from benchmarks._report import Outcome, at_most
from mercer.methods import coco_test, dhsic_test

TITLE = "Levels of the kernel tests: rejections of true null hypotheses, 2,000 data sets"
REPETITIONS = 2000
LEVELS = (0.01, 0.05, 0.10)
FACTOR = 1.5  # an approximate null may reject this many times as often as it should

Rng = np.random.Generator


def run(settings: Settings) -> Outcome:
    outcome = Outcome(TITLE)
    shares = rejections("levels", {**EXACT, **APPROXIMATE}, REPETITIONS, LEVELS, settings)
    for name, rejected in shares.items():
        for level, share in zip(LEVELS, rejected, strict=True):
            bound = float(stats.binom.ppf(0.999, REPETITIONS, level)) / REPETITIONS
            bar = at_most(bound if name in EXACT else FACTOR * level)
            outcome.add_figures(name, {f"level {level}": share}, {f"level {level}": bar})
    outcome.notes.append(
        "exact tests: bars are 99.9 % quantiles of the binomial law; others: 1.5 times the level"
    )
    return outcome


def _normal(rng: Rng, n: int, d: int = 2) -> Array:
    return rng.normal(size=(n, d))


def _with_ties(rng: Rng, n: int) -> Array:
    return rng.poisson(2.0, size=(n, 1)).astype(float)


def _heavy_tails(rng: Rng, n: int) -> Array:
    return rng.standard_cauchy(size=(n, 2))


def _series(rng: Rng, n: int, memory: float = 0.5) -> Array:
    """An autoregression with variance 1, shape (n, 1)."""
    x = rng.normal(size=n)
    for t in range(1, n):
        x[t] = memory * x[t - 1] + np.sqrt(1.0 - memory**2) * x[t]
    return x[:, None]


def _p(test: Any, *data: Any, rng: Rng, n_permutations: int = 199, **options: Any) -> float:
    seed = int(rng.integers(2**32))
    return float(test(*data, n_permutations=n_permutations, random_state=seed, **options).pvalue)


def _paired(rng: Rng) -> float:
    """Rows of a pair share a location, and can be swapped."""
    shared = _normal(rng, 20)
    X, Y = (shared + 0.5 * _normal(rng, 20) for _ in range(2))
    return _p(mc.mmd_test, X, Y, rng=rng, paired=True)


def _blocks(rng: Rng) -> float:
    """Two sites with different means and different shares of the samples."""
    site = np.repeat([0, 1, 0, 1], [15, 5, 5, 15])
    Z = _normal(rng, 40) + 2.0 * site[:, None]
    return _p(mc.mmd_test, Z[:20], Z[20:], rng=rng, blocks=site)


def _hsic_blocks(rng: Rng) -> float:
    """Both variables depend on the site, and are independent within it."""
    site = np.repeat([0, 1], 15)
    X, Y = (_normal(rng, 30, 1) + 2.0 * site[:, None] for _ in range(2))
    return _p(mc.hsic_test, X, Y, rng=rng, blocks=site)


def _weighted(rng: Rng) -> float:
    """Weights that depend on the rows, alike in both samples."""
    X, Y = _normal(rng, 20), _normal(rng, 25)
    weights = [np.exp(Z[:, 0]) for Z in (X, Y)]
    return _p(mc.mmd_test, X, Y, rng=rng, weights=weights)


EXACT: dict[str, PValue] = {
    "mmd, default, normal, 20 and 25 rows": lambda r: _p(
        mc.mmd_test, _normal(r, 20), _normal(r, 25), rng=r
    ),
    "mmd, default, ties, 20 and 20 rows": lambda r: _p(
        mc.mmd_test, _with_ties(r, 20), _with_ties(r, 20), rng=r
    ),
    "mmd, default, Cauchy, 20 and 40 rows": lambda r: _p(
        mc.mmd_test, _heavy_tails(r, 20), _heavy_tails(r, 40), rng=r
    ),
    "mmd, one kernel, normal, 20 and 25 rows": lambda r: _p(
        mc.mmd_test, _normal(r, 20), _normal(r, 25), rng=r, kernel="median"
    ),
    "mmd, selection, normal, 30 and 30 rows": lambda r: _p(
        mc.mmd_test, _normal(r, 30), _normal(r, 30), rng=r, selection=0.5
    ),
    "mmd, three samples, normal, 15, 20, 10 rows": lambda r: _p(
        mc.mmd_test, _normal(r, 15), _normal(r, 20), _normal(r, 10), rng=r
    ),
    "mmd, pairs, normal, 20 pairs": _paired,
    "mmd, blocks, two sites, 40 rows": _blocks,
    "mmd, weights, normal, 20 and 25 rows": _weighted,
    "hsic, default, normal, 30 rows": lambda r: _p(
        mc.hsic_test, _normal(r, 30), _normal(r, 30, 1), rng=r
    ),
    "hsic, default, ties, 30 rows": lambda r: _p(
        mc.hsic_test, _with_ties(r, 30), _with_ties(r, 30), rng=r
    ),
    "hsic, one pair, Cauchy, 30 rows": lambda r: _p(
        mc.hsic_test, _heavy_tails(r, 30), _heavy_tails(r, 30), rng=r, kernel="median"
    ),
    "hsic, blocks, two sites, 30 rows": _hsic_blocks,
    "dhsic, three variables, 20 rows": lambda r: _p(
        dhsic_test, *(_normal(r, 20, 1) for _ in range(3)), rng=r, n_permutations=99
    ),
    "coco, default, normal, 25 rows": lambda r: _p(
        coco_test, _normal(r, 25, 1), _normal(r, 25, 1), rng=r, n_permutations=99
    ),
}


def _minus(X: Array) -> Array:
    return -X


N = 500
MEMORY = 20.0  # `dependence` for series whose correlation is 0.5 ** lag

APPROXIMATE: dict[str, PValue] = {
    "mmd, gamma, normal, d = 2, 500 and 500 rows": lambda r: float(
        mc.mmd_test(_normal(r, N), _normal(r, N), kernel="median", null="gamma").pvalue
    ),
    "mmd, spectral, normal, d = 2, 500 and 500 rows": lambda r: float(
        mc.mmd_test(_normal(r, N), _normal(r, N), kernel="median", null="spectral").pvalue
    ),
    "hsic, gamma, normal, d = 1, 500 rows": lambda r: float(
        mc.hsic_test(_normal(r, N, 1), _normal(r, N, 1), kernel="median", null="gamma").pvalue
    ),
    "hsic, spectral, normal, d = 1, 500 rows": lambda r: float(
        mc.hsic_test(_normal(r, N, 1), _normal(r, N, 1), kernel="median", null="spectral").pvalue
    ),
    "mmd, series, 500 and 500 rows": lambda r: _p(
        mc.mmd_test, _series(r, N), _series(r, N), rng=r, dependence=MEMORY
    ),
    "hsic, series, 500 rows": lambda r: _p(
        mc.hsic_test, _series(r, N), _series(r, N), rng=r, dependence=MEMORY
    ),
    "ksd, default, normal, d = 1, 500 rows": lambda r: _p(
        mc.ksd_test, _normal(r, N, 1), _minus, rng=r
    ),
    "ksd, default, gamma of shape 5, 500 rows": lambda r: _p(
        mc.ksd_test, r.gamma(5.0, size=(N, 1)), stats.gamma(5.0), rng=r
    ),
    "ksd, series, 500 rows": lambda r: _p(
        mc.ksd_test, _series(r, N), _minus, rng=r, dependence=MEMORY
    ),
    "ksd, default, normal, d = 5, 500 rows": lambda r: _p(
        mc.ksd_test, _normal(r, N, 5), _minus, rng=r
    ),
}
