"""Time and peak memory from a thousand rows to ten million, and from 2 columns to 512.

Each fit is measured in a process of its own. Sizes that would take more than ten minutes, by the
two before, are left out. Exponents are those of the three largest sizes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import mercer as mc
from benchmarks._harness import Array, Contender, Settings
from benchmarks._process import Measured, measured
from benchmarks._report import Outcome, Row

TITLE = "Growth of time and memory with rows and columns"

ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = (2, 8, 32, 128, 512)
FEW = (200, 400)  # rows of a quick run
LANDMARKS = 500
MEMORY = "peak memory beyond the data, MB"
EXPONENT = "exponent of the {}"
LONGEST = 600.0  # seconds


def run(settings: Settings) -> Outcome:
    """Every task over rows, then over columns."""
    outcome = Outcome(TITLE)
    rows, columns = (FEW, COLUMNS[:2]) if settings.quick else (ROWS, COLUMNS)
    for task, make in BY_ROWS.items():
        _grow(outcome, task, "n", rows, partial(_by_rows, make))
    n = settings.size(10_000, 200)
    for task, make in BY_COLUMNS.items():
        _grow(outcome, f"{task}, {n:,} rows", "d", columns, partial(_by_columns, make, n))
    return outcome


def _grow(
    outcome: Outcome,
    task: str,
    letter: str,
    sizes: tuple[int, ...],
    measure: Callable[[int], Measured | str],
) -> None:
    """Measure a task at all sizes, and fit its exponents."""
    done: dict[int, Measured] = {}
    for size in sizes:
        case = f"{task}, {letter} = {size:,}"
        expected = _extrapolated(done, size)
        if expected > LONGEST:
            outcome.notes.append(f"{case} left out: it would take about {expected:.0f} s")
            break
        print(f"growth: {case}", file=sys.stderr, flush=True)
        found = measure(size)
        if isinstance(found, str):
            outcome.notes.append(f"{case}: {found}")
            break
        done[size] = found
        outcome.rows.append(Row(case, "mercer", found.seconds, found.seconds, 1))
        outcome.add_figures(case, {MEMORY: found.bytes / 1e6}, {})
    if len(done) > 1:
        largest = list(done.items())[-3:]
        for quantity, k, least in (("time", 0, 1e-6), ("memory", 1, 1e6)):
            values = [max(float(found[k]), least) for _, found in largest]
            slope = np.polyfit(np.log([size for size, _ in largest]), np.log(values), 1)[0]
            outcome.add_figures(f"{task}, by {letter}", {EXPONENT.format(quantity): slope}, {})


def _by_rows(make: Callable[..., Contender], n: int) -> Measured | str:
    return measured(make, n=n)


def _by_columns(make: Callable[..., Contender], n: int, d: int) -> Measured | str:
    return measured(make, n=n, d=d)


def _extrapolated(done: dict[int, Measured], size: int) -> float:
    """Seconds at this size on the line through the last two, in logarithms."""
    if len(done) < 2:
        return 0.0
    (a, one), (b, two) = list(done.items())[-2:]
    power = max(1.0, np.log(two.seconds / one.seconds) / np.log(b / a))
    return float(two.seconds * (size / b) ** power)


# --- what is measured -----------------------------------------------------------------------------


def make_mean_shift(n: int) -> Contender:
    """Mean shift from each of n points of ten clusters in the plane, the bandwidth given."""
    X = _clusters(n, 2)
    model = mc.MeanShift(mc.Gaussian(0.5))
    model.fit(X[:500])
    return lambda: model.fit(X)


def make_pca(n: int, d: int = 10) -> Contender:
    """Kernel PCA on 500 landmarks, 20 components, the kernel given."""
    X = _clusters(n, d)
    model = mc.KernelPCA(20, kernel=mc.Gaussian(d**0.5), n_landmarks=LANDMARKS, random_state=0)
    model.fit(X[:500])
    return lambda: model.fit(X)


def make_ridge(n: int, d: int = 10) -> Contender:
    """Kernel ridge regression on 500 landmarks, kernel and penalty given."""
    X = _clusters(n, d)
    kernel = mc.Gaussian(d**0.5)
    model = mc.KernelRidge(kernel, penalty=1.0, n_landmarks=LANDMARKS, random_state=0)
    y = np.sin(X[:, 0])
    model.fit(X[:500], y[:500])
    return lambda: model.fit(X, y)


def make_mmd(n: int) -> Contender:
    """A two-sample test with one kernel in the plane, 200 permutations of n rows."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    return _test(X, mc.Gaussian(1.0))


def make_wide_mmd(n: int, d: int = 10) -> Contender:
    """A two-sample test with one kernel in d columns, 200 permutations of n rows."""
    X = np.random.default_rng(0).normal(size=(n, d))
    return _test(X, mc.Gaussian(d**0.5))


def make_sum(n: int, d: int = 10) -> Contender:
    """A Gaussian sum over n points at n points."""
    X = _clusters(n, d)
    psi = mc.mean_embedding(mc.Gaussian(d**0.5), X)
    psi(X[:10])
    return lambda: psi(X)


def _test(X: Array, kernel: mc.Kernel) -> Contender:
    def call(rows: Array) -> Any:
        first, second = rows[::2], rows[1::2]
        return mc.mmd_test(first, second, kernel=kernel, n_permutations=200, random_state=0)

    call(X[:200])
    return lambda: call(X)


def _clusters(n: int, d: int) -> Array:
    """Normal points about ten centres of spread 5."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X += 5.0 * np.random.default_rng(1).normal(size=(10, d))[rng.integers(10, size=n)]
    return X


BY_ROWS: dict[str, Callable[..., Contender]] = {
    "MeanShift, d = 2": make_mean_shift,
    "KernelPCA, 500 landmarks, d = 10": make_pca,
    "KernelRidge, 500 landmarks, d = 10": make_ridge,
    "mmd_test, 200 permutations, d = 2": make_mmd,
    "mmd_test, 200 permutations, d = 10": make_wide_mmd,
    "Gaussian sum at all points, d = 10": make_sum,
}
BY_COLUMNS: dict[str, Callable[..., Contender]] = {
    "KernelPCA, 500 landmarks": make_pca,
    "KernelRidge, 500 landmarks": make_ridge,
    "mmd_test, 200 permutations": make_wide_mmd,
    "Gaussian sum at all points": make_sum,
}
