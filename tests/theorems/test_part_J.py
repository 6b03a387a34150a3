"""Laws of the maximum mean discrepancy: J1 to J7 of docs/spec.md."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import energy_distance, norm

import mercer as mc
from mercer.kernels import Features, JacobiTheta
from mercer.methods import (
    mmd,
    mmd_power,
    mmd_test,
    mmd_variance,
    weighted_chi_square_tail,
    witness,
)
from mercer.theory import characteristic_coefficients, fourier_mmd, spectral_mmd

KERNELS = [mc.Gaussian(1.0), mc.Laplace(1.5), mc.Polynomial(3, 2.0, 1.0), mc.Linear()]


def samples(m, n, d=2, shift=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)), rng.normal(shift, 1.0, (n, d))


# --- J1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_J1_biased_is_the_mean_over_all_pairs_and_a_squared_distance(k):
    X, Y = samples(9, 7)
    value = mmd(k, X, Y, estimator="biased")
    assert_allclose(value, k(X).mean() + k(Y).mean() - 2 * k(X, Y).mean(), rtol=1e-9)
    distance = (mc.mean_embedding(k, X) - mc.mean_embedding(k, Y)).norm()
    assert_allclose(value, distance**2, rtol=1e-12)
    assert value >= 0


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_J1_unbiased_leaves_out_equal_rows_and_divides_the_cross_term_by_mn(k):
    X, Y = samples(9, 7)
    within = sum((k(Z).sum() - np.trace(k(Z))) / (len(Z) * (len(Z) - 1)) for Z in (X, Y))
    assert_allclose(mmd(k, X, Y), within - 2 * k(X, Y).sum() / (9 * 7), rtol=1e-9)


def test_J1_unbiased_has_mean_zero_if_the_distributions_agree():
    """The cross term printed as -2/n^2 of a sum over i != j averages .578 instead."""
    rng, k = np.random.default_rng(0), mc.Gaussian(1.0)
    values = np.array([mmd(k, *rng.normal(size=(2, 10, 1))) for _ in range(2000)])
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(2000)


def test_J1_both_estimate_the_discrepancy_of_the_distributions():
    """Of N(0, 1) and N(1, 1) with exp(-t^2 / 2): x - x' is normal with variance 2."""
    truth = 2.0 / np.sqrt(3.0) * (1.0 - np.exp(-1.0 / 6.0))
    rng, k, n = np.random.default_rng(0), mc.Gaussian(1.0), 10
    pairs = [(rng.normal(size=(n, 1)), rng.normal(1.0, 1.0, (n, 1))) for _ in range(1000)]
    unbiased = np.array([mmd(k, X, Y) for X, Y in pairs])
    assert abs(unbiased.mean() - truth) < 4 * unbiased.std() / np.sqrt(1000)
    biased = np.array([mmd(k, X, Y, estimator="biased") for X, Y in pairs])
    bias = 2.0 / n * (1.0 - 1.0 / np.sqrt(3.0))  # k(x, x) = 1 in place of E k(x, x')
    assert abs(biased.mean() - truth - bias) < 4 * biased.std() / np.sqrt(1000)


def test_J1_energy_distance_is_the_case_of_the_distance_kernel():
    X, Y = samples(40, 30, d=1)
    value = mmd(mc.NegativeDistance(), X, Y, estimator="biased")
    assert_allclose(np.sqrt(value), energy_distance(X[:, 0], Y[:, 0]), rtol=1e-9)
    v, w = np.arange(1.0, 41.0), np.arange(1.0, 31.0)
    value = mmd(mc.NegativeDistance(), X, Y, weights=(v, w), estimator="biased")
    assert_allclose(np.sqrt(value), energy_distance(X[:, 0], Y[:, 0], v, w), rtol=1e-9)


# --- J1b ------------------------------------------------------------------------------------------


def with_moments(n, mean, deviation, seed):
    x = np.random.default_rng(seed).gamma(2.0, size=n)
    return ((x - x.mean()) / x.std() * deviation + mean)[:, None]


def test_J1b_the_identity_sees_means_only():
    k = mc.Linear().transform(Features(lambda X: X))
    X, Y = with_moments(50, 1.0, 1.0, 0), with_moments(40, 1.0, 3.0, 1)
    assert mmd(k, X, Y, estimator="biased") < 1e-20
    assert_allclose(mmd(k, X + 0.5, Y, estimator="biased"), 0.25)


