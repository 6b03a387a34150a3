"""Laws of support vector machines: M1 to M5 of docs/spec.md."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.estimators import SVC, NuSVC

C = 0.7


def two_classes(rng, n=60, apart=1.0):
    """Two normal clouds, which overlap unless they are far apart."""
    y = np.repeat([1.0, -1.0], n // 2)
    return rng.normal(size=(n, 2)) + apart * y[:, None] * [0.6, 0.4], y


def alphas(model, X, y):
    """The multipliers a_i >= 0 of the rows."""
    a = np.zeros(len(y))
    a[model.support_] = model.dual_coef_[0] * y[model.support_]
    return a


def minimised(objective, constraints=()):
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    problem.solve(solver="CLARABEL")
    return problem.value


# --- M1 -------------------------------------------------------------------------------------------


def test_M1_the_hard_margin_is_the_smallest_w_with_all_margins_one(rng):
    X, y = two_classes(rng, apart=6.0)
    model = SVC(mc.Linear(), C=np.inf, tol=1e-9).fit(X, y)
    w, b = cp.Variable(2), cp.Variable()
    least = minimised(0.5 * cp.sum_squares(w), [cp.multiply(y, X @ w + b) >= 1.0])
    assert model.certificate_.primal == pytest.approx(least, rel=1e-6)
    assert np.min(y * model.decision_function(X)) == pytest.approx(1.0, abs=1e-9)


def test_M1_the_margin_is_two_over_the_norm(rng):
    """It is the distance between the convex hulls of the classes."""
    X, y = two_classes(rng, apart=6.0)
    model = SVC(mc.Linear(), C=np.inf, tol=1e-9).fit(X, y)
    p, q = cp.Variable(30, nonneg=True), cp.Variable(30, nonneg=True)
    hulls = X[y > 0].T @ p - X[y < 0].T @ q
    squared = minimised(cp.sum_squares(hulls), [cp.sum(p) == 1.0, cp.sum(q) == 1.0])
    assert 2.0 / model.element_.norm() == pytest.approx(np.sqrt(squared), rel=1e-5)


def test_M1_the_printed_constraint_admits_zero():
    """w'x + b <= 1 for the class -1 is satisfied by w = 0, b = 1; Definition 2.8.2, corrected."""
    w, b = cp.Variable(1), cp.Variable()
    X = np.array([[1.0], [-1.0]])
    printed = [X[0] @ w + b >= 1.0, X[1] @ w + b <= 1.0]
    assert minimised(0.5 * cp.sum_squares(w), printed) == pytest.approx(0.0, abs=1e-8)
    model = SVC(mc.Linear(), C=np.inf).fit(X, [1, -1])
    assert model.certificate_.primal == pytest.approx(0.5)


# --- M2 -------------------------------------------------------------------------------------------


def soft_margin(K, y, C, intercept=True):
    """The smallest primal objective, by a conic solver on a square root of K."""
    values, vectors = np.linalg.eigh(K)
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    w = cp.Variable(len(y))
    b = cp.Variable() if intercept else 0.0
    losses = cp.sum(cp.pos(1.0 - cp.multiply(y, F @ w + b)))
    return minimised(0.5 * cp.sum_squares(w) + C * losses)


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Linear(), mc.Laplace(0.5)], ids=repr)
def test_M2_primal_equals_dual_and_the_optimum(kernel, rng):
    X, y = two_classes(rng)
    model = SVC(kernel, C=C, tol=1e-9).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-9
    assert model.certificate_.primal == pytest.approx(soft_margin(kernel(X), y, C), rel=1e-6)


def test_M2_the_dual_objective_is_that_of_the_multipliers(rng):
    X, y = two_classes(rng)
    k = mc.Gaussian(1.0)
    model = SVC(k, C=C, tol=1e-9).fit(X, y)
    a = alphas(model, X, y)
    Q = np.outer(y, y) * k(X)
    assert model.certificate_.dual == pytest.approx(a.sum() - 0.5 * a @ Q @ a, rel=1e-10)
    assert a.min() >= 0.0
    assert a.max() <= C
    assert a @ y == pytest.approx(0.0, abs=1e-12)


