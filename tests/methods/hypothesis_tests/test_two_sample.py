"""The two-sample and k-sample test against double loops, exact enumeration and its level."""

import dataclasses
import json
import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, chisquare

import mercer as mc
from mercer.engine import NativeForms, SpectralForms
from mercer.engine.sums import _native_forms, _spectral_forms
from mercer.exceptions import InputError
from mercer.methods import mmd, mmd_test
from mercer.methods.hypothesis_tests import _resampling
from mercer.methods.hypothesis_tests._relabelling import Relabelled, precise
from mercer.methods.hypothesis_tests._resampling import (
    combined,
    p_value,
    random_subset,
    relabelled,
)
from mercer.methods.hypothesis_tests._two_sample import _as_one, _Paired, _weights


def normal(n, d=2, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(shift, 1.0, (n, d))


def unbiased(k, X, Y, v=None, w=None):
    """The definition, by double loops."""
    v, w = (np.ones(len(Z)) if u is None else u for Z, u in ((X, v), (Y, w)))

    def within(Z, u):
        pairs = [(i, j) for i in range(len(Z)) for j in range(len(Z)) if i != j]
        total = sum(u[i] * u[j] * k(Z[[i]], Z[[j]])[0, 0] for i, j in pairs)
        return total / sum(u[i] * u[j] for i, j in pairs)

    cross = sum(v[i] * w[j] * k(X[[i]], Y[[j]])[0, 0] for i in range(len(X)) for j in range(len(Y)))
    return within(X, v) + within(Y, w) - 2 * cross / (v.sum() * w.sum())


@pytest.mark.parametrize("k", [mc.Gaussian(1.5), mc.Laplace(0.7), mc.Linear(), mc.Polynomial(2)])
def test_statistic_is_the_definition(k):
    X, Y = normal(9), normal(6, seed=1, shift=0.5)
    result = mmd_test(X, Y, kernel=k, n_permutations=5, random_state=0)
    assert_allclose(result.statistic, unbiased(k, X, Y), rtol=2e-6)
    assert_allclose(mmd(k, X, Y), unbiased(k, X, Y), rtol=1e-12)


def test_weights_are_those_of_the_definition():
    X, Y, k = normal(7), normal(5, seed=1), mc.Gaussian(1.0)
    v, w = np.arange(1.0, 8.0), np.array([2.0, 0.0, 1.0, 1.0, 3.0])
    result = mmd_test(X, Y, kernel=k, weights=(v, w), n_permutations=5, random_state=0)
    expected = unbiased(k, X, Y, v, w)
    assert_allclose(result.statistic, expected, rtol=2e-6)
    assert_allclose(mmd(k, X, Y, weights=(v, w)), expected, rtol=1e-12)


@pytest.mark.parametrize("blocks", [None, np.arange(30) % 3])
def test_rows_of_weight_zero_are_left_out(blocks):
    """Draws used to have fewer than two rows of positive weight in a sample: 0 over 0."""
    rng = np.random.default_rng(0)
    X, Y, w = normal(12), normal(18, seed=1), rng.uniform(0.5, 2.0, 30)
    w[rng.permutation(30)[:22]] = 0.0
    w[[0, 1, 12, 13]] = 1.0
    used = w > 0
    found = mmd_test(X, Y, weights=(w[:12], w[12:]), blocks=blocks, random_state=0)
    names = None if blocks is None else blocks[used]
    few = X[used[:12]], Y[used[12:]]
    parts = w[:12][used[:12]], w[12:][used[12:]]
    without = mmd_test(*few, weights=parts, blocks=names, random_state=0)
    assert_allclose(found.null_statistics, without.null_statistics)
    assert found.n == without.n == (len(few[0]), len(few[1]))
    assert found.effect_interval == without.effect_interval
    assert_allclose(found.witness(X), without.witness(X))


def test_each_sample_needs_two_rows_of_positive_weight():
    w = np.zeros(8)
    w[2] = 1.0
    for test in (mmd, mmd_test):
        with pytest.raises(InputError, match="two rows with positive weight in each sample"):
            test(
                *((mc.Gaussian(1.0),) if test is mmd else ()),
                normal(8),
                normal(5),
                weights=(w, np.ones(5)),
            )


def test_several_samples_are_a_mean_over_pairs():
    k, samples = mc.Gaussian(1.0), [normal(n, seed=n, shift=0.1 * n) for n in (5, 8, 6, 7)]
    pairs = list(combinations(samples, 2))
    sizes = [len(A) * len(B) for A, B in pairs]
    expected = np.average([mmd(k, A, B) for A, B in pairs], weights=sizes)
    result = mmd_test(*samples, kernel=k, n_permutations=5, random_state=0)
    assert_allclose(result.statistic, expected, rtol=1e-5)
    assert result.witness is None


@pytest.mark.parametrize("n_samples", [2, 3])
def test_each_draw_is_the_statistic_of_relabelled_rows(n_samples):
    rng = np.random.default_rng(0)
    Z, k, v = rng.normal(size=(12, 2)), mc.Laplace(1.0), rng.uniform(0.5, 2.0, 12)
    labels = rng.permuted(np.tile(np.arange(12) % n_samples, (6, 1)), axis=1)
    drawn, kernels = Relabelled(v, labels[0], n_samples), [precise(k, Z, equal_weights=False)]
    statistics = drawn.discrepancies(kernels, [labels[:4], labels[4:]]).statistics
    for b in range(6):
        parts = [(Z[labels[b] == g], v[labels[b] == g]) for g in range(n_samples)]
        pairs = list(combinations(parts, 2))
        values = [unbiased(k, A, B, a, b) for (A, a), (B, b) in pairs]
        expected = np.average(values, weights=[a.sum() * b.sum() for (_, a), (_, b) in pairs])
        assert_allclose(statistics[0, b], expected, rtol=1e-5)


def test_p_value_converges_to_that_of_all_relabellings():
    X, Y, k = normal(5, 1), normal(4, 1, seed=1, shift=1.0), mc.Gaussian(1.0)
    Z, observed = np.concatenate([X, Y]), mmd(k, X, Y)
    every = [
        mmd(k, Z[list(part)], np.delete(Z, part, axis=0)) for part in combinations(range(9), 5)
    ]
    exact = np.mean(np.array(every) >= observed - 1e-12)
    result = mmd_test(X, Y, kernel=k, n_permutations=20_000, random_state=0)
    assert abs(result.pvalue - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)


def test_p_value_counts_the_observed_draw():
    result = mmd_test(normal(30), normal(30, seed=1, shift=5.0), n_permutations=99, random_state=0)
    assert result.pvalue == 0.01
    assert result.pvalue_bounds == (0.01, 0.01)


@pytest.mark.parametrize("weighted", [False, True])
def test_p_values_over_all_relabellings_are_uniform(weighted):
    """Each relabelling is observed in turn: a share alpha at most has a p-value <= alpha."""
    rng = np.random.default_rng(0)
    Z, w = rng.normal(size=(8, 1)), rng.exponential(size=8) ** 2
    parts = list(combinations(range(8), 4))
    labels = np.array([[int(i not in part) for i in range(8)] for part in parts])
    p = []
    for j in range(len(parts)):
        drawn = np.roll(labels, -j, axis=0)
        order = np.argsort(drawn[0], kind="stable")
        given = (w[order[:4]], w[order[4:]]) if weighted else None
        v = _as_one(_weights(given, (4, 4)))
        kernels = [
            precise(mc.Gaussian(s), Z[order], equal_weights=not weighted) for s in (0.3, 1, 3)
        ]
        rows = Relabelled(v, drawn[0, order], 2)
        statistics = rows.discrepancies(kernels, [drawn[:, order]]).statistics
        p.append(p_value(combined(statistics, np.array([0.5, 0.7, 0.9]))))
    for alpha in np.unique(p):
        assert np.mean(np.array(p) <= alpha + 1e-12) <= alpha + 1e-12


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("n_permutations", [1, 2, 10])
def test_two_rows_have_a_p_value(paired, n_permutations):
    for seed in range(5):
        result = mmd_test(
            normal(2, 1, seed), normal(2, 1, seed + 50), paired=paired, random_state=seed,
            n_permutations=n_permutations,
        )  # fmt: skip
        assert 1 / (n_permutations + 1) - 1e-12 <= result.pvalue <= 1


def test_equal_samples_have_a_p_value_of_one():
    X = np.ones((5, 2))
    assert mmd_test(X, X, kernel=mc.Gaussian(1.0), random_state=0).pvalue == 1.0
    with pytest.raises(InputError, match="all points are equal"):
        mmd_test(X, X)


@pytest.mark.parametrize("options", [{}, {"kernel": "median"}, {"paired": True}])
def test_level(options):
    p = [
        mmd_test(
            normal(12, seed=2 * i), normal(12, seed=2 * i + 1), n_permutations=39, random_state=i,
            **options,
        ).pvalue
        for i in range(300)
    ]  # fmt: skip
    for level in (0.05, 0.1, 0.25):
        rejections = np.sum(np.array(p) <= level + 1e-12)
        assert rejections <= binom.ppf(0.9999, 300, level)
    assert np.mean(np.array(p) <= 0.5) > 0.35  # and it is not empty


def test_paired_rows_are_swapped_not_mixed():
    rng = np.random.default_rng(0)
    person = rng.normal(0.0, 5.0, (60, 1))
    before, after = person + rng.normal(0, 0.1, (60, 1)), person + 0.1 + rng.normal(0, 0.1, (60, 1))
    assert mmd_test(before, after, random_state=0).pvalue > 0.05
    assert mmd_test(before, after, paired=True, random_state=0).pvalue < 0.01


def test_paired_draws_are_swaps():
    X, Y, k = normal(7), normal(7, seed=1), mc.Gaussian(1.0)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(4, 7))
    found = _Paired((k,), X, Y, signs).statistics[0]
    for b in range(4):
        swap = signs[b][:, None] < 0
        A, B = np.where(swap, Y, X), np.where(swap, X, Y)
        h = k(A) + k(B) - k(A, B) - k(B, A)
        assert_allclose(found[b], h[~np.eye(7, dtype=bool)].mean(), rtol=1e-5)


