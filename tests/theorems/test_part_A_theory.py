"""Part A of the specification: kernels on R^d as functions. Each test states the law of its id."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate
from scipy.linalg import eigvalsh

import mercer as mc
from mercer.engine import evaluate
from mercer.kernels import SpectralMeasure
from mercer.kernels._radial import Uniform
from mercer.testing import lattice
from mercer.theory import (
    MercerExpansion,
    bochner_norm,
    is_characteristic,
    is_universal,
    projective_conditions,
    shadow,
    shadow_constant,
)


def slope(kernel, u):
    """k'(u) of a profile, as the library computes it."""
    return np.broadcast_to(evaluate(kernel.program.profile, [u], 1).first[0], u.shape)


def profile(kernel, u):
    return kernel(np.zeros((1, 1)), np.sqrt(u)[:, None])[0]


def mmd(kernel, w):
    """Distance of the mean embeddings of the two distributions of a witness."""
    P = mc.mean_embedding(kernel, w.X, weights=w.X_weights)
    return float(P.distance(mc.mean_embedding(kernel, w.Y, weights=w.Y_weights)))


# --- A15 ------------------------------------------------------------------------------------------

STATIONARY = [
    mc.Gaussian(0.8),
    mc.Laplace(1.0),
    mc.Matern(1.5, 0.3),
    mc.Matern(2.5),
    mc.RationalQuadratic(1.0, 1.0),
    mc.RationalQuadratic(0.3, 2.0),
    mc.InverseMultiquadric(1.0, 0.5),
    mc.InverseMultiquadric(2.0, 3.0),
    mc.Gaussian(1.0) + 0.5 * mc.Laplace(2.0),
]


def numerical_transform(kernel, w):
    """int exp(i w x) q(x) dx by quadrature, without the library's spectral density."""
    q = lambda x: float(kernel([[0.0]], [[x]])[0, 0])  # noqa: E731
    return 2.0 * integrate.quad(q, 0.0, np.inf, weight="cos", wvar=w, limlst=200)[0]


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_A15_norm_of_q_is_the_root_of_its_value_at_zero(kernel):
    measure = kernel.spectral_measure(1)
    Q = lambda w: 2.0 * np.pi * measure.density(w[:, None])  # noqa: E731
    found = bochner_norm(kernel, Q)
    assert found.inside
    assert_allclose(found.value**2, kernel([[0.0]])[0, 0], rtol=1e-9)
    assert abs(found.value**2 - kernel([[0.0]])[0, 0]) <= 10 * found.error * found.value + 1e-14


@pytest.mark.parametrize("kernel", STATIONARY[:4], ids=repr)
def test_A15_the_transform_of_q_is_a_power_of_two_pi_times_the_density(kernel):
    """What makes (2 pi)^-2d int |F|^2 / Lambda equal to (2 pi)^-d int |F|^2 / Q."""
    for w in (0.3, 1.0, 4.0):
        expected = 2.0 * np.pi * kernel.spectral_measure(1).density([[w]])[0]
        assert_allclose(numerical_transform(kernel, w), expected, rtol=1e-6)


