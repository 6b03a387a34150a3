"""Elements whose points, or where they are evaluated, come in pieces: as those in memory."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import mercer as mc
from mercer._chunks import LocalChunks
from mercer.exceptions import InputError

rng = np.random.default_rng(1)
k = mc.Gaussian(1.3) + mc.Laplace(2.0)
X, Y, A = rng.normal(size=(70, 2)), rng.normal(size=(40, 2)), rng.normal(size=(70, 3))
rows, queries = LocalChunks.of(X, 30), LocalChunks.of(Y, 11)


@pytest.mark.parametrize("coef", [A, A[:, 0]], ids=["batch", "single"])
@pytest.mark.parametrize("order", ["__call__", "gradient", "hessian"])
def test_values_and_derivatives(coef, order):
    known = getattr(mc.Element(k, X, coef), order)(Y)
    for points, where in ((rows, Y), (X, queries), (rows, queries)):
        psi = mc.Element(k, points, coef)
        np.testing.assert_allclose(getattr(psi, order)(where), known, rtol=1e-12, atol=1e-10)


def test_float32_stays_float32():
    psi = mc.Element(k, LocalChunks.of(X.astype(np.float32), 30), A)
    assert psi(LocalChunks.of(Y.astype(np.float32), 11)).dtype == np.float32
    assert psi(queries).dtype == np.float64


def test_algebra():
    psi, phi = mc.Element(k, rows, A), mc.Element(k, X, A)
    B, other = rng.normal(size=(3, 2)), mc.Element(k, Y, np.ones(40))
    cases = (
        (psi.combine(B), phi.combine(B)),
        (2.0 * psi - psi / 4.0, 1.75 * phi),
        (psi[1], phi[1]),
        (psi[[2, 0]], phi[[2, 0]]),
        (psi + other, phi + other),
        (other + psi, other + phi),
        (psi[0] + phi, phi[0] + phi),
    )
    for chunked, known in cases:
        assert chunked.batch == known.batch
        np.testing.assert_allclose(chunked(Y), known(Y), rtol=1e-12, atol=1e-10)


def test_inner_products_and_norms():
    psi, phi, other = mc.Element(k, rows, A), mc.Element(k, X, A), mc.Element(k, Y, np.ones(40))
    np.testing.assert_allclose(psi.inner(psi), phi.inner(phi), rtol=1e-12)
    np.testing.assert_allclose(psi.inner(other), phi.inner(other), rtol=1e-12)
    np.testing.assert_allclose(other.inner(psi), other.inner(phi), rtol=1e-12)
    np.testing.assert_allclose(psi.norm(), phi.norm(), rtol=1e-12)
    np.testing.assert_allclose(psi.distance(other), phi.distance(other), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-160, 1e200])
def test_norms_of_small_and_large_elements(scale):
    found = mc.Element(k, rows, scale * A).norm()
    np.testing.assert_allclose(found, mc.Element(k, X, scale * A).norm(), rtol=1e-12)


def test_sums_with_sparse_points_in_memory():
    psi, other = mc.Element(k, rows, A[:, 0]), mc.Element(k, csr_array(Y), np.ones(40))
    known = mc.Element(k, X, A[:, 0]) + mc.Element(k, Y, np.ones(40))
    np.testing.assert_allclose((psi + other)(Y), known(Y), rtol=1e-12)


@pytest.mark.parametrize("weights", [None, np.arange(70.0)], ids=["equal", "weighted"])
def test_mean_embeddings(weights):
    mean = mc.mean_embedding(k, rows, weights=weights)
    known = mc.mean_embedding(k, X, weights=weights)
    np.testing.assert_allclose(mean(Y), known(Y), rtol=1e-13)
    assert mean.norm() == pytest.approx(known.norm(), rel=1e-12)


def test_bad_rows_weights_and_coefficients_are_refused():
    bad = X.copy()
    bad[50, 1] = np.nan
    with pytest.raises(InputError, match="NaN"):
        mc.mean_embedding(k, LocalChunks.of(bad, 30))(Y)
    with pytest.raises(InputError, match="weights must be >= 0"):
        mc.mean_embedding(k, rows, weights=-np.ones(70))
    with pytest.raises(InputError, match="not all be zero"):
        mc.mean_embedding(k, rows, weights=np.zeros(70))
    for scale in (1e-310, 1e307):
        with pytest.raises(InputError, match="nearer to 1"):
            mc.mean_embedding(k, rows, weights=np.full(70, scale))
    with pytest.raises(InputError, match="coef must have"):
        mc.Element(k, rows, np.ones(69))
    with pytest.raises(InputError, match="2 features, but Y has 3"):
        mc.mean_embedding(k, rows)(np.zeros((4, 3)))
    with pytest.raises(InputError, match="in memory"):
        mc.preimage(mc.mean_embedding(k, rows))
    with pytest.raises(InputError, match="in memory"):
        mc.feature(k, rows)
