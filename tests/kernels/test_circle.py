"""Kernels on the circle: values, derivatives, hard inputs, spectral measures, claims."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.special import zeta

import mercer as mc
from mercer.kernels._circle import (
    Circular,
    JacobiTheta,
    Periodic,
    PeriodicSobolev,
    bernoulli,
    period_of,
)
from mercer.kernels._discrete_measures import TableAtoms
from mercer.testing import check_algebra, check_kernel
from mercer.testing._lattice import lattices

KERNELS = [
    Periodic((1.0,)),
    Periodic((0.0, 1.0), period=3.0),
    Periodic((1.0, 0.5, 0.0, 0.25), period=24.0),
    JacobiTheta(0.5),
    JacobiTheta(0.01),
    JacobiTheta(3.0),
    JacobiTheta(2.0, period=24.0),
    JacobiTheta(1e-3, period=1e-2),
    PeriodicSobolev(),
    PeriodicSobolev(constant=0.0),
    PeriodicSobolev(2, 0.1, 2 * math.pi),
    PeriodicSobolev(12),
]
COMPOSITES = [
    2.0 * PeriodicSobolev(3),
    JacobiTheta(0.5).transform(mc.Scales([3.0])),
    JacobiTheta(0.5) + mc.Gaussian(1.0),
    PeriodicSobolev(period=2.0) + PeriodicSobolev(period=3.0),
    PeriodicSobolev() * mc.Gaussian(2.0),
    mc.kernels.Normalised(JacobiTheta(0.5)),
    PeriodicSobolev().transform(mc.Columns([1])) * mc.Gaussian(1.0),
    JacobiTheta(1.0).transform(mc.kernels.Matrix([[1.0, 0.5]])),
]


@pytest.mark.parametrize("kernel", KERNELS + COMPOSITES, ids=repr)
def test_conformance(kernel):
    check_kernel(kernel)


def test_algebra():
    check_algebra([Periodic((1.0, 0.5)), JacobiTheta(0.5), PeriodicSobolev(2, period=3.0)])


# --- values -------------------------------------------------------------------------------------


def images(v, s, period, n=0):
    """k, k' or k'' of the wrapped Gaussian, by its images."""
    u = [(v + j * period) / s for j in range(-45, 46)]
    hermite = [lambda t: 1.0, lambda t: -t / s, lambda t: (t * t - 1.0) / s**2][n]
    terms = (hermite(t) * math.exp(-0.5 * t * t) for t in u)
    return math.fsum(terms) / (s * math.sqrt(2 * math.pi))


def cosines(v, s, period, n=0):
    """The same by its Fourier series."""
    w = [2 * math.pi * m / period for m in range(200)]
    wave = [math.cos, lambda t: -math.sin(t), lambda t: -math.cos(t)][n]
    terms = (a**n * math.exp(-0.5 * (s * a) ** 2) * wave(a * v) * (2.0 if a else 1.0) for a in w)
    return math.fsum(terms) / period


@pytest.mark.parametrize("period", [2 * math.pi, 1.0, 24.0])
@pytest.mark.parametrize("relative", [1e-3, 0.02, 0.1, 0.3, 0.3989, 0.3990, 0.5, 1.0, 3.0])
def test_theta_is_accurate_relative_to_itself(relative, period):
    """In the tails too, and on both sides of the change from images to Fourier terms."""
    s = relative * period
    k = JacobiTheta(s, period)
    for part in (0.0, 0.01, 0.1, 0.25, 0.4, 0.5):
        v = part * period
        right = images(v, s, period)
        found = float(k([[0.0]], [[v]])[0, 0])
        exponent = 0.5 * (v / s) ** 2  # its rounding is that of the argument
        assert abs(found - right) <= 1e-15 * (4 + 4 * exponent) * right


@pytest.mark.parametrize("relative", [0.01, 0.2, 0.3989, 0.3990, 1.0])
def test_theta_derivatives(relative):
    s, period = relative * 3.0, 3.0
    k, truth = JacobiTheta(s, period), images if relative < 0.3 else cosines
    size = truth(0.0, s, period) - truth(1.5, s, period)
    for v in (0.0, 0.1, 0.7, 1.4, -0.7, 1.5):
        first, second = k.profile_derivatives(np.array(v))
        assert abs(first - truth(v, s, period, 1)) < 1e-13 * size / s
        assert abs(second - truth(v, s, period, 2)) < 1e-13 * size / s**2


