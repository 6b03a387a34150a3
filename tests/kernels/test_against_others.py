"""Values against scikit-learn and SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from scipy.special import gamma, kv
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

import mercer as mc


@pytest.fixture(params=[1, 2, 3, 4, 7, 40])
def XY(request, rng):
    d = request.param
    return rng.normal(size=(23, d)), rng.normal(size=(17, d))


@pytest.mark.parametrize("g", [1e-3, 0.7, 30.0])
def test_gaussian(XY, g):
    expected = pairwise.rbf_kernel(*XY, gamma=g)
    assert_allclose(mc.Gaussian.from_gamma(g)(*XY), expected, rtol=1e-11, atol=1e-300)
    assert_allclose(mc.Gaussian(0.6)(*XY), gp.RBF(0.6)(*XY), rtol=1e-11, atol=1e-300)


def test_gaussian_with_a_length_per_column(XY, rng):
    lengths = rng.uniform(0.3, 3.0, XY[0].shape[1])
    k = mc.Gaussian(1.0).transform(mc.Scales(lengths))
    assert_allclose(k(*XY), gp.RBF(lengths)(*XY), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern(XY, nu):
    expected = gp.Matern(1.3, nu=nu)(*XY)
    assert_allclose(mc.Matern(nu, 1.3)(*XY), expected, rtol=1e-11)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_as_a_bessel_function(XY, nu):
    z = np.sqrt(2 * nu) * cdist(*XY) / 0.8
    expected = 2 ** (1 - nu) / gamma(nu) * z**nu * kv(nu, z)
    assert_allclose(mc.Matern(nu, 0.8)(*XY), expected, rtol=1e-10)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 7.5])
def test_rational_quadratic(XY, alpha):
    expected = gp.RationalQuadratic(length_scale=1.7, alpha=alpha)(*XY)
    assert_allclose(mc.RationalQuadratic(alpha, 1.7)(*XY), expected, rtol=1e-11)


def test_rational_quadratic_tends_to_the_gaussian(XY):
    assert_allclose(mc.RationalQuadratic(1e9, 1.5)(*XY), mc.Gaussian(1.5)(*XY), atol=1e-7)


def test_laplace(XY):
    assert_allclose(mc.Laplace(1.3)(*XY), np.exp(-cdist(*XY) / 1.3), rtol=1e-12)
    assert_allclose(mc.Laplace(1.3)(*XY), mc.Matern(0.5, 1.3)(*XY), rtol=1e-13)


def test_laplace_is_not_that_of_scikit_learn_but_on_the_line(XY):
    theirs = pairwise.laplacian_kernel(*XY, gamma=0.4)
    mine = mc.Laplace.from_gamma(0.4)(*XY)
    assert np.allclose(mine, theirs, rtol=1e-12) == (XY[0].shape[1] == 1)


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_polynomial(XY, degree):
    expected = pairwise.polynomial_kernel(*XY, degree=degree, gamma=0.3, coef0=0.7)
    actual = mc.Polynomial.from_gamma(degree, 0.3, 0.7)(*XY)
    assert_allclose(actual, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_linear_and_cosine(XY):
    assert_allclose(mc.Linear()(*XY), pairwise.linear_kernel(*XY), rtol=1e-12, atol=1e-12)
    cosine = pairwise.cosine_similarity(*XY)
    assert_allclose(mc.kernels.Normalised(mc.Linear())(*XY), cosine, rtol=1e-11, atol=1e-12)


def test_exponential(XY):
    expected = np.exp(XY[0] @ XY[1].T / 9.0)
    assert_allclose(mc.Exponential(9.0)(*XY), expected, rtol=1e-12)
    assert_allclose(mc.Exponential.from_gamma(1 / 9.0)(*XY), expected, rtol=1e-12)


def test_inverse_multiquadric(XY):
    expected = (1.5 + cdist(*XY, "sqeuclidean")) ** -0.8
    assert_allclose(mc.InverseMultiquadric(1.5, 0.8)(*XY), expected, rtol=1e-11)


@pytest.mark.parametrize(("c", "rho"), [(1.0, None), (3.0, None), (2.0, 5.0), (5.0, 2.0)])
def test_epanechnikov(XY, c, rho):
    u = cdist(*XY, "sqeuclidean")
    expected = np.where(u <= (c if rho is None else rho), c - u, 0.0)
    assert_allclose(mc.Epanechnikov(c, rho)(*XY), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("p", [0.3, 1.0, 2.0, 3.0, 4.0])
def test_negative_distance(XY, p):
    expected = 1.5 - cdist(*XY) ** p
    assert_allclose(mc.NegativeDistance(p, 1.5)(*XY), expected, rtol=1e-10, atol=1e-10)


def test_the_edge_of_the_window_belongs_to_it():
    assert mc.Epanechnikov(2.0, 1.0)([[0.0]], [[1.0]]) == 1.0
    assert mc.Epanechnikov(2.0, 1.0)([[0.0]], [[np.nextafter(1.0, 2.0)]]) == 0.0


def test_sums_and_products_as_in_scikit_learn(XY):
    theirs = gp.RBF(1.2) * gp.RationalQuadratic(0.8, 1.5) + 2.0 * gp.Matern(0.9, nu=1.5)
    mine = mc.Gaussian(1.2) * mc.RationalQuadratic(1.5, 0.8) + 2.0 * mc.Matern(1.5, 0.9)
    assert_allclose(mine(*XY), theirs(*XY), rtol=1e-11)


def test_gradients_of_gaussian_process_kernels(rng):
    """d k / d x against a closed form: -(x - y) k / s^2, and three times Matern's."""
    X, Y = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    gap = X[:, None] - Y[None]
    K = mc.Gaussian(0.7)(X, Y)[..., None]
    assert_allclose(mc.Gaussian(0.7).gradient(X, Y), -gap * K / 0.49, rtol=1e-12)
    r = np.linalg.norm(gap, axis=-1, keepdims=True)
    expected = -3.0 * gap * np.exp(-np.sqrt(3.0) * r)
    assert_allclose(mc.Matern(1.5, 1.0).gradient(X, Y), expected, rtol=1e-11)
    mixed = mc.Gaussian(0.7).mixed_derivative(X, Y)
    outer = gap[..., :, None] * gap[..., None, :]
    expected = (np.eye(3) / 0.49 - outer / 0.49**2) * K[..., None]
    assert_allclose(mixed, expected, rtol=1e-11, atol=1e-14)
