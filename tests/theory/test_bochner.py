"""Norms from Fourier transforms: behaviour, and honesty about what cannot be decided."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import erfi

import mercer as mc
from mercer.theory import bochner_norm
from mercer.theory._bochner import adaptive


def bump(w):
    return np.exp(-(w**2))


@given(st.floats(0.74, 30.0), st.floats(-5.0, 5.0), st.floats(-3.0, 3.0))
def test_gaussian_bumps_of_any_width_place_and_kernel(width, log_scale, place):
    s = 10.0**log_scale
    w = width * s

    def F(f):
        return w * np.sqrt(2 * np.pi) * np.exp(-0.5 * (w * f) ** 2 + 1j * f * place * s)

    found = bochner_norm(mc.Gaussian(s), F)
    assert found.inside
    assert_allclose(found.value, math.sqrt(width**2 / math.sqrt(2 * width**2 - 1)), rtol=1e-8)


@given(st.floats(0.01, 0.69))
def test_narrow_bumps_are_outside_at_every_width(width):
    found = bochner_norm(mc.Gaussian(2.0), lambda f: np.exp(-2.0 * (width * f) ** 2))
    assert (found.value, found.inside) == (math.inf, False)
    assert "diverges" in found.reason


@pytest.mark.parametrize("c", [1e-120, 1e-3, 1e120])
def test_norms_scale(c):
    """Far from one, too: squares of the transform are never formed."""
    base = bochner_norm(mc.Matern(1.5), bump)
    found = bochner_norm(mc.Matern(1.5), lambda w: c * bump(w))
    assert_allclose(found.value, c * base.value, rtol=1e-9)


@pytest.mark.parametrize("p", [1.6, 1.8, 2.5, 6.0])
def test_powers_above_the_border_are_inside(p):
    """(1 + w^2)^(-p/2) in the space of exp(-|x|): int (1 + w^2)^(1 - p) is a Beta function."""
    found = bochner_norm(mc.Laplace(1.0), lambda w: (1.0 + w**2) ** (-p / 2))
    squared = (
        math.sqrt(math.pi) * math.gamma(p - 1.5) / math.gamma(p - 1.0) * np.pi / (2 * np.pi) ** 2
    )
    assert found.inside
    assert_allclose(found.value**2, squared, rtol=1e-5 if p < 1.7 else 1e-9)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.4, 1.5])
def test_powers_at_the_border_and_below_are_outside(p):
    found = bochner_norm(mc.Laplace(1.0), lambda w: (1.0 + w**2) ** (-p / 2))
    assert (found.value, found.inside) == (math.inf, False)


def test_powers_just_above_the_border_are_undecided():
    found = bochner_norm(mc.Laplace(1.0), lambda w: (1.0 + w**2) ** -0.755)
    assert found.inside is None
    assert math.isnan(found.value)
    logarithmic = lambda w: (1.0 + w**2) ** -0.75 / np.log(2.0 + w**2)  # noqa: E731
    assert bochner_norm(mc.Laplace(1.0), logarithmic).inside is None  # inside, in truth


def test_a_function_without_a_square_integral_is_outside_because_of_frequency_zero():
    found = bochner_norm(mc.Laplace(1.0), lambda w: bump(w) / np.abs(w))
    assert found.value == math.inf
    assert "zero" in found.reason


def test_an_oscillating_transform_in_a_gaussian_space_is_judged_by_its_envelope():
    for width, inside in ((0.6, False), (0.65, False), (0.8, True)):
        F = lambda w, s=width: np.exp(-0.5 * (s * w) ** 2) * np.cos(7.0 * w)  # noqa: E731
        assert bochner_norm(mc.Gaussian(1.0), F).inside is inside


def test_a_transform_that_ends_with_a_jump():
    """1 on [-b, b]: norm^2 is an imaginary error function; the jump need not be announced."""
    b = 2.5
    expected = (
        math.sqrt(2 * np.pi) * math.sqrt(2 * np.pi) * erfi(b / math.sqrt(2)) / (2 * np.pi) ** 2
    )
    for breaks in ((), [b], [1.0, b]):
        found = bochner_norm(mc.Gaussian(1.0), lambda w: 1.0 * (np.abs(w) <= b), breaks=breaks)
        assert_allclose(found.value**2, expected, rtol=1e-9)
        assert abs(found.value - math.sqrt(expected)) <= found.error + 1e-14


def test_a_narrow_peak_is_seen_when_it_is_announced():
    """A Gaussian of width 1e-5 at frequency 3, without symmetry: f is complex."""
    peak, d = 3.0, 1e-5
    F = lambda w: np.exp(-0.5 * ((w - peak) / d) ** 2)  # noqa: E731
    found = bochner_norm(mc.Laplace(1.0), F, breaks=[peak - 6 * d, peak, peak + 6 * d])
    expected = math.sqrt(np.pi) * d * np.pi * (1 + peak**2) / (2 * np.pi) ** 2
    assert_allclose(found.value**2, expected, rtol=1e-6)


def test_more_dimensions_of_matern_spaces():
    """k(., 0) again, in up to 20 dimensions where the density underflows as a power."""
    for d in (2, 5, 20):
        for kernel in (mc.Matern(2.5, 0.7), mc.Laplace(3.0), mc.InverseMultiquadric(2.0, 1.5)):
            measure = kernel.spectral_measure(d)

            def F(r, d=d, measure=measure):
                return (2 * np.pi) ** d * measure.density(r[:, None] * np.eye(d)[:1])

            found = bochner_norm(kernel, F, d)
            assert_allclose(found.value**2, kernel(np.zeros((1, d)))[0, 0], rtol=1e-9)


def test_the_zero_function():
    found = bochner_norm(mc.Gaussian(1.0), lambda w: 0.0 * w)
    assert (found.value, found.error, found.inside) == (0.0, 0.0, True)


def test_a_norm_beyond_doubles_is_not_called_infinite():
    found = bochner_norm(mc.InverseMultiquadric(1.0, 0.5), lambda w: np.exp(-0.5 * (0.01 * w) ** 2))
    assert found.inside is None


def test_what_returns_where_the_density_has_underflowed_is_undecided():
    far = lambda w: bump(w) + bump(np.abs(w) - 1000.0)  # noqa: E731
    assert bochner_norm(mc.Gaussian(1.0), bump).inside
    assert bochner_norm(mc.Gaussian(1.0), far).inside is None  # inside: a norm of e^250000


def test_rising_and_constant_transforms_are_outside():
    for kernel in (mc.Gaussian(1.0), mc.InverseMultiquadric(1.0, 0.5), mc.Matern(2.5)):
        for F in (lambda w: 1.0 + 0.0 * w, lambda w: 1.0 + w**2, np.cos):
            assert bochner_norm(kernel, F).value == math.inf


def test_refusals():
    with pytest.raises(mc.InputError, match="not finite"):
        bochner_norm(mc.Gaussian(1.0), lambda w: np.cosh(w) / np.cosh(w))
    with pytest.raises(mc.InputError, match="not finite"):
        bochner_norm(mc.Gaussian(1.0), lambda w: np.exp(np.abs(w)))
    with pytest.raises(mc.InputError, match="one value per frequency"):
        bochner_norm(mc.Gaussian(1.0), lambda w: 1.0)
    with pytest.raises(mc.InputError, match="breaks"):
        bochner_norm(mc.Gaussian(1.0), bump, breaks=[-1.0])
    with pytest.raises(mc.InputError, match="dim"):
        bochner_norm(mc.Gaussian(1.0), bump, 0)
    with pytest.raises(mc.exceptions.UnavailableError):
        bochner_norm(mc.Linear(), bump)
    with pytest.raises(mc.exceptions.UnavailableError):
        bochner_norm(mc.kernels.Constant(1.0), bump)
    with pytest.raises(mc.exceptions.UnavailableError, match="profile of"):
        bochner_norm(mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0])), bump, 2)


def test_adaptive_quadrature_reports_its_error():
    exact = 2.0 / 3.0
    total, error = adaptive(np.sqrt, np.array([0.0, 1.0]), 1e-9)
    assert abs(total - exact) <= error + 1e-15
    assert error <= 1e-9 * total
    total, error = adaptive(lambda x: np.sin(1e9 * x) ** 2, np.array([0.0, 1.0]), 1e-9)
    assert error > 1e-6  # not resolved, and it says so
    assert_allclose(total, 0.5, atol=0.05)
