"""The conformance kit catches broken sums, products and maps."""

import numpy as np
import pytest

import mercer as mc
from mercer.testing import check_algebra

POSITIVE = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE)


def test_algebra_passes_mixed_lists():
    check_algebra([mc.Gaussian(1.0)])
    check_algebra([mc.Epanechnikov(2.0), mc.Linear(), mc.NegativeDistance(1.0)])


def test_algebra_without_derivatives():
    check_algebra([mc.kernels.FromFunction(lambda X, Y: X @ Y.T), mc.Gaussian(1.0)])


def test_algebra_without_common_columns_says_so():
    two, three = (mc.Linear().transform(mc.Scales(np.ones(d))) for d in (2, 3))
    with pytest.raises(AssertionError, match=r"no number of columns"):
        check_algebra([two, three])


@pytest.mark.parametrize(
    ("name", "method", "law"),
    [
        ("__add__", lambda a, b: mc.kernels.Sum(a, a), "a .* fails by"),
        ("__mul__", lambda a, b: mc.kernels.Sum(a, mc.kernels.Constant(1.0)), "a .* fails by"),
        (
            "transform",
            lambda a, m: mc.kernels.Transformed(a, mc.Scales([1.0] * 3)),
            r"k\(Ax, Ay\) fails",
        ),
        ("__sub__", lambda a, b: a, "a - b must be refused"),
        ("__neg__", lambda a: a, "-a must be refused"),
    ],
)
def test_broken_algebra_is_caught(monkeypatch, name, method, law):
    monkeypatch.setattr(mc.Kernel, name, method)
    with pytest.raises(AssertionError, match=law):
        check_algebra([mc.Gaussian(1.0), mc.Linear(), mc.Laplace(1.0)])


def test_a_broken_product_rule_is_caught(monkeypatch):
    right = mc.Kernel.gradient

    def wrong(self, X, Y=None):
        return right(self, X, Y) * (1.001 if isinstance(self, mc.kernels.Product) else 1.0)

    monkeypatch.setattr(mc.Kernel, "gradient", wrong)
    with pytest.raises(AssertionError, match=r"the product rule fails by"):
        check_algebra([mc.Gaussian(1.0), mc.Linear()])


@pytest.mark.parametrize("kernel", [mc.Epanechnikov(1.0), mc.NegativeDistance(1.0)])
@pytest.mark.parametrize("rule", ["plus", "times"])
def test_flags_that_carry_too_much_are_caught(monkeypatch, kernel, rule):
    monkeypatch.setattr(mc.kernels.Flags, rule, lambda self, other, **kind: POSITIVE)
    with pytest.raises(AssertionError, match=r"claims to be positive definite"):
        check_algebra([kernel, mc.Gaussian(1.0)])
