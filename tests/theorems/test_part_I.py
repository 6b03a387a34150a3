"""Laws of ridge regression: I1, I2, I3 and I5 of docs/spec.md."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.estimators import KernelRidge

LAMBDA = 0.3


def data(rng, n=30, d=4):
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def plain(kernel, **options):
    return KernelRidge(kernel, fit_intercept=False, **options)


# --- I1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(30, 4), (4, 30)])
def test_I1_primal_and_dual_ridge_agree(shape, rng):
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    primal = np.linalg.solve(X.T @ X + LAMBDA * np.eye(shape[1]), X.T @ y)
    dual = X.T @ np.linalg.solve(X @ X.T + LAMBDA * np.eye(shape[0]), y)
    assert_allclose(primal, dual, rtol=1e-10)
    model = plain(mc.Linear(), penalty=LAMBDA).fit(X, y)
    assert_allclose(model.predict(np.eye(shape[1])), primal, rtol=1e-8)


# --- I2 -------------------------------------------------------------------------------------------


def test_I2_the_sum_of_losses(rng):
    X, y = data(rng)
    k = mc.Gaussian(1.0)
    model = plain(k, penalty=LAMBDA).fit(X, y)
    a = np.linalg.solve(k(X) + LAMBDA * np.eye(30), y)
    assert_allclose(model.predict(X), k(X) @ a, rtol=1e-10)
    assert model.certificate_.primal == pytest.approx(LAMBDA * y @ a)


def test_I2_the_mean_of_losses(rng):
    X, y = data(rng)
    k = mc.Gaussian(1.0)
    model = plain(k, penalty=LAMBDA, reduction="mean").fit(X, y)
    a = np.linalg.solve(k(X) + 30 * LAMBDA * np.eye(30), y)
    assert_allclose(model.predict(X), k(X) @ a, rtol=1e-10)
    mixed = plain(k, penalty=LAMBDA).fit(X, y)
    assert np.abs(mixed.predict(X) - model.predict(X)).max() > 0.1  # the conventions differ


def test_I2_the_gradient_is_zero(rng):
    X, y = data(rng)
    k = mc.Gaussian(1.0)
    model = plain(k, penalty=LAMBDA).fit(X, y)
    a, K = np.linalg.lstsq(k(X), model.predict(X))[0], k(X)
    assert_allclose(K @ ((K + LAMBDA * np.eye(30)) @ a - y), 0.0, atol=1e-8)
    assert model.certificate_.stationarity < 1e-10


def test_I2_predictions_are_unique_though_coefficients_are_not(rng):
    """K is singular: adding an element of its null space to a solution changes no prediction."""
    X, y = data(rng)
    k = mc.Linear()  # rank 4 of 30
    K = k(X)
    a = np.linalg.solve(K + LAMBDA * np.eye(30), y)
    null = np.linalg.svd(K)[2][-1]
    other = a + 5.0 * null
    assert_allclose(K @ ((K + LAMBDA * np.eye(30)) @ other - y), 0.0, atol=1e-8)
    new = rng.normal(size=(5, 4))
    model = plain(k, penalty=LAMBDA).fit(X, y)
    assert_allclose(model.predict(new), k(new, X) @ other, atol=1e-8)


# --- I3 -------------------------------------------------------------------------------------------


def test_I3_completing_the_square(rng):
    F = rng.normal(size=(6, 6))
    A, b, x = F @ F.T + np.eye(6), rng.normal(size=6), rng.normal(size=6)
    away = x - np.linalg.solve(A, b)
    square = away @ A @ away - b @ np.linalg.solve(A, b)
    assert x @ A @ x - 2.0 * b @ x == pytest.approx(square, rel=1e-10)


def test_I3_the_gap_is_the_square_that_is_left(monkeypatch, rng):
    """Dual values are below the optimum by penalty (a - a*)'(K + penalty I)(a - a*)."""
    X, y = data(rng, n=200)
    k = mc.Laplace(0.5)
    M = k(X) + 1e-3 * np.eye(200)
    best = 1e-3 * y @ np.linalg.solve(M, y)
    monkeypatch.setattr("mercer.linalg._solve.DIRECT_UP_TO", 10)
    with pytest.warns(mc.MercerWarning, match="gap"):
        model = plain(k, penalty=1e-3, max_iter=1, tol=1e-15).fit(X, y)
    order = np.lexsort(X.T[::-1])  # of the distinct rows
    away = model.dual_coef_ - np.linalg.solve(M, y)[order]
    left = 1e-3 * away @ M[np.ix_(order, order)] @ away
    assert model.certificate_.dual == pytest.approx(best - left, rel=1e-10)
    assert model.certificate_.primal > best > model.certificate_.dual


# --- I5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_I5_a_bound_on_the_norm_is_a_penalty(share, rng):
    X, y = data(rng)
    k = mc.Gaussian(1.0)
    limit = share * plain(k, penalty=0.0).fit(X, y).element_.norm()
    model = plain(k, max_norm=limit).fit(X, y)
    assert model.element_.norm() == pytest.approx(limit, rel=1e-8)
    again = plain(k, penalty=model.penalty_).fit(X, y)
    assert_allclose(again.predict(X), model.predict(X), rtol=1e-8)
    values, vectors = np.linalg.eigh(k(X))
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    w = cp.Variable(30)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(y - F @ w)), [cp.norm(w) <= limit])
    problem.solve(solver="CLARABEL")
    assert np.sum((y - model.predict(X)) ** 2) == pytest.approx(problem.value, rel=1e-4, abs=1e-6)


def test_I5_the_penalty_falls_as_the_bound_rises(rng):
    X, y = data(rng)
    found = [
        KernelRidge(mc.Gaussian(1.0), max_norm=g, reduction="mean").fit(X, y).penalty_
        for g in (0.1, 0.3, 1.0, 1e6)
    ]
    assert np.all(np.diff(found) < 0.0)
    assert found[-1] == 0.0  # the bound is not reached
