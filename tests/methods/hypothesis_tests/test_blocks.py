"""Tests within blocks of rows: the definition, exactness, and Simpson's paradox."""

from itertools import permutations as orders
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

import mercer as mc
from mercer.methods import coco_test, hsic, hsic_test, mmd_test
from mercer.methods.hypothesis_tests._hsic_low_rank import LowRank, factors
from mercer.methods.hypothesis_tests._hsic_matrices import WholeMatrices
from mercer.methods.hypothesis_tests._hsic_permutations import permutations
from mercer.methods.hypothesis_tests._relabelling import RelabelledInBlocks, precise
from mercer.methods.hypothesis_tests._resampling import Blocks, p_value, shuffled

K = mc.Gaussian(1.0)
SIZES = {0: 9, 1: 2, 2: 4, 3: 1, 4: 7, 5: 2, 6: 3}  # of blocks, in the order of `names`


def names():
    return np.random.default_rng(0).permutation(np.repeat(list(SIZES), list(SIZES.values())))


def centring(labels):
    """The matrix that subtracts the mean of each block."""
    same = labels[:, None] == labels
    return np.eye(len(labels)) - same / same.sum(axis=1)


def opposed_samples():
    """Each block has a difference, opposed to that between the blocks."""
    normal = np.random.default_rng(0).normal
    X = np.r_[normal(0, 1, 90), normal(3, 1, 10)][:, None]
    Y = np.r_[normal(-2.4, 1, 10), normal(0.6, 1, 90)][:, None]
    return X, Y, np.r_[np.zeros(90), np.ones(10), np.zeros(10), np.ones(90)]


def opposed_variables():
    normal = np.random.default_rng(0).normal
    site = np.repeat([-1.5, 1.5], 200)
    e = 1.5 * normal(size=400)
    return (site + e)[:, None], (site - e + 0.5 * normal(size=400))[:, None], site


# --- Two samples ----------------------------------------------------------------------------------


def within_blocks(K, labels, blocks, v):
    """sum_g s_g |d_g|^2 by loops over samples and blocks."""
    samples, shares, squares, others = np.unique(labels), [], [], []
    for g in samples:
        u, c = np.zeros(len(v)), 0.0
        for b in np.unique(blocks):
            rows = np.flatnonzero(blocks == b)
            P = v[rows][labels[rows] == g].sum() / v[rows].sum()
            u[rows] = v[rows] * ((labels[rows] == g) - P)
            c += v[rows].sum() * P * (1.0 - P)
        shares.append(c)
        squares.append(u @ K @ u)
        others.append(1.0 - v[labels == g].sum() / v.sum())
    terms = zip(others, shares, squares, strict=True)
    return sum(2.0 * o / (c * sum(shares)) * q for o, c, q in terms)