def test_A15_without_the_power_of_two_pi_the_norm_is_wrong():
    """exp(-|x|) has norm 1, and 6.283 is what int |F|^2 / Q gives.

    Rudi and Gaillard 2021, Theorem 3, corrected.
    """
    F = lambda w: 2.0 / (1.0 + w**2)  # noqa: E731
    raw = integrate.quad(F, -np.inf, np.inf)[0]  # |F|^2 / Q, as F = Q
    assert_allclose(raw, 6.283, atol=5e-4)
    assert_allclose(bochner_norm(mc.Laplace(1.0), F).value ** 2, raw / (2 * np.pi), rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "rtol"),
    [
        (mc.Gaussian(0.8), 1e-9),
        (mc.Laplace(1.5), 1e-6),
        (mc.Matern(1.5, 1.0), 1e-8),
        (mc.RationalQuadratic(1.0, 1.0), 1e-8),
        (mc.InverseMultiquadric(1.0, 2.0), 1e-8),
    ],
    ids=repr,
)
def test_A15_norm_of_an_element(kernel, rtol):
    """sum_i a_i k(x_i, .) has the transform Q(w) sum_i a_i exp(i w x_i) and norm sqrt(a'Ka)."""
    x, a = np.array([0.0, 0.4, 2.0]), np.array([1.0, -0.5, 0.8])
    measure = kernel.spectral_measure(1)

    def F(w):
        return 2 * np.pi * measure.density(w[:, None]) * (np.exp(1j * w[:, None] * x) @ a)

    found = bochner_norm(kernel, F)
    assert_allclose(found.value, mc.Element(kernel, x[:, None], a).norm(), rtol=rtol)
    assert_allclose(found.value**2, a @ kernel(x[:, None]) @ a, rtol=rtol)
    assert abs(found.value**2 - a @ kernel(x[:, None]) @ a) <= 2 * found.value * found.error + 1e-13


@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize("s", [0.5, 2.0])
def test_A15_gaussian_bumps_are_inside_from_a_width_on(s, d):
    """exp(-|x|^2 / 2w^2): norm^2 = (w^2 / (s sqrt(2w^2 - s^2)))^d, infinite for w <= s / sqrt 2."""
    for ratio in (0.75, 1.0, 1.5, 10.0):
        w = ratio * s
        F = lambda r, w=w: (np.sqrt(2 * np.pi) * w) ** d * np.exp(-0.5 * (w * r) ** 2)  # noqa: E731
        found = bochner_norm(mc.Gaussian(s), F, d)
        expected = (w**2 / (s * np.sqrt(2 * w**2 - s**2))) ** (d / 2)
        assert found.inside
        assert_allclose(found.value, expected, rtol=1e-9)
    for ratio in (0.1, 0.5, 0.65):
        found = bochner_norm(mc.Gaussian(s), lambda r, w=ratio * s: np.exp(-0.5 * (w * r) ** 2), d)
        assert found.inside is False
        assert found.value == math.inf
    edge = bochner_norm(mc.Gaussian(s), lambda r: np.exp(-0.25 * (s * r) ** 2), d)
    assert edge.inside is None  # w = s / sqrt 2: the integrand is constant up to underflow
    assert math.isnan(edge.value)


def test_A15_norm_of_the_laplace_kernel_is_a_sobolev_norm():
    """norm^2 = 1/2 int (f^2 / l + l f'^2)."""
    length = 1.7
    bumps = [
        (lambda x: np.exp(-(x**2)), lambda w: np.sqrt(np.pi) * np.exp(-(w**2) / 4)),
        (lambda x: max(1.0 - abs(x), 0.0), lambda w: np.sinc(w / (2 * np.pi)) ** 2),
        (lambda x: 1.0 / (1.0 + x**2), lambda w: np.pi * np.exp(-np.abs(w))),
    ]
    for f, F in bumps:
        df = lambda x, f=f: (f(x + 1e-6) - f(x - 1e-6)) / 2e-6  # noqa: E731
        ends = [integrate.quad(lambda x, h=h: h(x) ** 2, 0, b)[0] for h in (f, df)
                for b in (1.0, np.inf)]  # fmt: skip
        if f(2.0) == 0.0:  # the tent ends at 1, where its slope jumps
            ends[1], ends[3] = ends[0], 1.0
        expected = ends[1] / length + length * ends[3]
        found = bochner_norm(mc.Laplace(length), F)
        assert_allclose(found.value**2, expected, rtol=1e-5)


