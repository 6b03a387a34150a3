"""Derivatives of k(x, y) in its arguments, pair by pair, against the double loop."""

import numpy as np
import pytest

import mercer as mc
from mercer import engine
from mercer.engine import Columns, Matrix, Scales
from tests import naive
from tests.naive import dot, exp, sqrt, squared_distance

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
LENGTHS = np.array([0.7, 1.9, 1.1, 2.3])
A = np.array([[0.9, -0.4, 0.3, 0.2], [0.1, 0.8, -0.5, 0.7]])


def gaussian(x, y):
    return exp(squared_distance(x, y) * -0.5)


def laplace(x, y):
    return exp(-sqrt(squared_distance(x, y)))


def mixed(x, y):
    scaled, mapped = naive.mapped(gaussian, np.diag(1 / LENGTHS)), naive.mapped(laplace, A)
    return scaled(x, y) * (1 + x[1] * y[1]) + 0.5 * mapped(x, y)


KERNELS = {
    "gaussian": (mc.Gaussian(1.0), gaussian),
    "laplace": (mc.Laplace(1.0), laplace),
    "polynomial": (mc.Polynomial(3), lambda x, y: (dot(x, y) + 1) ** 3),
    "normalised": (
        mc.kernels.Normalised(mc.Polynomial(2)),
        lambda x, y: (dot(x, y) + 1) ** 2 / ((dot(x, x) + 1) * (dot(y, y) + 1)),
    ),
    "mixed": (
        mc.Gaussian(1.0).transform(Scales(LENGTHS)) * (1.0 + mc.Linear().transform(Columns([1])))
        + 0.5 * mc.Laplace(1.0).transform(Matrix(A)),
        mixed,
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_derivatives_are_double_loops(name, dtype, rng):
    kernel, k = KERNELS[name]
    X, Y = rng.normal(size=(7, 4)).astype(dtype), rng.normal(size=(5, 4)).astype(dtype)
    gradient = engine.pairwise_derivative(kernel.program, X, Y)
    expected = naive.gradients(k, Y, X)  # in the first argument, by symmetry
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, expected, atol=TOLERANCE[dtype] * np.abs(expected).max())
    second = engine.pairwise_derivative(kernel.program, X, Y, mixed=True)
    expected = naive.mixed_derivatives(k, X, Y)
    assert second.dtype == dtype
    tolerance = 10 * TOLERANCE[dtype] * np.abs(expected).max()
    np.testing.assert_allclose(second, expected, atol=tolerance)


def test_many_rows_are_done_in_pieces(rng):
    X, Y = rng.normal(size=(3000, 5)), rng.normal(size=(40, 5))
    gap = X[:, None] - Y[None]
    K = np.exp(-0.5 * (gap**2).sum(axis=-1))
    found = engine.pairwise_derivative(mc.Gaussian(1.0).program, X, Y)
    np.testing.assert_allclose(found, -gap * K[..., None], atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 6])
def test_at_a_cusp_the_gradient_is_zero_and_the_second_derivative_missing(d, dtype, rng):
    X = (rng.normal(size=(20, d)) + 3.0).astype(dtype)
    gradient = engine.pairwise_derivative(mc.Laplace(1.0).program, X, X)
    second = engine.pairwise_derivative(mc.Laplace(1.0).program, X, X, mixed=True)
    own = np.arange(20)
    np.testing.assert_array_equal(gradient[own, own], 0.0)
    assert np.isnan(second[own, own]).all()
    assert np.isfinite(second[~np.eye(20, dtype=bool)]).all()


@pytest.mark.parametrize("d", [2, 6])
def test_matern_at_coincident_points(d, rng):
    """d^2 k / dx dy' = 3 I / l^2 at x = y."""
    X = rng.normal(size=(10, d)) + 3.0
    second = engine.pairwise_derivative(mc.Matern(1.5, 2.0).program, X, X, mixed=True)
    own = np.arange(10)
    expected = np.broadcast_to(0.75 * np.eye(d), (10, d, d))
    np.testing.assert_allclose(second[own, own], expected, atol=1e-10)


def test_functions_of_blocks_have_no_derivatives():
    kernel = mc.kernels.FromFunction(lambda X, Y: X @ Y.T)
    for mixed in (False, True):
        with pytest.raises(mc.exceptions.DerivativeError, match="known by its values only"):
            engine.pairwise_derivative(kernel.program, np.ones((2, 2)), np.eye(2), mixed=mixed)