@pytest.mark.parametrize("n_samples", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_draws_are_differences_within_blocks(n_samples, weighted):
    rng, blocks = np.random.default_rng(0), names()
    n = len(blocks)
    labels, Z = rng.integers(0, n_samples, n), rng.normal(size=(n, 2)) + blocks[:, None]
    v = rng.uniform(0.3, 2.0, n) if weighted else np.ones(n)
    v /= v.mean()
    drawn = shuffled(labels, 6, rng, Blocks.of(blocks, n))
    rows = RelabelledInBlocks(v, labels, n_samples, Blocks.of(blocks, n))
    kernels = [precise(K, Z), precise(mc.Linear(), Z + 1e3)]  # far off: nothing cancels
    found = rows.discrepancies(kernels, [drawn[:4], drawn[4:]]).statistics
    for statistics, values in zip(found, (K(Z), Z @ Z.T), strict=True):
        expected = np.array([within_blocks(values, d, blocks, v) for d in drawn])
        assert_allclose(statistics[0], expected[0] - expected[1:].mean(), atol=1e-8)
        assert_allclose(statistics, (expected - expected.mean()) * 7 / 6, atol=1e-8)


def test_differences_within_blocks_that_are_opposed_to_those_between_them_are_seen():
    X, Y, blocks = opposed_samples()
    for kernel in ("median", None, mc.Linear()):
        result = mmd_test(X, Y, blocks=blocks, kernel=kernel, random_state=0)
        assert result.pvalue == 1 / 2001
    low, high = result.effect_interval
    assert low < 2.4**2 < high  # Cohen's d within blocks, squared
    assert abs(result.statistic - 2.4**2) < 1.0
    f = result.witness
    assert f([[1.0]])[0] > f([[0.0]])[0]  # X is larger within blocks, and smaller without
    assert result.witness.norm() ** 2 == pytest.approx(result.statistic, rel=0.02)


def test_the_same_difference_in_each_block_does_not_depend_on_what_differs_between_them():
    X, Y, blocks = opposed_samples()
    moved = [Z + 50.0 * b[:, None] for Z, b in ((X, blocks[:100]), (Y, blocks[100:]))]
    first, again = (
        mmd_test(*Z, blocks=blocks, kernel=mc.Linear(), random_state=0) for Z in ((X, Y), moved)
    )
    assert_allclose(again.statistic, first.statistic, rtol=1e-9)
    assert_allclose(again.effect_interval, first.effect_interval, rtol=1e-9)
    assert again.pvalue == first.pvalue


@pytest.mark.parametrize("weighted", [False, True])
def test_p_values_over_all_relabellings_in_unbalanced_blocks_are_uniform(weighted):
    """Each relabelling is observed in turn: a share alpha at most has a p-value <= alpha."""
    rng, blocks = np.random.default_rng(0), np.array([0, 0, 0, 0, 1, 1, 1, 2])
    Z, v = rng.normal(size=(8, 1)) + blocks[:, None], np.ones(8)
    v = rng.exponential(size=8) + 0.1 if weighted else v
    parts = [sorted(set(orders(given))) for given in ((0, 1, 1, 1), (0, 0, 1), (0,))]
    labels = np.array([sum(part, ()) for part in product(*parts)])
    p = []
    for j in range(len(labels)):
        drawn = np.roll(labels, -j, axis=0)
        rows = RelabelledInBlocks(v / v.mean(), drawn[0], 2, Blocks.of(blocks, 8))
        p.append(p_value(rows.discrepancies([precise(K, Z)], [drawn]).statistics[0]))
    assert len(p) == 12
    for alpha in np.unique(p):
        assert np.mean(np.array(p) <= alpha + 1e-12) <= alpha + 1e-12
    assert min(p) == pytest.approx(1 / 12)


@pytest.mark.parametrize("size", [2, 3, 12])
def test_level_and_interval_in_blocks(size):
    """Blocks differ, and samples have other shares of each."""
    found = []
    for i in range(120):
        rng, blocks = np.random.default_rng(i), np.arange(36) // size
        site = 2.0 * rng.normal(size=36)[blocks]
        first = rng.uniform(size=36) < (site > 0) * 0.6 + 0.2
        z = (site + rng.normal(size=36))[:, None]
        order = np.r_[np.flatnonzero(first), np.flatnonzero(~first)]
        parts = z[first], z[~first]
        options = {"kernel": K, "n_permutations": 39, "random_state": i}
        found.append(mmd_test(*parts, blocks=blocks[order], **options))
    p = np.array([r.pvalue for r in found])
    for level in (0.05, 0.1, 0.25):
        assert np.sum(p <= level + 1e-12) <= binom.ppf(0.9999, 120, level)
    assert np.mean(p <= 0.5) > 0.3
    assert np.mean([r.effect_interval[0] > 0.0 for r in found]) < 0.05


@pytest.mark.parametrize("size", [2, 4, 30])
@pytest.mark.parametrize("weighted", [False, True])
def test_effect_size_within_blocks_is_the_square_of_cohens_d(size, weighted):
    found = []
    for i in range(40):
        rng, blocks, label = np.random.default_rng(i), np.arange(120) // size, np.arange(120) % 2
        z = 3.0 * rng.normal(size=120)[blocks] + rng.normal(size=120) + label
        w = rng.uniform(0.5, 1.5, 120)
        weights = (w[label == 0], w[label == 1]) if weighted else None
        order = np.argsort(label, kind="stable")
        parts = z[label == 0][:, None], z[label == 1][:, None]
        options = {"kernel": mc.Linear(), "n_permutations": 30, "random_state": 0}
        found.append(mmd_test(*parts, blocks=blocks[order], weights=weights, **options))
    assert np.mean([r.effect_size for r in found]) == pytest.approx(1.0, abs=0.2)
    low, high = np.array([r.effect_interval for r in found]).T
    assert np.mean((low <= 1.0) & (high >= 1.0)) >= 0.85
    assert np.mean(high - low) < 3.0


@pytest.mark.parametrize("n_samples", [2, 3])
def test_one_block_is_no_block(n_samples):
    samples = [np.random.default_rng(i).normal(0.3 * i, 1.0, (12, 1)) for i in range(n_samples)]
    plain = mmd_test(*samples, random_state=0)
    one = mmd_test(*samples, blocks=["a"] * 12 * n_samples, random_state=0)
    assert_allclose(one.null_statistics, plain.null_statistics)
    assert one.effect_interval == plain.effect_interval
    # and nearly so without the shortcut
    Z, labels = np.concatenate(samples), np.repeat(np.arange(n_samples), 12)
    rows = RelabelledInBlocks(np.ones(len(Z)), labels, n_samples, Blocks.one(len(Z)))
    found = rows.discrepancies([precise(K, Z)], [shuffled(labels, 999, np.random.default_rng(0))])
    value = mmd_test(*samples, kernel=K, random_state=0).statistic
    assert found.statistics[0, 0] == pytest.approx(value, rel=0.1)


def test_blocks_without_rows_of_both_samples_say_nothing():
    X, Y = np.random.default_rng(0).normal(size=(2, 10, 1))
    result = mmd_test(X, Y + 3.0, blocks=np.repeat([0, 1], 10), n_permutations=50, random_state=0)
    assert (result.pvalue, result.statistic, result.effect_size) == (1.0, 0.0, 0.0)
    assert result.witness is None


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_in_blocks_do_not_depend_on_how_they_are_done(weighted):
    """By frequencies or tiles, with vectors that are kept or not, and some draws at a time."""
    rng = np.random.default_rng(0)
    X, Y, blocks = rng.normal(size=(600, 1)), rng.normal(0.2, 1, (500, 1)), rng.integers(0, 9, 1100)
    weights = (rng.uniform(1, 2, 600), rng.uniform(1, 2, 500)) if weighted else None
    options = {"kernel": K, "blocks": blocks, "weights": weights, "n_permutations": 200}
    found = []
    given = [{}, {"working_memory": 0.5}, {"working_memory": 0.01, "n_jobs": 1}]
    if not weighted:
        pytest.importorskip("finufft")
        given.append({"engine": "spectral"})
    for changed in given:
        with mc.options(**changed):
            found.append(mmd_test(X, Y, random_state=0, **options))
    spread = found[0].null_statistics.std()
    for other in found[1:]:
        assert_allclose(other.null_statistics, found[0].null_statistics, atol=1e-5 * spread)
        assert_allclose(other.effect_interval, found[0].effect_interval, rtol=1e-4, atol=1e-8)


# --- Two variables --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["low rank", "gathered", "no matrix"])
def test_draws_are_covariances_within_blocks(method):
    rng, blocks = np.random.default_rng(0), names()
    n = len(blocks)
    given, C = Blocks.of(blocks, n), centring(blocks)
    X, Y = rng.normal(size=(2, n, 1)) + blocks[None, :, None]
    kx, ky = (mc.Gaussian(0.7), mc.Linear()), (K, mc.Polynomial(2))
    draws = permutations(n, 8, np.random.default_rng(1), given)
    with mc.options(working_memory=1e-3 if method == "no matrix" else 128.0):
        low = method == "low rank"
        drawn = (
            LowRank(factors(kx, X, 500, given), factors(ky, Y, 500, given))
            if low
            else WholeMatrices(kx, X, ky, Y, given)
        )
        found = drawn.statistics(draws)
        a = rng.normal(size=n)
        product_ = drawn.matrices(0)[0].product(a) * drawn.matrices(0)[0].scale
    assert_allclose(product_, C @ kx[0](X) @ C @ a, atol=1e-5)
    apart, sizes = blocks[:, None] != blocks, np.array(list(SIZES.values()))
    pairs = np.sum(np.outer(sizes - 1, sizes - 1)) - np.sum((sizes - 1) ** 2)
    pairs += sum(m * (m - 3) for m in sizes if m > 2)

    def statistic(k, m, Z):
        total = np.sum(((C @ k(X) @ C) * (C @ m(Z) @ C))[apart])
        for b, size in SIZES.items():
            if size >= 4:
                rows = blocks == b
                total += size * (size - 3) * hsic(k, X[rows], m, Z[rows])
        return total / pairs

    perms = np.concatenate([draw() for draw in draws])
    expected = np.array([[statistic(k, m, Y[p]) for p in perms] for k in kx for m in ky])
    spread = expected.std(axis=1)[:, None]
    assert_allclose(found / spread, expected / spread, atol=1e-5)
    values = [drawn.effect(pair).value for pair in range(4)]
    assert_allclose(values / spread[:, 0], expected[:, 0] / spread[:, 0], atol=1e-5)


@pytest.mark.parametrize("kernel", [(mc.Linear(),) * 2, (mc.Laplace(1.0),) * 2, None], ids=str)
def test_dependence_within_blocks_that_is_opposed_to_that_between_them_is_seen(kernel):
    x, y, site = opposed_variables()
    result = hsic_test(x, y, blocks=site, kernel=kernel, n_permutations=500, random_state=0)
    assert result.pvalue == 1 / 501
    f, g = result.witness
    C = centring(site)
    assert np.corrcoef(C @ f(x), C @ g(y))[0, 1] > 0.8
    if kernel == (mc.Linear(),) * 2:
        r = np.corrcoef((C @ x).T, (C @ y).T)[0, 1]
        assert_allclose(result.effect_size, r**2, atol=2e-3)


def test_coco_sees_dependence_within_blocks():
    x, y, site = opposed_variables()
    result = coco_test(x, y, blocks=site, kernel=(mc.Linear(),) * 2, random_state=0)
    C = centring(site)
    assert result.pvalue == 1 / 2001
    assert_allclose(result.statistic, abs((C @ x).T @ (C @ y)) / 400, rtol=1e-9)
    r = np.corrcoef((C @ x).T, (C @ y).T)[0, 1]
    assert_allclose(result.effect_size, abs(r), atol=0.01)


@pytest.mark.parametrize("k", [mc.Gaussian(1.0), mc.Laplace(1.0)], ids=repr)
@pytest.mark.parametrize("size", [2, 3, 12])
def test_level_and_interval_of_independence_in_blocks(k, size):
    found = []
    for i in range(100):
        rng, blocks = np.random.default_rng(i), np.arange(36) // size
        x, y = 2.0 * rng.normal(size=36)[blocks] + rng.normal(size=(2, 36))
        options = {"kernel": (k, k), "n_permutations": 39, "random_state": i, "blocks": blocks}
        found.append(hsic_test(x[:, None], y[:, None], **options))
    p = np.array([r.pvalue for r in found])
    for level in (0.05, 0.1, 0.25):
        assert np.sum(p <= level + 1e-12) <= binom.ppf(0.9999, 100, level)
    assert np.mean(p <= 0.5) > 0.3
    assert np.mean([r.effect_interval[0] > 0.0 for r in found]) < 0.05


def test_one_block_is_no_block_of_pairs():
    x, y = np.random.default_rng(0).normal(size=(2, 30, 1))
    for test in (hsic_test, coco_test):
        plain = test(x, y, random_state=0, n_permutations=50)
        one = test(x, y, random_state=0, n_permutations=50, blocks=np.ones(30))
        assert_allclose(one.null_statistics, plain.null_statistics)
        assert one.statistic == plain.statistic
        assert one.effect_interval == plain.effect_interval


@pytest.mark.parametrize("k", [mc.Gaussian(1.0), mc.Laplace(1.0)], ids=repr)
def test_rows_that_are_alone_in_their_blocks_say_nothing(k):
    x = np.random.default_rng(0).normal(size=(12, 1))
    for test in (hsic_test, coco_test):
        options = {"kernel": (k, k), "n_permutations": 50, "random_state": 0}
        alone = test(x, x, blocks=np.arange(12), **options)
        assert (alone.pvalue, alone.effect_size) == (1.0, 0.0)
        with_one = test(x, x, blocks=np.r_[np.zeros(6), np.arange(1, 7)], **options)
        few = test(x[:6], x[:6], blocks=None, **options)
        if test is hsic_test:
            assert_allclose(with_one.statistic, few.statistic, rtol=1e-5)


@pytest.mark.parametrize("k", [K, mc.Laplace(0.7), mc.Linear(), mc.NegativeDistance()], ids=repr)
def test_what_is_constant_in_each_block_says_nothing(k):
    """Rounding used to decide."""
    rng = np.random.default_rng(0)
    site, y = rng.integers(0, 7, 60), rng.normal(size=(60, 1))
    x = site[:, None] / 3.0 + 0.1
    options = {"blocks": site, "n_permutations": 99, "random_state": 0}
    assert mmd_test(x[:20], x[20:], kernel=k, **options).pvalue == 1.0
    for test in (hsic_test, coco_test):
        for pair in ((x, y), (y, x)):
            found = test(*pair, kernel=(k, k), **options)
            assert (found.pvalue, found.effect_size) == (1.0, 0.0)
