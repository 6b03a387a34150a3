"""Machines with smooth losses: beside a conic solver, bounds at every step, limits, large sets."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.linalg import _solve
from mercer.methods import LogisticLoss, SquaredMarginLoss, SquareLoss
from mercer.methods.machines import _newton
from mercer.methods.machines._newton import SmoothProblem

KERNEL = mc.Laplace(1.0)
LOSSES = [LogisticLoss(), SquaredMarginLoss(), SquareLoss()]


def problem_of(loss, rng, n, intercept=True, C=1.0):
    y = rng.choice([-1.0, 1.0], n, p=[0.3, 0.7]) if loss.classifies else rng.normal(size=n) + 3.0
    return SmoothProblem(loss, y, C * rng.uniform(0.5, 2.0, n), intercept)


def least_by_conic_solver(K, problem):
    values, vectors = np.linalg.eigh(K)
    w, c = cp.Variable(len(K)), cp.Variable() if problem.fit_intercept else 0.0
    t = (vectors * np.sqrt(np.maximum(values, 0.0))) @ w + c
    if isinstance(problem.loss, LogisticLoss):
        losses = cp.logistic(-cp.multiply(problem.y, t))
    else:
        losses = cp.square(problem.y - t)
    found = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + problem.bounds @ losses))
    found.solve(solver="CLARABEL")
    return found.value


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_objectives_are_those_of_a_conic_solver(loss, intercept, C, rng):
    X = rng.normal(size=(40, 2))
    problem = problem_of(loss, rng, 40, intercept, C)
    fit = problem.fit(KERNEL, KERNEL.points(X), tol=1e-10)
    assert fit.status.ok
    least = least_by_conic_solver(KERNEL(X), problem)
    assert fit.certificate.primal == pytest.approx(least, rel=1e-6)
    assert fit.certificate.dual == pytest.approx(least, rel=1e-6)
    if intercept:
        assert abs(fit.coef.sum()) <= 1e-10 * np.abs(fit.coef).sum()
    else:
        assert fit.intercept == 0.0


def test_the_certificate_is_that_of_the_coefficients(rng):
    X, problem = rng.normal(size=(50, 2)), problem_of(LogisticLoss(), rng, 50)
    fit = problem.fit(KERNEL, KERNEL.points(X), tol=1e-11)
    K, y, u = KERNEL(X), problem.y, problem.bounds
    t = K @ fit.coef + fit.intercept
    primal = 0.5 * fit.coef @ K @ fit.coef + u @ np.log1p(np.exp(-y * t))
    assert fit.certificate.primal == pytest.approx(primal, rel=1e-12)
    assert_allclose(fit.coef, u * y / (1.0 + np.exp(y * t)), atol=1e-5)  # stationary
    assert fit.certificate.stationarity < 1e-5


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_weak_duality_holds_all_the_way(loss, rng):
    X, problem = rng.normal(size=(150, 2)), problem_of(loss, rng, 150, C=50.0)
    best = problem.fit(KERNEL, KERNEL.points(X), tol=1e-12).certificate
    slack = 1e-9 * abs(best.primal)
    for steps in range(1, 6):
        found = problem.fit(KERNEL, KERNEL.points(X), tol=1e-15, max_iter=steps).certificate
        assert found.dual <= best.primal + slack
        assert found.primal >= best.dual - slack


def test_square_losses_take_one_step(rng):
    X, problem = rng.normal(size=(60, 2)), problem_of(SquareLoss(), rng, 60)
    fit = problem.fit(KERNEL, KERNEL.points(X), tol=1e-9)
    assert fit.n_iter == 1
    system = KERNEL(X) + np.diag(0.5 / problem.bounds)
    assert_allclose(system @ fit.coef + fit.intercept, problem.y, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_large_sets_go_through_conjugate_gradients(intercept, rng, monkeypatch):
    X, problem = rng.normal(size=(300, 2)), problem_of(LogisticLoss(), rng, 300, intercept, 10.0)
    direct = problem.fit(KERNEL, KERNEL.points(X), tol=1e-9)
    monkeypatch.setattr(_newton, "DIRECT_UP_TO", 100)
    monkeypatch.setattr(_solve, "DIRECT_UP_TO", 100)
    iterated = problem.fit(KERNEL, KERNEL.points(X), tol=1e-9)
    assert iterated.status.ok
    assert iterated.certificate.primal == pytest.approx(direct.certificate.primal, rel=1e-8)
    assert_allclose(iterated.coef, direct.coef, atol=1e-3)


def test_a_fit_can_be_resumed(rng):
    X, problem = rng.normal(size=(100, 2)), problem_of(LogisticLoss(), rng, 100, C=1e4)
    points = KERNEL.points(X)
    early = problem.fit(KERNEL, points, tol=1e-9, max_iter=3)
    assert early.status is mc.Status.MAX_ITER
    late = problem.fit(KERNEL, points, tol=1e-9, start=early.variables)
    fresh = problem.fit(KERNEL, points, tol=1e-9)
    assert late.status.ok
    assert late.n_iter < fresh.n_iter
    assert late.certificate.primal == pytest.approx(fresh.certificate.primal, rel=1e-8)


def test_no_time_returns_the_start_with_its_gap(rng):
    X, problem = rng.normal(size=(30, 2)), problem_of(LogisticLoss(), rng, 30)
    fit = problem.fit(KERNEL, KERNEL.points(X), time_limit=0.0)
    assert fit.status is mc.Status.MAX_ITER
    assert fit.certificate.primal == pytest.approx(problem.bounds.sum() * np.log(2.0))
    assert fit.certificate.gap >= 0.0


def test_what_rounding_forbids_is_reported_with_its_gap(rng):
    """C so large that the ridge problems are singular to rounding."""
    X, problem = rng.normal(size=(200, 1)), problem_of(LogisticLoss(), rng, 200, C=1e14)
    fit = problem.fit(mc.Gaussian(1.0), mc.Gaussian(1.0).points(X), tol=1e-12)
    assert not fit.status.ok
    assert np.isfinite(fit.coef).all()
    assert fit.certificate.relative_gap > 1e-12


def test_nothing_to_learn_is_solved_at_once():
    problem = SmoothProblem(SquareLoss(), np.full(5, 0.1), np.ones(5))
    X = np.arange(5.0)[:, None]
    fit = problem.fit(KERNEL, KERNEL.points(X), tol=1e-9)
    assert fit.status.ok
    assert fit.intercept == pytest.approx(0.1)
    assert_allclose(fit.coef, 0.0, atol=1e-12)
