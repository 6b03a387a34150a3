"""Functions of theory on wrong types and at the ends of float64: right answers or clear errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.kernels import JacobiTheta, PeriodicSobolev
from mercer.theory import (
    MercerExpansion,
    bochner_norm,
    chi_square_divergence,
    duality,
    f_divergence,
    first_order,
    fourier_coefficients,
    fourier_inner,
    fourier_norm,
    is_characteristic,
    is_universal,
    kl_divergence,
    largest_power,
    learning,
    membership,
    projective_conditions,
    shadow,
    shadow_constant,
    sobolev_norm,
)


@pytest.mark.parametrize("wrong", [None, 1.0, "gaussian", mc.Gaussian])
def test_what_is_no_kernel(wrong):
    for call in (
        lambda k: is_characteristic(k, 1),
        lambda k: is_universal(k, 1),
        lambda k: bochner_norm(k, np.cos),
        projective_conditions,
        shadow,
        lambda k: shadow_constant(k, mc.Gaussian(1.0)),
        lambda k: shadow_constant(mc.Gaussian(1.0), k),
        lambda k: sobolev_norm(k, np.cos, np.sin),
        lambda k: membership(k, [1.0]),
    ):
        with pytest.raises(mc.InputError, match="must be a"):
            call(wrong)


@pytest.mark.parametrize("wrong", [None, 1.0, "f", [1.0]])
def test_what_is_no_function(wrong):
    for call in (
        lambda f: bochner_norm(mc.Laplace(1.0), f),
        lambda f: fourier_coefficients(f, 3),
        lambda f: sobolev_norm(PeriodicSobolev(), f, np.sin),
        lambda f: sobolev_norm(PeriodicSobolev(), np.sin, f),
    ):
        with pytest.raises(mc.InputError, match="must be a function"):
            call(wrong)
        with pytest.raises(mc.InputError, match="must return"):
            call(lambda x: None)


@pytest.mark.parametrize("s", [1e-70, 1e-30, 1e30, 1e70])
def test_shadows_at_every_scale(s):
    for g in (mc.Gaussian(s), mc.Laplace(s), mc.RationalQuadratic(3.0, s)):
        assert_allclose(shadow_constant(shadow(g), g), 1.0, rtol=1e-8)
    assert shadow_constant(mc.Gaussian(s), mc.Gaussian(2 * s)) is None


@pytest.mark.parametrize(("length", "sigma"), [(1e75, 1.0), (1.0, 1e-74), (1e-20, 1e20), (1e9, 1)])
def test_expansions_at_every_scale(length, sigma):
    """Only the ratio of the two lengths counts."""
    terms, scaled = MercerExpansion(length, sigma, 4), MercerExpansion(length / sigma, 1.0, 4)
    assert_allclose(terms.eigenvalues, scaled.eigenvalues, rtol=1e-12)
    x = np.array([[0.0], [0.3], [2.0]])
    assert_allclose(terms.features(sigma * x), scaled.features(x), rtol=1e-9, atol=1e-300)
    assert np.isfinite(terms.tail)
    with pytest.raises(mc.InputError, match=r"length_scale must be between 1e-75 and 1e\+75"):
        MercerExpansion(1e-300)


def test_polynomials_of_any_degree_are_not_characteristic():
    for k in (mc.Polynomial(2**53), mc.kernels.VovkPolynomial(2**53), mc.Polynomial(10**5)):
        found = is_characteristic(k, 2)
        assert found.holds is False
        assert "polynomials, of degree at most" in found.reason
    assert is_characteristic(mc.Polynomial(5), 2).witness is not None
    assert is_characteristic(mc.NegativeDistance(1e300), 1).holds is None


def test_norms_beyond_the_range_of_numbers():
    k = JacobiTheta(0.5)
    f = np.array([1e300, 1e300, 1e300])
    assert fourier_norm(k, f) == pytest.approx(1e300 * fourier_norm(k, np.ones(3)))
    assert fourier_inner(k, f, f) == complex(np.inf, 0.0)
    assert fourier_inner(k, 1e-300 * f, f) == pytest.approx(1e300 * fourier_inner(k, f / f, f / f))
    assert fourier_inner(k, 0 * f, f) == 0.0


@pytest.mark.parametrize("period", [1e-20, 1.0, 1e20])
def test_sobolev_norms_of_any_period(period):
    """The norm of f(x / period) does not depend on the period."""
    w, size = 2 * np.pi / period, 1e200 if period == 1.0 else 1.0
    for order in (1, 12):
        f, df = (lambda x: size * np.cos(w * x)), (lambda x, n=order: size * w**n * np.sin(w * x))
        found = sobolev_norm(PeriodicSobolev(order, 2.0, period), f, df)
        assert found == pytest.approx(size * np.sqrt(0.5), rel=1e-10)


def test_intervals_of_projective_conditions():
    for wrong in (0.0, 5e-324, 1e300, np.inf, "a", None):
        with pytest.raises(mc.InputError, match="largest must be"):
            projective_conditions(mc.Linear(), wrong)
    for largest in (1e-149, 1e149):
        assert projective_conditions(mc.Linear(), largest).holds


@pytest.mark.parametrize(
    "call",
    [
        lambda: learning.chebyshev(1.0, 1e-200),
        lambda: learning.popoviciu(-1e300, 1e300),
        lambda: learning.hoeffding_lemma(0.0, 1e160, 1.0),
        lambda: learning.hoeffding([1e200], 1.0),
        lambda: learning.tikhonov_stability(10, 1e-300, 1e100, 1e100),
        lambda: first_order.smooth_rate(3, 1e-300, 1.0, 1e200),
        lambda: first_order.matching_steps(1e-300, 1.0, 1e100),
        lambda: first_order.tikhonov_step([[1e150]], [0.0], [1e200], 0.0, 1.0),
    ],
)
def test_formulas_that_overflow_are_refused(call):
    with pytest.raises(mc.InputError, match="leaves the range of floating-point numbers"):
        call()


def test_what_is_infinite_in_truth_is_infinite():
    assert learning.covering_number(0.5, 1.0, 1.0, 1000) == np.inf
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert_allclose(kl_divergence([0.0, 1.0], [1.0, 5e-324]), -np.log(5e-324))
    assert chi_square_divergence([0.0, 1.0], [1.0, 5e-324]) == np.inf


X = np.random.default_rng(0).normal(size=(5, 2))
REAL = {
    "jensen": lambda f: duality.jensen(f, X),
    "quasiconvexity": lambda f: duality.quasiconvexity(f, X),
    "tangents": lambda f: duality.first_order_convexity(f, lambda x: x, X),
    "descent": lambda f: first_order.gradient_descent(f, lambda x: x, X[0], 3, smoothness=1.0),
    "subdifferential": lambda f: first_order.subdifferential(f, 0.0),
    "slack": lambda f: first_order.subgradient_slack(f, X[0], X[1], X),
    "smoothness": lambda f: first_order.check_smoothness(f, lambda x: x, X, 1.0),
    "chernoff": lambda f: learning.chernoff(f, 1.0),
}
VECTOR = {
    "tangents": lambda f: duality.first_order_convexity(np.linalg.norm, f, X),
    "descent": lambda f: first_order.gradient_descent(np.sum, f, X[0], 3, smoothness=1.0),
    "subgradient": lambda f: first_order.subgradient_method(np.sum, f, X[0], [1.0]),
    "smoothness": lambda f: first_order.check_smoothness(np.sum, f, X, 1.0),
    "residual": lambda f: duality.optimality_residual(X[0], X[1], f),
    "hessian": lambda f: duality.second_order_convexity(f, X),
}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("f", [3, None, lambda x: None, lambda x: [1.0, 2.0], lambda x: np.nan])
def test_functions_must_return_a_number(name, f):
    with pytest.raises(mc.InputError, match=r"\(x\) must|must be a function"):
        REAL[name](f)


@pytest.mark.parametrize("name", VECTOR)
@pytest.mark.parametrize("f", [3, lambda x: None, lambda x: 1.0, lambda x: x[:1], lambda x: "a"])
def test_functions_must_return_an_array_of_their_shape(name, f):
    with pytest.raises(mc.InputError, match=r"\(x\) must|must be a function"):
        VECTOR[name](f)


def test_infinite_values_are_compared():
    """A convex function may be infinite outside of its domain, and no f may be between."""
    Z = np.array([[-1.0], [1.0], [3.0]])
    assert duality.jensen(lambda x: 0.0 if x[0] >= 0.0 else np.inf, Z).holds
    assert not duality.jensen(lambda x: np.inf if -0.6 < x[0] < 0.6 else 0.0, Z).holds
    with pytest.raises(mc.InputError, match="-infinity at"):
        duality.jensen(lambda x: -np.inf, Z)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: f_divergence(3, [1.0], [1.0]), "f must be a function"),
        (lambda: f_divergence(lambda t: t * np.nan, [1.0], [1.0]), "number for each ratio"),
        (lambda: f_divergence(lambda t: [1.0, 2.0, 3.0], [1.0], [1.0]), "number for each ratio"),
        (lambda: largest_power([1.0], [1.0], 3, "a"), "level must be"),
        (lambda: learning.Thresholds(8).values, "at most 7 digits"),
        (lambda: learning.Thresholds(301), "between 0 and 300"),
        (lambda: learning.overfits("a", 1.0, 1.0), "expected must be"),
        (lambda: learning.effective_dimension(None, X, 1.0), "kernel must be"),
        (lambda: first_order.constant_steps(3, 1e300, 1e-300), "must be finite"),
        (lambda: first_order.decreasing_steps(3, 1.0, None), "power must be"),
        (lambda: first_order.subgradient_rate([], 1.0, 1.0), "at least one"),
        (lambda: first_order.subgradient_rate([1.0, -1.0], 1.0, 1.0), "steps must be > 0"),
        (lambda: first_order.check_smoothness(np.sum, np.sign, X[:1], 1.0), "two rows"),
    ],
)
def test_errors_say_why(call, match):
    with pytest.raises(mc.InputError, match=match):
        call()


def test_a_random_subgradient_must_be_a_function():
    with pytest.raises(mc.InputError, match="subgradient must be a function"):
        first_order.subgradient_method(np.sum, None, X[0], [1.0], random_state=0)


def test_functions_may_overflow_without_a_warning():
    with pytest.raises(mc.InputError, match="must be finite"):
        first_order.subdifferential(np.linalg.norm, 1e160)


def test_the_risk_of_no_rows():
    with pytest.raises(mc.InputError, match="at least one entry"):
        learning.empirical_risk(mc.methods.SquareLoss(), [], [])
