"""Dual problems of support vectors against a conic solver, and the solver on working sets."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer._progress import watched
from mercer.methods.machines import _dual_solver
from mercer.methods.machines._support_vectors import (
    Classification,
    NuClassification,
    NuRegression,
    OneClass,
    Regression,
    fit_support_vectors,
)

KERNEL = mc.Laplace(1.0)


def problems(rng, n, intercept):
    """One problem of each kind, with unequal bounds."""
    y = rng.choice([-1.0, 1.0], n)
    z = rng.normal(size=n)
    u = rng.uniform(0.5, 2.0, n)
    return [
        Classification(y, u, intercept),
        NuClassification(y, u, 0.4, intercept),
        Regression(z, u, 0.1, intercept),
        NuRegression(z, u, 0.4, intercept),
        OneClass(u, 0.3),
    ]


def least_by_conic_solver(K, dual, start):
    """The smallest value of the dual problem, by a conic solver."""
    e = dual.signs
    Q = cp.psd_wrap(np.outer(e, e) * K[np.ix_(dual.rows, dual.rows)])
    b = cp.Variable(len(e))
    kept = [cp.sum(b[g]) == start[g].sum() for g in dual.groups or ()]
    objective = 0.5 * cp.quad_form(b, Q) + dual.linear @ b
    problem = cp.Problem(cp.Minimize(objective), [b >= dual.lower, b <= dual.upper, *kept])
    problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("intercept", [True, False])
def test_objectives_are_those_of_a_conic_solver(kind, intercept, rng):
    X = rng.normal(size=(40, 3))
    problem = problems(rng, 40, intercept)[kind]
    fit = fit_support_vectors(KERNEL, KERNEL.points(X), problem, tol=1e-9)
    least = least_by_conic_solver(KERNEL(X), problem.dual, problem.start)
    assert fit.status.ok
    assert fit.certificate.dual == pytest.approx(-least, rel=1e-5, abs=1e-6)
    assert fit.certificate.primal == pytest.approx(-least, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("intercept", [True, False])
def test_many_working_sets_end_where_one_does(kind, intercept, rng, monkeypatch):
    X = rng.normal(size=(150, 2))
    problem = problems(rng, 150, intercept)[kind]
    whole = fit_support_vectors(KERNEL, KERNEL.points(X), problem, tol=1e-8)
    monkeypatch.setattr(_dual_solver, "WORKING_SET", 16)
    parts = fit_support_vectors(KERNEL, KERNEL.points(X), problem, tol=1e-8)
    assert parts.status.ok
    assert parts.n_iter > whole.n_iter
    assert parts.certificate.dual == pytest.approx(whole.certificate.dual, rel=1e-7)
    f = (parts.coef - whole.coef) @ KERNEL(X)
    assert_allclose(f, 0.0, atol=2e-3)


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("intercept", [True, False])
def test_numpy_takes_the_steps_of_the_core(kind, intercept, rng):
    X = rng.normal(size=(30, 2))
    problem = problems(rng, 30, intercept)[kind]
    fast = fit_support_vectors(KERNEL, KERNEL.points(X), problem, tol=1e-6)
    with mc.options(engine="blocked"):
        slow = fit_support_vectors(KERNEL, KERNEL.points(X), problem, tol=1e-6)
    assert slow.certificate.dual == pytest.approx(fast.certificate.dual, rel=1e-6)
    assert_allclose(slow.coef, fast.coef, atol=1e-3)


@pytest.mark.parametrize("kind", range(5))
def test_kernel_sums_and_stored_rows_agree(kind, rng):
    """With little memory no row is stored, and sums begin in single precision."""
    X = rng.normal(size=(400, 3))
    problem = problems(rng, 400, True)[kind]
    stored = fit_support_vectors(KERNEL, KERNEL.points(X), problem, tol=1e-9)
    with mc.options(working_memory=0.1):
        summed = fit_support_vectors(KERNEL, KERNEL.points(X), problem, tol=1e-9)
    assert summed.status.ok
    assert summed.certificate.relative_gap <= 1e-9
    assert summed.certificate.dual == pytest.approx(stored.certificate.dual, rel=1e-8)


@pytest.mark.parametrize(
    ("kernel", "shift", "C"),
    [
        (mc.Gaussian(1.0), 1e9, 1.0),  # all points are equal in single precision
        (mc.Gaussian(1.0), 0.0, 1e50),  # coefficients that it cannot hold
        (mc.Polynomial(3, scale=1e13), 0.0, 1e-39),  # a kernel that overflows
    ],
    ids=repr,
)
def test_what_single_precision_cannot_hold_is_summed_in_double(kernel, shift, C, rng):
    X = rng.normal(size=(300, 2)) + shift
    y = np.where(X[:, 0] - shift + 0.5 * rng.normal(size=300) > 0.0, 1.0, -1.0)
    points, problem = kernel.points(X), Classification(y, np.full(300, C))
    stored = fit_support_vectors(kernel, points, problem, max_iter=10)
    with mc.options(working_memory=0.1):
        summed = fit_support_vectors(kernel, points, problem, max_iter=10)
    for fit in (stored, summed):
        square = fit.coef @ kernel(X) @ fit.coef
        assert fit.certificate.dual == pytest.approx(np.abs(fit.coef).sum() - 0.5 * square)
    if stored.status.ok:
        assert summed.certificate.dual == pytest.approx(stored.certificate.dual, rel=1e-4)
    else:
        assert C == 1e50


def test_weak_duality_holds_all_the_way(rng):
    """A fit that is stopped at any round is bracketed by its objectives."""
    X = rng.normal(size=(200, 2))
    for problem in problems(rng, 200, True):
        best = fit_support_vectors(KERNEL, KERNEL.points(X), problem, tol=1e-10).certificate
        for rounds in range(1, 6):
            found = fit_support_vectors(
                KERNEL, KERNEL.points(X), problem, tol=1e-12, max_iter=rounds
            ).certificate
            slack = 1e-9 * abs(best.primal)
            assert found.dual <= best.primal + slack
            assert found.primal >= best.dual - slack


def test_a_fit_can_be_resumed(rng):
    X, y = rng.normal(size=(300, 2)), rng.choice([-1.0, 1.0], 300)
    problem, points = Classification(y, np.full(300, 10.0)), KERNEL.points(X)
    early = fit_support_vectors(KERNEL, points, problem, tol=1e-9, max_iter=3)
    assert early.status is mc.Status.MAX_ITER
    late = fit_support_vectors(KERNEL, points, problem, tol=1e-9, start=early.variables)
    fresh = fit_support_vectors(KERNEL, points, problem, tol=1e-9)
    assert late.status.ok
    assert late.n_iter < fresh.n_iter
    assert late.certificate.dual == pytest.approx(fresh.certificate.dual, rel=1e-8)


def test_who_watches_can_stop_a_fit(rng):
    """One that says so only once, too: the sums for the certificate are no new round."""
    X, y = rng.normal(size=(300, 2)), rng.choice([-1.0, 1.0], 300)
    problem = Classification(y, np.full(300, 10.0))
    with watched(lambda step: step.n_iter == 2 and not said.append(step)):
        said: list[object] = []
        fit = fit_support_vectors(KERNEL, KERNEL.points(X), problem, tol=1e-9)
    assert fit.status is mc.Status.STOPPED
    assert fit.n_iter == 2
    assert len(said) == 1
    assert fit.certificate.primal >= fit.certificate.dual


def test_no_time_returns_the_start_with_its_gap(rng):
    X, y = rng.normal(size=(50, 2)), rng.choice([-1.0, 1.0], 50)
    fit = fit_support_vectors(
        KERNEL, KERNEL.points(X), Classification(y, np.ones(50)), time_limit=0.0
    )
    assert fit.status is mc.Status.MAX_ITER
    assert fit.certificate.dual == 0.0
    assert fit.certificate.primal == pytest.approx(50.0 - abs(y.sum()), abs=50.0)


def test_a_hard_margin_that_does_not_exist_stops():
    X, y = np.array([[0.0], [0.0], [1.0]]), np.array([1.0, -1.0, 1.0])
    problem = Classification(y, np.full(3, np.inf))
    fit = fit_support_vectors(mc.Linear(), mc.Linear().points(X), problem, max_iter=50)
    assert not fit.status.ok
    assert fit.certificate.primal == np.inf


def test_an_ill_conditioned_problem_takes_few_rounds(rng):
    """Random labels and a wide kernel: pairs alone took 5,000 rounds."""
    X, y = rng.normal(size=(100, 4)), rng.choice([-1.0, 1.0], 100)
    k = mc.Gaussian(1.2)
    fit = fit_support_vectors(k, k.points(X), NuClassification(y, np.ones(100), 0.3), tol=1e-4)
    assert fit.status.ok
    assert fit.n_iter < 200
