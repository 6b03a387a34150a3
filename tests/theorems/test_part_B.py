"""Part B of the specification: elements of a reproducing kernel Hilbert space."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import mercer as mc
from mercer.testing import awkward_kernels

KERNELS = awkward_kernels()


@pytest.fixture
def X(rng):
    return rng.normal(size=(6, 3))


def quadratic_features(X):
    """phi with <phi(x), phi(y)> = (<x, y> + 1)^2."""
    i, j = np.triu_indices(X.shape[1], 1)
    root = np.sqrt(2.0)
    pairs = root * X[:, i] * X[:, j]
    return np.hstack([X**2, pairs, root * X, np.ones((len(X), 1))])


# --- B1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_B1_expansion_is_evaluated_and_measured_through_the_gram_matrix(kernel, X, rng):
    Z, Y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    a, b = rng.normal(size=6), rng.normal(size=4)
    psi, phi = mc.Element(kernel, X, a), mc.Element(kernel, Z, b)
    assert_allclose(psi(Y), kernel(Y, X) @ a, rtol=1e-11, atol=1e-12)
    assert_allclose(psi.inner(phi), a @ kernel(X, Z) @ b, rtol=1e-10, atol=1e-11)
    assert_allclose(psi.norm() ** 2, a @ kernel(X) @ a, rtol=1e-10)
    gap = a @ kernel(X) @ a - 2 * a @ kernel(X, Z) @ b + b @ kernel(Z) @ b
    assert_allclose(psi.distance(phi) ** 2, gap, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_B1_evaluation_is_bounded_by_the_norm(kernel, X, rng):
    psi = mc.Element(kernel, X, rng.normal(size=(6, 20)))
    Y = 2.0 * rng.normal(size=(200, 3))
    bound = np.sqrt(kernel.diag(Y))[:, None] * psi.norm()
    assert (np.abs(psi(Y)) <= bound * (1 + 1e-9)).all()


def test_B1_the_bound_is_attained_by_features(X):
    phi = mc.feature(mc.Polynomial(2), X)
    assert_allclose(np.diag(phi(X)), np.sqrt(mc.Polynomial(2).diag(X)) * phi.norm(), rtol=1e-12)


def test_B1_explicit_features(X, rng):
    """With (<x, y> + 1)^2 an element is the vector sum_i a_i phi(x_i)."""
    a, b = rng.normal(size=6), rng.normal(size=6)
    psi, chi = (mc.Element(mc.Polynomial(2), X, c) for c in (a, b))
    w, v = a @ quadratic_features(X), b @ quadratic_features(X)
    assert_allclose(psi(X), quadratic_features(X) @ w, rtol=1e-10)
    assert_allclose(psi.inner(chi), w @ v, rtol=1e-10)
    assert_allclose(psi.distance(chi), np.linalg.norm(w - v), rtol=1e-9)


# --- B2 -------------------------------------------------------------------------------------------

SMOOTH = [k for k in KERNELS if not any(k.program.cusps)]


def difference_features(kernel, x, h):
    """(k(x + h e, .) - k(x - h e, .)) / 2h: elements that tend to the derivatives of k(x, .)."""
    steps = h * np.eye(len(x))
    return (mc.feature(kernel, x + steps) - mc.feature(kernel, x - steps)) / (2 * h)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_B2_derivatives_are_inner_products(kernel, X, rng):
    psi = mc.Element(kernel, X, rng.normal(size=6))
    y = rng.normal(size=3)
    by_inner = psi.inner(difference_features(kernel, y, 1e-4))
    scale = np.abs(psi.gradient(y[None])).max()
    assert_allclose(by_inner, psi.gradient(y[None])[0], atol=1e-6 * scale)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_B2_inner_products_of_derivatives_are_the_mixed_derivative(kernel, rng):
    x, y = rng.normal(size=3), rng.normal(size=3)
    table = difference_features(kernel, x, 1e-3).inner(difference_features(kernel, y, 1e-3))
    mixed = kernel.mixed_derivative(x[None], y[None])[0, 0]
    assert_allclose(table, mixed, atol=5e-5 * np.abs(mixed).max())


def test_B2_norm_of_a_derivative():
    """|d k(x, .)|^2 = -2 k'(0) for a radial kernel, wherever x is; 1/s^2 for the Gaussian."""
    d = difference_features(mc.Gaussian(0.5), np.array([3.0]), 1e-4)
    assert_allclose(d.norm() ** 2, [4.0], rtol=1e-6)
    assert_allclose(mc.Gaussian(0.5).mixed_derivative([[3.0]]), [[[[4.0]]]], rtol=1e-14)


