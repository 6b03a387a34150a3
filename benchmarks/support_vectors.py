"""Support vector classification beside libsvm, scikit-learn and its extension by Intel.

20,000 rows of covertype (cover types 1 and 2; ten numeric columns standardised, wilderness area as
four columns of 0 and 1), a Gaussian kernel with gamma = 1 / median squared distance, and three C.
Peers run with their default tolerance and a large cache. The dual objective of each is computed
from its coefficients, and ours runs to a duality gap at which its objective is at least as good as
the best of theirs; `short` says by how much it is not.

Many small problems: the 45 pairs of the ten digits of USPS, beside scikit-learn. Their dual
objectives are added.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from sklearn import svm

import mercer as mc
from benchmarks._harness import DATA, Array, Key, PeerError, Settings, race, threads
from benchmarks._report import Outcome, at_least, at_most
from mercer.engine import Dense, fields

TITLE = "Support vector classification"
NEEDS = ("covtype_100k.npz", "usps.npz")

FASTER = "times faster than the fastest peer"
SHORT = "dual objective short of the best peer's, relative"
GAP = "relative duality gap, {}"
TOL = 3e-6
_CACHE = 2000  # megabytes, for the peers


def run(settings: Settings) -> Outcome:
    """Run the suite."""
    outcome = Outcome(TITLE)
    X, y = covertype(settings.size(20_000, 500))
    gamma = 1.0 / median_squared_distance(X)
    for C, least in ((1.0, 3.0), (10.0, 1.0), (100.0, 1.0)):
        _run_C(X, y, gamma, C, least, settings, outcome)
    _run_digits(settings, outcome)
    return outcome


def covertype(n: int) -> tuple[Array, Array]:
    """Rows of cover types 1 and 2, and their labels -1 and 1."""
    z = np.load(DATA / "covtype_100k.npz")
    rows = np.flatnonzero(z["y"] <= 2)[:n]
    numbers = z["num"][rows].astype(float)
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    return (
        np.hstack([numbers, np.eye(4)[z["wilderness"][rows] - 1]]),
        np.where(z["y"][rows] == 2, 1.0, -1.0),
    )


def median_squared_distance(X: Array) -> float:
    """Of 20,000 random pairs of rows."""
    a, b = np.random.default_rng(0).integers(len(X), size=(2, 20_000))
    return float(np.median(np.sum((X[a] - X[b]) ** 2, axis=1)))


def _run_C(
    X: Array, y: Array, gamma: float, C: float, least: float, settings: Settings, outcome: Outcome
) -> None:
    case = f"{len(y):,} rows of covertype, C = {C:g}"
    kernel = mc.Gaussian.from_gamma(gamma)
    contenders: dict[Key, Callable[[], Any]] = {
        Key("", "mercer"): lambda: mc.SVC(kernel, C=C, tol=TOL).fit(X, y),
        Key("", "scikit-learn"): lambda: svm.SVC(C=C, gamma=gamma, cache_size=_CACHE).fit(X, y),
        Key("", "libsvm"): partial(_libsvm, _libsvm_problem(X, y), gamma, C),
        Key("", "scikit-learn-intelex"): lambda: _intelex(X, y, gamma, C),
    }
    duals: dict[str, float] = {}
    gaps: dict[str, float] = {}

    def inspect(key: Key, model: Any) -> None:
        duals[key.name], gaps[key.name] = _objectives(kernel, X, y, C, *_coefficients(model, y))

    raced = race(case, contenders, settings, inspect)
    ours = Key("", "mercer")
    outcome.add_rows(case, raced, ours)
    outcome.add_notes(case, raced)
    peers = [key for key in raced.timings if key != ours]
    fastest = min(raced.timings[key].minimum for key in peers)
    best = max(duals[key.name] for key in peers)
    values = {
        FASTER: fastest / raced.timings[ours].minimum,
        SHORT: max(best - duals["mercer"], 0.0) / best,
        **{GAP.format(name): gap for name, gap in gaps.items()},
    }
    outcome.add_figures(case, values, {FASTER: at_least(least), SHORT: at_most(1e-6)})


def _run_digits(settings: Settings, outcome: Outcome, C: float = 10.0) -> None:
    z = np.load(DATA / "usps.npz")
    n = settings.size(len(z["y_train"]), 500)
    X, y = z["X_train"][:n].reshape(n, -1) / float(z["scale"]), z["y_train"][:n]
    gamma = 1.0 / median_squared_distance(X)
    kernel = mc.Gaussian.from_gamma(gamma)
    case = f"45 pairs of digits of USPS, {n:,} rows, C = {C:g}"
    ours, theirs = Key("", "mercer"), Key("", "scikit-learn")
    contenders: dict[Key, Callable[[], Any]] = {
        ours: lambda: mc.SVC(kernel, C=C, tol=TOL).fit(X, y),
        theirs: lambda: svm.SVC(C=C, gamma=gamma, cache_size=_CACHE).fit(X, y),
    }
    duals: dict[Key, float] = {}

    def inspect(key: Key, model: Any) -> None:
        duals[key] = sum(
            _objectives(kernel, X[rows], np.sign(b), C, b, 0.0)[0]
            for rows, b in _pairs(model, key == ours)
        )

    raced = race(case, contenders, settings, inspect)
    outcome.add_rows(case, raced, ours)
    outcome.add_notes(case, raced)
    values = {
        FASTER: raced.timings[theirs].minimum / raced.timings[ours].minimum,
        SHORT: max(duals[theirs] - duals[ours], 0.0) / duals[theirs],
    }
    outcome.add_figures(case, values, {FASTER: at_least(1.0), SHORT: at_most(1e-6)})


def _pairs(model: Any, ours: bool) -> list[tuple[Array, Array]]:
    """The support vectors of each pair of classes, by their row numbers, and their coefficients."""
    if ours:
        return [(model.support_, b) for b in model.dual_coef_]
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    of = [slice(*ends[k : k + 2]) for k in range(len(model.n_support_))]
    return [
        (
            np.concatenate([model.support_[of[i]], model.support_[of[j]]]),
            np.concatenate([model.dual_coef_[j - 1, of[i]], model.dual_coef_[i, of[j]]]),
        )
        for i, j in combinations(range(len(of)), 2)
    ]


def _coefficients(model: Any, y: Array) -> tuple[Array, float]:
    """The coefficients y_i a_i of all rows, and the intercept."""
    b = np.zeros(len(y))
    if isinstance(model, tuple):
        return model
    b[model.support_] = np.ravel(model.dual_coef_)
    return b, float(np.ravel(model.intercept_)[0])


def _objectives(
    kernel: mc.Kernel, X: Array, y: Array, C: float, b: Array, intercept: float
) -> tuple[float, float]:
    """The dual objective of coefficients, and the relative duality gap."""
    at = np.flatnonzero(b)
    f = fields(kernel.program, X[at], X, Dense(b[at, None])).value[:, 0]
    square = float(b @ f)
    dual = float(np.abs(b).sum()) - 0.5 * square
    primal = 0.5 * square + C * float(np.maximum(0.0, 1.0 - y * (f + intercept)).sum())
    return dual, (primal - dual) / primal


def _libsvm_problem(X: Array, y: Array) -> Any:
    """The data as libsvm wants them, whose conversion is not timed; None if it is not installed."""
    try:
        from libsvm.svmutil import svm_problem
    except ImportError:
        return None
    return svm_problem(y, X)


def _libsvm(problem: Any, gamma: float, C: float) -> tuple[Array, float]:
    if problem is None:
        raise PeerError("libsvm-official is not installed")
    from libsvm.svmutil import svm_parameter, svm_train

    model = svm_train(problem, svm_parameter(f"-q -t 2 -c {C!r} -g {gamma!r} -m {_CACHE}"))
    b, count = np.zeros(problem.l), model.l
    b[np.array(model.sv_indices[:count]) - 1] = model.sv_coef[0][:count]
    sign = 1.0 if model.label[0] == 1 else -1.0
    return sign * b, -sign * float(model.rho[0])


def _intelex(X: Array, y: Array, gamma: float, C: float) -> Any:
    try:
        from sklearnex.svm import SVC
    except ImportError as error:
        raise PeerError("scikit-learn-intelex is not installed") from error
    return SVC(C=C, gamma=gamma, cache_size=_CACHE, n_jobs=threads()).fit(X, y)