def test_blocks_take_out_what_differs_between_them():
    rng = np.random.default_rng(0)
    site = np.repeat([0.0, 6.0], 30)
    X, Y = (site + rng.normal(size=60))[:, None], (np.repeat([0.0, 6.0], [10, 50]))[:, None]
    Y = Y + rng.normal(size=(60, 1))
    blocks = np.concatenate([site > 3, np.repeat([False, True], [10, 50])])
    assert mmd_test(X, Y, random_state=0).pvalue < 0.01
    assert mmd_test(X, Y, blocks=blocks, random_state=0).pvalue > 0.05


def test_dependent_series_need_the_wild_bootstrap():
    def series(seed):
        noise = np.random.default_rng(seed).normal(size=400)
        out = np.zeros(400)
        for t in range(1, 400):
            out[t] = 0.9 * out[t - 1] + noise[t]
        return out[:, None]

    pairs = [(series(2 * i), series(2 * i + 1)) for i in range(25)]
    k = mc.Gaussian(2.0)
    exchanged = [mmd_test(*p, kernel=k, n_permutations=99, random_state=0).pvalue for p in pairs]
    wild = [
        mmd_test(*p, kernel=k, dependence=20.0, n_permutations=99, random_state=0).pvalue
        for p in pairs
    ]
    assert np.mean(np.array(exchanged) <= 0.05) > 0.3
    assert np.mean(np.array(wild) <= 0.05) < 0.2


