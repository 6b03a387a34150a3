"""Nothing here writes down an n x n matrix but the direct methods, and those only once."""

import tracemalloc

import numpy as np
import pytest

import mercer as mc
from mercer import linalg

MIB = 2**20
N = 4_000  # the Gram matrix takes 122 MiB
K = mc.Gaussian(2.0)


def peak(call) -> float:
    """MiB that NumPy arrays take at most during a call, on top of what was there."""
    linalg.eigenpairs(K, np.ones((3, 2)), 1)  # imports and pools are not what is measured
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return (tracemalloc.get_traced_memory()[1] - before) / MIB
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(3).normal(size=(N, 3))


def test_operator(X):
    S = linalg.GramOperator(K, X, centred=True, weights=np.ones(N))
    assert peak(lambda: (S.matmat(np.ones((N, 4))), S.diag)) < 24


def test_eigenpairs():
    """Of 10,500 points, where the Gram matrix would take 841 MiB."""
    X = np.random.default_rng(3).normal(size=(10_500, 3))
    assert peak(lambda: linalg.eigenpairs(K, X, 5, centred=True, tol=1e-3, random_state=0)) < 64


@pytest.mark.parametrize("method", ["dense", "krylov"])
def test_eigenpairs_of_few_points_write_the_matrix_once(method):
    X = np.random.default_rng(3).normal(size=(1_500, 3))  # 17.2 MiB
    pairs = peak(lambda: linalg.eigenpairs(K, X, 5, centred=True, method=method, random_state=0))
    assert 17 < pairs < 27


def test_power_iteration(X):
    assert peak(lambda: linalg.power_iteration(K, X, random_state=0)) < 32


def test_conjugate_gradients(X):
    """A factor of 252 columns takes 7.7 MiB."""
    y = np.ones((N, 2))
    assert peak(lambda: linalg.solve(K, X, y, 1.0, method="cg", tol=1e-4)) < 40


def test_pivoted_cholesky(X):
    assert peak(lambda: linalg.pivoted_cholesky(K, X, max_rank=40, tol=0.0)) < 24


@pytest.mark.parametrize("rule", ["uniform", "leverage", "pivoted"])
def test_nystrom(rule, X):
    assert peak(lambda: linalg.nystrom(K, X, 100, rule=rule, random_state=0)) < 32


def test_cholesky_needs_one_matrix(X):
    n = 1_500
    matrix = n * n * 8 / MIB  # 17 MiB
    y = np.ones(n)
    assert peak(lambda: linalg.solve(K, X[:n], y, 1.0)) < 1.2 * matrix + 2
    twice = np.vstack([X[: n // 2]] * 2)
    jittered = peak(lambda: linalg.solve(K, twice, y, 0.0, method="cholesky"))
    assert jittered < 1.2 * matrix + 2
