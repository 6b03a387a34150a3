"""Conditions on profiles of an inner product."""

import numpy as np
import pytest

import mercer as mc
from mercer.testing import check_kernel
from mercer.theory import projective_conditions


class Wave(mc.DotProduct):
    """Negative only between 0.5 and 0.5001: the even grid of the scan steps over most of it."""

    flags = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE)

    def profile(self, t):
        return (t - 0.5) * (t - 0.5001) + 0.0 * t


def test_a_small_dip_is_found_by_zooming():
    found = projective_conditions(Wave(), 10.0)
    assert found.minima[0] == pytest.approx(-2.5e-9, rel=1e-3)
    assert found.at[0] == pytest.approx(0.50005, abs=1e-5)
    assert "f" in found.violated
    assert not found.holds


def test_the_conformance_kit_uses_them():
    class Falling(mc.DotProduct):
        flags = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE)

        def profile(self, t):
            return 2.0 - t

    with pytest.raises(AssertionError):
        check_kernel(Falling())


def test_range_and_overflow():
    assert projective_conditions(mc.Exponential(1.0), 1e4).holds  # overflows from 709 on

    class Open(mc.DotProduct):
        def profile(self, t):
            return 1.0 / (1.0 - t)

    assert projective_conditions(Open(), 0.99).holds
    assert not projective_conditions(Open(), 2.0).holds


def test_transformed_and_scaled_kernels():
    k = 2.0 * mc.Polynomial(2).transform(mc.Columns([0])) + 1.0
    found = projective_conditions(k, 3.0)
    assert found.minima == pytest.approx((3.0, 4.0, 4.0))
    assert found.scale == pytest.approx(33.0)


def test_refusals():
    for kernel in (mc.Gaussian(1.0), mc.Linear() * mc.Gaussian(1.0), mc.kernels.Constant(1.0)):
        with pytest.raises(mc.InputError, match="one inner product"):
            projective_conditions(kernel)
    for largest in (0.0, -1.0, np.inf):
        with pytest.raises(mc.InputError, match="largest"):
            projective_conditions(mc.Linear(), largest)

    class Unknown(mc.DotProduct):
        def profile(self, t):
            return np.arctan(np.asarray(t))

    with pytest.raises(mc.exceptions.DerivativeError):
        projective_conditions(Unknown())
