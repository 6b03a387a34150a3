"""MNIST: kernel ridge regression on all 60,000 rows, with one output for each digit.

Images are scaled to length one and projected on their principal components, and the predicted digit
is the largest output. The settings are chosen on the last 10,000 training rows, by exact fits to
every fifth of the 50,000 before them: a penalty of the sum of squares does not depend on the number
of rows. The test rows are used once, at the end.
"""

from __future__ import annotations

import itertools
import sys
import time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import mercer as mc
from benchmarks._harness import DATA, Array, Settings
from benchmarks._process import status
from benchmarks._report import Outcome, Row, at_most

TITLE = "MNIST, 60,000 rows"
NEEDS = ("optional/mnist_full.npz",)

ERROR = "test error, %"
PEAK = "peak resident memory, GB"
BARS = {ERROR: at_most(1.3), PEAK: at_most(8.0)}
PUBLISHED = {"EigenPro 2, published, %": 1.23, "Falkon, 1,000 centres, published, %": 4.13}

# principal components, length scales (rows have length one), penalties
GRID = tuple(itertools.product((40, 50), (0.4, 0.5, 0.6), (0.03, 0.1)))
TOL = 1e-3  # relative residual of conjugate gradients


def run(settings: Settings) -> Outcome:
    """Choose, fit all training rows, test; the memory is that of everything together."""
    outcome = Outcome(TITLE)
    X, y, X_test, y_test = digits(settings)
    first = len(y) - len(y) // 6
    errors = {}
    for choice in GRID:
        model = fitted(choice, X[:first:5], y[:first:5])
        errors[choice] = percent_wrong(model, X[first:], y[first:])
        print(f"mnist: {choice}: {errors[choice]:.2f} %", file=sys.stderr, flush=True)
    chosen = min(errors, key=lambda c: errors[c])
    start, processor = time.perf_counter(), time.process_time()
    model = fitted(chosen, X, y)
    middle, processor = time.perf_counter(), time.process_time() - processor
    wrong = percent_wrong(model, X_test, y_test)
    end = time.perf_counter()
    case = f"{len(y):,} rows"
    for label, seconds in (("fit", middle - start), (f"{len(y_test):,} predictions", end - middle)):
        outcome.rows.append(Row(case, label, seconds, seconds, 1))
    values = {
        ERROR: wrong,
        PEAK: status("VmHWM") / 1e9,
        "processor time of the fit, all cores, s": processor,
        "iterations": model[-1].n_iter_,
        "relative duality gap": model[-1].certificate_.relative_gap,
        "components": chosen[0],
        "length scale": chosen[1],
        "penalty": chosen[2],
        "validation error of a fifth of the rows, %": errors[chosen],
        **PUBLISHED,
    }
    outcome.add_figures(case, values, BARS)
    return outcome


def digits(settings: Settings) -> tuple[Array, Array, Array, Array]:
    """Training rows, their digits, test rows, theirs; small images for a quick run."""
    if settings.quick:
        X, y = load_digits(return_X_y=True)
        return X[:1200], y[:1200], X[1200:], y[1200:]
    with np.load(DATA / NEEDS[0]) as file:
        X, X_test = (
            file[name].reshape(-1, 784).astype(np.float32) for name in ("X_train", "X_test")
        )
        return X, file["y_train"], X_test, file["y_test"]


def fitted(choice: tuple[int, float, float], X: Array, y: Array) -> Any:
    """What a user would write."""
    components, length_scale, penalty = choice
    model = make_pipeline(
        Normalizer(),
        PCA(components),
        mc.KernelRidge(mc.Gaussian(length_scale), penalty=penalty, tol=TOL),
    )
    return model.fit(X, np.eye(10)[y])


def percent_wrong(model: Any, X: Array, y: Array) -> float:
    return 100.0 * float(np.mean(model.predict(X).argmax(axis=1) != y))
