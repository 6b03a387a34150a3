"""Draws from densities: the exact laws of radii and directions, maps, sums, weights."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta, chi2, gamma, kstest
from scipy.stats import f as ratio

import mercer as mc
from mercer.methods.density._density import Density
from mercer.methods.density._normaliser import _DRAWN_PANELS, RadialDistribution, draw


def squared_radius_law(kernel, d):
    """The distribution function of u = |x|^2 for x drawn from the kernel in R^d, exactly."""
    match kernel:
        case mc.Gaussian(length_scale=s):
            return lambda u: chi2(d).cdf(u / s**2)
        case mc.Laplace(length_scale=s):
            return lambda u: gamma(d).cdf(np.sqrt(u) / s)
        case mc.kernels.Uniform(rho=rho):
            return lambda u: (u / rho) ** (d / 2)
        case mc.Epanechnikov(c=c):
            return lambda u: beta(d / 2, 2).cdf(u / c)
        case mc.InverseMultiquadric(c=c, p=p):  # u / c has the law of a ratio of Gamma variables
            return lambda u: ratio(d, 2 * p - d).cdf(u / c * (2 * p - d) / d)
        case mc.Matern(nu=nu, length_scale=s):
            z = {1.5: [(d, 1.0), (d + 1, d)], 2.5: [(d, 1.0), (d + 1, d), (d + 2, d * (d + 1) / 3)]}
            shapes, masses = zip(*z[nu], strict=True)
            share = np.array(masses) / sum(masses)
            rate = math.sqrt(2 * nu) / s
            return lambda u: sum(
                q * gamma(a).cdf(rate * np.sqrt(u)) for a, q in zip(shapes, share, strict=True)
            )


@pytest.mark.parametrize("d", [1, 2, 5, 30])
@pytest.mark.parametrize(
    "kernel",
    [
        mc.Gaussian(0.7),
        mc.Laplace(2.0),
        mc.Matern(1.5, 0.6),
        mc.Matern(2.5, 3.0),
        mc.InverseMultiquadric(2.0, 16.0),
        mc.kernels.Uniform(0.3),
        mc.Epanechnikov(2.0),
    ],
    ids=repr,
)
def test_the_squared_radius_of_draws_has_its_law(kernel, d):
    x = draw(kernel, 20_000, d, np.random.default_rng(d))
    u = np.sum(x**2, axis=1)
    assert kstest(u, squared_radius_law(kernel, d)).pvalue > 1e-3
    side = x[:, 0] / np.sqrt(u)  # directions are uniform: the square of a coordinate is a beta
    assert abs(np.mean(side)) < 5 / math.sqrt(d * 20_000)
    if d > 1:
        assert kstest(side**2, beta(0.5, (d - 1) / 2).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kernel", [mc.Gaussian(0.7), mc.Matern(2.5, 0.4)], ids=repr)
@pytest.mark.parametrize("d", [1, 3, 20])
def test_the_table_of_radii_is_accurate(kernel, d):
    """For kernels with closed forms too, so that the table's own error is seen without noise."""
    table = RadialDistribution.of(kernel, d, _DRAWN_PANELS)
    below = np.cumsum(table.mass) / table.mass.sum()
    law = squared_radius_law(kernel, d)
    assert np.max(np.abs(law(np.exp(table.high)) - below)) < 1e-13 * 50
    q = (np.arange(2000) + 0.5) / 2000
    t = table.at(q, np.full(2000, 0.5))  # the middle of the panel of each quantile
    panel = np.searchsorted(below, q, side="right")
    before = np.concatenate([[0.0], below])[panel]
    middle = 0.5 * (before + below[panel])
    assert np.max(np.abs(law(np.exp(t)) - middle)) < 1e-7


def test_draws_behind_maps_and_of_sums():
    A = np.array([[2.0, 0.5], [0.0, 0.7]])
    x = draw(mc.Gaussian(1.0).transform(mc.kernels.Matrix(A)), 50_000, 2, np.random.default_rng(0))
    assert_allclose(np.cov(x.T), np.linalg.inv(A.T @ A), rtol=0.05, atol=0.02)
    x = draw(mc.Gaussian(1.0).transform(mc.Scales([0.5, 4.0])), 50_000, 2, np.random.default_rng(0))
    assert_allclose(x.std(axis=0), [0.5, 4.0], rtol=0.02)
    # masses of the parts: 0.1 sqrt(2 pi) and 3 x 2 x 0.5
    both = mc.Gaussian(0.1) + 3.0 * mc.Laplace(0.5)
    x = draw(both, 50_000, 1, np.random.default_rng(0))[:, 0]
    share = 0.1 * math.sqrt(2 * math.pi) / (0.1 * math.sqrt(2 * math.pi) + 3.0)

    def law(u):
        return share * chi2(1).cdf(u / 0.01) + (1 - share) * gamma(1).cdf(np.sqrt(u) / 0.5)

    assert kstest(x**2, law).pvalue > 1e-3


def test_draws_of_a_density_come_from_its_points_by_weight():
    X = np.array([[-10.0], [0.0], [10.0]])
    p = Density(mc.mean_embedding(mc.Gaussian(0.1), X, weights=[1.0, 3.0, 0.0]))
    x = p.sample(20_000, random_state=0)[:, 0]
    assert np.mean(x < -5) == pytest.approx(0.25, abs=0.015)
    assert not np.any(x > 5)
    assert_array_equal(x, p.sample(20_000, random_state=0)[:, 0])
    assert not np.array_equal(x, p.sample(20_000, random_state=1)[:, 0])
    groups = zip((0.1, 1.0, 0.01), X, (1.0, 3.0, 6.0), strict=True)
    q = Density([mc.Element(mc.Gaussian(s), [x], [w]) for s, x, w in groups])
    x = q.sample(20_000, np.random.RandomState(0))[:, 0]
    near = np.abs(x) < 5
    assert near.mean() == pytest.approx(0.3, abs=0.015)
    assert x[near].std() == pytest.approx(1.0, rel=0.05)
    assert x[x > 5].std() == pytest.approx(0.01, rel=0.05)
    order = np.corrcoef(np.arange(20_000), x)[0, 1]  # draws are in no order
    assert abs(order) < 0.03