# --- B3 -------------------------------------------------------------------------------------------


def test_B3_ridge_optimum_over_all_features_is_an_expansion_at_the_data(X, rng):
    """Least squares: the optimum over 10 explicit features is sum_i a_i k(x_i, .)."""
    y, lam, n = rng.normal(size=6), 0.1, 6
    phi = quadratic_features(X)
    w = np.linalg.solve(phi.T @ phi + n * lam * np.eye(10), phi.T @ y)
    a = np.linalg.solve(mc.Polynomial(2)(X) + n * lam * np.eye(n), y)
    psi = mc.Element(mc.Polynomial(2), X, a)
    Y = rng.normal(size=(20, 3))
    assert_allclose(psi(Y), quadratic_features(Y) @ w, rtol=1e-8, atol=1e-10)
    assert_allclose(psi.norm(), np.linalg.norm(w), rtol=1e-9)


def test_B3_logistic_optimum_over_all_features_is_an_expansion_at_the_data(X, rng):
    y, lam = np.sign(rng.normal(size=6)), 0.05
    phi, K = quadratic_features(X), mc.Polynomial(2)(X)

    def loss(values, squared_norm):
        return np.logaddexp(0.0, -y * values).mean() + lam * squared_norm

    def slope(values):
        return -y / (1.0 + np.exp(y * values)) / 6

    options = {"method": "BFGS", "options": {"gtol": 1e-9}}
    explicit = minimize(
        lambda w: loss(phi @ w, w @ w),
        np.zeros(10),
        jac=lambda w: phi.T @ slope(phi @ w) + 2 * lam * w,
        **options,
    )
    implicit = minimize(
        lambda a: loss(K @ a, a @ K @ a),
        np.zeros(6),
        jac=lambda a: K @ (slope(K @ a) + 2 * lam * a),
        **options,
    )
    assert_allclose(implicit.fun, explicit.fun, rtol=1e-9)
    psi = mc.Element(mc.Polynomial(2), X, implicit.x)
    Y = rng.normal(size=(10, 3))
    assert_allclose(psi(Y), quadratic_features(Y) @ explicit.x, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_B3_an_orthogonal_component_never_helps(kernel, X, rng):
    """It leaves the values at the data alone and makes the norm larger."""
    a = rng.normal(size=6)
    psi = mc.Element(kernel, X, a)
    span = mc.Subspace.span(0.0 * psi, mc.feature(kernel, X), tol=1e-9)
    other = mc.Element(kernel, rng.normal(size=(5, 3)), rng.normal(size=5))
    extra = other - span.project(other)
    size = other.norm() + psi.norm()
    assert_allclose(extra(X), 0.0, atol=1e-5 * size * np.sqrt(kernel.diag(X).max()))
    both = psi + extra
    assert_allclose(both.norm() ** 2, psi.norm() ** 2 + extra.norm() ** 2, rtol=1e-5)
    assert both.norm() >= psi.norm() * (1 - 1e-6)


# --- B4 -------------------------------------------------------------------------------------------


def some(kernel, rng, count=1):
    """Random elements of a space."""
    made = [mc.Element(kernel, rng.normal(size=(4, 3)), rng.normal(size=4)) for _ in range(count)]
    return made if count > 1 else made[0]


@pytest.mark.parametrize("pair", [(0, 4), (6, 9), (12, 16), (3, 3)])
def test_B4_tensor_products(pair, rng):
    k, m = (KERNELS[i] for i in pair)
    (a, u), (b, v) = some(k, rng, 2), some(m, rng, 2)
    A, U = mc.space.tensor(a, b), mc.space.tensor(u, v)
    assert_allclose(A.norm(), a.norm() * b.norm(), rtol=1e-9)
    assert_allclose(U.inner(A), u.inner(a) * v.inner(b), rtol=1e-8, atol=1e-9)
    image = A(v)
    assert_allclose(image.norm(), abs(b.inner(v)) * a.norm(), rtol=1e-8)
    assert image.distance(b.inner(v) * a) <= 1e-6 * image.norm()
    assert_allclose(A.bilinear(u, v), u.inner(a) * b.inner(v), rtol=1e-8, atol=1e-9)
    assert_allclose(A.T.bilinear(v, u), A.bilinear(u, v), rtol=1e-8, atol=1e-9)


def test_B4_hilbert_schmidt_inner_product_with_a_tensor_is_a_bilinear_form(rng):
    """<L, a (x) b> = <a, L b>."""
    k, m = KERNELS[6], KERNELS[13]
    L = mc.space.tensor(some(k, rng), some(m, rng)) - 2.0 * mc.space.tensor(
        some(k, rng), some(m, rng)
    )
    a, b = some(k, rng), some(m, rng)
    assert_allclose(L.inner(mc.space.tensor(a, b)), L.bilinear(a, b), rtol=1e-9)


def test_B4_hilbert_schmidt_norm_is_the_sum_over_an_orthonormal_basis(rng):
    k, X = mc.Gaussian(1.0), rng.normal(size=(6, 2))
    basis = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X)).directions
    a, b = (mc.Element(k, X, rng.normal(size=(6, 3))) for _ in range(2))
    L = mc.space.tensor(a, b)
    squares = sum(float(L(f).norm() ** 2) for f in basis)
    assert_allclose(L.norm() ** 2, squares, rtol=1e-8)


