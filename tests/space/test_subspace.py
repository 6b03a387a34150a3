"""Affine subspaces: closed forms with linear kernels, projections, distances, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

import mercer as mc
from mercer.testing import awkward_kernels, check_subspace


@pytest.fixture
def X(rng):
    return rng.normal(size=(8, 3))


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_every_awkward_kernel_has_subspaces(kernel, X, rng):
    origin, spanning = mc.mean_embedding(kernel, X), mc.Element(kernel, X, rng.normal(size=(8, 3)))
    plane = mc.Subspace.span(origin, spanning)
    assert plane.dim == 3
    check_subspace(plane)
    check_subspace(plane, mc.feature(kernel, X))
    check_subspace(
        mc.Subspace.span(mc.Element(kernel, X[:2], [1.0, -1.0]), mc.feature(kernel, X[:4]))
    )


def test_linear_subspaces_are_those_of_vectors(rng):
    o, B, x = rng.normal(size=(1, 5)), rng.normal(size=(2, 5)), rng.normal(size=(4, 5))
    k = mc.Linear()
    plane = mc.Subspace.span(mc.Element(k, o, [1.0]), mc.feature(k, B))
    P = np.linalg.pinv(B) @ B
    expected = (x - o) @ P + o
    shadow = plane.project(mc.feature(k, x))
    assert_allclose(shadow(np.eye(5)).T, expected, atol=1e-12)
    assert_allclose(
        plane.distance(mc.feature(k, x)), np.linalg.norm(x - expected, axis=1), rtol=1e-7
    )


def test_full_rank_subspace_reproduces_its_points(X):
    """The mean is never lost: with all directions the projection is the feature itself."""
    k = mc.Gaussian(1.0)
    phi = mc.feature(k, X)
    centred = phi - mc.mean_embedding(k, X)
    plane = mc.Subspace.span(mc.mean_embedding(k, X), centred)
    assert plane.dim == 7
    assert plane.distance(phi).max() < 1e-7
    assert plane.project(phi).distance(phi).max() < 1e-7


def test_kernel_pca_with_a_linear_kernel_is_pca(rng):
    X = rng.normal(size=(30, 4)) * [5.0, 3.0, 1.0, 0.2] + 7.0
    k = mc.Linear()
    phi, mean = mc.feature(k, X), mc.mean_embedding(k, X)
    plane = mc.Subspace.span(mean, phi - mean).truncate(2)
    pca = PCA(2).fit(X)
    assert_allclose(np.abs(plane.coordinates(phi)), np.abs(pca.transform(X)), rtol=1e-8, atol=1e-10)
    back = plane.project(phi)(np.eye(4)).T
    assert_allclose(back, pca.inverse_transform(pca.transform(X)), rtol=1e-9)


def test_dependent_elements_are_dropped(X):
    k = mc.Gaussian(1.0)
    phi = mc.feature(k, np.vstack([X[:3], X[:3]]))
    assert mc.Subspace.span(mc.mean_embedding(k, X), phi).dim == 3
    one_strong = phi * np.array([1.0, 1e-3, 1e-3, 1.0, 1e-3, 1e-3])
    assert mc.Subspace.span(mc.mean_embedding(k, X), one_strong, tol=1e-2).dim == 1
    quadratic = mc.Subspace.span(
        mc.mean_embedding(mc.Polynomial(2), X), mc.feature(mc.Polynomial(2), X)
    )
    assert quadratic.dim == 8
    line = mc.Subspace.span(mc.mean_embedding(mc.Linear(), X), mc.feature(mc.Linear(), X))
    assert line.dim == 3


def test_directions_stay_orthonormal_when_elements_are_nearly_dependent(rng):
    """Eigenvalues down to 1e-10 of the largest are kept, so they must be used with care."""
    k, X = mc.Gaussian(3.0), rng.normal(size=(100, 2))
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X))
    gram = plane.directions.inner(plane.directions)
    assert_allclose(gram, np.eye(plane.dim), atol=1e-8)
    check_subspace(plane)


def test_strongest_direction_first(X):
    k = mc.Linear()
    phi = mc.feature(k, X * [10.0, 1.0, 0.1])
    plane = mc.Subspace.span(0.0 * phi[0], phi)
    spread = (plane.coordinates(phi) ** 2).sum(axis=0)
    assert np.all(np.diff(spread) < 0)


def test_single_elements_and_coordinates(X, rng):
    k = mc.Laplace(1.0)
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X[:4]))
    psi = mc.Element(k, X, rng.normal(size=8))
    c = plane.coordinates(psi)
    assert c.shape == (4,)
    assert plane.element(c).batch is None
    assert np.shape(plane.distance(psi)) == ()
    assert plane.element([c, 2 * c]).batch == 2
    assert_allclose(plane.coordinates(plane.element(c)), c, atol=1e-9)
    assert_allclose(plane.element(np.zeros(4))(X), plane.origin(X), rtol=1e-12)


def test_origin_and_directions_on_the_same_or_other_points(X, rng):
    k = mc.Gaussian(1.0)
    spanning = mc.Element(k, X, rng.normal(size=(8, 3)))
    for origin in (spanning[2], mc.mean_embedding(k, X), mc.Element(k, X[:3], np.ones(3))):
        check_subspace(mc.Subspace.span(origin, spanning[:2]))
    shared = mc.Subspace.span(spanning[2], spanning[:2]).project(mc.feature(k, X))
    assert shared.points.shape == (8, 3)  # points that are the same are not doubled


def test_directions_of_every_form(X, rng):
    k = mc.Gaussian(0.3)  # features far apart are orthonormal already
    far = 10.0 * np.arange(4.0)[:, None]
    for directions in (mc.feature(k, far), mc.feature(k, far) * np.array([1.0, -1.0, 1.0, -1.0])):
        plane = mc.Subspace(mc.mean_embedding(k, far + 0.1), directions)
        check_subspace(plane)
    phi = mc.feature(mc.Gaussian(1.0), X)
    stacked = phi[:3] - phi[3:6]
    check_subspace(mc.Subspace.span(mc.mean_embedding(mc.Gaussian(1.0), X), stacked))
    low = mc.Subspace.span(mc.mean_embedding(mc.Gaussian(1.0), X), phi[:5]).project(phi)
    check_subspace(mc.Subspace.span(mc.mean_embedding(mc.Gaussian(1.0), X), low[:3]))


def test_float32(X, rng):
    k, X32 = mc.Gaussian(1.0), X.astype(np.float32)
    plane = mc.Subspace.span(mc.mean_embedding(k, X32), mc.feature(k, X32[:4]))
    check_subspace(plane, mc.feature(k, X32), tol=1e-5)
    double = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X[:4]))
    assert_allclose(
        plane.distance(mc.feature(k, X32)), double.distance(mc.feature(k, X)), atol=2e-3
    )


def test_truncate(X):
    k = mc.Gaussian(1.0)
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X))
    assert plane.truncate(3).dim == 3
    distances = [plane.truncate(r).distance(mc.feature(k, X)) for r in range(1, 9)]
    assert np.all(np.diff(distances, axis=0) <= 1e-7)
    for bad, message in ((9, "dim must be at most 8, got 9"), (0, "dim must be an integer >= 1")):
        with pytest.raises(mc.InputError, match=message):
            plane.truncate(bad)


def test_errors(X):
    k = mc.Gaussian(1.0)
    one, many = mc.mean_embedding(k, X), mc.feature(k, X)
    other = mc.mean_embedding(mc.Laplace(1.0), X)
    plane = mc.Subspace.span(one, many[:2])
    for wrong, error, message in (
        (lambda: mc.Subspace(many, many), mc.InputError, "origin must be a single element"),
        (lambda: mc.Subspace(one, one), mc.InputError, "directions must be a batch of elements"),
        (lambda: mc.Subspace(X, many), mc.InputError, "origin must be a single element"),
        (lambda: mc.Subspace.span(one, one), mc.InputError, "elements must be a batch"),
        (lambda: mc.Subspace.span(other, many), mc.exceptions.SpaceError, "different spaces"),
        (lambda: mc.Subspace.span(one, many - many), mc.InputError, "span nothing"),
        (lambda: mc.Subspace.span(one, many, tol=0.0), mc.InputError, "tol must be > 0"),
        (lambda: plane.project(other), mc.exceptions.SpaceError, "different spaces"),
        (lambda: plane.distance(other), mc.exceptions.SpaceError, "different spaces"),
        (lambda: plane.element([1.0]), mc.InputError, "coordinates must have 2 columns"),
        (lambda: plane.element([[[1.0, 2.0]]]), mc.InputError, "coordinates must have 2 columns"),
    ):
        with pytest.raises(error, match=message):
            wrong()


@pytest.mark.parametrize("coordinates", [[np.nan, 1.0], [np.inf, 1.0], [1j, 1.0], ["a", "b"]])
def test_coordinates_are_checked(X, coordinates):
    k = mc.Gaussian(1.0)
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X[:2]))
    with pytest.raises(mc.InputError, match=r"coordinates"):
        plane.element(coordinates)


def test_text(X):
    k = mc.Linear()
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X))
    assert repr(plane).startswith("<Subspace of dimension 3 through <Element of Linear()")


def test_span_puts_everything_on_one_set_of_points(rng):
    X = rng.normal(size=(30, 2))
    k = mc.Gaussian(1.0)
    mean = mc.mean_embedding(k, X)
    plane = mc.Subspace.span(mean, mc.feature(k, X) - mean)
    assert plane.origin.points.shape == plane.directions.points.shape == (30, 2)
    assert np.shares_memory(plane.origin.points, plane.directions.points)
    inner = plane.directions.inner(plane.directions)
    assert np.abs(inner - np.eye(plane.dim)).max() < 1e-7
    assert plane.origin.distance(mean) < 1e-7
