"""Functions of theory on wrong types and at the ends of float64: right answers or clear errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.kernels import JacobiTheta, PeriodicSobolev
from mercer.theory import (
    MercerExpansion,
    bochner_norm,
    fourier_coefficients,
    fourier_inner,
    fourier_norm,
    is_characteristic,
    is_universal,
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
        with pytest.raises(mc.InputError, match="must be callable"):
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
