"""Kernel ridge regression beside scikit-learn: time, memory, accuracy untuned, and intervals.

Time and memory of a fit with a given kernel and penalty are measured in fresh processes. On
tables, scikit-learn's `KernelRidge` is tuned: kernel (`rbf` or `laplacian`), `alpha` and `gamma`,
40 settings, by cross-validation on 1,000 standardised rows (3,000 of all of California) with
standardised targets, and then fitted to all training rows. mercer runs as it comes. A million
points in the plane are compared with the transforms and FFTs that Fourier features need, and with
the exact fit at 3,000 points. Intervals are those of the jackknife+: kernel and penalty are chosen
on some rows, and the intervals come from others, as their guarantee asks; choosing on the same rows
is reported beside.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import fft
from sklearn import datasets as sk
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge as Peer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import mercer as mc
from benchmarks._harness import DATA, Array, Contender, Key, Settings, data, race, threads
from benchmarks._process import measured
from benchmarks._report import Outcome, Row, at_least, at_most
from mercer.engine import fourier_features
from mercer.methods.machines._ridge_fourier import kernel_error

TITLE = "Kernel ridge regression"
NEEDS = (
    "california_housing.npz",
    "covtype_100k.npz",
    "uci_keggundirected.npz",
    "clustering_benchmark.npz",
)

TIME = "time over scikit-learn's"
MEMORY = "peak memory over scikit-learn's"
UNTUNED, TUNED, TREES = "R^2, mercer untuned", "R^2, scikit-learn tuned", "R^2, gradient boosting"
ABOVE = "R^2 of mercer untuned less that of scikit-learn tuned"
OVER = "time over that of the transforms and FFTs"
ERROR = "largest difference of predictions from the exact fit"
COVERED = "share of new targets in 90 % intervals"
SAME = "the same, kernel and penalty chosen on the same rows"
SHORT = "standard errors by which the share exceeds 0.9"

COVERAGE = 0.9
GRID = {
    "regressor__kernelridge__kernel": ["rbf", "laplacian"],
    "regressor__kernelridge__alpha": [1e-3, 1e-2, 1e-1, 1.0],
    "regressor__kernelridge__gamma": [0.003, 0.01, 0.03, 0.1, 0.3],
}
_TUNED_ON = 1_000
_THREADED = 12_000  # rows: OpenBLAS 0.3.31 crashes on several threads at 16,512


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    _run_memory(settings.size(10_000, 400), settings, outcome)
    _run_plane(settings, outcome)
    _run_california(settings, outcome)
    _run_tables(settings, outcome)
    _run_intervals(settings, outcome)
    return outcome


# --- time and memory ------------------------------------------------------------------------------


def _run_memory(n: int, settings: Settings, outcome: Outcome) -> None:
    case = f"fit to {n:,} rows, d = 10, Gaussian"
    found: dict[str, list[Any]] = {"mercer": [], "scikit-learn": []}
    for _ in range(settings.size(3, 1)):
        for library, runs in found.items():
            print(f"ridge: {case}, {library}", file=sys.stderr, flush=True)
            runs.append(measured(make_fit, n=n, library=library))
    if errors := [one for runs in found.values() for one in runs if isinstance(one, str)]:
        outcome.notes.append(f"{case}: {errors[0]}")
        return
    for library, runs in found.items():
        seconds = sorted(run.seconds for run in runs)
        outcome.rows.append(
            Row(case, library, seconds[0], seconds[len(seconds) // 2], len(seconds))
        )
    (time, memory), (peer_time, peer_memory) = (
        (min(run.seconds for run in runs), min(run.bytes for run in runs))
        for runs in found.values()
    )
    values = {TIME: time / peer_time, MEMORY: memory / peer_memory}
    outcome.add_figures(case, values, {TIME: at_most(1.0), MEMORY: at_most(0.5)})


def make_fit(n: int, library: str) -> Contender:
    """A fit of kernel ridge regression by one of the libraries."""
    gamma, penalty = 0.05, 0.1
    model: Any = Peer(alpha=penalty, kernel="rbf", gamma=gamma)
    if library == "mercer":
        kernel = mc.Gaussian.from_gamma(gamma)
        model = mc.KernelRidge(kernel, penalty=penalty, fit_intercept=False)
    X, _, A = data(n, 10, "float64")
    model.fit(X[:300], A[:300, 0])
    return lambda: model.fit(X, A[:, 0])


# --- a million points in the plane ----------------------------------------------------------------


def _run_plane(settings: Settings, outcome: Outcome) -> None:
    kernel, penalty = mc.Gaussian(0.05), 0.1
    X, y = _waves(settings.size(1_000_000, 20_000), seed=0)
    model = mc.KernelRidge(kernel, penalty=penalty, solver="fourier").fit(X, y)
    case = f"{len(y):,} points in the plane, length scale 0.05 of the radius"
    ours, theirs = Key("", "mercer"), Key("", "transforms and FFTs")
    error = kernel_error(penalty, len(y))
    features = fourier_features(kernel.program, X, error, forced=True)
    assert features is not None
    contenders: dict[Key, Callable[[], Any]] = {
        ours: lambda: mc.KernelRidge(kernel, penalty=penalty, solver="fourier").fit(X, y),
        theirs: partial(_needed, features.grid, X, y, model.n_iter_),
    }
    raced = race(case, contenders, settings)
    outcome.add_rows(case, raced, ours)
    outcome.add_notes(case, raced)
    outcome.notes.append(
        f"{case}: {model.n_iter_} iterations on {' x '.join(map(str, features.grid.weights.shape))}"
        f" modes, relative duality gap {model.certificate_.relative_gap:.1e}"
    )
    ratio = raced.timings[ours].minimum / raced.timings[theirs].minimum
    outcome.add_figures(case, {OVER: ratio}, {OVER: at_most(1.5)})
    X, y = _waves(settings.size(3_000, 300), seed=1)
    new = np.clip(_waves(2_000, seed=2)[0], X.min(axis=0), X.max(axis=0))
    exact, fourier = (
        mc.KernelRidge(kernel, penalty=penalty, solver=solver).fit(X, y).predict(new)
        for solver in ("cholesky", "fourier")
    )
    error = float(np.abs(exact - fourier).max())
    outcome.add_figures(f"{len(y):,} points in the plane", {ERROR: error}, {ERROR: at_most(1e-6)})


def _waves(n: int, seed: int) -> tuple[Array, Array]:
    """Points of the square of radius 1, and a function of them with noise of variance 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    y = np.sin(8.0 * X[:, 0]) * np.cos(11.0 * X[:, 1] + 3.0 * X[:, 0])
    return X, y + np.sqrt(0.1) * rng.normal(size=n)


