"""Kernel PCA beside scikit-learn's on MNIST, on a hundred thousand rows, and length scales chosen.

Every figure comes from fresh processes (`python -m benchmarks.kernel_pca '{...}'`), which take
turns, so that the peak of resident memory is that of the one thing a process did (interpreter,
libraries and data included). Minima over the rounds are compared.

scikit-learn's `auto` is the dense solver for 100 components. Ours by default is block Lanczos,
whose like is `arpack`; `randomized` is less accurate, so it is reported and held to no bar. Our fit
always includes the way back, the noise level and the trust; scikit-learn's includes its inverse
only where that is said.

Length scales: `GridSearchCV` with `KernelPCA.score`, 5-fold on 60 % of the rows, over twelve length
scales from 0.1 to 300 times the median distance; then the mean squared error of
`inverse_transform(transform(Y))` on the other rows Y, for the length scale it picks over the least
of all twelve (plus 1e-6 of the variance, where all components are exact to rounding). Columns are
standardised. The number is the mean over five splits.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

import mercer as mc
from benchmarks._harness import DATA, Array, Settings
from benchmarks._process import status
from benchmarks._report import Outcome, Row, at_least, at_most

TITLE = "Kernel PCA: time and memory"
NEEDS = ("mnist_small.npz", "california_housing.npz", "covtype_100k.npz", "uci_keggundirected.npz")

SAME = "time of fit over that of sklearn, same kind of eigen-solver"
AUTO = "times faster to fit than sklearn auto"
TRANSFORM, INVERSE = "seconds to transform 1,000 rows", "seconds to transform 1,000 rows back"
PEAK = "peak resident memory, GB"
SECONDS, DENOISED = "seconds to fit", "seconds to denoise all rows"
NEGLECTED = "share of the scatter that the landmarks do not see"
ERROR = "error of denoising over that of the noisy rows"
OVER_ALL = "time of fit over that of all components"
EIGENVALUES = "largest relative error of the eigenvalues"
PICKED = "held-out error of the length scale picked over the least, {}"

POINTS, COMPONENTS, QUERIES, ROUNDS = 5000, 100, 1000, 3
ROWS, COLUMNS, LANDMARKS = 100_000, 50, (500, 1000)
CHECKED = 20_000  # rows of which leading eigenvalues are found exactly
SPLITS = 5
LENGTHS = np.geomspace(0.1, 300.0, 12)
MODELS: dict[str, dict[str, Any]] = {
    "2 components": {"n_components": 2},
    "10 components": {"n_components": 10},
    "all components": {},
    "10 components, FixedPoint": {"n_components": 10, "inverse": mc.FixedPoint()},
}
SAME_BAR, AUTO_BAR, PEAK_BAR = at_most(1.05), at_least(3.0), at_most(2.0)
_FILE = DATA / "mnist_small.npz"

CONTENDERS: dict[str, dict[str, Any]] = {
    "mercer": {"library": "mercer", "solver": None},
    "mercer, dense": {"library": "mercer", "solver": "dense"},
    "sklearn, auto": {"library": "sklearn", "solver": "auto"},
    "sklearn, dense": {"library": "sklearn", "solver": "dense"},
    "sklearn, arpack": {"library": "sklearn", "solver": "arpack"},
    "sklearn, randomized": {"library": "sklearn", "solver": "randomized"},
    "sklearn, arpack, with inverse": {"library": "sklearn", "solver": "arpack", "inverse": True},
}
LIKE = {"mercer": "sklearn, arpack", "mercer, dense": "sklearn, dense"}


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    if _FILE.exists():
        _run_fit(settings, outcome)
    else:
        outcome.notes.append("MNIST left out: the data sets are not here")
    _run_landmarks(settings, outcome)
    _run_many_rows(settings, outcome)
    _run_selection(settings, outcome)
    return outcome


def _run_fit(settings: Settings, outcome: Outcome) -> None:
    n, k = settings.size(POINTS, 600), settings.size(COMPONENTS, 20)
    order = {"n": n, "k": k, "m": settings.size(QUERIES, 100)}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    for turn in range(settings.size(ROUNDS, 1)):
        for name in list(CONTENDERS)[:: 1 if turn % 2 == 0 else -1]:
            figures = _measured(outcome, name, order | CONTENDERS[name])
            found[name] += [figures] if figures else []
    case = f"{k} components, n = {n:,}, d = 784"
    least = {
        name: {key: min(f[key] for f in figures) for key in figures[0]}
        for name, figures in found.items()
        if figures
    }
    for name, figures in least.items():
        seconds = sorted(f["fit"] for f in found[name])
        ratio = figures["fit"] / least["mercer"]["fit"] if "mercer" in least else None
        middle = seconds[len(seconds) // 2]
        outcome.rows.append(Row(f"fit, {case}", name, seconds[0], middle, len(seconds), ratio))
        keys = {TRANSFORM: "transform", INVERSE: "inverse", PEAK: "peak"}
        values = {label: figures.get(key) for label, key in keys.items()}
        if name in LIKE and LIKE[name] in least:
            values[SAME] = figures["fit"] / least[LIKE[name]]["fit"]
        if name == "mercer" and "sklearn, auto" in least:
            values[AUTO] = least["sklearn, auto"]["fit"] / figures["fit"]
        bars = {SAME: SAME_BAR} if name in LIKE else {}
        outcome.add_figures(name, values, bars | ({AUTO: AUTO_BAR} if name == "mercer" else {}))


def _run_landmarks(settings: Settings, outcome: Outcome) -> None:
    """No n x n matrix: that alone would be 80 GB."""
    n = settings.size(ROWS, 5000)
    for m in LANDMARKS:
        case = f"{n:,} rows x {COLUMNS} columns, {m} landmarks"
        found = _measured(outcome, case, {"library": "landmarks", "n": n, "m": m})
        if found:
            outcome.rows.append(Row(f"fit, {case}", "mercer", found["fit"], found["fit"], 1))
        keys = {
            SECONDS: "fit", DENOISED: "denoise", PEAK: "peak", NEGLECTED: "neglected",
            ERROR: "error",
        }  # fmt: skip
        values = {label: found.get(key) for label, key in keys.items()}
        outcome.add_figures(case, values, {PEAK: PEAK_BAR, ERROR: at_most(1.0)})


def _run_many_rows(settings: Settings, outcome: Outcome) -> None:
    """The default on many rows: as fast for ten components as for all, and accurate."""
    n = settings.size(ROWS, 12_000)
    for columns in (10, 50):
        order = {"library": "default", "n": n, "columns": columns}
        found = {k: _measured(outcome, f"default, {k}", order | {"k": k}) for k in (10, None)}
        case = f"{n:,} rows x {columns} columns, 10 components by default"
        ten, every = found[10].get("fit"), found[None].get("fit")
        values = {SECONDS: ten, PEAK: found[10].get("peak")}
        values[OVER_ALL] = ten / every if ten and every else None
        outcome.add_figures(case, values, {OVER_ALL: at_most(1.5), PEAK: PEAK_BAR})
    for name, X in _tables(settings.size(CHECKED, 10_500)).items():
        exact = mc.KernelPCA(10, eigen_solver="krylov", random_state=0).fit(X)
        found = mc.KernelPCA(10, kernel=exact.kernel_, n_landmarks=1000, random_state=0).fit(X)
        error = float(np.max(np.abs(found.eigenvalues_ / exact.eigenvalues_ - 1.0)))
        case = f"{name}, {len(X):,} rows, 10 components, 1,000 landmarks"
        outcome.add_figures(case, {EIGENVALUES: error}, {EIGENVALUES: at_most(0.03)})


def _tables(n: int) -> dict[str, Array]:
    """Rows drawn from large data sets: tables standardised, images with pixels in [0, 1]."""
    found: dict[str, Array] = {}
    for name in ("california_housing", "covtype_100k", "uci_keggundirected", "mnist_small"):
        path = DATA / f"{name}.npz"
        if path.exists():
            with np.load(path) as file:
                X = next(file[key] for key in file.files if file[key].ndim > 1)
            X = X[np.random.default_rng(0).permutation(len(X))[:n]].reshape(-1, X[0].size)
            found[name] = X / 255.0 if name == "mnist_small" else StandardScaler().fit_transform(X)
    return found


def _run_selection(settings: Settings, outcome: Outcome) -> None:
    """Whether the length scale that grid search picks is as good as the best."""
    tables = {
        name: np.asarray(getattr(datasets, f"load_{name}")().data)
        for name in ("iris", "wine", "breast_cancer", "diabetes", "digits")
    } | {"california": _tables(1000).get("california_housing", np.empty((0, 1)))}
    for name, X in tables.items():
        X = X[np.random.default_rng(0).permutation(len(X))[: settings.size(1000, 80)]]
        for label, options in MODELS.items() if len(X) else ():
            ratios = [_picked(X, options, split) for split in range(settings.size(SPLITS, 1))]
            values = {PICKED.format(label): float(np.mean(ratios))}
            bars = {} if settings.quick else dict.fromkeys(values, at_most(1.05))
            outcome.add_figures(f"{name}, {len(X):,} rows", values, bars)


def _picked(rows: Array, options: dict[str, Any], split: int) -> float:
    X, Y = train_test_split(rows, test_size=0.4, random_state=split)
    scaler = StandardScaler().fit(X)
    X, Y = scaler.transform(X), scaler.transform(Y)
    lengths = LENGTHS * mc.median_scale(X)
    model = mc.KernelPCA(kernel=mc.Gaussian(1.0), **options)
    search = GridSearchCV(model, {"kernel__length_scale": lengths}).fit(X)
    errors = []
    for length in lengths:
        model.set_params(kernel__length_scale=length).fit(X)
        gap = model.inverse_transform(model.transform(Y)) - Y
        errors.append(1e-6 + float(np.mean(gap**2)))
    return errors[search.best_index_] / min(errors)


def _measured(outcome: Outcome, name: str, order: dict[str, Any]) -> dict[str, float]:
    print(f"kernel_pca: {name}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.kernel_pca", json.dumps(order)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        outcome.notes.append(f"{name} left out: {reason}")
        return {}
    return dict(json.loads(done.stdout))


# --- what the fresh process does ------------------------------------------------------------------


def _digits(n: int, m: int) -> tuple[Array, Array, float]:
    with np.load(_FILE) as file:
        X = file["X_train"][: n + m].reshape(n + m, -1) / 255.0
    return X[:n], X[n:], mc.median_scale(X[:n], n_points=1000)


def _mercer(order: dict[str, Any]) -> dict[str, float]:
    X, Y, length = _digits(order["n"], order["m"])
    model = mc.KernelPCA(
        order["k"], kernel=mc.Gaussian(length), eigen_solver=order["solver"], random_state=0
    )
    return _used(model, X, Y, inverse=True)


def _sklearn(order: dict[str, Any]) -> dict[str, float]:
    from sklearn.decomposition import KernelPCA

    X, Y, length = _digits(order["n"], order["m"])
    inverse = order.get("inverse", False)
    model = KernelPCA(
        order["k"], kernel="rbf", gamma=1.0 / (2.0 * length**2), eigen_solver=order["solver"],
        fit_inverse_transform=inverse, random_state=0, copy_X=False, n_jobs=-1,
    )  # fmt: skip
    return _used(model, X, Y, inverse=inverse)


def _used(model: Any, X: Array, Y: Array, *, inverse: bool) -> dict[str, float]:
    found = {"fit": _timed(lambda: model.fit(X))[0]}
    found["transform"], C = _timed(lambda: model.transform(Y))
    if inverse:
        found["inverse"] = _timed(lambda: model.inverse_transform(C))[0]
    return found | {"peak": status("VmHWM") / 1e9}


def _curved(n: int, columns: int) -> tuple[Array, Array]:
    """Smooth functions of five hidden variables, and the same with noise."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n, 5))
    clean = np.tanh(hidden @ rng.normal(size=(5, 30))) @ rng.normal(size=(30, columns)) / 5.0
    return clean, clean + 0.5 * rng.normal(size=clean.shape)


def _default(order: dict[str, Any]) -> dict[str, float]:
    _, X = _curved(order["n"], order["columns"])
    seconds, _ = _timed(lambda: mc.KernelPCA(order["k"], random_state=0).fit(X))
    return {"fit": seconds, "peak": status("VmHWM") / 1e9}


def _landmarks(order: dict[str, Any]) -> dict[str, float]:
    clean, X = _curved(order["n"], COLUMNS)
    model = mc.KernelDenoiser(n_landmarks=order["m"], random_state=0)
    seconds, _ = _timed(lambda: model.fit(X))
    denoise, Z = _timed(lambda: model.transform(X))
    return {
        "fit": seconds,
        "denoise": denoise,
        "peak": status("VmHWM") / 1e9,
        "neglected": float(model.pca_.neglected_),
        "error": float(np.mean((Z - clean) ** 2) / np.mean((X - clean) ** 2)),
    }


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    _order = json.loads(sys.argv[1])
    _tasks = {
        "mercer": _mercer, "sklearn": _sklearn, "landmarks": _landmarks, "default": _default
    }  # fmt: skip
    print(json.dumps(_tasks[_order["library"]](_order)))
