"""Leading eigenpairs beside scikit-learn, and conjugate gradients on a real table.

Every figure comes from a fresh process (`python -m benchmarks.linalg '{...}'`), so that the peak of
its resident memory is that of the one thing it did, interpreter, libraries and data included.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import mercer
from benchmarks._harness import DATA, Array, Settings
from benchmarks._report import Bar, Outcome, Row, at_most
from mercer import linalg

TITLE = "Eigenpairs and linear systems without the Gram matrix"
NEEDS = ("covtype_100k.npz",)

SECONDS, PEAK = "seconds", "peak resident memory, GB"
RESIDUAL = "largest |S v - lambda v| over that of sklearn"
MEMORY = "peak resident memory over that of sklearn"
TIME = "time over that of sklearn"
ITERATIONS, RELATIVE = "iterations", "relative residual"

PAIRS, POINTS, DIM = 100, 20_000, 10
ROWS = 50_000
EIGEN_BARS: Mapping[str, Bar] = {RESIDUAL: at_most(1.0), MEMORY: at_most(0.25)}
CG_BARS: Mapping[str, Bar] = {RELATIVE: at_most(1e-6), SECONDS: at_most(300), PEAK: at_most(2.0)}
COLUMNS = {"num": "ten numeric columns", "all": "all 54 columns"}
_TABLE = DATA / "covtype_100k.npz"


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    _run_eigen(settings, outcome)
    if _TABLE.exists():
        for columns, label in COLUMNS.items():
            _run_cg(columns, label, settings, outcome)
    else:
        outcome.notes.append("conjugate gradients left out: the data sets are not here")
    return outcome


def _run_eigen(settings: Settings, outcome: Outcome) -> None:
    n, k = settings.size(POINTS, 1600), settings.size(PAIRS, 10)
    case = f"{k} pairs, n = {n:,}, d = {DIM}"
    found = {
        name: _measured(outcome, name, {"task": name, "n": n, "k": k})
        for name in ("mercer", "sklearn")
    }
    ours, peer = found["mercer"], found["sklearn"]
    for name, label in (("mercer", "mercer"), ("sklearn", "sklearn KernelPCA, randomized")):
        if found[name]:
            outcome.rows.append(_row(case, label, found[name], ours))
    values = {PEAK: ours.get("peak"), "passes over the kernel": ours.get("n_iter")}
    if ours and peer:
        values |= {
            RESIDUAL: ours["residual"] / peer["residual"],
            MEMORY: ours["peak"] / peer["peak"],
            TIME: ours["seconds"] / peer["seconds"],
        }
    outcome.add_figures(case, values, EIGEN_BARS)


def _run_cg(columns: str, label: str, settings: Settings, outcome: Outcome) -> None:
    n = settings.size(ROWS, 2000)
    case = f"CG, covtype, {n:,} rows, {label}"
    found = _measured(outcome, case, {"task": "cg", "n": n, "columns": columns})
    if found:
        outcome.rows.append(_row(case, "mercer", found, found))
    keys = {SECONDS: "seconds", PEAK: "peak", RELATIVE: "residual", ITERATIONS: "n_iter"}
    outcome.add_figures(case, {name: found.get(key) for name, key in keys.items()}, CG_BARS)


def _row(case: str, name: str, found: dict[str, float], ours: dict[str, float]) -> Row:
    seconds = found["seconds"]
    ratio = seconds / ours["seconds"] if ours else None
    return Row(case, name, seconds, seconds, 1, ratio, ratio, None, found["residual"])


def _measured(outcome: Outcome, name: str, order: dict[str, Any]) -> dict[str, float]:
    print(f"linalg: {name}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.linalg", json.dumps(order)],
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


def _points(n: int) -> tuple[Array, mercer.Gaussian]:
    X = np.random.default_rng(0).standard_normal((n, DIM))
    return X, mercer.Gaussian(mercer.median_scale(X, n_points=2000))


def _mercer(order: dict[str, Any]) -> dict[str, float]:
    X, kernel = _points(order["n"])
    seconds, pairs = _timed(
        lambda: linalg.eigenpairs(kernel, X, order["k"], centred=True, random_state=0)
    )
    worst = float(pairs.residuals.max())
    return {"seconds": seconds, "peak": _peak(), "residual": worst, "n_iter": pairs.n_iter}


def _sklearn(order: dict[str, Any]) -> dict[str, float]:
    from sklearn.decomposition import KernelPCA

    X, kernel = _points(order["n"])
    model = KernelPCA(
        order["k"],
        kernel="rbf",
        gamma=kernel.gamma,
        eigen_solver="randomized",
        random_state=0,
        copy_X=False,
    )
    seconds, _ = _timed(lambda: model.fit(X))
    peak = _peak()  # before the residuals are computed
    S = linalg.GramOperator(kernel, X, centred=True)
    V, values = model.eigenvectors_, model.eigenvalues_
    worst = float(np.linalg.norm(S.matmat(V) - V * values, axis=0).max())
    return {"seconds": seconds, "peak": peak, "residual": worst}


def _cg(order: dict[str, Any]) -> dict[str, float]:
    """(K + I) a = y at the median scale, y = +1 for the second kind of forest and -1 else."""
    X, y = _covtype(order["n"], order["columns"])
    kernel = mercer.Gaussian(mercer.median_scale(X, n_points=2000))
    seconds, found = _timed(lambda: linalg.solve(kernel, X, y, 1.0, method="cg", tol=1e-6))
    result = {"residual": found.residual, "n_iter": found.n_iter}
    return {"seconds": seconds, "peak": _peak(), **result}


def _covtype(n: int, columns: str) -> tuple[Array, Array]:
    with np.load(_TABLE) as table:
        X = table["num"][:n].astype(np.float64)
        if columns == "all":
            flags = [np.eye(4)[table["wilderness"][:n] - 1], np.eye(40)[table["soil"][:n] - 1]]
            X = np.hstack([X, *flags])
        y = np.where(table["y"][:n] == 2, 1.0, -1.0)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def _peak() -> float:
    """The peak of this process in GB. Not ru_maxrss, which remembers the process before exec."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1]) / 1e9
    raise RuntimeError("VmHWM is not known here; this needs Linux")


if __name__ == "__main__":
    _order = json.loads(sys.argv[1])
    _task = {"mercer": _mercer, "sklearn": _sklearn, "cg": _cg}[_order["task"]]
    print(json.dumps(_task(_order)))
