"""Densities: constants in any dimension, logarithms in the tails, adaptive ones."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp
from scipy.stats import kstest

import mercer as mc
from mercer.methods.density._density import Density, adaptive_density, kernel_density, weights_of
from mercer.methods.density._normaliser import RadialDistribution, log_normaliser


def density(kernel, X, weights=None):
    return Density(mc.mean_embedding(kernel, X, weights=weights))


def log_ball(d):
    """log of the volume of the unit ball."""
    return d / 2 * math.log(math.pi) - gammaln(d / 2 + 1)


# --- constants ------------------------------------------------------------------------------------


@given(st.sampled_from([1, 2, 3, 7, 50, 784]), st.floats(1e-12, 1e12))
def test_constants_of_windows(d, rho):
    """Jumps and kinks fall anywhere in the panels of the quadrature."""
    uniform = log_ball(d) + d / 2 * math.log(rho)
    assert log_normaliser(mc.kernels.Uniform(rho), d) == pytest.approx(
        uniform, rel=1e-12, abs=1e-12
    )
    epanechnikov = uniform + math.log(2 / (d + 2)) + math.log(rho)
    found = log_normaliser(mc.Epanechnikov(rho), d)
    assert found == pytest.approx(epanechnikov, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5, 40, 784, 100_000])
def test_quadrature_agrees_with_closed_forms(d):
    kernels = [mc.Gaussian(0.3), mc.Laplace(5.0), mc.Matern(2.5, 2.0)]
    kernels += [mc.InverseMultiquadric(2.0, d / 2 + 0.02), mc.RationalQuadratic(d / 2 + 3.0, 0.1)]
    for kernel in kernels:
        law = RadialDistribution.of(kernel, d)
        found = law.log_mass + d / 2 * math.log(math.pi) - gammaln(d / 2)
        assert found == pytest.approx(log_normaliser(kernel, d), rel=1e-12, abs=1e-11)


def test_products_of_one_distance_are_integrated():
    k = mc.Gaussian(2.0) * mc.Gaussian(1.0)  # 1 / s^2 adds up
    assert log_normaliser(k, 3) == pytest.approx(
        log_normaliser(mc.Gaussian(0.8**0.5), 3), rel=1e-12
    )
    k = mc.InverseMultiquadric(2.0, 0.8) * mc.InverseMultiquadric(2.0, 0.7)
    expected = log_normaliser(mc.InverseMultiquadric(2.0, 1.5), 2)
    assert log_normaliser(k, 2) == pytest.approx(expected, rel=1e-12)
    scales = mc.Scales([1.0, 3.0])
    mapped = mc.Gaussian(2.0).transform(scales) * mc.Gaussian(1.0).transform(scales)
    expected = log_normaliser(mc.Gaussian(0.8**0.5), 2) + math.log(3.0)
    assert log_normaliser(mapped, 2) == pytest.approx(expected, rel=1e-12)


@dataclass(frozen=True)
class Triangle(mc.Radial):
    """A profile that cannot be recorded."""

    def profile(self, u):
        return np.where(u < 1.0, 1.0 - np.sqrt(np.minimum(u, 1.0)), 0.0)


@dataclass(frozen=True)
class Wendland(mc.Radial):
    """A smooth window, recorded; its array makes it impossible to hash."""

    ones: np.ndarray

    def profile(self, u):
        r = np.sqrt(u) * float(self.ones[0])
        return np.maximum(1.0 - r, 0.0) ** 4 * (4 * r + 1)


@dataclass(frozen=True)
class Wave(mc.Radial):
    def profile(self, u):
        return np.cos(np.sqrt(u)) * np.exp(-u)


def test_a_users_profile_is_integrated_and_drawn_from():
    assert log_normaliser(Triangle(), 1) == pytest.approx(0.0, abs=1e-12)
    assert log_normaliser(Triangle(), 2) == pytest.approx(math.log(math.pi / 3), rel=1e-12)
    r = np.linalg.norm(density(Triangle(), np.zeros((1, 2))).sample(20_000, 0), axis=1)
    assert kstest(r, lambda t: 3 * t**2 - 2 * t**3).pvalue > 1e-3
    smooth = Wendland(np.ones(1))
    assert log_normaliser(smooth, 1) == pytest.approx(math.log(2 / 3), rel=1e-12)
    assert density(smooth, np.zeros((1, 3))).sample(10, 0).shape == (10, 3)
    with pytest.raises(mc.InputError, match="must not be negative"):
        log_normaliser(Wave(), 1)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (mc.InverseMultiquadric(1.0, 1.0), "p > d/2"),
        (mc.InverseMultiquadric(1.0, 0.5) * mc.InverseMultiquadric(2.0, 0.5), "no finite integral"),
        (mc.RationalQuadratic(0.5), "no finite integral"),
        (mc.kernels.Constant(1.0), "no finite integral"),
        (mc.Gaussian(1.0) + 1.0, "no finite integral"),
        (mc.NegativeDistance(), "must not be negative"),
        (mc.Epanechnikov(1.0, 2.0), "must not be negative"),
        (mc.Epanechnikov(1.0, 1.001), "must not be negative"),
        (mc.Linear(), "function of a distance"),
        (mc.Gaussian(1.0) * mc.Linear(), "function of a distance"),
        (mc.Gaussian(1.0).transform(mc.Columns([0])), "only 1 of 2 directions"),
        (mc.Gaussian(1.0).transform(mc.kernels.Matrix([[1.0, 1.0]])), "only 1 of 2 directions"),
        (
            mc.Gaussian(1.0).transform(mc.kernels.Matrix([[1.0, 1.0], [2.0, 2.0]])),
            "only 1 of 2 directions",
        ),
        (mc.Gaussian(1.0).transform(mc.kernels.Monomials(2)), "not linear"),
    ],
)
def test_kernels_that_are_no_densities_say_why(kernel, message):
    X = np.zeros((3, 2))
    for make in (kernel_density, density):
        with pytest.raises(mc.InputError, match=message):
            make(kernel, X)


def test_a_kernel_whose_values_leave_the_range_of_numbers_still_has_a_density():
    X = np.array([[0.0, 0.0], [1.0, 0.0]])
    tiny, plain = mc.InverseMultiquadric(1e3, 150.0), mc.InverseMultiquadric(1.0, 150.0)
    assert tiny([[0.0, 0.0]])[0, 0] == 0.0  # 1e-450
    scale = 1e3**0.5
    expected = density(plain, X / scale).log(X / scale) - 2 * math.log(scale)
    assert_allclose(density(tiny, X).log(X), expected, rtol=1e-11)
    assert_allclose(density(tiny, X)(X), np.exp(expected), rtol=1e-9)
    assert density(tiny, X).sample(4, 0).shape == (4, 2)


# --- kernel_density -------------------------------------------------------------------------------


def test_coefficients_are_weights_over_the_integral():
    e = kernel_density(mc.Gaussian(2.0), [[0.0], [1.0], [5.0]], weights=[1.0, 2.0, 0.0])
    Z = 2.0 * math.sqrt(2 * math.pi)
    assert_allclose(weights_of(e), np.array([1.0, 2.0, 0.0]) / 3 / Z, rtol=1e-14)
    assert e.kernel == mc.Gaussian(2.0)


@pytest.mark.parametrize("s", [20.0, 0.01])
def test_many_dimensions_are_refused_by_elements_and_served_by_logarithms(s, rng):
    d = 784
    X = rng.normal(size=(30, d))
    with pytest.raises(mc.InputError, match=r"Density\(mean_embedding"):
        kernel_density(mc.Gaussian(s), X)
    p = density(mc.Gaussian(s), X)
    with pytest.raises(mc.InputError, match=r"Density\.log"):
        p(X)
    u = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    expected = (
        logsumexp(-u / (2 * s * s), axis=1) - math.log(30) - d / 2 * math.log(2 * np.pi * s**2)
    )
    assert_allclose(p.log(X), expected, rtol=1e-11)
    assert np.isfinite(p.log_gradient(X)).all()
    assert p.sample(3, 0).shape == (3, d)


# --- Density --------------------------------------------------------------------------------------

MIXED = [mc.Gaussian(0.5), mc.Laplace(1.0), mc.Matern(1.5, 2.0), mc.InverseMultiquadric(1.0, 2.5)]


def mixture(rng, d=2):
    """Four kernels with points and weights of their own, and log f by definition."""
    sets = [rng.normal(size=(m, d)) for m in (5, 1, 8, 3)]
    weights = [rng.uniform(0.1, 1.0, len(X)) for X in sets]
    p = Density([mc.Element(k, X, w) for k, X, w in zip(MIXED, sets, weights, strict=True)])
    total = sum(w.sum() for w in weights)

    def log(Y):
        terms = []
        for k, X, w in zip(MIXED, sets, weights, strict=True):
            u = np.sum((Y[:, None] - X[None]) ** 2, axis=2)
            if isinstance(k, mc.InverseMultiquadric):
                logs = -2.5 * np.log(1.0 + u)
            elif isinstance(k, mc.Gaussian):
                logs = -u / 0.5
            elif isinstance(k, mc.Laplace):
                logs = -np.sqrt(u)
            else:
                z = np.sqrt(3 * u) / 2.0
                logs = np.log1p(z) - z
            terms.append(logs + np.log(w) - math.log(total) - log_normaliser(k, d))
        return logsumexp(np.concatenate(terms, axis=1), axis=1)

    return p, log


def test_groups_with_kernels_of_their_own(rng):
    p, log = mixture(rng)
    Y = rng.normal(size=(20, 2))
    assert_allclose(p.log(Y), log(Y), rtol=1e-12, atol=1e-12)
    assert_allclose(p(Y), np.exp(log(Y)), rtol=1e-12)
    h = 1e-5
    slope = np.stack([(log(Y + h * e) - log(Y - h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    assert_allclose(p.log_gradient(Y), slope, atol=1e-6)
    assert_allclose(p.gradient(Y), p(Y)[:, None] * p.log_gradient(Y), rtol=1e-10)


@pytest.mark.parametrize("far", [50.0, 1e3, 1e6])
@pytest.mark.parametrize(
    "kernel", [mc.Gaussian(0.5), mc.Laplace(0.5), mc.Matern(2.5, 0.5)], ids=repr
)
def test_logarithms_and_scores_where_everything_underflows(kernel, far):
    X = np.array([[0.0, 0.0], [1.0, 0.0]])
    p = density(kernel, X)
    y = np.array([[far, 0.0]])
    last = density(kernel, X[1:])  # the nearer point is all there is
    expected = last.log(y) - math.log(2)
    if isinstance(kernel, mc.Gaussian):
        by_hand = -((far - 1) ** 2) / 0.5 - math.log(2 * 2 * np.pi * 0.25)
        assert p.log(y) == pytest.approx(by_hand, rel=1e-12)
        assert p.log_gradient(y)[0] == pytest.approx([-(far - 1) / 0.25, 0.0], rel=1e-12)
    assert_allclose(p.log(y), expected, rtol=0.01, atol=1.0)
    h = 1e-4 * far
    step = np.array([[h, 0.0]])
    slope = (p.log(y + step) - p.log(y - step)) / (2 * h)
    assert_allclose(p.log_gradient(y)[0, 0], slope, rtol=1e-5)


def test_groups_whose_constants_are_hundreds_of_orders_apart(rng):
    """A narrow window that does not reach must not hide a wide one that does."""
    d = 784
    X = np.zeros((2, d))
    narrow, wide = mc.kernels.Uniform(1.0), mc.kernels.Uniform(1e4)
    p = Density([mc.Element(narrow, X[:1], [1.0]), mc.Element(wide, X[1:], [1.0])])
    y = np.zeros((2, d))
    y[1, 0] = 50.0
    expected = [-log_ball(d) - math.log(2), -log_ball(d) - d * math.log(100.0) - math.log(2)]
    assert_allclose(p.log(y), expected, rtol=1e-12)
    assert_array_equal(p.log_gradient(y[1:]), np.zeros((1, d)))


def test_windows_have_no_logarithm_and_no_score_outside():
    p = density(mc.Epanechnikov(1.0), [[0.0], [0.5]])
    assert p.log([[9.0]])[0] == -np.inf and p([[9.0]])[0] == 0.0  # noqa: PT018
    assert np.isnan(p.log_gradient([[9.0]])[0, 0])
    assert np.isfinite(p.log([[1.2]])).all()


def test_a_cusp_has_no_hessian():
    p = density(mc.Laplace(1.0), [[0.0, 0.0], [1.0, 0.0]])
    hessian = p.hessian([[0.0, 0.0], [0.5, 0.0]])
    assert np.isnan(hessian[0]).all()
    assert np.isfinite(hessian[1]).all()


def test_elements_of_kernel_density_and_their_density_are_one(rng):
    X, Y, w = rng.normal(size=(20, 3)), rng.normal(size=(9, 3)), rng.uniform(size=20)
    e = kernel_density(mc.Matern(2.5, 1.5), X, weights=w)
    p = Density(e)  # weights are scaled to sum to one
    assert_allclose(p(Y), e(Y), rtol=1e-12)
    assert_allclose(p.gradient(Y), e.gradient(Y), rtol=1e-12)
    assert_allclose(p.hessian(Y), e.hessian(Y), rtol=1e-12, atol=1e-15)


def test_far_from_the_origin(rng):
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(6, 2))
    p, moved = density(mc.Gaussian(0.3), X), density(mc.Gaussian(0.3), X + 1e7)
    assert_allclose(moved.log(Y + 1e7), p.log(Y), rtol=1e-6)
    assert_allclose(moved.log_gradient(Y + 1e7), p.log_gradient(Y), rtol=1e-6, atol=1e-5)


def test_float32_stays_float32(rng):
    X = rng.normal(size=(20, 2)).astype(np.float32)
    p, wide = density(mc.Gaussian(0.5), X), density(mc.Gaussian(0.5), X.astype(float))
    for name in ("__call__", "log", "gradient", "hessian", "log_gradient"):
        found, expected = getattr(p, name)(X), getattr(wide, name)(X.astype(float))
        assert found.dtype == np.float32
        assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    assert p.sample(5, 0).dtype == np.float32
    assert_allclose(
        p.log(X + np.float32(500.0)), wide.log((X + np.float32(500.0)).astype(float)), rtol=1e-5
    )
    tiny = density(mc.Gaussian(1e-30), np.zeros((1, 2), np.float32))
    with pytest.raises(mc.InputError, match="range of float32"):
        tiny(np.zeros((1, 2), np.float32))


def test_sparse_points_are_densities_too(rng):
    X = rng.normal(size=(15, 6)) * (rng.random((15, 6)) < 0.4)
    p, dense = density(mc.Gaussian(1.0), csr_array(X)), density(mc.Gaussian(1.0), X)
    assert_allclose(p.log(csr_array(X)), dense.log(X), rtol=1e-12)
    assert_array_equal(p.sample(9, 3), dense.sample(9, 3))


def test_bad_densities_are_named():
    e = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0]])
    for elements, message in (
        ([], "at least one element"),
        ([mc.feature(mc.Gaussian(1.0), [[0.0], [1.0]])], "single elements"),
        ([3.0], "single elements"),
        ([-1.0 * e], "must be >= 0"),
        ([0.0 * e], "must not all be zero"),
        ([e, mc.mean_embedding(mc.Gaussian(1.0), [[0.0, 1.0]])], "same number of features"),
    ):
        with pytest.raises(mc.InputError, match=message):
            Density(elements)
    with pytest.raises(mc.InputError, match=r"has 1 features, but Y has 2"):
        Density(e)([[0.0, 1.0]])
    with pytest.raises(mc.InputError, match="n must be an integer"):
        Density(e).sample(0)
    with pytest.raises(mc.InputError, match="weights must be >= 0"):
        kernel_density(mc.Gaussian(1.0), [[0.0], [1.0]], weights=[1.0, -1.0])
    with pytest.raises(AttributeError):
        Density(e).elements = ()
    assert repr(Density(e)).endswith("Gaussian(length_scale=1.0) on 2 points in 1 dimensions>")


# --- adaptive -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [mc.Gaussian(0.5), mc.Epanechnikov(0.5), mc.Laplace(0.4)], ids=repr
)
def test_factors_follow_abramson(kernel, rng):
    X, w = rng.normal(size=(40, 2)), rng.uniform(0.2, 2.0, 40)
    w /= w.sum()
    Y = rng.normal(size=(7, 2))
    p = adaptive_density(
        kernel, X, weights=w, n_groups=40
    )  # as many groups as points: nothing is rounded
    logs = density(kernel, X, w).log(X)
    lam = np.exp(-0.5 * (logs - w @ logs))
    expected = sum(
        wi * kernel(x[None] / f, Y / f)[0] / f**2 for wi, x, f in zip(w, X, lam, strict=True)
    ) / math.exp(log_normaliser(kernel, 2))
    assert_allclose(p(Y), expected, rtol=1e-10)


def test_groups_are_few_and_rounding_is_small(rng):
    X = np.concatenate([rng.normal(size=(300, 2)), 0.1 * rng.normal(size=(300, 2)) + 4.0])
    exact = adaptive_density(mc.Gaussian(0.5), X, n_groups=600)
    rounded = adaptive_density(mc.Gaussian(0.5), X)
    assert len(rounded.elements) <= 32 < len(exact.elements)
    Y = X[::7]
    assert_allclose(rounded(Y), exact(Y), rtol=0.02)
    assert sum(weights_of(e).sum() for e in rounded.elements) == pytest.approx(1.0)
    lengths = np.array([e.kernel.length_scale for e in rounded.elements])
    steps = np.diff(np.log(lengths)) / math.log(lengths[-1] / lengths[0]) * 31
    assert_allclose(steps, np.rint(steps), atol=1e-9)  # in a geometric sequence


def test_sensitivity_zero_is_the_plain_density_and_weights_are_rows(rng):
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(5, 2))
    plain = adaptive_density(mc.Gaussian(0.5), X, sensitivity=0.0)
    assert len(plain.elements) == 1
    assert plain.elements[0].kernel == mc.Gaussian(0.5)
    assert_array_equal(plain.log(Y), density(mc.Gaussian(0.5), X).log(Y))
    w = rng.integers(0, 3, 20)
    repeated = adaptive_density(mc.Gaussian(0.5), np.repeat(X, w, axis=0))
    assert_allclose(
        adaptive_density(mc.Gaussian(0.5), X, weights=w).log(Y), repeated.log(Y), rtol=1e-9
    )


def test_bad_options_and_few_groups(rng):
    X = rng.normal(size=(30, 1))
    Y = np.linspace(-3, 3, 7)[:, None]
    for options, message in (
        ({"sensitivity": -1.0}, "sensitivity must be >= 0"),
        ({"n_groups": 0}, "n_groups must be"),
    ):
        with pytest.raises(mc.InputError, match=message):
            adaptive_density(mc.Gaussian(0.3), X, **options)
    one = adaptive_density(mc.Gaussian(0.3), X[:1])
    assert_allclose(one.log(Y), density(mc.Gaussian(0.3), X[:1]).log(Y), rtol=1e-12)
    assert len(adaptive_density(mc.Gaussian(0.3), X, n_groups=1).elements) == 1


@given(st.integers(1, 12), st.floats(0.0, 2.0), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_an_adaptive_density_is_a_density(n, sensitivity, n_groups, seed):
    X = np.round(np.random.default_rng(seed).normal(size=(n, 1)), 1)  # with ties
    p = adaptive_density(mc.Gaussian(0.5), X, sensitivity=sensitivity, n_groups=n_groups)
    lengths = np.array([e.kernel.length_scale for e in p.elements])
    step = min(0.05, lengths.min() / 2)
    reach = 10 * lengths.max() + 5
    t = np.arange(-reach, reach, max(step, reach / 1e5))
    assert p(t[:, None]).sum() * (t[1] - t[0]) == pytest.approx(1.0, rel=1e-6)
    assert_allclose(np.exp(p.log(X)), p(X), rtol=1e-10)


@pytest.mark.parametrize("wrong", [None, 3, object(), mc.Gaussian, "ab", {"a": 1}])
def test_wrong_types_are_named(wrong):
    for make in (kernel_density, adaptive_density):
        with pytest.raises(mc.InputError, match="kernel must be"):
            make(wrong, [[0.0], [1.0]])
    for elements in (wrong, [wrong]):
        with pytest.raises(mc.InputError, match="element"):
            Density(elements)
