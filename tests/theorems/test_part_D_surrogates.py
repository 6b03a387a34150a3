"""Part D of the specification: the surrogates behind the fixed points (D5 to D7)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.preimages._diagnostics import (
    is_majorised,
    preimage_gradient,
    preimage_hessian,
    preimage_objective,
    surrogate,
)

RADIAL = [
    (mc.Gaussian(1.1), lambda u: (np.exp(-u / 2.42), -np.exp(-u / 2.42) / 2.42)),
    (mc.InverseMultiquadric(0.8, 1.5), lambda u: ((0.8 + u) ** -1.5, -1.5 * (0.8 + u) ** -2.5)),
    (mc.Epanechnikov(4.0), lambda u: (np.maximum(4 - u, 0.0), -1.0 * (u <= 4))),
]
PROJECTIVE = [
    (
        mc.Polynomial(2, scale=1.5, offset=0.5),
        lambda t: ((t / 1.5 + 0.5) ** 2, 2 / 1.5 * (t / 1.5 + 0.5)),
    ),
    (mc.Polynomial(3, scale=2.0), lambda t: ((t / 2 + 1) ** 3, 1.5 * (t / 2 + 1) ** 2)),
    (mc.Exponential(2.0), lambda t: (np.exp(t / 2), np.exp(t / 2) / 2)),
]
CONVEX = [
    mc.Gaussian(0.8),
    mc.Laplace(0.7),
    mc.Matern(1.5, 1.0),
    mc.RationalQuadratic(0.4, 0.6),
    mc.Epanechnikov(3.0),
    mc.NegativeDistance(1.0),
]


@pytest.fixture
def problem(rng):
    return rng.normal(size=(8, 2)), rng.normal(size=8), rng.normal(size=(30, 2))


def step(psi, x):
    """The fixed-point step, from the surrogate."""
    return surrogate(psi, x).minimiser


# --- D5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "slopes"), RADIAL, ids=lambda v: repr(v)[:24])
def test_D5_the_surrogate_is_what_the_theorem_says(kernel, slopes, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    for at in Y[:5]:
        k, k1 = slopes(np.sum((X - at) ** 2, axis=1))
        C = np.sum(a * (k - k1 * np.sum((X - at) ** 2, axis=1)))
        u = np.sum((Y[:, None] - X[None]) ** 2, axis=2)
        q = surrogate(psi, at)
        constant = 0.5 * kernel.diag(at[None])[0]  # k(0)/2, which the theorem leaves out
        assert_allclose(q(Y) - constant, -u @ (a * k1) - C, rtol=1e-9, atol=1e-10)
        assert_allclose(q.curvature, -2 * np.sum(a * k1), rtol=1e-10)


@pytest.mark.parametrize("kernel", [*CONVEX, mc.Polynomial(3), mc.Exponential(2.0)], ids=repr)
def test_D5_value_and_gradient_agree_where_it_touches(kernel, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    for at in Y:
        q = surrogate(psi, at)
        here = at[None]
        assert_allclose(q(here), preimage_objective(psi, here), rtol=1e-12)
        assert_allclose(q.gradient, preimage_gradient(psi, here)[0], rtol=1e-12)
        h = 1e-4
        slope = [(q(here + h * e) - q(here - h * e))[0] / (2 * h) for e in np.eye(2)]
        assert_allclose(slope, q.gradient, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("kernel", "slopes"), RADIAL, ids=lambda v: repr(v)[:24])
def test_D5_its_stationary_point_is_the_fixed_point_step(kernel, slopes, problem):
    """A minimum if and only if -sum a_i k' > 0."""
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    signs = set()
    for at in Y:
        w = a * slopes(np.sum((X - at) ** 2, axis=1))[1]
        if not w.any():
            continue
        q = surrogate(psi, at)
        assert_allclose(q.minimiser, w @ X / w.sum(), rtol=1e-7, atol=1e-7)
        assert q.is_minimum == (-w.sum() > 0)
        around = q(q.minimiser + 0.1 * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]]))
        best = q(q.minimiser[None])[0]
        assert (around > best).all() if q.is_minimum else (around < best).all()
        signs.add(q.is_minimum)
    assert signs == {True, False}


# --- D6 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", CONVEX, ids=repr)
def test_D6_convex_profiles_and_positive_coefficients_are_majorised(kernel, problem, rng):
    X, a, Y = problem
    psi = mc.Element(kernel, X, np.abs(a))
    for at in Y:
        assert is_majorised(psi, at, np.vstack([Y, X, 5 * rng.normal(size=(50, 2))])).all()


@pytest.mark.parametrize("kernel", CONVEX, ids=repr)
def test_D6_so_the_fixed_point_descends(kernel, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, np.abs(a))
    for x in Y[:5]:
        for _ in range(20):
            new = step(psi, x)
            if not np.isfinite(new).all():
                break  # an empty window
            values = preimage_objective(psi, np.vstack([x, new]))
            assert values[1] <= values[0] + 1e-13 * np.abs(a).sum()
            x = new