def test_J1b_squares_see_means_and_variances():
    k = mc.Linear().transform(Features(lambda X: np.hstack([X, X**2])))
    X, Y = with_moments(50, 1.0, 1.0, 0), -with_moments(40, -1.0, 1.0, 1)  # skewed the other way
    assert mmd(k, X, Y, estimator="biased") < 1e-20
    wide = with_moments(40, 1.0, 2.0, 1)
    assert_allclose(mmd(k, X, wide, estimator="biased"), (4.0 - 1.0) ** 2)
    assert mmd(mc.Gaussian(1.0), X, Y, estimator="biased") > 1e-3  # which sees the rest


# --- J2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_J2_inner_product_with_the_mean_embedding_is_a_mean(k):
    X, Z = samples(20, 5)
    f = mc.Element(k, Z, np.arange(1.0, 6.0))
    mu = mc.mean_embedding(k, X)
    assert_allclose(mu.inner(f), np.mean(f(X)), rtol=1e-9)


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_J2_inner_products_of_mean_embeddings_are_a_kernel_of_distributions(k):
    rng = np.random.default_rng(0)
    mus = [mc.mean_embedding(k, rng.normal(i, 1.0, (15 + i, 2))) for i in range(6)]
    G = np.array([[float(np.squeeze(a.inner(b))) for b in mus] for a in mus])
    assert_allclose(G, G.T, rtol=1e-9)
    assert np.linalg.eigvalsh(G).min() > -1e-9 * np.trace(G)
    X, Y = rng.normal(size=(8, 2)), rng.normal(size=(9, 2))
    value = mc.mean_embedding(k, X).inner(mc.mean_embedding(k, Y))
    assert_allclose(np.squeeze(value), k(X, Y).mean(), rtol=1e-9)


# --- J3 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_J3_the_witness_attains_the_mmd(k):
    X, Y = samples(20, 30)
    f = witness(k, X, Y)
    f = f / f.norm()
    assert_allclose(f.norm(), 1.0)
    value = np.sqrt(mmd(k, X, Y, estimator="biased"))
    assert_allclose(np.mean(f(X)) - np.mean(f(Y)), value, rtol=1e-9)
    for seed in range(20):  # and no other function of norm one does better
        other = mc.Element(k, X, np.random.default_rng(seed).normal(size=20))
        other = other / other.norm()
        assert np.mean(other(X)) - np.mean(other(Y)) <= value + 1e-12


# --- J4 -------------------------------------------------------------------------------------------


def test_J4_on_the_circle_it_is_a_sum_over_characteristic_functions():
    rng, k = np.random.default_rng(0), JacobiTheta(0.5)
    X, Y = rng.vonmises(0.0, 2.0, (60, 1)), rng.vonmises(1.0, 1.0, (50, 1))
    P, Q = (characteristic_coefficients(Z, 40) for Z in (X, Y))
    assert_allclose(fourier_mmd(k, P, Q), mmd(k, X, Y, estimator="biased"), rtol=1e-9)


@pytest.mark.parametrize("k", [mc.Gaussian(1.0), mc.Laplace(1.5), mc.Matern(1.5, 2.0)], ids=repr)
@pytest.mark.parametrize("d", [1, 3])
def test_J4_on_rd_it_is_an_integral_over_the_spectral_measure(k, d):
    X, Y = samples(30, 20, d=d, shift=1.0)
    found = spectral_mmd(k, X, Y, n_frequencies=20_000, random_state=0)
    exact = mmd(k, X, Y, estimator="biased")
    assert abs(found.value - exact) < 4 * found.error < 0.2 * exact


def test_J4_characteristic_functions_of_distributions_in_closed_form():
    """N(0, 1) and N(1, 1): MMD^2 = 2 s / sqrt(s^2 + 2) (1 - exp(-1 / (2 (s^2 + 2))))."""
    s = 1.5
    found = spectral_mmd(
        mc.Gaussian(s),
        lambda w: np.exp(-0.5 * w[:, 0] ** 2),
        lambda w: np.exp(-0.5 * w[:, 0] ** 2 - 1j * w[:, 0]),
        dim=1, n_frequencies=50_000, random_state=0,
    )  # fmt: skip
    exact = 2 * s / np.sqrt(s**2 + 2) * (1 - np.exp(-0.5 / (s**2 + 2)))
    assert abs(found.value - exact) < 4 * found.error < 0.1 * exact


# --- J5 -------------------------------------------------------------------------------------------


def eigenvalues(k, Z):
    H = np.eye(len(Z)) - 1 / len(Z)
    return np.maximum(np.linalg.eigvalsh(H @ k(Z) @ H) / len(Z), 0.0)