def _needed(grid: Any, X: Array, y: Array, iterations: int) -> None:
    """One transform to twice the grid, two FFTs per iteration, and one transform back."""
    import finufft

    shape = grid.weights.shape
    columns = [np.ascontiguousarray(c) for c in ((X - grid.centre) * (2 * np.pi / grid.period)).T]
    twice = tuple(2 * size - 1 for size in shape)
    plan = finufft.Plan(1, twice, eps=grid.accuracy, isign=-1, nthreads=threads())
    plan.setpts(*columns)
    modes = plan.execute(1.0 + 1j * y)
    fast = [fft.next_fast_len(size, real=True) for size in twice]
    half = np.zeros((*fast[:-1], fast[-1] // 2 + 1), dtype=complex)
    for _ in range(iterations):
        fft.rfftn(fft.irfftn(half, s=fast))
    plan = finufft.Plan(2, shape, eps=grid.accuracy, isign=1, nthreads=threads())
    plan.setpts(*columns)
    plan.execute(np.ascontiguousarray(modes[tuple(slice(0, size) for size in shape)]))


# --- tables ---------------------------------------------------------------------------------------


def _run_california(settings: Settings, outcome: Outcome) -> None:
    X, y = _california()
    n = settings.size(len(y), 400)
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    split = train_test_split(X[rows], y[rows], test_size=0.2, random_state=0)
    case = f"california housing, {len(split[2]):,} rows"
    values, seconds = _scores(*split, tuned_on=3 * _TUNED_ON)
    for name, taken in seconds.items():
        outcome.rows.append(Row(case, name, taken, taken, 1))
    outcome.add_figures(case, values, {ABOVE: at_least(0.0)})


def _run_tables(settings: Settings, outcome: Outcome) -> None:
    """At most 1,500 training rows of six tables, the mean of three splits each."""
    above = []
    for name, table in TABLES.items():
        X, y = table()
        scores = []
        for seed in range(settings.size(3, 1)):
            print(f"ridge: {name}, split {seed}", file=sys.stderr, flush=True)
            rows = np.random.default_rng(seed).permutation(len(y))[: settings.size(5_500, 200)]
            size = min(settings.size(1_500, 150), int(0.75 * len(rows)))
            split = train_test_split(X[rows], y[rows], train_size=size, random_state=seed)
            scores.append(_scores(*split)[0])
        values = {key: float(np.mean([score[key] for score in scores])) for key in scores[0]}
        above.append(values[ABOVE])
        outcome.add_figures(f"{name}, {size:,} rows", values, {})
    bars = {ABOVE: at_least(0.0)}
    outcome.add_figures("mean of six tables", {ABOVE: float(np.mean(above))}, bars)


def _scores(
    X: Array, Z: Array, y: Array, z: Array, tuned_on: int = _TUNED_ON
) -> tuple[dict[str, float], dict[str, float]]:
    """R^2 on new rows Z, z; seconds of a fit, choices included."""
    model = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), Peer()), transformer=StandardScaler()
    )
    search = GridSearchCV(model, GRID, cv=3, n_jobs=threads())

    def tuned() -> Any:
        search.fit(X[:tuned_on], y[:tuned_on])
        with threadpool_limits(1 if len(y) > _THREADED else None, "blas"):
            return search.best_estimator_.fit(X, y)

    values, seconds = {}, {}
    for name, label, fit in (
        ("mercer", UNTUNED, lambda: mc.KernelRidge().fit(X, y)),
        ("scikit-learn, grid search", TUNED, tuned),
        ("HistGradientBoosting", TREES, lambda: HistGradientBoostingRegressor().fit(X, y)),
    ):
        start = time.perf_counter()
        fitted = fit()
        seconds[name] = time.perf_counter() - start
        values[label] = float(fitted.score(Z, z))
    values[ABOVE] = values[UNTUNED] - values[TUNED]
    return values, seconds