def test_A15_integrability_is_not_needed():
    """q = cos is positive definite and continuous, and not integrable.

    Rudi and Gaillard 2021, Theorem 3, corrected.
    """

    @dataclass(frozen=True)
    class Wave(mc.Radial):
        def profile(self, u):
            return np.cos(np.sqrt(u))

    for step in (0.1, 0.37, 2.0):
        K = Wave()(lattice(1, 25, step))
        assert eigvalsh(K)[0] >= -1e-12 * np.trace(K)
    K = mc.kernels.Constant(1.0)(lattice(1, 25, 0.5))  # q = 1 is another one
    assert eigvalsh(K)[0] >= -1e-12 * np.trace(K)
    areas = [integrate.quad(lambda x: abs(math.cos(x)), 0, n * np.pi, limit=400)[0]
             for n in (10, 20, 40)]  # fmt: skip
    assert_allclose(areas, [20.0, 40.0, 80.0], rtol=1e-6)  # grows like the interval


# --- A16 ------------------------------------------------------------------------------------------


def hermite_rule(terms, n=200):
    """Nodes and weights, exact for products of two eigenfunctions under N(0, sigma^2)."""
    a = 1 / (4 * terms.sigma**2)
    c = math.sqrt(a**2 + a / terms.length_scale**2)
    z, weights = np.polynomial.hermite.hermgauss(n)
    x = z / math.sqrt(2 * c)  # e_i e_j p is a polynomial times exp(-2 c x^2) = exp(-z^2)
    p = np.exp(-(x**2) / (2 * terms.sigma**2)) / math.sqrt(2 * np.pi * terms.sigma**2)
    return x[:, None], weights * np.exp(z**2) * p / math.sqrt(2 * c)


@pytest.mark.parametrize(("length", "sigma"), [(1.0, 1.0), (0.3, 2.0), (5.0, 0.5), (0.05, 1.0)])
def test_A16_eigenfunctions_are_orthonormal(length, sigma):
    terms = MercerExpansion(length, sigma, 60)
    x, w = hermite_rule(terms)
    E = terms.eigenfunctions(x)
    assert_allclose((E * w[:, None]).T @ E, np.eye(60), atol=1e-10)


@pytest.mark.parametrize(("length", "sigma"), [(1.0, 1.0), (0.4, 2.0), (5.0, 0.5)])
def test_A16_eigen_equation(length, sigma):
    """int k(x, y) e_j(y) p(y) dy = lam_j e_j(x), by quadrature over a long interval."""
    terms = MercerExpansion(length, sigma, 8)
    y = np.linspace(-12 * sigma, 12 * sigma, 6001)
    p = np.exp(-(y**2) / (2 * sigma**2)) / np.sqrt(2 * np.pi * sigma**2)
    x = np.array([[-1.3], [0.0], [0.4], [2.0]]) * sigma
    K = mc.Gaussian(length)(x, y[:, None])
    integral = (K * p) @ terms.eigenfunctions(y[:, None]) * (y[1] - y[0])
    assert_allclose(integral, terms.eigenvalues * terms.eigenfunctions(x), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_A16_the_sum_is_the_kernel_and_the_bound_holds(d, rng):
    X = rng.normal(size=(40, d))
    K = mc.Gaussian(1.5)(X)
    for n in (1, 7, 40, 200):
        terms = MercerExpansion(1.5, 1.0, n, d)
        gap = np.abs(K - terms.kernel_values(X))
        assert (gap <= terms.bound(X)).all()
    assert d > 1 or gap.max() < 1e-12
    assert gap.max() < 2e-2


@pytest.mark.parametrize("d", [1, 2, 4])
def test_A16_eigenvalues_sum_to_one(d):
    for n in (1, 5, 17, 300):
        terms = MercerExpansion(0.7, 1.3, n, d)
        assert_allclose(terms.eigenvalues.sum() + terms.tail, 1.0, rtol=1e-13)
        assert (np.diff(terms.eigenvalues) <= 1e-16).all()


def test_A16_the_tail_is_the_mean_of_what_is_missing():
    terms = MercerExpansion(0.6, 1.0, 6)
    x, w = hermite_rule(terms)
    kept = np.sum(w * np.sum(terms.features(x) ** 2, axis=1))
    assert_allclose(terms.tail, 1.0 - kept, rtol=1e-10)


def test_A16_the_density_must_have_a_half_in_its_exponent():
    """exp(-x^2) / sqrt(2 pi) has mass .7071, and e_j are not orthonormal under it.

    Sakulwongtana, Section 2.2, corrected.
    """
    wrong = lambda x: np.exp(-(x**2)) / np.sqrt(2 * np.pi)  # noqa: E731
    assert_allclose(integrate.quad(wrong, -np.inf, np.inf)[0], 0.7071, atol=5e-5)
    terms = MercerExpansion(1.0, 1.0, 3)

    def product(density, i, j):
        f = lambda x: np.prod(terms.eigenfunctions([[x]])[0, [i, j]]) * density(x)  # noqa: E731
        return integrate.quad(f, -12, 12)[0]

    right = lambda x: np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)  # noqa: E731
    assert_allclose([product(right, 0, 0), product(right, 0, 2)], [1.0, 0.0], atol=1e-10)
    assert abs(product(wrong, 0, 0) - 1.0) > 0.1
    assert abs(product(wrong, 0, 2)) > 0.1


