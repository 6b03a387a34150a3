"""Part D of the specification: iterative pre-image solvers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import lambertw

import mercer as mc
from mercer import Status
from mercer.preimages import gradient_bound, lipschitz, preimage_objective

RADIAL = [
    mc.Gaussian(0.8), mc.InverseMultiquadric(1.0, 0.7), mc.Matern(2.5, 1.0), mc.Matern(1.5, 1.0),
    mc.RationalQuadratic(0.8, 1.0), mc.Gaussian(0.6) + 0.5 * mc.Gaussian(2.0),
]  # fmt: skip
DOT = [mc.Polynomial(2, offset=0.0), mc.Polynomial(3), mc.Exponential(2.0)]


@pytest.fixture
def X(rng):
    return rng.normal(size=(25, 2))


def path(psi, solver, start):
    """Objective along the way, as the double loop of the diagnostics sees it."""
    back = mc.preimage(psi, solver, start=start, history=True)
    points = back.history.points[:, 0]
    points = points[~np.isnan(points).any(axis=1)]
    return back, points, preimage_objective(psi, points)


def rises(values):
    """The largest increase along a path, relative to its values."""
    return float(np.max(np.diff(values, prepend=values[0]))) / max(1e-300, np.abs(values).max())


# --- D1: fixed point, radial ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_D1_one_step_is_the_weighted_mean(kernel, X, rng):
    a, x = rng.uniform(size=25), rng.normal(size=(1, 2))
    u = np.sum((x - X) ** 2, axis=1)
    h = 1e-6
    slope = kernel(np.sqrt(u + h)[:, None], [[0.0]]) - kernel(np.sqrt(u - h)[:, None], [[0.0]])
    weights = a * slope[:, 0] / (2 * h)
    solver = mc.FixedPoint(max_iter=1, safeguard=False)
    step = mc.preimage(mc.Element(kernel, X, a), solver, start=x).points[0]
    assert_allclose(step, weights @ X / weights.sum(), rtol=1e-7)


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_D1_fixed_points_are_critical_points(kernel, X, rng):
    psi = mc.Element(kernel, X, rng.uniform(size=25))
    back = mc.preimage(psi, mc.FixedPoint(safeguard=False, tol=1e-12), start=[[0.5, 0.5]])
    assert back.status[0] is Status.CONVERGED
    assert np.linalg.norm(psi.gradient(back.points)) < 1e-11 * gradient_bound(psi)


def test_D1_equals_newton_for_epanechnikov(rng):
    for _ in range(30):
        X = rng.normal(size=(20, 2))
        psi = mc.Element(mc.Epanechnikov(4.0), X, rng.uniform(size=20))
        start = rng.uniform(-1, 1, size=(1, 2))
        step = mc.preimage(psi, mc.FixedPoint(max_iter=1, safeguard=False), start=start)
        newton = start - np.linalg.solve(-psi.hessian(start)[0], -psi.gradient(start)[0])
        assert_allclose(step.points, newton, rtol=1e-12, atol=1e-13)


def test_D1_an_empty_window_is_said(X):
    psi = mc.mean_embedding(mc.Epanechnikov(1.0), X)
    for safeguard in (True, False):
        back = mc.preimage(psi, mc.FixedPoint(safeguard=safeguard), start=[[50.0, 50.0]])
        assert back.status[0] in (Status.ESCAPED, Status.UNDEFINED)
        assert np.isfinite(back.points).all()


def test_D1_mixed_signs_climb_without_a_safeguard_and_never_with(rng):
    climbs = 0
    for _ in range(20):
        X, a = rng.normal(size=(15, 2)), rng.normal(size=15)
        psi = mc.Element(mc.Gaussian(0.7), X, a)
        start = rng.normal(size=(1, 2))
        naive = path(psi, mc.FixedPoint(safeguard=False, max_iter=30), start)[2]
        climbs += not (rises(naive[np.isfinite(naive)]) <= 1e-12)
        back, _, guarded = path(psi, mc.FixedPoint(), start)
        assert rises(guarded) <= 1e-14
        assert back.status[0] in (Status.CONVERGED, Status.ESCAPED)
    assert climbs > 6  # more than half of random runs


# --- D2: fixed point, inner products --------------------------------------------------------------


@pytest.mark.parametrize("kernel", DOT, ids=repr)
def test_D2_one_step(kernel, X, rng):
    a, x = rng.uniform(size=25), rng.normal(size=(1, 2))
    t, own = (X @ x[0]), float(x[0] @ x[0])

    def slope(s):
        p = {"scale": 1.0, "offset": 0.0, **kernel.get_params()}
        if isinstance(kernel, mc.Exponential):
            return np.exp(s / p["scale"]) / p["scale"]
        return p["degree"] * (s / p["scale"] + p["offset"]) ** (p["degree"] - 1) / p["scale"]

    expected = (a * slope(t)) @ X / slope(own)
    solver = mc.FixedPoint(max_iter=1, safeguard=False)
    assert_allclose(
        mc.preimage(mc.Element(kernel, X, a), solver, start=x).points[0], expected, rtol=1e-9
    )


def test_D2_the_published_iteration_cycles_and_ours_ends():
    """x -> 1/x for the quadratic kernel and one point at 1."""
    psi = mc.Element(mc.Polynomial(2, offset=0.0), [[1.0]], [1.0])
    published = mc.FixedPoint(safeguard=False, max_iter=5)
    naive = mc.preimage(psi, published, start=[[2.0]], history=True)
    assert_allclose(naive.history.points[:, 0, 0], [2.0, 0.5, 2.0, 0.5, 2.0, 0.5])
    assert naive.status[0] is Status.MAX_ITER
    for solver in (mc.FixedPoint(), mc.MM(), mc.Newton(), mc.LBFGS()):
        assert_allclose(mc.preimage(psi, solver, start=[[2.0]]).points, [[1.0]], atol=1e-8)


def test_D2_a_repelling_exact_preimage_is_found():
    """The exponential kernel with its point at 2, where the step has the multiplier -4."""
    psi = mc.Element(mc.Exponential(1.0), [[2.0]], [1.0])
    naive = mc.preimage(psi, mc.FixedPoint(safeguard=False, max_iter=6), start=[[2.001]])
    assert abs(naive.points[0, 0] - 2.0) > 0.5
    for solver in (mc.FixedPoint(), mc.MM(), mc.Newton(), mc.LBFGS()):
        assert_allclose(mc.preimage(psi, solver, start=[[2.001]]).points, [[2.0]], atol=1e-8)


# --- D3, D4: gradient descent and Newton ----------------------------------------------------------


@pytest.mark.parametrize("kernel", RADIAL[:3], ids=repr)
def test_D3_gradient_descent_is_monotone(kernel, X, rng):
    psi = mc.Element(kernel, X, rng.normal(size=25))
    solver = mc.GradientDescent(max_iter=2000)
    _, points, values = path(psi, solver, rng.normal(size=(1, 2)))
    assert rises(values) <= 1e-14
    gradient = -psi.gradient(points)
    assert_allclose(points[1:], points[:-1] - gradient[:-1] / lipschitz(psi), atol=1e-12)


def test_D3_needs_a_lipschitz_constant(X):
    for kernel in (mc.Laplace(1.0), mc.Polynomial(2)):
        with pytest.raises(mc.InputError, match=r"use LBFGS\(\)"):
            mc.preimage(mc.mean_embedding(kernel, X), mc.GradientDescent())


@pytest.mark.parametrize("kernel", [*RADIAL, *DOT[1:]], ids=repr)
def test_D4_newton_converges_quadratically_near_a_minimum(kernel, X, rng):
    psi = mc.Element(kernel, X, rng.uniform(size=25) / 25)
    end = mc.preimage(psi).points
    _, points, _ = path(psi, mc.Newton(tol=1e-14), end + 1e-2 * rng.normal(size=(1, 2)))
    errors = np.linalg.norm(points - mc.preimage(psi, mc.Newton(tol=1e-15)).points, axis=1)
    assert errors[1] < 20 * errors[0] ** 2
    assert errors[2] < max(20 * errors[1] ** 2, 1e-7)


def test_D4_newton_falls_back_where_the_hessian_is_not_positive_definite(rng):
    for _ in range(40):
        psi = mc.Element(mc.Gaussian(0.5), rng.normal(size=(15, 2)), rng.normal(size=15))
        start = 1.5 * rng.normal(size=(1, 2))
        back, _, values = path(psi, mc.Newton(), start)
        assert rises(values) <= 1e-14
        assert back.status[0] in (Status.CONVERGED, Status.ESCAPED)


# --- D8: majorise and minimise, inner products ----------------------------------------------------


@pytest.mark.parametrize("kernel", DOT, ids=repr)
def test_D8_is_monotone_and_ends_at_critical_points(kernel, rng):
    for _ in range(4):
        psi = mc.Element(kernel, rng.normal(size=(10, 2)), rng.uniform(size=10) / 5)
        back, _, values = path(psi, mc.MM(tol=1e-11), rng.normal(size=(1, 2)))
        assert rises(values) <= 1e-14
        assert back.status[0] is Status.CONVERGED


def test_D8_lengths_in_closed_form(rng):
    X, a, x = rng.normal(size=(8, 2)), rng.uniform(size=8), rng.normal(size=(1, 2))
    for kernel, slope, length in (
        (mc.Polynomial(3, offset=0.0, scale=2.0), lambda t: 3 * t**2 / 8, _polynomial_length),
        (mc.Exponential(1.5), lambda t: np.exp(t / 1.5) / 1.5, _exponential_length),
    ):
        b = (a * slope(X @ x[0])) @ X
        step = mc.preimage(mc.Element(kernel, X, a), mc.MM(max_iter=1), start=x).points[0]
        assert_allclose(step, length(np.linalg.norm(b)) * b / np.linalg.norm(b), rtol=1e-10)


def _polynomial_length(b, p=3, scale=2.0):
    return (b * scale**p / p) ** (1 / (2 * p - 1))


def _exponential_length(b, scale=1.5):
    return np.sqrt(scale / 2 * lambertw(2 * scale * b**2).real)


def test_D8_needs_coefficients_without_signs(X):
    psi = mc.Element(mc.Polynomial(2), X, np.resize([1.0, -1.0], 25))
    with pytest.raises(mc.InputError, match=">= 0"):
        mc.preimage(psi, mc.MM())


# --- D9, D10: safeguarded fixed point and mixed-sign majoriser ------------------------------------


@pytest.mark.parametrize("kernel", [*RADIAL, *DOT], ids=repr)
def test_D9_the_safeguarded_fixed_point_is_monotone_for_any_signs(kernel, rng):
    for _ in range(5):
        psi = mc.Element(kernel, rng.normal(size=(12, 3)), rng.normal(size=12))
        _, _, values = path(psi, mc.FixedPoint(max_iter=200), rng.normal(size=(1, 3)))
        assert rises(values) <= 1e-13


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_D10_the_mixed_sign_majoriser_is_monotone(kernel, rng):
    for _ in range(5):
        psi = mc.Element(kernel, rng.normal(size=(12, 2)), rng.normal(size=12))
        _, _, values = path(psi, mc.MM(max_iter=300), rng.normal(size=(1, 2)))
        assert rises(values) <= 1e-14


def test_D10_gaussian_step(X, rng):
    s, a, x = 0.9, rng.normal(size=25), rng.normal(size=(1, 2))
    psi = mc.Element(mc.Gaussian(s), X, a)
    w = np.exp(-np.sum((x - X) ** 2, axis=1) / (2 * s * s))
    bend = 2 * np.exp(-1.5) / s**2
    bottom = (a * w)[a > 0].sum() / s**2 + bend * -a[a < 0].sum()
    step = mc.preimage(psi, mc.MM(max_iter=1), start=x).points[0]
    assert_allclose(step, x[0] + psi.gradient(x)[0] / bottom, rtol=1e-7)


# --- D14: the projected objective -----------------------------------------------------------------


def test_D14_the_projected_objective_ignores_what_lies_outside(X, rng):
    k = mc.Gaussian(1.0)
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X)).truncate(4)
    psi = plane.project(mc.feature(k, rng.normal(size=(6, 2))))

    def projected(points):
        gap = plane.coordinates(mc.feature(k, points)) - plane.coordinates(psi)
        return 0.5 * np.sum(gap**2, axis=1)

    nearest = mc.preimage(psi)
    back = mc.preimage(psi, objective=mc.preimages.Projected(plane), start=nearest.points)
    assert_allclose(back.objective, projected(back.points), atol=1e-12)
    assert (back.objective <= projected(nearest.points)).all()
    assert (nearest.distance <= back.distance + 1e-12).all()  # which is the other problem
    assert back.objective.max() < 0.1 * projected(nearest.points).max()


def test_D14_gradient_of_the_projected_objective(X, rng):
    k = mc.Polynomial(2)
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X)).truncate(3)
    psi, x = plane.project(mc.feature(k, [[0.4, -0.3]])), rng.normal(size=2)

    def objective(y):
        gap = plane.coordinates(mc.feature(k, y[None])) - plane.coordinates(psi)
        return 0.5 * float(np.sum(gap**2))

    h = 1e-6
    numeric = [(objective(x + h * e) - objective(x - h * e)) / (2 * h) for e in np.eye(2)]
    solver = mc.LBFGS(max_iter=1)
    back = mc.preimage(psi, solver, objective=mc.preimages.Projected(plane), start=x, history=True)
    assert_allclose(back.history.gradient_norm[0, 0], np.linalg.norm(numeric), rtol=1e-6)
