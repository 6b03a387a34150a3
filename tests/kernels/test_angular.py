"""Kernels of the angle: the cosine, and the arc-cosine kernels of three orders."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import cosine_similarity

import mercer as mc
from mercer.kernels._angular import ArcCosine, Cosine
from mercer.testing import check_algebra, check_kernel, lattice
from tests import naive

ORDERS = [0, 1, 2]
AT_ZERO = {0: 1.0, 1: 1.0, 2: 3.0}  # J_n(0) / pi


def by_hand(n):
    """|x|^n |y|^n J_n(theta) / pi with theta from atan2, which is good near 0 and pi."""

    def k(x, y):
        a, b = math.hypot(*x), math.hypot(*y)
        if a == 0 or b == 0:
            return 0.0
        x, y = [v / a for v in x], [v / b for v in y]
        apart = math.hypot(*(p - q for p, q in zip(x, y, strict=True)))
        together = math.hypot(*(p + q for p, q in zip(x, y, strict=True)))
        theta = 2.0 * math.atan2(apart, together)
        s, c = math.sin(theta), math.cos(theta)
        J = {
            0: math.pi - theta,
            1: s + (math.pi - theta) * c,
            2: 3.0 * s * c + (math.pi - theta) * (1.0 + 2.0 * c * c),
        }
        return (a * b) ** n * J[n] / math.pi

    return k


# --- conformance ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        Cosine(),
        ArcCosine(1),
        ArcCosine(2),
        ArcCosine(1).transform(mc.Scales([1.0, 2.0])),
        2.0 * ArcCosine(1) * mc.Gaussian(1.0) + Cosine(),
        ArcCosine(2).transform(mc.Columns([2, 0])) + mc.Linear(),
    ],
    ids=repr,
)
def test_conformance(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("kernel", [ArcCosine(0), 0.5 * ArcCosine(0) + Cosine()], ids=repr)
def test_conformance_of_order_zero(kernel):
    """Not in the plane, where its mixed derivative is zero and only rounding could be compared."""
    check_kernel(kernel, dims=(1, 3, 5))


def test_algebra():
    check_algebra([ArcCosine(0), ArcCosine(1), Cosine(), ArcCosine(2)])


def test_mixed_derivative_of_order_zero_is_zero_in_the_plane(rng):
    """There it is 1 - |phi_x - phi_y| / pi, linear in each polar angle."""
    phi = np.arange(0.3, 6.0, 0.6)
    X = rng.uniform(0.5, 2.0, (10, 1)) * np.stack([np.cos(phi), np.sin(phi)], axis=1)
    assert_allclose(ArcCosine(0).mixed_derivative(X), 0.0, atol=1e-11)
    assert np.abs(ArcCosine(0).gradient(X)).max() > 0.1


# --- the cosine -----------------------------------------------------------------------------------


def test_cosine_is_that_of_scikit_learn(rng):
    X, Y = rng.normal(size=(7, 4)), 1e3 * rng.normal(size=(5, 4))
    assert_allclose(Cosine()(X, Y), cosine_similarity(X, Y), rtol=1e-13, atol=1e-15)
    assert_allclose(Cosine()(csr_array(X), Y), cosine_similarity(X, Y), rtol=1e-13, atol=1e-15)


def test_cosine_is_the_normalised_linear_kernel(rng):
    same = mc.kernels.Normalised(mc.Linear())
    assert Cosine().program == same.program
    assert Cosine().domain == same.domain
    assert Cosine() == Cosine()
    assert repr(Cosine()) == "Cosine()"
    with pytest.raises(mc.exceptions.DomainError, match="row 1"):
        Cosine()([[1.0, 0.0], [0.0, 0.0]])
    X = rng.normal(size=(4, 3))
    assert np.array_equal((Cosine() + same)(X), 2.0 * same(X))


# --- values of the arc-cosine kernels -------------------------------------------------------------


@pytest.mark.parametrize("n", ORDERS)
def test_values_are_those_of_a_double_loop(n, rng):
    X, Y = rng.normal(size=(8, 3)), 5.0 * rng.normal(size=(6, 3))
    for A, B in ((X, Y), (1e-3 * X, 1e4 * Y), (X + 1e3, Y)):
        expected = naive.gram(by_hand(n), A, B)
        assert_allclose(ArcCosine(n)(A, B), expected, rtol=0.0, atol=1e-12 * expected.max())
        assert_allclose(
            ArcCosine(n)(csr_array(A), B), expected, rtol=0, atol=1e-12 * expected.max()
        )


@pytest.mark.parametrize("n", ORDERS)
def test_values_are_means_over_random_neurons(n, rng):
    """k = 2 E[h(<w, x>) h(<w, y>)], h(z) = z^n for z > 0: within five standard errors."""
    X = rng.normal(size=(5, 3))
    Z = rng.normal(size=(200_000, 3)) @ X.T
    H = np.where(Z > 0, Z**n, 0.0)
    for i in range(5):
        for j in range(i + 1):
            terms = 2.0 * H[:, i] * H[:, j]
            error = terms.std() / math.sqrt(len(terms))
            assert abs(terms.mean() - ArcCosine(n)(X)[i, j]) <= 5.0 * error + 1e-15


@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("d", [1, 2, 7, 3000])
def test_diagonal_is_a_power_of_the_norm(n, d, rng):
    X = rng.normal(size=(12, d)) * 10.0 ** rng.integers(-6, 6, (12, 1)) + 0.1
    exact = AT_ZERO[n] * np.sum(X**2, axis=1) ** n
    assert_allclose(ArcCosine(n).diag(X), exact, rtol=1e-12)
    assert_allclose(np.diag(ArcCosine(n)(X)), exact, rtol=1e-12)
    single = X.astype(np.float32)
    exact = AT_ZERO[n] * np.sum(single.astype(float) ** 2, axis=1) ** n
    assert_allclose(np.diag(ArcCosine(n)(single, single.copy())), exact, rtol=1e-5)


@given(st.sampled_from(ORDERS), st.integers(2, 40), st.floats(1e-3, 1e3), st.integers(0, 10**6))
def test_parallel_points(n, d, factor, seed):
    x = np.random.default_rng(seed).normal(size=(1, d))
    size = (np.sum(x**2) * factor) ** n
    assert_allclose(ArcCosine(n)(x, factor * x), AT_ZERO[n] * size, rtol=1e-12)
    assert_allclose(ArcCosine(n)(x, -factor * x), 0.0, atol=1e-13 * size)


@given(st.sampled_from(ORDERS), st.floats(0.0, math.pi))
def test_accuracy_at_every_angle(n, theta):
    """Order 0 sees the angle itself, of which a cosine knows the square near 0 and pi."""
    x, y = [1.0, 0.0], [math.cos(theta), math.sin(theta)]
    sine = math.sin(theta)  # below 1e-7 vectors count as parallel
    error = {0: 4e-8 if sine < 1e-7 else 1e-15 / sine, 1: 1e-14, 2: 1e-14}[n]
    assert_allclose(ArcCosine(n)([x], [y])[0, 0], by_hand(n)(x, y), rtol=0.0, atol=error)


@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_positive_definite_on_lattices(n, d):
    for step in (0.1, 1.0, 30.0):
        X = lattice(d, {1: 20, 2: 6, 3: 4, 5: 2}[d], step) - 1.3 * step
        K = mc.kernels.Normalised(ArcCosine(n))(X)
        assert np.linalg.eigvalsh(K)[0] >= -1e-12 * len(X)


# --- the zero vector ------------------------------------------------------------------------------


def test_order_zero_refuses_the_zero_vector():
    with pytest.raises(mc.exceptions.DomainError, match=re.escape("k(x, x) = 0.0 (row 1)")):
        ArcCosine(0)([[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(mc.exceptions.DomainError, match="Y has a point"):
        ArcCosine(0)([[1.0, 0.0]], [[0.0, 0.0]])


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_zero_vector_has_feature_zero(n, dtype, make):
    X = np.array([[1.0, 2.0], [0.0, 0.0], [-1.0, 0.5]], dtype=dtype)
    k = ArcCosine(n)
    K = k(make(X))
    assert K[1].tolist() == K[:, 1].tolist() == [0.0, 0.0, 0.0]
    assert k.diag(make(X))[1] == 0.0
    assert_allclose(K[::2, ::2], k(X[::2]), rtol=1e-6)
    gradient = k.gradient(make(X))
    assert not gradient[:, 1].any()  # k(., 0) = 0
    expected = 0.5 * X if n == 1 else 0.0 * X  # symmetric derivative in x at x = 0
    assert_allclose(gradient[1], expected, rtol=1e-7)
    assert np.isfinite(k.mixed_derivative(make(X))).all()


@pytest.mark.parametrize("n", [1, 2])
def test_gradient_at_zero_is_the_symmetric_derivative(n, rng):
    Y, h = rng.normal(size=(5, 3)), 1e-6
    k = ArcCosine(n)
    H = h * np.eye(3)
    symmetric = (k(H, Y) - k(-H, Y)).T / (2 * h)
    atol = {1: 1e-11, 2: 1e-4}[n]  # order 2 is of the size of h itself
    assert_allclose(k.gradient(np.zeros((1, 3)), Y)[0], symmetric, rtol=1e-9, atol=atol)


# --- derivatives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", ORDERS)
def test_derivatives_are_those_of_the_feature_map(n):
    """d/dx and d/dy of 2 E[h h]: rays through a half-circle of neurons, by quadrature."""
    x, y = np.array([[1.0, 0.3]]), np.array([[-0.4, 1.2]])
    phi = (np.arange(200_000) + 0.5) * (2 * np.pi / 200_000)
    W = np.stack([np.cos(phi), np.sin(phi)], axis=1)
    on = ((W @ x[0] > 0) & (W @ y[0] > 0))[:, None]
    radial = {0: 1.0, 1: 2.0, 2: 8.0}[n]  # E |w|^(2n) in the plane
    value = 2.0 * radial * np.mean(on[:, 0] * (W @ x[0]) ** n * (W @ y[0]) ** n)
    assert_allclose(ArcCosine(n)(x, y)[0, 0], value, rtol=1e-4)
    if n == 0:
        return
    by_x = n * (W @ x[0]) ** (n - 1)
    by_y = n * (W @ y[0]) ** (n - 1)
    gradient = 2.0 * radial * np.mean(on * (by_x * (W @ y[0]) ** n)[:, None] * W, axis=0)
    assert_allclose(ArcCosine(n).gradient(x, y)[0, 0], gradient, rtol=1e-4)
    mixed = 2.0 * radial * np.einsum("i,ij,ik->jk", on[:, 0] * by_x * by_y, W, W) / len(W)
    assert_allclose(ArcCosine(n).mixed_derivative(x, y)[0, 0], mixed, rtol=1e-4)


def test_mixed_derivatives_where_points_coincide(rng):
    """Order 1: <x, y> + o(|x - y|^2), so the identity. Order 2: by Gaussian moments."""
    X = rng.normal(size=(6, 4))
    eye = np.eye(4)
    for M in np.diagonal(ArcCosine(1).mixed_derivative(X)).transpose(2, 0, 1):
        assert_allclose(M, eye, atol=1e-12)
    for x, M in zip(
        X, np.diagonal(ArcCosine(2).mixed_derivative(X)).transpose(2, 0, 1), strict=True
    ):
        assert_allclose(M, 4 * (x @ x) * eye + 8 * np.outer(x, x), rtol=1e-10, atol=1e-10)


def test_order_zero_has_symmetric_derivatives_at_its_cusps(rng):
    x = rng.normal(size=(1, 3))
    Y = np.concatenate([x, 3.0 * x, -x])
    assert not ArcCosine(0).gradient(x, Y).any()
    assert not ArcCosine(0).mixed_derivative(x, Y).any()
    h = 1e-6 * np.eye(3)
    k = ArcCosine(0)
    assert_allclose(k(x + h, Y), k(x - h, Y), atol=1e-9)  # which is why zero


def test_elements_have_gradients_and_hessians(rng):
    k, X, Y, a = (
        ArcCosine(2),
        rng.normal(size=(20, 3)),
        rng.normal(size=(4, 3)),
        rng.normal(size=20),
    )
    f = mc.Element(k, X, a).fields(Y, order=2)
    h = 1e-5
    for p in range(3):
        step = h * np.eye(3)[p]
        up, down = (mc.Element(k, X, a).fields(Y + s * step, order=1) for s in (1.0, -1.0))
        assert_allclose(f.gradient[:, 0, p], (up.value - down.value)[:, 0] / (2 * h), rtol=1e-6)
        slope = (up.gradient - down.gradient)[:, 0] / (2 * h)
        assert_allclose(f.hessian[:, 0, p], slope, rtol=1e-5, atol=1e-5)


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [-1, 3, 0.5, True, "1", None, [1], np.ones(2)])
def test_orders_are_checked(order):
    with pytest.raises(mc.InputError, match="order must be 0, 1 or 2, got"):
        ArcCosine(order)


def test_orders_are_kept_as_integers():
    assert type(ArcCosine(np.int64(2)).order) is int
    assert repr(ArcCosine()) == "ArcCosine(order=1)"
