"""Novelty detection: false alarms at the stated rate, and ranking beside scikit-learn's detectors.

Every detector runs with its defaults. False alarms are counted on new rows of the distribution of
the training rows. Areas under the ROC curve: training rows of one class against the others, or rows
of a table against rows with one cell moved by five standard deviations. `KernelNovelty` sees the
data as they are; its peers see standardised columns in tables, without which they miss what happens
in small columns, and pixels as they are in images. Both are figures for `KernelNovelty`, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn import datasets as sk
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

import mercer as mc
from benchmarks._harness import DATA, Array, Settings
from benchmarks._report import Outcome, Row, at_most

TITLE = "Novelty detection"
NEEDS = (
    "seeds.csv",
    "clustering_benchmark.npz",
    "covtype_100k.npz",
    "california_housing.npz",
    "mnist_small.npz",
    "usps.npz",
)

RATE = 0.05
ALARMS = "share of new clean rows that is flagged, in standard errors above 0.05"
SHARE = "share of new clean rows that is flagged"
OURS, NONE, STD = "KernelNovelty", 'scale_columns="none"', 'scale_columns="std"'
OVER_RANK = "mean rank over that of the best peer"
SEEDS = 3
_REPEATS = {100: 40, 300: 20, 1000: 8, 2000: 4, 4000: 4}
_NEW = 4000


class Task(NamedTuple):
    """Rows to learn from, rows to score, which of these are ordinary, and whether pixels."""

    name: str
    train: Array
    test: Array
    ordinary: Array
    image: bool


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    _run_false_alarms(settings, outcome)
    _run_areas(settings, outcome)
    return outcome


# --- false alarms ---------------------------------------------------------------------------------


def _run_false_alarms(settings: Settings, outcome: Outcome) -> None:
    above = []
    draws: dict[str, Callable] = {
        "normal": lambda rng, n, d: rng.normal(size=(n, d)),
        "mixed units": lambda rng, n, d: rng.standard_t(5, (n, d)) * 10.0 ** np.linspace(-3, 3, d),
    }
    for kind, draw in draws.items():
        for d in (2, 5, 20, 50)[:: settings.size(1, 2)]:
            for n in _REPEATS if not settings.quick else (60,):
                print(f"novelty: {kind}, n = {n}, d = {d}", file=sys.stderr, flush=True)
                repeats = settings.size(_REPEATS.get(n, 2), 2)
                rng = np.random.default_rng(n * d)
                shares = [_flagged(draw, rng, n, d, seed) for seed in range(repeats)]
                counted = n if n <= 2000 else n // 2  # rows from which the threshold comes
                error = np.sqrt(RATE * (1.0 - RATE) * (1.0 / counted + 1.0 / _NEW) / repeats)
                above.append(float((np.mean(shares) - RATE) / error))
                values = {SHARE: float(np.mean(shares)), ALARMS: above[-1]}
                outcome.add_figures(f"{kind}, n = {n}, d = {d}", values, {ALARMS: at_most(3.0)})
    # of independent standard errors, the mean over the cells is 0 if nothing is systematic
    mean = float(np.mean(above) * np.sqrt(len(above)))
    outcome.add_figures("all cells", {ALARMS: mean}, {ALARMS: at_most(3.0)})


def _flagged(draw: Callable, rng: Any, n: int, d: int, seed: int) -> float:
    model = mc.KernelNovelty(false_alarm_rate=RATE, random_state=seed).fit(draw(rng, n, d))
    return float(np.mean(model.predict(draw(rng, _NEW, d)) == -1))


# --- areas under the ROC curve --------------------------------------------------------------------


def _run_areas(settings: Settings, outcome: Outcome) -> None:
    areas: dict[str, dict[str, list[float]]] = {}
    images: dict[str, bool] = {}
    seconds: dict[str, float] = {}
    for seed in range(settings.size(SEEDS, 1)):
        for task in _tasks(np.random.default_rng(seed), settings):
            images[task.name] = task.image
            for label, model in _detectors(task.image):
                start = time.perf_counter()
                scores = model.fit(task.train).score_samples(task.test)
                seconds[label] = seconds.get(label, 0.0) + time.perf_counter() - start
                area = float(roc_auc_score(task.ordinary, scores))
                areas.setdefault(task.name, {}).setdefault(label, []).append(area)
    means = {
        name: {k: float(np.mean(v)) for k, v in found.items()} for name, found in areas.items()
    }
    for name, found in means.items():
        outcome.add_figures(name, {f"area, {label}": v for label, v in found.items()}, {})
    for label, spent in seconds.items():
        ratio = spent / seconds[OURS]
        outcome.rows.append(Row("all areas", label, spent, spent, 1, ratio))
    for kind, chosen in (("tables", False), ("images", True), ("all sets", None)):
        some = [found for name, found in means.items() if chosen in (None, images[name])]
        if not some:
            continue
        values = {f"mean area, {k}": float(np.mean([f[k] for f in some])) for k in some[0]}
        labels = [k for k in some[0] if k not in (NONE, STD)]
        ranks = rankdata([[-f[k] for k in labels] for f in some], axis=1).mean(axis=0)
        values |= {f"mean rank, {k}": float(r) for k, r in zip(labels, ranks, strict=True)}
        values[OVER_RANK] = float(ranks[labels.index(OURS)] / min(ranks[1:]))
        outcome.add_figures(kind, values, {OVER_RANK: at_most(0.999)})


def _detectors(image: bool) -> Iterator[tuple[str, Any]]:
    yield OURS, mc.KernelNovelty(random_state=0)
    peers: dict[str, Any] = {
        "IsolationForest": IsolationForest(random_state=0),
        "LocalOutlierFactor": LocalOutlierFactor(novelty=True),
        "OneClassSVM": OneClassSVM(),
    }
    for label, peer in peers.items():
        yield label, peer if image else make_pipeline(StandardScaler(), peer)
    yield NONE, mc.KernelNovelty(scale_columns="none", random_state=0)
    yield STD, mc.KernelNovelty(scale_columns="std", random_state=0)


def _tasks(rng: Any, settings: Settings) -> Iterator[Task]:
    """Tables and images that are here."""
    for name, load in (("iris", sk.load_iris), ("wine", sk.load_wine)):
        X, y = load(return_X_y=True)
        yield from (_classes(f"{name}, class {c}", X, y, c, rng) for c in range(3))
    cancer, y = sk.load_breast_cancer(return_X_y=True)
    yield _classes("breast cancer, benign", cancer, y, 1, rng)
    yield _cells("breast cancer, cells", cancer, rng)
    yield _cells("diabetes, cells", sk.load_diabetes().data, rng)
    X, y = sk.load_digits(return_X_y=True)
    for c in range(settings.size(10, 1)):
        yield _classes(f"digits, {c}", X, y, c, rng, image=True)
    if settings.quick or not DATA.exists():
        return
    seeds = np.loadtxt(DATA / "seeds.csv", delimiter=",", skiprows=1, usecols=range(7))
    for c in range(3):
        yield _classes(f"seeds, class {c}", seeds, np.repeat([0, 1, 2], 70), c, rng)
    file = np.load(DATA / "clustering_benchmark.npz")
    kinds = {
        "ionosphere": (1, 2),
        "sonar": (1, 2),
        "glass": (1, 2),
        "ecoli": (1, 2),
        "yeast": (1, 2),
    }
    for name, classes in kinds.items():
        X, y = file[f"uci_{name}_X"], file[f"uci_{name}_y0"]
        yield from (_classes(f"{name}, class {c}", X, y, c, rng) for c in classes)
    file = np.load(DATA / "covtype_100k.npz")
    some = rng.permutation(100_000)[:30_000]
    for c in (1, 2, 3):
        yield _classes(f"covertype, class {c}", file["num"][some], file["y"][some], c, rng)
    houses = np.load(DATA / "california_housing.npz")["data"]
    yield _cells("California, cells", houses[rng.permutation(len(houses))[:2000]], rng)
    for name in ("mnist_small", "usps"):
        file = np.load(DATA / f"{name}.npz")
        some = rng.permutation(len(file["X_train"]))[:5000]
        X, y = file["X_train"][some].reshape(5000, -1), file["y_train"][some]
        for c in (0, 4, 8):
            yield _classes(f"{name.partition('_')[0]}, {c}", X, y, c, rng, image=True)


def _classes(name: str, X: Array, y: Array, c: int, rng: Any, *, image: bool = False) -> Task:
    """Learn from 70 % of a class; score the others, and up to 700 rows of other classes."""
    own, other = rng.permutation(X[y == c]).astype(float), rng.permutation(X[y != c]).astype(float)
    n = min(int(0.7 * len(own)), 700)
    test = np.vstack([own[n : n + 700], other[:700]])
    return Task(name, own[:n], test, np.arange(len(test)) < len(own[n : n + 700]), image)


def _cells(name: str, X: Array, rng: Any) -> Task:
    """Learn from 60 % of the rows; in half of the others one cell moves by five deviations."""
    X = rng.permutation(X)
    n = int(0.6 * len(X))
    test, sd = X[n:].copy(), X[:n].std(axis=0)
    m = len(test) // 2
    j = rng.integers(X.shape[1], size=m)
    test[np.arange(m), j] += 5.0 * sd[j] * rng.choice([-1.0, 1.0], m)
    return Task(name, X[:n], test, np.arange(len(test)) >= m, image=False)
