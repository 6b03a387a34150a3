"""Mean shift on blobs of unit width, length scale 0.7, every point a start, beside scikit-learn's.

scikit-learn's MeanShift has a flat kernel: of radius 1.4, which has the variance of the Gaussian.
Its time for every point as a seed is found from 200 and 600 random seeds, and scaled: it is linear
in their number. Ours is never scaled. It stops at steps of a thousandth of its bandwidth, so with
bin seeds ours does the same; elsewhere ours stops at a millionth.

In many columns both climb from the same seeds, ours with a flat kernel and with a Gaussian of half
the radius, and ours labels rows by basins, which takes an ascent from each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import cluster as peer
from sklearn.metrics import adjusted_rand_score

import mercer as mc
from benchmarks._harness import Array, Key, Settings, race, threads
from benchmarks._limit import Limit
from benchmarks._report import Outcome, Row, at_least, at_most
from mercer.engine import Dense, fields
from mercer.methods.modes._density_sum import DensitySum

TITLE = "Mean shift"

LENGTH, RADIUS = 0.7, 1.4
SEEDS = (200, 600)  # from which the time of the peer is scaled
FASTER = "times faster than sklearn, every point a seed (its time scaled from 200 and 600)"
FASTER_NATIVE = f"{FASTER}, ours without the spectral engine"
FASTER_BINS = "times faster than sklearn, bin seeds and nearest-centre labels"
SECONDS, CLUSTERS, RAND = "seconds", "clusters", "adjusted Rand index"
SAME, PROVED = "share of labels as by the plain ascent", "share of starts retired in a basin"
FALL = "largest fall of the density along a trajectory, over its maximum"
STEPS = "steps per start"
SHARE = "limit for all pairs over our time (above 1: pairs out of reach are left out)"

SLOWER = "times slower than sklearn, same seeds"
SUMS = "time in kernel sums of that size"
MANY_COLUMNS = ((100, 546), (500, 100), (2000, 50), (2000, 1000))

MANY_BARS = {
    SECONDS: at_most(12.0),
    RAND: at_least(0.85),
    CLUSTERS: at_most(12),
    SAME: at_least(0.998),
    FALL: at_most(1e-9),
}


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    _run_peer(settings, outcome)
    _run_many(settings.size(1_000_000, 20_000), 2, MANY_BARS, outcome, settings)
    for n in (100_000, 1_000_000):
        _run_many(settings.size(n, 5_000), 3, {}, outcome, settings)
    _run_wide(settings.size(20_000, 1_000), outcome, settings)
    for n, d in MANY_COLUMNS:
        _run_columns(settings.size(n, 100), settings.size(d, 50), outcome, settings)
    _run_in_sums(settings.size(100_000, 2_000), outcome)
    return outcome


def _run_peer(settings: Settings, outcome: Outcome) -> None:
    """20,000 points in the plane: every point a seed, and bin seeds."""
    n = settings.size(20_000, 2_000)
    X, y = _blobs(n, 2)
    psi = mc.mean_embedding(mc.Gaussian(LENGTH), X)
    bins = peer.get_bin_seeds(X, RADIUS)
    rng = np.random.default_rng(0)
    every, binned = "every point a seed", f"{len(bins)} bin seeds, nearest-centre labels"
    contenders: dict[Key, Callable[[], Any]] = {
        Key(every, "mercer"): lambda: mc.mean_shift(psi),
        Key(every, "mercer, native"): _with_engine("native", lambda: mc.mean_shift(psi)),
        Key(binned, "mercer"): lambda: mc.MeanShift(
            mc.Gaussian(LENGTH), seeds=bins, labels="nearest", tol=1e-3
        ).fit(X),
        Key(binned, "sklearn"): lambda: peer.MeanShift(
            bandwidth=RADIUS, bin_seeding=True, n_jobs=threads()
        ).fit(X),
    }
    for count in SEEDS:
        rows = rng.choice(n, min(count, n), replace=False)
        contenders[Key("some", f"{count} seeds")] = _peer_fit(X, X[rows])
    labels: dict[Key, Array] = {}

    def inspect(key: Key, found: Any) -> None:
        labels[key] = np.asarray(found.labels_ if hasattr(found, "labels_") else found.labels)

    raced = race("mean shift", contenders, settings, inspect)
    outcome.add_notes("mean shift", raced)
    times = {key: timing.minimum for key, timing in raced.timings.items()}
    few, more = (times[Key("some", f"{count} seeds")] for count in SEEDS)
    per_seed = (more - few) / (SEEDS[1] - SEEDS[0])
    scaled = few + per_seed * (n - SEEDS[0])
    case = f"{n:,} points, d = 2"
    outcome.add_rows(f"{case}, {every}", raced, Key(every, "mercer"))
    outcome.add_rows(f"{case}, {binned}", raced, Key(binned, "mercer"))
    outcome.rows.append(
        Row(f"{case}, {every}", "sklearn, scaled", scaled, scaled, 1,
            scaled / times[Key(every, "mercer")])
    )  # fmt: skip
    values = {
        FASTER: scaled / times[Key(every, "mercer")],
        FASTER_NATIVE: scaled / times[Key(every, "mercer, native")],
        FASTER_BINS: times[Key(binned, "sklearn")] / times[Key(binned, "mercer")],
        f"{RAND}, mercer": adjusted_rand_score(y, labels[Key(every, "mercer")]),
        f"{RAND}, sklearn from bin seeds": adjusted_rand_score(y, labels[Key(binned, "sklearn")]),
    }
    bars = {FASTER: at_least(100), FASTER_NATIVE: at_least(30), FASTER_BINS: at_least(5)}
    outcome.add_figures(case, values, bars)


def _run_many(n: int, d: int, bars: dict[str, Any], outcome: Outcome, settings: Settings) -> None:
    case = f"{n:,} points, d = {d}, every point a seed"
    print(f"mean shift: {case}", file=sys.stderr, flush=True)
    X, y = _blobs(n, d)
    psi = mc.mean_embedding(mc.Gaussian(LENGTH), X)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        found = mc.mean_shift(psi)
        seconds.append(time.perf_counter() - start)
    outcome.rows.append(Row(case, "mercer", min(seconds), max(seconds), len(seconds)))
    values = {
        SECONDS: min(seconds),
        RAND: adjusted_rand_score(y, found.labels),
        CLUSTERS: float(len(found)),
        STEPS: float(found.n_iter.mean()),
        PROVED: float(np.mean([s is mc.Status.IN_BASIN for s in found.status])),
    }
    if bars:
        rows = np.random.default_rng(1).choice(n, settings.size(500, 50), replace=False)
        ends = _plain_ascent(X, X[rows])
        apart = np.linalg.norm(found.points[found.labels[rows]] - ends, axis=1)
        values[SAME] = float(np.mean(apart < 1e-3 * LENGTH))
        values[FALL] = _largest_fall(psi, X[rows])
    outcome.add_figures(case, values, bars)


def _run_wide(n: int, outcome: Outcome, settings: Settings) -> None:
    """Ten dimensions: the native engine, at what share of the limit of its sums."""
    case = f"{n:,} points, d = 10, every point a seed"
    print(f"mean shift: {case}", file=sys.stderr, flush=True)
    for length in (LENGTH, 2.0):
        X, y = _blobs(n, 10)
        limit = Limit("float64", settings)
        limit.observe(race("limit", limit.contenders(), settings))
        psi = mc.mean_embedding(mc.Gaussian(length), X)
        start = time.perf_counter()
        found = mc.mean_shift(psi)
        seconds = time.perf_counter() - start
        pairs = int((found.n_iter + 1).sum()) * n
        least = limit.seconds(pairs, 10, 12)
        label = f"{case}, length scale {length}"
        outcome.rows.append(Row(label, "mercer", seconds, seconds, 1))
        values = {
            SECONDS: seconds,
            SHARE: None if least is None else least / seconds,
            STEPS: float(found.n_iter.mean()),
            RAND: adjusted_rand_score(y, found.labels),
            CLUSTERS: float(len(found)),
        }
        outcome.add_figures(label, values, {})


def _run_columns(n: int, d: int, outcome: Outcome, settings: Settings) -> None:
    """Five blobs in many columns, at most 200 seeds."""
    rng = np.random.default_rng(0)
    X = 3.0 * rng.normal(size=(5, d))[rng.integers(0, 5, n)] + rng.normal(size=(n, d))
    radius, seeds = 1.2 * float(np.sqrt(2.0 * d)), X[:200]  # rows of a blob are sqrt(2 d) apart
    case = f"{n:,} points, d = {d}, {len(seeds)} seeds"
    contenders: dict[Key, Callable[[], Any]] = {
        Key(case, "mercer, flat"): _ours(X, seeds, "flat", radius),
        Key(case, "mercer, Gaussian of half the radius"): _ours(X, seeds, "gaussian", radius / 2),
        Key(case, "sklearn"): _peer_fit(X, seeds, radius),
    }
    raced = race("mean shift in many columns", contenders, settings)
    outcome.add_notes("mean shift in many columns", raced)
    outcome.add_rows(case, raced, Key(case, "sklearn"))
    times = {key.name: timing.minimum for key, timing in raced.timings.items()}
    for name in ("mercer, flat", "mercer, Gaussian of half the radius"):
        values = {f"{SLOWER}, {name}": times[name] / times["sklearn"]}
        outcome.add_figures(case, values, dict.fromkeys(values, at_most(3.0)))


def _run_in_sums(n: int, outcome: Outcome) -> None:
    """Ten columns: the default, and a given bandwidth, in units of one kernel sum."""
    X, y = _blobs(n, 10)
    case = f"{n:,} points, d = 10"
    print(f"mean shift: {case}", file=sys.stderr, flush=True)
    psi = mc.mean_embedding(mc.Gaussian(2.0), X)
    seconds: dict[str, float] = {}
    calls: dict[str, Callable[[], Any]] = {
        "one sum": lambda: psi(X),
        "default": lambda: mc.MeanShift().fit(X),
        "bandwidth 2": lambda: mc.MeanShift(bandwidth=2.0).fit(X),
    }
    for name, call in calls.items():
        start = time.perf_counter()
        found = call()
        seconds[name] = time.perf_counter() - start
        outcome.rows.append(Row(case, name, seconds[name], seconds[name], 1))
        if name == "one sum":
            continue
        values = {SUMS: seconds[name] / seconds["one sum"]}
        values |= {RAND: adjusted_rand_score(y, found.labels_)}
        outcome.add_figures(f"{case}, {name}", values, {SUMS: at_most(10.0)})


def _ours(X: Array, seeds: Array, kernel: str, bandwidth: float) -> Callable[[], Any]:
    return lambda: mc.MeanShift(kernel, bandwidth=bandwidth, seeds=seeds).fit(X)


def _plain_ascent(X: Array, starts: Array, tol: float = 1e-7) -> Array:
    """x <- sum w_i x_i / sum w_i to the end, sums to rounding."""
    program, a = mc.Gaussian(LENGTH).program, Dense(np.ones((len(X), 1)))
    Z, active = starts.copy(), np.arange(len(starts))
    for _ in range(3000):
        f = fields(program, X, Z[active], a, order=1)
        step = LENGTH**2 * f.gradient[:, 0] / f.value  # type: ignore[index]
        Z[active] += step
        active = active[np.linalg.norm(step, axis=1) > tol * LENGTH]
        if not active.size:
            break
    return Z


def _largest_fall(psi: Any, starts: Array) -> float:
    """Along the library's own steps, densities to rounding."""
    density, Z = DensitySum.of(psi), starts.copy()
    before, fall, top = psi(Z), 0.0, 0.0
    for _ in range(60):
        Z = Z + density.at(Z).fixed_point_step
        after = psi(Z)
        fall, top = max(fall, float((before - after).max())), max(top, float(after.max()))
        before = after
    return fall / top


def _peer_fit(X: Array, seeds: Array, radius: float = RADIUS) -> Callable[[], Any]:
    return lambda: peer.MeanShift(bandwidth=radius, seeds=seeds, n_jobs=threads()).fit(X)


def _with_engine(engine: str, call: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with mc.options(engine=engine):
            return call()

    return run


def _blobs(n: int, d: int) -> tuple[Array, Array]:
    """Ten blobs of unit width."""
    from sklearn.datasets import make_blobs

    X, y = make_blobs(n, centers=10, n_features=d, cluster_std=1.0, random_state=0)
    return X, y
