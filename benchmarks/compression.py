"""Compression of support vector machines: fewer vectors, nearly the same predictions.

A classifier of the ten digits of USPS, 45 functions on common support vectors, is compressed to 5 %
of its vectors. Values of each function change by at most |f - g| sqrt(k(x, x)): that bound is
compared with the largest change on the test rows. Then single functions are compressed to a stated
largest change.
"""

from __future__ import annotations

import time
from copy import copy

import numpy as np

import mercer as mc
from benchmarks._harness import DATA, Array, Settings
from benchmarks._report import Outcome, Row, at_most
from mercer.preimages import Greedy, Pruning

TITLE = "Compression"
NEEDS = ("usps.npz",)

BEFORE, AFTER = "vectors before", "vectors after"
ACCURACY, COMPRESSED = "accuracy before, %", "accuracy after, %"
LOST = "points of accuracy lost"
SECONDS = "seconds"
RELATIVE = "|f - g| / |f|, root mean square over the functions"
CHANGE = "largest change of a value over its bound"
SHARE = 0.05
C = 10.0  # among 1, 10 and 100 the best in five-fold cross-validation of the training rows
DELTA = 0.5  # half of the margin


def run(settings: Settings) -> Outcome:
    """Classifiers of ten digits, then single functions."""
    outcome = Outcome(TITLE)
    X, y, X_test, y_test = usps(settings.size(7291, 400))
    for kernel in ("auto", mc.Gaussian.from_gamma(1.0 / 128.0)):
        model = mc.SVC(kernel, C=C).fit(X, y)
        _run_classifier(model, X_test, y_test, outcome)
    for pair in ((3, 5), (4, 9)):
        _run_pair(pair, X, y, X_test, outcome)
    return outcome


def usps(n: int) -> tuple[Array, Array, Array, Array]:
    """Training rows and labels, test rows and labels."""
    z = np.load(DATA / "usps.npz")
    X, X_test = (z[key].reshape(len(z[key]), -1) / z["scale"] for key in ("X_train", "X_test"))
    return X[:n], z["y_train"][:n], X_test, z["y_test"]


def _run_classifier(model: mc.SVC, X: Array, y: Array, outcome: Outcome) -> None:
    f, before = model.element_, 100.0 * model.score(X, y)
    n = len(f.points)
    for method in (Greedy(), Pruning()):
        start = time.perf_counter()
        found = mc.compress(f, int(SHARE * n), method=method)
        seconds = time.perf_counter() - start
        small = copy(model)
        small.element_ = found.element
        after = 100.0 * small.score(X, y)
        case = f"SVC on USPS, {model.kernel_!r}, {method!r}"
        outcome.rows.append(Row(case, "mercer", seconds, seconds, 1))
        norms = found.error / found.relative_error
        values = {
            BEFORE: n,
            AFTER: len(found.element.points),
            ACCURACY: before,
            COMPRESSED: after,
            LOST: before - after,
            SECONDS: seconds,
            RELATIVE: float(np.sqrt(np.sum(found.error**2) / np.sum(norms**2))),
            CHANGE: float((np.abs(f(X) - found.element(X)).max(axis=0) / found.error).max()),
        }
        bars = {AFTER: at_most(SHARE * n), CHANGE: at_most(1.0)}
        if isinstance(method, Greedy):  # the default
            bars |= {LOST: at_most(0.5), SECONDS: at_most(60.0)}
        outcome.add_figures(case, values, bars)


def _run_pair(pair: tuple[int, int], X: Array, y: Array, X_test: Array, outcome: Outcome) -> None:
    rows = np.isin(y, pair)
    f = mc.SVC(C=C).fit(X[rows], y[rows]).element_
    n = len(f.points)
    start = time.perf_counter()
    found = mc.compress(f, n, tol=DELTA / f.norm())
    seconds = time.perf_counter() - start
    case = f"{pair[0]} or {pair[1]}, no value changed by more than {DELTA}"
    changes = np.abs(f(X_test) - found.element(X_test))
    stated = "largest change that is stated"
    values = {
        BEFORE: n,
        AFTER: len(found.element.points),
        SECONDS: seconds,
        stated: float(found.error),
        CHANGE: float(changes.max() / found.error),
    }
    outcome.add_figures(case, values, {stated: at_most(DELTA), CHANGE: at_most(1.0)})
