"""What a teacher draws: objective, derivatives, surrogate, majorisation, Newton's gap."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercer as mc
from mercer.preimages._diagnostics import (
    is_majorised,
    preimage_gradient,
    preimage_hessian,
    preimage_objective,
    surrogate,
)
from mercer.testing import awkward_kernels


@pytest.fixture
def X(rng):
    return rng.normal(size=(6, 3))


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_objective_is_half_a_squared_distance(kernel, X, rng):
    psi = mc.Element(kernel, X, rng.normal(size=6))
    Y = rng.normal(size=(9, 3))
    distance = mc.feature(kernel, Y).distance(psi)
    expected = distance**2 / 2 - psi.norm() ** 2 / 2
    assert_allclose(preimage_objective(psi, Y), expected, rtol=1e-8, atol=1e-10)


def test_derivatives_of_a_kernel_of_several_variables(X, rng):
    kernel = mc.Gaussian(1.0) * mc.Polynomial(2) + mc.Linear()
    psi = mc.Element(kernel, X, rng.normal(size=6))
    Y, h = rng.normal(size=(5, 3)), 1e-5
    for i, e in enumerate(np.eye(3)):
        up, down = Y + h * e, Y - h * e
        slope = (preimage_objective(psi, up) - preimage_objective(psi, down)) / (2 * h)
        bend = (preimage_gradient(psi, up) - preimage_gradient(psi, down)) / (2 * h)
        assert_allclose(preimage_gradient(psi, Y)[:, i], slope, rtol=1e-6, atol=1e-7)
        assert_allclose(preimage_hessian(psi, Y)[:, i], bend, rtol=1e-6, atol=1e-7)


def test_hessian_at_a_cusp_is_nan():
    psi = mc.Element(mc.Laplace(1.0), [[0.0], [1.0]], [1.0, 1.0])
    assert_array_equal(np.isnan(preimage_hessian(psi, [[0.0], [0.5]])).ravel(), [True, False])
    assert_allclose(preimage_gradient(psi, [[0.0]]), [[-np.exp(-1.0)]])


def test_gradients_survive_where_values_underflow():
    psi = mc.Element(mc.Gaussian(1.0), [[0.0]], [1.0])
    assert preimage_gradient(psi, [[37.0]])[0, 0] > 0


def test_surrogate_of_a_maximum_and_of_nothing():
    up = surrogate(mc.Element(mc.Gaussian(1.0), [[0.0]], [-1.0]), [0.5])
    assert not up.is_minimum
    assert up.curvature < 0
    assert_allclose(up.minimiser, [0.0], atol=1e-15)  # the fixed-point step, uphill
    flat = surrogate(mc.Element(mc.Epanechnikov(1.0), [[0.0]], [1.0]), [5.0])
    assert not flat.is_minimum
    assert np.isnan(flat.minimiser).all()
    assert flat([[1.0], [2.0]]).tolist() == [0.5, 0.5]


def test_a_tolerance_changes_nothing(X, rng):
    psi = mc.Element(mc.Gaussian(1.0), X, rng.normal(size=6))
    expected = surrogate(psi, X[0]).minimiser
    with mc.options(tolerance=1e-3):
        assert_array_equal(surrogate(psi, X[0]).minimiser, expected)


def test_inputs_are_checked(X):
    batch, plain = mc.feature(mc.Gaussian(1.0), X), mc.Element(mc.Gaussian(1.0), X, np.ones(6))
    for call in (preimage_objective, preimage_gradient, preimage_hessian):
        with pytest.raises(mc.InputError, match="one element is needed"):
            call(batch, X)
    with pytest.raises(mc.InputError, match="one-dimensional"):
        surrogate(plain, X)
    for kernel in (
        mc.Gaussian(1.0) + mc.Linear(),
        mc.Gaussian(1.0).transform(mc.Scales([1, 2, 3])),
    ):
        with pytest.raises(mc.exceptions.DerivativeError, match="surrogate"):
            surrogate(mc.Element(kernel, X, np.ones(6)), X[0])
    table = mc.Element(mc.Precomputed(np.eye(3)), [0, 1], [1.0, 2.0])
    assert_allclose(preimage_objective(table, [0, 1, 2]), [-0.5, -1.5, 0.5])
    with pytest.raises(mc.MercerError):
        preimage_gradient(table, [0])


def test_majorisation_is_a_statement_about_each_point(X):
    psi = mc.Element(mc.Gaussian(1.0), X, [1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    Y = np.vstack([X, X + 0.1])
    above = is_majorised(psi, X[0], Y)
    assert above.shape == (12,)
    assert above[0]  # it touches
    q, values = surrogate(psi, X[0])(Y), preimage_objective(psi, Y)
    clear = np.abs(q - values) > 1e-9
    assert_array_equal(above[clear], (q > values)[clear])


def test_the_objective_is_unknown_where_both_terms_overflow():
    psi = mc.Element(mc.Exponential(1.0), [[30.0]], [1.0])
    found = preimage_objective(psi, [[-30.0], [30.0]])
    assert found[0] == np.inf
    assert np.isnan(found[1])


def test_majorisation_where_kernel_values_are_large(rng):
    X = rng.normal(size=(30, 1))
    psi = mc.mean_embedding(mc.kernels.Exponential.from_gamma(30.0), X)
    far = np.array([[4.7], [-4.7]])  # k(x, x) is above 1e280
    assert is_majorised(psi, [0.0], far).shape == (2,)
