"""Null laws by formula against permutations, exact spectra and their own error bounds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, gamma

import mercer as mc
from mercer.exceptions import InputError
from mercer.methods import hsic_test, mmd, mmd_test
from mercer.methods.hypothesis_tests import _null_distributions
from mercer.methods.hypothesis_tests._null_distributions import (
    CentredMoments,
    Spectrum,
    hsic_gamma,
    hsic_tail,
    spectrum,
)


def normal(n, d=2, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(shift, 1.0, (n, d))


def centred(k, X):
    H = np.eye(len(X)) - 1 / len(X)
    return H @ k(X) @ H


@pytest.mark.parametrize("k", [mc.Gaussian(1.0), mc.Linear(), mc.NegativeDistance()], ids=repr)
def test_moments_are_those_of_the_centred_matrix(k):
    X = normal(40) + 3.0
    K, off = centred(k, X), ~np.eye(40, dtype=bool)
    found = CentredMoments.of(k, X)
    assert_allclose(found.trace, np.trace(K) / 40)
    assert_allclose(found.squares, np.sum(K**2) / 1600)
    assert_allclose(found.off_diagonal, np.mean(K[off] ** 2))
    values = np.linalg.eigvalsh(K) / 40
    law = spectrum(k, X)
    assert_allclose(law.trace, values.sum())
    assert_allclose(law.squares, values @ values)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_leading_eigenvalues_bracket_the_full_law(scale, monkeypatch):
    X, k = normal(400, 3), mc.Gaussian(scale)
    full = spectrum(k, X)
    monkeypatch.setattr(_null_distributions, "_ALL", 100)
    monkeypatch.setattr(_null_distributions, "_LEADING", 60)
    monkeypatch.setattr(_null_distributions, "_TILE", 128)
    part = spectrum(k, X)
    assert len(part.values) <= 60
    assert_allclose((part.trace, part.squares), (full.trace, full.squares), rtol=1e-9)
    for z in (-1.0, 1.0, 3.0):
        q = full.trace + z * np.sqrt(2 * full.squares)
        exact, found = full.tail(q), part.tail(q)
        assert abs(found.value - exact.value) <= found.error + exact.error
        assert found.error < 0.01


@pytest.mark.parametrize("count", [3, 40, 250])
def test_products_of_spectra_keep_all_moments(count):
    a, b = 1.0 / np.arange(1, count + 1) ** 2, 0.9 ** np.arange(count)
    found = Spectrum.of(a).product(Spectrum.of(b))
    every = np.outer(a, b).ravel()
    assert len(found.values) <= 2000
    assert_allclose((found.trace, found.squares), (every.sum(), every @ every), rtol=1e-12)
    left = np.sort(every)[::-1][len(found.values) :]
    assert left.max(initial=0.0) <= found.rest.largest * (1 + 1e-12)
    if count == 40:
        exact = Spectrum(every, _null_distributions.Remainder()).tail(1.5 * found.trace)
        tail = found.tail(1.5 * found.trace)
        assert abs(tail.value - exact.value) <= tail.error + exact.error
        assert tail.error < 1e-6


@pytest.mark.parametrize("null", ["spectral", "gamma"])
@pytest.mark.parametrize("sizes", [(100, 100), (60, 140)])
@pytest.mark.parametrize("k", [mc.Gaussian(1.0), mc.NegativeDistance(), mc.Linear()], ids=repr)
def test_p_values_are_close_to_those_of_permutations(null, sizes, k):
    for seed, shift in ((0, 0.0), (1, 0.15), (2, 0.3)):
        X, Y = normal(sizes[0], seed=seed), normal(sizes[1], seed=seed + 10, shift=shift)
        exact = mmd_test(X, Y, kernel=k, n_permutations=2000, random_state=0).pvalue
        found = mmd_test(X, Y, kernel=k, null=null)
        assert abs(found.pvalue - exact) < 0.03 + 0.2 * exact
        assert found.statistic == mmd(k, X, Y)
        low, high = found.pvalue_bounds
        assert low <= high == found.pvalue
        assert high - low < 1e-6
        assert found.n_permutations == 0


@pytest.mark.parametrize("null", ["spectral", "gamma"])
def test_level(null):
    p = [
        mmd_test(normal(60, seed=2 * i), normal(60, seed=2 * i + 1), kernel="median", null=null)
        for i in range(200)
    ]
    for level in (0.05, 0.1):
        rejections = sum(result.pvalue <= level for result in p)
        assert rejections <= binom.ppf(0.9999, 200, level)


def test_p_values_below_those_of_permutations():
    X, Y = normal(200), normal(200, seed=1, shift=2.0)
    found = mmd_test(X, Y, kernel="median", null="spectral")
    assert 0 < found.pvalue < 1e-30
    assert "weighted chi-squares" in repr(found)


def test_hsic_laws_agree_with_shuffled_rows():
    rng = np.random.default_rng(0)
    X, Y, k, n = rng.normal(size=(100, 2)), rng.normal(size=(100, 1)), mc.Gaussian(1.0), 100
    K, L = centred(k, X), centred(k, Y)
    draws = np.array(
        [np.sum(K * L[np.ix_(p, p)]) for p in (rng.permutation(n) for _ in range(4000))]
    )
    draws /= n
    shape, scale = hsic_gamma(k, X, k, Y)
    for level in (0.5, 0.1, 0.05):
        q = np.quantile(draws, 1 - level)
        assert abs(hsic_tail(k, X, k, Y, q, "spectral")[0].value - level) < 0.25 * level
        tail, sd = hsic_tail(k, X, k, Y, q, "gamma")
        assert abs(tail.value - level) < 0.2 * level
        assert_allclose(tail.value, gamma.sf(q, shape, scale=scale))
        assert_allclose(sd, draws.std(), rtol=0.1)


@pytest.mark.parametrize("null", ["spectral", "gamma"])
def test_hsic_p_values_are_close_to_those_of_permutations(null):
    for seed, slope in ((0, 0.0), (1, 0.15), (2, 0.3)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 1))
        Y = slope * X + rng.normal(size=(200, 1))
        exact = hsic_test(X, Y, kernel="median", random_state=0)
        found = hsic_test(X, Y, kernel="median", null=null)
        assert abs(found.pvalue - exact.pvalue) < 0.03 + 0.2 * exact.pvalue
        assert_allclose(found.statistic, exact.statistic, rtol=1e-6)
        assert found.pvalue_bounds[1] - found.pvalue_bounds[0] < 1e-6
    with pytest.raises(InputError, match="single kernel"):
        hsic_test(X, Y, null=null)
    with pytest.raises(InputError, match="blocks"):
        hsic_test(X, Y, kernel="median", blocks=np.zeros(200), null=null)


def test_constant_data_have_a_p_value_of_one_and_no_gamma_law():
    X, k = np.ones((8, 2)), mc.Gaussian(1.0)
    for null in ("spectral", "gamma"):
        assert mmd_test(X, X, kernel=k, null=null).pvalue == 1.0
    k2 = (k, k)
    assert hsic_test(X, normal(8), kernel=k2, null="spectral", random_state=0).pvalue == 1.0
    with pytest.raises(InputError, match="constant"):
        hsic_gamma(k, X, k, normal(8))
    with pytest.raises(InputError, match="six rows"):
        hsic_gamma(k, normal(5), k, normal(5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"null": "normal", "kernel": "median"}, "permutation"),
        ({"null": "spectral"}, "single kernel"),
        ({"null": "gamma", "kernel": "median", "paired": True}, "without pairs"),
        ({"null": "gamma", "kernel": "median", "blocks": np.zeros(60)}, "without pairs"),
        ({"null": "spectral", "kernel": "median", "dependence": 3.0}, "without pairs"),
        ({"null": "spectral", "kernel": "median", "weights": [None, None]}, "weights"),
        ({"selection": 0.5, "paired": True}, "without pairs"),
        ({"selection": 1.0}, "between 0 and 1"),
        ({"selection": 0.01}, "more rows"),
    ],
)
def test_refusals_name_the_cure(options, message):
    with pytest.raises((InputError, TypeError), match=message):
        mmd_test(normal(30), normal(30, seed=1), **options)


def test_three_samples_have_permutations_only():
    samples = (normal(20, seed=i) for i in range(3))
    with pytest.raises(InputError, match="two samples"):
        mmd_test(*samples, kernel="median", null="gamma")


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_eigenvalues_of_rounding_are_zero(shift):
    """-|x - y|^2 on a line has rank one; k(x, x) = 0 says nothing about the size of its values."""
    law = spectrum(mc.NegativeDistance(2.0), normal(16, 1) + shift)
    assert len(law.values) == 1
    assert law.rest.sum == 0.0


@pytest.mark.parametrize("null", ["spectral", "gamma"])
@pytest.mark.parametrize("sizes", [(5, 9), (40, 737), (600, 1100)])
@pytest.mark.parametrize("k", [mc.Gaussian(0.7), mc.Linear(), mc.Polynomial(3)], ids=repr)
def test_what_rounding_leaves_of_equal_rows_is_no_difference(null, sizes, k):
    X, Y = (np.full((n, 2), 0.3) for n in sizes)
    assert mmd_test(X, Y, kernel=k, null=null).pvalue == 1.0
    pooled = np.full((sum(sizes), 2), 0.3)
    Z = normal(len(pooled), 1)
    assert hsic_test(pooled, Z, kernel=(k, mc.Gaussian(1.0)), null=null).pvalue == 1.0


@pytest.mark.parametrize("null", ["spectral", "gamma"])
@pytest.mark.parametrize(
    "k",
    [mc.kernels.FromFunction(lambda a, b: np.abs(a - b.T)), mc.Epanechnikov(1.0)],
    ids=["distance", "Epanechnikov"],
)
def test_kernels_with_negative_eigenvalues_have_no_law_of_chi_squares(null, k):
    for seed in range(6):
        X, Y = normal(30, 1, seed), normal(30, 1, seed + 50)
        with pytest.raises(InputError, match=r"negative eigenvalues.*null='permutation'"):
            mmd_test(X, Y, kernel=k, null=null)
        for pair in ((k, mc.Gaussian(1.0)), (mc.Gaussian(1.0), k)):
            with pytest.raises(InputError, match=r"negative eigenvalues.*null='permutation'"):
                hsic_test(X, Y, kernel=pair, null=null)
    assert mmd_test(X, Y, kernel=k, n_permutations=19, random_state=0).pvalue > 0.05


def test_many_rows_with_negative_eigenvalues_have_no_law(monkeypatch):
    monkeypatch.setattr(_null_distributions, "_ALL", 20)
    monkeypatch.setattr(_null_distributions, "_LEADING", 5)
    k = mc.kernels.FromFunction(lambda a, b: np.exp(-((a - b.T) ** 2)) - np.exp(-np.abs(a - b.T)))
    with pytest.raises(InputError, match="negative eigenvalues"):
        mmd_test(normal(30, 1), normal(30, 1, 1), kernel=k, null="spectral")


@pytest.mark.parametrize("null", ["spectral", "gamma"])
def test_a_formula_with_a_random_bandwidth_has_a_seed(null):
    """Beyond 1,000 rows the median distance is that of random rows."""
    X, Y, k = normal(700, 1), normal(700, 1, seed=1, shift=0.1), mc.Gaussian(1.0)
    for test, given in ((mmd_test, k), (hsic_test, (k, [k]))):
        found = test(X, Y, kernel="median", null=null)
        again = test(X, Y, kernel="median", null=null, random_state=found.seed)
        assert again.kernel == found.kernel
        assert again.pvalue == found.pvalue
        assert f"random_state={found.seed}" in found.call
        assert test(X, Y, kernel=given, null=null).seed is None
    assert hsic_test(X, Y, kernel=(k, "median"), null=null, random_state=5).seed == 5
