"""Independence tests against the definition, exact enumeration and their level."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

import mercer as mc
from mercer import _threads
from mercer.exceptions import InputError
from mercer.methods import coco, coco_test, dhsic, dhsic_test, hsic, hsic_test
from mercer.methods.hypothesis_tests import _hsic_low_rank
from mercer.methods.hypothesis_tests._hsic_full_rank import FullRank
from mercer.methods.hypothesis_tests._hsic_low_rank import LowRank, factors


def sample(n=40, seed=0, strength=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    return X, strength * X**2 + rng.normal(size=(n, 1))


def random_permutations(n, count):
    rows = np.tile(np.arange(n, dtype=np.int32), (count, 1))
    return np.random.default_rng(0).permuted(rows, axis=1)


ONE = (mc.Gaussian(1.0), mc.Gaussian(1.0))


@pytest.mark.parametrize("method", ["low rank", "full rank", "no matrix"])
def test_each_draw_is_hsic_of_permuted_rows(method):
    X, Y = sample(30)
    kx = (mc.Gaussian(0.7), mc.Gaussian(2.0), mc.Linear())
    ky = (mc.Gaussian(1.0), mc.Polynomial(2))
    perms = random_permutations(30, 5)
    with mc.options(working_memory=1e-3 if method == "no matrix" else 128.0):
        low = method == "low rank"
        drawn = LowRank(factors(kx, X, 500), factors(ky, Y, 500)) if low else FullRank(kx, X, ky, Y)
        found = drawn.statistics([lambda: perms[:2], lambda: perms[2:]])
    expected = [[hsic(k, X, m, Y[perms[b]]) for b in range(5)] for k in kx for m in ky]
    scale = np.std(expected, axis=1)[:, None]
    assert_allclose(found / scale, np.array(expected) / scale, atol=1e-5)


def test_tiles_of_more_rows_than_one():
    X, Y = sample(600)
    kx, ky = (mc.Laplace(1.0),), (mc.NegativeDistance(),)
    perm = random_permutations(600, 1)
    assert_allclose(
        FullRank(kx, X, ky, Y).statistics([lambda: perm])[0, 0],
        hsic(kx[0], X, ky[0], Y[perm[0]]),
        atol=1e-7,
    )


def test_p_value_converges_to_that_of_all_permutations():
    X, Y = sample(6, seed=3)
    observed = hsic(ONE[0], X, ONE[1], Y)
    every = [hsic(ONE[0], X, ONE[1], Y[list(p)]) for p in permutations(range(6))]
    exact = np.mean(np.array(every) >= observed - 1e-12)
    result = hsic_test(X, Y, kernel=ONE, n_permutations=20_000, random_state=0)
    assert abs(result.pvalue - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)
    assert_allclose(result.statistic, observed, rtol=1e-6)  # from entries in float32


def test_bounds_hold_the_p_value_of_whole_matrices(monkeypatch):
    X, Y = sample(200, strength=0.15)
    exact = hsic_test(X, Y, kernel=(mc.Laplace(1e-9) * 1e-300 + ONE[0], ONE[1]), random_state=0)
    fine = hsic_test(X, Y, kernel=ONE, random_state=0)
    assert fine.pvalue_bounds[0] == fine.pvalue_bounds[1] == fine.pvalue
    assert abs(fine.pvalue - exact.pvalue) <= 1 / 2001
    monkeypatch.setattr(_hsic_low_rank, "_TOL", 1e-2)
    coarse = hsic_test(X, Y, kernel=ONE, random_state=0)
    low, high = coarse.pvalue_bounds
    assert low < fine.pvalue < high == coarse.pvalue


def test_errors_of_factors_are_bounds(monkeypatch):
    X, Y = sample(100)
    monkeypatch.setattr(_hsic_low_rank, "_TOL", 10.0)
    drawn = LowRank(factors(ONE[:1], X, 50), factors(ONE[1:], Y, 50))
    perms = random_permutations(100, 20)
    exact = [hsic(ONE[0], X, ONE[1], Y[p]) for p in perms]
    gap = np.abs(drawn.statistics([lambda: perms])[0] - exact)
    assert 0 < gap.max() <= drawn.errors[0]


@pytest.mark.parametrize(
    "test",
    [
        hsic_test,
        lambda X, Y, **o: hsic_test(X, Y, kernel="median", **o),
        coco_test,
        lambda X, Y, **o: dhsic_test(X[:, :1], X[:, 1:], Y, **o),
        lambda X, Y, **o: hsic_test(X, Y, blocks=np.arange(12) % 2, **o),
    ],
    ids=["default", "median", "coco", "dhsic", "blocks"],
)
def test_level(test):
    p = []
    for i in range(300):
        rng = np.random.default_rng(i)
        X, Y = np.c_[rng.normal(size=12), rng.exponential(size=12)], rng.normal(size=(12, 1))
        p.append(test(X, Y, n_permutations=39, random_state=i).pvalue)
    for level in (0.05, 0.1, 0.25):
        assert np.sum(np.array(p) <= level + 1e-12) <= binom.ppf(0.9999, 300, level)
    assert np.mean(np.array(p) <= 0.5) > 0.35  # and it is not empty


def test_default_sees_dependence_at_every_scale():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (100, 1))
    for y in (x, np.sin(4 * np.pi * x), np.exp(x) + rng.normal(size=(100, 1))):
        assert hsic_test(x, y, n_permutations=200, random_state=0).pvalue < 0.01
    fast = np.sin(6 * np.pi * x)
    assert hsic_test(x, fast, kernel="median", n_permutations=200, random_state=0).pvalue > 0.05


def test_many_dimensions_take_whole_matrices():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 10))
    assert hsic_test(X, X[:, :3] ** 2, n_permutations=99, random_state=0).pvalue == 0.01
    p = hsic_test(X, rng.normal(size=(120, 20)), n_permutations=99, random_state=0).pvalue
    assert p > 0.05


def test_blocks_take_out_what_differs_between_them():
    rng = np.random.default_rng(0)
    site = np.repeat([0.0, 5.0], 40)
    X, Y = (site + rng.normal(size=(2, 80)))[:, :, None]
    assert hsic_test(X, Y, random_state=0).pvalue < 0.01
    assert hsic_test(X, Y, blocks=site, random_state=0).pvalue > 0.05


def test_selection_by_one_variable_keeps_the_level_and_selection_by_both_does_not():
    """Why there are no weights: only the former could be exact, and it needs none."""
    by_one, by_both = [], []
    for r in range(150):
        x, y, u = np.random.default_rng(r).normal(size=(3, 120, 1))
        options = {"kernel": ONE, "n_permutations": 99, "random_state": r}
        for keep, found in ((u < 2.0 * x, by_one), (u < 2.0 * (x + y), by_both)):
            rows = keep[:, 0]
            found.append(hsic_test(x[rows], y[rows], **options).pvalue <= 0.05)
    assert np.mean(by_one) <= binom.ppf(0.999, 150, 0.05) / 150
    assert np.mean(by_both) > 0.5


def test_dependent_series_need_the_wild_bootstrap():
    def series(seed):
        noise = np.random.default_rng(seed).normal(size=300)
        out = np.zeros(300)
        for t in range(1, 300):
            out[t] = 0.9 * out[t - 1] + noise[t]
        return out[:, None]

    kernel = (mc.Gaussian(2.0), mc.Gaussian(2.0))
    couples = [(series(2 * i), series(2 * i + 1)) for i in range(25)]
    shuffled = [
        hsic_test(*c, kernel=kernel, n_permutations=99, random_state=0).pvalue for c in couples
    ]
    wild = [
        hsic_test(*c, kernel=kernel, dependence=20.0, n_permutations=99, random_state=0).pvalue
        for c in couples
    ]
    assert np.mean(np.array(shuffled) <= 0.05) > 0.3
    assert np.mean(np.array(wild) <= 0.05) < 0.2
    x = series(0)
    both = hsic_test(x, x + series(1), dependence=20.0, n_permutations=199, random_state=0)
    assert both.pvalue <= 0.05
    assert both.null == "wild bootstrap"


def test_effect_size_of_linear_kernels_is_the_squared_correlation():
    X, Y = sample(3000)
    Y = X + Y
    result = hsic_test(X, Y, kernel=(mc.Linear(), mc.Linear()), n_permutations=20, random_state=0)
    r = np.corrcoef(X[:, 0], Y[:, 0])[0, 1]
    assert_allclose(result.effect_size, r**2, atol=2e-3)
    low, high = result.effect_interval
    assert low < r**2 < high
    same = hsic_test(X, 2 * X + 1, kernel=(mc.Linear(), mc.Linear()), n_permutations=20)
    assert same.effect_size == pytest.approx(1.0)


def test_effect_size_is_in_its_interval():
    """Unbiased estimates of nothing are negative half of the time."""
    found = [
        hsic_test(*np.random.default_rng(i).normal(size=(2, 50, 1)), kernel=ONE, n_permutations=20)
        for i in range(20)
    ]
    assert min(r.statistic for r in found) < 0.0
    for r in found:
        assert r.effect_interval[0] <= r.effect_size <= r.effect_interval[1]


def test_effect_interval_covers():
    found = [
        hsic_test(*sample(80, seed=i), kernel=ONE, n_permutations=20, random_state=0)
        for i in range(60)
    ]
    value = np.mean([r.effect_size for r in found])
    low, high = np.array([r.effect_interval for r in found]).T
    assert np.mean((low <= value) & (value <= high)) >= 0.85


@pytest.mark.parametrize(
    "test",
    [
        lambda x, y, z: dhsic_test(x, y, z, kernel=ONE + ONE[:1], n_permutations=40),
        lambda x, y, z: coco_test(x, y, kernel=ONE, n_permutations=40),
        lambda x, y, z: coco_test(x, y, kernel=ONE, blocks=np.arange(60) // 2, n_permutations=40),
        lambda x, y, z: coco_test(x, y, kernel=ONE, blocks=np.arange(60) // 6, n_permutations=40),
    ],
    ids=["dhsic", "coco", "coco of pairs", "coco in blocks"],
)
def test_effect_interval_of_independent_variables_has_zero(test):
    """A mean of squares is never zero, and rows that chose f and g correlate them."""
    found = [test(*np.random.default_rng(i).normal(size=(3, 60, 1))) for i in range(60)]
    assert np.mean([r.effect_interval[0] > 0.0 for r in found]) <= binom.ppf(0.999, 60, 0.05) / 60
    assert np.mean([r.effect_size for r in found]) < 0.15


def autoregression(n, seed, memory=0.9):
    noise = np.random.default_rng(seed).normal(size=n) * np.sqrt(1 - memory**2)
    out = np.zeros(n)
    for t in range(1, n):
        out[t] = memory * out[t - 1] + noise[t]
    return out[:, None]


def test_effect_interval_of_series_covers():
    """With the variance of independent rows, half of the intervals missed it."""
    found = []
    for i in range(50):
        x, y = autoregression(400, 2 * i), autoregression(400, 2 * i + 1)
        options = {"dependence": 20.0, "n_permutations": 200, "random_state": 0}
        found.append(
            [
                hsic_test(x, x + y, kernel=ONE, **options),
                mc.mmd_test(x + 1.0, y, kernel=ONE[0], **options),
                mc.ksd_test(x + 1.0, lambda Z: -Z, **options, kernel=mc.InverseMultiquadric(1.0)),
            ]
        )
    for results in zip(*found, strict=True):
        value = np.mean([r.effect_size for r in results])
        low, high = np.array([r.effect_interval for r in results]).T
        assert np.mean((low <= value) & (value <= high)) >= 0.8
        assert np.median(high - low) < 1.0


def test_statistic_of_series_is_that_of_the_test():
    x, y = autoregression(100, 0), autoregression(100, 1)
    found = hsic_test(x, x + y, kernel=ONE, dependence=9.0, n_permutations=20, random_state=0)
    H = np.eye(100) - 0.01
    products = (H @ ONE[0](x) @ H) * (H @ ONE[1](x + y) @ H)
    assert_allclose(found.statistic, products[~np.eye(100, dtype=bool)].mean(), rtol=1e-5)
    assert found.null_statistics[0] == found.statistic


@pytest.mark.parametrize("k", [mc.Gaussian(1.0), mc.Laplace(1.0), mc.NegativeDistance()], ids=repr)
def test_witness_is_the_pair_of_coco(k):
    X, Y = sample(60)
    result = hsic_test(X, Y, kernel=(k, k), n_permutations=50, random_state=0)
    f, g = result.witness
    assert_allclose(np.cov(f(X), g(Y), bias=True)[0, 1], coco(k, X, k, Y), rtol=1e-6)


def test_result_is_the_same_for_a_seed_and_moved_data():
    X, Y = sample(60, strength=0.1)
    first, again = (hsic_test(X, Y, random_state=3) for _ in range(2))
    assert first.pvalue == again.pvalue
    assert first.seed == 3
    for far in (hsic_test(X + 1e6, Y, random_state=3), hsic_test(X, 8e-60 * Y, random_state=3)):
        assert abs(far.pvalue - first.pvalue) <= 2 / 2001


def test_frames_mixed_tables_and_strings():
    rng = np.random.default_rng(0)
    group = rng.choice(["u", "v"], 80)
    a = pd.DataFrame({"x": rng.normal(size=80), "c": group})
    b = pd.DataFrame({"y": rng.normal(size=80) + 2 * (group == "u")})
    assert hsic_test(a, b, n_permutations=200, random_state=0).pvalue < 0.01
    assert hsic_test(a[["x"]], b, n_permutations=200, random_state=0).pvalue > 0.05
    words = ["ab" if g == "u" else "xy" for g in group]
    mixed = hsic_test(words, b, kernel=(mc.Spectrum(1), None), n_permutations=200, random_state=0)
    assert mixed.pvalue < 0.01
    assert "Are the variables independent?" in repr(mixed)
    assert mixed.to_frame()["pvalue"][0] == mixed.pvalue


@pytest.mark.parametrize("test", [hsic_test, coco_test, dhsic_test])
def test_refusals_name_the_cure(test):
    X, Y = sample()
    for change, message in [
        ({"kernel": mc.Gaussian(1.0)}, "one entry per variable"),
        ({"kernel": (mc.Gaussian(1.0),)}, "one entry per variable"),
        ({"kernel": "mean"}, "median"),
        ({"kernel": ([], None)}, "at least one kernel"),
        ({"n_permutations": 0}, "n_permutations"),
    ]:
        with pytest.raises(InputError, match=message):
            test(X, Y, **change)
    for bad, message in [
        ((X, Y[:-1]), "paired"),
        ((X[:3], Y[:3]), "four"),
        ((X, np.ones((40, 1))), "equal"),
        ((X, np.full((40, 1), np.nan)), "NaN"),
    ]:
        with pytest.raises(InputError, match=message):
            test(*bad)


def test_refusals_of_blocks_and_series():
    X, Y = sample()
    with pytest.raises(InputError, match="either blocks or dependence"):
        hsic_test(X, Y, blocks=np.zeros(40), dependence=3.0)
    with pytest.raises(InputError, match="blocks must name"):
        hsic_test(X, Y, blocks=[0, 1])
    with pytest.raises(InputError, match="dependence"):
        hsic_test(X, Y, dependence=-1.0)


def test_a_constant_variable_is_independent_of_everything():
    X, _ = sample()
    for test in (hsic_test, coco_test, dhsic_test):
        result = test(X, np.ones((40, 1)), kernel=ONE, n_permutations=50, random_state=0)
        assert result.pvalue == 1.0
        assert result.effect_size == 0.0


@pytest.mark.parametrize("test", [hsic_test, coco_test, dhsic_test])
def test_values_that_overflow_are_refused(test):
    X, Y = sample()
    with pytest.raises(InputError, match="overflow"):
        test(1e100 * X, Y, kernel=(mc.Polynomial(5), mc.Linear()))


def test_kernels_that_are_not_definite_have_no_witness():
    X, Y = sample()
    kernel = (mc.Sigmoid(3.0, -1.0), mc.Linear())
    result = hsic_test(X, Y, kernel=kernel, n_permutations=50, random_state=0)
    assert result.witness is None
    with pytest.raises(InputError, match="not positive definite"):
        coco_test(X, Y, kernel=kernel)


def test_tied_statistics_have_one_p_value():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (2, 40, 1)).astype(float)
    result = hsic_test(x, y, kernel=ONE, random_state=0)
    assert result.pvalue_bounds == (result.pvalue, result.pvalue)


def test_sparse_float32_and_repeated_rows():
    from scipy.sparse import csr_array

    X, Y = sample(60, strength=0.3)
    X = X * (X > 0)
    dense = hsic_test(X, Y, n_permutations=200, random_state=0).pvalue
    assert hsic_test(csr_array(X), Y, n_permutations=200, random_state=0).pvalue == dense
    single = hsic_test(X.astype(np.float32), Y, n_permutations=200, random_state=0).pvalue
    assert abs(single - dense) <= 0.02
    twice = hsic_test(np.repeat(X, 2, 0), np.repeat(Y, 2, 0), n_permutations=200, random_state=0)
    assert 0 < twice.pvalue <= 1


def test_statistic_of_whole_matrices_is_hsic():
    X, Y = np.random.default_rng(0).normal(size=(2, 90, 6))
    for k in (mc.Laplace(1.0), mc.NegativeDistance(), mc.Gaussian(1.0)):
        result = hsic_test(X, Y, kernel=(k, k), n_permutations=9, random_state=0)
        exact = hsic(k, X, k, Y)
        size = np.sqrt(hsic(k, X, k, X) * hsic(k, Y, k, Y))
        assert abs(result.statistic - exact) <= 1e-7 * size


# --- COCO -----------------------------------------------------------------------------------------


def test_coco_test_reports_coco_and_its_functions():
    X, Y = sample(80)
    result = coco_test(X, Y, kernel=ONE, random_state=0)
    assert_allclose(result.statistic, coco(ONE[0], X, ONE[1], Y), rtol=1e-8)
    assert result.pvalue < 0.01
    f, g = result.witness
    assert_allclose(np.cov(f(X), g(Y), bias=True)[0, 1], result.statistic, rtol=1e-8)
    assert 0.4 < result.effect_size < np.corrcoef(f(X), g(Y))[0, 1]


def test_coco_of_all_permutations():
    X, Y = sample(6, seed=3)
    observed = coco(ONE[0], X, ONE[1], Y)
    every = np.array([coco(ONE[0], X, ONE[1], Y[list(p)]) for p in permutations(range(6))])
    exact = np.mean(every >= observed - 1e-12)
    result = coco_test(X, Y, kernel=ONE, n_permutations=20_000, random_state=0)
    assert abs(result.pvalue - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-3


# --- Joint independence ---------------------------------------------------------------------------


def test_dhsic_is_the_definition_and_for_two_variables_hsic():
    X, Y = sample(12)
    Z = X * Y
    k, ell, m = mc.Gaussian(1.0), mc.Laplace(1.0), mc.Gaussian(2.0)
    K, L, M = k(X), ell(Y), m(Z)
    means = [A.mean(axis=1) for A in (K, L, M)]
    expected = np.mean(K * L * M) + np.prod([a.mean() for a in means])
    expected -= 2 * np.mean(np.prod(means, axis=0))
    assert_allclose(dhsic([k, ell, m], [X, Y, Z]), expected, rtol=1e-10)
    with mc.options(working_memory=1e-4):
        assert_allclose(dhsic([k, ell, m], [X, Y, Z]), expected, rtol=1e-10)
    assert_allclose(dhsic([k, ell], [X, Y]), hsic(k, X, ell, Y, estimator="biased"), rtol=1e-9)


def test_three_variables_that_depend_only_together():
    rng = np.random.default_rng(0)
    x, y = rng.choice([-1.0, 1.0], size=(2, 100, 1))
    noise = 0.1 * rng.normal(size=(3, 100, 1))
    three = x + noise[0], y + noise[1], x * y + noise[2]
    assert dhsic_test(*three, n_permutations=99, random_state=0).pvalue == 0.01
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert hsic_test(three[a], three[b], n_permutations=99, random_state=0).pvalue > 0.05


def test_dhsic_refusals():
    X, Y = sample()
    with pytest.raises(InputError, match="two or more variables"):
        dhsic([mc.Gaussian(1.0)], [X, Y])
    with pytest.raises(InputError, match="at least two"):
        dhsic_test(X)
    two, three = [mc.Gaussian(1.0)] * 2, [mc.Gaussian(1.0)] * 3
    with pytest.raises(InputError, match="equally many"):
        dhsic_test(X, Y, kernel=(two, three))


def test_witness_of_kernels_of_high_rank_has_the_largest_covariance():
    (X, Y), k = sample(150), mc.Laplace(0.5)
    result = hsic_test(X, Y, kernel=(k, k), n_permutations=9, random_state=0)
    f, g = result.witness
    assert_allclose([f.norm(), g.norm()], 1.0, rtol=1e-6)
    assert_allclose(np.cov(f(X), g(Y), bias=True)[0, 1], coco(k, X, k, Y), rtol=1e-6)


@pytest.mark.parametrize("name", ["low rank", "full rank", "joint"])
def test_tasks_end_when_the_call_was_interrupted(name, monkeypatch):
    X, Y = sample(60)
    draws = [lambda: np.tile(np.arange(60, dtype=np.int32), (3, 1))]
    calls = {
        "low rank": lambda: LowRank(factors(ONE, X, 60), factors(ONE, Y, 60)).statistics(draws),
        "full rank": lambda: FullRank(ONE, X, ONE, Y).statistics(draws),
        "joint": lambda: dhsic_test(X, Y, kernel=[ONE[0], ONE[0]], n_permutations=5),
    }
    interrupted = _threads._Call(len, [])
    interrupted.is_over = True
    monkeypatch.setattr(_threads._inside, "call", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        calls[name]()


def test_columns_that_are_more_balanced_than_chance_do_not_depend():
    x, y = np.meshgrid(np.arange(8.0), np.arange(8.0))
    found = mc.hsic_test(x.reshape(-1, 1), y.reshape(-1, 1), n_permutations=199, random_state=0)
    assert found.pvalue > 0.5
