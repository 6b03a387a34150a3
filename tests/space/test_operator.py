"""Operators of finite rank against matrices: with a linear kernel they are matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc

LINEAR = mc.Linear()


def vector(w):
    """The linear element <w, .>."""
    return mc.Element(LINEAR, np.atleast_2d(w), [1.0])


def matrix(A, rows, columns):
    """The matrix of an operator between linear spaces: its images of unit vectors."""
    images = A(mc.feature(LINEAR, np.eye(columns)))
    return images(np.eye(rows))


def test_tensor_products_are_outer_products(rng):
    u, v = rng.normal(size=3), rng.normal(size=4)
    A = mc.space.tensor(vector(u), vector(v))
    assert_allclose(matrix(A, 3, 4), np.outer(u, v), rtol=1e-12)
    assert_allclose(matrix(A.T, 4, 3), np.outer(v, u), rtol=1e-12)
    assert_allclose(A.norm(), np.linalg.norm(u) * np.linalg.norm(v), rtol=1e-12)
    w, x = rng.normal(size=4), rng.normal(size=3)
    assert_allclose(A.bilinear(vector(x), vector(w)), (x @ u) * (v @ w), rtol=1e-12)


def test_sums_multiples_and_products_of_batches(rng):
    U, V = rng.normal(size=(5, 3)), rng.normal(size=(5, 4))
    A = mc.space.tensor(mc.feature(LINEAR, U), mc.feature(LINEAR, V))
    B = mc.space.tensor(vector(U[0]), vector(V[1]))
    M, N = U.T @ V, np.outer(U[0], V[1])
    for operator, expected in (
        (A, M), (A + B, M + N), (A - B, M - N), (2.0 * A, 2 * M), (A * -0.5, -0.5 * M),
        (np.float64(3.0) * A, 3 * M), ((A - B).T.T, M - N),
    ):  # fmt: skip
        assert_allclose(matrix(operator, 3, 4), expected, rtol=1e-11, atol=1e-12)
        assert_allclose(operator.norm(), np.linalg.norm(expected), rtol=1e-11)
    assert_allclose(A.inner(B), np.sum(M * N), rtol=1e-12)
    assert_allclose((A - A).norm(), 0.0, atol=1e-6)


def test_images_of_batches(rng):
    k, m = mc.Gaussian(1.0), mc.Laplace(1.0)
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(6, 3))
    A = mc.space.tensor(mc.feature(k, X), mc.feature(m, Y))
    psi = mc.Element(m, Y[:4], rng.normal(size=(4, 2)))
    images = A(psi)
    assert len(images) == 2
    expected = k(X) @ psi(Y)
    assert_allclose(images(X), expected, rtol=1e-11)
    assert_allclose(A(psi[0])(X), expected[:, 0], rtol=1e-11)
    assert A(psi[0]).batch is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_covariance(rng, weighted, centred):
    """<f, C g> is the sample covariance of f(x_i) and g(y_i)."""
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    k, m = mc.Gaussian(1.0) + mc.Linear(), mc.Matern(1.5)
    w = rng.uniform(size=12) if weighted else np.ones(12)
    C = mc.covariance(k, X, m, Y, weights=w if weighted else None, centred=centred)
    f, g = mc.Element(k, X[:5], rng.normal(size=5)), mc.Element(m, Y[:3], rng.normal(size=3))
    w = w / w.sum()
    expected = w @ (f(X) * g(Y))
    if centred:
        expected -= (w @ f(X)) * (w @ g(Y))
    assert_allclose(C.bilinear(f, g), expected, rtol=1e-10)
    assert_allclose(C.T.bilinear(g, f), expected, rtol=1e-10)


def test_linear_covariance_is_the_covariance_matrix(rng):
    X, Y = rng.normal(size=(20, 3)) + 5.0, rng.normal(size=(20, 2))
    C = mc.covariance(LINEAR, X, LINEAR, Y)
    expected = (X - X.mean(0)).T @ (Y - Y.mean(0)) / 20
    assert_allclose(matrix(C, 3, 2), expected, atol=1e-11)
    assert_allclose(C.norm(), np.linalg.norm(expected), rtol=1e-8)


def test_more_terms_than_a_block(rng):
    X = rng.normal(size=(1500, 2))
    A = mc.space.tensor(mc.feature(LINEAR, X), mc.feature(LINEAR, X))
    assert_allclose(A.norm(), np.linalg.norm(X.T @ X), rtol=1e-10)


def test_hilbert_schmidt_norm_does_not_depend_on_the_basis(rng):
    k, X = mc.Gaussian(1.0), rng.normal(size=(7, 2))
    f = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X)).directions
    C = mc.covariance(k, X, k, X)
    squares = sum(float(C(one).norm()) ** 2 for one in f)
    assert_allclose(C.norm() ** 2, squares, rtol=1e-7)


def test_errors(rng):
    k, X = mc.Gaussian(1.0), rng.normal(size=(4, 2))
    phi = mc.feature(k, X)
    A = mc.space.tensor(phi, phi)
    for wrong, error, message in (
        (lambda: mc.space.tensor(phi, phi[:2]), mc.InputError, "batches of 4 and 2 elements"),
        (lambda: mc.covariance(k, X, k, X[:3]), mc.InputError, "X has 4 points, but Y has 3"),
        (lambda: mc.covariance(k, X, k, X, weights=[1.0]), mc.InputError, "weights must have 4"),
        (
            lambda: A(mc.mean_embedding(mc.Linear(), X)),
            mc.exceptions.SpaceError,
            "different spaces",
        ),
        (
            lambda: A.inner(mc.space.tensor(phi, mc.feature(LINEAR, X))),
            mc.exceptions.SpaceError,
            "different spaces",
        ),
        (lambda: A * np.nan, mc.InputError, "the factor must be finite"),
        (lambda: A + 1.0, TypeError, "unsupported operand"),
        (lambda: A - 1.0, TypeError, "unsupported operand"),
    ):
        with pytest.raises(error, match=message):
            wrong()


def test_operators_between_different_spaces_do_not_add(rng):
    k, X = mc.Gaussian(1.0), rng.normal(size=(4, 2))
    phi = mc.feature(k, X)
    with pytest.raises(mc.exceptions.SpaceError):
        mc.space.tensor(phi, phi) + mc.space.tensor(phi, mc.feature(mc.Linear(), X))


def test_text(rng):
    k = mc.Gaussian(1.0)
    A = mc.space.tensor(mc.feature(k, rng.normal(size=(4, 2))), mc.feature(LINEAR, np.ones((4, 1))))
    assert repr(A) == (
        "<Operator from the space of Linear() to Gaussian(length_scale=1.0), "
        "a sum of 4 tensor products>"
    )


def test_an_inner_product_that_overflows_is_refused():
    u = mc.Element(mc.Linear(), [[1e100]], [1e60])
    huge = mc.space.tensor(u, u)
    with pytest.raises(mc.InputError, match="the inner product overflows"):
        huge.inner(huge)