def test_B4_explicit_features_make_matrices(X, rng):
    k = mc.Polynomial(2)
    a, b = rng.normal(size=6), rng.normal(size=6)
    M = np.outer(a @ quadratic_features(X), b @ quadratic_features(X))
    A = mc.space.tensor(mc.Element(k, X, a), mc.Element(k, X, b))
    assert_allclose(A.norm(), np.linalg.norm(M), rtol=1e-10)
    Y = rng.normal(size=(4, 3))
    table = mc.feature(k, Y).inner(A(mc.feature(k, Y)))
    assert_allclose(table, quadratic_features(Y) @ M @ quadratic_features(Y).T, rtol=1e-9)


# --- B5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_B5_distance_of_means(kernel, rng):
    """|mean phi(x) - mean phi(y)|^2 = mean k(x, x') + mean k(y, y') - 2 mean k(x, y)."""
    X, Y = rng.normal(size=(9, 3)), rng.normal(size=(5, 3)) + 0.5
    expected = kernel(X).mean() + kernel(Y).mean() - 2 * kernel(X, Y).mean()
    gap = mc.mean_embedding(kernel, X).distance(mc.mean_embedding(kernel, Y))
    assert_allclose(gap**2, expected, rtol=1e-9)


def test_B5_with_explicit_features(rng):
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=(5, 2)) + 0.5
    k = mc.Polynomial(2)
    gap = mc.mean_embedding(k, X).distance(mc.mean_embedding(k, Y))
    expected = quadratic_features(X).mean(0) - quadratic_features(Y).mean(0)
    assert_allclose(gap, np.linalg.norm(expected), rtol=1e-10)
    linear = mc.mean_embedding(mc.Linear(), X).distance(mc.mean_embedding(mc.Linear(), Y))
    assert_allclose(linear, np.linalg.norm(X.mean(0) - Y.mean(0)), rtol=1e-11)


def test_B5_distance_of_a_point_to_the_mean(rng):
    """|phi(x) - mean|^2 = k(x, x) - 2 mean_i k(x, x_i) + mean_ij k(x_i, x_j)."""
    X, k = rng.normal(size=(9, 2)), mc.Gaussian(1.0) + mc.Linear()
    K = k(X)
    expected = np.sqrt(np.diag(K) - 2 * K.mean(axis=1) + K.mean())
    assert_allclose(mc.feature(k, X).distance(mc.mean_embedding(k, X)), expected, rtol=1e-10)
