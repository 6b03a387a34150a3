"""Clusters: adjusted Rand index beside scikit-learn, untuned and with equal tuning; false clusters.

Untuned: the defaults on planar and on UCI sets (scikit-learn's MeanShift from bin seeds above 1,000
rows). Tuned: every method gets twelve settings on the planar sets, and the best of them is chosen
by the true labels, which shows what it could do. Columns are standardised, and rows that the truth
calls noise are left out. Clouds: how often one normal cloud is split, which is what the critical
value of `significant_modes` is for.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn import cluster as peer
from sklearn.metrics import adjusted_rand_score

import mercer as mc
from benchmarks._harness import DATA, Array, Settings, threads
from benchmarks._report import Outcome, Row, at_least

TITLE = "Clustering: adjusted Rand index untuned and tuned, and false clusters"
NEEDS = ("clustering_benchmark.npz",)

SETS = (
    "a1", "a2", "a3", "aggregation", "compound", "d31", "flame", "jain", "pathbased", "r15", "s1",
    "s2", "s3", "s4", "spiral", "unbalance", "engytime", "lsun", "target", "twodiamonds", "wingnut",
)  # fmt: skip
UCI = ("ecoli", "glass", "ionosphere", "sonar", "wdbc", "wine", "yeast")
MEAN = "mean over the planar sets, best of twelve settings"
OURS, PEERS = "mercer MeanShift", ("sklearn HDBSCAN", "sklearn MeanShift")
LEAD = "mercer minus the better of HDBSCAN and MeanShift"
ONE = "share of draws with one cluster"
CLOUDS = [(n, d) for n in (200, 1000, 5000) for d in (1, 2, 5, 10, 20)]
_DRAWS = 50
_FILE = DATA / "clustering_benchmark.npz"
_SETTINGS = 12

Labels = Callable[[Array], Array]


def run(settings: Settings) -> Outcome:
    """One figure for each method and set, and their means."""
    outcome = Outcome(TITLE)
    if not _FILE.exists():
        outcome.notes.append("left out: the data sets are not here")
        return outcome
    _run_untuned("planar", SETS[: settings.size(len(SETS), 2)], outcome)
    _run_untuned("UCI", [f"uci_{name}" for name in UCI[: settings.size(len(UCI), 2)]], outcome)
    _run_clouds(outcome, settings)
    _run_tuned(SETS[: settings.size(len(SETS), 2)], outcome)
    return outcome


def _run_untuned(kind: str, names: Sequence[str], outcome: Outcome) -> None:
    """The defaults of all methods; ours must be at least as good on average."""
    scores: dict[str, list[float]] = {}
    for name in names:
        print(f"clustering, untuned: {name}", file=sys.stderr, flush=True)
        X, y = _load(name)
        for method, model in (
            (OURS, mc.MeanShift()),
            (PEERS[0], peer.HDBSCAN(copy=True)),
            (PEERS[1], peer.MeanShift(bin_seeding=len(X) > 1000, n_jobs=threads())),
        ):
            found = _score(_fit(model), X, y)
            scores.setdefault(method, []).append(found)
            outcome.add_figures(f"{name}, untuned", {method: found}, {})
    means = {method: float(np.mean(values)) for method, values in scores.items()}
    means[LEAD] = means[OURS] - max(means[method] for method in PEERS)
    outcome.add_figures(f"mean over the {kind} sets, untuned", means, {LEAD: at_least(0.0)})


def _run_clouds(outcome: Outcome, settings: Settings) -> None:
    """One cloud is one cluster, in 95 % of the draws."""
    draws = settings.size(_DRAWS, 2)
    clouds: list[tuple[str, int, int]] = [("normal", n, d) for n, d in CLOUDS]
    clouds += [("long normal", n, d) for n, d in CLOUDS if d > 1]
    clouds += [("uniform", n, d) for n, d in CLOUDS if d <= 5]
    for kind, n, d in clouds:
        n = settings.size(n, 200)
        print(f"clustering: {kind} cloud, {n} x {d}", file=sys.stderr, flush=True)
        single = [
            len(mc.methods.significant_modes(_cloud(kind, n, d, i))) == 1 for i in range(draws)
        ]
        bars = {} if settings.quick else {ONE: at_least(0.95)}
        outcome.add_figures(f"one {kind} cloud, {n:,} x {d}", {ONE: float(np.mean(single))}, bars)


def _cloud(kind: str, n: int, d: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.uniform(size=(n, d))
    widths = np.geomspace(1.0, 0.1, d) if kind == "long normal" else 1.0
    return rng.normal(size=(n, d)) * widths


def _run_tuned(names: Sequence[str], outcome: Outcome) -> None:
    """The best of twelve settings."""
    scores: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    for name in names:
        print(f"clustering, tuned: {name}", file=sys.stderr, flush=True)
        X, y = _load(name)
        for method, candidates in _methods(X).items():
            start = time.perf_counter()
            found = [_score(labels, X, y) for labels in candidates]
            seconds[method] = seconds.get(method, 0.0) + time.perf_counter() - start
            scores.setdefault(method, []).append(max(found))
            outcome.add_figures(name, {method: max(found)}, {})
    for method, values in scores.items():
        outcome.add_figures(MEAN, {method: float(np.mean(values))}, {})
        outcome.rows.append(Row("all planar sets", method, seconds[method], seconds[method], 1))


def _load(name: str) -> tuple[Array, Array]:
    with np.load(_FILE) as file:
        X, y = file[f"{name}_X"].astype(float), file[f"{name}_y0"]
    X, y = X[y > 0], y[y > 0]
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0), y


def _methods(X: Array) -> dict[str, list[Labels]]:
    widths = np.geomspace(0.04, 1.0, _SETTINGS)
    return {
        OURS: [_fit(mc.MeanShift(bandwidth=float(h))) for h in widths],
        PEERS[1]: [
            _fit(peer.MeanShift(bandwidth=2.0 * float(h), bin_seeding=True, n_jobs=threads()))
            for h in widths
        ],
        "sklearn DBSCAN": [
            _fit(peer.DBSCAN(eps=float(e), min_samples=m, n_jobs=threads()))
            for m in (5, 20)
            for e in np.geomspace(0.03, 0.6, _SETTINGS // 2)
        ],
        PEERS[0]: [
            _fit(peer.HDBSCAN(min_cluster_size=size, min_samples=m, copy=True))
            for size, m in _hdbscan_settings(len(X))
        ],
    }


def _hdbscan_settings(n: int) -> Iterator[tuple[int, int | None]]:
    for size in (5, 10, 20, 40, 80, 160):
        for m in (None, 5):
            yield min(size, n // 2), m


def _fit(model: Any) -> Labels:
    return lambda X: np.asarray(model.fit(X).labels_)


def _score(labels: Labels, X: Array, y: Array) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(adjusted_rand_score(y, labels(X)))
