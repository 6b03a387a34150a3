"""Laws of distances between distributions: J8 of docs/spec.md."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import mercer as mc
from mercer.exceptions import InputError
from mercer.theory import (
    chi_square_divergence,
    f_divergence,
    hellinger,
    integral_probability_metric,
    kl_divergence,
    largest_power,
    total_variation,
)


def laws(m=6, count=200, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.full(m, 0.5), size=2) for _ in range(count)]


def normals(shift, spread=1.0):
    """Probabilities of the cells of a fine grid under two normal laws."""
    edges = np.linspace(-12.0, 12.0, 4001)
    cells = [np.diff(stats.norm(m, s).cdf(edges)) for m, s in ((0.0, 1.0), (shift, spread))]
    return [c / c.sum() for c in cells]


def test_J8_total_variation_is_the_largest_difference_over_all_events():
    for p, q in laws(count=30):
        events = [abs(np.dot(A, p - q)) for A in product((0.0, 1.0), repeat=len(p))]
        assert_allclose(total_variation(p, q), max(events), rtol=1e-12)


def test_J8_total_variation_is_an_integral_probability_metric_over_indicators():
    indicators = np.array(list(product((0.0, 1.0), repeat=6))).T
    for p, q in laws(count=30):
        found = integral_probability_metric(indicators, p, q)
        assert_allclose(found, total_variation(p, q), rtol=1e-12)


def test_J8_total_variation_is_an_f_divergence():
    for p, q in laws():
        found = f_divergence(lambda t: np.abs(t - 1.0) / 2.0, p, q, slope=0.5)
        assert_allclose(found, total_variation(p, q), rtol=1e-12)
    assert f_divergence(lambda t: np.abs(t - 1) / 2, [0.5, 0.5], [1.0, 0.0], slope=0.5) == 0.5


def test_J8_kl_divergence_of_normal_laws():
    p, q = normals(1.5)
    assert_allclose(kl_divergence(p, q), 1.5**2 / 2.0, rtol=1e-4)
    assert_allclose(kl_divergence(p, q), stats.entropy(p, q), rtol=1e-12)


def test_J8_hellinger_distance_of_normal_laws_and_as_an_f_divergence():
    p, q = normals(1.5)
    assert_allclose(hellinger(p, q) ** 2, 1.0 - np.exp(-(1.5**2) / 8.0), rtol=1e-5)
    for p, q in laws():
        found = f_divergence(lambda t: (np.sqrt(t) - 1.0) ** 2 / 2.0, p, q, slope=0.5)
        assert_allclose(found, hellinger(p, q) ** 2, rtol=1e-10)


def test_J8_pearson_divergence_of_normal_laws():
    p, q = normals(0.8)
    assert_allclose(chi_square_divergence(p, q), np.exp(0.8**2) - 1.0, rtol=1e-4)
    for p, q in laws():
        assert_allclose(chi_square_divergence(p, q), np.sum((p - q) ** 2 / q), rtol=1e-9)


def test_J8_total_variation_of_normal_laws_is_the_integral():
    p, q = normals(1.0, 2.0)
    a, b = stats.norm(0.0, 1.0), stats.norm(1.0, 2.0)
    exact = 0.5 * integrate.quad(lambda x: abs(a.pdf(x) - b.pdf(x)), -12, 12, limit=200)[0]
    assert_allclose(total_variation(p, q), exact, rtol=1e-3)


def test_J8_divergences_are_ordered():
    for p, q in laws():
        tv, h, kl = total_variation(p, q), hellinger(p, q), kl_divergence(p, q)
        slack = 1 + 1e-12
        assert h**2 <= tv * slack
        assert tv <= h * np.sqrt(2.0 - h**2) * slack
        assert tv**2 <= kl / 2.0 * slack  # Pinsker
        assert kl <= np.log1p(chi_square_divergence(p, q)) * slack


def test_J8_divergences_vanish_only_for_equal_laws_and_are_infinite_off_the_support():
    for f in (total_variation, kl_divergence, hellinger, chi_square_divergence):
        assert f([0.2, 0.8], [0.2, 0.8]) == 0.0
        assert f([0.2, 0.8], [0.3, 0.7]) > 0.0
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert chi_square_divergence([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert_allclose(kl_divergence([1.0, 0.0], [0.5, 0.5]), np.log(2.0))
    assert total_variation([1.0, 0.0], [0.0, 1.0]) == hellinger([1.0, 0.0], [0.0, 1.0]) == 1.0


def test_J8_mmd_is_an_integral_probability_metric_and_below_total_variation():
    """The witness of norm one attains MMD, other functions of norm one do not exceed it."""
    rng, k = np.random.default_rng(1), mc.Gaussian(1.0)
    atoms = rng.normal(size=(6, 1))
    for p, q in laws(count=50):
        witness = mc.Element(k, atoms, p - q)
        distance = witness.norm()
        ball = [mc.Element(k, atoms, a) for a in rng.normal(size=(20, 6))]
        values = np.stack([f(atoms) / f.norm() for f in (witness, *ball)], axis=1)
        found = integral_probability_metric(values, p, q)
        assert_allclose(found, distance, rtol=1e-9)
        assert distance <= 2.0 * total_variation(p, q) * (1 + 1e-12)  # k(x, x) = 1


@pytest.mark.parametrize("n", [1, 5, 20])
def test_J8_no_test_has_more_power_than_the_limit(n):
    """The most powerful test of Neyman and Pearson, of a coin; exact."""
    p, q, level = 0.5, 0.65, 0.05
    heads = np.arange(n + 1)
    under_p, under_q = stats.binom(n, p).pmf(heads), stats.binom(n, q).pmf(heads)
    order = np.argsort(-under_q / under_p)
    mass = np.cumsum(under_p[order])
    k = int(np.searchsorted(mass, level))
    share = (level - (mass[k - 1] if k else 0.0)) / under_p[order[k]]  # randomised at the border
    power = under_q[order[:k]].sum() + share * under_q[order[k]]
    limit = largest_power([p, 1 - p], [q, 1 - q], n, level)
    assert power <= limit < 4.0 * power


def test_J8_largest_power_is_level_for_equal_laws_and_one_for_disjoint_ones():
    assert largest_power([0.5, 0.5], [0.5, 0.5], 1000, 0.05) == 0.05
    assert largest_power([1.0, 0.0], [0.0, 1.0], 1, 0.05) == 1.0


@pytest.mark.parametrize("bad", [[0.5, 0.6], [-0.5, 1.5], [0.5], [np.nan, 1.0]])
def test_J8_refuses_what_is_no_distribution(bad):
    with pytest.raises(InputError):
        total_variation(bad, [0.5, 0.5])
