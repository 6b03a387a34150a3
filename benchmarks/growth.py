"""Time and peak memory from a thousand rows to ten million, and from 2 columns to 512.

Each fit is measured in a process of its own. A size that would take more than ten minutes or more
than half of the memory, by the two before, is left out. Exponents are those of the three largest
sizes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn import cluster, decomposition, kernel_approximation, kernel_ridge, linear_model, svm
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

import mercer as mc
from benchmarks._harness import Array, Contender, Settings, threads
from benchmarks._process import Measured, measured
from benchmarks._report import Outcome, Row

TITLE = "Growth of time and memory with rows and columns"

ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
EXACT = (1_000, 2_000, 4_000, 8_000, 16_000)  # rows of fits that hold the kernel matrix
COLUMNS = (2, 8, 32, 128, 512)
FEW = (200, 400)  # rows of a quick run
LANDMARKS = 500
MEMORY = "peak memory beyond the data, MB, {}"
EXPONENT = "exponent of the {}, {}"
LONGEST = 600.0  # seconds
_FLOOR = 1e6  # bytes; less is noise of the allocator


class Task(NamedTuple):
    """What is measured: the sizes of n or d, and who does it. `rows` is n where d grows."""

    letter: str
    sizes: tuple[int, ...]
    contenders: dict[str, Callable[..., Contender]]
    rows: int | None = None


def run(settings: Settings) -> Outcome:
    """Every task at all sizes, ours before the peer's."""
    outcome = Outcome(TITLE)
    for name, task in TASKS.items():
        if settings.quick:
            sizes = FEW if task.letter == "n" else task.sizes[:2]
            task = task._replace(sizes=sizes, rows=task.rows and FEW[0])
        for contender in task.contenders:
            _grow(outcome, name, task, contender)
    return outcome


def _grow(outcome: Outcome, name: str, task: Task, contender: str) -> None:
    """Measure a contender at all sizes, and fit its exponents."""
    done: dict[int, Measured] = {}
    fixed = {} if task.rows is None else {"n": task.rows}
    for size in task.sizes:
        case = f"{name}, {task.letter} = {size:,}"
        if too_much := _too_much(done, size):
            outcome.notes.append(f"{case}, {contender} left out: it would take {too_much}")
            break
        print(f"growth: {case}, {contender}", file=sys.stderr, flush=True)
        found = measured(task.contenders[contender], **fixed, **{task.letter: size})
        if isinstance(found, str):
            outcome.notes.append(f"{case}, {contender} left out: {found}")
            break
        done[size] = found
        outcome.rows.append(Row(case, contender, found.seconds, found.seconds, 1))
        outcome.add_figures(case, {MEMORY.format(contender): found.bytes / 1e6}, {})
    if len(done) > 1:
        n = list(done)[-3:]
        for quantity, k, least in (("time", 0, 1e-6), ("memory", 1, _FLOOR)):
            values = [max(float(done[size][k]), least) for size in n]
            if max(values) == least:
                continue
            slope = float(np.polyfit(np.log(n), np.log(values), 1)[0])
            label = EXPONENT.format(quantity, contender)
            outcome.add_figures(f"{name}, by {task.letter}", {label: slope}, {})


def _too_much(done: dict[int, Measured], size: int) -> str:
    """What this size would take, if that is too much, by the line through the last two."""
    if len(done) < 2:
        return ""
    (a, one), (b, two) = list(done.items())[-2:]

    def extrapolated(first: float, second: float) -> float:
        power = max(1.0, float(np.log(second / first) / np.log(b / a)))
        return second * (size / b) ** power

    seconds = extrapolated(one.seconds, two.seconds)
    memory = extrapolated(max(one.bytes, _FLOOR), max(two.bytes, _FLOOR))
    if memory > 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        return f"about {memory / 1e9:.0f} GB"
    return f"about {seconds:.0f} s" if seconds > LONGEST else ""


# --- what is measured: a small call first, then the one that is timed -----------------------------


