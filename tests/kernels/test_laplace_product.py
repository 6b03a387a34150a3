"""The product of Laplace kernels: against scikit-learn, loops and its spectral measure."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import laplacian_kernel

import mercer as mc
from mercer.kernels import LaplaceProduct


@pytest.mark.parametrize("engine", [None, "blocked"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 3, 200])
def test_it_is_the_laplacian_kernel_of_scikit_learn(engine, dtype, d, rng):
    X, Y = rng.normal(size=(40, d)).astype(dtype), rng.normal(size=(23, d)).astype(dtype)
    with mc.options(engine=engine):
        found = LaplaceProduct(0.5 * d)(X, Y)
    assert found.dtype == dtype
    expected = laplacian_kernel(X.astype(float), Y.astype(float), gamma=2.0 / d)
    assert_allclose(found, expected, rtol=1e-13 if dtype is np.float64 else 2e-5)
    assert LaplaceProduct.from_gamma(2.0 / d) == LaplaceProduct(0.5 * d)


def test_it_is_a_product_over_columns(rng):
    X = rng.normal(size=(12, 3))
    factors = [mc.Laplace(0.7)(X[:, [c]]) for c in range(3)]
    assert_allclose(LaplaceProduct(0.7)(X), np.prod(factors, axis=0), rtol=1e-13)


def test_far_from_the_origin_nothing_is_lost():
    X = 1e9 + np.array([[0.0, 0.5], [1.0, 0.0]])
    assert_allclose(LaplaceProduct(1.0)(X)[0, 1], np.exp(-1.5), rtol=1e-15)


def test_the_spectral_density_integrates_to_the_kernel():
    """One column: int exp(-i w x) dLambda(w) on a fine grid; several columns are a product."""
    measure = LaplaceProduct(0.8).spectral_measure(1)
    w = np.linspace(-2000.0, 2000.0, 2_000_001)
    weight = measure.density(w[:, None]) * (w[1] - w[0])
    for x in (0.0, 0.3, 2.0):
        assert_allclose(np.sum(weight * np.cos(w * x)), np.exp(-x / 0.8), atol=1e-3)
    joint = LaplaceProduct(0.8).spectral_measure(2).density([[0.3, -1.0]])
    assert_allclose(joint, measure.density([[0.3]]) * measure.density([[-1.0]]), rtol=1e-14)


def test_random_features_converge(rng):
    X = rng.normal(size=(30, 3))
    features = mc.RandomFeatures(
        LaplaceProduct(3.0), n_components=20_000, kind="plain", random_state=0
    )
    Z = features.fit_transform(X)
    assert np.abs(Z @ Z.T - LaplaceProduct(3.0)(X)).max() < 0.05


def test_sparse_points_are_refused_with_a_cure():
    with pytest.raises(mc.exceptions.InputError, match="toarray"):
        LaplaceProduct(1.0)(csr_array(np.eye(3)))
