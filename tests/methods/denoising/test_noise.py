"""noise_level and feature_noise: known noise, invariances, closed forms, hard inputs."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import datasets as sk

import mercer as mc
from mercer.methods import feature_noise, noise_level


def factors(rng, n=400, rank=2, d=20, sd=0.1):
    """A few factors behind many columns, and noise."""
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + sd * rng.normal(size=(n, d))


def standardised(name):
    X = getattr(sk, f"load_{name}")().data
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("sd", [0.05, 0.4])
@pytest.mark.parametrize("rank", [1, 3])
def test_few_factors_behind_many_columns(rank, sd, rng):
    level = noise_level(factors(rng, rank=rank, sd=sd))
    assert level.source == "directions"
    assert level.n_directions == 20 - rank
    assert abs(level.sd - sd) < 4.0 * level.error
    assert level.error < 0.02 * sd


def test_a_curve_in_many_columns(rng):
    t = rng.uniform(0.0, 2.0 * np.pi, 500)
    clean = np.column_stack([np.cos(t), np.sin(t)]) @ rng.normal(size=(2, 20))
    level = noise_level(clean + 0.3 * rng.normal(size=clean.shape))
    assert level.sd == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize("sd", [0.05, 0.1, 0.25, 0.5])
def test_images(sd, rng):
    X = sk.load_digits().data[:600] / 16.0
    assert noise_level(X + sd * rng.normal(size=X.shape)).sd == pytest.approx(sd, rel=0.08)


@pytest.mark.parametrize("sd", [0.0, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("name", ["iris", "wine", "diabetes"])
def test_most_tables_do_not_tell(name, sd, rng):
    X = standardised(name)
    level = noise_level(X + sd * rng.normal(size=X.shape))
    assert level.source == "unknown"
    assert level.sd == 0.0
    assert level.error == np.inf


def test_independent_columns_may_be_signal():
    """Nothing varies clearly more than the rest; with the usual level, 3 % of draws seemed to."""
    draws = [np.random.default_rng(i).normal(size=(500, 8)) for i in range(300)]
    assert all(noise_level(X).source == "unknown" for X in draws)


def test_quiet_columns_that_depend_on_each_other_are_no_floor(rng):
    quiet = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8))
    X = np.hstack([quiet / quiet.std(axis=0), 5.0 * rng.normal(size=(300, 3))])
    assert noise_level(X).source == "unknown"


def test_equivariance(rng):
    X = factors(rng)
    s = noise_level(X).sd
    assert noise_level(1e3 * X).sd == pytest.approx(1e3 * s, rel=1e-9)
    assert noise_level(1e-6 * X).sd == pytest.approx(1e-6 * s, rel=1e-9)
    assert noise_level(X + 1e4).sd == pytest.approx(s, rel=1e-6)
    assert noise_level(rng.permutation(X)).sd == pytest.approx(s, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-74, 1e76, 1e149])
def test_noise_is_found_at_any_scale(scale, rng):
    X = factors(rng, n=100)
    assert noise_level(scale * X).sd == pytest.approx(scale * noise_level(X).sd, rel=1e-6)


@pytest.mark.parametrize("values", [[0, 1], [2]])
def test_weights_are_repetitions(values, rng):
    X = factors(rng, n=300)
    w = rng.choice(values, len(X))
    weighted, repeated = noise_level(X, weights=w), noise_level(np.repeat(X, w, axis=0))
    assert weighted.sd > 0.0
    assert weighted.sd == pytest.approx(repeated.sd, rel=1e-8)
    assert weighted.error == pytest.approx(repeated.error, rel=1e-8)


def test_weights_may_be_shares(rng):
    X = factors(rng, n=200)
    assert noise_level(X, weights=np.full(200, 1 / 200)).sd == pytest.approx(
        noise_level(X).sd, rel=1e-8
    )


def test_sparse_is_dense(rng):
    X = np.where(rng.random((300, 12)) < 0.6, 0.0, rng.normal(size=(300, 12)))
    X[:, 6:] *= 9.0
    dense, sparse = noise_level(X), noise_level(csr_array(X))
    assert dense.source == sparse.source
    assert dense.sd == pytest.approx(sparse.sd, rel=1e-9)


def test_constant_columns_hold_no_noise(rng):
    X = factors(rng)
    with_constants = np.column_stack([np.full(400, 7.0), X, np.zeros(400)])
    assert noise_level(with_constants).sd == pytest.approx(noise_level(X).sd, rel=1e-9)


@pytest.mark.parametrize(
    "X",
    [[[1.0, 2.0]], np.ones((5, 3)), [[1.0], [1.0]], np.eye(4), np.arange(9e3).reshape(9, -1)],
    ids=["row", "constant", "column", "few", "wide"],
)  # fmt: skip
def test_where_there_is_too_little_nothing_is_told(X):
    assert noise_level(X).source == "unknown"


def test_columns_that_depend_on_each_other_exactly(rng):
    X = rng.normal(size=(100, 6))
    assert noise_level(np.column_stack([X, X.sum(axis=1), X[:, 0]])).source == "unknown"


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
