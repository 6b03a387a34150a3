"""feature_noise: closed forms, weights, cusps, refusals."""

import numpy as np
import pytest

import mercer as mc
from mercer.methods import feature_noise


def test_energy_of_gaussian_and_linear_kernels(rng):
    X = rng.normal(size=(30, 4))
    for length in (0.5, 3.0):
        expected = 30 * 0.2**2 / length**2
        assert feature_noise(mc.Gaussian(length), X, 0.2) == pytest.approx(expected, rel=1e-9)
    assert feature_noise(mc.Linear(), X, 0.2) == pytest.approx(30 * 0.2**2, rel=1e-9)
    assert feature_noise(3.0 * mc.Linear(), X, 0.2) == pytest.approx(90 * 0.2**2, rel=1e-9)
    w = rng.uniform(size=30)
    assert feature_noise(mc.Linear(), X, 0.2, weights=w) == pytest.approx(w.sum() * 0.04, rel=1e-9)


def test_energy_of_a_polynomial_is_the_average_of_its_metric(rng):
    # (<x, y>)^2: d^2 k / dx_j dy_j at x = y is 2 |x|^2 + 2 x_j^2
    X = rng.normal(size=(30, 4))
    square = np.sum(X**2, axis=1)
    expected = 0.01 * np.sum(2.0 * square + 2.0 * square / 4)
    assert feature_noise(mc.Polynomial(2, 1.0, 0.0), X, 0.1) == pytest.approx(expected, rel=1e-8)


def test_energy_is_what_small_noise_adds_to_features(rng):
    k, X = mc.RationalQuadratic(1.5, 2.0), rng.normal(size=(200, 5))
    moved = X + 0.01 * rng.normal(size=X.shape)
    apart = 2.0 - 2.0 * np.diag(k(X, moved))  # k(x, x) = 1
    assert feature_noise(k, X, 0.01) == pytest.approx(apart.sum() / 5, rel=0.1)


@pytest.mark.parametrize("kernel", [mc.Laplace(1.0), mc.Polynomial(3, 1.0, 1.0)])
def test_energy_weighs_repetitions(kernel, rng):
    X, w = rng.normal(size=(250, 2)), rng.integers(0, 4, 250)
    a, b = (
        feature_noise(kernel, X, 0.3, weights=w),
        feature_noise(kernel, np.repeat(X, w, axis=0), 0.3),
    )
    assert a == pytest.approx(b, rel=1e-9)


def test_energy_at_a_cusp_is_how_far_features_move(rng):
    # |k_x - k_y|^2 = 2 - 2 exp(-|x - y| / l) for the Laplace kernel
    X = rng.normal(size=(200, 3))
    steps = 0.05 * rng.normal(size=(20_000, 3))
    expected = 200 * np.mean(2.0 - 2.0 * np.exp(-np.linalg.norm(steps, axis=1))) / 3
    assert feature_noise(mc.Laplace(1.0), X, 0.05) == pytest.approx(expected, rel=0.1)


def test_kernels_without_derivatives_carry_no_noise():
    k = mc.kernels.FromFunction(lambda X, Y: (X[:, None, 0] == Y[None, :, 0]) * 1.0)
    with pytest.raises(mc.InputError, match="give the filter's strength"):
        feature_noise(k, [[0.0], [1.0]], 0.1)
