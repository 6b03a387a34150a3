"""Laws of kernel densities: F1 to F3 of docs/spec.md."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gamma

import mercer as mc
from mercer.methods.density._density import Density, kernel_density
from mercer.methods.density._normaliser import log_normaliser
from tests import naive

KERNELS = [
    mc.Gaussian(0.6),
    mc.Laplace(0.5),
    mc.Matern(1.5, 0.5),
    mc.Matern(2.5, 0.5),
    mc.RationalQuadratic(4.0, 0.5),
    mc.InverseMultiquadric(0.7, 3.5),
    mc.Epanechnikov(1.5),
    mc.Epanechnikov(1.5, 0.8),
    mc.kernels.Uniform(1.2),
    mc.Gaussian(0.4) + 2.0 * mc.Laplace(0.7),
    mc.Gaussian(1.0) * mc.Matern(1.5, 0.5),
    mc.Gaussian(1.0) * mc.kernels.Uniform(1.0),
]
SMOOTH = [
    k
    for k in KERNELS
    if k.program.is_smooth and not isinstance(k, mc.Epanechnikov | mc.kernels.Uniform)
]


def area(d):
    """Of the unit sphere in R^d."""
    return 2.0 * math.pi ** (d / 2) / gamma(d / 2)


# --- F1 -------------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_F1_the_density_of_one_point_integrates_to_one_in_shells(kernel, d):
    f = kernel_density(kernel, np.zeros((1, d)))

    def shell(r):
        y = np.zeros((1, d))
        y[0, 0] = r
        return area(d) * r ** (d - 1) * f(y)[0]

    edges = [0.0, math.sqrt(0.8), 1.0, math.sqrt(1.2), math.sqrt(1.5), 4.0, 30.0]
    parts = [quad(shell, a, b, epsabs=1e-12)[0] for a, b in pairwise(edges)]
    parts.append(quad(shell, edges[-1], np.inf)[0])
    assert sum(parts) == pytest.approx(1.0, rel=1e-9)


def test_F1_integrates_to_one_over_a_line_and_over_a_plane(rng):
    """By the midpoint rule on a grid, which is exact for analytic densities on all of R^d."""
    w = rng.uniform(0.2, 2.0, 5)
    t = np.linspace(-12, 12, 241)
    for kernel in (mc.Gaussian(0.6), mc.Gaussian(0.6) + 3.0 * mc.RationalQuadratic(20.0, 0.7)):
        f = kernel_density(kernel, rng.normal(size=(5, 1)), weights=w)
        assert f(t[:, None]).sum() * 0.1 == pytest.approx(1.0, rel=1e-9)
        plane = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
        f = kernel_density(kernel, rng.normal(size=(5, 2)), weights=w)
        assert f(plane).sum() * 0.01 == pytest.approx(1.0, rel=1e-9)


def test_F1_integrates_to_one_behind_maps(rng):
    t = np.linspace(-15, 15, 301)
    plane = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    X = rng.normal(size=(4, 2))
    A = np.array([[1.0, 0.5], [-0.3, 0.8]])
    tall = np.array([[1.0, 0.0], [0.4, 0.9], [0.2, -0.7]])
    both = mc.Gaussian(0.8).transform(mc.kernels.Matrix(A)).transform(mc.Scales([1.5, 0.7]))
    for kernel in (
        mc.Gaussian(0.5).transform(mc.Scales([1.0, 2.0])),
        mc.Gaussian(0.8).transform(mc.kernels.Matrix(A)),
        mc.Gaussian(0.8).transform(mc.kernels.Matrix(tall)),
        mc.Gaussian(1.0).transform(mc.Columns([1, 0])),
        both,
        both + mc.Gaussian(0.7),
    ):
        assert kernel_density(kernel, X)(plane).sum() * 0.01 == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_F1_constants_of_the_literature(d):
    n, h, lam = 7, 0.8, 0.35
    X = np.zeros((n, d))
    here = np.zeros((1, d))
    gauss = n / ((2 * math.pi) ** (d / 2) * n * h**d)
    assert_allclose(kernel_density(mc.Gaussian(h), X)(here), gauss, rtol=1e-12)
    laplace = n / (n * (h / lam) ** d * 2 * math.pi ** (d / 2) * gamma(d) / gamma(d / 2))
    assert_allclose(kernel_density(mc.Laplace.from_rate(lam, h), X)(here), laplace, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_F1_the_inverse_quadratic_needs_p_above_half_the_dimension(d):
    with pytest.raises(mc.InputError, match="p > d/2"):
        kernel_density(mc.InverseMultiquadric(1.0, d / 2), np.zeros((1, d)))
    p, c = d / 2 + 0.25, 2.0
    Z = c ** (d / 2 - p) * math.pi ** (d / 2) * gamma(p - d / 2) / gamma(p)
    assert log_normaliser(mc.InverseMultiquadric(c, p), d) == pytest.approx(math.log(Z), rel=1e-12)


def test_F1_the_constant_is_the_spectral_density_at_zero():
    for kernel in (
        mc.Gaussian(0.6),
        mc.Laplace(0.5),
        mc.Matern(2.5, 2.0),
        mc.InverseMultiquadric(2, 4),
    ):
        for d in (1, 2, 5):
            at_zero = kernel.spectral_measure(d).density(np.zeros((1, d)))[0]
            expected = d * math.log(2 * math.pi) + math.log(at_zero)
            assert log_normaliser(kernel, d) == pytest.approx(expected, rel=1e-12)


# --- F2 -------------------------------------------------------------------------------------------


def differences(f, y, h=1e-5):
    """Central differences of f, of shape (m, ...), in each coordinate of the rows of y."""
    d = y.shape[1]
    return np.stack([(f(y + h * e) - f(y - h * e)) / (2 * h) for e in np.eye(d)], axis=-1)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_F2_gradients_of_densities_and_of_their_logarithms(kernel, rng):
    X, Y = rng.normal(size=(15, 2)), 0.7 * rng.normal(size=(10, 2))
    w = rng.uniform(0.1, 1.0, 15)
    f = Density(mc.mean_embedding(kernel, X, weights=w))
    assert_allclose(f.gradient(Y), differences(f, Y), atol=1e-7)
    assert_allclose(f.log_gradient(Y), differences(f.log, Y), atol=1e-6)
    element = kernel_density(kernel, X, weights=w)
    assert_allclose(element.gradient(Y), f.gradient(Y), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", [mc.Gaussian(0.9), mc.InverseMultiquadric(1.3, 2.5)], ids=repr)
def test_F2_the_gradient_is_along_the_mean_shift_vector(kernel, rng):
    """grad f = (2 c_N / h^2) S(x) m(x) with g = -k', S = sum g_i, m = sum x_i g_i / S - x."""
    X, Y = rng.normal(size=(20, 3)), rng.normal(size=(6, 3))
    h = 0.7  # the kernel is k(|x - y|^2 / h^2)
    f = kernel_density(kernel.transform(mc.Scales(np.full(3, h))), X)
    c_N = 1.0 / (20 * math.exp(log_normaliser(kernel, 3)) * h**3)
    for y, gradient in zip(Y, f.gradient(Y), strict=True):
        q = [sum((y - x) ** 2) / h**2 for x in X]
        if isinstance(kernel, mc.Gaussian):
            g = np.array([math.exp(-v / (2 * 0.9**2)) / (2 * 0.9**2) for v in q])
        else:
            g = np.array([2.5 * (1.3 + v) ** -3.5 for v in q])
        S, m = g.sum(), g @ X / g.sum() - y
        assert_allclose(gradient, 2 * c_N / h**2 * S * m, rtol=1e-10)


