"""kernel_pca: weights, shares, all components, landmarks, eigen-solvers, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import mercer as mc

RULES = ["uniform", "kmeans", "leverage", "pivoted"]


def projector(plane, points):
    """Values of the orthogonal projections of features onto the directions: free of signs."""
    c = plane.coordinates(mc.feature(plane.origin.kernel, points))
    return c @ c.T


def test_against_the_definition(rng):
    X = rng.normal(size=(25, 3))
    k = mc.Polynomial(2, 1.0, 1.0)  # k(x, x) is not constant
    K, H = k(X), np.eye(25) - 1.0 / 25
    values = np.linalg.eigvalsh(H @ K @ H)[::-1]
    plane = mc.kernel_pca(k, X)
    assert plane.dim == 9  # monomials of degree 1 and 2 in three variables
    np.testing.assert_allclose(plane.eigenvalues, values[:9], rtol=1e-9)
    assert plane.total == pytest.approx(values.sum())
    assert plane.neglected == 0.0
    np.testing.assert_allclose(projector(plane, X), H @ K @ H, atol=1e-8)


def test_without_centring_the_origin_is_zero(rng):
    X, k = rng.normal(size=(20, 2)), mc.Gaussian(1.0)
    plane = mc.kernel_pca(k, X, 5, centred=False)
    np.testing.assert_allclose(plane.eigenvalues, np.linalg.eigvalsh(k(X))[::-1][:5], rtol=1e-9)
    assert plane.origin.norm() == 0.0
    low = mc.kernel_pca(k, X, 5, centred=False, n_landmarks=20)
    np.testing.assert_allclose(low.eigenvalues, plane.eigenvalues, rtol=1e-7)


@given(
    st.lists(st.integers(0, 3), min_size=12, max_size=12).filter(lambda w: np.count_nonzero(w) > 4)
)
def test_weights_are_repetitions(w):
    X = np.random.default_rng(0).normal(size=(12, 2))
    weighted = mc.kernel_pca(mc.Laplace(1.0), X, 3, weights=w)
    repeated = mc.kernel_pca(mc.Laplace(1.0), np.repeat(X, w, axis=0), 3)
    np.testing.assert_allclose(weighted.eigenvalues, repeated.eigenvalues, rtol=1e-9)
    assert weighted.total == pytest.approx(repeated.total)
    assert weighted.origin.distance(repeated.origin) == pytest.approx(0.0, abs=1e-7)
    gap = weighted.eigenvalues[2] - mc.kernel_pca(mc.Laplace(1.0), X, 4, weights=w).eigenvalues[-1]
    if gap > 1e-3:  # else the third direction is any of a plane
        np.testing.assert_allclose(projector(weighted, X), projector(repeated, X), atol=1e-6)


def test_weights_may_have_any_scale(rng):
    X, w = rng.normal(size=(15, 2)), rng.uniform(size=15)
    a, b = (mc.kernel_pca(mc.Gaussian(1.0), X, 4, weights=c * w) for c in (1.0, 1e6))
    np.testing.assert_allclose(b.eigenvalues, 1e6 * a.eigenvalues, rtol=1e-9)
    np.testing.assert_allclose(projector(a, X), projector(b, X), atol=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_a_share_is_the_smallest_number_that_holds_it(share, n_landmarks, rng):
    X = rng.normal(size=(80, 3))
    plane = mc.kernel_pca(mc.Gaussian(1.0), X, share, n_landmarks=n_landmarks, random_state=0)
    held = np.cumsum(plane.eigenvalues) / plane.total
    if held[-1] >= share:
        assert plane.dim == 1 or held[-2] < share
    else:  # the landmarks do not see so much: everything they see
        assert n_landmarks == 40
        assert plane.neglected > (1.0 - share) * plane.total - 1e-9


def test_none_is_everything_above_rounding(rng):
    X = rng.normal(size=(30, 4))
    assert mc.kernel_pca(mc.Linear(), X).dim == 4
    assert mc.kernel_pca(mc.Laplace(1.0), X).dim == 29
    assert mc.kernel_pca(mc.Laplace(1.0), np.repeat(X, 2, axis=0)).dim == 29
    assert mc.kernel_pca(mc.Linear(), X, 50).dim == 4


@pytest.mark.parametrize("rule", RULES)
def test_what_landmarks_neglect_is_exact(rule, rng):
    X, w = rng.normal(size=(90, 3)), rng.uniform(0.1, 2.0, 90)
    k = mc.Polynomial(3, 4.0, 1.0)
    plane = mc.kernel_pca(k, X, weights=w, n_landmarks=8, rule=rule, random_state=0)
    Z = plane.origin.points
    C = k(X, Z)
    unseen = k.diag(X) - np.einsum("ij,ji->i", C, np.linalg.solve(k(Z), C.T))
    assert plane.neglected == pytest.approx(w @ unseen, rel=1e-6)
    whole = mc.kernel_pca(k, X, weights=w)
    assert plane.eigenvalues.sum() + plane.neglected == pytest.approx(plane.total, rel=1e-9)
    # the mean is projected too: what it loses is in `neglected`, not in the centred scatter
    p = w / w.sum()
    mean_lost = p @ k(X) @ p - p @ C @ np.linalg.solve(k(Z), C.T @ p)
    assert plane.total == pytest.approx(whole.total + w.sum() * mean_lost, rel=1e-6)
    assert np.all(plane.eigenvalues[:8] <= whole.eigenvalues[:8] * (1.0 + 1e-9))


@pytest.mark.parametrize("rule", ["uniform", "leverage", "pivoted"])
def test_all_rows_as_landmarks_are_the_exact_subspace(rule, rng):
    X = rng.normal(size=(25, 2))
    exact = mc.kernel_pca(mc.Laplace(1.0), X, 6)
    low = mc.kernel_pca(mc.Laplace(1.0), X, 6, n_landmarks=25, rule=rule, random_state=0)
    np.testing.assert_allclose(low.eigenvalues, exact.eigenvalues, rtol=1e-8)
    np.testing.assert_allclose(projector(low, X), projector(exact, X), atol=1e-7)
    assert low.neglected == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_landmarks_do_not_depend_on_order_or_repetition(rule, rng):
    X, w = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    options = {"n_landmarks": 10, "rule": rule, "random_state": 3}
    a = mc.kernel_pca(mc.Gaussian(1.0), X, 4, weights=w, **options)
    b = mc.kernel_pca(mc.Gaussian(1.0), rng.permutation(np.repeat(X, w, axis=0)), 4, **options)
    np.testing.assert_allclose(a.eigenvalues, b.eigenvalues, rtol=1e-7)
    np.testing.assert_allclose(projector(a, X), projector(b, X), atol=1e-6)


def test_krylov_is_dense(rng):
    X, w = rng.normal(size=(150, 3)), rng.uniform(size=150)
    for weights in (None, w):
        dense, krylov = (
            mc.kernel_pca(mc.Gaussian(1.0), X, 5, weights=weights, method=m, random_state=0)
            for m in ("dense", "krylov")
        )
        np.testing.assert_allclose(krylov.eigenvalues, dense.eigenvalues, rtol=1e-7)
        np.testing.assert_allclose(projector(krylov, X), projector(dense, X), atol=1e-6)
        c = [p.coordinates(mc.feature(mc.Gaussian(1.0), X)) for p in (dense, krylov)]
        np.testing.assert_allclose(c[0], c[1], atol=1e-5)  # signs are the same too


def test_signs_do_not_depend_on_chance_or_order(rng):
    X = rng.normal(size=(60, 2))
    a = mc.kernel_pca(mc.Gaussian(1.0), X, 3)
    order = rng.permutation(60)
    b = mc.kernel_pca(mc.Gaussian(1.0), X[order], 3)
    f = mc.feature(mc.Gaussian(1.0), X)
    np.testing.assert_allclose(a.coordinates(f), b.coordinates(f), atol=1e-8)
    size = np.abs(a.coordinates(f))
    largest = np.argmax(size, axis=0)
    assert np.all(a.coordinates(f)[largest, range(3)] > 0)


def test_sparse_and_float32(rng):
    X = np.where(rng.random((30, 5)) < 0.5, 0.0, rng.normal(size=(30, 5)))
    plane = mc.kernel_pca(mc.Gaussian(1.0), X, 4)
    for A, tol in ((csr_array(X), 1e-9), (X.astype(np.float32), 1e-4)):
        other = mc.kernel_pca(mc.Gaussian(1.0), A, 4)
        np.testing.assert_allclose(other.eigenvalues, plane.eigenvalues, rtol=tol)


def test_a_conditionally_definite_kernel_will_do(rng):
    X = rng.normal(size=(20, 3))
    D = mc.kernel_pca(mc.NegativeDistance(2.0), X, 2)
    pca = mc.kernel_pca(mc.Linear(), X, 2)  # -|x - y|^2 centred is twice the inner product
    np.testing.assert_allclose(D.eigenvalues, 2.0 * pca.eigenvalues, rtol=1e-8)


@pytest.mark.parametrize("n", [1, 5])
def test_equal_features_are_an_error(n):
    with pytest.raises(mc.InputError, match="no direction of scatter"):
        mc.kernel_pca(mc.Gaussian(1.0), np.ones((n, 2)))


@pytest.mark.parametrize("wrong", [0, -2, 1.0, 1.5, 0.0, True, "two"])
def test_what_n_components_may_be(wrong):
    with pytest.raises(mc.InputError, match="n_components"):
        mc.kernel_pca(mc.Gaussian(1.0), [[0.0], [1.0]], wrong)


def test_other_refusals(rng):
    X = rng.normal(size=(10, 2))
    with pytest.raises(mc.InputError, match="rule"):
        mc.kernel_pca(mc.Gaussian(1.0), X, n_landmarks=3, rule="best")
    with pytest.raises(mc.InputError, match="weights"):
        mc.kernel_pca(mc.Gaussian(1.0), X, weights=-np.ones(10))
    with pytest.raises(mc.InputError, match="weights"):
        mc.kernel_pca(mc.Gaussian(1.0), X, weights=np.ones(9), n_landmarks=3)
    with pytest.raises(mc.InputError, match="n_components, or n_landmarks"):
        mc.kernel_pca(mc.Gaussian(1.0), np.zeros((10_002, 1)))


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Linear(), mc.Polynomial(2)], ids=repr)
@pytest.mark.parametrize("n_landmarks", [None, 5])
def test_equal_points_have_no_directions(kernel, n_landmarks):
    for X in (np.ones((20, 3)), np.full((5, 2), 1e6), np.zeros((3, 2))):
        with pytest.raises(mc.InputError, match="the same feature to rounding"):
            mc.kernel_pca(kernel, X, n_landmarks=n_landmarks)


@pytest.mark.parametrize("wrong", [None, 3, "gaussian", mc.Gaussian, np.ones((2, 2))])
@pytest.mark.parametrize("n_landmarks", [None, 2])
def test_wrong_types_are_named(wrong, n_landmarks, rng):
    X = rng.normal(size=(5, 2))
    with pytest.raises(mc.InputError, match="kernel must be"):
        mc.kernel_pca(wrong, X, n_landmarks=n_landmarks)


@pytest.mark.parametrize("rule", ["uniform", "kmeans", "leverage", "pivoted"])
def test_landmarks_of_a_kernel_that_is_negative_are_refused(rule, rng):
    X = rng.normal(size=(20, 3))
    for kernel in (mc.Sigmoid(1e3, -2.0), mc.Sigmoid(1.0, -30.0)):
        with pytest.raises(mc.InputError, match="positive definite"):
            mc.kernel_pca(kernel, X, n_landmarks=5, rule=rule, random_state=0)
        with pytest.raises(mc.InputError, match="positive definite"):
            mc.KernelNovelty(kernel, n_landmarks=5, rule=rule).fit(X)


def test_a_kernel_with_more_negative_than_positive_scatter_is_refused():
    for X in ([[1.0], [10.0]], [[1.0], [1.1], [10.0]]):
        with pytest.raises(mc.InputError, match="far from positive definite"):
            mc.kernel_pca(mc.Sigmoid(1.0, -5.0), X)


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize(("length", "n", "d"), [(900.0, 3, 1), (200.0, 10, 1), (1e6, 30, 2)])
def test_components_below_rounding_are_left_out(length, n, d, seed):
    """Of nearly equal features: directions of rounding errors had norms of 0.1 to 3, not 1."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    plane = mc.kernel_pca(mc.Gaussian(length), X)
    assert plane.dim <= 2
    norms = plane.directions.inner(plane.directions)
    np.testing.assert_allclose(norms, np.eye(plane.dim), atol=1e-3)
    mc.testing.check_subspace(plane)
    with pytest.raises(mc.InputError, match="shorter length scale"):
        mc.kernel_pca(mc.Gaussian(1e10), X)
