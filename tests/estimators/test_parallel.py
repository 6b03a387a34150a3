"""Fitted estimators in several threads and processes at once: the answers are the same."""

import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import mercer as mc
from tests.estimators.parallel import NAMES, X, answers, differs, fitted, score

KINDS = [
    pytest.param(kind, marks=[pytest.mark.slow] * (kind in ("fork", "forkserver")))
    for kind in ["loky", *multiprocessing.get_all_start_methods(), "os.fork"]
    if kind != "os.fork" or hasattr(os, "fork")
]
pytestmark = pytest.mark.filterwarnings("ignore::mercer.MercerWarning")


@pytest.mark.parametrize("name", NAMES)
def test_one_fitted_estimator_in_several_threads(name):
    model = fitted(name)
    parts = [X, X[::2], X[:30], X[30:]] * 2
    alone = [answers(model, rows) for rows in parts]
    with mc.options(n_jobs=2), ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda rows: answers(model, rows), parts))
    assert [differs(a, b) for a, b in zip(alone, together, strict=True)] == [""] * len(parts)


def test_different_estimators_fitted_in_several_threads():
    with ThreadPoolExecutor(4) as pool:
        together = dict(zip(NAMES, pool.map(fitted, NAMES), strict=True))
    wrong = {n: differs(answers(fitted(n)), answers(model)) for n, model in together.items()}
    assert {n: how for n, how in wrong.items() if how} == {}


@pytest.mark.parametrize("kind", KINDS)
def test_estimators_in_other_processes(kind):
    """Sent there and used, fitted there, and in a grid search of two processes."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.estimators.parallel", kind],
        capture_output=True, text=True, check=False, timeout=600,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {}


def test_a_difference_is_seen():
    one = answers(fitted("SVC"))
    assert differs(one, one | {"decision_function": one["decision_function"] + 1e-6})
    assert differs(one, one | {"predict": np.roll(one["predict"], 1)})
    assert score(fitted("KernelPCA"), X) != score(fitted("KernelPCA"), X[1:])
