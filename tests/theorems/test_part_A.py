"""Part A of the specification: kernels. Each test states the law of its id."""

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate
from scipy.linalg import eigvalsh, null_space
from scipy.special import comb, poch

import mercer as mc
from mercer.engine import evaluate
from mercer.testing import awkward_kernels, check_kernel, lattice

LINE = np.arange(3.0)[:, None]


def derivatives(kernel, u):
    """k, k' and k'' of a profile of one variable, as the library computes them."""
    jet = evaluate(kernel.program.profile, [np.asarray(u, dtype=float)], 2)
    return [np.broadcast_to(a, np.shape(u)) for a in (jet.value, jet.first[0], jet.second[0][0])]


def cauchy_derivatives(f, u, radius, order):
    """f, f', ..., at u from Cauchy's integral: exact to rounding for analytic f."""
    z = np.exp(2j * np.pi * np.arange(64) / 64)
    values = f(u + radius * z)
    return [math.factorial(m) / radius**m * np.mean(values * z**-m).real for m in range(order + 1)]


def centred(K):
    return K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()


def multinomial(powers):
    return math.factorial(sum(powers)) / math.prod(map(math.factorial, powers))


def monomials(X, degree, weighted=True):
    """All monomials of a degree, weighted so that their inner product is <x, y>^degree."""
    columns = []
    for chosen in combinations_with_replacement(range(X.shape[1]), degree):
        powers = [chosen.count(i) for i in range(X.shape[1])]
        weight = math.sqrt(multinomial(powers)) if weighted else 1.0
        columns.append(weight * np.prod(X ** np.array(powers), axis=1))
    return np.stack(columns, axis=1)


def features(kernel, X):
    """Explicit features of linear and polynomial kernels."""
    if isinstance(kernel, mc.Linear):
        return X
    extended = np.hstack([X / np.sqrt(kernel.scale), np.full((len(X), 1), np.sqrt(kernel.offset))])
    return monomials(extended, kernel.degree)


# --- A1 -------------------------------------------------------------------------------------------

POSITIVE = [mc.Gaussian(1.0), mc.Laplace(1.0), mc.Matern(2.5), mc.RationalQuadratic(0.5),
            mc.InverseMultiquadric(1.0, 10.0), mc.Linear(), mc.Polynomial(3), mc.Exponential(4.0),
            mc.kernels.Constant(1.0)]  # fmt: skip


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("kernel", POSITIVE, ids=repr)
def test_A1_positive_definite_kernels_have_positive_gram_matrices(kernel, d):
    for step in (0.1, 0.5, 1.5):
        K = kernel(lattice(d, {1: 20, 2: 6, 3: 4, 5: 2}[d], step))
        assert eigvalsh(K)[0] >= -1e-10 * np.trace(K)
        assert eigvalsh(centred(K))[0] >= -1e-10 * np.trace(K)  # and so conditionally, too


def test_A1_conditionally_positive_definite_is_positive_on_sums_zero(rng):
    K = mc.NegativeDistance(1.0)(lattice(2, 5, 0.7))
    a = rng.normal(size=(25, 100))
    assert (np.einsum("ib,ij,jb->b", a - a.mean(0), K, a - a.mean(0)) >= 0).all()
    assert eigvalsh(K)[0] < 0


def test_A1_strictly_positive_definite_means_zero_only_at_zero(rng):
    X = rng.normal(size=(12, 2))
    assert eigvalsh(mc.Gaussian(0.5)(X))[0] > 1e-6
    flat = null_space(mc.Polynomial(2)(X))  # 12 points, 6 features: positive, not strictly
    assert flat.shape[1] == 6
    assert_allclose(mc.Polynomial(2)(X) @ flat, 0.0, atol=1e-10)
    X[3] = X[7]  # equal points take strictness away from every kernel
    assert abs(eigvalsh(mc.Gaussian(0.5)(X))[0]) < 1e-14


