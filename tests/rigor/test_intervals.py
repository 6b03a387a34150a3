"""Interval arithmetic on profiles: what is inside stays inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mercer as mc
from mercer.engine import Var, cut, evaluate
from mercer.rigor._intervals import Interval
from mercer.rigor._profile_enclosure import enclose, in_distance

RADIAL = [
    mc.Gaussian(1.3),
    mc.Laplace(0.7),
    mc.Matern(1.5),
    mc.Matern(2.5, 0.5),
    mc.RationalQuadratic(0.7),
    mc.InverseMultiquadric(1.0, 0.5),
    mc.Epanechnikov(2.0),
    mc.Epanechnikov(2.0, 1.0),
    mc.NegativeDistance(1.5),
    mc.Gaussian(1.0) + mc.Matern(1.5) * mc.RationalQuadratic(),
    2.0 * mc.Gaussian(0.5),
]
DOT = [mc.Linear(), mc.Polynomial(3), mc.Polynomial(2), mc.Exponential(2.0)]


def holds(interval: Any, value: Any) -> bool:
    """Whether values lie in an interval; structural zeros and NaN aside."""
    if not isinstance(interval, Interval):
        return bool(np.all(np.asarray(value) == interval))
    known = interval.known()
    value = np.asarray(value, dtype=float)
    return bool(np.all((known.lo <= value) & (value <= known.hi) | np.isnan(value)))


@pytest.mark.parametrize("kernel", RADIAL + DOT, ids=str)
def test_profiles_and_derivatives_are_enclosed(kernel: Any, rng: Any) -> None:
    low = rng.uniform(0, 3, 2000) * (rng.random(2000) < 0.8)
    high = low + 10 ** rng.uniform(-8, 1, 2000)
    if kernel in DOT:
        low, high = low - 2, high - 2
    expr = kernel.program.profile
    with np.errstate(all="ignore"):
        found = enclose(expr, [Interval(low, high)], 2)
        for share in np.linspace(0, 1, 11):
            jet = evaluate(expr, [np.minimum(low + share * (high - low), high)], 2)
            assert holds(found.value, jet.value)
            assert holds(found.first[0], jet.first[0])
            assert holds(found.second[0][0], jet.second[0][0])


@pytest.mark.parametrize("kernel", RADIAL[:6], ids=str)
def test_monotone_profiles_have_tight_ranges(kernel: Any) -> None:
    low, high = np.array([0.0, 0.5]), np.array([0.4, 2.0])
    found = enclose(kernel.program.profile, [Interval(low, high)]).value
    np.testing.assert_allclose(found.hi, evaluate(kernel.program.profile, [low]).value, rtol=1e-13)
    np.testing.assert_allclose(found.lo, evaluate(kernel.program.profile, [high]).value, rtol=1e-13)


@pytest.mark.parametrize("kernel", [*RADIAL[:7], RADIAL[9], RADIAL[10]], ids=str)
def test_tails_tend_to_zero(kernel: Any) -> None:
    with np.errstate(all="ignore"):
        tail = enclose(
            kernel.program.profile, [Interval(np.array([1e300]), np.array([np.inf]))]
        ).value
        end = enclose(kernel.program.profile, [Interval(np.array([np.inf]), np.array([np.inf]))])
    assert 0 <= tail.lo[0] <= tail.hi[0] < 1e-100
    assert 0 <= end.value.lo[0] <= end.value.hi[0] < 1e-150  # the profile at the largest number


def test_a_window_is_not_left_by_its_range() -> None:
    profile = mc.Epanechnikov(2.0).program.profile
    found = enclose(profile, [Interval(np.array([1.0]), np.array([100.0]))], 2)
    assert found.value.lo[0] == 0.0
    assert found.value.hi[0] == pytest.approx(1.0)
    assert found.first[0].lo[0] == pytest.approx(-1.0)
    assert found.first[0].hi[0] == 0.0
    assert np.isinf(found.second[0][0].hi[0])  # the kink


def test_a_jump_has_no_bounded_slope() -> None:
    profile = mc.Epanechnikov(2.0, 1.0).program.profile
    found = enclose(profile, [Interval(np.array([0.5]), np.array([1.5]))], 1)
    assert found.value.lo[0] == 0.0
    assert found.value.hi[0] == pytest.approx(1.5)
    assert np.isinf(found.first[0].lo[0])


def test_a_smooth_window() -> None:
    u = Var(0, nonnegative=True)
    found = enclose(cut(1.0 - u, (1.0 - u) ** 3), [Interval(np.array([0.5]), np.array([9.0]))], 1)
    assert found.value.lo[0] == 0.0
    assert found.value.hi[0] == pytest.approx(0.125)
    assert -0.7501 < found.first[0].lo[0] < -0.7499


@pytest.mark.parametrize("kernel", RADIAL, ids=str)
def test_the_profile_in_the_distance_is_the_same_function(kernel: Any) -> None:
    r = np.linspace(0.01, 3, 50)
    expr = kernel.program.profile
    a, b = evaluate(expr, [r**2]).value, evaluate(in_distance(expr), [r]).value
    np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-15)


def test_no_cusp_is_left_in_the_distance() -> None:
    for kernel in (mc.Laplace(0.5), mc.Matern(0.5, 2.0), mc.Matern(1.5, 0.3)):
        q = in_distance(kernel.program.profile)
        found = enclose(q, [Interval(np.zeros(1), np.full(1, 0.1))], 2)
        assert np.isfinite(found.first[0].lo[0])
        assert np.isfinite(found.second[0][0].hi[0])


def test_an_opaque_profile_is_refused() -> None:
    class Strange(mc.Radial):
        def profile(self, u: Any) -> Any:
            return np.cos(u)

    with pytest.raises(mc.InputError, match="recorded"):
        enclose(Strange().program.profile, [Interval(np.zeros(1), np.ones(1))])


numbers = st.floats(-1e3, 1e3, allow_subnormal=True)


@given(st.lists(numbers, min_size=6, max_size=6))
def test_sums_products_and_squares_hold_in_exact_arithmetic(x: list[float]) -> None:
    from fractions import Fraction

    a, b = sorted(x[:2])
    c, d = sorted(x[2:4])
    p, q = min(max(x[4], a), b), min(max(x[5], c), d)
    left, right = Interval(np.array(a), np.array(b)), Interval(np.array(c), np.array(d))
    exact = {
        "sum": (left + right, Fraction(p) + Fraction(q)),
        "product": (left * right, Fraction(p) * Fraction(q)),
        "square": (left.square(), Fraction(p) ** 2),
        "scaled": (3.1 * left, Fraction(3.1) * Fraction(p)),
    }
    for name, (found, value) in exact.items():
        assert Fraction(float(found.lo)) <= value <= Fraction(float(found.hi)), name


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_overflow_is_undone_by_a_small_factor(sign: float) -> None:
    """A bound that overflows is infinite on one side only: 1e400 is not infinity."""
    large, small = (Interval(np.array(x), np.array(x)) for x in (1e200, 1e-300))
    with np.errstate(over="ignore"):
        products = [sign * large * large * small, sign * (1e160 * large).square() * small * small]
        total = sign * 1e108 * (large * small + 1.5 * large * small)
        total = (total + total) * small
    assert holds(products[0], sign * 1e100)
    assert products[1].lo < np.inf if sign > 0 else products[1].hi > -np.inf
    assert holds(total, sign * 5e-292)


def test_a_power_of_a_number_that_overflows() -> None:
    kernel, u = mc.RationalQuadratic(0.01, 1e-73), np.array([1e300])
    expected = np.exp(-0.01 * (np.log(1e300) - np.log(0.02) + 146.0 * np.log(10.0)))
    assert holds(enclose(kernel.program.profile, [Interval(u, u)]).value, expected)


def test_a_constant_that_overflows_has_no_known_derivatives() -> None:
    """1 / sqrt(k(x, x)) is 4e161; its square and the square of that overflow."""

    class Tiny(mc.Radial):
        def profile(self, u: Any) -> Any:
            return cut(5e-324 - u, 5e-324 - u)

    kernel, u = mc.kernels.Normalised(Tiny()), np.array([0.0, 1.0])
    found = enclose(kernel.program.profile, [Interval(u, u)], 2)
    assert holds(found.second[0][0], np.zeros(2))
