"""Part A of the specification: power series of the inner product, the sigmoid, and shadows."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigvalsh

import mercer as mc
from mercer.engine import evaluate
from mercer.kernels._dot_product import Geometric, Sigmoid, Taylor, VovkPolynomial
from mercer.kernels._radial import Uniform
from mercer.testing import lattice

SERIES = [
    Geometric(1.0),
    Geometric(0.2),
    VovkPolynomial(4),
    VovkPolynomial(9),
    Taylor([0.0, 1.0, 0.0, 2.0]),
    Taylor([1.0 / (n + 1) for n in range(30)], radius=1.0),
]


def derivatives(kernel, u):
    """f, f' and f'' of a profile of one variable, as the library computes them."""
    jet = evaluate(kernel.program.profile, [np.asarray(u, dtype=float)], 2)
    return [np.broadcast_to(a, np.shape(u)) for a in (jet.value, jet.first[0], jet.second[0][0])]


def in_ball(kernel, X, part=0.95):
    """The points scaled to fill that part of the kernel's ball, or of the unit ball."""
    radius = getattr(kernel.domain, "radius", 1.0)
    return X * (part * radius / np.linalg.norm(X, axis=1).max())


# --- A8 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8, 40])
def test_A8_vovk_polynomial_is_the_sum_of_powers_and_the_quotient(p, rng):
    """The denominator is 1 - <x, y>, without a power."""
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    t, K = X @ Y.T, VovkPolynomial(p)(X, Y)
    size = sum(np.abs(t) ** i for i in range(p))
    assert (np.abs(K - sum(t**i for i in range(p))) <= 1e-13 * size).all()
    assert (np.abs(K * (1 - t) - (1 - t**p)) <= 1e-13 * size * (1 + np.abs(t))).all()
    assert VovkPolynomial(p)([[1.0]]) == p  # the quotient is 0 / 0 there


@pytest.mark.parametrize("s", [0.5, 1.0, 30.0])
def test_A8_geometric_kernel_is_the_sum_of_all_powers(s, rng):
    X = in_ball(Geometric(s), rng.normal(size=(7, 3)), 0.9)
    t = X @ X.T / s
    assert_allclose(Geometric(s)(X), sum(t**n for n in range(250)), rtol=1e-13)
    assert_allclose(Geometric(s)(X), Geometric()(X / math.sqrt(s)), rtol=1e-13)


def test_A8_vovk_polynomials_tend_to_the_geometric_kernel_as_fast_as_the_tail(rng):
    X = in_ball(Geometric(), rng.normal(size=(7, 3)), 0.8)
    t, K = X @ X.T, Geometric()(X)
    for p in (2, 5, 11):
        assert_allclose(K - VovkPolynomial(p)(X), t**p * K, rtol=0.0, atol=1e-14 * K.max())


def test_A8_functions_of_the_geometric_kernel_have_square_summable_coefficients():
    """On (-1, 1) |f|^2 = sum f_n^2; so 1 / (1 - x), whose coefficients are all 1, is left out."""
    X = np.cos((np.arange(8) + 0.5) * np.pi / 8)[:, None] * 0.9
    K = Geometric()(X)

    def norm2(f):
        """Of the smallest interpolant: what every f in the space bounds from above."""
        return f @ np.linalg.solve(K, f)

    logarithm = -np.log1p(-X[:, 0])  # coefficients 1 / n
    assert norm2(logarithm) < math.pi**2 / 6
    assert norm2(logarithm) > 1.0
    feature = Geometric()(X, [[0.6]])[:, 0]  # coefficients 0.6^n
    assert_allclose(norm2(feature), 1 / (1 - 0.36), rtol=1e-4)
    for x in (0.9, 0.999, 1 - 1e-9):  # f(x)^2 / k(x, x) alone has no bound
        least = (1 / (1 - x)) ** 2 / Geometric()([[x]])[0, 0]
        assert_allclose(least, (1 + x) / (1 - x), rtol=1e-6)


@pytest.mark.parametrize("c", [-1.0, 0.0, 0.7])
def test_A8_sigmoid_is_not_positive_definite(c):
    k = Sigmoid(2.0, c)
    assert k.flags.is_positive_definite is None
    X = lattice(2, 4, 0.8) - 0.3
    K = k(X)
    assert_allclose(K, np.tanh(X @ X.T / 2 + c), rtol=1e-13)
    assert eigvalsh(K)[0] < -1e-3


# --- A9 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", SERIES, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_A9_gram_matrices_are_positive(kernel, d):
    side = {1: 20, 2: 6, 3: 4, 5: 2}[d]
    for part in (0.3, 0.95, 0.9999):
        X = in_ball(kernel, lattice(d, side) - 0.47 * (side - 1), part)
        K = kernel(X)
        assert eigvalsh(K)[0] >= -1e-12 * np.trace(K)


def test_A9_one_negative_coefficient_is_enough_to_be_refused_and_rightly():
    with pytest.raises(mc.InputError, match="coefficients must be >= 0"):
        Taylor([1.0, 1.0, -0.1])
    x = np.linspace(-0.5, 0.5, 5)
    t = np.outer(x, x)
    assert eigvalsh(1.0 + t - 0.1 * t**2)[0] < -1e-5