# --- A2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [0.3, 1.0, 4.0])
def test_A2_every_derivative_of_the_gaussian_profile_is_a_multiple_of_it(s):
    k = mc.Gaussian(s)
    for u in (0.1 * s**2, s**2, 3 * s**2):
        found = cauchy_derivatives(k.profile, u, s**2, 5)
        expected = [(-1 / (2 * s**2)) ** m * np.exp(-u / (2 * s**2)) for m in range(6)]
        for m in range(6):
            assert_allclose(found[m], expected[m], rtol=1e-9)
        assert_allclose([a[()] for a in derivatives(k, u)], expected[:3], rtol=1e-14)


def test_A2_conventions_convert_exactly():
    """exp(-d^2/2s^2), h = s, exp(-d^2/g^2) with g = sqrt(2) s, exp(-a d^2) with a = 1/2s^2."""
    s, d = 0.7, np.array([[0.0], [0.5], [2.0]])
    truth = mc.Gaussian(s)([[0.0]], d)
    for same in (mc.Gaussian.from_width(np.sqrt(2) * s), mc.Gaussian.from_gamma(1 / (2 * s**2))):
        assert_allclose(same([[0.0]], d), truth, rtol=1e-15)


# --- A3 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("c", "p"), [(1.0, 0.5), (1.0, 10.0), (0.3, 2.0)])
def test_A3_derivatives_of_the_inverse_quadratic_alternate(c, p):
    k = mc.InverseMultiquadric(c, p)
    for u in (0.0, 0.5, 4.0):
        found = cauchy_derivatives(k.profile, u, 0.5 * (c + u), 6)
        expected = [(-1) ** m * poch(p, m) * (c + u) ** (-p - m) for m in range(7)]
        assert_allclose(found, expected, rtol=1e-7)
        assert [np.sign(f) for f in found] == [(-1) ** m for m in range(7)]
        assert_allclose([a[()] for a in derivatives(k, u)], expected[:3], rtol=1e-13)


# --- A4 -------------------------------------------------------------------------------------------


def test_A4_profile_and_slope():
    k = mc.Epanechnikov(2.0, 1.0)
    value, first, second = derivatives(k, np.array([0.0, 0.5, 1.0, 1.5]))
    assert value.tolist() == [2.0, 1.5, 1.0, 0.0]
    assert first.tolist() == [-1.0, -1.0, -1.0, 0.0]
    assert second.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_A4_is_not_positive_definite():
    K = mc.Epanechnikov(1.0, 0.5)([[0.0], [0.3], [0.6]])
    assert_allclose(K, [[1, 0.91, 0.64], [0.91, 1, 0.91], [0.64, 0.91, 1]], rtol=1e-14)
    assert_allclose(np.linalg.det(K), -0.005832, rtol=1e-10)
    assert_allclose(eigvalsh(K)[0], -0.0061, atol=5e-5)
    K = mc.Epanechnikov(1.0, 0.5)(lattice(1, 5, 0.35))
    assert_allclose(eigvalsh(K)[0], -0.169, atol=5e-4)


@pytest.mark.parametrize("c", [0.1, 1.0, 50.0])
def test_A4_three_near_points_refute_every_height(c):
    """Near points see c - d^2, which is only conditionally positive definite."""
    h = 0.05 * np.sqrt(c)
    for rho in (None, c / 10, 10 * c):
        K = mc.Epanechnikov(c, rho)(h * LINE)
        assert eigvalsh(K)[0] < -1e-8 * c


def test_A4_is_not_conditionally_positive_definite():
    K = mc.Epanechnikov(0.25, 1.0)(lattice(1, 8, 0.498))
    assert_allclose(eigvalsh(centred(K))[0], -0.95422, atol=5e-6)
    for c, rho in ((1.0, None), (1.0, 0.5), (0.5, 1.0)):
        assert mc.Epanechnikov(c, rho).flags.definiteness is mc.kernels.Definiteness.INDEFINITE
        check_kernel(mc.Epanechnikov(c, rho))  # which demands a witness