def test_default_sees_differences_at_every_scale():
    rng = np.random.default_rng(0)
    fine = rng.uniform(size=(400, 1))
    wave = np.floor(fine * 10) / 10 + rng.uniform(0, 0.06, (400, 1))
    assert mmd_test(rng.uniform(size=(400, 1)), wave, random_state=0).pvalue < 0.01
    assert mmd_test(rng.uniform(size=(400, 1)), wave, kernel="median", random_state=0).pvalue > 0.05


def test_result_is_the_same_for_a_seed_and_moved_data():
    X, Y = normal(40), normal(50, seed=1, shift=0.2)
    first, again = (mmd_test(X, Y, random_state=3) for _ in range(2))
    assert first.pvalue == again.pvalue
    assert first.seed == 3
    for far in (mmd_test(X + 1e6, Y + 1e6, random_state=3), mmd_test(8 * X, 8 * Y, random_state=3)):
        assert abs(far.pvalue - first.pvalue) <= 2 / 2001
    drawn = mmd_test(X, Y, random_state=np.random.default_rng(5))
    assert mmd_test(X, Y, random_state=drawn.seed).pvalue == drawn.pvalue


def test_witness_is_the_difference_of_mean_embeddings():
    X, Y, k = normal(20), normal(30, seed=1, shift=2.0), mc.Gaussian(1.0)
    result = mmd_test(X, Y, kernel=k, random_state=0)
    expected = mc.mean_embedding(k, X) - mc.mean_embedding(k, Y)
    assert_allclose(result.witness(X), expected(X))
    at = mc.preimage(result.witness).points[0]
    assert np.linalg.norm(at) < 1.5


