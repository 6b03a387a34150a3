"""Discrepancies and tests of rows in pieces: as in memory."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm

import mercer as mc
from mercer._chunks import LocalChunks
from mercer.exceptions import DomainError, InputError
from mercer.methods import hsic, ksd, mmd
from mercer.methods.hypothesis_tests import _goodness_of_fit as goodness_of_fit
from mercer.methods.hypothesis_tests import _independence_in_pieces as independence
from mercer.methods.hypothesis_tests._forms_in_pieces import (
    Draws,
    forms_in_pieces,
    relabellings,
    row_sums,
)
from mercer.methods.hypothesis_tests._tests_in_pieces import sample_of

rng = np.random.default_rng(3)
X, Y, w = rng.normal(size=(130, 2)), rng.normal(0.2, 1.0, (90, 2)), rng.random(130)
k, far = mc.Gaussian(1.0), mc.Laplace(2.0) + 3.0


def cut(array, rows=50):
    return LocalChunks.of(np.asarray(array), rows)


@pytest.mark.parametrize("kernel", [k, far], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_discrepancies(kernel, estimator):
    for weights in (None, (w, None)):
        parts = None if weights is None else (cut(w), None)
        known = mmd(kernel, X, Y, estimator=estimator, weights=weights)
        found = mmd(kernel, cut(X), cut(Y), estimator=estimator, weights=parts)
        assert found == pytest.approx(known, rel=1e-9, abs=1e-13)
        assert mmd(kernel, cut(X), Y, estimator=estimator, weights=parts) == pytest.approx(found)
    other = X[:, :1] ** 2 + X[::-1]
    known = hsic(kernel, X, k, other, estimator=estimator)
    for pair in ((cut(X), cut(other)), (X, cut(other)), (cut(X), other)):
        found = hsic(kernel, pair[0], k, pair[1], estimator=estimator)
        assert found == pytest.approx(known, rel=1e-9, abs=1e-13)
    for weights in (None, w):
        parts = None if weights is None else cut(w)
        known = ksd(k, X, norm_score, estimator=estimator, weights=weights)
        found = ksd(k, cut(X), norm_score, estimator=estimator, weights=parts)
        assert found == pytest.approx(known, rel=1e-9, abs=1e-13)


def norm_score(x):
    return -x


def test_estimators_on_pairs_of_rows_are_refused():
    for refused in (
        lambda: mmd(k, cut(X), cut(Y), estimator="block"),
        lambda: hsic(k, cut(X), k, cut(X), estimator="incomplete"),
        lambda: mc.mmd_test(cut(X), cut(Y), cut(Y)),
        lambda: mc.mmd_test(cut(X), cut(X), paired=True),
        lambda: mc.ksd_test(cut(X), norm_score, dependence=3.0),
    ):
        with pytest.raises(InputError, match="in memory"):
            refused()


def test_forms_are_those_of_the_written_matrix():
    rows = cut(X, 45)
    K = k(X)
    np.fill_diagonal(K, 0.0)
    for draws in (Draws(7, 300), relabellings(rows.sizes, 2, 7, 300)):
        W = [
            np.concatenate([draws.vectors(at, i, n) for i, n in enumerate(rows.sizes)], axis=1)
            for at in draws.parts
        ]
        W = np.concatenate(W).astype(float)
        assert W.shape == (301, 130)
        found, known = forms_in_pieces(rows, [k.program], draws), np.einsum("bi,ij,bj->b", W, K, W)
        np.testing.assert_allclose(found.values[0], known, atol=2e-3)
        np.testing.assert_allclose(found.exact[0], known[:8], rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(found.linear[0], W @ K.sum(axis=1), rtol=1e-5, atol=1e-3)
        assert found.total[0] == pytest.approx(K.sum())
        assert found.absolute[0] == pytest.approx(np.abs(K).sum())
        worst = np.abs(found.values[0] - known).max()
        assert 0.0 < worst < 10.0 * found.rounding[0] < 1e-2
    sums, diagonal = row_sums(rows, k.program, X)
    np.testing.assert_allclose(sums, K @ X, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(diagonal, 1.0)


def test_relabellings_are_uniform():
    """Each pair of rows is together as often as in a random set of that size."""
    draws = relabellings((3, 4, 2), 2, 0, 4_000)
    inside = [
        np.concatenate([draws.vectors(at, i, n) for i, n in enumerate((3, 4, 2))], axis=1)
        for at in draws.parts
    ]
    inside = np.concatenate(inside)[1:] + draws.share > 0.5
    assert (inside.sum(axis=1) == 7).all()
    together = (inside.T.astype(float) @ inside) / len(inside)
    alone, both = np.full(9, 7 / 9), 7 * 6 / (9 * 8)
    assert np.abs(together.diagonal() - alone).max() < 5 * np.sqrt(0.25 / 4_000)
    off = together[~np.eye(9, dtype=bool)]
    assert np.abs(off - both).max() < 5 * np.sqrt(0.25 / 4_000)


@pytest.mark.parametrize("kernel", [k, [k, mc.Laplace(1.0)], "median", None])
def test_two_sample_test(kernel):
    """The statistic is the same, draws are others of the same law."""
    options = {"kernel": kernel, "n_permutations": 199, "random_state": 0}
    known, found = mc.mmd_test(X, Y, **options), mc.mmd_test(cut(X), cut(Y), **options)
    assert repr(found.kernels) == repr(known.kernels) or kernel is None
    if kernel is not None:
        assert found.statistic == pytest.approx(known.statistic, rel=1e-4)
        assert found.effect_size == pytest.approx(known.effect_size, rel=1e-6)
    assert found.pvalue == pytest.approx(known.pvalue, abs=0.1)
    one, other = (r.null_statistics[1:] for r in (known, found))
    assert other.std() == pytest.approx(one.std(), rel=0.25)
    assert found.witness([[0.0, 0.0]]) == pytest.approx(
        mc.methods.witness(found.kernel, X, Y)([[0.0, 0.0]])
    )
    again = mc.mmd_test(cut(X), Y, **options)
    assert again.pvalue == pytest.approx(found.pvalue, abs=0.1)
    different = mc.mmd_test(cut(X), cut(Y + 1.0), **options)
    assert different.pvalue == 1 / 200


@pytest.mark.parametrize("kernel", [k, None], ids=["one", "grid"])
def test_goodness_of_fit_test(kernel):
    options = {"kernel": kernel, "n_permutations": 300, "random_state": 0}
    law = [norm(), norm()]
    known, found = mc.ksd_test(X, law, **options), mc.ksd_test(cut(X), law, **options)
    assert found.statistic == pytest.approx(known.statistic, rel=1e-4) or kernel is None
    assert found.pvalue == pytest.approx(known.pvalue, abs=0.12)
    if kernel is not None:
        np.testing.assert_allclose(found.contributions, known.contributions, atol=1e-5)
        assert found.effect_size == pytest.approx(known.effect_size, rel=1e-4)
    h = mc.methods.SteinKernel(k, law)
    assert h(X[:2]).shape == (2, 2)
    assert mc.ksd_test(cut(X + 0.5), law, **options).pvalue == 1 / 301


def test_level_of_the_two_sample_test():
    """p-values are uniform under the null hypothesis: 60 of them, a binomial bound at 0.2."""
    p = []
    for seed in range(60):
        A = np.random.default_rng(seed).normal(size=(40, 1))
        rows, other = cut(A[:22], 9), cut(A[22:], 7)
        p.append(mc.mmd_test(rows, other, kernel=k, n_permutations=19, random_state=seed).pvalue)
    assert abs(np.mean(np.array(p) <= 0.2) - 0.2) < 4 * np.sqrt(0.16 / 60)


@pytest.mark.parametrize(
    ("kernel", "scale"),
    [(mc.Gaussian(1e-9), 1.0), (mc.Linear(), 0.0), (mc.Polynomial(3), 0.0)],
    ids=["narrow", "equal", "cubic"],
)
@pytest.mark.parametrize("size", [5, 160, 3000 - 283])
def test_statistics_that_are_all_the_same_reject_nothing(kernel, scale, size):
    """All that differs between draws is rounding, which is not the same for the observed one."""
    Z = scale * rng.normal(size=(size + 140, 2)) + 0.3
    for seed in range(5):
        found = mc.mmd_test(
            cut(Z[:size], 900), cut(Z[size:]), kernel=kernel, n_permutations=49, random_state=seed
        )
        assert found.pvalue == 1.0
        assert found.null_statistics.std() == 0.0


def test_kernels_that_see_no_pair_of_rows_find_no_dependence():
    narrow = mc.Gaussian(1e-3)
    for seed in range(5):
        A, B = np.random.default_rng(seed).normal(size=(2, 120, 2))
        options = {"kernel": (narrow, narrow), "n_permutations": 19, "random_state": seed}
        assert mc.hsic_test(cut(A), cut(B), **options).pvalue == 1.0


def test_samples_of_very_different_sizes():
    """Rounding of the many pairs of the large sample hides nothing."""
    few, many = rng.normal(3.0, 1.0, (3, 2)), rng.normal(size=(6_500, 2))
    options = {"kernel": k, "n_permutations": 99, "random_state": 0}
    for samples in ((cut(few), cut(many, 2_000)), (cut(many, 2_000), cut(few))):
        assert mc.mmd_test(*samples, **options).pvalue == 0.01
    same = mc.mmd_test(cut(many[:3]), cut(many[3:], 2_000), **options)
    assert same.null_statistics.std() > 0.0


def test_two_samples_far_from_the_origin():
    """Large kernel values that hardly differ lose no digits in float32."""
    options = {"kernel": mc.Linear(), "n_permutations": 99, "random_state": 0}
    known = mc.mmd_test(X, Y, **options)
    found = mc.mmd_test(cut(X + 1e4), cut(Y + 1e4), **options)
    assert found.statistic == pytest.approx(known.statistic, rel=1e-4)


def test_a_variable_that_is_constant_depends_on_nothing():
    Z = X[:80]  # shares of 1/80 do not sum to one exactly
    for other in (Z, 1e-160 * Z):
        found = mc.hsic_test(cut(0.0 * Z), cut(other), kernel=(k, k), n_permutations=19)
        assert found.pvalue == 1.0
        assert found.effect_size == 0.0


def test_a_sparse_sample_is_refused():
    for refused in (
        lambda: mc.mmd_test(cut(X), csr_array(Y), kernel=k),
        lambda: mc.hsic_test(cut(X), csr_array(X), kernel=(k, k)),
        lambda: hsic(k, csr_array(X), k, cut(X)),
    ):
        with pytest.raises(InputError, match="toarray"):
            refused()


def test_a_kernel_that_is_zero_has_no_witness():
    found = mc.hsic_test(cut(0.0 * X), cut(X), kernel=(mc.Linear(), k), n_permutations=19)
    assert found.pvalue == 1.0
    assert found.witness is None


def test_the_domain_of_each_kernel_is_checked(monkeypatch):
    monkeypatch.setattr(independence, "_CHOSEN_AMONG", 9)  # rows, not the one outside the domain
    A = np.abs(X)
    A[-1] = -50.0
    options = {"kernel": (mc.kernels.Minimum(), k), "n_permutations": 19, "random_state": 0}
    with pytest.raises(DomainError, match="X must be >= 0"):
        mc.hsic_test(cut(A), cut(X), **options)
    with pytest.raises(DomainError, match="sample 1 must be >= 0"):
        mc.mmd_test(cut(A), cut(np.abs(Y)), kernel=mc.kernels.Minimum())


def test_more_rows_than_numpy_shares_out_at_random_are_refused():
    huge = LocalChunks.reading([500_000_000] * 2, (2,), np.float64, lambda i: 1 / 0)
    for refused in (
        lambda: mc.mmd_test(huge, X, kernel=k),
        lambda: mc.hsic_test(huge, huge, kernel=(k, k)),
    ):
        with pytest.raises(InputError, match=r"fewer than 10\*\*9 rows, got 1000000"):
            refused()


def test_tasks_carry_no_features_of_the_sample():
    assert independence._features(cut(X), (k, far), rng).lows[1].factor.shape[0] == 0


def test_goodness_of_fit_draws_its_sample_once(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        goodness_of_fit, "sample_of", lambda rows: drawn.append(rows) or sample_of(rows)
    )
    mc.ksd_test(cut(X), norm_score, kernel=[k, mc.Gaussian(2.0)], n_permutations=9)
    assert len(drawn) == 1


@pytest.mark.parametrize("kernel", [(k, k), "median", None])
def test_independence_test(kernel):
    """The statistic is that of the kernels themselves, the null that of their projections."""
    options = {"kernel": kernel, "n_permutations": 199, "random_state": 0}
    other = X + 1.5 * rng.normal(size=X.shape)
    known, found = mc.hsic_test(X, other, **options), mc.hsic_test(cut(X), cut(other), **options)
    if kernel == (k, k):
        assert found.statistic == pytest.approx(known.statistic, rel=1e-5)
        assert found.effect_size == pytest.approx(known.effect_size, rel=1e-5)
        f, g = found.witness
        assert f.norm() == pytest.approx(1.0)
        assert np.cov(f(X), g(other))[0, 1] == pytest.approx(
            np.cov(known.witness[0](X), known.witness[1](other))[0, 1], rel=0.02
        )
        one, two = (r.null_statistics for r in (known, found))
        assert two[0] == pytest.approx(one[0], rel=0.02)
        assert two[1:].std() == pytest.approx(one[1:].std(), rel=0.25)
        assert abs(two[1:].mean() - one[1:].mean()) < one[1:].std()
    assert found.pvalue == pytest.approx(known.pvalue, abs=0.06)
    assert mc.hsic_test(cut(X), X, **options).pvalue == 1 / 200


def test_level_of_the_independence_test():
    """p-values are uniform under the null hypothesis: 60 of them, a binomial bound at 0.2."""
    p = []
    for seed in range(60):
        A, B = np.random.default_rng(seed).normal(size=(2, 40, 1))
        options = {"kernel": (k, k), "n_permutations": 19, "random_state": seed}
        p.append(mc.hsic_test(cut(A, 15), cut(B, 15), **options).pvalue)
    assert abs(np.mean(np.array(p) <= 0.2) - 0.2) < 4 * np.sqrt(0.16 / 60)


def test_permutations_across_pieces_are_uniform():
    """Where rows go: every pair of places is as likely as any other."""
    sizes, draws = (3, 4, 2), 3000
    tables = independence._tables(sizes, slice(0, draws + 1), np.random.default_rng(0))
    assert (tables.sum(axis=1) == sizes).all()
    assert (tables.sum(axis=2) == sizes).all()
    blocks = np.split(np.eye(9), np.cumsum(sizes)[:-1])
    P = sum(
        independence._products(F, i, G, j, tables, 0, 5)
        for i, F in enumerate(blocks)
        for j, G in enumerate(blocks)
    )
    np.testing.assert_array_equal(P[0], np.eye(9))
    assert (P.sum(axis=1) == 1.0).all()
    assert (P.sum(axis=2) == 1.0).all()
    assert np.abs(P[1:].mean(axis=0) - 1 / 9).max() < 5 * np.sqrt(8 / 81 / draws)
    both = np.mean(P[1:, 0, 0] * P[1:, 4, 4])
    assert abs(both - 1 / 72) < 5 * np.sqrt(1 / 72 / draws)