def test_A4_default_is_the_only_convex_one():
    assert mc.Epanechnikov(3.0).flags.convex_profile is True
    for rho in (1.0, 2.9, 3.1):
        assert mc.Epanechnikov(3.0, rho).flags.convex_profile is False


def test_A4_a_jump_breaks_descent():
    """One step to the mean of the window raises -psi where c > rho, and lowers it where c = rho."""
    X, rise = np.array([[-0.7], [0.6], [0.6]]), {}
    for c in (1.0, 0.5):
        psi = mc.Element(mc.Epanechnikov(c, 0.5), X, np.ones(3))
        rise[c] = -psi([[0.0], [X.mean()]])
    assert_allclose(rise[1.0], [-1.79, -1.6244], atol=5e-5)
    assert_allclose(rise[0.5], [-0.29, -0.6244], atol=5e-5)


# --- A5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.5, 1.0, 3.0])
def test_A5_derivatives_of_the_laplace_profile(lam):
    k, r = mc.Laplace(1 / lam), np.array([0.01, 0.3, 1.0, 7.0])
    e = np.exp(-lam * np.sqrt(r))
    value, first, second = derivatives(k, r)
    assert_allclose(value, e, rtol=1e-14)
    assert_allclose(first, -lam * e / (2 * np.sqrt(r)), rtol=1e-13)
    assert_allclose(second, e * (lam**2 / (4 * r) + lam / (4 * r**1.5)), rtol=1e-13)
    numeric = [cauchy_derivatives(k.profile, u, 0.5 * u, 2) for u in r]
    assert_allclose(np.transpose(numeric), [value, first, second], rtol=1e-8)


def test_A5_slope_at_zero_is_infinite():
    with np.errstate(divide="ignore", invalid="ignore"):
        assert derivatives(mc.Laplace(1.0), 0.0)[1] == -np.inf
    assert mc.Laplace(1.0).program.cusps == (True,)
    assert mc.Gaussian(1.0).program.cusps == (False,)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_A5_is_positive_definite(d):
    for tau in (0.1, 1.0, 10.0):
        assert eigvalsh(mc.Laplace(1 / tau)(lattice(d, {1: 20, 2: 6, 3: 4, 5: 2}[d])))[0] > 0


# --- A6 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "form"), [(1.0, 4.0), (2.0, 0.0), (2.5, -3.31), (4.0, -24.0)])
def test_A6_quadratic_form_of_second_differences(p, form):
    a = np.array([1.0, -2.0, 1.0])
    for c in (0.0, 7.0):  # a constant does not matter where coefficients sum to zero
        assert_allclose(a @ mc.NegativeDistance(p, c)(LINE) @ a, form, atol=5e-3)


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0, 1.5, 1.9, 2.0, 2.1, 3.0, 4.0, 6.0])
def test_A6_is_conditionally_positive_definite_exactly_up_to_two(p):
    k = mc.NegativeDistance(p)
    least = []
    for d in (1, 2, 3, 5):
        K = centred(k(lattice(d, {1: 12, 2: 5, 3: 3, 5: 2}[d])))
        least.append(eigvalsh(K)[0] / np.trace(K))
    assert (min(least) >= -1e-10) == (p <= 2)
    claim = mc.kernels.Definiteness.CONDITIONAL if p <= 2 else mc.kernels.Definiteness.INDEFINITE
    assert k.flags.definiteness is claim


# --- A7 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("r", [1, 2, 3, 5])
def test_A7_homogeneous_kernel_is_an_inner_product_of_weighted_monomials(d, r, rng):
    X, Y = rng.normal(size=(5, d)), rng.normal(size=(4, d))
    phi = monomials(X, r)
    assert phi.shape[1] == comb(d + r - 1, r, exact=True)
    K = mc.Polynomial(r, offset=0.0)(X, Y)
    assert_allclose(phi @ monomials(Y, r).T, K, rtol=1e-11, atol=1e-12)
    plain = monomials(X, r, weighted=False) @ monomials(Y, r, weighted=False).T
    assert np.allclose(plain, K) == (d == 1 or r == 1)


