"""`KernelSGD` with its defaults beside linear SGD on random features, and beside `SVC`.

Ten data sets of classification (1,000 rows at most), split 70 : 30 three times. One pass over the
rows, and the default of ten. The peers are scikit-learn's `SGDClassifier` on 100 features of
`Nystroem` or `RBFSampler`, with default settings, after a `StandardScaler` for the tables and with
pixels between 0 and 1 or -1 and 1. Only gamma="scale" is given to `RBFSampler`, in place of 1.
mercer's `SVC` is an exact fit with the same kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets as sk
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mercer as mc
from benchmarks._harness import DATA, Array, Settings
from benchmarks._report import Outcome, at_least
from mercer.estimators import KernelSGD

TITLE = "Stochastic subgradients in a kernel's space"
NEEDS = ("usps.npz", "mnist_small.npz", "covtype_100k.npz", "clustering_benchmark.npz")

SVC = "mercer SVC"
MEAN = "mean over the sets"
BEHIND = "share of right classes, KernelSGD less {}"


def run(settings: Settings) -> Outcome:
    """Shares of right classes on held-out rows, the means of three splits."""
    outcome = Outcome(TITLE)
    cases = list(data_sets(settings.size(1_000, 150)))
    found = {name: _scores(X, y, settings.size(3, 1)) for name, X, y in cases}
    for name, scores in found.items():
        outcome.add_figures(name, scores, {})
    means = {m: float(np.mean([s[m] for s in found.values()])) for m in contenders(False)}
    ours, best = means["KernelSGD"], max(v for m, v in means.items() if m.startswith("sklearn"))
    means[BEHIND.format(SVC)] = ours - means[SVC]
    means[BEHIND.format("the best peer")] = ours - best
    bars = {BEHIND.format(SVC): at_least(-0.02), BEHIND.format("the best peer"): at_least(0.0)}
    outcome.add_figures(MEAN, means, bars)
    return outcome


def data_sets(n: int) -> Iterator[tuple[str, Array, Array]]:
    """Names, at most n rows, labels."""
    for name in ("digits", "wine", "breast_cancer"):
        X, y = getattr(sk, f"load_{name}")(return_X_y=True)
        rows = slice(n if name == "digits" else None)  # the others are sorted by class
        yield name, X[rows] / (16.0 if name == "digits" else 1.0), y[rows]
    for name, scale in (("usps", 1000.0), ("mnist_small", 255.0)):
        z = np.load(DATA / f"{name}.npz")
        yield name, z["X_train"][:n].reshape(n, -1) / scale, z["y_train"][:n]
    z = np.load(DATA / "covtype_100k.npz")
    columns = [z["num"][:n].astype(float), np.eye(4)[z["wilderness"][:n] - 1]]
    yield "covtype", np.hstack(columns), z["y"][:n]
    z = np.load(DATA / "clustering_benchmark.npz")
    for name in ("ionosphere", "sonar", "yeast", "glass"):
        yield name, z[f"uci_{name}_X"].astype(float), z[f"uci_{name}_y0"]


def contenders(image: bool) -> dict[str, Callable[[int], Any]]:
    """Models by their names, from a seed; images are not standardised."""
    scale = FunctionTransformer if image else StandardScaler

    def peer(features: Any, seed: int) -> Any:
        return make_pipeline(scale(), features, SGDClassifier(random_state=seed))

    return {
        SVC: lambda _: mc.SVC(),
        "KernelSGD": lambda seed: KernelSGD(random_state=seed),
        "KernelSGD, one pass": lambda seed: KernelSGD(max_iter=1, random_state=seed),
        "KernelSGD, one pass, squared margin": lambda seed: KernelSGD(
            loss="squared_margin", max_iter=1, random_state=seed
        ),
        "KernelSGD, budget 100": lambda seed: KernelSGD(budget=100, random_state=seed),
        "sklearn Nystroem, SGD": lambda seed: peer(Nystroem(random_state=seed), seed),
        "sklearn RBFSampler, SGD": lambda seed: peer(
            RBFSampler(gamma="scale", random_state=seed), seed
        ),
    }


def _scores(X: Array, y: Array, splits: int) -> dict[str, float]:
    found: dict[str, list[float]] = {name: [] for name in contenders(False)}
    for seed in range(splits):
        train, test, known, right = train_test_split(X, y, test_size=0.3, random_state=seed)
        for name, make in contenders(image=X.shape[1] >= 64).items():
            found[name].append(make(seed).fit(train, known).score(test, right))
    return {name: float(np.mean(scores)) for name, scores in found.items()}