def _california() -> tuple[Array, Array]:
    table = np.load(DATA / "california_housing.npz")["data"]
    return table[:, :-1], table[:, -1]


def _diabetes() -> tuple[Array, Array]:
    X, y = sk.load_diabetes(return_X_y=True)
    return X, y


def _wine() -> tuple[Array, Array]:
    X, _ = sk.load_wine(return_X_y=True)
    return X[:, 1:], X[:, 0]


def _covertype() -> tuple[Array, Array]:
    X = np.load(DATA / "covtype_100k.npz")["num"].astype(float)
    return X[:, 1:], X[:, 0]


def _kegg() -> tuple[Array, Array]:
    z = np.load(DATA / "uci_keggundirected.npz")
    return z["X"].astype(float), z["y"].astype(float).ravel()


def _yeast() -> tuple[Array, Array]:
    X = np.load(DATA / "clustering_benchmark.npz")["uci_yeast_X"]
    return X[:, 1:], X[:, 0]


TABLES: dict[str, Callable[[], tuple[Array, Array]]] = {
    "california housing": _california,
    "diabetes": _diabetes,
    "wine (alcohol)": _wine,
    "covertype (elevation)": _covertype,
    "KEGG": _kegg,
    "yeast (first column)": _yeast,
}


# --- intervals ------------------------------------------------------------------------------------


def _run_intervals(settings: Settings, outcome: Outcome) -> None:
    for name in ("california housing", "diabetes", "covertype (elevation)"):
        X, y = TABLES[name]()
        fixed, same = [], []
        for seed in range(settings.size(5, 1)):
            rows = np.random.default_rng(seed).permutation(len(y))[: settings.size(1_500, 120)]
            first, second, new = np.array_split(rows, 3)
            chosen = mc.KernelRidge(scale_columns="std").fit(X[first], y[first])
            model = mc.KernelRidge(chosen.kernel_, penalty=chosen.penalty_)
            Z = chosen.scaler_.transform(X)
            fixed += _inside(model.fit(Z[second], y[second]), Z[new], y[new])
            both = np.concatenate([first, second])
            same += _inside(mc.KernelRidge().fit(X[both], y[both]), X[new], y[new])
        error = float(np.sqrt(COVERAGE * (1.0 - COVERAGE) / len(fixed)))
        share = float(np.mean(fixed))
        values = {COVERED: share, SHORT: (share - COVERAGE) / error, SAME: float(np.mean(same))}
        case = f"intervals, {name}, {len(second):,} rows, {len(fixed):,} new targets"
        outcome.add_figures(case, values, {SHORT: at_least(-2.0)})


def _inside(model: mc.KernelRidge, X: Array, y: Array) -> list[bool]:
    ends = model.predict_interval(X, COVERAGE)
    return list((ends[:, 0] <= y) & (y <= ends[:, 1]))