def test_A9_features_are_weighted_monomials(rng):
    a = [0.5, 0.0, 2.0, 1.5]
    x, y = rng.normal(size=(2, 4, 2))

    def features(X):
        u, v = X.T
        columns = []
        for n, weight in enumerate(a):
            roots = [math.sqrt(weight * math.comb(n, i)) for i in range(n + 1)]
            columns += [root * u**i * v ** (n - i) for i, root in enumerate(roots)]
        return np.stack(columns, axis=1)

    assert_allclose(Taylor(a)(x, y), features(x) @ features(y).T, rtol=1e-12)


BALLS = [Geometric(4.0), Taylor([1.0, 1.0, 1.0], radius=4.0)]


@pytest.mark.parametrize("kernel", BALLS, ids=repr)
@pytest.mark.parametrize("norm", [2.0, 2.0 * (1 + 1e-15), 2.1, 1e6])
def test_A9_points_on_and_outside_the_sphere_are_refused(kernel, norm, rng):
    x = rng.normal(size=(1, 3))
    x *= norm / np.linalg.norm(x)
    y = 0.5 * x / norm
    for k in (kernel, kernel + mc.Linear(), mc.Gaussian(1.0) * kernel, 3.0 * kernel + 1.0,
              mc.kernels.Normalised(kernel), (kernel + 1.0) * kernel):  # fmt: skip
        k(y)
        for call in (lambda k=k: k(x), lambda k=k: k(y, x), lambda k=k: k.diag(x),
                     lambda k=k: k.gradient(x, y), lambda k=k: mc.feature(k, x)):  # fmt: skip
            with pytest.raises(mc.exceptions.DomainError, match="inside the ball"):
                call()
    doubled = kernel.transform(mc.Scales(np.full(3, 0.5)))
    doubled(y)
    with pytest.raises(mc.exceptions.DomainError, match="inside the ball"):
        doubled(0.51 * x)
    halved = kernel.transform(mc.Scales(np.full(3, 2.0)))
    assert np.isfinite(halved(x * (3.9 / norm)))
    with pytest.raises(mc.exceptions.DomainError, match="inside the ball"):
        halved(2.0 * x)


# --- A19 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.3, 1.0, 5.0])
def test_A19_epanechnikov_is_the_shadow_of_the_uniform_kernel(rho):
    """k' = -c g with c = 1 > 0; with the printed sign k' = c g no window would do."""
    u = np.linspace(0.0, 2.0 * rho, 42)  # not at the border itself
    g = derivatives(Uniform(rho), u)[0]
    assert set(g) == {0.0, 1.0}
    assert np.array_equal(derivatives(mc.Epanechnikov(rho), u)[1], -g)


def test_A19_so_the_flat_mean_climbs_the_epanechnikov_density(rng):
    """grad sum_i k(x_i, x) = 2 sum_i g (x_i - x): towards the mean of the points in the window."""
    X, Y, rho = rng.normal(size=(60, 2)), rng.normal(size=(7, 2)), 1.5
    W = Uniform(rho)(Y, X)
    step = W @ X / W.sum(axis=1, keepdims=True) - Y
    psi = mc.Element(mc.Epanechnikov(rho), X, np.ones(60))
    gradient = psi.fields(Y, order=1).gradient[:, 0]
    assert_allclose(gradient, 2.0 * W.sum(axis=1, keepdims=True) * step, rtol=1e-11, atol=1e-12)


def test_A19_uniform_kernel_is_indefinite():
    K = Uniform(1.0)([[0.0], [0.8], [1.6]])
    assert K.tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    assert_allclose(eigvalsh(K)[0], 1 - math.sqrt(2))
    assert np.array([1, -2, 1]) @ K @ [1, -2, 1] < 0  # and not conditional
    assert Uniform(1.0).flags.is_positive_definite is False


# --- A20 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", SERIES, ids=repr)
def test_A20_necessary_conditions(kernel):
    r = getattr(kernel.domain, "radius", 3.0) ** 2
    u = np.linspace(0.0, 0.999 * r, 50)
    f, first, second = derivatives(kernel, u)
    assert (f >= 0).all()
    assert (first >= 0).all()
    assert (first + u * second >= 0).all()


@pytest.mark.parametrize(("s", "c"), [(1.0, 0.0), (3.0, 1.0), (0.5, -2.0)])
def test_A20_the_sigmoid_breaks_them(s, c):
    """f' + u f'' = (1 - 2 a tanh(a + c)) f' with a = u / s, below zero for every large u."""
    a = np.linspace(0.0, 6.0, 61)
    _, first, second = derivatives(Sigmoid(s, c), s * a)
    third = first + s * a * second
    assert_allclose(third, (1 - 2 * a * np.tanh(a + c)) * first, rtol=1e-10, atol=1e-15)
    assert (third < 0).any()


CONVEX_OR_NOT = [
    *(VovkPolynomial(p) for p in range(1, 9)),
    Geometric(4.0),
    Taylor([1, 1, 2, 0, 1]),
    Taylor([0, 0, 1, 1]),
]


@pytest.mark.parametrize("kernel", CONVEX_OR_NOT, ids=repr)
def test_A20_convex_profiles(kernel):
    u = np.linspace(-3.9, 3.9, 79)
    everywhere = bool((derivatives(kernel, u)[2] >= -1e-15).all())
    assert (kernel.flags.convex_profile is True) == everywhere
    assert (derivatives(kernel, u[u >= 0])[2] >= 0).all()
