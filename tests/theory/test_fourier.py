"""Fourier coefficients, norms, MMD and membership: behaviour and hard inputs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad

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
INSIDE, OUTSIDE, UNDECIDED = True, False, None


def series(f, x, period):
    half = len(f) // 2
    return np.exp(2j * np.pi / period * np.outer(x, np.arange(-half, half + 1))) @ f


# --- coefficients -------------------------------------------------------------------------------


@given(
    values=st.lists(st.complex_numbers(max_magnitude=10.0), min_size=1, max_size=15),
    period=st.floats(0.1, 100.0),
    start=st.floats(-100.0, 100.0),
)
def test_polynomials_are_exact(values, period, start):
    f = np.array(values + values[: len(values) - 1])  # an odd number, not symmetric
    L = len(f) // 2
    found = fourier_coefficients(
        lambda x: series(f, x, period), max(L, 1), period=period, start=start
    )
    if L:
        assert_allclose(found, f, atol=1e-11 * (1 + abs(start) / period))
    else:
        assert_allclose(found, [0, f[0], 0], atol=1e-11 * (1 + abs(start) / period))


def test_polynomials_up_to_the_stated_degree_are_exact():
    L, N = 5, 32

    def wave(degree):
        return fourier_coefficients(lambda x: np.exp(1j * degree * x), L, n_points=N)

    assert_allclose(wave(N - L - 1), 0.0, atol=1e-13)
    assert_allclose(wave(N - L)[0], 1.0, atol=1e-13)  # read as l = -L


def test_the_interval_is_the_one_that_is_said():
    def saw(x):
        return x

    left = fourier_coefficients(saw, 3, period=2.0, start=-1.0, n_points=4096)
    for l in (1, 2, 3):  # noqa: E741
        right = quad(lambda x, m=l: -0.5 * x * math.sin(math.pi * m * x), -1, 1)[0]
        assert_allclose(left[3 + l].imag, right, atol=1e-5)
    assert_allclose(left[3], -1 / 4096, atol=1e-12)  # the error of a jump: 1 / N
    assert_allclose(fourier_coefficients(saw, 1, period=2.0)[1], 1.0, atol=0.005)


def test_elements_have_coefficients(rng):
    """psi = sum a_i k(x_i, .) has khat_l sum_i a_i exp(-ilx_i)."""
    k = JacobiTheta(0.4)
    x, a = rng.uniform(0, TWO_PI, 6), rng.normal(size=6)
    psi = mc.Element(k, x[:, None], a)
    l = np.arange(-8, 9)  # noqa: E741
    right = k.coefficient(l) * (np.exp(-1j * np.outer(l, x)) @ a)
    assert_allclose(fourier_coefficients(lambda t: psi(t[:, None]), 8), right, atol=1e-14)
    many = fourier_coefficients(lambda t: psi(t[:, None]), 60)
    assert_allclose(fourier_norm(k, many[60 - 12 : 60 + 13]), psi.norm(), rtol=1e-6)


def test_characteristic_coefficients(rng):
    x, w = rng.normal(size=(7, 1)), rng.random(7)
    found = characteristic_coefficients(x, 4, weights=w, period=3.0)
    l = np.arange(-4, 5)  # noqa: E741
    right = np.exp(-2j * np.pi / 3.0 * np.outer(l, x[:, 0])) @ (w / w.sum())
    assert_allclose(found, right, atol=1e-14)
    assert_allclose(characteristic_coefficients([0.3], 2)[2], 1.0)


# --- norms --------------------------------------------------------------------------------------


def test_a_function_outside_has_no_norm_and_no_inner_product():
    k = Periodic((1.0, 0.0, 0.5))
    outside, inside = np.array([0, 1, 0, 1, 0]), np.array([1, 0, 1, 0, 1])
    assert fourier_norm(k, outside) == math.inf
    assert fourier_norm(k, np.zeros(5)) == 0.0
    assert fourier_norm(k, inside) == pytest.approx(math.sqrt(5.0))
    for f, g, name in ((outside, inside, "f"), (inside, outside, "g")):
        with pytest.raises(mc.InputError, match=f"{name} is not in the space.* l = -1"):
            fourier_inner(k, f, g)


def test_coefficients_below_the_range_of_floats():
    """At l = 40 khat of this kernel is exp(-800): quotients are formed in logarithms."""
    k, f = JacobiTheta(1.0), np.zeros(81)
    f[0] = f[-1] = 1e-170
    assert k.coefficient(40) == 0.0
    right = 0.5 * (math.log(2.0) + 2 * math.log(1e-170) + 800 + math.log(TWO_PI))
    assert fourier_norm(k, f) == pytest.approx(math.exp(right), rel=1e-12)
    assert fourier_inner(k, f, f).real == pytest.approx(math.exp(2 * right), rel=1e-12)
    assert fourier_norm(JacobiTheta(10.0), f * 1e170) == math.inf  # exp(20,000)


@pytest.mark.parametrize("s", [1, 2, 3])
def test_the_integral_form_of_the_norm(s, rng):
    """Of a trigonometric polynomial, for any period, against the sum."""
    k = PeriodicSobolev(s, 0.7, period=2.5)
    half = rng.normal(size=5) + 1j * rng.normal(size=5)
    f = np.concatenate([half[::-1].conj(), [1.3], half])
    slope = f * (2j * np.pi / 2.5 * np.arange(-5, 6)) ** s
    found = sobolev_norm(k, lambda x: series(f, x, 2.5).real, lambda x: series(slope, x, 2.5).real)
    assert_allclose(found, fourier_norm(k, f), rtol=1e-12)


def test_the_integral_form_without_constants():
    k = PeriodicSobolev(1, 0.0)

    def wave(x):
        return np.sqrt(2.0) * np.cos(TWO_PI * x)

    def slope(x):
        return -TWO_PI * np.sqrt(2.0) * np.sin(TWO_PI * x)

    assert sobolev_norm(k, wave, slope) == pytest.approx(1.0)
    assert sobolev_norm(k, lambda x: wave(x) + 1e-3, slope) == math.inf


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fourier_coefficients(np.cos, 0), "n_terms must be an integer >= 1"),
        (lambda: fourier_coefficients(np.cos, 5, n_points=10), "n_points must be > 2 n_terms"),
        (lambda: fourier_coefficients(lambda x: x[:-1], 5), "must return 256 finite numbers"),
        (lambda: fourier_coefficients(lambda x: x * np.nan, 5), "finite numbers"),
        (lambda: fourier_coefficients(np.cos, 5, period=-1.0), "period must be > 0"),
        (lambda: fourier_norm(JacobiTheta(1.0), [1.0, 2.0]), "an odd number"),
        (lambda: fourier_norm(JacobiTheta(1.0), [[1.0]]), "an odd number"),
        (lambda: fourier_norm(JacobiTheta(1.0), [np.inf]), "NaN or infinite"),
        (lambda: fourier_norm(mc.Gaussian(1.0), [1.0]), "kernel on the circle"),
        (lambda: fourier_inner(JacobiTheta(1.0), [1.0], [1.0] * 3), "as many coefficients"),
        (lambda: fourier_mmd(JacobiTheta(1.0), [1.0], [1.0] * 3), "as many entries"),
        (lambda: sobolev_norm(JacobiTheta(1.0), np.cos, np.sin), "must be a PeriodicSobolev"),
        (lambda: characteristic_coefficients([], 3), "no entries"),
        (lambda: characteristic_coefficients([[1.0, 2.0]], 3), "one-dimensional"),
        (lambda: membership(JacobiTheta(1.0), np.abs, 63), "at least 64"),
        (lambda: membership(JacobiTheta(1.0), [1.0], 100), "n_terms is for functions"),
        (lambda: membership(JacobiTheta(1.0), lambda m: 1.0 / (1 + m[m >= 0])), "must return 8193"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(mc.InputError, match=words):
        call()


# --- membership ---------------------------------------------------------------------------------


def power(p):
    """Coefficients whose terms in the Sobolev space of order 1 are l^-p."""
    return lambda m: np.maximum(np.abs(m), 1) ** (-0.5 * p - 1.0)


@pytest.mark.parametrize("n_terms", [64, 100, 1000, 4096])
@pytest.mark.parametrize(
    ("p", "verdict"),
    [
        (-3.0, OUTSIDE),
        (0.0, OUTSIDE),
        (0.5, OUTSIDE),
        (0.9, UNDECIDED),
        (1.0, UNDECIDED),
        (1.1, UNDECIDED),
        (2.0, INSIDE),
        (7.0, INSIDE),
    ],
)
def test_powers(p, verdict, n_terms):
    found = membership(PeriodicSobolev(), power(p), n_terms)
    assert found.inside is verdict
    assert not found.is_exact
    assert abs(found.exponent - p) < 0.35
    assert f"up to l = {n_terms}" in found.reason


@pytest.mark.parametrize("n_terms", [64, 500, 4096, 100_000])
def test_logarithms_at_the_border_are_never_judged_wrongly(n_terms):
    """1 / (l log l) diverges and 1 / (l log^2 l) does not: no verdict may say the opposite."""
    k = PeriodicSobolev()

    def near(q):
        def f(l):  # noqa: E741
            m = np.maximum(np.abs(l), 1)
            return m**-1.5 / np.log(m + 1.0) ** (0.5 * q)

        return f

    assert membership(k, near(1.0), n_terms).inside is not INSIDE
    assert membership(k, near(2.0), n_terms).inside is not OUTSIDE


def test_arrays_are_exact():
    found = membership(JacobiTheta(3.0), np.ones(41))
    assert found.inside is INSIDE
    assert found.is_exact
    assert found.partial_norms.shape == (21,)
    assert_allclose(0.5 * found.log_partial_norms[-1], 0.5 * (math.log(2 * TWO_PI) + 1800))
    missing = membership(Periodic((1.0, 1.0)), np.ones(5))
    assert missing.inside is OUTSIDE
    assert missing.is_exact
    assert_allclose(missing.partial_norms, [1.0, 3.0, np.inf])
    assert "l = 2" in missing.reason


def test_partial_norms_are_those_of_the_first_terms(rng):
    k, f = PeriodicSobolev(2, 0.4), rng.normal(size=21) + 1j * rng.normal(size=21)
    found = membership(k, f).partial_norms
    for m in range(11):
        assert_allclose(found[m], fourier_norm(k, f[10 - m : 11 + m]) ** 2, rtol=1e-12)


def test_a_function_that_ends_is_undecided_unless_it_underflows():
    k = JacobiTheta(1.0)
    ends = membership(k, lambda m: np.where(np.abs(m) < 40, 1.0, 0.0))
    assert ends.inside is UNDECIDED
    assert "zero from l = 40" in ends.reason
    own = membership(k, k.coefficient)  # exp(-l^2 / 2) underflows: the element k(0, .)
    assert own.inside is INSIDE
    assert membership(k, lambda m: np.exp(-0.1 * np.square(m))).inside is OUTSIDE
    narrow = membership(k, lambda m: np.exp(-75.0 * np.square(m, dtype=float)))
    assert narrow.inside is UNDECIDED  # three coefficients before zeros: too few octaves
    assert "too few" in narrow.reason
    assert membership(k, lambda m: 0.0 * m).inside is UNDECIDED


def test_gaps_in_the_coefficients():
    """Only every third octave has a term: growth and decay are not read from empty ones."""
    k = PeriodicSobolev()

    def lacunary(l):  # noqa: E741
        m = np.abs(l)
        power_of_eight = np.isin(m, 8 ** np.arange(6))
        return np.where(power_of_eight, 1.0 / np.maximum(m, 1), 0.0)

    assert membership(k, lacunary).inside is UNDECIDED


def test_no_overflow_anywhere():
    found = membership(JacobiTheta(50.0), lambda m: 1e300 / (1.0 + np.abs(m)))
    assert found.inside is OUTSIDE
    assert np.isfinite(found.log_partial_norms).all()
    assert found.partial_norms[-1] == np.inf


@pytest.mark.parametrize("n_terms", [10**6 + 1, 2**31, 10**30])
def test_series_of_millions_of_terms_are_refused_at_once(n_terms):
    with pytest.raises(mc.InputError, match="at most"):
        mc.theory.characteristic_coefficients([0.0, 1.0], n_terms)
    with pytest.raises(mc.InputError, match="at most"):
        mc.theory.fourier_coefficients(np.cos, n_terms)
    with pytest.raises(mc.InputError, match="at most"):
        mc.theory.membership(mc.kernels.PeriodicSobolev(1), np.ones_like, n_terms)


def test_coefficients_whose_squares_overflow_are_refused():
    with pytest.raises(mc.InputError, match="overflow"):
        fourier_mmd(mc.kernels.JacobiTheta(1.0), 1e300 * np.ones(5), np.ones(5))
