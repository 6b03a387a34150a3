"""noise_level and feature_noise: known noise, invariances, closed forms, hard inputs."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, make_moons

import mercer as mc
from mercer.methods import feature_noise, noise_level


def curve(name, rng, n=400):
    t = rng.uniform(0.0, 2.0 * np.pi, n)
    if name == "ring":
        return np.column_stack([np.cos(t), np.sin(t)])
    if name == "sine":
        return np.column_stack([t, 0.8 * np.sin(2.0 * t)])
    return make_moons(n, random_state=int(rng.integers(100)))[0]


@pytest.mark.parametrize("name", ["ring", "moons", "sine"])
@pytest.mark.parametrize("sd", [0.1, 0.2])
def test_curves_in_the_plane(name, sd, rng):
    found = []
    for _ in range(3):
        clean = curve(name, rng)
        found.append(noise_level(clean + sd * rng.normal(size=clean.shape)) / sd)
    assert 0.7 < np.mean(found) < 1.5, found  # a bound from above, that chance may undercut


@pytest.mark.parametrize("sd", [0.05, 0.4])
@pytest.mark.parametrize("dim", [1, 3])
def test_linear_subspaces(dim, sd, rng):
    clean = rng.normal(size=(300, dim)) @ rng.normal(size=(dim, 10))
    assert noise_level(clean + sd * rng.normal(size=clean.shape)) == pytest.approx(sd, rel=0.2)


@pytest.mark.parametrize("sd", [0.05, 0.1, 0.25, 0.5])
def test_images(sd, rng):
    clean = rng.permutation(load_digits().data / 16.0)[:500]
    assert noise_level(clean + sd * rng.normal(size=clean.shape)) == pytest.approx(sd, rel=0.1)


def test_pure_noise_is_noise(rng):
    X = 3.0 * rng.normal(size=(400, 6))
    assert 1.5 < noise_level(X) < 4.0  # of its size


def test_equivariance(rng):
    clean = curve("ring", rng)
    X = clean + 0.1 * rng.normal(size=clean.shape)
    s = noise_level(X)
    assert noise_level(1e3 * X) == pytest.approx(1e3 * s, rel=1e-6)
    assert noise_level(1e-6 * X) == pytest.approx(1e-6 * s, rel=1e-6)
    assert noise_level(X + 1e4) == pytest.approx(s, rel=1e-4)


def test_the_order_of_rows_is_irrelevant(rng):
    X = curve("moons", rng) + 0.1 * rng.normal(size=(400, 2))
    assert noise_level(rng.permutation(X)) == pytest.approx(noise_level(X), rel=1e-8)


@pytest.mark.parametrize("shape", [(60, 2), (90, 20), (400, 3)])
def test_weights_are_repetitions(shape, rng):
    X = np.outer(rng.normal(size=shape[0]), np.ones(shape[1])) + 0.2 * rng.normal(size=shape)
    w = rng.integers(0, 4, shape[0])
    assert noise_level(X, weights=w) == pytest.approx(
        noise_level(np.repeat(X, w, axis=0)), rel=1e-8
    )


def test_weights_may_be_shares(rng):
    X = np.outer(rng.normal(size=200), [1.0, 2.0, 3.0]) + 0.2 * rng.normal(size=(200, 3))
    assert noise_level(X, weights=np.full(200, 1 / 200)) == pytest.approx(noise_level(X), rel=1e-8)


def test_sparse_is_dense_up_to_the_regression_of_columns(rng):
    X = np.where(rng.random((80, 5)) < 0.6, 0.0, rng.normal(size=(80, 5)))
    dense, sparse = noise_level(X), noise_level(csr_array(X))
    assert 0.0 < dense <= sparse * (1.0 + 1e-9)  # columns of sparse rows are not regressed


def test_constant_columns_hold_no_noise(rng):
    X = np.outer(rng.normal(size=200), [1.0, -1.0, 2.0]) + 0.1 * rng.normal(size=(200, 3))
    with_constants = np.column_stack([np.full(200, 7.0), X, np.zeros(200)])
    assert noise_level(with_constants) == pytest.approx(0.1, rel=0.3)


@pytest.mark.parametrize("X", [[[1.0, 2.0]], np.ones((5, 3)), [[1.0], [1.0]]])
def test_where_nothing_varies_there_is_none(X):
    assert noise_level(X) == 0.0


def test_weights_on_one_row_leave_nothing_to_tell(rng):
    assert noise_level(rng.normal(size=(4, 2)), weights=[1.0, 0.0, 0.0, 0.0]) == 0.0


@pytest.mark.parametrize("shape", [(2, 1), (3, 50), (2, 4), (10, 3500)])
def test_few_rows_and_many_columns(shape, rng):
    level = noise_level(rng.normal(size=shape))
    assert np.isfinite(level)
    assert 0.0 <= level < 3.0


def test_columns_that_depend_on_each_other_exactly(rng):
    X = rng.normal(size=(100, 3))
    assert np.isfinite(noise_level(np.column_stack([X, X.sum(axis=1), X[:, 0]])))


def test_nan_is_refused():
    with pytest.raises(mc.InputError, match="NaN"):
        noise_level([[0.0], [np.nan]])


# --- feature_noise --------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "kernel", [mc.Gaussian(30.0), mc.RationalQuadratic(1.5, 40.0), mc.Linear()], ids=repr
)
def test_very_many_columns_are_measured_along_one_direction(kernel, rng):
    X = rng.normal(size=(8, 1001))
    first, rest = X[:, :1000], X[:, :1]
    wide, narrow = (feature_noise(kernel, np.hstack([first, Z]), 0.2) for Z in (rest, rest[:, :0]))
    assert wide == pytest.approx(narrow, rel=1e-6)  # d = 1000 is exact


def test_very_many_columns_of_a_polynomial_are_measured_to_some_percent(rng):
    X = rng.normal(size=(100, 1500))
    square = np.sum(X**2, axis=1)
    expected = 0.01 * np.sum(2.0 * square + 2.0 * square / 1500)
    found = feature_noise(mc.Polynomial(2, 1.0, 0.0), X, 0.1)
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-74, 1e76, 1e149])
def test_noise_is_found_at_any_scale(scale, rng):
    X = rng.normal(size=(40, 3))
    assert noise_level(scale * X) == pytest.approx(scale * noise_level(X), rel=1e-6)


def test_no_noise_moves_nothing(rng):
    for kernel in (mc.Linear(), mc.Gaussian(1.0), mc.Laplace(1.0)):
        for d in (2, 1001):
            assert feature_noise(kernel, rng.normal(size=(4, d)), 0.0) == 0.0
            assert feature_noise(kernel, rng.normal(size=(4, d)), 5e-324) == 0.0


def test_wrong_types_are_named(rng):
    X = rng.normal(size=(5, 2))
    for wrong in (None, 3, "gaussian", mc.Gaussian):
        with pytest.raises(mc.InputError, match="kernel must be"):
            feature_noise(wrong, X, 0.1)
    with pytest.raises(mc.InputError, match="noise must be >= 0"):
        feature_noise(mc.Gaussian(1.0), X, -1.0)


@pytest.mark.parametrize("weights", [np.eye(5), "text", [1.0, 2.0], -np.ones(5), np.zeros(5)])
def test_wrong_weights_are_named(weights, rng):
    X = rng.normal(size=(5, 2))
    with pytest.raises(mc.InputError, match="weights"):
        feature_noise(mc.Gaussian(1.0), X, 0.1, weights=weights)
    plane = mc.kernel_pca(mc.Gaussian(1.0), X)
    with pytest.raises(mc.InputError, match="weights"):
        mc.methods.fit_denoiser(plane, X, weights=weights, noise=0.1)