def bernoulli_polynomial(n, x):
    """B_n(x) in exact arithmetic, numbers by the triangle of Akiyama and Tanigawa."""
    numbers, row = [], []
    for m in range(n + 1):
        row.append(Fraction(1, m + 1))
        for j in range(m, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
        numbers.append(row[0])
    numbers[1] = -numbers[1]  # the triangle gives +1/2
    x = Fraction(x)
    return sum(math.comb(n, m) * numbers[m] * x ** (n - m) for m in range(n + 1))


@pytest.mark.parametrize("s", range(1, 13))
def test_sobolev_is_the_bernoulli_polynomial(s):
    t = np.linspace(0.0, 1.0, 41)
    scale = (-1) ** (s - 1) * (2 * math.pi) ** (2 * s) / math.factorial(2 * s)
    right = [0.3 + scale * float(bernoulli_polynomial(2 * s, x)) for x in t]
    found = PeriodicSobolev(s, 0.3)(np.zeros((1, 1)), t[:, None])[0]
    assert_allclose(found, right, atol=3e-14)
    top = float(0.3 + 2 * zeta(2.0 * s))
    assert_allclose(PeriodicSobolev(s, 0.3).diag([[5.0]]), top, rtol=1e-14)


@pytest.mark.parametrize("s", range(2, 13))
def test_sobolev_derivatives_are_bernoulli_polynomials(s):
    k, t = PeriodicSobolev(s, period=2.0), np.array([-0.45, -0.2, 0.0, 1e-3, 0.3, 0.5])
    first, second = k.profile_derivatives(2.0 * t)
    for n, found in ((1, first), (2, second)):
        order = 2 * s - n
        scale = (-1) ** (s - 1) * (2 * math.pi) ** (2 * s) / math.factorial(order)
        right = [scale * float(bernoulli_polynomial(order, x % 1.0)) for x in t]
        assert_allclose(found * 2.0**n, right, atol=1e-13 * (2 * math.pi) ** n)


@given(
    coefficients=st.lists(st.floats(0.0, 10.0), min_size=1, max_size=40).filter(any),
    v=st.floats(-1e3, 1e3),
    period=st.floats(1e-2, 1e2),
)
def test_periodic_is_its_sum(coefficients, v, period):
    k = Periodic(coefficients, period)
    angle = 2 * math.pi * math.remainder(v, period) / period
    terms = [c * math.cos(m * angle) for m, c in enumerate(coefficients)]
    size = 2 * sum(coefficients)
    right = terms[0] + 2 * sum(terms[1:])
    assert abs(k([[0.0]], [[v]])[0, 0] - right) <= 1e-13 * size * len(terms) + 1e-300


def test_many_coefficients(rng):
    c = rng.random(2000) / (1 + np.arange(2000)) ** 2
    x = rng.uniform(0, 2 * np.pi, 30)
    right = c[0] + 2 * np.cos(np.outer(x, np.arange(1, 2000))) @ c[1:]
    assert_allclose(Periodic(c)([[0.0]], x[:, None])[0], right, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_are_the_series_of_the_coefficients(kernel, rng):
    v = kernel.period * rng.uniform(-2.0, 2.0, 10)
    m = np.arange(1, 40_001)
    tail = 2.0 / 40_000 if isinstance(kernel, PeriodicSobolev) else 0.0
    c = kernel.coefficient(m)
    series = kernel.coefficient(0) + 2.0 * np.cos(2 * np.pi / kernel.period * np.outer(v, m)) @ c
    found = kernel([[0.0]], v[:, None])[0]
    assert_allclose(found, series, atol=tail + 1e-11 * kernel.diag([[0.0]])[0])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_x_and_x_plus_a_period_are_one_point(kernel, rng):
    x = kernel.period * rng.random((6, 1))
    K = kernel(x)
    size = kernel.diag(x)[0] * max(1.0, kernel.period / getattr(kernel, "scale", kernel.period))
    for turns in (1, -2, 50):
        moved = x + turns * kernel.period
        assert_allclose(kernel(moved, x), K, atol=1e-12 * size)
    assert_allclose(np.diag(kernel(x, x + kernel.period)), kernel.diag(x), rtol=1e-11)


# --- hard inputs --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_one_point_duplicates_and_far_points(kernel):
    one = kernel([[0.3]])
    assert one.shape == (1, 1)
    assert_array_equal(one[0], kernel.diag([[0.3]]))
    assert_array_equal(kernel([[0.3], [0.3]]), one[0, 0])
    far = kernel([[1e12], [1e12 + 0.25], [-1e12]])
    assert np.isfinite(far).all()
    assert np.all(np.abs(far) <= one[0, 0] * (1 + 1e-12))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sparse_and_integer_points(kernel):
    x = np.array([[0], [1], [0], [5]])
    assert_allclose(kernel(csr_array(x.astype(float))), kernel(x), rtol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS[3:5], ids=repr)
@pytest.mark.parametrize("columns", [2, 5])
def test_more_columns_are_refused_with_the_cure(kernel, columns):
    with pytest.raises(mc.exceptions.DomainError, match=r"select the column.*Columns\(\[j\]\)"):
        kernel(np.zeros((3, columns)))
    kernel.transform(mc.Columns([columns - 1]))(np.zeros((3, columns)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Periodic(()), "with one > 0 among them"),
        (lambda: Periodic((0.0, 0.0)), "with one > 0 among them"),
        (lambda: Periodic((1.0, -0.5)), "coefficients must be >= 0"),
        (lambda: Periodic((1.0, np.nan)), "finite"),
        (lambda: Periodic(3.0), "one-dimensional"),
        (lambda: Periodic((1.0,), period=0.0), "period must be > 0"),
        (lambda: JacobiTheta(0.0), "scale must be > 0"),
        (lambda: JacobiTheta(1.0, -1.0), "period must be > 0"),
        (lambda: PeriodicSobolev(0), "order must be an integer >= 1"),
        (lambda: PeriodicSobolev(1.5), "order must be an integer >= 1"),
        (lambda: PeriodicSobolev(13), "at most 12"),
        (lambda: PeriodicSobolev(1, -1.0), "constant must be >= 0"),
        (lambda: PeriodicSobolev(1, 1.0, math.inf), "period must be finite"),
        (lambda: JacobiTheta(1.0).coefficient(0.5), "whole numbers"),
        (lambda: Periodic((1.0,)).coefficient([1.0]), "whole numbers"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(mc.InputError, match=words):
        make()


def test_coefficients_may_come_as_an_array():
    assert Periodic(np.array([1, 2])) == Periodic((1.0, 2.0))
    assert not bernoulli(3).flags.writeable


# --- spectral measures --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_atoms(kernel):
    measure = kernel.spectral_measure(1)
    assert_allclose(measure.mass, kernel.diag([[0.0]])[0], rtol=1e-13)
    w, masses = measure.atoms(3)
    assert_allclose(w, 2 * np.pi / kernel.period * np.arange(-3, 4))
    assert_array_equal(masses, measure.masses(np.arange(-3, 4)))
    assert_allclose(masses, kernel.coefficient(np.arange(-3, 4)), rtol=1e-14)
    with pytest.raises(mc.exceptions.UnavailableError, match="atoms"):
        measure.density([[0.0]])
    with pytest.raises(mc.exceptions.UnavailableError, match="single numbers"):
        kernel.spectral_measure(2)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_draws_have_the_masses(kernel):
    n = 20_000
    measure = kernel.spectral_measure(1)
    drawn = measure.sample(n, random_state=0)[:, 0] * kernel.period / (2 * np.pi)
    assert_allclose(drawn, np.rint(drawn), rtol=1e-12, atol=1e-9)
    for order in (-2, -1, 0, 1, 2, 7):
        p = float(measure.masses(order)) / measure.mass
        share = np.mean(np.rint(drawn) == order)
        assert abs(share - p) < 6 * math.sqrt(p * (1 - p) / n) + 1e-12


def test_a_very_narrow_theta_has_no_table():
    with pytest.raises(mc.exceptions.UnavailableError, match="use Gaussian"):
        JacobiTheta(1e-9).spectral_measure(1)


def test_a_transformed_measure(rng):
    k = JacobiTheta(0.7).transform(mc.Columns([1]))
    w = k.spectral_measure(2).sample(20_000, rng)
    assert_array_equal(w[:, 0], 0.0)
    x = np.array([0.4, 1.1])
    found = k.spectral_measure(2).mass * np.cos(w @ x).mean()
    assert abs(found - k([[0.0, 0.0]], [x])[0, 0]) < 6 * k.diag([x])[0] / math.sqrt(20_000)


# --- claims -------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", ["characteristic", "universal"])
@pytest.mark.parametrize("c", [(1.0, 0.5), (1.0, 1.0, 1.0), (1.0, 0.5, 0.25), (1.0,) * 7])
def test_the_kit_refutes_claims_of_finite_lists(c, claim):
    claims = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE, **{claim: True})
    with pytest.raises(AssertionError, match=f"claims to be {claim}"):
        check_kernel(Periodic(c), claims=claims)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_kit_stays_within_one_turn(kernel):
    found = list(lattices(kernel))
    assert found
    for X in found:
        assert np.ptp(X) < kernel.period * (1 - 1e-3)


def test_flags():
    assert Periodic((1.0, 1.0)).flags.characteristic is False
    assert Periodic((1.0, 1.0)).flags.universal is False
    assert JacobiTheta(1.0).flags.characteristic
    assert JacobiTheta(1.0).flags.universal
    assert PeriodicSobolev(constant=0.0).flags.characteristic
    assert PeriodicSobolev(constant=0.0).flags.universal is False
    moved = JacobiTheta(1.0).transform(mc.Scales([3.0]))
    assert period_of(moved) == 6 * math.pi
    assert period_of(PeriodicSobolev(period=2.0) + PeriodicSobolev()) == 1.0
    assert period_of(PeriodicSobolev(period=2.0) + mc.Linear()) == 2.0
    assert period_of(mc.Linear()) is None
    assert period_of(JacobiTheta(1.0).transform(mc.Columns([0]))) is None


@dataclass(frozen=True)
class Poisson(Circular):
    """A user's kernel: c_l = r^l, without derivatives."""

    radius: float = 0.5
    period: float = 2 * math.pi
    flags = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE, None, None, True, True)

    def profile(self, v):
        r = self.radius
        return (1 - r**2) / (1 - 2 * r * np.cos(v) + r**2)

    def coefficient(self, l):  # noqa: E741
        return self.radius ** np.abs(l)


def test_a_user_needs_a_profile_and_coefficients():
    check_kernel(Poisson())
    listed = Periodic(Poisson().coefficient(np.arange(60)))
    x = np.linspace(0, 7, 9)[:, None]
    assert_allclose(Poisson()(x), listed(x), rtol=1e-13)
    with pytest.raises(mc.exceptions.DerivativeError, match="profile_derivatives"):
        Poisson().gradient(x)
    with pytest.raises(mc.exceptions.UnavailableError):
        Poisson().spectral_measure(1)


def test_atoms_are_open_to_users():
    measure = TableAtoms(Poisson().coefficient(np.arange(60)), 2 * math.pi)
    assert_allclose(measure.mass, Poisson().diag([[0.0]])[0], rtol=1e-14)


# --- use ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [JacobiTheta(0.5), PeriodicSobolev(2), Periodic((1.0, 0.5))])
def test_preimages_on_the_circle(kernel, rng):
    X = kernel.period * rng.random((20, 1))
    psi = mc.mean_embedding(kernel, X)
    found = mc.preimage(psi, n_starts=6, random_state=0)
    grid = np.linspace(0.0, kernel.period, 4001)[:, None]
    assert psi(found.points)[0] >= psi(grid).max() - 1e-9
    assert found.status[0].name == "CONVERGED"
    assert_allclose(psi.gradient(found.points), 0.0, atol=1e-7)


def test_the_feature_of_a_point_has_it_as_preimage():
    psi = mc.feature(JacobiTheta(0.5), [[1.0]])
    found = mc.preimage(psi, start=[[1.3 + 2 * math.pi]])
    assert_allclose(found.points, [[1.0 + 2 * math.pi]], rtol=1e-9)
    assert_allclose(found.distance, 0.0, atol=1e-7)
