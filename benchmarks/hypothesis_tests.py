"""Kernel tests beside hyppo's, and beside the products and transforms that they contain.

hyppo: `MMD` and `Hsic` with Gaussian kernels of their own median rule, permutations (`auto=False`)
on all cores. They run once to compile, and are then timed once, because they are slow. Ours has
the median rule and draws its permutations inside the timing too.

Products: the default test of two samples multiplies the matrix of draws with each kernel matrix, in
float32. The same products of random matrices are timed: the tiles on and above the diagonal,
one BLAS thread per core, or whole matrices by BLAS with all threads, whichever is faster.

Limit of the large test: its products and kernel values at the rates of `_limit.py`, float32, for
half of all pairs.

Transforms: what a million rows need, non-uniform FFTs (finufft) on the grid of frequencies that the
test itself chooses, two draws in one complex transform for two samples; for HSIC a transform of
each permuted set of pairs. Some of them are timed, and the time is scaled to all. For two samples
finufft does not sort the points: the grid fits into the cache, and so transforms are faster.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mercer as mc
from benchmarks._harness import Array, Contender, Key, PeerError, Settings, race, threads
from benchmarks._limit import Limit
from benchmarks._process import forget_peak, status
from benchmarks._report import Outcome, Row, at_least, at_most
from mercer.engine import pieces

TITLE = "Kernel tests: beside hyppo, and beside their products and transforms"

FASTER = "times faster than hyppo"
PRODUCTS = "time over its products"
LIMIT = "time over its products and kernel values"
GROWTH = "resident memory beyond the data, MB"
TRANSFORMS = "time over its transforms"

DRAWS = 200
BARS = {"MMD": at_least(200.0), "HSIC": at_least(50.0)}
LARGE, MILLION = 100_000, 1_000_000
_TILE = 512  # rows, as in mercer
_TIMED = 10  # transforms
_ACCURACY = 1e-7  # of transforms


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    _run_large(settings, outcome)
    _run_default(settings, outcome)
    _run_million(settings, outcome)
    _run_hyppo(settings, outcome)
    return outcome


def _samples(n: int, dim: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, dim)), rng.normal(size=(n, dim))


def _timed(outcome: Outcome, case: str, name: str, call: Contender, settings: Settings) -> float:
    """The best time of a call that has no rivals, after one that is not timed."""
    key = Key(case, name)
    found = race(case, {key: call}, settings)
    outcome.add_notes(case, found)
    outcome.add_rows(case, found, key)
    return found.timings[key].minimum


# --- hyppo ----------------------------------------------------------------------------------------


def _run_hyppo(settings: Settings, outcome: Outcome) -> None:
    n = settings.size(1000, 100)
    for dim in (2, 10):
        X, Y = _samples(n, dim)
        for name, test in (("MMD", mc.mmd_test), ("HSIC", mc.hsic_test)):
            case = f"{name}, {n:,} rows each, d = {dim}, {DRAWS} permutations"
            ours = _timed(outcome, case, "mercer", _ours(test, X, Y), settings)
            try:
                theirs = _hyppo(name, X, Y)
            except PeerError as error:
                outcome.notes.append(f"{case}, hyppo left out: {error}")
                outcome.add_figures(case, {FASTER: None}, {FASTER: BARS[name]})
                continue
            outcome.rows.append(Row(case, "hyppo", theirs, theirs, 1, theirs / ours))
            outcome.add_figures(case, {FASTER: theirs / ours}, {FASTER: BARS[name]})


def _ours(test: Callable[..., Any], X: Array, Y: Array, **given: Any) -> Contender:
    options = {"kernel": "median", "n_permutations": DRAWS} | given
    return lambda: test(X, Y, random_state=0, **options)


def _hyppo(name: str, X: Array, Y: Array) -> float:
    """Seconds of one call after compilation."""
    from time import perf_counter

    try:
        ksample, independence = (
            importlib.import_module(f"hyppo.{part}") for part in ("ksample", "independence")
        )
    except ImportError as error:
        raise PeerError(str(error)) from error
    test = (ksample.MMD if name == "MMD" else independence.Hsic)().test
    print(f"hypothesis_tests: hyppo {name}, d = {X.shape[1]}", flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few permutations
        test(X, Y, reps=2 * threads(), workers=threads(), auto=False)
        start = perf_counter()
        test(X, Y, reps=DRAWS, workers=threads(), auto=False)
        return perf_counter() - start


# --- products -------------------------------------------------------------------------------------


def _run_default(settings: Settings, outcome: Outcome) -> None:
    n, draws, kernels = settings.size(500, 100), settings.size(2000, 100), 20
    case = f"default MMD, {n} rows each, d = 10, {kernels} kernels, {draws:,} permutations"
    X, Y = _samples(n, 10)
    ours = Key(case, "mercer")
    contenders: dict[Key, Contender] = {
        ours: _ours(mc.mmd_test, X, Y, kernel=None, n_permutations=draws),
        Key(case, "products of tiles"): _tiles(2 * n, draws + 1, kernels),
        Key(case, "products of whole matrices"): _whole(2 * n, draws + 1, kernels),
    }
    found = race("hypothesis_tests, default", contenders, settings)
    outcome.add_notes(case, found)
    outcome.add_rows(case, found, ours)
    least = min(found.timings[key].minimum for key in list(contenders)[1:])
    ratio = found.timings[ours].minimum / least
    outcome.add_figures(case, {PRODUCTS: ratio}, {PRODUCTS: at_most(1.6)})


def _matrices(n: int, draws: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    W = rng.choice([-0.5, 0.5], size=(draws, n)).astype(np.float32)
    return W, rng.normal(size=(n, n)).astype(np.float32)


def _tiles(n: int, draws: int, kernels: int) -> Contender:
    W, K = _matrices(n, draws)
    blocks = list(pieces(n, _TILE))
    jobs = [(a, b) for a in blocks for b in blocks if a.start <= b.start] * kernels
    pool = ThreadPoolExecutor(threads())

    def call() -> None:
        with threadpool_limits(1, "blas"):
            for _ in pool.map(lambda at: W[:, at[1]] @ K[at].T, jobs):
                pass

    return call


def _whole(n: int, draws: int, kernels: int) -> Contender:
    W, K = _matrices(n, draws)
    return lambda: [W @ K for _ in range(kernels)]


def _run_large(settings: Settings, outcome: Outcome) -> None:
    """First of all, while no memory has been freed that could be used again."""
    n, dim = settings.size(LARGE, 2000), 10
    case = f"MMD, {n:,} rows, d = {dim}, {DRAWS} permutations"
    limit = Limit("float32", settings)
    rates = limit.contenders()
    raced = race("hypothesis_tests, rates", rates, settings)
    limit.observe(raced)
    X, Y = _samples(n // 2, dim)
    call = _ours(mc.mmd_test, X, Y, kernel=mc.Gaussian(4.0))
    forget_peak()
    before = status("VmRSS")
    ours = Key(case, "mercer")
    grown: list[int] = []
    found = race(
        "hypothesis_tests, large",
        {ours: call},
        settings,
        lambda _key, _result: grown.append(status("VmHWM") - before),
    )
    outcome.add_notes(case, found)
    seconds = limit.seconds(n**2 // 2, dim, DRAWS + 1)
    outcome.add_rows(case, found, ours, limit=seconds)
    values = {
        GROWTH: grown[0] / 1e6,
        LIMIT: found.timings[ours].minimum / seconds if seconds else None,
    }
    outcome.add_figures(case, values, {GROWTH: at_most(1000.0), LIMIT: at_most(1.5)})


# --- transforms -----------------------------------------------------------------------------------


def _run_million(settings: Settings, outcome: Outcome) -> None:
    n = settings.size(MILLION, 20_000)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 2))
    X, Y = Z[: n // 2], Z[n // 2 :]
    kernel = mc.Gaussian(1.0)
    _run_transforms(
        f"MMD, {n:,} rows, d = 2, {DRAWS} permutations",
        _ours(mc.mmd_test, X, Y, kernel=kernel),
        _transforms(kernel, Z, (DRAWS + 2) // 2, moved=False),
        outcome,
    )
    _run_transforms(
        f"HSIC, {n:,} rows, d = 1 and 1, {DRAWS} permutations",
        _ours(mc.hsic_test, Z[:, :1], Z[:, 1:], kernel=(kernel, kernel)),
        _transforms(kernel, Z, DRAWS + 1, moved=True),
        outcome,
    )


def _run_transforms(
    case: str, call: Contender, transforms: tuple[Contender, float], outcome: Outcome
) -> None:
    some, factor = transforms
    ours, needed = Key(case, "mercer"), Key(case, "some of the transforms")
    found = race(case, {ours: call, needed: some}, Settings(quick=True))  # two rounds
    outcome.add_notes(case, found)
    outcome.add_rows(case, found, ours)
    ratio = found.timings[ours].minimum / (factor * found.timings[needed].minimum)
    outcome.add_figures(case, {TRANSFORMS: ratio}, {TRANSFORMS: at_most(1.4)})


def _transforms(kernel: mc.Kernel, Z: Array, count: int, *, moved: bool) -> tuple[Contender, float]:
    """Some transforms of random strengths, or of moved points, and how many times that is all."""
    from mercer.engine.sums._frequency_grid import grid_for

    finufft = importlib.import_module("finufft")
    grid = grid_for(kernel.program, Z.min(axis=0), Z.max(axis=0), _ACCURACY)
    assert grid is not None
    rng = np.random.default_rng(0)
    scaled = ((Z - grid.centre) * (2.0 * np.pi / grid.period)).T
    strengths = rng.normal(size=(_TIMED, len(Z))) + 1j * rng.normal(size=(_TIMED, len(Z)))

    def plan(n_trans: int, sort: int = 2) -> Any:
        options = {"eps": _ACCURACY, "nthreads": threads(), "spread_sort": sort}
        return finufft.Plan(1, grid.weights.shape, n_trans=n_trans, **options)

    def call() -> None:
        if not moved:
            one = plan(_TIMED, sort=0)
            one.setpts(*map(np.ascontiguousarray, scaled))
            one.execute(strengths)
            return
        one = plan(1)
        for b in range(_TIMED):
            one.setpts(np.ascontiguousarray(scaled[0]), np.roll(scaled[1], b))
            one.execute(strengths[0])

    return call, count / _TIMED