def test_A7_derivatives():
    p, s, c = 4, 2.0, 0.5
    u = np.array([-3.0, -0.2, 0.0, 1.0, 5.0])
    value, first, second = derivatives(mc.Polynomial(p, scale=s, offset=c), u)
    assert_allclose(value, (u / s + c) ** p, rtol=1e-14)
    assert_allclose(first, p / s * (u / s + c) ** (p - 1), rtol=1e-14)
    assert_allclose(second, p * (p - 1) / s**2 * (u / s + c) ** (p - 2), rtol=1e-14)


def test_A7_domain_of_the_parameters():
    for bad in ({"degree": 0}, {"degree": 1.5}, {"offset": -1.0}, {"scale": 0.0}):
        with pytest.raises(mc.InputError):
            mc.Polynomial(**bad)


# --- A8 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [0.5, 1.0, 3.0])
def test_A8_exponential_is_its_power_series(s, rng):
    X = rng.uniform(-1, 1, size=(6, 2))
    t = X @ X.T / s
    series = sum(t**n / math.factorial(n) for n in range(40))
    assert_allclose(mc.Exponential(s)(X), series, rtol=1e-12)
    partial = sum(
        (1 / math.factorial(n)) * mc.Polynomial(n, scale=s, offset=0.0)(X) for n in range(1, 30)
    )
    assert_allclose(mc.Exponential(s)(X), 1.0 + partial, rtol=1e-11)
    assert eigvalsh(mc.Exponential(s)(X))[0] > -1e-12


# --- A10 ------------------------------------------------------------------------------------------


@pytest.fixture
def cloud(rng):
    return rng.normal(size=(7, 3))


EXPLICIT = [mc.Linear(), mc.Polynomial(2, scale=2.0, offset=0.5), mc.Polynomial(3, offset=0.0)]