def test_D6_fails_for_negative_coefficients(rng):
    """Over half of the runs with mixed signs contain an ascent."""
    climbed = 0
    for _ in range(60):
        psi = mc.Element(mc.Gaussian(1.0), rng.normal(size=(8, 2)), rng.normal(size=8))
        x = rng.normal(size=2)
        for _ in range(20):
            new = step(psi, x)
            values = preimage_objective(psi, np.vstack([x, new]))
            if values[1] > values[0] + 1e-12:
                climbed += 1
                break
            x = new
    assert climbed > 20


def test_D6_fails_for_epanechnikov_with_c_above_rho():
    """An Epanechnikov profile with c > rho climbs; with c = rho it falls."""
    points, ones = [[-0.7], [0.6], [0.6]], [1.0, 1.0, 1.0]
    for c, rho, before, after in [(1.0, 0.5, -1.79, -1.6244), (0.5, 0.5, -0.29, -0.6244)]:
        psi = mc.Element(mc.Epanechnikov(c, rho), points, ones)
        new = step(psi, np.zeros(1))
        values = preimage_objective(psi, [[0.0], new]) - c / 2
        assert_allclose(values, [before, after], atol=5e-5)
        assert is_majorised(psi, [0.0], [new])[0] == (c == rho)


def test_D6_newton_is_the_fixed_point_for_epanechnikov(problem):
    """Theorem 16, in general position (Honeine 2024)."""
    X, a, Y = problem
    flat = mc.Element(mc.Epanechnikov(4.0), X, np.abs(a))
    gaps = [newton_gap(flat, y) for y in Y]
    assert np.nanmax(gaps) < 1e-13
    assert np.isfinite(gaps).sum() > 20
    smooth = mc.Element(mc.Gaussian(1.0), X, np.abs(a))
    assert min(newton_gap(smooth, y) for y in Y) > 1e-4


def newton_gap(psi, y):
    """The distance between the ends of Newton's step and of the fixed-point step from y."""
    g, H = preimage_gradient(psi, y[None])[0], preimage_hessian(psi, y[None])[0]
    if np.linalg.matrix_rank(H) < len(y):
        return np.nan
    return np.linalg.norm(y - np.linalg.solve(H, g) - surrogate(psi, y).minimiser)


# --- D7 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "slopes"), PROJECTIVE, ids=lambda v: repr(v)[:24])
def test_D7_the_corrected_constant_touches_and_the_printed_does_not(kernel, slopes, problem):
    """With the C of Honeine 2024, Theorem 26, q(x_t) is f'(|x_t|^2) |x_t|^2 / 2 too low."""
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    for at in Y[:8]:
        f, f1 = slopes(at @ at)
        fi, f1i = slopes(X @ at)
        rest = -0.5 * f + a @ fi - a @ (f1i * (X @ at))
        ours, printed = (rest + factor * f1 * (at @ at) for factor in (0.5, 1.0))

        def q(Z, C, f1=f1, f1i=f1i):
            return 0.5 * f1 * np.sum(Z**2, axis=1) - Z @ X.T @ (a * f1i) - C

        here = at[None]
        true = preimage_objective(psi, here)
        assert_allclose(q(here, ours), true, rtol=1e-9, atol=1e-11)
        miss = q(here, printed) - true
        assert_allclose(miss, [-0.5 * f1 * (at @ at)], rtol=1e-6)
        assert_allclose(surrogate(psi, at)(Y), q(Y, ours), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("kernel", "slopes"), PROJECTIVE, ids=lambda v: repr(v)[:24])
def test_D7_its_stationary_point_is_the_fixed_point_step(kernel, slopes, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    for at in Y:
        q = surrogate(psi, at)
        expected = (a * slopes(X @ at)[1]) @ X / slopes(at @ at)[1]
        assert_allclose(q.minimiser, expected, rtol=1e-8, atol=1e-8)
        assert q.is_minimum


def test_D7_is_no_majoriser():
    """Honeine 2024, Theorem 27, fails at f(u) = u^2, x_1 = 1: x -> 1/x, and q(2) = -0.78 < 4."""
    psi = mc.Element(mc.Polynomial(2, offset=0.0), [[1.0]], [1.0])
    q = surrogate(psi, [0.5])
    assert_allclose(q.minimiser, [2.0], rtol=1e-14)
    assert_allclose(surrogate(psi, [2.0]).minimiser, [0.5], rtol=1e-14)
    assert_allclose(preimage_objective(psi, [[2.0], [0.5]]), [4.0, -0.21875], rtol=1e-14)
    assert round(q([[2.0]])[0], 2) == -0.78
    assert not is_majorised(psi, [0.5], [[2.0]])[0]


def test_D7_random_convex_weights_climb_half_of_the_time(rng):
    """Honeine 2024, Theorem 27, fails: about half of the runs contain an ascent."""
    climbed = 0
    for _ in range(60):
        a = rng.dirichlet(np.ones(5))
        psi = mc.Element(mc.Exponential(1.0), rng.normal(size=(5, 2)), a)
        x = rng.normal(size=2)
        for _ in range(15):
            new = step(psi, x)
            if np.linalg.norm(new) > 10:
                climbed += 1
                break
            values = preimage_objective(psi, np.vstack([x, new]))
            if values[1] > values[0] + 1e-10:
                climbed += 1
                break
            x = new
    assert 15 < climbed < 45