# --- A18 (see also test_part_A.py) ------------------------------------------------------

# --- A19 ------------------------------------------------------------------------------------------

SHADOWED = [
    mc.Gaussian(1.3),
    mc.Laplace(0.7),
    mc.Matern(0.5, 2.0),
    mc.Matern(1.5, 0.9),
    mc.RationalQuadratic(1.7, 0.8),
    mc.InverseMultiquadric(2.0, 1.5),
    Uniform(2.0),
    mc.Gaussian(1.0) + 3.0 * mc.InverseMultiquadric(1.0, 2.5),
    2.0 * (mc.Laplace(1.0) + mc.Gaussian(0.5)),
]


@pytest.mark.parametrize("g", SHADOWED, ids=repr)
def test_A19_the_slope_of_a_shadow_is_minus_the_kernel(g):
    """k' = -g (c = 1), and so k(u) = int_u^inf g: a minus, as profiles fall."""
    u = np.linspace(0.01, 6.0, 50)
    k = shadow(g)
    assert_allclose(slope(k, u), -profile(g, u), rtol=1e-11, atol=1e-13)
    assert_allclose(shadow_constant(k, g), 1.0, rtol=1e-9)
    assert_allclose(shadow_constant(5.0 * k, g), 5.0, rtol=1e-9)


@pytest.mark.parametrize("g", SHADOWED[:6], ids=repr)
def test_A19_a_shadow_is_an_integral(g):
    """Of g(v) from u on, v = e^s: that is where the heavy tails are."""
    for u in (0.05, 1.0, 3.0):
        f = lambda s: float(profile(g, np.exp([s]))[0]) * math.exp(s)  # noqa: E731
        integral = integrate.quad(f, math.log(u), 60.0, limit=500, points=[0.0, 3.0, 8.0, 20.0])[0]
        assert_allclose(profile(shadow(g), np.array([u]))[0], integral, rtol=1e-6)


def test_A19_the_gaussian_is_its_own_shadow():
    for s in (0.1, 1.0, 30.0):
        assert_allclose(shadow_constant(mc.Gaussian(s), mc.Gaussian(s)), 1 / (2 * s**2), rtol=1e-12)
        assert shadow(mc.Gaussian(s)) == 2.0 * s**2 * mc.Gaussian(s)


def test_A19_epanechnikov_is_the_shadow_of_the_uniform_kernel():
    assert shadow(Uniform(2.5)) == mc.Epanechnikov(2.5)
    assert_allclose(shadow_constant(mc.Epanechnikov(2.5), Uniform(2.5)), 1.0, rtol=1e-12)
    assert shadow_constant(mc.Epanechnikov(2.5), Uniform(2.0)) is None


