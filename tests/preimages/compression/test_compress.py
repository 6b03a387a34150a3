"""Compression: the same element with fewer points, and what it costs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.preimages.compression._compress import compress
from mercer.preimages.compression._methods import Greedy, Pruning
from mercer.preimages.compression._target import Target
from mercer.testing import awkward_kernels

METHODS = [
    Greedy(),
    Pruning(),
    Pruning(pool=1.0),
]
OWN = [Pruning(), Pruning(pool=1.0)]


def blobs(rng, n=2000, centres=6, dim=2):
    middle = 4.0 * rng.normal(size=(centres, dim))
    return middle[rng.integers(centres, size=n)] + 0.7 * rng.normal(size=(n, dim))


def dense(element):
    return np.asarray(element.coef.tile(slice(None), slice(None)))


# --- what is promised of every method -----------------------------------------------------------


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_error_is_the_distance_and_the_residual_is_orthogonal(method, rng):
    psi = mc.Element(mc.Gaussian(1.0), rng.normal(size=(60, 2)), rng.normal(size=(60, 3)))
    small = compress(psi, 9, method=method, random_state=0)
    assert len(small.element) == 3
    assert len(small.element.points) == 9
    assert_allclose(small.error, psi.distance(small.element), rtol=1e-6)
    assert_allclose(small.relative_error, small.error / psi.norm())
    z = small.element.points
    assert_allclose(psi(z), small.element(z), atol=1e-9 * np.abs(dense(psi)).sum())
    assert small.status is mc.Status.N_POINTS
    assert small.ok


@pytest.mark.sample(2)
@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
@pytest.mark.parametrize("method", [Greedy(max_iter=4), Pruning()], ids=repr)
def test_awkward_kernels(kernel, method, rng):
    psi = mc.Element(kernel, rng.normal(size=(25, 3)), rng.normal(size=25))
    small = compress(psi, 3, method=method)
    z = small.element.points
    assert 1 <= len(z) <= 3
    assert_allclose(psi(z), small.element(z), atol=1e-8 * np.abs(psi(z)).max())
    assert_allclose(small.error, psi.distance(small.element), atol=1e-7 * psi.norm())
    assert small.relative_error < 1


@given(seed=st.integers(0, 10**6), n=st.integers(2, 12), m=st.integers(1, 12))
@settings(max_examples=25)
def test_it_is_the_projection(seed, n, m):
    """No other coefficients on these points are better."""
    rng = np.random.default_rng(seed)
    psi = mc.Element(mc.Matern(1.5, 1.0), rng.normal(size=(n, 2)), rng.normal(size=n))
    for method in (Greedy(max_iter=3), Pruning()):
        small = compress(psi, m, method=method)
        coef = dense(small.element)[:, 0]
        other = coef + 0.01 * np.abs(coef).max() * rng.normal(size=coef.size)
        worse = mc.Element(psi.kernel, small.element.points, other)
        assert psi.distance(worse) >= small.error - 1e-7 * psi.norm()
        assert (small.status is mc.Status.COMPLETE) == (m >= n)


@pytest.mark.parametrize("method", OWN, ids=repr)
def test_own_points_are_own_points(method, rng):
    X = rng.normal(size=(40, 3))
    small = compress(mc.mean_embedding(mc.Laplace(1.0), X), 7, method=method, random_state=1)
    assert {tuple(z) for z in small.element.points} <= {tuple(x) for x in X}


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
@pytest.mark.parametrize("batch", [2, 5])
def test_the_gradient_of_what_points_explain(kernel, batch, rng):
    psi = mc.Element(kernel, rng.normal(size=(12, 3)), rng.normal(size=(12, batch)))
    target, Z, h = Target(psi), rng.normal(size=(3, 3)), 1e-5
    slope = np.zeros_like(Z)
    for i, j in np.ndindex(*Z.shape):
        step = np.zeros_like(Z)
        step[i, j] = h
        slope[i, j] = (target.explained(Z + step).value - target.explained(Z - step).value) / (
            2 * h
        )
    assert_allclose(target.explained(Z).gradient, slope, rtol=1e-5, atol=1e-6 * target.total)


# --- more points, smaller error -----------------------------------------------------------------


@pytest.mark.parametrize("kernel", [mc.Gaussian(0.7), mc.Laplace(1.0), mc.Polynomial(3)], ids=repr)
def test_more_points_never_make_the_error_larger(kernel, rng):
    psi = mc.Element(kernel, rng.normal(size=(80, 2)), rng.normal(size=80))
    method, floor = Pruning(pool=1.0), 1e-7 * float(psi.norm())
    errors = [float(compress(psi, m, method=method).error) for m in (1, 2, 3, 5, 8)]
    assert all(b <= a + floor for a, b in itertools.pairwise(errors))
    moved = [float(compress(psi, m, method=Greedy(max_iter=5)).error) for m in (1, 2, 3, 5, 8)]
    chosen = [float(compress(psi, m, method=Pruning()).error) for m in (1, 2, 3, 5, 8)]
    assert all(a <= b + floor for a, b in zip(moved, chosen, strict=True))


@given(seed=st.integers(0, 10**6), mixed=st.booleans())
@settings(max_examples=4)
def test_refined_greedy_beats_choosing(seed, mixed):
    rng = np.random.default_rng(seed)
    X = blobs(rng, n=300, centres=4)
    signs = rng.choice([-1.0, 1.0], size=4)[rng.integers(4, size=300)] if mixed else 1.0
    psi = mc.Element(mc.Gaussian(1.0), X, signs * np.ones(300))
    greedy = float(compress(psi, 12, method=Greedy()).error)
    assert greedy < float(compress(psi, 12, method=Pruning(), random_state=0).error)


def test_two_thousand_points_by_fifty(rng):
    psi = mc.mean_embedding(mc.Gaussian(1.0), blobs(rng))
    small = compress(psi, 50, method=Greedy(max_iter=30))
    assert small.relative_error < 0.01
    assert compress(psi, 50, method=Pruning()).relative_error < 0.04
    assert small.n_iter > 0


def test_pruning_is_no_worse_than_pursuit(rng):
    psi = mc.mean_embedding(mc.Gaussian(0.5), blobs(rng, n=200))
    for m in (3, 10, 25):
        pruned = compress(psi, m, method=Pruning()).error
        assert pruned <= compress(psi, m, method=Pruning(pool=1.0)).error * (1 + 1e-9)


# --- exact cases --------------------------------------------------------------------------------


def test_duplicates_are_merged_and_zeros_dropped(rng):
    X = rng.normal(size=(5, 2))
    a = rng.normal(size=15)
    a[[4, 9, 14]] = [1.0, -0.5, -0.5]  # the fifth point adds up to nothing
    psi = mc.Element(mc.Gaussian(1.0), np.tile(X, (3, 1)), a)
    small = compress(psi, 4)
    assert small.status is mc.Status.COMPLETE
    assert (small.error, small.relative_error) == (0.0, 0.0)
    assert_allclose(small.element.points, X[:4])
    assert_allclose(psi.distance(small.element), 0.0, atol=1e-7)


def test_pruning_finds_the_few_features_an_element_is_made_of(rng):
    X = 3.0 * rng.normal(size=(40, 2))
    a = 1e-13 * rng.normal(size=40)
    few = np.array([3, 11, 19, 30, 37])
    a[few] = [1.0, -2.0, 0.5, 3.0, -1.0]
    small = compress(mc.Element(mc.Gaussian(0.5), X, a), 5, method=Pruning())
    assert_allclose(small.element.points, X[few])
    assert_allclose(dense(small.element)[:, 0], a[few], atol=1e-11)
    assert small.error < 1e-11  # far below the square root of rounding: nothing cancels


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_one_feature_is_its_own_compression(method):
    psi = mc.Element(mc.Gaussian(1.0), [[1.0, 2.0], [1.0, 2.0]], [0.5, 1.0])
    assert_allclose(compress(psi, 1, method=method).element.points, [[1.0, 2.0]])


def test_one_point_for_a_mean_is_the_best_multiple_of_a_feature():
    """Of a Gaussian, its preimage by the angle; the coefficient is what psi is there."""
    psi = mc.Element(mc.Gaussian(1.0), [[-0.5], [0.5], [0.1]], [1.0, 1.0, 0.5])
    small = compress(psi, 1)
    back = mc.preimage(psi, objective=mc.preimages.Collinear())
    assert_allclose(small.element.points, back.points, atol=1e-3)
    assert_allclose(dense(small.element)[0], psi(small.element.points))


def test_a_negative_lump_is_found_too():
    psi = mc.Element(mc.Gaussian(0.5), [[0.0], [9.0], [9.1]], [1.0, -2.0, -2.0])
    small = compress(psi, 1)
    assert_allclose(small.element.points, [[9.05]], atol=1e-2)
    assert dense(small.element)[0, 0] < -3.9


@pytest.mark.parametrize("dim", [2, 3])
def test_polynomials_of_degree_two_have_finite_rank(dim, rng):
    """d (d + 1) / 2 points of its own are enough; d moved ones, the eigenvectors of sum a x x'."""
    k = mc.Polynomial(2, offset=0.0)
    psi = mc.Element(k, rng.normal(size=(60, dim)), rng.normal(size=60))
    full = dim * (dim + 1) // 2
    for method in (Pruning(), Pruning(pool=1.0)):
        small = compress(psi, 30, method=method)
        assert len(small.element.points) == full
        assert small.status is mc.Status.COMPLETE
        assert small.relative_error < 1e-7
        assert compress(psi, full, method=method).relative_error < 1e-7
    others = [mc.Element(k, rng.normal(size=(60, dim)), rng.normal(size=60)) for _ in range(5)]
    errors = [compress(other, dim).relative_error for other in others]
    assert np.median(errors) < 1e-6  # a search from one start may end at a local minimum
    M = np.einsum("i,ij,il->jl", dense(psi)[:, 0], psi.points, psi.points)
    best = float(np.abs(np.linalg.eigvalsh(M)).min())  # with one eigenvector fewer
    fewer = compress(psi, dim - 1, method=Greedy())
    assert_allclose(fewer.error, best, rtol=1e-3)


