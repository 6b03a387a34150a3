"""Clusters of planar benchmark sets: adjusted Rand index beside scikit-learn, equal tuning.

Every method gets twelve settings, and the best of them is chosen by the true labels. This favours
all methods alike: it shows what they could do. Points that the truth calls noise are left out of
the index. Columns are standardised.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import cluster as peer
from sklearn.metrics import adjusted_rand_score

import mercer as mc
from benchmarks._harness import Array, Settings, threads
from benchmarks._report import Outcome, Row

TITLE = "Clustering planar sets: adjusted Rand index, best of twelve settings"

SETS = (
    "a1", "a2", "a3", "aggregation", "compound", "d31", "flame", "jain", "pathbased", "r15", "s1",
    "s2", "s3", "s4", "spiral", "unbalance", "engytime", "lsun", "target", "twodiamonds", "wingnut",
)  # fmt: skip
MEAN, UNTUNED = "mean over the sets", "mean over the sets, its own choice of bandwidth"
_DATA = Path(__file__).parents[2] / "shared" / "data" / "clustering_benchmark.npz"
_SETTINGS = 12

Labels = Callable[[Array], Array]


def run(settings: Settings) -> Outcome:
    """One figure for each method and set, and their means."""
    outcome = Outcome(TITLE)
    if not _DATA.exists():
        outcome.notes.append("left out: the data sets are not here")
        return outcome
    scores: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    for name in SETS[: settings.size(len(SETS), 2)]:
        print(f"clustering: {name}", file=sys.stderr, flush=True)
        X, y = _load(name)
        for method, candidates in _methods(X).items():
            start = time.perf_counter()
            found = [_score(labels, X, y) for labels in candidates]
            seconds[method] = seconds.get(method, 0.0) + time.perf_counter() - start
            scores.setdefault(method, []).append(max(found))
            outcome.add_figures(name, {f"{method}": max(found)}, {})
    for method, values in scores.items():
        outcome.add_figures(MEAN, {method: float(np.mean(values))}, {})
        outcome.rows.append(Row("all sets", method, seconds[method], seconds[method], 1))
    return outcome


def _load(name: str) -> tuple[Array, Array]:
    with np.load(_DATA) as file:
        X, y = file[f"{name}_X"].astype(float), file[f"{name}_y0"]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def _methods(X: Array) -> dict[str, list[Labels]]:
    widths = np.geomspace(0.04, 1.0, _SETTINGS)
    return {
        "mercer MeanShift": [_fit(mc.MeanShift(bandwidth=float(h))) for h in widths],
        "mercer MeanShift, untuned": [_fit(mc.MeanShift())],
        'mercer MeanShift, "stable"': [_fit(mc.MeanShift(bandwidth="stable"))],
        "sklearn MeanShift": [
            _fit(peer.MeanShift(bandwidth=2.0 * float(h), bin_seeding=True, n_jobs=threads()))
            for h in widths
        ],
        "sklearn DBSCAN": [
            _fit(peer.DBSCAN(eps=float(e), min_samples=m, n_jobs=threads()))
            for m in (5, 20)
            for e in np.geomspace(0.03, 0.6, _SETTINGS // 2)
        ],
        "sklearn HDBSCAN": [
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
        found = labels(X)
    counted = y > 0
    return float(adjusted_rand_score(y[counted], found[counted]))
