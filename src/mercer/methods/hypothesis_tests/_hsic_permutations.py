"""Random permutations of the rows of one variable, and the effect size of HSIC."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array
from mercer._progress import tracked
from mercer._threads import map_threads, stop_if_interrupted
from mercer.engine import pieces
from mercer.methods.hypothesis_tests._quadratic_forms import variance_of_mean
from mercer.methods.hypothesis_tests._resampling import Blocks, shuffled

Draw = Callable[[], Array]  # returns some permutations, shape (some, n)

_NUMBERS = 1 << 15  # of the permutations that one task draws: some milliseconds of work
_TASKS = 64  # between two reports of progress


def permutations(
    n: int, n_draws: int, rng: np.random.Generator, blocks: Blocks | None
) -> list[Draw]:
    """The identity and then random permutations, some from each of the functions returned.

    Each function has its own seed. Threads may call them in any order, and the permutations do
    not depend on the number of threads.
    """
    parts = list(pieces(n_draws, max(1, _NUMBERS // n)))
    seeds = rng.bit_generator.seed_seq.spawn(len(parts))  # type: ignore[attr-defined]
    return [partial(_drawn, n, at, seed, blocks) for at, seed in zip(parts, seeds, strict=True)]


def _drawn(n: int, at: slice, seed: np.random.SeedSequence, blocks: Blocks | None) -> Array:
    rows = np.arange(n, dtype=np.int32)
    drawn = shuffled(rows, at.stop - at.start, np.random.default_rng(seed), blocks)
    return drawn if at.start == 0 else drawn[1:]


def over_permutations(statistics: Callable[[Array], Array], draws: list[Draw]) -> Array:
    """Statistics of all permutations, from a function of some of them; on the thread pool."""

    def job(draw: Draw) -> Array:
        stop_if_interrupted()
        return statistics(draw())

    parts: list[Array] = []
    for batch in tracked(list(pieces(len(draws), _TASKS)), "permutations"):
        parts += map_threads(job, draws[batch])
    return np.concatenate(parts)


class Effect(NamedTuple):
    """The effect size of one pair of kernels."""

    value: float  # unbiased HSIC
    ratio: float  # over `unit`
    variance: float  # of that ratio
    unit: float  # sqrt(HSIC(X, X) HSIC(Y, Y))

    def rescaled(self, size: float) -> Effect:
        """The same for kernels whose product is `size` times as large."""
        return self._replace(value=size * self.value, unit=size * self.unit)


def n_pairs(blocks: Blocks) -> float:
    """By what the sum over pairs of rows is divided: n (n - 3) for one block.

    It is sum_b n_b (n_b - 3), without blocks of one or two rows, which have no unbiased HSIC, and
    sum_{b != c} (n_b - 1)(n_c - 1), which unbiased covariances of blocks are divided by.
    """
    n = blocks.sizes[blocks.sizes > 1].astype(np.float64)
    pairs = np.where(n > 2, n * (n - 3), 0.0).sum() + (n - 1).sum() ** 2 - ((n - 1) ** 2).sum()
    return max(float(pairs), 1.0)  # of three rows all sums are zero


def of_chance(a: Array, b: Array, blocks: Blocks) -> Any:
    """The mean of tr(K~ P L~ P') over permutations within blocks.

    sum_b A_b B_b / (n_b - 1), with the traces A_b and B_b of K~ and L~ in each block (last axis).
    """
    return (a / np.maximum(blocks.sizes - 1, 1)) @ b.T


def leverage(blocks: Blocks) -> Array:
    """n_b / (n_b - 2) for each row: the factor of pairs i = j in unbiased HSIC.

    It is zero for blocks of one or two rows, whose part of tr(K~ P L~ P') is the same in all draws.
    """
    n = blocks.sizes
    return np.asarray(np.where(n > 2, n / np.maximum(n - 2, 1), 0.0)[blocks.index])


def standardised(
    xy: Array,
    xx: Array,
    yy: Array,
    p: Array,
    q: Array,
    blocks: Blocks | None = None,
    weights: Array | None = None,
) -> Effect:
    """Unbiased HSIC, and over that of each variable with itself.

    Arguments are the sums of k~_ij l~_ij, k~_ij^2 and l~_ij^2 over j, and the diagonals p and q.
    The variance comes from the influence of each row, 2 mean_j k~_ij l~_ij. In blocks of n_b rows
    that sum to zero it is n_b / (n_b - 1) times as large. `weights` are those of a wild bootstrap
    for a time series.
    """
    n, rows = len(p), blocks or Blocks.one(len(p))
    pairs, factor = n_pairs(rows), leverage(rows)

    def unbiased(sums: Array, a: Array, b: Array) -> float:
        total = sums.sum() - of_chance(rows.sums(a), rows.sums(b), rows)
        return float(total - factor * rows.centred(a) @ rows.centred(b)) / pairs

    hxy, hxx, hyy = unbiased(xy, p, q), unbiased(xx, p, p), unbiased(yy, q, q)
    if hxx <= 0.0 or hyy <= 0.0:
        return Effect(hxy, 0.0, 0.0, 0.0)
    unit = float(np.sqrt(hxx) * np.sqrt(hyy))
    ratio = hxy / unit
    free, wider = n - len(rows.sizes), np.ones(n)
    if free < n - 1:
        wider = (rows.sizes / np.maximum(rows.sizes - 1, 1))[rows.index]
        p, q = p * np.sqrt(wider), q * np.sqrt(wider)  # and what chance adds in a block
    influence = 2.0 * (xy - p * q) / unit - ratio * ((xx - p * p) / hxx + (yy - q * q) / hyy)
    influence = (influence - influence.mean()) * np.sqrt(wider)
    influence *= n / (free * (free + 1.0)) if free > 0 else 0.0  # 1 / (n - 1) for one block
    return Effect(hxy, ratio, variance_of_mean(influence, weights), unit)