def test_linear_kernels_need_as_many_points_as_dimensions(rng):
    psi = mc.Element(mc.Linear(), rng.normal(size=(30, 3)), rng.normal(size=(30, 2)))
    assert compress(psi, 2, method=Greedy()).relative_error.max() < 1e-6
    assert compress(psi, 3, method=Pruning()).relative_error.max() < 1e-7
    single = mc.Element(mc.Linear(), psi.points, rng.normal(size=30))
    assert compress(single, 1).relative_error < 1e-7  # sum_i a_i x_i


def test_zero_is_zero(rng):
    X = rng.normal(size=(6, 2))
    psi = mc.Element(mc.Linear(), np.vstack([X, -X]), np.ones((12, 2)))  # sum_i a_i x_i = 0
    small = compress(psi, 2)
    assert_allclose(small.error, 0.0, atol=1e-7)
    nothing = mc.Element(mc.Gaussian(1.0), X, np.zeros(6))
    assert compress(nothing, 3).error == 0.0


# --- batches ------------------------------------------------------------------------------------


def test_a_batch_shares_its_points(rng):
    """The first principal directions of a cloud, all on the same few points."""
    X = blobs(rng, n=250, centres=3)
    K = mc.Gaussian(2.0)(X)
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, vectors = np.linalg.eigh(K)
    A = vectors[:, -4:] / np.sqrt(values[-4:])
    psi = mc.Element(mc.Gaussian(2.0), X, A - A.mean(axis=0))
    assert_allclose(psi.norm(), 1.0)
    small = compress(psi, 20)
    assert small.error.shape == (4,)
    assert small.element.coef.shape == (20, 4)
    assert small.relative_error.max() < 0.05


def test_a_batch_of_many_projections_costs_its_rank(rng):
    """Points depend on coefficients only through A A', so a product of thin matrices is enough."""
    k, X = mc.Gaussian(1.0), rng.normal(size=(30, 2))
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X[:3]))
    shadows = plane.project(mc.feature(k, rng.normal(size=(200, 2))))
    written = mc.Element(k, shadows.points, dense(shadows))
    a, b = (compress(psi, 6, method=Pruning()) for psi in (shadows, written))
    assert_allclose(a.element.points, b.element.points)
    assert_allclose(a.error, b.error, atol=1e-7)
    greedy = compress(shadows, 6, method=Greedy(max_iter=5))
    assert_allclose(greedy.error, shadows.distance(greedy.element), atol=1e-7)


def test_features_are_compressed_together(rng):
    phi = mc.feature(mc.Gaussian(1.0), rng.normal(size=(50, 2)))
    small = compress(phi, 12)
    assert len(small.element) == 50
    assert_allclose(small.error, phi.distance(small.element), atol=1e-7)
    assert np.sum(small.error**2) < np.sum(compress(phi, 12, method=Pruning()).error ** 2)
