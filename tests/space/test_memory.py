"""A batch of a hundred thousand costs memory for blocks, never for a matrix of coefficients."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc

N, POINTS, RANK = 100_000, 500, 20
LIMIT = 300e6  # bytes; N x POINTS alone would be 400e6, N x N 8e10


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(11)
    k = mc.Gaussian(1.0)
    base = rng.normal(size=(POINTS, 2))
    spanning = mc.Element(k, base, rng.normal(size=(POINTS, RANK)))
    return k, mc.Subspace.span(mc.mean_embedding(k, base), spanning), rng.normal(size=(N, 2))


@pytest.fixture
def peak():
    """Peak of what was allocated while the test ran."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def test_features_projections_and_residuals(scene, peak):
    k, plane, X = scene
    phi = mc.feature(k, X)
    assert peak() < 10e6
    shadow = plane.project(phi)
    assert peak() < LIMIT, "projecting"
    residual = phi - shadow
    norm = residual.norm()
    assert peak() < LIMIT, "norm of the residual"
    distance = phi.distance(shadow)
    assert peak() < LIMIT, "distance to the projection"
    direct = plane.distance(phi)
    assert peak() < LIMIT, "distance to the subspace"
    assert norm.shape == distance.shape == direct.shape == (N,)
    assert_allclose(distance, norm, atol=1e-9)
    assert_allclose(direct, norm, atol=1e-6)
    assert_allclose(direct[:3], [plane.distance(phi[j]) for j in range(3)], atol=1e-7)


def test_paired_values_and_derivatives(scene, peak):
    _, plane, X = scene
    shadow = plane.project(mc.feature(plane.origin.kernel, X))
    fields = shadow.fields(X, order=1, paired=True)
    assert peak() < LIMIT
    assert fields.value.shape == (N,)
    assert fields.gradient.shape == (N, 2)
    assert_allclose(fields.value[:2], np.diag(shadow[:2](X[:2])), rtol=1e-9)


def test_norms_inner_products_and_means(scene, peak):
    k, plane, X = scene
    phi = mc.feature(k, X)
    assert np.array_equal(phi.norm(), np.ones(N))
    coordinates = plane.coordinates(phi)
    assert coordinates.shape == (N, RANK)
    with_mean = phi.inner(plane.origin)
    assert with_mean.shape == (N,)
    merged = phi.merge()
    assert len(merged) == N
    part = phi[::2]
    assert len(part) == N // 2
    scaled = phi * np.linspace(1.0, 2.0, N)
    assert_allclose(scaled.norm(), np.linspace(1.0, 2.0, N), rtol=1e-12)
    assert peak() < LIMIT


def test_adding_a_single_element_to_many(scene, peak):
    k, plane, X = scene
    centred = mc.feature(k, X) - plane.origin
    assert len(centred) == N
    norm = centred.norm()
    assert peak() < LIMIT
    assert_allclose(norm[0], centred[0].norm(), rtol=1e-9)
