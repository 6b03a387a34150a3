"""LinearInverse: closed forms, landmarks, sparse rows, and as a solver of preimage."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import mercer as mc
from mercer.methods import kernel_pca
from mercer.methods.pca._kernel_pca import LandmarkScatter
from mercer.preimages import LinearInverse

K = mc.Gaussian(1.2)


@pytest.mark.parametrize("kernel", [K, mc.Laplace(1.0), mc.Polynomial(2, 1.0, 1.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_is_the_sum_of_coefficients_times_points(kernel, weighted, rng):
    X = rng.normal(size=(30, 4)) + 5.0
    w = rng.uniform(0.1, 1.0, 30) if weighted else None
    plane = kernel_pca(kernel, X, 6, weights=w)
    c = rng.normal(size=(7, 6))
    gamma = np.asarray(plane.element(c).coef.tile(slice(None), slice(None)))
    np.testing.assert_allclose(gamma.sum(axis=0), 1.0)
    np.testing.assert_allclose(LinearInverse.fit(plane, X, w).predict(c), gamma.T @ X, rtol=1e-8)
    copy = LinearInverse.fit(plane, X.copy() + 0.0, w)
    np.testing.assert_allclose(copy.predict(c), gamma.T @ X, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_of_landmarks_is_least_squares(weighted, rng):
    X = rng.normal(size=(60, 3)) + 5.0
    w = rng.uniform(0.1, 1.0, 60) if weighted else None
    plane = kernel_pca(K, X, 5, weights=w, n_landmarks=12, random_state=0)
    root = np.sqrt(np.ones(60) if w is None else w)[:, None]
    C = np.column_stack([np.ones(60), plane.coordinates(mc.feature(K, X))])
    best = np.linalg.lstsq(root * C, root * X, rcond=None)[0]
    found = LinearInverse.fit(plane, X, w)
    np.testing.assert_allclose(found.mean, best[0], rtol=1e-7)
    np.testing.assert_allclose(found.slopes, best[1:], atol=1e-7)
    scatter = LandmarkScatter.choose(K, X, 12, "leverage", 0, w)
    scatter.add(X, w)
    same = scatter.pca(5)[1]
    np.testing.assert_allclose(same.slopes, found.slopes, atol=1e-7)


def test_of_sparse_rows(rng):
    X = np.where(rng.random((30, 5)) < 0.5, 0.0, rng.normal(size=(30, 5)))
    dense = LinearInverse.fit(kernel_pca(K, X, 4), X)
    sparse = LinearInverse.fit(kernel_pca(K, csr_array(X), 4), csr_array(X))
    np.testing.assert_allclose(sparse.slopes, dense.slopes, atol=1e-10)
    np.testing.assert_allclose(sparse.mean, dense.mean)


def test_needs_vectors_of_the_same_length(rng):
    words = kernel_pca(mc.Spectrum(2), ["abab", "abba", "bbbb"])
    with pytest.raises(mc.InputError, match="use Candidates"):
        LinearInverse.fit(words, ["abab", "abba", "bbbb"])
    with pytest.raises(mc.InputError, match="2 features, but X has 3"):
        LinearInverse.fit(kernel_pca(K, rng.normal(size=(9, 2))), rng.normal(size=(9, 3)))


def test_preimage_takes_it_as_a_solver(rng):
    X, Y = rng.normal(size=(30, 3)), rng.normal(size=(6, 3))
    plane = kernel_pca(K, X, 8)
    inverse = LinearInverse.fit(plane, X)
    found = mc.preimage(mc.feature(K, Y), inverse)  # elements outside are projected
    np.testing.assert_allclose(found.points, inverse.predict(plane.coordinates(mc.feature(K, Y))))
    assert found.ok.all()
    box = mc.preimage(mc.feature(K, Y), inverse, region=mc.Box(-0.1, 0.1)).points
    np.testing.assert_allclose(box, np.clip(found.points, -0.1, 0.1))
    with pytest.raises(mc.InputError, match="fitted to 3 features"):
        mc.preimage(mc.feature(K, Y[:, :2]), inverse)
    with pytest.raises(mc.InputError, match="no eigenvalues"):
        LinearInverse.fit(mc.Subspace(plane.origin, plane.directions), X)
