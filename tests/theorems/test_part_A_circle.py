"""Part A of the specification: kernels on the circle, and the functions in their spaces."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import iv, ive

import mercer as mc
from mercer.kernels._circle import JacobiTheta, Periodic, PeriodicSobolev
from mercer.theory import (
    characteristic_coefficients,
    fourier_coefficients,
    fourier_inner,
    fourier_mmd,
    fourier_norm,
    membership,
    sobolev_norm,
)

TWO_PI = 2 * math.pi
KERNELS = [
    Periodic(np.ones(9) / 9),
    Periodic(0.8 ** np.arange(9), period=3.0),
    JacobiTheta(0.4),
    JacobiTheta(0.2, period=1.0),
    PeriodicSobolev(),
    PeriodicSobolev(3, 0.5, period=TWO_PI),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def orders(L):
    return np.arange(-L, L + 1)


def waves(z, L, period):
    """exp(2 pi i l z / period) for l = -L, ..., L."""
    return np.exp(2j * np.pi / period * np.outer(np.atleast_1d(z), orders(L)))


def real_function(rng, L):
    half = rng.normal(size=L) + 1j * rng.normal(size=L)
    return np.concatenate([half[::-1].conj(), rng.normal(size=1), half])


def feature(kernel, z, L):
    """The coefficients of k(., z)."""
    return kernel.coefficient(orders(L)) * waves(z, L, kernel.period)[0].conj()


# --- A12 ----------------------------------------------------------------------------------------


@each_kernel
def test_A12_reproducing_property(kernel, rng):
    f = real_function(rng, 8)
    for z in kernel.period * rng.uniform(-1, 2, 5):
        value = (waves(z, 8, kernel.period) @ f)[0]
        found = fourier_inner(kernel, f, feature(kernel, z, 8))
        assert abs(found - value) < 1e-12 * np.abs(f).sum()


@each_kernel
def test_A12_features_have_the_kernel_as_inner_product(kernel, rng):
    """<k(., x), k(., y)> = k(y, x), up to the tail of the series."""
    L = 20_000 if isinstance(kernel, PeriodicSobolev) else 60
    tail = 2.0 / L if isinstance(kernel, PeriodicSobolev) else 1e-13
    x, y = kernel.period * rng.random(2)
    if isinstance(kernel, Periodic):
        L = 8
    found = fourier_inner(kernel, feature(kernel, x, L), feature(kernel, y, L))
    assert abs(found - kernel([[x]], [[y]])[0, 0]) < tail


@each_kernel
def test_A12_elements_are_functions_with_these_coefficients(kernel, rng):
    """Norms and values of sum_i a_i k(x_i, .) are those of its Fourier series."""
    x, a = kernel.period * rng.random((5, 1)), rng.normal(size=5)
    psi = mc.Element(kernel, x, a)
    L = 8 if isinstance(kernel, Periodic) else 4000 if isinstance(kernel, PeriodicSobolev) else 25
    f = kernel.coefficient(orders(L)) * (waves(x[:, 0], L, kernel.period).conj().T @ a)
    tail = 3e-3 if isinstance(kernel, PeriodicSobolev) else 1e-12
    assert_allclose(fourier_norm(kernel, f), psi.norm(), rtol=tail)
    y = kernel.period * rng.random(4)
    assert_allclose((waves(y, L, kernel.period) @ f).real, psi(y[:, None]), atol=2 * tail)


def test_A12_coefficients_have_the_factor_one_over_the_period():
    """f = 1 + 2 cos x has <f, f>_L2 = 3 with (1 / 2 pi) int, not 18.85.

    Sakulwongtana, Section 2.2, corrected.
    """
    f = fourier_coefficients(lambda x: 1 + 2 * np.cos(x), 3)
    assert_allclose(f, [0, 0, 1, 1, 1, 0, 0], atol=1e-14)
    mean = quad(lambda x: (1 + 2 * math.cos(x)) ** 2, -math.pi, math.pi)[0] / TWO_PI
    assert_allclose(np.sum(np.abs(f) ** 2), mean, rtol=1e-12)
    assert_allclose(mean, 3.0)


# --- A13 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [0.05, 0.3, 1.0, 2.5, 2.6, 5.0])
def test_A13_theta_is_a_sum_of_wrapped_gaussians_and_a_fourier_series(s):
    v = np.linspace(-4.0, 4.0, 33)
    found = JacobiTheta(s)([[0.0]], v[:, None])[0]
    j = np.arange(-60, 61)[:, None]
    wrapped = np.exp(-0.5 * ((v + TWO_PI * j) / s) ** 2).sum(axis=0) / (s * math.sqrt(TWO_PI))
    assert_allclose(found, wrapped, rtol=1e-12)
    l = orders(200)[:, None]  # noqa: E741
    series = (np.exp(-0.5 * (s * l) ** 2) * np.cos(l * v)).sum(axis=0) / TWO_PI
    assert_allclose(found, series, atol=1e-13 * found.max())
    assert_allclose(JacobiTheta(s).coefficient(3), math.exp(-4.5 * s * s) / TWO_PI)


def top_hat(T):
    """Coefficients of the indicator of |x| < T on [-pi, pi]: sin(lT) / (l pi), T / pi at 0."""
    return lambda m: T / math.pi * np.sinc(m * T / math.pi)


def triangle(l):  # noqa: E741
    """Coefficients of the hat max(0, 1 - |x| / pi), the convolution of two top-hats."""
    return 0.5 * np.sinc(l / 2) ** 2


def test_A13_coefficients_of_the_top_hat():
    """The norm that `theory` finds from the formula is that from coefficients by quadrature."""
    T, orders = 1.1, np.arange(-30, 31)

    def transform(f, m):
        return (
            quad(lambda x: f(x) * math.cos(m * x), 0, math.pi, points=[T], limit=200)[0] / math.pi
        )

    for exact, f in ((top_hat(T), lambda x: float(x < T)), (triangle, lambda x: 1 - x / math.pi)):
        found = membership(PeriodicSobolev(1, period=TWO_PI), exact)
        numbers = np.array([transform(f, abs(m)) for m in orders])
        kernel = np.array([PeriodicSobolev(1, period=TWO_PI).coefficient(abs(m)) for m in orders])
        norms = np.sum(numbers**2 / kernel)
        assert_allclose(np.exp(found.log_partial_norms[30]), norms, rtol=1e-7)


@pytest.mark.parametrize("s", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("T", [0.3, 1.1, 3.0])
def test_A13_partial_norms_of_the_top_hat_grow_without_bound(s, T):
    found = membership(JacobiTheta(s), top_hat(T))
    assert found.inside is False
    logs = found.log_partial_norms
    assert np.all(np.diff(logs) >= 0)
    # the terms grow like exp(s^2 l^2 / 2) / l^2, whatever sin(lT) does in between
    assert logs[4096] > 0.9 * 0.5 * (s * 4090) ** 2
    assert logs[4096] > 3 * logs[2048] > 9 * logs[1024]


@pytest.mark.parametrize("s", [1, 2, 3])
def test_A13_the_top_hat_is_in_no_sobolev_space(s):
    found = membership(PeriodicSobolev(s, period=TWO_PI), top_hat(1.1))
    assert found.inside is False
    assert_allclose(found.exponent, 2 - 2 * s, atol=0.1)  # terms l^(2s - 2)
    growth = np.diff(found.log_partial_norms[[1024, 2048, 4096]]) / math.log(2.0)
    assert_allclose(growth, 2 * s - 1, atol=0.05)


def test_A13_the_triangle_is_in_the_first_sobolev_space_only():
    inside = [membership(PeriodicSobolev(s), triangle).inside for s in (1, 2, 3)]
    assert inside == [True, False, False]
    # at s = 1: (1 / nu_0) (mean f)^2 + (2 pi)^-2 int |f'|^2 over a period of length one
    partial = membership(PeriodicSobolev(1, 0.5), triangle).partial_norms
    assert_allclose(partial[-1], 0.25 / 0.5 + 4.0 / TWO_PI**2, rtol=1e-3)


# --- A14 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [1, 2, 3, 6])
def test_A14_the_series_is_a_bernoulli_polynomial(s, rng):
    """To 1e-8: the tail after M terms is below the first term left out over sin(pi t)."""
    nu = 0.6
    t = rng.uniform(0.02, 0.98, 12)
    m = np.arange(1, 60_001)
    tail = 2.0 * 60_001.0 ** (-2 * s) / np.sin(math.pi * t)  # summation by parts
    assert tail.max() < 1e-8
    series = nu + 2.0 * np.cos(TWO_PI * np.outer(t, m)) @ (m ** (-2.0 * s))
    found = PeriodicSobolev(s, nu)([[0.0]], t[:, None])[0]
    assert np.all(np.abs(found - series) < tail + 1e-12)
    if s <= 2:
        B = {1: t**2 - t + 1 / 6, 2: t**4 - 2 * t**3 + t**2 - 1 / 30}[s]
        closed = nu + (-1) ** (s - 1) * TWO_PI ** (2 * s) / math.factorial(2 * s) * B
        assert_allclose(found, closed, atol=1e-13)


@pytest.mark.parametrize("s", [1, 2, 3])
def test_A14_norm_of_a_feature_is_the_kernel_at_its_point(s):
    """||k(., y)||^2 = k(y, y), by the series and by the integral.

    Rudi and Gaillard 2021, Section 2, corrected.
    """
    k, y, L = PeriodicSobolev(s, 0.7), 0.3, 100_000
    right = k([[y]])[0, 0]
    assert_allclose(fourier_norm(k, feature(k, y, L)) ** 2, right, atol=2.5 * L ** (1 - 2 * s))

    def derivative(x):
        """k^(s): 2 (2 pi)^s sum m^-s cos(2 pi m (x - y) + s pi / 2), a Bernoulli polynomial."""
        t = (x - y) % 1.0
        B = {1: t - 1 / 2, 2: t**2 - t + 1 / 6, 3: t**3 - 1.5 * t**2 + 0.5 * t}[s]
        return (-1) ** (s - 1) * TWO_PI ** (2 * s) / math.factorial(s) * B

    found = sobolev_norm(k, lambda x: k([[y]], x[:, None])[0], derivative, n_points=1 << 16)
    assert_allclose(found**2, right, rtol=1e-6)


def test_A14_the_constant_and_the_interval_of_the_norm():
    """f = 2 with nu_0 = 4 has norm 1; the integral is over one period (both misprinted)."""
    k = PeriodicSobolev(1, 4.0)
    assert sobolev_norm(k, lambda x: 2 + 0 * x, lambda x: 0 * x) == pytest.approx(1.0)
    assert fourier_norm(k, [2.0]) == pytest.approx(1.0)
    wave, slope = (lambda x: np.cos(TWO_PI * x)), (lambda x: -TWO_PI * np.sin(TWO_PI * x))
    assert sobolev_norm(k, wave, slope) ** 2 == pytest.approx(0.5)
    assert fourier_norm(k, [0.5, 0.0, 0.5]) ** 2 == pytest.approx(0.5)


# --- A21 ----------------------------------------------------------------------------------------


@each_kernel
def test_A21_mmd_is_a_sum_over_frequencies(kernel, rng):
    """With phi_l = E exp(-ilx), against the distance of the embeddings.

    Sakulwongtana, Theorem 2.5.4, corrected.
    """
    P, Q = kernel.period * rng.random((30, 1)), kernel.period * rng.beta(2, 5, (40, 1))
    direct = mc.mean_embedding(kernel, P).distance(mc.mean_embedding(kernel, Q)) ** 2
    L = 8 if isinstance(kernel, Periodic) else 2000 if isinstance(kernel, PeriodicSobolev) else 60
    phi = [characteristic_coefficients(X, L, period=kernel.period) for X in (P, Q)]
    beyond = kernel.coefficient(np.arange(L + 1, 400_000)).sum() + 1e-5 * (L == 2000)
    found = fourier_mmd(kernel, *phi)
    assert 0 <= direct - found + 1e-13 <= 8 * beyond + 1e-12


def test_A21_mmd_of_densities_in_closed_form():
    """Two von Mises laws: phi_l = exp(-il mu) I_l(c) / I_0(c). Density coefficients are wrong."""
    k, L, c, means = JacobiTheta(0.8), 30, 2.0, (0.3, 1.5)
    l = orders(L)  # noqa: E741
    phi = [np.exp(-1j * l * m) * ive(np.abs(l), c) / ive(0, c) for m in means]
    x = np.linspace(0, TWO_PI, 200, endpoint=False)
    p = [np.exp(c * np.cos(x - m)) / (TWO_PI * iv(0, c)) for m in means]
    gap = (p[0] - p[1]) * TWO_PI / 200
    direct = gap @ k(x[:, None]) @ gap  # trapezoid of smooth periodic functions
    assert_allclose(fourier_mmd(k, *phi), direct, rtol=1e-12)
    densities = [
        fourier_coefficients(lambda t, m=m: np.exp(c * np.cos(t - m)) / (TWO_PI * iv(0, c)), L)
        for m in means
    ]
    assert_allclose(fourier_mmd(k, *densities), direct / TWO_PI**2, rtol=1e-12)


@pytest.mark.parametrize("missing", [1, 2, 5])
def test_A21_a_kernel_without_one_frequency_does_not_separate(missing):
    """Densities 1 and 1 + cos(lx), over 2 pi, have one embedding if khat_l = 0."""
    c = np.ones(9)
    c[missing] = 0.0
    x = np.linspace(0, TWO_PI, 64, endpoint=False)[:, None]
    uniform, wavy = np.ones(64), 1 + np.cos(missing * x[:, 0])

    def gap(kernel):
        P, Q = (mc.mean_embedding(kernel, x, weights=w) for w in (uniform, wavy))
        return P.distance(Q) ** 2

    assert gap(Periodic(c)) < 1e-14
    c[missing] = 1e-3
    assert_allclose(gap(Periodic(c)), 2 * 1e-3 * 0.25, rtol=1e-10)  # |phi_l| = 1/2 at +-l


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_A21_the_constant_term_does_not_matter(constant, rng):
    """phi_0 = 1 for all distributions, so khat_0 = 0 separates as well.

    Sakulwongtana, Corollary 2.5.2, corrected.
    """
    k = PeriodicSobolev(1, constant)
    assert k.flags.characteristic
    x = np.linspace(0, 1, 40, endpoint=False)[:, None]
    gaps = []
    for frequency in range(1, 20):
        P = mc.mean_embedding(k, x)
        Q = mc.mean_embedding(k, x, weights=1 + np.cos(TWO_PI * frequency * x[:, 0]))
        gaps.append(P.distance(Q) ** 2)
    # as measures on the lattice frequency l and 40 - l, ... act together: at least khat_l / 2
    assert np.all(np.array(gaps) >= 0.5 * np.arange(1.0, 20.0) ** -2 * (1 - 1e-9))
    phi = [characteristic_coefficients(rng.random(9), 50, period=1.0) for _ in range(2)]
    without = fourier_mmd(PeriodicSobolev(1, 0.0), *phi)
    assert_allclose(fourier_mmd(k, *phi), without, rtol=1e-12)
    assert without > 1e-3


def test_A21_a_universal_kernel_needs_the_constant():
    """Without khat_0 no element comes near f = 1: all have mean zero."""
    k = PeriodicSobolev(1, 0.0)
    assert not k.flags.universal
    assert fourier_norm(k, [1.0]) == math.inf
    psi = mc.Element(k, np.linspace(0, 1, 7)[:, None], np.arange(7.0))
    x = (np.arange(4096) + 0.5) / 4096
    assert abs(psi(x[:, None]).mean()) < 1e-5
    assert PeriodicSobolev(1, 1e-3).flags.universal
