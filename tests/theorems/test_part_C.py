"""Part C of the specification: the objective of a pre-image, its gradient and its Hessian."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import mercer as mc
from mercer.preimages._diagnostics import (
    preimage_gradient,
    preimage_hessian,
    preimage_objective,
)
from mercer.rigor._derivative_bounds import gradient_bound, lipschitz

RADIAL = [
    mc.Gaussian(0.9),
    mc.Matern(2.5, 1.4),
    mc.InverseMultiquadric(0.7, 1.5),
    mc.RationalQuadratic(0.8, 1.1),
    mc.Laplace(1.2),
]
PROJECTIVE = [
    mc.Linear(),
    mc.Polynomial(2, scale=2.0, offset=0.0),
    mc.Polynomial(3, scale=1.5, offset=1.0),
    mc.Exponential(2.0),
]


@pytest.fixture
def problem(rng):
    """Points, coefficients of both signs, queries."""
    return rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=(10, 3))


def profile(kernel, u):
    """k, k', k'' in closed form."""
    match kernel:
        case mc.Gaussian(length_scale=s):
            k = np.exp(-u / (2 * s**2))
            return k, -k / (2 * s**2), k / (4 * s**4)
        case mc.InverseMultiquadric(c=c, p=p):
            b = c + u
            return b**-p, -p * b ** (-p - 1), p * (p + 1) * b ** (-p - 2)
        case mc.Laplace(length_scale=s):
            r, k = np.sqrt(u), np.exp(-np.sqrt(u) / s)
            return k, -k / (2 * r * s), k * (1 / (4 * u * s**2) + 1 / (4 * r**3 * s))
        case mc.Linear():
            return u, np.ones_like(u), np.zeros_like(u)
        case mc.Polynomial(degree=p, scale=s, offset=c):
            b = u / s + c
            return b**p, p / s * b ** (p - 1), p * (p - 1) / s**2 * b ** (p - 2)
        case mc.Exponential(scale=s):
            f = np.exp(u / s)
            return f, f / s, f / s**2
    return None


def differences(f, Y, h=1e-5):
    """Central differences of f along every axis, in the second axis of the result."""
    columns = [(f(Y + h * e) - f(Y - h * e)) / (2 * h) for e in np.eye(Y.shape[1])]
    return np.stack(columns, axis=1)


