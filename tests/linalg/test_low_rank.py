"""Pivoted Cholesky, Nystrom, leverage scores and the matrix inversion lemma."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer import Status, linalg
from mercer.linalg._nystrom import choose_landmarks
from mercer.linalg._solve import ShiftedLowRank
from mercer.testing import awkward_kernels

RULES = ("uniform", "kmeans", "leverage", "pivoted")


# --- pivoted Cholesky -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_a_full_factor_is_exact(kernel, rng):
    X = np.vstack([rng.normal(size=(25, 3)), np.zeros((1, 3)) + 0.1])
    X = np.vstack([X, X[:5]])
    K = kernel(X)
    low = linalg.pivoted_cholesky(kernel, X, max_rank=None, tol=0.0)
    assert low.status.ok
    assert_allclose(low.factor @ low.factor.T, K, atol=1e-11 * np.abs(K).max())
    assert low.rank <= 26
    assert low.trace_error <= 1e-12 * np.trace(K)


def test_it_stops_at_the_trace_error(rng):
    X = rng.normal(size=(200, 2))
    k = mc.Gaussian(1.0)
    ranks = []
    for tol in (1e-1, 1e-3, 1e-6):
        low = linalg.pivoted_cholesky(k, X, tol=tol)
        rest = k(X) - low.factor @ low.factor.T
        assert low.status is Status.CONVERGED
        assert_allclose(low.trace_error, np.trace(rest), rtol=1e-6)
        assert low.trace_error <= tol * 200
        shorter = linalg.pivoted_cholesky(k, X, tol=tol, max_rank=low.rank - 1)
        assert shorter.status is Status.MAX_RANK
        assert shorter.trace_error > tol * 200
        assert np.array_equal(shorter.factor, low.factor[:, :-1])
        ranks.append(low.rank)
    assert ranks == sorted(ranks)


def test_pivots_are_greedy(rng):
    """The first pivot has the largest k(x, x); each next one the largest of what is left."""
    X = rng.normal(size=(30, 3))
    k = mc.Polynomial(2)
    low = linalg.pivoted_cholesky(k, X, max_rank=5, tol=0.0)
    K = k(X)
    for r, p in enumerate(low.pivots):
        L = low.factor[:, :r]
        assert p == np.argmax(np.diag(K - L @ L.T))
    assert_allclose(np.triu(low.factor[low.pivots], 1), 0.0, atol=1e-10)
    assert_allclose((low.factor @ low.factor.T)[:, low.pivots], K[:, low.pivots], rtol=1e-10)


def test_only_the_diagonal_and_the_columns_are_computed(rng):
    entries = []

    def function(A, B):
        entries.append(len(A) * len(B))
        return np.exp(-0.5 * (A - B.T) ** 2)

    X = np.linspace(0.0, 5.0, 300)[:, None]
    low = linalg.pivoted_cholesky(mc.kernels.FromFunction(function), X, max_rank=7, tol=0.0)
    assert low.rank == 7
    assert sum(entries) == 300 + 7 * 300


def test_rank_deficient_matrices_end_early(rng):
    low = linalg.pivoted_cholesky(mc.Linear(), rng.normal(size=(50, 3)), tol=0.0)
    assert low.rank == 3
    assert low.status in (Status.COMPLETE, Status.CONVERGED)
    zero = linalg.pivoted_cholesky(mc.Linear(), np.zeros((4, 2)))
    assert zero.factor.shape == (4, 0)
    assert zero.status is Status.CONVERGED
    one = linalg.pivoted_cholesky(mc.Linear(), [[2.0]])
    assert_allclose(one.factor, [[2.0]])


def test_matrices_that_are_not_definite_are_noticed():
    low = linalg.pivoted_cholesky(mc.Precomputed([[1.0, 2.0], [2.0, 1.0]]), [0, 1])
    assert low.status is Status.INDEFINITE
    with pytest.raises(mc.InputError, match="needs a positive definite kernel"):
        linalg.pivoted_cholesky(mc.NegativeDistance(), [[0.0], [1.0]])


def test_mixed_scales_of_the_diagonal(rng):
    X = rng.normal(size=(60, 3)) * [1e-3, 1.0, 1e3]
    k = mc.Polynomial(3)
    K = k(X)
    low = linalg.pivoted_cholesky(k, X, max_rank=None, tol=0.0)
    assert low.status.ok
    assert_allclose(low.factor @ low.factor.T, K, atol=1e-12 * np.abs(K).max())


# --- Nystrom --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_nystrom_is_the_projection(kernel, rule, rng):
    X = rng.normal(size=(40, 3))
    K, total = kernel(X), np.trace(kernel(X))
    low = linalg.nystrom(kernel, X, 7, rule=rule, random_state=1)
    C, W = kernel(X, low.landmarks), kernel(low.landmarks)
    expected = C @ np.linalg.pinv(W, rcond=1e-13, hermitian=True) @ C.T
    approximate = low.factor @ low.factor.T
    assert_allclose(approximate, expected, atol=1e-8 * total)
    assert_allclose(low.trace_error, np.trace(K - approximate), atol=1e-12 * total)
    assert_allclose(low.map(X), low.factor, atol=1e-10 * np.sqrt(total))
    Y = rng.normal(size=(5, 3))
    assert_allclose(low.map(Y) @ low.factor.T, kernel(Y, low.landmarks)
                    @ np.linalg.pinv(W, rcond=1e-13, hermitian=True) @ C.T,
                    atol=1e-7 * total)  # fmt: skip
    if low.index is not None:
        assert_allclose(low.landmarks, X[low.index])


@pytest.mark.parametrize("rule", ["uniform", "leverage", "pivoted"])
def test_all_points_as_landmarks_give_the_matrix(rule, rng):
    X = rng.normal(size=(30, 2))
    low = linalg.nystrom(mc.Laplace(1.0), X, 100, rule=rule, random_state=0)
    assert_allclose(low.factor @ low.factor.T, mc.Laplace(1.0)(X), atol=1e-12)
    assert low.rank == 30
    assert low.status is Status.SOLVED


@pytest.mark.parametrize("rule", RULES)
def test_dependent_landmarks_are_left_out(rule, rng):
    X = np.repeat(rng.normal(size=(6, 2)), 5, axis=0)
    low = linalg.nystrom(mc.Gaussian(1.0), X, 30, rule=rule, random_state=0)
    assert low.rank == 6
    assert low.trace_error < 1e-12
    if rule in ("uniform", "leverage"):
        assert low.status is Status.TRUNCATED
    same = linalg.nystrom(mc.Gaussian(1.0), np.ones((9, 2)), 4, rule=rule, random_state=0)
    assert same.rank == 1
    zero = linalg.nystrom(mc.Linear(), np.zeros((9, 2)), 4, rule=rule, random_state=0)
    assert zero.factor.shape == (9, 0)
    assert zero.map(np.ones((2, 2))).shape == (2, 0)


def test_landmarks_with_small_features_count_too():
    """Features of length 1 and 1e-9: neither depends on the other."""
    low = linalg.nystrom(mc.Linear(), np.diag([1.0, 1e-9]), 2, random_state=0)
    assert low.rank == 2
    assert_allclose(low.factor @ low.factor.T, np.diag([1.0, 1e-18]), atol=1e-30)


def test_better_rules_leave_less(rng):
    """Two dense groups and a sparse one: uniform landmarks miss what is rare."""
    groups = [rng.normal(size=(m, 3)) * s + c for m, s, c in
              ((500, 0.1, 0.0), (480, 0.1, 3.0), (20, 3.0, -5.0))]  # fmt: skip
    X, k = np.vstack(groups), mc.Gaussian(1.0)
    mean = {
        rule: np.mean(
            [linalg.nystrom(k, X, 30, rule=rule, random_state=s).trace_error for s in range(5)]
        )
        for rule in RULES
    }
    best = 1000 - linalg.eigenpairs(k, X, 30).values.sum()
    assert min(mean.values()) >= best
    assert max(mean["kmeans"], mean["leverage"], mean["pivoted"]) < 0.5 * mean["uniform"]


def test_leverage_of_more_rows_than_the_trace_is_estimated_from(rng):
    X = np.vstack([0.1 * rng.normal(size=(5900, 3)), 3.0 * rng.normal(size=(100, 3)) - 5.0])
    k = mc.Gaussian(1.0)
    left = {
        rule: linalg.nystrom(k, X, 60, rule=rule, random_state=0).trace_error
        for rule in ("uniform", "leverage")
    }
    assert left["leverage"] < 0.5 * left["uniform"]


@pytest.mark.parametrize("rule", RULES)
def test_landmarks_without_features(rule, rng):
    X, k = rng.normal(size=(50, 2)), mc.Gaussian(1.0)
    low = linalg.nystrom(k, X, 10, rule=rule, random_state=0)
    bare = choose_landmarks(k, X, 10, rule=rule, random_state=0)
    assert bare.factor.shape == (0, 10)
    assert bare.status is low.status
    assert_allclose(bare.map(X), low.factor)


def test_kmeans_clusters_where_the_kernel_measures(rng):
    """A column that the kernel does not see, or divides away, does not attract landmarks."""
    X = np.column_stack([rng.normal(size=300), 1e4 * rng.normal(size=300)])
    for point_map in (mc.Columns([0]), mc.Scales([1.0, 1e6])):
        k = mc.Gaussian(1.0).transform(point_map)
        low = linalg.nystrom(k, X, 8, rule="kmeans", random_state=0)
        alone = linalg.nystrom(mc.Gaussian(1.0), X[:, :1], 8, rule="kmeans", random_state=0)
        assert_allclose(low.trace_error, alone.trace_error, rtol=0.2)


def test_nystrom_refuses_what_it_cannot_do():
    with pytest.raises(mc.InputError, match="rule must be one of"):
        linalg.nystrom(mc.Gaussian(), [[0.0]], 1, rule="random")
    with pytest.raises(mc.InputError, match="n_landmarks must be an integer >= 1"):
        linalg.nystrom(mc.Gaussian(), [[0.0]], 0)
    with pytest.raises(mc.InputError, match="dense points that are vectors"):
        linalg.nystrom(mc.Precomputed(np.eye(3)), [0, 1, 2], 2, rule="kmeans")
    with pytest.raises(mc.InputError, match="needs a positive definite kernel"):
        linalg.nystrom(mc.Epanechnikov(), [[0.0], [1.0]], 1)
    low = linalg.nystrom(mc.Gaussian(), [[0.0, 1.0]], 1)
    with pytest.raises(mc.InputError, match="2 features, but Y has 1"):
        low.map([[0.0]])


def test_other_kinds_of_points(rng):
    from scipy.sparse import csr_array

    X = rng.normal(size=(20, 3))
    K = mc.Laplace(1.0)(X)
    for rule in ("uniform", "leverage", "pivoted"):
        dense, sparse, given = (
            linalg.nystrom(k, points, 5, rule=rule, random_state=0)
            for k, points in (
                (mc.Laplace(1.0), X),
                (mc.Laplace(1.0), csr_array(X)),
                (mc.Precomputed(K), np.arange(20)),
            )
        )
        assert np.array_equal(dense.index, sparse.index)
        assert_allclose(sparse.factor, dense.factor, atol=1e-10)
        assert_allclose(given.factor, dense.factor, atol=1e-10)


@pytest.mark.parametrize("rule", ["uniform", "kmeans", "leverage"])
def test_seeds_are_honoured(rule, rng):
    X = rng.normal(size=(100, 2))
    first, again, other = (
        linalg.nystrom(mc.Gaussian(1.0), X, 10, rule=rule, random_state=seed).factor
        for seed in (1, np.random.default_rng(1), 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_float32_points(rng):
    X = rng.normal(size=(50, 2)).astype(np.float32)
    low = linalg.nystrom(mc.Gaussian(1.0), X, 50, random_state=0)
    assert low.factor.dtype == np.float64
    assert_allclose(low.factor @ low.factor.T, mc.Gaussian(1.0)(X.astype(float)), atol=1e-12)


# --- leverage scores ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", awkward_kernels()[:8], ids=repr)
def test_exact_leverage_scores(kernel, rng):
    X = rng.normal(size=(30, 3))
    K = kernel(X)
    penalty = 0.1 * np.trace(K) / 30
    expected = np.diag(K @ np.linalg.inv(K + penalty * np.eye(30)))
    assert_allclose(linalg.leverage_scores(kernel, X, penalty), expected, atol=1e-10)


def test_sketched_leverage_scores_are_close(rng):
    X = np.vstack([0.2 * rng.normal(size=(580, 2)), 3.0 * rng.normal(size=(20, 2))])
    k = mc.Gaussian(1.0)
    exact = linalg.leverage_scores(k, X, 2.0)
    close = linalg.leverage_scores(k, X, 2.0, n_sketch=200, random_state=0)
    assert_allclose(close.sum(), exact.sum(), rtol=0.3)
    assert np.corrcoef(exact, close)[0, 1] > 0.9
    again = linalg.leverage_scores(k, X, 2.0, n_sketch=200, random_state=0)
    assert np.array_equal(close, again)


# --- the matrix inversion lemma -------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 5), (40, 40), (7, 30), (1, 1), (3000, 20)])
@pytest.mark.parametrize("penalty", [1e-6, 1.0, 1e6])
def test_woodbury_agrees_with_a_dense_solve(shape, penalty, rng):
    L, B = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    found = linalg.woodbury(L, B, penalty)
    largest = np.linalg.norm(L, 2) ** 2 + penalty
    stable = 1e-15 * largest * np.linalg.norm(found.coef) / np.linalg.norm(B)
    assert found.residual.max() < 1e-14 + 10 * stable
    if shape[0] < 100:
        M = L @ L.T + penalty * np.eye(shape[0])
        assert_allclose(M @ found.coef, B, atol=1e-8)
    single = linalg.woodbury(L, B[:, 0], penalty)
    assert_allclose(single.coef, found.coef[:, 0])
    assert single.status is Status.SOLVED


def test_woodbury_is_accurate_where_the_plain_formula_is_not(rng):
    """Singular values from 1 to 1e6, penalty 1e-6: L'L + penalty I has condition 1e18."""
    U, _ = np.linalg.qr(rng.normal(size=(200, 6)))
    V, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    s = np.logspace(0, 6, 6)
    found = linalg.woodbury(U * s @ V.T, U @ np.ones(6), 1e-6)
    assert_allclose(U.T @ found.coef, 1.0 / (s**2 + 1e-6), rtol=1e-6, atol=1e-8)
    L, B = U * s @ V.T, U @ np.ones(6)
    plain = (B - L @ np.linalg.solve(L.T @ L + 1e-6 * np.eye(6), L.T @ B)) / 1e-6
    assert np.abs(U.T @ plain - 1.0 / (s**2 + 1e-6)).max() > 1e-4


@pytest.mark.parametrize("shape", [(600, 30), (20, 20), (10, 25)])
def test_the_preconditioner_is_the_inverse(shape, rng):
    L, B = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    expected = np.linalg.solve(L @ L.T + 0.3 * np.eye(shape[0]), B)
    assert_allclose(ShiftedLowRank(L, 0.3).solve(B), expected, rtol=1e-8, atol=1e-10)


def test_woodbury_refuses():
    with pytest.raises(mc.InputError, match="penalty must be > 0"):
        linalg.woodbury([[1.0]], [1.0], 0.0)
    with pytest.raises(mc.InputError, match="B must have shape"):
        linalg.woodbury([[1.0]], [1.0, 2.0], 1.0)
