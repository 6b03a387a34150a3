"""Logistic regression with several classes: a conic solver, bounds at every step, balance."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.methods.machines import _softmax
from mercer.methods.machines._softmax import SoftmaxProblem, balancing_factors

KERNEL = mc.Laplace(1.0)


def problem_of(rng, n=40, intercept=True, C=1.0):
    y = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    return SoftmaxProblem(y, C * rng.uniform(0.5, 2.0, n), 3, intercept)


def least_by_conic_solver(K, problem):
    values, vectors = np.linalg.eigh(K)
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    W, c = cp.Variable((len(K), 3)), cp.Variable((1, 3)) if problem.fit_intercept else 0.0
    t = F @ W + (np.ones((len(K), 1)) @ c if problem.fit_intercept else 0.0)
    own = cp.sum(cp.multiply(np.eye(3)[problem.y], t), axis=1)
    losses = problem.bounds @ (cp.log_sum_exp(t, axis=1) - own)
    found = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + losses))
    found.solve(solver="CLARABEL")
    return found.value


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_objectives_are_those_of_a_conic_solver(intercept, C, rng):
    X, problem = rng.normal(size=(40, 2)), problem_of(rng, 40, intercept, C)
    fit = problem.fit(KERNEL, KERNEL.points(X), tol=1e-10)
    least = least_by_conic_solver(KERNEL(X), problem)
    assert fit.status.ok
    assert fit.certificate.primal == pytest.approx(least, rel=1e-6)
    assert fit.certificate.dual == pytest.approx(least, rel=1e-6)
    assert_allclose(fit.coef.sum(axis=1), 0.0, atol=1e-9 * C)  # functions sum to zero
    if not intercept:
        assert_allclose(fit.intercept, 0.0)


def test_the_certificate_is_that_of_the_coefficients(rng):
    X, problem = rng.normal(size=(40, 2)), problem_of(rng)
    fit = problem.fit(KERNEL, KERNEL.points(X), tol=1e-10)
    t = KERNEL(X) @ fit.coef + fit.intercept
    p = np.exp(t) / np.exp(t).sum(axis=1, keepdims=True)
    likelihood = problem.bounds @ np.log(p[np.arange(40), problem.y])
    primal = 0.5 * np.sum(fit.coef * (KERNEL(X) @ fit.coef)) - likelihood
    assert fit.certificate.primal == pytest.approx(primal, rel=1e-12)
    stationary = problem.bounds[:, None] * (np.eye(3)[problem.y] - p)
    assert_allclose(fit.coef, stationary, atol=1e-4)


def test_bounds_hold_at_every_step_and_fits_continue(rng):
    X, problem = rng.normal(size=(60, 2)), problem_of(rng, 60, C=100.0)
    points = KERNEL.points(X)
    best = problem.fit(KERNEL, points, tol=1e-11).certificate.primal
    start, n_steps = None, 0
    while True:
        fit = problem.fit(KERNEL, points, tol=1e-8, max_iter=1, start=start)
        assert fit.certificate.dual <= best * (1.0 + 1e-10)
        assert best <= fit.certificate.primal * (1.0 + 1e-10)
        start, n_steps = fit.variables, n_steps + 1
        if fit.status.ok:
            break
    assert 2 < n_steps < 20


def test_large_sets_do_not_hold_the_matrix(monkeypatch, rng):
    X, problem = rng.normal(size=(150, 2)), problem_of(rng, 150)
    held = problem.fit(KERNEL, KERNEL.points(X), tol=1e-9)
    monkeypatch.setattr(_softmax, "DIRECT_UP_TO", 100)
    summed = problem.fit(KERNEL, KERNEL.points(X), tol=1e-9)
    assert_allclose(summed.coef, held.coef, atol=1e-6)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_flows_are_balanced_and_not_raised(size, rng):
    F = rng.uniform(size=(size, size)) ** 4
    scaled = F * balancing_factors(F)
    assert np.all(scaled <= F)
    np.fill_diagonal(scaled, 0.0)
    assert_allclose(scaled.sum(axis=0), scaled.sum(axis=1), rtol=1e-10)
    np.fill_diagonal(F, 0.0)
    circular = 0.5 * (F + F.T)  # nothing to do
    assert_allclose(balancing_factors(circular)[circular > 0], 1.0)


def test_flows_that_never_come_back_are_zero():
    F = np.array([[0.0, 1.0, 2.0, 1.0], [3.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0], [0.0] * 4])
    factors = balancing_factors(F)
    assert_allclose(factors[:, 3], 0.0)
    scaled = factors * F
    assert_allclose(scaled.sum(axis=0), scaled.sum(axis=1), rtol=1e-10)
    assert scaled.sum() > 0.5 * F[:3, :3].sum()
    one_way = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert_allclose(balancing_factors(one_way) * one_way, 0.0)


def test_kernel_values_that_overflow_are_refused(rng):
    kernel = mc.kernels.Exponential(2.0).transform(mc.Scales([0.01, 0.01]))
    with pytest.raises(mc.InputError, match="overflow"):
        problem_of(rng, 10).fit(kernel, kernel.points(rng.normal(size=(10, 2))))