# --- C1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*RADIAL, *PROJECTIVE], ids=repr)
def test_C1_objective(kernel, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    expected = 0.5 * kernel.diag(Y) - kernel(Y, X) @ a
    assert_allclose(preimage_objective(psi, Y), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kernel", [*RADIAL, *PROJECTIVE], ids=repr)
def test_C1_half_the_squared_distance(kernel, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    distance = mc.feature(kernel, Y).distance(psi)
    shifted = preimage_objective(psi, Y) + 0.5 * a @ kernel(X) @ a
    assert_allclose(shifted, distance**2 / 2, rtol=1e-9, atol=1e-11)


# --- C2, C3, C6 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*RADIAL, *PROJECTIVE], ids=repr)
def test_C2_gradient_by_differences(kernel, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    slope = differences(lambda Z: preimage_objective(psi, Z), Y)
    assert_allclose(preimage_gradient(psi, Y), slope, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kernel", [RADIAL[0], RADIAL[2], RADIAL[4]], ids=repr)
def test_C2_gradient_and_C3_hessian_of_a_radial_kernel(kernel, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    for y, g, H in zip(Y, preimage_gradient(psi, Y), preimage_hessian(psi, Y), strict=True):
        D = X - y
        _, k1, k2 = profile(kernel, np.sum(D**2, axis=1))
        assert_allclose(g, 2 * (a * k1) @ D, rtol=1e-11, atol=1e-12)
        outer = np.einsum("n,ni,nj->ij", a * k2, D, D)
        assert_allclose(H, -2 * (a @ k1 * np.eye(3) + 2 * outer), rtol=1e-10, atol=1e-11)


def test_C2_the_printed_gaussian_factor_is_twice_too_large(problem):
    """-(1/s^2) sum a_i (x_i - x) k_i; Honeine 2024, Example 7, prints 2/s^2."""
    X, a, Y = problem
    s = 1.3
    psi = mc.Element(mc.Gaussian(s), X, a)
    D = X[None] - Y[:, None]
    kappa = np.exp(-np.sum(D**2, axis=2) / (2 * s**2))
    ours = -np.einsum("n,mn,mni->mi", a, kappa, D) / s**2
    true = differences(lambda Z: preimage_objective(psi, Z), Y)
    assert_allclose(preimage_gradient(psi, Y), ours, rtol=1e-11)
    assert_allclose(ours, true, rtol=1e-7)
    assert_allclose(2 * ours / true, 2.0, rtol=1e-6)


@pytest.mark.parametrize("kernel", [*RADIAL, *PROJECTIVE], ids=repr)
def test_C3_hessian_by_differences(kernel, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    bend = differences(lambda Z: preimage_gradient(psi, Z), Y)
    H = preimage_hessian(psi, Y)
    assert_allclose(H, bend, rtol=1e-6, atol=1e-6)
    assert_allclose(H, np.swapaxes(H, 1, 2), rtol=1e-12, atol=1e-12)


def test_C3_gaussian_hessian_of_example_10(problem):
    X, a, Y = problem
    s = 0.9
    H = preimage_hessian(mc.Element(mc.Gaussian(s), X, a), Y)
    for y, ours in zip(Y, H, strict=True):
        D = X - y
        kappa = a * np.exp(-np.sum(D**2, axis=1) / (2 * s**2))
        outer = np.einsum("n,ni,nj->ij", kappa, D, D)
        assert_allclose(ours, (kappa.sum() * np.eye(3) - outer / s**2) / s**2, rtol=1e-10)


@pytest.mark.parametrize("kernel", PROJECTIVE, ids=repr)
def test_C6_gradient_and_hessian_of_a_projective_kernel(kernel, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, a)
    for y, g, H in zip(Y, preimage_gradient(psi, Y), preimage_hessian(psi, Y), strict=True):
        _, own1, own2 = profile(kernel, np.array(y @ y))
        _, f1, f2 = profile(kernel, X @ y)
        assert_allclose(g, own1 * y - (a * f1) @ X, rtol=1e-10, atol=1e-11)
        outer = np.einsum("n,ni,nj->ij", a * f2, X, X)
        expected = own1 * np.eye(3) + 2 * own2 * np.outer(y, y) - outer
        assert_allclose(H, expected, rtol=1e-10, atol=1e-10)


# --- C4 -------------------------------------------------------------------------------------------


def test_C4_gaussian_bound_is_attained_at_distance_s():
    """|a|_1 / (s sqrt(e)); the 2 / (s sqrt(e)) of Honeine 2024, Theorem 8, is never reached."""
    s = 1.3
    psi = mc.Element(mc.Gaussian(s), [[0.0, 0.0]], [1.0])
    at = np.linalg.norm(preimage_gradient(psi, [[s, 0.0]]))
    assert round(gradient_bound(psi), 6) == 0.466562
    assert_allclose(at, gradient_bound(psi), rtol=1e-13)
    printed = 2 / (s * np.sqrt(np.e))
    assert round(printed, 6) == 0.933124
    r = np.linspace(0.0, 10.0, 10_001)[:, None] * [1.0, 0.0]
    assert np.linalg.norm(preimage_gradient(psi, r), axis=1).max() < 0.51 * printed


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_C4_bound_holds_everywhere(kernel, problem, rng):
    X, a, _ = problem
    psi = mc.Element(kernel, X, a)
    Y = np.vstack([3 * rng.normal(size=(2000, 3)), X + 1e-4 * rng.normal(size=X.shape)])
    norms = np.linalg.norm(preimage_gradient(psi, Y), axis=1)
    assert (norms <= gradient_bound(psi) * (1 + 1e-12)).all()


@given(st.floats(0.05, 20.0), st.floats(0.1, 5.0))
def test_C4_inverse_quadratic_is_steepest_at_its_radius(c, p):
    psi = mc.Element(mc.InverseMultiquadric(c, p), [[0.0]], [1.0])
    r = np.sqrt(c / (2 * p + 1))
    steepest = np.abs(preimage_gradient(psi, [[r]]))[0, 0]
    assert_allclose(gradient_bound(psi), steepest, rtol=1e-10)


@pytest.mark.parametrize("whitened", [False, True])
def test_C4_kernel_pca_directions(whitened, rng):
    """Squared gradients of directions: n / (s^2 lam e), whitened n / (s^2 lam^2 e)."""
    n, s = 30, 0.8
    X = rng.normal(size=(n, 2))
    lam, V = np.linalg.eigh(mc.Gaussian(s)(X))
    for k in (-1, -2, -5):
        power = lam[k] ** (2 if whitened else 1)
        psi = mc.Element(mc.Gaussian(s), X, V[:, k] / np.sqrt(power))
        bound = n / (s**2 * power * np.e)
        norms = np.linalg.norm(preimage_gradient(psi, 2 * rng.normal(size=(500, 2))), axis=1)
        assert (norms**2 <= bound).all()
        assert gradient_bound(psi) ** 2 <= bound * (1 + 1e-12)  # |a|_1^2 <= n |a|_2^2


# --- C5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", RADIAL[:4], ids=repr)
def test_C5_eigenvalues_are_within_the_lipschitz_constant(kernel, problem, rng):
    X, a, _ = problem
    psi = mc.Element(kernel, X, a)
    Y = np.vstack([2 * rng.normal(size=(1000, 3)), X])
    values = np.linalg.eigvalsh(preimage_hessian(psi, Y))
    assert np.abs(values).max() <= lipschitz(psi) * (1 + 1e-12)


def test_C5_gaussian_constant_is_attained():
    psi = mc.Element(mc.Gaussian(0.7), [[0.0, 0.0], [0.0, 0.0]], [0.5, 1.0])
    assert_allclose(lipschitz(psi), 1.5 / 0.7**2, rtol=1e-12)
    top = np.linalg.eigvalsh(preimage_hessian(psi, [[0.0, 0.0]]))[0, -1]
    assert_allclose(top, lipschitz(psi), rtol=1e-12)


# --- C7 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", RADIAL[:4], ids=repr)
def test_C7_collinearity_has_the_same_minimisers_for_radial_kernels(kernel, problem):
    X, a, Y = problem
    psi = mc.Element(kernel, X, np.abs(a))

    def angle(x):
        return -psi(x[None])[0] / (psi.norm() * np.sqrt(kernel.diag(x[None])[0]))

    distance = preimage_objective(psi, Y)
    cosine = np.array([-angle(y) for y in Y])
    assert_allclose(np.argsort(distance), np.argsort(-cosine))
    best = minimize(angle, Y[np.argmin(distance)], method="Nelder-Mead", tol=1e-12).x
    assert np.linalg.norm(preimage_gradient(psi, best[None])) < 1e-4 * gradient_bound(psi)


def test_C7_collinearity_differs_for_projective_kernels():
    """Only the direction of psi matters: 7 k(e, .) is collinear with k(e, .), but far from it."""
    k = mc.Polynomial(2)
    psi = mc.Element(k, [[1.0, 0.0]], [7.0])
    cosine = psi([[1.0, 0.0]])[0] / (psi.norm() * np.sqrt(k.diag([[1.0, 0.0]])[0]))
    assert_allclose(cosine, 1.0, rtol=1e-12)
    assert np.linalg.norm(preimage_gradient(psi, [[1.0, 0.0]])) > 1.0
