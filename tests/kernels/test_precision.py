"""Rounding: exact symmetry, far origins, large and small scales, float32, many dimensions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import mercer as mc

KERNELS = [
    mc.Gaussian(1.0),
    mc.Laplace(1.0),
    mc.Matern(1.5, 1.0),
    mc.NegativeDistance(1.0),
    mc.NegativeDistance(3.0),
    mc.Epanechnikov(2.0),
    mc.Polynomial(3),
    mc.Gaussian(1.0) * mc.Linear() + mc.Laplace(1.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("spread", [0.0, 1e2, 1e4])
@pytest.mark.parametrize("d", [1, 3, 4, 20])
@pytest.mark.parametrize("engine", [None, "blocked"])
def test_gram_matrices_are_exactly_symmetric(kernel, spread, d, engine, rng):
    """Also where points lie in tight clusters far apart, so that tiles are centred apart."""
    X = np.repeat(spread * rng.normal(size=(10, d)), 60, axis=0) + 1e-2 * rng.normal(size=(600, d))
    with mc.options(engine=engine):
        K = kernel(X[rng.permutation(600)])
    assert np.array_equal(K, K.T)


@pytest.mark.parametrize("kernel", KERNELS[:6], ids=repr)
@pytest.mark.parametrize("d", [2, 6])
def test_radial_kernels_do_not_know_the_origin(kernel, d, rng):
    X, Y = (np.round(rng.normal(size=(n, d)), 6) for n in (30, 20))
    shift = 2.0**20
    moved = kernel(X + shift, Y + shift)
    exact = kernel((X + shift) - shift, (Y + shift) - shift)
    assert_allclose(moved, exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sparse_points(kernel, rng):
    X, Y = (rng.normal(size=(n, 30)) * (rng.random((n, 30)) < 0.1) for n in (25, 15))
    X[3] = Y[4]
    size = np.abs(kernel(X, Y)).max()
    assert_allclose(kernel(csr_array(X), csr_array(Y)), kernel(X, Y), atol=1e-12 * size)
    assert_allclose(kernel(csr_array(X)), kernel(X), atol=1e-12 * size)
    assert_allclose(kernel.diag(csr_array(X)), kernel.diag(X), rtol=1e-12)
    sparse = kernel.gradient(csr_array(X), csr_array(Y))
    assert_allclose(sparse, kernel.gradient(X, Y), atol=1e-12 * size)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_float32_throughout(kernel, rng):
    X, Y = (rng.normal(size=(n, 3)).astype(np.float32) for n in (8, 5))
    double = [Z.astype(np.float64) for Z in (X, Y)]
    for name in ("__call__", "gradient", "mixed_derivative"):
        single, exact = getattr(kernel, name)(X, Y), getattr(kernel, name)(*double)
        assert single.dtype == np.float32, name
        assert_allclose(single, exact, atol=2e-5 * np.abs(exact).max(), err_msg=name)
    assert kernel.diag(X).dtype == np.float32
    assert kernel(X, double[1]).dtype == np.float64


def test_values_far_below_rounding_are_right():
    """exp(-u/2) down to 1e-297, relative to themselves."""
    x = np.linspace(0.0, 37.0, 75)
    for d in (1, 5):
        X, y = np.zeros((75, d)), np.zeros((1, d))
        X[:, 0] = x
        assert_allclose(mc.Gaussian(1.0)(y, X)[0], np.exp(-(x**2) / 2), rtol=1e-12)
        assert_allclose(mc.Laplace(0.1)(y, X)[0], np.exp(-10.0 * x), rtol=1e-12)


@pytest.mark.parametrize("s", [1e-40, 1e-8, 1e8, 1e40])
def test_extreme_length_scales(s, rng):
    for d in (2, 5):
        X = rng.normal(size=(6, d))
        for kind in (mc.Gaussian, mc.Laplace, mc.Matern, mc.RationalQuadratic):
            unit, scaled = kind(length_scale=1.0), kind(length_scale=s)
            assert_allclose(scaled(s * X), unit(X), rtol=1e-10)


def test_nearly_equal_points_in_many_dimensions():
    """1 - k is about 1e-14: the distance must not drown in the norms."""
    X = np.full((2, 10), 1e3)
    X[1, 0] += 1e-7
    K = mc.Laplace(1.0)(X)
    assert_allclose(1.0 - K[0, 1], X[1, 0] - X[0, 0], rtol=1e-6)


def test_one_point_and_more_columns_than_points(rng):
    x = rng.normal(size=(1, 200))
    assert mc.Gaussian(1.0)(x).shape == (1, 1)
    assert mc.Gaussian(1.0)(x)[0, 0] == 1.0
    assert_allclose(mc.Linear()(x)[0, 0], x[0] @ x[0], rtol=1e-13)
    assert mc.Laplace(1.0).gradient(x).shape == (1, 1, 200)


def test_integers_and_lists_are_taken_exactly():
    X = [[1, 2], [3, 4]]
    assert np.array_equal(mc.Linear()(X), [[5.0, 11.0], [11.0, 25.0]])
    assert np.array_equal(mc.Linear()(np.array(X, dtype=np.int8) * 30), 900.0 * mc.Linear()(X))
    assert np.array_equal(mc.Linear()(np.array([[True], [False]])), [[1.0, 0.0], [0.0, 0.0]])


def test_inputs_are_not_changed(rng):
    X = rng.normal(size=(7, 5))
    before = X.copy()
    for kernel in KERNELS:
        kernel(X), kernel.diag(X), kernel.gradient(X), kernel.mixed_derivative(X)
    assert np.array_equal(X, before)
    assert X.flags.writeable


def test_results_belong_to_the_caller(rng):
    X = rng.normal(size=(4, 2))
    for kernel in (*KERNELS, mc.kernels.Constant(2.0), mc.Gaussian(1.0) + 1.0):
        for result in (kernel(X), kernel.diag(X), kernel.gradient(X), kernel.mixed_derivative(X)):
            assert result.flags.writeable, kernel
            assert not np.shares_memory(result, X)


# --- derivatives at x = y -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Gaussian(1.0) + mc.kernels.Normalised(mc.Linear()),
        mc.Gaussian(1.0) * mc.kernels.Normalised(mc.Linear()),
        mc.Matern(2.5, 1.0) + mc.kernels.Normalised(mc.Polynomial(2, offset=0.0)),
    ],
    ids=repr,
)
def test_a_smooth_kernel_has_no_cusp_because_another_part_is_singular_at_the_origin(kernel):
    """Normalised(Linear) is not defined at 0, which says nothing about x = y elsewhere."""
    x = np.array([[1.0, 2.0]])
    assert np.isfinite(kernel.mixed_derivative(x)).all()
    assert np.isfinite(mc.Element(kernel, x, [1.0]).hessian(x)).all()


def test_mixed_derivative_at_a_cusp_is_missing_and_at_matern_is_not():
    x = np.array([[1.0, 2.0]])
    assert np.isnan(mc.Laplace(1.0).mixed_derivative(x)).all()
    assert np.array_equal(mc.Laplace(1.0).gradient(x), np.zeros((1, 1, 2)))
    assert_allclose(mc.Matern(1.5, 1.0).mixed_derivative(x)[0, 0], 3.0 * np.eye(2), rtol=1e-13)
    assert_allclose(mc.Matern(2.5, 1.0).mixed_derivative(x)[0, 0], 5 / 3 * np.eye(2), rtol=1e-13)
    assert_allclose(mc.NegativeDistance(3.0).mixed_derivative(x)[0, 0], np.zeros((2, 2)))


@pytest.mark.parametrize("engine", [None, "blocked"])
@pytest.mark.parametrize(
    "point_map",
    [mc.Scales([1.3, 0.7, 2.1]), mc.kernels.Matrix(np.eye(3) / 3.0), mc.Columns([0, 2])],
    ids=repr,
)
@pytest.mark.parametrize(
    "inner", [mc.Gaussian(1.0), mc.Linear(), mc.Laplace(1.0) * mc.Gaussian(1.0)], ids=repr
)
def test_float32_beside_float64_is_mapped_in_float64(inner, point_map, engine, rng):
    """The answer is that of the same numbers in float64."""
    k = inner.transform(point_map)
    X, Y = rng.normal(size=(30, 3)), rng.normal(size=(20, 3)).astype(np.float32)
    exact = Y.astype(np.float64)
    with mc.options(engine=engine):
        psi = mc.Element(k, X, np.ones(30))
        for function in (
            k, lambda X, Y: k(Y, X).T, k.gradient, lambda _, Y: psi(Y), lambda _, Y: psi.gradient(Y)
        ):  # fmt: skip
            found = function(X, Y)
            assert found.dtype == np.float64
            assert_allclose(found, function(X, exact), rtol=1e-13, atol=1e-13)
