"""Part Q of the specification: linear algebra. Each test states the law of its id."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer import linalg
from mercer.testing import awkward_kernels

RANK = 6


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 3))


# --- Q1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["uniform", "leverage", "pivoted"])
@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_Q1_nystrom_leaves_a_positive_matrix_that_is_zero_on_its_columns(kernel, rule, X):
    K = kernel(X)
    low = linalg.nystrom(kernel, X, RANK, rule=rule, random_state=0)
    rest = K - low.factor @ low.factor.T
    assert np.linalg.eigvalsh(rest)[0] > -1e-11 * np.trace(K)
    assert_allclose(rest[:, low.index], 0.0, atol=1e-10 * np.abs(K).max())
    assert_allclose(low.trace_error, np.abs(np.linalg.eigvalsh(rest)).sum(), atol=1e-10 * K.trace())


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_Q1_leading_eigenpairs_are_the_best_of_their_rank(kernel, X):
    """In the spectral, Frobenius and trace norms; with errors in closed form."""
    K = kernel(X)
    pairs = linalg.eigenpairs(kernel, X, RANK, method="krylov", tol=1e-12, random_state=0)
    best = K - (pairs.vectors * pairs.values) @ pairs.vectors.T
    low = linalg.nystrom(kernel, X, RANK, rule="pivoted")
    other = K - low.factor @ low.factor.T
    for norm in (2, "fro", "nuc"):
        slack = 1e-9 * np.linalg.norm(K, norm)
        assert np.linalg.norm(best, norm) <= np.linalg.norm(other, norm) + slack
    values = np.linalg.eigvalsh(K)[::-1]
    assert_allclose(np.linalg.norm(best, 2), max(values[RANK], 0.0), atol=1e-9 * values[0])


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_Q1_pivoted_cholesky_is_nystrom_on_its_pivots(kernel, X):
    K = kernel(X)
    low = linalg.pivoted_cholesky(kernel, X, max_rank=RANK, tol=0.0)
    C, W = K[:, low.pivots], K[np.ix_(low.pivots, low.pivots)]
    nystrom = C @ np.linalg.pinv(W, rcond=1e-13, hermitian=True) @ C.T
    assert_allclose(low.factor @ low.factor.T, nystrom, atol=1e-9 * np.trace(K))


# --- Q2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [1e-2, 1.0, 1e2])
def test_Q2_matrix_inversion_lemma(penalty, rng):
    L, B = rng.normal(size=(50, 4)), rng.normal(size=(50, 3))
    dense = np.linalg.solve(L @ L.T + penalty * np.eye(50), B)
    lemma = (B - L @ np.linalg.solve(L.T @ L + penalty * np.eye(4), L.T @ B)) / penalty
    found = linalg.woodbury(L, B, penalty)
    assert_allclose(found.coef, dense, rtol=1e-9, atol=1e-12)
    assert_allclose(found.coef, lemma, rtol=1e-9, atol=1e-12)


def test_Q2_features_and_kernel_give_the_same_ridge_regression(rng):
    """Push-through: L (L'L + p I)^-1 L'y = L L' (L L' + p I)^-1 y, for the linear kernel."""
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    weights = np.linalg.solve(X.T @ X + 0.7 * np.eye(3), X.T @ y)
    by_lemma = linalg.woodbury(X, y, 0.7).coef
    by_kernel = linalg.solve(mc.Linear(), X, y, 0.7).coef
    assert_allclose(by_lemma, by_kernel, rtol=1e-9)
    assert_allclose(X.T @ by_lemma, weights, rtol=1e-9)


# --- Q3 -------------------------------------------------------------------------------------------


def test_Q3_power_iteration_converges_at_the_ratio_of_eigenvalues(rng):
    """Each step multiplies the error by at most lambda_2 / lambda_1, and v'Kv never falls."""
    X = rng.normal(size=(40, 2))
    kernel = mc.Gaussian(1.5)
    K = kernel(X)
    values, vectors = np.linalg.eigh(K)
    ratio, leading = values[-2] / values[-1], vectors[:, -1]
    tangent, quotient = np.inf, 0.0
    for steps in range(2, 12):
        found = linalg.power_iteration(kernel, X, max_iter=steps, tol=1e-15, random_state=1)
        assert found.n_iter == steps
        inside = abs(found.vectors[:, 0] @ leading)
        error = np.sqrt(max(1.0 - inside**2, 0.0)) / inside
        assert error <= (1 + 1e-6) * ratio * tangent + 1e-12
        assert found.values[0] >= quotient - 1e-12
        tangent, quotient = error, found.values[0]
    assert_allclose(quotient, values[-1], rtol=1e-2)


@pytest.mark.parametrize("centred", [False, True])
def test_Q3_one_step_is_one_kernel_sum(centred, monkeypatch, rng):
    from mercer import engine

    sums = []
    original = engine.fields
    monkeypatch.setattr(engine, "fields", lambda *a, **k: sums.append(1) or original(*a, **k))
    X = rng.normal(size=(30, 2))
    found = linalg.power_iteration(mc.Laplace(1.0), X, centred=centred, random_state=0)
    assert len(sums) == found.n_iter
    expected = linalg.eigenpairs(mc.Laplace(1.0), X, 1, centred=centred)
    assert_allclose(found.values[0], expected.values[0], rtol=1e-9)