def test_J5_n_times_mmd_has_the_deviation_of_weighted_chi_squares():
    rng, k, n = np.random.default_rng(0), mc.Gaussian(1.0), 60
    draws = np.array([n * mmd(k, *rng.normal(size=(2, n, 1))) for _ in range(2000)])
    lam = eigenvalues(k, rng.normal(size=(1000, 1)))
    assert_allclose(draws.std(), np.sqrt(8 * lam @ lam), rtol=0.08)
    q = np.quantile(draws, 0.95)  # sum lam (z^2 - 2), z ~ N(0, 2), is 2 sum lam (z^2 - 1)
    assert abs(weighted_chi_square_tail(2 * lam, q + 2 * lam.sum()).value - 0.05) < 0.012


@pytest.mark.parametrize("sizes", [(40, 40), (25, 60)])
def test_J5_spectral_null_comes_from_the_eigenvalues_of_the_pooled_rows(sizes):
    X, Y = samples(*sizes, shift=0.2)
    k, factor = mc.Gaussian(1.0), 1 / sizes[0] + 1 / sizes[1]
    lam = eigenvalues(k, np.concatenate([X, Y]))
    expected = weighted_chi_square_tail(factor * lam, mmd(k, X, Y) + factor * lam.sum())
    found = mmd_test(X, Y, kernel=k, null="spectral")
    assert_allclose(found.pvalue, expected.value, atol=1e-7)


def test_J5_permutation_null_counts_the_observed_draw():
    X, Y = samples(30, 30, shift=5.0)
    assert mmd_test(X, Y, n_permutations=199, random_state=0).pvalue == 1 / 200
    p = [
        mmd_test(*samples(15, 15, shift=0.0, seed=i), n_permutations=19, random_state=i).pvalue
        for i in range(200)
    ]
    assert np.mean(np.array(p) <= 0.05) < 0.12


# --- J6 -------------------------------------------------------------------------------------------


def test_J6_variance_under_the_alternative():
    k, n = mc.Gaussian(1.0), 60
    draws = np.array([mmd(k, *samples(n, n, 1, 1.0, seed=i)) for i in range(1500)])
    X, Y = samples(n, n, 1, 1.0, seed=5000)
    h = k(X) + k(Y) - k(X, Y) - k(Y, X)
    assert_allclose(mmd_variance(k, X, Y, paired=True), 4 / n * np.var(h.mean(axis=1)))
    estimates = [mmd_variance(k, *samples(n, n, 1, 1.0, seed=i)) for i in range(200)]
    assert_allclose(np.mean(estimates), draws.var(), rtol=0.15)


def test_J6_the_statistic_is_asymptotically_normal():
    k = mc.Gaussian(1.0)
    draws = np.array([mmd(k, *samples(150, 150, 1, 1.5, seed=i)) for i in range(600)])
    z = np.sort((draws - draws.mean()) / draws.std())
    gaps = norm.cdf(z) - (np.arange(600) + 0.5) / 600
    assert np.abs(gaps).max() < 1.6 / np.sqrt(600)


# --- J7 -------------------------------------------------------------------------------------------


def rejections(k, n, count=150):
    return np.mean([
        mmd_test(*samples(n, n, 1, 0.6, seed=i), kernel=k, n_permutations=99, random_state=0).pvalue
        <= 0.05
        for i in range(count)
    ])  # fmt: skip


def test_J7_power_is_the_normal_tail_beyond_the_threshold():
    k, n = mc.Gaussian(1.0), 40
    X, Y = samples(700, 700, 1, 0.6, seed=2)  # MMD^2 is close to its expectation, 0.0672
    value, lam = mmd(k, X, Y), eigenvalues(k, np.concatenate([X, Y]))
    V = 700 / n * mmd_variance(k, X, Y) + 8 * lam @ lam / n**2
    draws = 2 * (np.random.default_rng(0).normal(size=(20_000, 50)) ** 2 - 1) @ np.sort(lam)[-50:]
    c = np.quantile(draws, 0.95)
    expected = norm.cdf(value / np.sqrt(V) - c / (n * np.sqrt(V)))
    found = mmd_power(k, X, Y, n=n)
    assert abs(found - expected) < 0.02
    assert abs(found - rejections(k, n)) < 0.12


def test_J7_the_kernel_with_the_larger_ratio_has_more_power():
    narrow, wide = mc.Gaussian(0.05), mc.Gaussian(1.5)
    X, Y = samples(200, 200, 1, 0.6)
    chosen = mmd_test(X, Y, kernel=[narrow, wide], selection=0.5, random_state=0).kernel
    assert chosen == wide
    assert rejections(wide, 30, 100) > rejections(narrow, 30, 100) + 0.1