def test_M2_the_intercept_comes_from_any_multiplier_between_its_bounds(rng):
    X, y = two_classes(rng)
    k = mc.Gaussian(1.0)
    model = SVC(k, C=C, tol=1e-10).fit(X, y)
    a = alphas(model, X, y)
    free = (a > 1e-9) & (a < C - 1e-9)
    assert free.sum() >= 3
    assert_allclose(y[free] - model.element_(X[free]), model.intercept_[0], atol=1e-5)


# --- M3 -------------------------------------------------------------------------------------------


def test_M3_without_an_intercept_multipliers_need_not_balance(rng):
    X, y = two_classes(rng)
    y[:10] = -1.0  # more of one class
    k = mc.Gaussian(1.0)
    model = SVC(k, C=C, fit_intercept=False, tol=1e-9).fit(X, y)
    assert model.certificate_.primal == pytest.approx(soft_margin(k(X), y, C, False), rel=1e-6)
    assert model.certificate_.relative_gap <= 1e-9
    assert model.intercept_[0] == 0.0
    assert abs(alphas(model, X, y) @ y) > 0.1


# --- M4 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_M4_multipliers_split_the_points(intercept, rng):
    X, y = two_classes(rng, n=200)
    model = SVC(mc.Gaussian(1.0), C=C, fit_intercept=intercept, tol=1e-10).fit(X, y)
    a, margins = alphas(model, X, y), y * model.decision_function(X)
    assert np.all(margins[a == 0.0] >= 1.0 - 1e-5)
    assert_allclose(margins[(a > 0.0) & (a < C)], 1.0, atol=1e-5)
    assert np.all(margins[a == C] <= 1.0 + 1e-5)
    found = model.certificate_
    shares = [np.mean(a == 0.0), np.mean((a > 0.0) & (a < C)), np.mean(a == C)]
    assert_allclose([found.outside, found.free, found.at_bound], shares)


def test_M4_a_multiplier_at_its_bound_may_have_no_loss():
    """x = 1 and -1, C = 1/2: both multipliers are C, and both margins exactly 1; Remark 60."""
    model = SVC(mc.Linear(), C=0.5, tol=1e-12).fit([[1.0], [-1.0]], [1, -1])
    assert_allclose(np.abs(model.dual_coef_[0]), 0.5)
    assert_allclose(model.decision_function([[1.0], [-1.0]]), [1.0, -1.0])
    assert model.certificate_.at_bound == 1.0


# --- M5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("intercept", [True, False])
def test_M5_nu_lies_between_margin_errors_and_support_vectors(nu, intercept, rng):
    X, y = two_classes(rng, n=200)
    model = NuSVC(mc.Laplace(1.0), nu=nu, fit_intercept=intercept, tol=1e-10).fit(X, y)
    margins = y * model.decision_function(X)  # the margin is 1 after division by s
    assert np.mean(margins < 1.0 - 1e-5) <= nu <= np.mean(alphas(model, X, y) > 0.0)
    assert (
        model.certificate_.at_bound <= nu <= model.certificate_.free + model.certificate_.at_bound
    )


def test_M5_primal_equals_dual_and_the_optimum(rng):
    """Definition 2.8.13 has bounds 1 / n and a sum of nu: n times smaller multipliers."""
    X, y = two_classes(rng)
    k, n, nu = mc.Laplace(1.0), 60, 0.3
    model = NuSVC(k, nu=nu, fit_intercept=False, tol=1e-9).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-9
    F = np.linalg.cholesky(k(X) + 1e-12 * np.eye(n))
    w, s = cp.Variable(n), cp.Variable(nonneg=True)
    losses = cp.sum(cp.pos(s - cp.multiply(y, F @ w))) / n
    least = minimised(0.5 * cp.sum_squares(w) - nu * s + losses)
    assert model.certificate_.primal / n**2 == pytest.approx(least, rel=1e-5)


def test_M5_the_margin_comes_from_multipliers_between_their_bounds(rng):
    X, y = two_classes(rng)
    model = NuSVC(mc.Laplace(1.0), nu=0.3, fit_intercept=False, tol=1e-11).fit(X, y)
    a = alphas(model, X, y)
    free = (a > 1e-6 * a.max()) & (a < (1.0 - 1e-6) * a.max())
    assert free.sum() >= 2
    assert_allclose(y[free] * model.decision_function(X[free]), 1.0, atol=1e-5)