@pytest.mark.parametrize("g", [mc.Gaussian(0.8), mc.Laplace(1.0), mc.InverseMultiquadric(1.0, 2.0)])
def test_A19_gradients_of_the_shadow_are_mean_shifts(g, rng):
    """grad sum_i k(x_i, y) = 2 (sum_i g_i) (mean of x_i weighted by g_i, minus y), for k' = -g."""
    X, y = rng.normal(size=(20, 2)), np.array([[0.3, -0.2]])
    weights = g(X, y)[:, 0]
    shift = weights @ X / weights.sum() - y[0]
    gradient = mc.Element(shadow(g), X, np.ones(20)).gradient(y)[0]
    assert_allclose(gradient, 2.0 * weights.sum() * shift, rtol=1e-10)


# --- A20 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Linear(),
        mc.Polynomial(2),
        mc.Polynomial(3, scale=2.0, offset=0.0),
        mc.Exponential(1.5),
        mc.Linear() * mc.Exponential(2.0) + 1.0,
    ],
    ids=repr,
)
def test_A20_kernels_satisfy_the_conditions(kernel):
    found = projective_conditions(kernel, 8.0)
    assert found.holds
    assert min(found.minima) >= 0.0


@dataclass(frozen=True)
class Written(mc.DotProduct):
    which: str

    def profile(self, t):
        profiles = {
            "falling": 2.0 - t,
            "negative": t - 1.0,
            "bent": t - 0.2 * t**2,
            "not enough": t - t**2 + t**3,
        }
        return profiles[self.which]


@pytest.mark.parametrize(
    ("which", "violated"),
    [
        ("falling", ("f", "f'", "f' + t f''")),
        ("negative", ("f",)),
        ("bent", ("f", "f'", "f' + t f''")),
    ],
)
def test_A20_what_violates_them_is_no_kernel(which, violated):
    assert projective_conditions(Written(which), 6.0).violated == violated
    least = [eigvalsh(Written(which)(lattice(2, 4, step) + 0.1))[0] for step in (0.2, 0.5, 1.0)]
    assert min(least) < -1e-3


def test_A20_the_conditions_do_not_suffice():
    """t - t^2 + t^3 has them on the whole half line; a'Ka = -4 for a = (1, 1) on -1 and 1."""
    kernel = Written("not enough")
    for largest in (0.5, 2.0, 50.0):
        assert projective_conditions(kernel, largest).holds
    assert_allclose(np.ones(2) @ kernel([[-1.0], [1.0]]) @ np.ones(2), -4.0)


def test_A20_minima_are_found():
    """f' + t f'' of t - t^2 + t^3 is 1 - 4t + 9t^2: 5/9 at 2/9; f' is 2/3 at 1/3."""
    found = projective_conditions(Written("not enough"), 5.0)
    assert_allclose(found.minima, [0.0, 2 / 3, 5 / 9], atol=1e-12)
    assert_allclose(found.at, [0.0, 1 / 3, 2 / 9], atol=1e-4)


# --- A21 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7, 12])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_A21_polynomials_see_finitely_many_moments(degree, d):
    kernel = mc.Polynomial(degree, scale=2.0)
    for found in (is_characteristic(kernel, d), is_universal(kernel, d)):
        assert found.holds is False
        w = found.witness
        assert w.X.shape[1] == d
        assert mmd(kernel, w) < 1e-6
        for power in range(degree + 1):
            moments = [p @ Z**power for Z, p in ((w.X, w.X_weights), (w.Y, w.Y_weights))]
            assert_allclose(*moments, atol=1e-14)
        assert mmd(mc.Polynomial(degree + 1), w) > 1e-3 * 0.5**degree  # the next one sees more
        assert mmd(mc.Gaussian(0.3), w) > 1e-2


