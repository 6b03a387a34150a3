"""What `mercer.linalg` shows: a closed list, documented, light to import, frozen results."""

import dataclasses
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

import mercer as mc
from mercer import Status, linalg

X = np.random.default_rng(0).normal(size=(12, 2))
K = mc.Gaussian(1.0)
RESULTS = [
    linalg.GramOperator(K, X),
    linalg.solve(K, X, np.ones(12), 1.0),
    linalg.eigenpairs(K, X, 2),
    linalg.power_iteration(K, X),
    linalg.pivoted_cholesky(K, X),
    linalg.nystrom(K, X, 3),
    linalg.random_features(K, 2, 4),
]


def test_names_are_there_and_nothing_else_is():
    shown = {name for name in vars(linalg) if not name.startswith("_")}
    assert shown == set(linalg.__all__)


@pytest.mark.parametrize("name", linalg.__all__)
def test_everything_is_documented(name):
    thing = getattr(linalg, name)
    doc = inspect.getdoc(thing) or ""
    assert doc
    assert thing.__module__.startswith(("mercer.linalg._", "mercer._progress"))
    assert re.search(r"^Examples\n-{8}$", doc, re.MULTILINE)
    if inspect.isfunction(thing):
        assert re.search(r"^Returns\n-{7}$", doc, re.MULTILINE)


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__)
def test_results_are_frozen(result):
    name = dataclasses.fields(result)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, name, None)
    assert type(result).__name__ in linalg.__all__


@pytest.mark.parametrize("status", Status)
def test_statuses_are_sentences(status):
    assert len(status.value.split()) > 2
    assert isinstance(status.ok, bool)


def test_import_is_light():
    code = (
        "import sys, mercer.linalg; heavy = ('scipy.linalg', 'scipy.special', 'sklearn'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
