"""Peak memory of `fit` on few rows with very many columns: no d x d array is ever made."""

import subprocess
import sys

import pytest

from mercer import estimators

# grows with the number of columns only linearly; d x d numbers would take 3.2 GB
SCRIPT = """
import resource, sys, warnings
import numpy as np
import mercer.estimators

n, d = int(sys.argv[1]), int(sys.argv[2])
warnings.simplefilter("ignore")

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0

def fit(name, X):
    rows = np.where(X > 1.0, np.nan, X) if name == "KernelImputer" else X
    getattr(mercer.estimators, name)().fit(rows, np.arange(len(X)) % 2)

X = np.random.default_rng(0).normal(size=(n, d))
for name in sys.argv[3:]:
    fit(name, X[:, :10])  # so that imports do not count
    before = peak()
    fit(name, X)
    print(name, peak() - before)
"""
NAMES = tuple(name for name in estimators.__all__ if name != "KernelEstimator")


def megabytes(n, d, names):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(n), str(d), *names],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    return {name: float(size) for name, size in map(str.split, done.stdout.splitlines())}


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux only")
def test_few_rows_of_very_many_columns_fit_in_memory():
    used = megabytes(20, 20_000, NAMES)
    assert used.keys() == set(NAMES)
    assert sum(used.values()) < 250.0  # of one process, which does not give memory back


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux only")
@pytest.mark.parametrize("name", NAMES)
def test_two_hundred_rows_of_fifty_thousand_columns_take_at_most_a_gigabyte(name):
    assert megabytes(200, 50_000, [name])[name] < 953.0  # MiB in a GB
