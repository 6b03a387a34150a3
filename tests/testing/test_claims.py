"""The conformance kit catches wrong claims about definiteness and profiles."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import mercer as mc
from mercer.testing import check_kernel

POSITIVE = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE)
CONDITIONAL = mc.kernels.Flags(mc.kernels.Definiteness.CONDITIONAL)
INDEFINITE = mc.kernels.Flags(mc.kernels.Definiteness.INDEFINITE)


def distance_matern(nu, power):
    """A Matern profile of the sum of |x - y|^power over columns, to the power 1 / power."""

    def function(X, Y):
        r = (np.abs(X[:, None] - Y[None]) ** power).sum(-1) ** (1 / power) * math.sqrt(2 * nu)
        return (1 + r) * np.exp(-r) if nu == 1.5 else (1 + r + r * r / 3) * np.exp(-r)

    return mc.kernels.FromFunction(function)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_matern_of_the_sum_of_absolute_differences_is_caught_in_two_dimensions(nu):
    wrong, right = distance_matern(nu, 1), distance_matern(nu, 2)
    check_kernel(right, claims=POSITIVE)
    check_kernel(wrong, claims=POSITIVE, dims=(1,))
    with pytest.raises(AssertionError, match=r"claims to be positive definite.* in 2 dimensions"):
        check_kernel(wrong, claims=POSITIVE)


@pytest.mark.parametrize("rho", [None, 0.25, 4.0])
@pytest.mark.parametrize("c", [1e-4, 1.0, 1e4])
def test_epanechnikov_as_positive_or_conditional_is_caught(c, rho):
    k = mc.Epanechnikov(c, None if rho is None else rho * c)
    check_kernel(k)
    with pytest.raises(AssertionError, match=r"claims to be positive definite.* eigenvalue -"):
        check_kernel(k, claims=POSITIVE)
    with pytest.raises(AssertionError, match=r"claims to be conditionally positive definite"):
        check_kernel(k, claims=CONDITIONAL)


@pytest.mark.parametrize("p", [2.05, 3.0, 4.0])
def test_negative_distance_beyond_two_as_conditional_is_caught(p):
    with pytest.raises(AssertionError, match=r"claims to be conditionally .* centred Gram matrix"):
        check_kernel(mc.NegativeDistance(p), claims=CONDITIONAL)


def test_conditional_is_not_positive():
    check_kernel(mc.NegativeDistance(1.0, c=3.0), claims=CONDITIONAL)
    with pytest.raises(AssertionError, match=r"claims to be positive definite"):
        check_kernel(mc.NegativeDistance(1.0, c=3.0), claims=POSITIVE)


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.NegativeDistance(1.5), mc.Polynomial(2)])
def test_a_claim_to_be_indefinite_needs_a_witness(kernel):
    with pytest.raises(AssertionError, match=r"claims to be indefinite, but no lattice"):
        check_kernel(kernel, claims=INDEFINITE)


def test_a_witness_may_be_given():
    """Indefinite, but only between points that no lattice holds."""

    def function(X, Y):
        far = (X > 1e5) & (Y.T < -1e5) | (X < -1e5) & (Y.T > 1e5)
        return np.exp(-np.abs(X - Y.T)) + 2.0 * far

    k = mc.kernels.FromFunction(function)
    with pytest.raises(AssertionError, match=r"no lattice"):
        check_kernel(k, claims=INDEFINITE, dims=(1,))
    check_kernel(k, [[-3e5], [-2e5], [2e5], [3e5], [0.0]], claims=INDEFINITE, dims=(1,))


def test_definiteness_of_a_matrix_is_tried_on_its_rows():
    good, bad = np.eye(4) + 0.5, np.eye(4) - 0.5
    check_kernel(mc.Precomputed(good, definiteness=mc.kernels.Definiteness.POSITIVE), [0, 1, 2, 3])
    with pytest.raises(AssertionError, match=r"claims to be positive definite"):
        check_kernel(
            mc.Precomputed(bad, definiteness=mc.kernels.Definiteness.POSITIVE), [0, 1, 2, 3]
        )
    with pytest.raises(AssertionError, match=r"accepts no points .* pass `points`"):
        check_kernel(mc.Precomputed(good))


@dataclass(frozen=True)
class Bent(mc.DotProduct):
    """t - t^2 / 100: its slope turns negative at t = 50, beyond the lattices of size 1."""

    def profile(self, t):
        return t - 0.01 * t**2


def test_a_profile_of_inner_products_that_breaks_the_necessary_conditions_is_caught():
    with pytest.raises(AssertionError, match=r"claims to be positive definite, but f|Gram matrix"):
        check_kernel(Bent(), claims=POSITIVE)


@dataclass(frozen=True)
class Cosine(mc.Radial):
    """cos(|x - y|): positive definite on the line, but neither convex nor monotone."""

    def profile(self, u):
        return np.cos(np.sqrt(u))


def test_cosine_is_positive_on_the_line_only():
    check_kernel(Cosine(), claims=POSITIVE, dims=(1,))
    with pytest.raises(AssertionError, match=r"claims to be positive definite"):
        check_kernel(Cosine(), claims=POSITIVE, dims=(2, 3))


@pytest.mark.parametrize(
    ("kernel", "claim", "law"),
    [
        (Cosine(), {"convex_profile": True}, "claims a convex profile, but its slope decreases"),
        (Cosine(), {"completely_monotone": True}, "claims a completely monotone profile, but"),
        (mc.Epanechnikov(1.0, 0.5), {"convex_profile": True}, "claims a convex profile"),
        (mc.Epanechnikov(1.0), {"completely_monotone": True}, "claims a completely monotone"),
        (mc.Epanechnikov(1.0), {"convex_profile": False}, "not convex, but no grid"),
        (mc.NegativeDistance(3.0), {"convex_profile": True}, "claims a convex profile"),
        (mc.NegativeDistance(1.0), {"completely_monotone": True}, "difference 0 with step"),
        (mc.Gaussian(1.0), {"completely_monotone": False}, "but no grid shows it"),
        (mc.Gaussian(1.0), {"convex_profile": False}, "not convex, but no grid"),
        (mc.Polynomial(3), {"convex_profile": True}, "claims a convex profile, but its slope"),
        (mc.Linear(), {"completely_monotone": True}, "which only radial profiles can have"),
        (mc.Gaussian(1.0) + mc.Linear(), {"convex_profile": True}, "not a profile of one variable"),
        (mc.Gaussian(1.0), {"characteristic": False}, "claims not to be characteristic"),
        (mc.Linear(), {"characteristic": True}, "claims to be characteristic, but on"),
        (mc.Polynomial(2), {"characteristic": True}, "claims to be characteristic, but on"),
        (mc.kernels.Constant(1.0), {"characteristic": True}, "claims to be characteristic, but on"),
        (
            mc.Gaussian(1.0).transform(mc.Columns([0])),
            {"characteristic": True},
            "claims to be characteristic, but on",
        ),
    ],
    ids=lambda value: getattr(value, "__class__", type(value)).__name__,
)
def test_wrong_claims_about_the_profile_are_caught(kernel, claim, law):
    with pytest.raises(AssertionError, match=law):
        check_kernel(kernel, claims=mc.kernels.Flags(**claim))


@pytest.mark.parametrize("scale", [30.0, 0.01])
@pytest.mark.parametrize("k", [mc.kernels.Uniform(1.0), mc.Epanechnikov(1.0), mc.Gaussian(2.0)])
def test_profiles_are_looked_at_in_the_units_of_scaled_columns(k, scale):
    check_kernel(k.transform(mc.Scales([scale, scale])), dims=(2,))


_SCALED = mc.InverseMultiquadric(2.0, 0.5).transform(mc.Scales([1.0, 2.0, 0.01]))


@pytest.mark.parametrize(
    "k", [(_SCALED + 0.01 * mc.Gaussian(0.7)) * _SCALED, 2.0 * (3.0 * _SCALED)]
)
def test_factors_are_looked_at_in_the_units_of_scaled_columns(k):
    check_kernel(k, dims=(3,))


def test_a_true_claim_that_rounding_almost_hides():
    """The smallest squared norm of a measure is 2e-13; exp(<x, y> / 100) is nearly linear."""
    flat = mc.kernels.Exponential.from_gamma(0.01) + 0.01 * mc.Gaussian(30.0)
    other = mc.kernels.Polynomial.from_gamma(2, 2.0).transform(mc.Scales([0.5, 0.01, 30.0]))
    k = (flat * other + flat).transform(mc.Scales([0.5, 1.5, 2.5]))
    assert k.flags.characteristic
    check_kernel(k, dims=(3,))


def test_wrong_claims_about_a_product_with_scaled_columns_are_caught():
    k = mc.Linear().transform(mc.Scales([1.0, 2.0, 0.01])) * mc.Linear()
    with pytest.raises(AssertionError, match="claims to be characteristic, but on"):
        check_kernel(k, claims=mc.kernels.Flags(characteristic=True), dims=(3,))


@pytest.mark.parametrize(
    "k", [mc.Sigmoid(2.0, 0.5), mc.kernels.Uniform(1.0), mc.Exponential(1.0), mc.Exponential(0.3)]
)
def test_profiles_of_kernels_on_a_certain_number_of_columns(k):
    check_kernel(k.transform(mc.Scales([1.0, 1.0, 1.0, 1.0, 0.5, 2.0, 0.5])), dims=(7,))


def test_profiles_that_overflow_are_looked_at_where_they_are_finite():
    scales = mc.Scales([0.01, 2.0, 2.0, 0.5, 0.01, 0.01, 30.0])
    check_kernel(mc.Exponential(1.0).transform(scales), dims=(7,))


def test_kernels_that_are_constant_to_rounding_cannot_be_checked():
    """The coefficients exp(-450 l^2) of a wide kernel on the circle: only the first is seen."""
    with pytest.raises(AssertionError, match="which cannot be checked: points on the circle"):
        check_kernel(mc.kernels.JacobiTheta(30.0))


def test_large_values_do_not_hide_that_embeddings_differ():
    """k(x, x) from 1 to 1e107 on the points that are looked at."""
    inner = mc.Matern(2.5, 30.0).transform(mc.Scales([0.5]))
    check_kernel((inner * mc.Exponential(30.0) + inner).transform(mc.Scales([0.5])), dims=(1,))


def test_a_kernel_whose_cusp_is_small_beside_another_term():
    """At equal points it has no mixed derivative, but differences look smooth there."""
    check_kernel(mc.kernels.Normalised(mc.kernels.Exponential.from_gamma(30.0) + mc.Laplace(1.0)))
