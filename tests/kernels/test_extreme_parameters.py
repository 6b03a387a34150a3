"""Large exponents, very short and very long lengths: the right value, or an error."""

from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.engine import SingleFeatures, fields

Y = np.array([[0.0], [0.1], [1.0], [3.0], [10.0], [30.0]])
ALPHAS = [17.5, 65.0, 100.0, 101.5, 1e3, 3e4, 1e6, 1e9, 1e12, 1e16, 1e20, 1e30]


def log_one_plus(z):
    """log(1 + z) in 60 digits."""
    return (1 + z).ln() if z > Decimal("1e-20") else z - z**2 / 2 + z**3 / 3 - z**4 / 4


def log_values(alpha, y):
    """log (1 + y^2 / (2 alpha))^-alpha for exact y, and 1 + y^2 / (2 alpha)."""
    with localcontext() as context:
        context.prec = 60
        alpha = Decimal(alpha)
        z = [Decimal(float(v)) ** 2 / (2 * alpha) for v in y]
        return (
            np.array([float(-alpha * log_one_plus(v)) for v in z]),
            np.array([float(1 + v) for v in z]),
        )


@pytest.mark.parametrize("engine", ["native", "blocked"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_rational_quadratic_with_large_alpha(alpha, engine):
    k = mc.RationalQuadratic(alpha, 1.0)
    log, base = log_values(alpha, Y[:, 0])
    exact, y = np.exp(log), Y[:, 0]
    psi = mc.feature(k, [[0.0]])[0]
    with mc.options(engine=engine):
        assert_allclose(k([[0.0]], Y)[0], exact, rtol=2e-13)  # exponents reach 450
        assert_allclose(psi(Y), exact, rtol=2e-13)
        assert_allclose(psi.gradient(Y)[:, 0], -y / base * exact, rtol=2e-13)
        second = (y**2 * (1 + 1 / alpha) / base**2 - 1 / base) * exact
        assert np.all(np.abs(psi.hessian(Y)[:, 0, 0] - second) <= 1e-12 * (1 + y**2) * exact)


@pytest.mark.parametrize("engine", ["native", "blocked"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_rational_quadratic_in_float32(alpha, engine):
    k = mc.RationalQuadratic(alpha, 1.0)
    y = Y[:5].astype(np.float32)
    with mc.options(engine=engine):
        found = k(np.zeros((1, 1), np.float32), y)[0]
    assert found.dtype == np.float32
    assert_allclose(found, np.exp(log_values(alpha, y[:, 0])[0]), rtol=2e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_rational_quadratic_where_values_underflow(alpha):
    k = mc.RationalQuadratic(alpha, 1.0)
    far = np.array([[50.0], [1e3], [1e5]])
    coef = SingleFeatures(np.zeros(3, int), np.ones(3), 1)
    found = fields(k.program, np.zeros((1, 1)), far, coef, order=1, paired=True, shifted=True)
    log, base = log_values(alpha, far[:, 0])
    assert_allclose(np.log(found.value[:3]) + found.shift, log, rtol=1e-13)
    assert_allclose(found.gradient[:, 0] / found.value, -far[:, 0] / base, rtol=1e-12)


def test_rational_quadratic_of_more_columns_and_its_relatives(rng):
    X, Z = rng.normal(size=(30, 4)), rng.normal(size=(20, 4))
    gaussian = mc.Gaussian(1.3)
    for alpha in (1e14, 1e17, 1e30):
        assert_allclose(mc.RationalQuadratic(alpha, 1.3)(X, Z), gaussian(X, Z), rtol=1e-11)
    k = mc.RationalQuadratic(1e16, 1.3)
    assert_allclose((2.0 * k + k * k)(X, Z), 2.0 * gaussian(X, Z) + gaussian(X, Z) ** 2, rtol=1e-11)
    mixed = mc.Gaussian(2.0) * k
    assert_allclose(mixed(X, Z), mc.Gaussian(2.0)(X, Z) * gaussian(X, Z), rtol=1e-11)
    c, p = 0.9, 300.5
    exact = c**-p * mc.RationalQuadratic(p, np.sqrt(c / (2 * p)))(X, Z)
    assert_allclose(mc.InverseMultiquadric(c, p)(X, Z), exact, rtol=1e-11, atol=1e-290)


def test_a_users_profile_with_a_large_power_is_stable():
    @dataclass(frozen=True)
    class Power(mc.Radial):
        n: float

        def profile(self, u):
            return (1.0 + u / self.n) ** -self.n

    assert_allclose(Power(1e16)([[0.0]], [[0.5], [1.0]])[0], np.exp([-0.25, -1.0]), rtol=1e-15)


@pytest.mark.parametrize("degree", [70, 101, 10**5, 10**5 + 1, 10**9, 2**53])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_polynomials_of_large_degree(degree, dtype):
    """(1 + t / n)^n is exp(t) up to t^2 / n."""
    k = mc.Polynomial(degree, float(degree), 1.0)
    t = np.array([-2.0, -0.3, 0.0, 0.7, 5.0])
    with localcontext() as context:
        context.prec = 60
        n = Decimal(degree)
        exact = [float((n * _signed_log(Decimal(float(v)) / n)).exp()) for v in t]
    found = k(np.ones((1, 1), dtype), t[:, None].astype(dtype))[0]
    assert_allclose(found, exact, rtol=1e-14 if dtype == np.float64 else 2e-6)
    if dtype == np.float64:
        slope = np.array(exact) / (1.0 + t / degree)
        assert_allclose(k.gradient(t[:, None], [[1.0]])[:, 0, 0], slope, rtol=1e-13)


def _signed_log(z):
    return log_one_plus(z) if z > 0 else -log_one_plus(-z / (1 + z)) if z else z


def test_polynomials_of_large_degree_keep_their_sign_and_zero():
    for degree, sign in ((100, 1.0), (101, -1.0), (10**5 + 1, -1.0)):
        k = mc.Polynomial(degree, 1.0, 1.0)
        found = k([[1.0]], [[-2.0], [-1.0], [-1.5]])[0]
        assert_allclose(found, [sign, 0.0, sign * 0.5**degree], rtol=1e-13)


SHORT_AND_LONG = {
    "Gaussian": mc.Gaussian,
    "Laplace": mc.Laplace,
    "Matern 1.5": lambda s: mc.Matern(1.5, s),
    "Matern 2.5": lambda s: mc.Matern(2.5, s),
    "RationalQuadratic": lambda s: mc.RationalQuadratic(2.0, s),
    "large alpha": lambda s: mc.RationalQuadratic(200.5, s),
    "InverseMultiquadric": lambda s: mc.InverseMultiquadric(s * s, 0.5),
    "Exponential": lambda s: mc.Exponential(s * s),
    "Polynomial": lambda s: mc.Polynomial(3, s * s),
    "Sigmoid": lambda s: mc.Sigmoid(s * s),
    "Geometric": lambda s: mc.kernels.Geometric(s * s),
    "Scales": lambda s: mc.Gaussian(1.0).transform(mc.Scales([s])),
}


@pytest.mark.parametrize("name", SHORT_AND_LONG)
@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-155, 1e-150, 1e-100, 1e100, 1e155, 1e300])
def test_lengths_out_of_range_are_refused(name, scale):
    with pytest.raises(mc.InputError, match=r"must be (between|> 0)|must be finite"):
        SHORT_AND_LONG[name](scale)


@pytest.mark.parametrize("name", SHORT_AND_LONG)
@pytest.mark.parametrize("scale", [1e-49, 1e-40, 1e-20, 1e20, 1e40, 1e49])
def test_lengths_in_range_give_the_scaled_kernel(name, scale):
    """k_s(s x, s y) = c k_1(x, y), with all derivatives."""
    one, k = SHORT_AND_LONG[name](1.0), SHORT_AND_LONG[name](scale)
    X, Z = np.array([[0.1], [0.5]]), np.array([[0.3], [0.0]])
    factor = 1.0 / scale if name == "InverseMultiquadric" else 1.0
    assert_allclose(k(scale * X, scale * Z), factor * one(X, Z), rtol=1e-12)
    phi, psi = mc.feature(one, X), mc.feature(k, scale * X)
    assert_allclose(psi.gradient(scale * Z) * scale, factor * phi.gradient(Z), rtol=1e-10)
    assert_allclose(psi.hessian(scale * Z) * scale**2, factor * phi.hessian(Z), rtol=1e-9)


@pytest.mark.parametrize("make", [mc.Gaussian, mc.Laplace, lambda s: mc.Matern(1.5, s)])
@pytest.mark.parametrize("scale", [1e-60, 1e-40, 1e40, 1e60])
def test_float32_points_with_lengths_beyond_float32(make, scale):
    X = np.array([[0.0], [1.0]], np.float32)
    assert_allclose(make(scale)(X), np.eye(2) if scale < 1 else np.ones((2, 2)), rtol=1e-6)


def test_exponents_out_of_range_are_refused():
    with pytest.raises(mc.InputError, match=r"alpha must be at most 1e\+30.*use Gaussian\(2.0\)"):
        mc.RationalQuadratic(1e31, 2.0)
    with pytest.raises(mc.InputError, match="alpha must be at least 1e-08"):
        mc.RationalQuadratic(1e-75)  # its Hessians would be off by 1e59
    with pytest.raises(mc.InputError, match=r"2 alpha length_scale\^2 must be between"):
        mc.RationalQuadratic(1e-8, 1e-75)