BLIND = [
    (mc.Gaussian(1.0).transform(mc.Columns([0])), 2),
    (mc.Laplace(1.0).transform(mc.Columns([2, 0])), 4),
    (mc.Gaussian(1.0).transform(mc.kernels.Matrix([[1.0, 1.0], [2.0, 2.0]])), 2),
    (mc.Matern(1.5).transform(mc.kernels.Matrix([[1.0, 0.0, 3.0], [0.0, 1.0, -1.0]])), 3),
    (mc.Gaussian(1.0).transform(mc.Columns([0])) + mc.Laplace(1.0).transform(mc.Columns([1])), 2),
    (mc.Gaussian(1.0).transform(mc.Columns([0])) + mc.Polynomial(2), 2),
    (mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Linear(), 3),
    (mc.kernels.Constant(2.0), 2),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "d"), BLIND, ids=repr)
def test_A21_what_a_kernel_is_blind_to_it_cannot_tell_apart(kernel, d):
    found = is_characteristic(kernel, d)
    assert found.holds is False
    assert is_universal(kernel, d).holds is False
    assert mmd(kernel, found.witness) < 1e-7
    assert mmd(mc.Gaussian(1.0), found.witness) > 0.05
    points = [Z.tolist() for Z in (found.witness.X, found.witness.Y)]
    assert points[0] != points[1]


FULL = [
    (mc.Gaussian(1.0), 3),
    (mc.Laplace(2.0).transform(mc.Scales([1.0, 1e-20])), 2),
    (mc.Matern(2.5).transform(mc.Columns([1, 0])), 2),
    (mc.Gaussian(1.0).transform(mc.kernels.Matrix([[1.0, 0.0], [0.5, 2.0], [1.0, 1.0]])), 2),
    (mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Laplace(1.0).transform(mc.Columns([1])), 2),
    (mc.Gaussian(1.0) + mc.Linear(), 2),
    (3.0 * mc.InverseMultiquadric(1.0, 0.5) + 1.0, 2),
]


@pytest.mark.parametrize(("kernel", "d"), FULL, ids=repr)
def test_A21_full_spectral_support_is_enough(kernel, d, rng):
    assert is_characteristic(kernel, d).holds is True
    assert is_universal(kernel, d).holds is True
    X = rng.normal(size=(12, d)) * (1.0 if d < 3 else 2.0)
    assert eigvalsh(kernel(X))[0] > 0  # distinct points have independent features


class Band(SpectralMeasure):
    """Uniform frequencies in [-1, 1]."""

    dim, mass = 1, 1.0

    def _density(self, w):
        return 0.5 * (np.abs(w[:, 0]) <= 1.0)

    def draw(self, size, rng):
        return rng.uniform(-1.0, 1.0, (size, 1))


@dataclass(frozen=True)
class Sinc(mc.Radial):
    flags = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE)

    def profile(self, u):
        return np.sinc(np.sqrt(u) / np.pi)

    def spectral_measure(self, dim):
        return Band()


def test_A21_a_band_of_frequencies_is_not_enough():
    """Two densities whose transforms agree on [-1, 1] have one embedding under sin(x) / x."""
    assert is_characteristic(Sinc(), 1).holds is False
    x = np.linspace(-400.0, 400.0, 160_001)
    with np.errstate(invalid="ignore"):
        fejer = np.where(x == 0, 1 / (2 * np.pi), (1 - np.cos(x)) / (np.pi * x**2))
    other = fejer * (1.0 + np.cos(3.0 * x))  # transform: triangles at 0 and at -3 and 3
    y, step = np.array([[0.0], [0.7], [2.5]]), x[1] - x[0]
    for density in (fejer, other):
        assert_allclose(density.sum() * step, 1.0, atol=2e-3)
    K, G = Sinc()(y, x[:, None]), mc.Gaussian(0.3)(y, x[:, None])
    assert np.abs(K @ (fejer - other)).max() * step < 1e-4
    assert np.abs(G @ (fejer - other)).max() * step > 0.05
    inside = bochner_norm(Sinc(), lambda w: np.pi * (np.abs(w) <= 1.0), breaks=[1.0])
    assert_allclose(inside.value, 1.0, rtol=1e-9)  # k(., 0)
    assert bochner_norm(Sinc(), lambda w: np.exp(-(w**2))).inside is False
