"""Random relabellings, sign flips and wild bootstrap weights; p-values from them.

A p-value is (b + 1) / (m + 1), where b of m random statistics are at least as large as the observed
one. The observed data count as one of the draws: that makes the test exact for every m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer._array import Array, frozen, positive
from mercer._config import get_options
from mercer._random import as_generator
from mercer._threads import map_threads
from mercer.engine import pieces
from mercer.exceptions import InputError

_RIDGE = 0.01  # of correlations: neighbouring bandwidths are nearly the same test
_SMALLEST_SKEWNESS = 0.05  # below it a gamma distribution is practically normal
_MANY = 1 << 12  # rows: fewer are shuffled in less time than a generator is made
_NUMBERS = 1 << 20  # random numbers that are sorted at once
TIE = 1e-5  # of the spread of the statistics; they are sums of products in float32


def seeded(random_state: Any) -> tuple[int, np.random.Generator]:
    """A seed that repeats the test, and its generator; an integer is its own seed."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state), as_generator(random_state)
    seed = int(as_generator(random_state).integers(2**32))
    return seed, np.random.default_rng(seed)


def shuffled(
    labels: Array, n_draws: int, rng: np.random.Generator, blocks: Blocks | None = None
) -> Array:
    """The labels in row 0, and then `n_draws` random permutations, shape (1 + n_draws, n).

    With `blocks`, labels move only between rows of the same block.
    """
    out = np.repeat(labels[None], n_draws + 1, axis=0)
    if blocks is None:
        rng.permuted(out[1:], axis=1, out=out[1:])
        return out
    for at in pieces(n_draws, max(1, _NUMBERS // len(labels))):
        numbers = rng.random((at.stop - at.start, len(labels)))  # between blocks, whose order stays
        order = np.argsort(blocks.index + numbers, axis=1)
        out[1 + at.start : 1 + at.stop, blocks.order] = labels[order]
    return out


def relabelled(sizes: tuple[int, ...], n_draws: int, rng: np.random.Generator) -> Array:
    """Which sample each row belongs to: as given in row 0, then `n_draws` times at random.

    If there are many rows, every draw has its own generator, and they are drawn on all threads.
    """
    n, labels = sum(sizes), np.arange(len(sizes), dtype=np.int8 if len(sizes) < 128 else np.int32)
    if n < _MANY:
        return shuffled(np.repeat(labels, sizes), n_draws, rng)
    out = np.empty((n_draws + 1, n), dtype=labels.dtype)
    out[0] = np.repeat(labels, sizes)
    generators = rng.spawn(n_draws)

    def draw(i: int) -> None:
        two = len(sizes) == 2
        own = generators[i]
        out[i + 1] = random_subset(n, sizes[1], own) if two else own.permuted(out[0])

    map_threads(draw, range(n_draws))
    return out


def random_subset(n: int, size: int, rng: np.random.Generator) -> Array:
    """Whether each of n rows is in a random set of `size` rows, all such sets equally likely.

    Each row is put in at random, and then rows chosen at random are put in or taken out until the
    size is right. No step prefers one row to another, so no set of that size is preferred to
    another. This is ten times as fast as a shuffle.
    """
    numbers = rng.integers(0, 2**32, size=-(-n // 4), dtype=np.uint32).view(np.uint8)[:n]
    inside = numbers < round(256 * size / n)
    surplus = int(np.count_nonzero(inside)) - size
    rows = np.flatnonzero(inside == (surplus > 0))
    inside[rng.choice(rows, abs(surplus), replace=False, shuffle=False)] = surplus < 0
    return inside


class Blocks:
    """Groups of rows, numbered from 0: rows may be exchanged within their block only."""

    def __init__(self, index: Array) -> None:
        self.index = index
        self.sizes = np.bincount(index)
        self.order = np.argsort(index, kind="stable")
        self.rows: list[Array] = np.split(self.order, np.cumsum(self.sizes)[:-1])

    @classmethod
    def of(cls, names: Any, n: int) -> Blocks | None:
        """The blocks with these names, one for each row; None without names, or for one block."""
        if names is None:
            return None
        listed = isinstance(names, list | tuple)  # NumPy would turn 1 and NaN in a list into text
        found = np.asarray(names, dtype=object) if listed else np.asarray(names)
        if found.shape != (n,):
            raise InputError(
                f"blocks must name the block of each of the {n} rows, got {found.shape}"
            )
        if any(map(_is_missing, found)) if found.dtype == object else np.any(found != found):
            raise InputError("blocks has missing names; give each row the name of its block")
        try:
            _, index = np.unique(found, return_inverse=True)
        except TypeError:
            kinds = sorted({type(name).__name__ for name in found})
            raise InputError(
                f"blocks mixes {' and '.join(kinds)}; use names of one type, for instance text"
            ) from None
        return cls(index) if index.max(initial=0) > 0 else None

    @classmethod
    def one(cls, n: int) -> Blocks:
        """All rows in one block."""
        return cls(np.zeros(n, dtype=np.intp))

    def sums(self, values: Array) -> Array:
        """Sums of values (n, ...) over the rows of each block."""
        if len(self.sizes) == 1:
            return np.asarray(values.sum(axis=0, keepdims=True))
        starts = np.cumsum(self.sizes) - self.sizes
        return np.add.reduceat(values[self.order], starts, axis=0)

    def means(self, values: Array) -> Array:
        """Means over the rows of each block."""
        return (self.sums(values).T / self.sizes).T

    def centred(self, values: Array) -> Array:
        """Values less the mean of their block."""
        means = self.means(values)
        return np.asarray(values - (means if len(means) == 1 else means[self.index]))


def _is_missing(name: Any) -> bool:
    """Whether this is None, NaN, NaT or pandas.NA, which has no truth value."""
    try:
        return name is None or bool(name != name)
    except TypeError:
        return True


def random_signs(n: int, n_draws: int, rng: np.random.Generator) -> Array:
    """Signs of n terms: ones in row 0, then random ones, shape (1 + n_draws, n)."""
    signs = rng.integers(0, 2, size=(n_draws + 1, n), dtype=np.int8)
    signs[0] = 1
    return 2 * signs - 1


def signs_of_terms(
    n: int, n_draws: int, dependence: float | None, rng: np.random.Generator
) -> Array:
    """`random_signs` of independent rows, or `wild_weights` of a time series."""
    if dependence is None:
        return random_signs(n, n_draws, rng)
    return wild_weights(n, n_draws, positive(dependence, "dependence"), rng)


def wild_weights(n: int, n_draws: int, length: float, rng: np.random.Generator) -> Array:
    """Weights of a wild bootstrap for time series: row 0 ones, then stationary processes.

    Each is a Gaussian autoregression with variance 1 and correlation exp(-lag / length), so sums
    over neighbouring times keep their dependence.
    """
    decay = float(np.exp(-1.0 / length))
    W = rng.normal(size=(n, n_draws + 1))
    for t in range(1, n):
        W[t] = decay * W[t - 1] + np.sqrt(1.0 - decay**2) * W[t]
    W[:, 0] = 1.0
    return np.ascontiguousarray(W.T, dtype=np.float32)


def in_parts(draw: Callable[[int], Array], n: int, n_draws: int, size: int) -> Iterator[Array]:
    """Yield draws in rows, some at a time; each row has n numbers of `size` bytes.

    `draw(m)` returns what was observed in row 0 and m draws. All parts but the last have an even
    number of rows, because some sums take two rows at a time.
    """
    at_once = max(1, int(get_options().working_memory * 2**20 / (4 * size * n)))
    for at in pieces(n_draws + 1, 2 * at_once):
        first = at.start == 0
        yield draw(at.stop - 1) if first else draw(at.stop - at.start)[1:]


def p_value(statistics: Array) -> float:
    """(b + 1) / (m + 1) of the statistic in place 0 among m others; ties count against it."""
    margin = TIE * float(statistics.std())
    return float(np.mean(statistics >= statistics[0] - margin))


def p_bounds(statistics: Array, errors: Any = 0.0) -> tuple[float, float]:
    """Bounds on the p-value if each statistic is wrong by at most its error.

    Statistics that differ by less than `p_value` allows for rounding count against the observed
    one in any case.
    """
    high = p_value(statistics)
    slack = (errors + np.zeros(len(statistics))) + np.ravel(errors)[0]
    if float(slack.max()) <= TIE * float(statistics.std()):
        return high, high
    above = np.sum(statistics[1:] > statistics[0] + slack[1:])
    high = max(high, float(np.mean(statistics >= statistics[0] - slack)))
    return float(above + 1) / len(statistics), high


def combined(statistics: Array, norms: Array) -> Array:
    """One statistic from those of several kernels, for each draw (columns; 0 is the observed one).

    The smaller of two p-values. The first is that of the Mahalanobis length of the vector of
    statistics, which detects differences at one scale relative to others; the second that of the
    largest statistic over `norms`, the root mean squares of the kernels, which favours small
    scales. P-values come from the first three moments over all draws, the observed one included.
    So every draw is treated alike, and the p-value of the combination stays exact. The length has
    no sign, so its p-value counts as 1 if no statistic is positive: samples that are more alike
    than by chance do not differ.

    Returns minus the logarithm of that p-value.
    """
    used = np.flatnonzero((statistics.std(axis=1) > 0) & (norms > 0))
    if used.size < 2:
        return np.asarray(statistics[used[0] if used.size else 0])
    Z = statistics[used] / statistics[used].std(axis=1, keepdims=True)
    lengths = np.einsum("kb,kb->b", Z, np.linalg.solve(np.corrcoef(Z) + _RIDGE * np.eye(len(Z)), Z))
    largest = (statistics[used] / norms[used, None]).max(axis=0)
    outward = np.where(Z.max(axis=0) > 0.0, _minus_log_p(lengths), 0.0)
    return np.asarray(np.maximum(outward, _minus_log_p(largest)))


class Drawn(NamedTuple):
    """The statistics of several kernels and draws, `combined`, and the kernel to report."""

    total: Array  # (n_draws,): the combination; 0 is the observed one
    best: int  # the kernel whose observed statistic is largest in units of its spread
    spread: float  # of the statistics of that kernel

    @classmethod
    def of(cls, statistics: Array, norms: Array) -> Drawn:
        """From what `combined` takes."""
        spread = statistics.std(axis=1)
        best = int(np.argmax(statistics[:, 0] / np.where(spread > 0, spread, np.inf)))
        return cls(combined(statistics, norms), best, float(spread[best]))

    def fields(self, kernels: Sequence[Any], errors: Any = 0.0) -> dict[str, Any]:
        """What a `TestResult` says about draws and kernels; `errors` as in `p_bounds`."""
        low, high = p_bounds(self.total, errors)
        best = self.best
        return {
            "pvalue": high,
            "pvalue_bounds": (low, high),
            "kernels": (kernels[best], *kernels[:best], *kernels[best + 1 :]),
            "n_permutations": len(self.total) - 1,
            "null_statistics": frozen(self.total),
        }


def _minus_log_p(statistics: Array) -> Array:
    """Minus the logarithms of upper tails of a gamma distribution with the same moments."""
    from scipy.stats import gamma  # slow to import

    spread = float(statistics.std())
    if spread <= TIE * float(np.abs(statistics).max()):  # all the same, but for rounding
        return np.zeros(len(statistics))
    z = (statistics - statistics.mean()) / spread
    shape = 4.0 / max(float(np.mean(z**3)), _SMALLEST_SKEWNESS) ** 2
    return -np.asarray(gamma.logsf(np.maximum(z * np.sqrt(shape) + shape, 0.0), shape))
