"""What is claimed of composites: never more than follows."""

import itertools

import pytest

import mercer as mc
from mercer.kernels import Definiteness as D

GAUSSIAN, LAPLACE, LINEAR = mc.Gaussian(1.0), mc.Laplace(1.0), mc.Linear()
CPD, NOT = mc.NegativeDistance(1.0), mc.Epanechnikov(1.0)


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        (GAUSSIAN + LAPLACE, D.POSITIVE),
        (GAUSSIAN + LINEAR + 1.0, D.POSITIVE),
        (GAUSSIAN * LINEAR, D.POSITIVE),
        (GAUSSIAN + CPD, D.CONDITIONAL),
        (3.0 * CPD + 1.0, D.CONDITIONAL),
        (CPD * GAUSSIAN, D.UNKNOWN),
        (CPD * CPD, D.UNKNOWN),
        (NOT + GAUSSIAN, D.UNKNOWN),
        (2.0 * NOT, D.INDEFINITE),
        (NOT * NOT, D.UNKNOWN),
        (mc.kernels.FromFunction(lambda X, Y: X @ Y.T) + GAUSSIAN, D.UNKNOWN),
        (mc.kernels.Normalised(GAUSSIAN * LINEAR + 1.0), D.POSITIVE),
        (mc.kernels.Normalised(mc.kernels.FromFunction(lambda X, Y: X @ Y.T)), D.UNKNOWN),
        (CPD.transform(mc.Columns([0])), D.CONDITIONAL),
        (GAUSSIAN.transform(mc.kernels.Matrix([[1.0, 2.0]])), D.POSITIVE),
        (mc.NegativeDistance(2.0), D.CONDITIONAL),
        (mc.NegativeDistance(2.0000001), D.INDEFINITE),
    ],
    ids=lambda v: repr(v)[:60].split(" at 0x")[0],
)
def test_definiteness(kernel, kind):
    assert kernel.flags.definiteness is kind


@pytest.mark.parametrize(
    ("kernel", "convex", "monotone"),
    [
        (GAUSSIAN + LAPLACE, True, True),
        (GAUSSIAN * LAPLACE, True, True),
        (2.0 * GAUSSIAN + 1.0, True, True),
        (GAUSSIAN + LINEAR, None, None),
        (GAUSSIAN * LINEAR, None, None),
        (GAUSSIAN.transform(mc.Scales([1.0, 2.0])), True, True),
        (GAUSSIAN.transform(mc.Scales([1.0, 2.0])) + GAUSSIAN, None, None),
        (GAUSSIAN.transform(mc.Scales([1.0])) * GAUSSIAN.transform(mc.Scales([1.0])), True, True),
        (NOT, True, False),
        (mc.Epanechnikov(1.0, 0.5), False, False),
        (mc.Epanechnikov(1.0, 1.0), True, False),
        (2.0 * NOT, True, None),
        (NOT * GAUSSIAN, None, None),
        (CPD, True, False),
        (mc.NegativeDistance(3.0), False, False),
        (LINEAR + mc.Polynomial(2), True, None),
        (mc.Polynomial(3), None, None),
        (mc.Exponential(1.0), True, None),
        (mc.kernels.Normalised(GAUSSIAN), None, None),
    ],
    ids=lambda v: repr(v)[:60],
)
def test_profiles(kernel, convex, monotone):
    assert kernel.flags.convex_profile is convex
    assert kernel.flags.completely_monotone is monotone


@pytest.mark.parametrize(
    ("kernel", "characteristic"),
    [
        (GAUSSIAN, True),
        (GAUSSIAN + LINEAR, True),
        (LINEAR + GAUSSIAN, True),
        (GAUSSIAN + CPD, None),
        (2.0 * GAUSSIAN, True),
        (GAUSSIAN * LAPLACE, True),
        (GAUSSIAN * LINEAR, None),
        (GAUSSIAN * GAUSSIAN.transform(mc.Columns([0])), True),
        (GAUSSIAN.transform(mc.Scales([1.0, 2.0])), True),
        (GAUSSIAN.transform(mc.Columns([0])), None),
        (GAUSSIAN.transform(mc.kernels.Matrix([[1.0, 1.0]])), None),
        (LINEAR, False),
        (mc.Polynomial(2), False),
        (mc.kernels.Constant(1.0), False),
        (mc.kernels.Normalised(GAUSSIAN), None),
        (LINEAR + 1.0, None),
    ],
    ids=lambda v: repr(v)[:60],
)
def test_characteristic(kernel, characteristic):
    assert kernel.flags.characteristic is characteristic


def test_claims_do_not_depend_on_the_order():
    for a, b in itertools.combinations(
        [GAUSSIAN, LAPLACE, LINEAR, CPD, NOT, mc.kernels.Constant(2.0)], 2
    ):
        assert (a + b).flags == (b + a).flags, (a, b)
        assert (a * b).flags == (b * a).flags, (a, b)


def test_known_and_unknown():
    assert GAUSSIAN.flags.is_positive_definite is True
    assert NOT.flags.is_positive_definite is False
    assert CPD.flags.is_positive_definite is None  # conditional at least; it may be more
    assert mc.kernels.Flags().is_positive_definite is None


def test_a_conditional_sum_may_be_positive_so_nothing_is_denied():
    """exp(-u) - 1/2 is conditionally positive definite; plus 1/2 it is the Gaussian kernel."""
    from dataclasses import dataclass

    import numpy as np

    @dataclass(frozen=True)
    class Lowered(mc.Radial):
        flags = mc.kernels.Flags(D.CONDITIONAL)

        def profile(self, u):
            return np.exp(-u) - 0.5

    assert (Lowered() + 0.5).flags.is_positive_definite is not False
