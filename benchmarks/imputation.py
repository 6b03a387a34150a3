"""Imputation: a fifth of the entries missing, beside scikit-learn's imputers; and where it loses.

Images: mean squared error on the missing entries, over several draws of rows and holes.
`KNNImputer` runs as it comes and at the best of four numbers of neighbours, chosen on the truth,
which favours it. Tables: root mean squared error of each column in its standard deviations, mean
over columns; ranks of the imputers on nine tables, and their times. All see standardised columns,
which matters to `KNNImputer` only.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn import datasets as sk
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from benchmarks._harness import DATA, Array, Settings, threads
from benchmarks._report import Outcome, Row, at_most
from mercer import KernelImputer

TITLE = "Imputation"
NEEDS = ("mnist_small.npz", "california_housing.npz", "covtype_100k.npz", "seeds.csv")

OVER_DEFAULT = "error over that of KNNImputer, its default"
OVER_BEST = "error over that of KNNImputer, its best"
OVER_MEANS = "error over that of column means"
NEW_ROWS = "error on rows not seen in fit, over that of KNNImputer, its default"
RIDGE = "IterativeImputer, Bayesian ridge"
COLUMN_ERROR = "error in standard deviations"
OVER_RIDGE = "time over that of IterativeImputer, Bayesian ridge"
OVER_RANK = "mean rank over that of the best peer"

NEIGHBOURS = (5, 3, 10, 20)
SHARE = 0.2
SEEDS = 5
_DIGITS = DATA / "mnist_small.npz"
_SLOW_COLUMNS = 100  # beyond, a regression per column and round takes minutes


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    beaten = {OVER_DEFAULT: at_most(0.85), OVER_BEST: at_most(0.85)}
    _run_case("digits", _digits, settings.size(1000, 60), beaten, settings, outcome)
    if _DIGITS.exists():
        for n in (500, 1000):
            _run_case("MNIST", _mnist, settings.size(n, 60), beaten, settings, outcome)
    else:
        outcome.notes.append("MNIST left out: the data sets are not here")
    _run_case("digits, few rows", _digits, settings.size(50, 40), {}, settings, outcome)
    least = {OVER_MEANS: at_most(1.1)}
    for n in (30, 300):
        size = settings.size(n, 30)
        _run_case("independent columns", _independent, size, least, settings, outcome)
    _run_case("circle, two columns", _circle, settings.size(300, 40), {}, settings, outcome)
    _run_tables(settings, outcome)
    return outcome


def _run_case(
    name: str,
    draw: Callable[[int, Any], Array],
    n: int,
    bars: dict[str, Any],
    settings: Settings,
    outcome: Outcome,
) -> None:
    """Half of what is drawn is fitted to and completed, the other half is new rows."""
    errors: dict[str, list[float]] = {}
    fresh: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for seed in range(settings.size(SEEDS, 2)):
        rng = np.random.default_rng(seed)
        X, new = draw(n, rng)
        holes, new_holes = (np.where(rng.random(A.shape) < SHARE, np.nan, A) for A in (X, new))
        kept = ~np.isnan(holes).all(axis=0)
        X, new, holes, new_holes = (A[:, kept] for A in (X, new, holes, new_holes))
        for label, imputer in _contenders(X.shape[1]):
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                filled = imputer.fit_transform(holes)
            seconds.setdefault(label, []).append(time.perf_counter() - start)
            errors.setdefault(label, []).append(_error(filled, X, holes))
            if len(new) and label in ("mercer", "KNNImputer, 5 neighbours"):
                found = imputer.transform(new_holes)
                fresh.setdefault(label, []).append(_error(found, new, new_holes))
    case = f"{name}, n = {n}"
    for label, times in seconds.items():
        ratio = min(times) / min(seconds["mercer"])
        outcome.rows.append(
            Row(case, label, min(times), float(np.median(times)), len(times), ratio)
        )
    _add_figures(case, errors, fresh, bars, outcome)


def _contenders(columns: int) -> Iterator[tuple[str, Any]]:
    yield "mercer", KernelImputer()
    yield "column means", SimpleImputer()
    for k in NEIGHBOURS:
        yield f"KNNImputer, {k} neighbours", KNNImputer(n_neighbors=k)
    if columns <= _SLOW_COLUMNS:
        yield "IterativeImputer", IterativeImputer(random_state=0)


def _add_figures(
    case: str,
    errors: dict[str, list[float]],
    fresh: dict[str, list[float]],
    bars: dict[str, Any],
    outcome: Outcome,
) -> None:
    mean = {label: float(np.mean(e)) for label, e in errors.items()}
    neighbours = {label: e for label, e in mean.items() if label.startswith("KNN")}
    values: dict[str, float | None] = {
        OVER_DEFAULT: mean["mercer"] / neighbours[f"KNNImputer, {NEIGHBOURS[0]} neighbours"],
        OVER_BEST: mean["mercer"] / min(neighbours.values()),
        OVER_MEANS: mean["mercer"] / mean["column means"],
    }
    best = min(neighbours, key=lambda label: neighbours[label])
    paired = np.array(errors["mercer"]) / np.array(errors[best])
    values[f"{OVER_BEST}: standard error"] = float(np.std(paired, ddof=1) / np.sqrt(len(paired)))
    if fresh:
        ours, theirs = (float(np.mean(e)) for e in fresh.values())
        values[NEW_ROWS] = ours / theirs
    for label, e in errors.items():
        values[f"mean squared error, {label}"] = mean[label]
        values[f"standard error, {label}"] = float(np.std(e, ddof=1) / np.sqrt(len(e)))
    outcome.add_figures(case, values, bars)


def _error(filled: Array, X: Array, holes: Array) -> float:
    missing = np.isnan(holes)
    return float(np.mean((filled - X)[missing] ** 2))


# --- tables: ranks --------------------------------------------------------------------------------


def _run_tables(settings: Settings, outcome: Outcome) -> None:
    """The error of every imputer on every table, mean ranks, and times over Bayesian ridge."""
    errors: dict[str, list[float]] = {}
    for name, X in _tables():
        X = X[: settings.size(len(X), 60)]
        found: dict[str, list[float]] = {}
        seconds: dict[str, list[float]] = {}
        for seed in range(settings.size(SEEDS, 1)):
            missing = np.random.default_rng(seed).random(X.shape) < SHARE
            missing[missing.all(axis=1), 0] = False
            for label, imputer in _table_contenders(settings):
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    filled = imputer.fit_transform(np.where(missing, np.nan, X))
                seconds.setdefault(label, []).append(time.perf_counter() - start)
                gap = np.where(missing, filled - X, np.nan)
                error = np.nanmean(np.sqrt(np.nanmean(gap**2, axis=0)))
                found.setdefault(label, []).append(float(error))
        case = f"{name} table, n = {len(X)}"
        ours = min(seconds["mercer"])
        for label, times in seconds.items():
            errors.setdefault(label, []).append(float(np.mean(found[label])))
            minimum, median = min(times), float(np.median(times))
            outcome.rows.append(Row(case, label, minimum, median, len(times), minimum / ours))
        values = {f"{COLUMN_ERROR}, {label}": e[-1] for label, e in errors.items()}
        values[OVER_RIDGE] = ours / min(seconds[RIDGE])
        outcome.add_figures(case, values, {OVER_RIDGE: at_most(5.0)})
    table = np.array(list(errors.values()))
    ranks = dict(zip(errors, rankdata(table, axis=0).mean(axis=1), strict=True))
    values = {f"mean rank, {label}": float(rank) for label, rank in ranks.items()}
    ours, peers = ranks["mercer"], [rank for label, rank in ranks.items() if label != "mercer"]
    values[OVER_RANK] = float(ours / min(peers))
    outcome.add_figures(f"{table.shape[1]} tables", values, {OVER_RANK: at_most(0.999)})


def _table_contenders(settings: Settings) -> Iterator[tuple[str, Any]]:
    yield "mercer", KernelImputer()
    yield "KNNImputer", KNNImputer()
    yield RIDGE, IterativeImputer(random_state=0)
    trees = ExtraTreesRegressor(settings.size(100, 5), random_state=0, n_jobs=threads())
    yield (
        "IterativeImputer, extra trees",
        IterativeImputer(trees, max_iter=settings.size(10, 1), random_state=0),
    )


def _tables() -> Iterator[tuple[str, Array]]:
    """The tables that are here, with standardised columns."""
    raw: dict[str, Array] = {
        "wine": sk.load_wine().data,
        "iris": sk.load_iris().data,
        "breast cancer": sk.load_breast_cancer().data,
        "diabetes": sk.load_diabetes().data,
    }
    if (DATA / "california_housing.npz").exists():
        houses = np.load(DATA / "california_housing.npz")["data"]
        houses = houses[np.random.default_rng(0).permutation(len(houses))[:2000]]
        raw["California"] = houses
        positive = houses.min(axis=0) > 0.0
        raw["California, logs"] = np.where(
            positive, np.log(np.where(positive, houses, 1.0)), houses
        )
    if (DATA / "covtype_100k.npz").exists():
        raw["covertype"] = np.load(DATA / "covtype_100k.npz")["num"][:2000].astype(float)
    if (DATA / "seeds.csv").exists():
        seeds = DATA / "seeds.csv"
        raw["seeds"] = np.loadtxt(seeds, delimiter=",", skiprows=1, usecols=range(7))
    rng = np.random.default_rng(5)
    factors = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 10))
    raw["linear Gaussian"] = factors + 0.5 * rng.normal(size=(500, 10))
    for name, X in raw.items():
        yield name, (X - X.mean(axis=0)) / X.std(axis=0)


# --- data: rows to fit to, and others -------------------------------------------------------------


def _split(X: Array, n: int, rng: Any) -> tuple[Array, Array]:
    order = rng.permutation(len(X))
    return X[order[:n]], X[order[n : n + 200]]


def _digits(n: int, rng: Any) -> tuple[Array, Array]:
    return _split(sk.load_digits().data / 16.0, n, rng)


def _mnist(n: int, rng: Any) -> tuple[Array, Array]:
    X = np.load(_DIGITS)["X_train"]
    return _split(X.reshape(len(X), -1) / 255.0, n, rng)


def _independent(n: int, rng: Any) -> tuple[Array, Array]:
    return _split(rng.normal(size=(n + 200, 8)), n, rng)


def _circle(n: int, rng: Any) -> tuple[Array, Array]:
    """Half of it cannot be known: the sign of a coordinate, given the other."""
    t = rng.uniform(0.0, 2.0 * np.pi, n + 200)
    return _split(np.column_stack([np.cos(t), np.sin(t)]), n, rng)