def test_effect_size_of_a_linear_kernel_is_the_square_of_cohens_d():
    X, Y = normal(4000, 1), normal(4000, 1, seed=1, shift=0.5)
    result = mmd_test(X, Y, kernel=mc.Linear(), n_permutations=20, random_state=0)
    pooled = 0.5 * (X.var(ddof=1) + Y.var(ddof=1))
    assert_allclose(result.effect_size, (X.mean() - Y.mean()) ** 2 / pooled, atol=1e-3)


def test_effect_interval_covers():
    k, truth, inside = mc.Gaussian(1.0), [], []
    for i in range(60):
        X, Y = normal(80, 1, seed=2 * i), normal(80, 1, seed=2 * i + 1, shift=1.0)
        result = mmd_test(X, Y, kernel=k, n_permutations=20, random_state=0)
        truth.append(result.effect_size)
        inside.append(result.effect_interval)
    low, high = np.array(inside).T
    value = np.mean(truth)
    assert np.mean((low <= value) & (value <= high)) >= 0.85


def test_frames_mixed_tables_and_strings():
    rng = np.random.default_rng(0)
    a = pd.DataFrame({"x": rng.normal(size=50), "c": rng.choice(["u", "v"], 50)})
    b = pd.DataFrame({"x": rng.normal(size=50), "c": rng.choice(["u", "v"], 50, p=[0.9, 0.1])})
    assert mmd_test(a, b, random_state=0).pvalue < 0.05
    assert mmd_test(a[["x"]], b[["x"]], random_state=0).pvalue > 0.05
    words = ["ab", "aab", "ba", "abab", "bba"], ["xy", "yx", "xxy", "yyx"]
    assert mmd_test(*words, kernel=mc.Spectrum(1), random_state=0).pvalue < 0.05


def test_report_in_words():
    X, Y, options = normal(20), normal(30, seed=1), {"n_permutations": 99, "random_state": 7}
    result = mmd_test(X, Y, **options)
    lines = repr(result).splitlines()
    assert lines[0] == "Do the samples come from the same distribution?"
    how = "permutation, 99 draws, seed 7, 20 kernels combined"
    assert lines[1] == f"  p = {result.pvalue:.4g} ({how})"
    assert lines[2] == "  20 and 30 rows"
    assert "20, 30 and 20 rows" in repr(mmd_test(X, Y, X + 1.0, **options))
    law = mmd_test(X, Y, kernel="median", null="spectral")
    assert law.how == f"weighted chi-squares, seed {law.seed}"
    assert mmd_test(X, Y, kernel=mc.Gaussian(1.0), null="spectral").how == "weighted chi-squares"
    bracket = dataclasses.replace(result, pvalue_bounds=(0.01, 0.02))
    assert bracket.how == f"{how}, between 0.01 and 0.02"
    frame = result.to_frame()
    assert frame.shape == (1, len(result.to_dict()))
    assert frame["pvalue"][0] == result.pvalue
    assert frame["rows"][0] == [20, 30]
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()


