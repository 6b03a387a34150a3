"""How times grow with the number of rows: the same task at four sizes, beside scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import decomposition, kernel_ridge, svm
from sklearn.metrics.pairwise import rbf_kernel

import mercer as mc
from benchmarks._harness import Array, Contender, Key, Settings, race
from benchmarks._report import Outcome

TITLE = "Growth of times with the number of rows, d = 10"

SIZES = (1000, 2000, 4000, 8000)
QUICK = (100, 200)
DIM = 10
GAMMA = 0.05  # about the inverse of the mean squared distance, 2 DIM
OURS = {"kernel": "rbf", "gamma": GAMMA, "scale_columns": "none"}
PEER = {"kernel": "rbf", "gamma": GAMMA}
EXPONENT = "exponent of the time"


def run(settings: Settings) -> Outcome:
    """Every task in a race of its own: all sizes, ours and the peer's."""
    outcome = Outcome(TITLE)
    sizes = QUICK if settings.quick else SIZES
    for task, contenders in TASKS.items():
        calls: dict[Key, Contender] = {}
        for n in sizes:
            for name, call in contenders(*_rows(n)).items():
                calls[Key(f"{task}, n = {n:,}", name)] = call
        raced = race(task, calls, settings)
        outcome.add_notes(task, raced)
        for n in sizes:
            outcome.add_rows(f"{task}, n = {n:,}", raced, Key(f"{task}, n = {n:,}", "mercer"))
        for name in dict.fromkeys(key.name for key in calls):
            times = [raced.timings[Key(f"{task}, n = {n:,}", name)].minimum for n in sizes]
            slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
            outcome.add_figures(task, {f"{EXPONENT}, {name}": slope}, {})
    return outcome


def _rows(n: int) -> tuple[Array, Array, Array]:
    """Normal rows, a smooth target with noise, and its sign."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, DIM))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(scale=0.3, size=n)
    return X, y, y > 0.0


def _sum(X: Array, y: Array, _: Array) -> dict[str, Contender]:
    kernel = mc.Gaussian.from_gamma(GAMMA)
    return {
        "mercer": lambda: mc.Element(kernel, X, y)(X),
        "sklearn": lambda: rbf_kernel(X, gamma=GAMMA) @ y,
    }


def _pca(X: Array, _y: Array, _: Array) -> dict[str, Contender]:
    peer = decomposition.KernelPCA(20, **PEER)
    return {"mercer": lambda: mc.KernelPCA(20, **OURS).fit(X), "sklearn": lambda: peer.fit(X)}


def _ridge(X: Array, y: Array, _: Array) -> dict[str, Contender]:
    ours = mc.KernelRidge(**OURS, penalty=1.0)
    peer = kernel_ridge.KernelRidge(**PEER, alpha=1.0)
    return {"mercer": lambda: ours.fit(X, y), "sklearn": lambda: peer.fit(X, y)}


def _svc(X: Array, _: Array, positive: Array) -> dict[str, Contender]:
    ours, peer = mc.SVC(**OURS), svm.SVC(**PEER, cache_size=2000)
    return {"mercer": lambda: ours.fit(X, positive), "sklearn": lambda: peer.fit(X, positive)}


def _test(X: Array, _y: Array, positive: Array) -> dict[str, Contender]:
    def call() -> Any:
        return mc.mmd_test(X[positive], X[~positive], kernel="median", n_permutations=200)

    return {"mercer": call}


def _clusters(X: Array, _y: Array, _: Array) -> dict[str, Contender]:
    return {"mercer": lambda: mc.MeanShift().fit(X[:, :2])}


TASKS: dict[str, Callable[[Array, Array, Array], dict[str, Contender]]] = {
    "Gaussian sum at all rows": _sum,
    "KernelPCA, 20 components": _pca,
    "KernelRidge, given kernel and penalty": _ridge,
    "SVC, C = 1": _svc,
    "mmd_test, one kernel, 200 permutations": _test,
    "MeanShift, two columns": _clusters,
}