@pytest.mark.parametrize("kernel", EXPLICIT, ids=repr)
def test_A10_multiples_have_scaled_features(kernel, cloud):
    phi = np.sqrt(2.5) * features(kernel, cloud)
    assert_allclose((2.5 * kernel)(cloud), phi @ phi.T, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("a", EXPLICIT, ids=repr)
@pytest.mark.parametrize("b", EXPLICIT, ids=repr)
def test_A10_sums_concatenate_and_products_multiply_features(a, b, cloud):
    phi, psi = features(a, cloud), features(b, cloud)
    both = np.hstack([phi, psi])
    assert_allclose((a + b)(cloud), both @ both.T, rtol=1e-11, atol=1e-11)
    outer = np.einsum("ni,nj->nij", phi, psi).reshape(len(cloud), -1)
    assert_allclose((a * b)(cloud), outer @ outer.T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel", EXPLICIT, ids=repr)
def test_A10_maps_of_points_map_features(kernel, cloud, rng):
    A = rng.normal(size=(2, 3))
    phi = features(kernel, cloud @ A.T)
    assert_allclose(
        kernel.transform(mc.kernels.Matrix(A))(cloud), phi @ phi.T, rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_A10_results_are_positive_definite(kernel):
    for step in (0.3, 1.1):
        K = kernel(lattice(3, 4, step) - 1.0)
        assert eigvalsh(K)[0] >= -1e-10 * np.trace(K)


def test_A10_differences_are_no_kernels(rng):
    """x y - 2 x y is negative; so is an eigenvalue of the absolute difference of two kernels."""
    x = np.array([[1.0], [2.0]])
    assert eigvalsh(mc.Linear()(x) - (2.0 * mc.Linear())(x))[0] < 0
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    K1, K2 = mc.Precomputed(A + np.eye(3)), mc.Precomputed(np.eye(3))
    assert eigvalsh(K1([0, 1, 2]))[0] > 0
    gap = np.abs(K1([0, 1, 2]) - K2([0, 1, 2]))
    assert_allclose(eigvalsh(gap)[0], 1 - np.sqrt(2.0), rtol=1e-12)  # -0.414
    for refused in (lambda: K1 - K2, lambda: -K1, lambda: K1 * -1.0):
        with pytest.raises(mc.InputError):
            refused()


# --- A15 ------------------------------------------------------------------------------------------

STATIONARY = [
    mc.Gaussian(0.8),
    mc.Laplace(1.5),
    mc.Matern(1.5, 1.0),
    mc.RationalQuadratic(1.0, 1.0),
]


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_A15_norm_is_an_integral_over_frequencies(kernel, rng):
    """|sum_i a_i k(x_i, .)|^2 = int |sum_i a_i exp(-i w x_i)|^2 dLambda(w)."""
    x, a = np.array([0.0, 0.4, 2.0]), np.array([1.0, -0.5, 0.8])
    measure = kernel.spectral_measure(1)
    norm = mc.Element(kernel, x[:, None], a).norm()
    gaps, weights = x[:, None] - x, np.outer(a, a)

    def density(w):
        return float(measure.density([[w]])[0])

    total = 0.0
    for gap, weight in zip(gaps.ravel(), weights.ravel(), strict=True):
        kind = {"weight": "cos", "wvar": abs(gap)} if gap else {}
        total += weight * 2 * integrate.quad(density, 0, np.inf, **kind)[0]
    assert_allclose(norm**2, total, rtol=1e-6)


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_A15_mass_of_the_measure_is_the_squared_norm_of_a_feature(kernel):
    for d in (1, 2, 7):
        phi = mc.feature(kernel, np.ones((1, d)))
        assert_allclose(kernel.spectral_measure(d).mass, phi.norm() ** 2, rtol=1e-14)


def test_A15_random_features_converge_like_the_root_of_their_number(rng):
    X, k = rng.normal(size=(12, 2)), mc.Gaussian(1.0)
    gaps, truth = (X[:, None] - X).reshape(-1, 2), k(X).ravel()

    def error(size, seed):
        frequencies = k.spectral_measure(2).sample(size, seed)
        return np.sqrt(np.mean((np.cos(gaps @ frequencies.T).mean(axis=1) - truth) ** 2))

    few, some, many = (np.mean([error(n, s) for s in range(20)]) for n in (100, 400, 1600))
    assert_allclose([few / some, some / many], 2.0, rtol=0.2)


# --- A18 ------------------------------------------------------------------------------------------

MONOTONE = [
    mc.Laplace(0.7),
    mc.Matern(0.5),
    mc.Matern(1.5, 2.0),
    mc.Matern(2.5),
    mc.RationalQuadratic(0.4),
    mc.InverseMultiquadric(2.0, 0.5),
    mc.InverseMultiquadric(1.0, 3.0),
    2.0 * mc.Laplace(1.0),
    mc.Gaussian(1.0) * mc.InverseMultiquadric(1.0, 2.0),
]


@pytest.mark.parametrize("kernel", MONOTONE, ids=repr)
def test_A18_profile_is_the_laplace_transform_of_its_mixing_measure(kernel):
    mu = kernel.mixing_measure()
    for u in (0.0, 0.3, 1.0, 5.0):
        integral, _ = integrate.quad(
            lambda s, u=u: float(mu.density(np.exp(s))) * np.exp(s - u * np.exp(s)),
            -60.0, 60.0, limit=500, points=[-5.0, -1.0, 0.0, 1.0, 5.0],
        )  # fmt: skip
        assert_allclose(integral, kernel([[0.0]], [[np.sqrt(u)]])[0, 0], rtol=1e-6)


def test_A18_mixing_measures_as_stated():
    """A point at 1/2s^2; t^(p-1) e^(-ct) / Gamma(p) for the inverse quadratic; Levy's law."""
    t = np.array([0.05, 0.4, 2.0])
    assert np.array_equal(mc.Gaussian(0.5).mixing_measure().sample(2, 0), [2.0, 2.0])
    c, p, lam = 1.7, 2.3, 0.6
    density = mc.InverseMultiquadric(c, p).mixing_measure().density(t)
    assert_allclose(density, t ** (p - 1) * np.exp(-c * t) / math.gamma(p), rtol=1e-12)
    density = mc.Laplace(1 / lam).mixing_measure().density(t)
    expected = lam / (2 * np.sqrt(np.pi)) * t**-1.5 * np.exp(-(lam**2) / (4 * t))
    assert_allclose(density, expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", [*MONOTONE, mc.Gaussian(1.0)], ids=repr)
def test_A18_derivatives_alternate_and_the_profile_is_convex(kernel):
    u = np.logspace(-3, 1.5, 40)
    for order, values in enumerate(derivatives(kernel, u)):
        assert ((-1) ** order * values > 0).all()
    steps = derivatives(kernel, 0.1 * np.arange(1, 60))[0]
    for order in range(1, 9):
        steps = -np.diff(steps)
        assert steps.min() > -1e-13 * 2**order


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7])
def test_A18_monotone_kernels_are_positive_definite_in_every_dimension(d):
    for kernel in MONOTONE:
        K = kernel(lattice(d, {1: 15, 2: 5, 3: 3}.get(d, 2), 0.6))
        assert eigvalsh(K)[0] >= -1e-10 * np.trace(K)


@dataclass(frozen=True)
class Cosine(mc.Radial):
    """cos(|x - y|), with the derivatives of cos(sqrt u)."""

    def profile(self, u):
        return np.cos(np.sqrt(u))

    def profile_derivatives(self, u):
        r = np.sqrt(u)
        return -np.sin(r) / (2 * r), (np.sin(r) / r - np.cos(r)) / (4 * u)


def test_A18_convexity_needs_complete_monotonicity():
    """cos(|x - y|) is positive definite on the line, but its profile is not convex."""
    K = Cosine()(lattice(1, 30, 0.37))
    assert eigvalsh(K)[0] >= -1e-10 * np.trace(K)
    assert_allclose(derivatives(Cosine(), (2 * np.pi) ** 2)[2], -0.0063, atol=5e-5)
    assert eigvalsh(Cosine()(lattice(2, 5, 1.0)))[0] < -0.1  # and not positive in the plane


# --- A19 ------------------------------------------------------------------------------------------


def test_A19_the_gaussian_is_its_own_shadow():
    s, u = 1.3, np.linspace(0.0, 9.0, 10)
    value, first, _ = derivatives(mc.Gaussian(s), u)
    assert_allclose(first, -(1 / (2 * s**2)) * value, rtol=1e-14)


def test_A19_epanechnikov_is_the_shadow_of_the_uniform_kernel():
    """k' = -g with g = 1 in the window and 0 outside; continuous only for c = rho."""
    rho, u = 2.0, np.linspace(0.0, 4.0, 41)
    uniform = (u <= rho).astype(float)
    assert np.array_equal(derivatives(mc.Epanechnikov(rho), u)[1], -uniform)
    primitive = np.maximum(rho - u, 0.0)  # what integrating -g from infinity gives
    assert_allclose(derivatives(mc.Epanechnikov(rho), u)[0], primitive, atol=1e-15)


def test_A19_other_shadows():
    """Matern's profiles are shadows of the next rougher one; inverse quadratics likewise."""
    u = np.linspace(0.1, 5.0, 9)
    first = derivatives(mc.Matern(2.5, np.sqrt(5.0)), u)[1]
    rougher = derivatives(mc.Matern(1.5, np.sqrt(3.0)), u)[0]
    assert_allclose(first, -rougher / 6, rtol=1e-12)
    first = derivatives(mc.InverseMultiquadric(2.0, 1.5), u)[1]
    assert_allclose(first, -1.5 * derivatives(mc.InverseMultiquadric(2.0, 2.5), u)[0], rtol=1e-13)


# --- A20 ------------------------------------------------------------------------------------------

PROJECTIVE = [
    mc.Linear(),
    mc.Polynomial(2),
    mc.Polynomial(3, scale=2.0, offset=0.0),
    mc.Polynomial(5, offset=2.0),
    mc.Exponential(1.5),
    mc.Linear() * mc.Exponential(2.0) + 1.0,
]


@pytest.mark.parametrize("kernel", PROJECTIVE, ids=repr)
def test_A20_necessary_conditions(kernel):
    u = np.linspace(0.0, 6.0, 50)
    f, first, second = derivatives(kernel, u)
    assert (f >= 0).all()
    assert (first >= 0).all()
    assert (first + u * second >= 0).all()


@dataclass(frozen=True)
class Written(mc.DotProduct):
    which: str

    def profile(self, t):
        return {"falling": 2.0 - t, "negative": t - 1.0, "bent": t - 0.2 * t**2}[self.which]


@pytest.mark.parametrize("which", ["falling", "negative", "bent"])
def test_A20_a_profile_that_breaks_them_is_no_kernel(which):
    u = np.linspace(0.0, 6.0, 50)
    f, first, second = derivatives(Written(which), u)
    assert (f < 0).any() or (first < 0).any() or (first + u * second < 0).any()
    least = [eigvalsh(Written(which)(lattice(2, 4, step) + 0.1))[0] for step in (0.2, 0.5, 1.0)]
    assert min(least) < -1e-3


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 6])
def test_A20_convex_profiles(p):
    """exp always; even p, and p = 1; odd p where <x, y> >= -c s."""
    s, c = 2.0, 1.5
    k, u = mc.Polynomial(p, scale=s, offset=c), np.linspace(-20.0, 20.0, 81)
    second = derivatives(k, u)[2]
    assert (second[u >= -c * s] >= 0).all()
    everywhere = bool((second >= 0).all())
    assert everywhere == (p % 2 == 0 or p == 1)
    assert (k.flags.convex_profile is True) == everywhere
    assert mc.Exponential(2.0).flags.convex_profile is True
    assert (derivatives(mc.Exponential(2.0), u)[2] > 0).all()