# --- F3 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [mc.Gaussian(0.9), mc.InverseMultiquadric(1.3, 2.5)], ids=repr)
def test_F3_hessian_formula(kernel, rng):
    """H = c_N (-C I / h^2 + A / h^4), C = -2 sum k', A = 4 sum (x - x_i)(x - x_i)' k''."""
    X, Y, h = rng.normal(size=(12, 2)), rng.normal(size=(5, 2)), 0.8
    f = Density(mc.mean_embedding(kernel.transform(mc.Scales([h, h])), X))
    c_N = 1.0 / (12 * math.exp(log_normaliser(kernel, 2)) * h**2)
    for y, hessian in zip(Y, f.hessian(Y), strict=True):
        C, A = 0.0, np.zeros((2, 2))
        for x in X:
            q = float(np.sum((y - x) ** 2)) / h**2
            if isinstance(kernel, mc.Gaussian):
                a = 1 / (2 * 0.9**2)
                first, second = -a * math.exp(-a * q), a * a * math.exp(-a * q)
            else:
                first, second = -2.5 * (1.3 + q) ** -3.5, 2.5 * 3.5 * (1.3 + q) ** -4.5
            C -= 2 * first
            A += 4 * second * np.outer(y - x, y - x)
        assert_allclose(hessian, c_N * (-C * np.eye(2) / h**2 + A / h**4), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_F3_hessians_against_finite_differences(kernel, rng):
    X, Y = rng.normal(size=(10, 2)), rng.normal(size=(6, 2))
    f = Density(mc.mean_embedding(kernel, X))
    assert_allclose(f.hessian(Y), differences(f.gradient, Y), atol=1e-6)


def test_F3_hessians_against_the_double_loop(rng):
    X, Y = rng.normal(size=(8, 3)), rng.normal(size=(4, 3))
    w = rng.dirichlet(np.ones(8))

    def k(x, y):
        return naive.exp(-0.5 * naive.squared_distance(x, y))

    Z = (2 * math.pi) ** 1.5
    f = Density(mc.mean_embedding(mc.Gaussian(1.0), X, weights=w))
    expected = np.einsum("jikl,i->jkl", naive.hessians(k, X, Y), w) / Z
    assert_allclose(f.hessian(Y), expected, rtol=1e-10, atol=1e-13)
