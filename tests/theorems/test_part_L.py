"""Laws of the kernel Stein discrepancy: L1 to L5 of docs/spec.md."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import mercer as mc
from mercer.methods import SteinKernel, ksd, ksd_test, moment_condition, stein_operator

NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)
SMOOTH = [mc.Gaussian(1.2), mc.InverseMultiquadric(1.0, 0.5), mc.RationalQuadratic(2.0, 1.0)]


def quadrature(low, high):
    """Nodes in one dimension, and weights of the integral over [low, high]."""
    half = 0.5 * (high - low)
    return (low + half * (NODES + 1.0))[:, None], half * WEIGHTS


def line(law):
    """Nodes and weights of E_p, without the outermost 1e-18 of the mass."""
    Y, w = quadrature(*np.clip(law.support(), law.ppf(1e-18), law.isf(1e-18)))
    return Y, w * law.pdf(Y[:, 0])


# --- L1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [stats.norm(0.5, 1.5), stats.gamma(5.0), stats.beta(4.0, 5.0)])
def test_L1_stein_operator_has_mean_zero_under_the_model(law):
    psi = mc.Element(mc.Gaussian(1.0), [[0.3], [2.0]], [1.0, -0.4])
    Y, w = line(law)
    T = stein_operator(psi, law, Y)
    assert abs(w @ T[:, 0]) < 1e-10
    assert np.abs(T).max() > 0.1


def test_L1_stein_operator_is_the_slope_of_f_p_over_p():
    psi, law, Y = mc.Element(mc.Gaussian(1.0), [[0.3]], [2.0]), stats.norm(), np.array([[0.7]])
    h = 1e-5
    product = [float(psi(Y + e)[0]) * law.pdf(0.7 + e) for e in (h, -h)]
    expected = (product[0] - product[1]) / (2 * h) / law.pdf(0.7)
    assert_allclose(stein_operator(psi, law, Y)[0, 0], expected, rtol=1e-8)


# --- L2 -------------------------------------------------------------------------------------------


def test_L2_stein_kernel_is_the_formula(rng):
    """s(x)'s(y) k + s(y)' grad_x k + s(x)' grad_y k + tr(grad_x grad_y' k), for a Gaussian."""
    s, c2 = lambda z: -(z**3), 1.2**2
    for d in (1, 3):
        X, Y = rng.normal(size=(4, d)), rng.normal(size=(5, d))
        H = SteinKernel(mc.Gaussian(1.2), s)(X, Y)
        for i, x in enumerate(X):
            for j, y in enumerate(Y):
                gap = x - y
                k = np.exp(-gap @ gap / (2.0 * c2))
                grad_x, grad_y = -gap / c2 * k, gap / c2 * k
                trace = (d / c2 - gap @ gap / c2**2) * k
                expected = s(x) @ s(y) * k + s(y) @ grad_x + s(x) @ grad_y + trace
                assert_allclose(H[i, j], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
@pytest.mark.parametrize("law", [stats.norm(0.5, 1.5), stats.gamma(5.0), stats.logistic(0.0, 0.3)])
def test_L2_stein_kernel_has_mean_zero_under_the_model(kernel, law):
    Y, w = line(law)
    x = law.ppf([0.01, 0.3, 0.6, 0.97])[:, None]
    H = SteinKernel(kernel, law)(x, Y)
    assert np.abs(H @ w).max() < 1e-10 * np.abs(H).max()


def test_L2_mean_zero_in_two_dimensions():
    law = stats.multivariate_normal([0.5, -0.2], [[1.0, 0.4], [0.4, 0.8]])
    grid = np.linspace(-8.0, 8.0, 161)  # the trapezoidal rule converges at once for such functions
    Y = np.array([[a, b] for a in grid for b in grid])
    p = law.pdf(Y) * (grid[1] - grid[0]) ** 2
    H = SteinKernel(mc.InverseMultiquadric(1.0), law)([[0.3, 0.1], [2.0, -1.0]], Y)
    assert np.abs(H @ p).max() < 1e-10


def test_L2_a_density_that_does_not_vanish_at_zero_needs_a_kernel_that_does():
    def score(X):
        return -np.ones_like(X)  # of the exponential law

    Y, w = quadrature(0.0, 40.0)
    w = w * np.exp(-Y[:, 0])
    x = [[0.2], [1.5]]
    assert np.abs(SteinKernel(mc.Gaussian(1.0), score)(x, Y) @ w).max() > 0.1
    vanishing = mc.Linear() * mc.Gaussian(1.0)
    assert np.abs(SteinKernel(vanishing, score)(x, Y) @ w).max() < 1e-10


@pytest.mark.parametrize("kernel", [*SMOOTH, mc.Matern(1.5), mc.Polynomial(2)], ids=repr)
def test_L2_gram_matrix_is_positive_semidefinite(kernel, rng):
    X = rng.normal(size=(40, 3))
    eigenvalues = np.linalg.eigvalsh(SteinKernel(kernel, lambda X: -(X**3))(X))
    assert eigenvalues[0] > -1e-12 * eigenvalues[-1]


def test_L2_normalising_constant_does_not_matter(rng):
    X, f = rng.normal(size=(20, 2)), mc.kernel_density(mc.Gaussian(1.0), [[0.0, 0.0], [1.0, 1.0]])
    H = [SteinKernel(mc.Gaussian(1.0), g)(X) for g in (f, 1e-8 * f, mc.methods.Density(f))]
    assert_allclose(H[1], H[0], rtol=1e-10, atol=1e-12)
    assert_allclose(H[2], H[0], rtol=1e-10, atol=1e-12)


# --- L3 -------------------------------------------------------------------------------------------


def test_L3_statistics_estimate_the_square_of_the_discrepancy():
    """For a normal sample with mean m the population value is m^2 E k."""
    k, m = mc.Gaussian(1.0), 0.5
    truth = m**2 / np.sqrt(3.0)  # E k(x, x') with x - x' of variance 2
    values = np.array([
        ksd(k, np.random.default_rng(i).normal(m, 1.0, (60, 1)), stats.norm()) for i in range(400)
    ])  # fmt: skip
    assert abs(values.mean() - truth) < 4 * values.std() / 20


def test_L3_unbiased_statistic_may_be_negative():
    values = [
        ksd(mc.Gaussian(1.0), np.random.default_rng(i).normal(size=(60, 1)), stats.norm())
        for i in range(200)
    ]
    assert np.mean(np.array(values) < 0) > 0.3
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(200)


def test_L3_biased_statistic_is_not_negative_and_adds_the_diagonal(rng):
    X, k = rng.normal(size=(30, 2)), mc.InverseMultiquadric()
    u, v = (ksd(k, X, lambda X: -X, estimator=e) for e in ("unbiased", "biased"))
    diagonal = SteinKernel(k, lambda X: -X).diag(X)
    assert v >= 0
    assert_allclose(900 * v, 30 * 29 * u + diagonal.sum())


# --- L4 -------------------------------------------------------------------------------------------


def rejections(shift, count, **options):
    p = [
        ksd_test(
            np.random.default_rng(i).normal(shift, 1.0, (60, 1)), stats.norm(), random_state=i,
            n_permutations=199, **options,
        ).pvalue
        for i in range(count)
    ]  # fmt: skip
    return np.mean(np.array(p) <= 0.05)


def test_L4_wild_bootstrap_has_the_level():
    assert rejections(0.0, 300, kernel=mc.Gaussian(1.0)) <= stats.binom.ppf(0.999, 300, 0.05) / 300


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), None], ids=["one kernel", "default"])
def test_L4_power_at_a_shift_of_0_6(kernel):
    """0.98 at n = 60; 200 repetitions, less three standard errors."""
    assert rejections(0.6, 200, kernel=kernel) >= 0.95


# --- L5 -------------------------------------------------------------------------------------------


def test_L5_a_cauchy_sample_fails_the_moment_condition_of_a_normal_model():
    X = np.random.default_rng(0).standard_cauchy((2000, 1))
    found = moment_condition(X, stats.norm())
    assert found.fails
    assert found.tail_index == pytest.approx(1.0, abs=0.4)
    assert_allclose(found.mean_square, np.mean(X**2))
    growing = [moment_condition(X[:n], stats.norm()).mean_square for n in (20, 200, 2000)]
    assert growing[0] < growing[1] < growing[2]


def test_L5_the_condition_holds_for_a_bounded_score():
    X = np.random.default_rng(0).standard_cauchy((2000, 1))
    assert not moment_condition(X, stats.cauchy()).fails