def _on_clusters(fit: Callable[[Array, Array], Any], n: int, d: int) -> Contender:
    """`fit(X, y)` of normal points about ten centres of spread 5, and a smooth target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X += 5.0 * np.random.default_rng(1).normal(size=(10, d))[rng.integers(10, size=n)]
    y = np.sin(X[:, 0]) + rng.normal(scale=0.3, size=n)
    fit(X[:500], y[:500])
    return lambda: fit(X, y)


def make_mean_shift(n: int) -> Contender:
    """Mean shift from each of n points in the plane, the bandwidth given."""
    model = mc.MeanShift(mc.Gaussian(0.5))
    return _on_clusters(lambda X, _: model.fit(X), n, 2)


def peer_mean_shift(n: int) -> Contender:
    """The same with the flat kernel: other modes, the same task."""
    model = cluster.MeanShift(bandwidth=1.0, n_jobs=threads())
    return _on_clusters(lambda X, _: model.fit(X), n, 2)


def make_pca(n: int, d: int = 10) -> Contender:
    """Kernel PCA on 500 landmarks, 20 components, the kernel given."""
    model = mc.KernelPCA(20, kernel=mc.Gaussian(d**0.5), n_landmarks=LANDMARKS, random_state=0)
    return _on_clusters(lambda X, _: model.fit(X), n, d)


def peer_pca(n: int, d: int = 10) -> Contender:
    """Nystrom features of 500 landmarks, and their linear PCA."""
    model = make_pipeline(_nystroem(d), decomposition.PCA(20))
    return _on_clusters(lambda X, _: model.fit(X), n, d)


def make_ridge(n: int, d: int = 10) -> Contender:
    """Kernel ridge regression on 500 landmarks, kernel and penalty given."""
    kernel = mc.Gaussian(d**0.5)
    model = mc.KernelRidge(kernel, penalty=1.0, n_landmarks=LANDMARKS, random_state=0)
    return _on_clusters(model.fit, n, d)


def peer_ridge(n: int, d: int = 10) -> Contender:
    """Linear ridge regression on Nystrom features."""
    return _on_clusters(make_pipeline(_nystroem(d), linear_model.Ridge()).fit, n, d)


def _nystroem(d: int) -> kernel_approximation.Nystroem:
    return kernel_approximation.Nystroem(gamma=0.5 / d, n_components=LANDMARKS, random_state=0)


def make_mmd(n: int, d: int = 10) -> Contender:
    """A two-sample test of n rows in all, with one kernel and 200 permutations."""

    def test(X: Array, _: Array) -> Any:
        kernel, halves = mc.Gaussian(d**0.5), (X[::2], X[1::2])
        return mc.mmd_test(*halves, kernel=kernel, n_permutations=200, random_state=0)

    return _on_clusters(test, n, d)


def make_plane_mmd(n: int) -> Contender:
    """The same in the plane, where transforms replace pairs."""
    return make_mmd(n, 2)


def make_sum(n: int, d: int = 10) -> Contender:
    """A Gaussian sum over n points at n points."""
    kernel = mc.Gaussian(d**0.5)
    return _on_clusters(lambda X, y: mc.Element(kernel, X, y)(X), n, d)


def peer_sum(n: int, d: int = 10) -> Contender:
    """The kernel matrix times the coefficients."""
    return _on_clusters(lambda X, y: rbf_kernel(X, gamma=0.5 / d) @ y, n, d)


_EXACT = {"kernel": "rbf", "gamma": 0.05}


def make_exact_pca(n: int) -> Contender:
    """Kernel PCA on all rows, 20 components."""
    solver = "krylov" if n > 8_000 else None  # by default so many rows take landmarks
    model = mc.KernelPCA(20, **_EXACT, eigen_solver=solver)
    return _on_clusters(lambda X, _: model.fit(X), n, 10)


def peer_exact_pca(n: int) -> Contender:
    """The same by scikit-learn."""
    model = decomposition.KernelPCA(20, **_EXACT)
    return _on_clusters(lambda X, _: model.fit(X), n, 10)


def make_exact_ridge(n: int) -> Contender:
    """Kernel ridge regression on all rows by Cholesky, kernel and penalty given."""
    model = mc.KernelRidge(**_EXACT, penalty=1.0, scale_columns="none", solver="cholesky")
    return _on_clusters(model.fit, n, 10)


def peer_exact_ridge(n: int) -> Contender:
    """The same by scikit-learn."""
    return _on_clusters(kernel_ridge.KernelRidge(**_EXACT, alpha=1.0).fit, n, 10)


def make_svc(n: int) -> Contender:
    """A support vector classifier of the sign of the target, C = 1."""
    model = mc.SVC(**_EXACT, scale_columns="none")
    return _on_clusters(lambda X, y: model.fit(X, y > 0.0), n, 10)


def peer_svc(n: int) -> Contender:
    """The same by scikit-learn."""
    model = svm.SVC(**_EXACT, cache_size=2000)
    return _on_clusters(lambda X, y: model.fit(X, y > 0.0), n, 10)


def _both(ours: Callable[..., Contender], peer: Callable[..., Contender]) -> dict[str, Any]:
    return {"mercer": ours, "scikit-learn": peer}


TASKS = {
    "MeanShift, d = 2": Task("n", ROWS, _both(make_mean_shift, peer_mean_shift)),
    "KernelPCA, 500 landmarks, d = 10": Task("n", ROWS, _both(make_pca, peer_pca)),
    "KernelRidge, 500 landmarks, d = 10": Task("n", ROWS, _both(make_ridge, peer_ridge)),
    "mmd_test, 200 permutations, d = 2": Task("n", ROWS, {"mercer": make_plane_mmd}),
    "mmd_test, 200 permutations, d = 10": Task("n", ROWS, {"mercer": make_mmd}),
    "Gaussian sum at all points, d = 10": Task("n", ROWS, _both(make_sum, peer_sum)),
    "KernelPCA, all rows, d = 10": Task("n", EXACT, _both(make_exact_pca, peer_exact_pca)),
    "KernelRidge, all rows, d = 10": Task("n", EXACT, _both(make_exact_ridge, peer_exact_ridge)),
    "SVC, C = 1, d = 10": Task("n", EXACT, _both(make_svc, peer_svc)),
    "KernelPCA, 500 landmarks, 10,000 rows": Task("d", COLUMNS, _both(make_pca, peer_pca), 10_000),
    "KernelRidge, 500 landmarks, 10,000 rows": Task(
        "d", COLUMNS, _both(make_ridge, peer_ridge), 10_000
    ),
    "mmd_test, 200 permutations, 10,000 rows": Task("d", COLUMNS, {"mercer": make_mmd}, 10_000),
    "Gaussian sum at all points, 10,000 rows": Task(
        "d", COLUMNS, _both(make_sum, peer_sum), 10_000
    ),
}