def test_reports_can_be_pasted():
    """No addresses, no endless digits, nothing but ASCII."""
    X, Y, options = normal(20), normal(30, seed=1), {"n_permutations": 19, "random_state": 0}
    kernel = mc.kernels.FromFunction(lambda a, b: a @ b.T)
    for result in (
        mmd_test(X, Y, **options),
        mmd_test(X, Y, kernel=kernel, **options),
        mc.hsic_test(X, Y[:20], **options),
        mc.ksd_test(X, lambda Z: -Z, **options),
    ):
        text = repr(result)
        assert text.isascii()
        assert "0x" not in text
        assert re.search(r"[1-9]\.?\d{5,}", text) is None
        assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": []}, "at least one kernel"),
        ({"kernel": "mean"}, "median"),
        ({"kernel": 3.0}, "kernel"),
        ({"paired": True}, "equal length"),
        ({"dependence": -1.0}, "equal length|dependence"),
        ({"blocks": [0, 1]}, "blocks must name"),
        ({"weights": [np.ones(20)]}, "one array per sample"),
        ({"n_permutations": 0}, "n_permutations"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_refusals_name_the_cure(options, message):
    with pytest.raises((InputError, TypeError), match=message):
        mmd_test(normal(20), normal(30), **options)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_must_be_finite(bad):
    X = normal(5)
    X[2, 1] = bad
    with pytest.raises(InputError, match=r"NaN|infin"):
        mmd_test(X, normal(5))


def test_small_and_constant_samples():
    with pytest.raises(InputError, match="two rows"):
        mmd_test([[0.0]], [[1.0], [2.0]])
    X = np.c_[normal(30), np.ones(30)]
    assert 0 < mmd_test(X, X + np.array([0.1, 0, 0]), random_state=0).pvalue <= 1
    tiny = mmd_test(1e-60 * normal(30), 1e-60 * normal(30, shift=1.0, seed=1), random_state=0)
    plain = mmd_test(normal(30), normal(30, shift=1.0, seed=1), random_state=0)
    assert abs(tiny.pvalue - plain.pvalue) <= 2 / 2001


@pytest.mark.parametrize("weights", [2**70, "x", object(), np.ones(8), (np.ones(8),)])
def test_weights_are_lists_of_arrays(weights):
    X, Y, k = normal(8), normal(8, seed=1), mc.Gaussian(1.0)
    for call in (lambda: mmd(k, X, Y, weights=weights), lambda: mmd_test(X, Y, weights=weights)):
        with pytest.raises(InputError, match="weights must be"):
            call()


def test_samples_have_the_same_columns():
    with pytest.raises(InputError, match="features"):
        mmd_test(normal(8), normal(8), normal(8, d=3), kernel=mc.Gaussian(1.0))


@pytest.mark.parametrize("other", [[], np.ones((5, 2)), None, 3.0, "text", {"a": [1.0, 2.0]}])
def test_a_table_with_text_beside_something_else(other):
    table = {"a": [1.0, 2.0, 3.0], "b": ["u", "v", "u"]}
    with pytest.raises(InputError, match=r"sample 2 (must be a table|has no column 'b')"):
        mmd_test(table, other)


@pytest.mark.parametrize("shuffled_below", [0, 100])
@pytest.mark.parametrize("sizes", [(2, 3), (1, 2, 1)])
def test_relabellings_are_equally_likely(sizes, shuffled_below, monkeypatch):
    monkeypatch.setattr(_resampling, "_MANY", shuffled_below)
    labels = relabelled(sizes, 5000, np.random.default_rng(0))
    assert labels[0].tolist() == np.repeat(np.arange(len(sizes)), sizes).tolist()
    found, counts = np.unique(labels[1:], axis=0, return_counts=True)
    assert len(found) == {(2, 3): 10, (1, 2, 1): 12}[sizes]
    assert all(np.bincount(row).tolist() == list(sizes) for row in found)
    assert chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(("n", "size"), [(1, 1), (3, 0), (6, 1), (6, 5), (7, 3), (8, 4)])
def test_subsets_are_equally_likely(n, size):
    rng = np.random.default_rng(0)
    drawn = [tuple(np.flatnonzero(random_subset(n, size, rng))) for _ in range(10_000)]
    every = list(combinations(range(n), size))
    counts = [drawn.count(subset) for subset in every]
    assert sum(counts) == len(drawn)
    assert len(every) == 1 or chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(
    ("engine", "n_samples"), [("spectral", 2), ("native", 2), ("blocked", 2), (None, 3)]
)
def test_draws_depend_on_neither_threads_nor_memory(engine, n_samples, monkeypatch):
    if engine == "spectral":
        pytest.importorskip("finufft")
    monkeypatch.setattr(_resampling, "_MANY", 100)
    monkeypatch.setattr(_native_forms, "_FEWEST", 100)
    samples = [normal(150, 1, seed) for seed in range(n_samples)]
    given = {"kernel": mc.Gaussian(1.5), "n_permutations": 20, "random_state": 3}
    found = []
    for n_jobs, memory in ((1, 128.0), (2, 128.0), (2, 2e-3)):
        with mc.options(engine=engine, n_jobs=n_jobs, working_memory=memory):
            found.append(mmd_test(*samples, **given).null_statistics)
    assert len(np.unique(found[0])) == 21
    for other in found[1:]:
        assert_allclose(other, found[0], atol=1e-5 * found[0].std())


def test_draws_that_are_not_kept_give_the_same_statistics():
    X, Y = normal(40), normal(30, seed=1)
    whole = mmd_test(X, Y, X[:20] + 1.0, n_permutations=50, random_state=0)
    with mc.options(working_memory=1e-3):
        assert_allclose(
            mmd_test(X, Y, X[:20] + 1.0, n_permutations=50, random_state=0).null_statistics,
            whole.null_statistics,
            rtol=1e-5,
        )


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_frequencies_give_a_bracket_of_the_p_value(dim, monkeypatch):
    """The truth is the p-value of products in tiles, of the same draws."""
    pytest.importorskip("finufft")
    widths = []
    for accuracy in (1e-4, 0.3):  # as it is, and so coarse that the bracket is wide
        monkeypatch.setattr(_spectral_forms, "_TRANSFORMS", accuracy)
        for seed in range(12):
            X, Y = normal(60, dim, seed), normal(50, dim, seed + 100, shift=0.2 * (seed % 3))
            options = {"kernel": mc.Gaussian(0.7), "n_permutations": 199, "random_state": seed}
            exact = mmd_test(X, Y, **options)
            with mc.options(engine="spectral"):
                found = mmd_test(X, Y, **options)
            low, high = found.pvalue_bounds
            assert low <= exact.pvalue <= high == found.pvalue
            if accuracy == 1e-4:
                assert_allclose(found.statistic, exact.statistic, rtol=1e-4, atol=1e-5)
                assert_allclose(found.effect_interval, exact.effect_interval, rtol=1e-3, atol=1e-4)
            widths.append(high - low)
    assert max(widths[:12]) <= 0.05 < max(widths[12:])


def test_frequencies_are_chosen_for_many_rows():
    pytest.importorskip("finufft")
    X, Y = normal(9000, 1), normal(8000, 1, seed=1)
    assert isinstance(precise(mc.Gaussian(1.0), X, forms=True).forms, SpectralForms)
    assert precise(mc.Laplace(1.0), X, forms=True).forms is None
    assert precise(mc.Gaussian(1.0), X[:300], forms=True).forms is None
    found = mmd_test(X, Y, kernel=mc.Gaussian(1.0), n_permutations=19, random_state=0)
    with mc.options(engine="native"):
        exact = mmd_test(X, Y, kernel=mc.Gaussian(1.0), n_permutations=19, random_state=0)
    assert_allclose(found.null_statistics, exact.null_statistics, atol=1e-8)


@pytest.mark.parametrize("d", [2, 6])
def test_many_rows_are_summed_by_the_core(d, monkeypatch):
    """The truth is the statistic of products in tiles, of the same draws."""
    monkeypatch.setattr(_native_forms, "_FEWEST", 500)
    X, Y = 1e3 + normal(400, d), 1e3 + normal(300, d, seed=1, shift=0.1)
    Z, given = np.concatenate([X, Y]), {"n_permutations": 50, "random_state": 0}
    assert precise(mc.Gaussian(3.0), Z).forms is None
    assert precise(mc.Gaussian(100.0), Z, forms=True).forms is None  # varies too little
    for k in (mc.Gaussian(3.0), 1e-12 * mc.RationalQuadratic(1.0, 2.0)):
        assert isinstance(precise(k, Z, forms=True).forms, NativeForms)
        found = mmd_test(X, Y, kernel=k, **given)
        with mc.options(engine="blocked"):
            exact = mmd_test(X, Y, kernel=k, **given)
        spread = exact.null_statistics.std()
        assert_allclose(found.null_statistics, exact.null_statistics, atol=1e-5 * spread)
        assert_allclose(found.effect_interval, exact.effect_interval, rtol=1e-4)
        assert found.pvalue == exact.pvalue


def test_ties_are_ties_for_the_core(monkeypatch):
    """Labels of one group of equal rows may be exchanged; all statistics with equal counts tie."""
    monkeypatch.setattr(_native_forms, "_FEWEST", 100)
    X, Y = np.repeat([[0.1], [0.7]], 60, axis=0), np.repeat([[0.1], [0.7]], 50, axis=0)
    labels = relabelled((120, 100), 300, np.random.default_rng(0))
    kernel = precise(mc.Gaussian(0.5), np.concatenate([X, Y]), forms=True)
    assert kernel.forms is not None
    drawn = Relabelled(np.ones(220), labels[0], 2)
    statistics = drawn.discrepancies([kernel], [labels]).statistics[0]
    ones = np.concatenate([X, Y])[:, 0] == 0.7
    counts = (labels[:, ones] == 0).sum(axis=1)
    for count in np.unique(counts):
        assert np.ptp(statistics[counts == count]) < 1e-5 * statistics.std()


@pytest.mark.parametrize("n", [10, 40, 200])
def test_a_sample_does_not_differ_from_itself(n, rng):
    X = rng.normal(size=(n, 2))
    Y = X.copy()
    Y[: n // 10] += 0.1  # nearly the same rows
    for other in (X, Y):
        found = mc.mmd_test(X, other, n_permutations=199, random_state=0)
        assert found.statistic < 0.0
        assert found.pvalue > 0.5
