"""Shadows: which kernels have one, and which pairs are one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.theory import shadow, shadow_constant


def test_written_as_kernels_of_the_library():
    assert shadow(mc.Laplace(1.0)) == 2.0 * mc.Matern(1.5, np.sqrt(3.0))
    assert shadow(mc.InverseMultiquadric(3.0, 3.0)) == 0.5 * mc.InverseMultiquadric(3.0, 2.0)
    assert shadow(2.0 * mc.InverseMultiquadric(3.0, 3.0)) == mc.InverseMultiquadric(3.0, 2.0)
    scales = mc.Scales([1.0, 2.0])
    expected = (2.0 * mc.Gaussian(1.0)).transform(scales)
    assert shadow(mc.Gaussian(1.0).transform(scales)) == expected


@given(st.floats(-3.0, 3.0), st.floats(1.05, 20.0))
def test_constants_of_all_scales(log_scale, p):
    s = 10.0**log_scale
    for g in (mc.Gaussian(s), mc.RationalQuadratic(p, s), mc.InverseMultiquadric(s, p)):
        assert_allclose(shadow_constant(shadow(g), g), 1.0, rtol=1e-8)


def test_sums_of_different_metrics():
    g = mc.Gaussian(1.0).transform(mc.Columns([0])) + mc.Laplace(1.0).transform(mc.Columns([1]))
    k = shadow(g)
    assert_allclose(k([[0.0, 0.0]], [[1.0, 2.0]])[0, 0], 2 * np.exp(-0.5) + 2 * 3 * np.exp(-2.0))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (mc.InverseMultiquadric(1.0, 1.0), "diverges"),
        (mc.RationalQuadratic(0.5), "diverges"),
        (mc.kernels.Constant(1.0), "diverges"),
        (mc.Gaussian(1.0) + 1.0, "diverges"),
        (mc.NegativeDistance(), "diverges"),
        (mc.Gaussian(1.0) * mc.Laplace(1.0), "no shadow"),
        (mc.Epanechnikov(1.0), "no shadow"),
    ],
    ids=repr,
)
def test_kernels_without_a_shadow(kernel, message):
    with pytest.raises(mc.exceptions.UnavailableError, match=message):
        shadow(kernel)


def test_only_radial_kernels():
    for kernel in (mc.Linear(), mc.Gaussian(1.0) * mc.Linear()):
        with pytest.raises(mc.InputError, match="radial"):
            shadow(kernel)
        with pytest.raises(mc.InputError, match="one squared distance"):
            shadow_constant(kernel, mc.Gaussian(1.0))


def test_what_is_no_pair():
    g = mc.Gaussian(1.0)
    moved = g.transform(mc.Scales([2.0]))
    for k in (
        mc.Gaussian(1.1),
        mc.Laplace(1.0),
        mc.kernels.Constant(1.0),
        moved,
        g + mc.Laplace(1.0),
    ):
        assert shadow_constant(k, g) is None
    assert shadow_constant(mc.NegativeDistance(2.0), mc.kernels.Constant(2.0)) is None
    assert shadow_constant(moved, moved) == pytest.approx(0.5)
    assert shadow_constant(mc.kernels.Constant(1.0), mc.kernels.Constant(1.0)) is None
    assert shadow_constant(g + 1.0, g) == pytest.approx(0.5)  # a constant has no slope


def test_a_rising_profile_is_no_shadow():
    """The sign of Honeine 2024, Definition 1: k' = +c g is not a pair."""

    class Rising(mc.Radial):
        def profile(self, u):
            return 1.0 - np.exp(-0.5 * u)

    assert shadow_constant(Rising(), mc.Gaussian(1.0)) is None