# --- A21 ------------------------------------------------------------------------------------------


def equal_moments():
    """Two samples of equal mean and covariance: a normal quadrature, and two points."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    return (nodes[:, None], weights / weights.sum()), (np.array([[-1.0], [1.0]]), np.full(2, 0.5))


@pytest.mark.parametrize(
    ("kernel", "separates"),
    [
        (mc.Gaussian(1.0), True),
        (mc.Laplace(1.0), True),
        (mc.Matern(2.5), True),
        (mc.Gaussian(1.0) + mc.Linear(), True),
        (mc.Linear(), False),
        (mc.Polynomial(2), False),
        (mc.Polynomial(3), False),
    ],
    ids=repr,
)
def test_A21_characteristic_kernels_separate_what_moments_do_not(kernel, separates):
    (X, w), (Y, v) = equal_moments()
    gap = mc.mean_embedding(kernel, X, weights=w).distance(mc.mean_embedding(kernel, Y, weights=v))
    assert (gap > 1e-3) == separates
    assert kernel.flags.characteristic is separates


def test_A21_a_spectrum_with_full_support_is_what_makes_the_difference(rng):
    """A kernel of one column cannot see the other; its frequencies lie on a line."""
    k = mc.Gaussian(1.0).transform(mc.Columns([0]))
    X = rng.normal(size=(20, 2))
    Y = np.column_stack([X[:, 0], rng.normal(size=20)])
    assert mc.mean_embedding(k, X).distance(mc.mean_embedding(k, Y)) < 1e-7
    assert k.flags.characteristic is not True
    full = mc.Gaussian(1.0).transform(mc.Scales([1.0, 1.0]))
    assert mc.mean_embedding(full, X).distance(mc.mean_embedding(full, Y)) > 0.1
    assert (full.spectral_measure(2).density(5.0 * rng.normal(size=(50, 2))) > 0).all()
