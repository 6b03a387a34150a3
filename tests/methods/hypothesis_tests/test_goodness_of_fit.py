"""The goodness-of-fit test: its draws by double loops, level, power, witness and refusals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.stats import binom

import mercer as mc
from mercer.exceptions import DerivativeError, InputError, MercerWarning
from mercer.methods import SteinKernel, ksd, ksd_test
from mercer.methods.hypothesis_tests._ksd import SteinTiles
from mercer.methods.hypothesis_tests._quadratic_forms import mean_of_features


def normal(n, d=1, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(shift, 1.0, (n, d))


def minus(X):
    return -X


@pytest.mark.parametrize("k", [mc.Gaussian(1.5), mc.InverseMultiquadric(), mc.Polynomial(2)])
def test_statistic_and_contributions_are_the_definition(k):
    X = normal(9, 2, shift=0.5)
    H = SteinKernel(k, minus)(X)
    np.fill_diagonal(H, 0.0)
    result = ksd_test(X, minus, kernel=k, n_permutations=5, random_state=0)
    assert_allclose(result.statistic, H.sum() / 72, rtol=1e-5)
    assert_allclose(result.contributions, H.sum(axis=1) / 8, rtol=1e-5)
    assert_allclose(result.contributions.mean(), ksd(k, X, minus), rtol=1e-5)


def test_each_draw_is_a_sum_with_signs():
    X, k = normal(11, 2), mc.Gaussian(1.0)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(4, 11))
    H = SteinKernel(k, minus)(X)
    drawn = mean_of_features([SteinTiles(k, X, -X)], signs).statistics[0]
    for b in range(4):
        pairs = [(i, j) for i in range(11) for j in range(11) if i != j]
        total = sum(signs[b, i] * signs[b, j] * H[i, j] for i, j in pairs)
        assert_allclose(drawn[b], total / 110, rtol=1e-5)


@pytest.mark.parametrize("kernel", [None, "median", mc.InverseMultiquadric()], ids=str)
def test_level(kernel):
    p = [
        ksd_test(normal(40, 2, seed=i), minus, kernel=kernel, n_permutations=39, random_state=i)
        for i in range(300)
    ]
    p = [result.pvalue for result in p]
    for level in (0.05, 0.1, 0.25):
        assert np.sum(np.array(p) <= level + 1e-12) <= binom.ppf(0.9999, 300, level)
    assert np.mean(np.array(p) <= 0.5) > 0.35


def test_default_sees_differences_at_every_scale():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    x = x[rng.uniform(0, 2, 4000) < 1 + np.sin(10 * x)][:400, None]
    assert ksd_test(x, stats.norm(), random_state=0).pvalue < 0.01
    assert ksd_test(x, stats.norm(), kernel="median", random_state=0).pvalue > 0.05
    wide = 1.4 * normal(300, 1)
    assert ksd_test(wide, stats.norm(), random_state=0).pvalue < 0.01


def test_a_density_of_mercer_is_a_model():
    data = np.concatenate([normal(200, 2, seed=1), normal(100, 2, seed=2, shift=4.0)])
    model = mc.methods.Density(mc.mean_embedding(mc.Gaussian(0.6), data))
    same, other = model.sample(200, random_state=0), normal(200, 2, seed=3, shift=0.7)
    assert ksd_test(same, model, random_state=0).pvalue > 0.05
    assert ksd_test(other, model, random_state=0).pvalue < 0.01
    unnormalised = mc.kernel_density(mc.Gaussian(0.6), data) * 5.0
    first, second = (ksd_test(same, m, random_state=0).pvalue for m in (model, unnormalised))
    assert abs(first - second) <= 2 / 2001


def test_rows_that_fit_worst():
    X = np.concatenate([normal(100, 2), [[5.0, 5.0], [5.2, 4.9], [4.8, 5.1]]])
    result = ksd_test(X, minus, kernel=mc.Gaussian(1.0), random_state=0)
    assert set(np.argsort(result.contributions)[-3:]) == {100, 101, 102}
    assert "rows that fit worst: 10" in repr(result)
    h = SteinKernel(mc.Gaussian(1.0), minus)
    Y = normal(4, 2, seed=5)
    assert_allclose(result.witness(Y), h(Y, X).mean(axis=1), rtol=1e-9)
    assert result.witness([[5.0, 5.0]]) > result.witness([[0.0, 0.0]])


def test_markov_chains_need_the_dependence():
    def chain(seed):
        rng = np.random.default_rng(seed)
        x, out = 0.0, np.empty(400)
        for t in range(400):
            x = 0.9 * x + np.sqrt(1 - 0.81) * rng.normal()
            out[t] = x
        return out[:, None]

    k = mc.Gaussian(1.0)
    plain, wild = (
        [
            ksd_test(chain(i), minus, kernel=k, n_permutations=99, random_state=0, **how).pvalue
            for i in range(30)
        ]
        for how in ({}, {"dependence": 20.0})
    )
    assert np.mean(np.array(plain) <= 0.05) > 0.4
    assert np.mean(np.array(wild) <= 0.05) < 0.2
    shifted = ksd_test(chain(0) + 1.5, minus, kernel=k, dependence=20.0, random_state=0)
    assert shifted.pvalue < 0.01


def test_result_is_the_same_for_a_seed_and_other_units():
    X = normal(40, 2, shift=0.1)
    first, again = (ksd_test(X, minus, random_state=3) for _ in range(2))
    assert first.pvalue == again.pvalue
    assert first.seed == 3
    for c in (8.0, 1e-60, 1e50):
        scaled = ksd_test(c * X, lambda Z, c=c: -Z / c / c, random_state=3)
        assert abs(scaled.pvalue - first.pvalue) <= 2 / 2001
        assert_allclose(scaled.effect_size, first.effect_size, rtol=1e-6, atol=1e-9)
    far = ksd_test(X + 1e6, lambda Z: 1e6 - Z, random_state=3)
    assert abs(far.pvalue - first.pvalue) <= 2 / 2001


def test_effect_interval_covers():
    k, truth, inside = mc.Gaussian(1.0), [], []
    for i in range(60):
        result = ksd_test(normal(100, 1, seed=i, shift=0.7), minus, kernel=k, n_permutations=20)
        truth.append(result.effect_size)
        inside.append(result.effect_interval)
    low, high = np.array(inside).T
    assert np.mean((low <= np.mean(truth)) & (np.mean(truth) <= high)) >= 0.85


def test_heavy_tails_warn():
    X = np.random.default_rng(0).standard_cauchy((500, 1))
    with pytest.warns(MercerWarning, match="heavy tails"):
        assert ksd_test(X, stats.norm(), random_state=0).pvalue < 0.01


def test_report_in_words():
    result = ksd_test(normal(30), stats.norm(), n_permutations=99, random_state=0)
    assert "Does the sample come from the model?" in repr(result)
    assert "20 kernels combined)\n  30 rows" in repr(result)
    assert result.to_frame()["pvalue"][0] == result.pvalue
    assert result.null_statistics.shape == (100,)


def test_memory_does_not_grow_with_the_square_of_n():
    X = normal(3000, 20)
    k = mc.InverseMultiquadric(20.0)
    assert ksd_test(X, minus, kernel=k, n_permutations=20, random_state=0).pvalue > 0.04


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": mc.Laplace(1.0)}, InputError, "cusp"),
        ({"kernel": [mc.Gaussian(1.0), mc.Laplace(1.0)]}, InputError, "cusp"),
        ({"kernel": []}, InputError, "at least one kernel"),
        ({"kernel": mc.Jaccard()}, DerivativeError, "no derivatives"),
        ({"score": lambda X: X[:2]}, InputError, "one gradient per row"),
        ({"score": stats.uniform(-9, 18)}, InputError, "does not vanish"),
        ({"score": None}, InputError, "score must be"),
        ({"dependence": 0.0}, InputError, "dependence"),
        ({"n_permutations": 0}, InputError, "n_permutations"),
        ({"X": [[1.0]]}, InputError, "two rows|all points are equal"),
        ({"X": np.ones((5, 1))}, InputError, "all points are equal"),
        ({"X": [[1.0], [np.nan]]}, InputError, "NaN"),
        ({"X": [["a"], ["b"]]}, InputError, "numbers"),
    ],
)
def test_refusals_name_the_cure(options, error, message):
    given = {"X": normal(20), "score": stats.norm()} | options
    with pytest.raises(error, match=message):
        ksd_test(**given)
