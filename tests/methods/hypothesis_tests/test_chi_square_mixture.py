"""Tails of weighted chi-squares against closed forms, SciPy, Monte Carlo and high precision."""

import numpy as np
import pytest
from scipy.stats import chi2, f, gamma, ncx2

from mercer.exceptions import InputError
from mercer.methods import weighted_chi_square_tail


def check(found, exact, accuracy=1e-8):
    """The error bound holds, and is small; both relative to the smaller of the two tails."""
    assert abs(found.value - exact) <= found.error + 1e-12 * exact
    assert found.error <= accuracy * min(exact, 1 - exact) + 1e-15
    low, high = found.bounds
    assert 0 <= low <= found.value <= high <= 1


@pytest.mark.parametrize("q", [1e-3, 0.5, 4.0, 20.0, 150.0, 1000.0])
def test_equal_weights_are_a_chi_square(q):
    check(weighted_chi_square_tail([2.0] * 3, q), chi2.sf(q / 2, 3))
    check(weighted_chi_square_tail([2.0, 2.0], q, degrees=[0.7, 3.5]), chi2.sf(q / 2, 4.2))
    check(weighted_chi_square_tail([-1.0, -1.0], -q), chi2.cdf(q, 2))


@pytest.mark.parametrize("q", [0.1, 3.0, 10.0, 100.0, 800.0])
def test_pairs_of_weights_are_exponential(q):
    """w chi2_2 is exponential with rate 1 / (2 w)."""
    a, b = 0.5, 0.25
    exact = (a * np.exp(-b * q) - b * np.exp(-a * q)) / (a - b)
    check(weighted_chi_square_tail([1.0, 1.0, 2.0, 2.0], q), exact)


@pytest.mark.parametrize("q", [-40.0, -1.0, 0.5, 10.0, 200.0])
def test_weights_of_both_signs_are_a_laplace_law(q):
    exact = 0.5 * np.exp(-0.5 * q) if q > 0 else 1 - 0.5 * np.exp(0.5 * q)
    check(weighted_chi_square_tail([1.0, 1.0, -1.0, -1.0], q), exact)


@pytest.mark.parametrize("x", [0.3, 2.0, 30.0])
def test_zero_of_a_difference_is_the_f_law(x):
    found = weighted_chi_square_tail([5 / 3, -x], 0.0, degrees=[3, 5])
    check(found, f.sf(x, 3, 5), 1e-6)


@pytest.mark.parametrize("q", [0.1, 2.0, 10.0, 60.0])
def test_offsets_are_noncentral(q):
    check(weighted_chi_square_tail([1.0, 1.0], q, offsets=[1.0, -1.0]), ncx2.sf(q, 2, 2.0))
    check(weighted_chi_square_tail([0.5], q, degrees=[4], offsets=[2.0]), ncx2.sf(2 * q, 4, 4.0))


@pytest.mark.parametrize("small", [0.5, 0.01, 1e-5])
@pytest.mark.parametrize("q", [0.5, 3.0, 40.0, 400.0])
def test_two_weights_far_out_by_high_precision(small, q):
    """P(z_1^2 + w z_2^2 > q) by 30-digit quadrature over z_2."""
    mp = pytest.importorskip("mpmath")
    mpf, sqrt, erfc = mp.mpf, mp.sqrt, mp.erfc
    with mp.workdps(30):
        w, end = mpf(small), sqrt(mpf(q) / mpf(small))
        inside = mp.quad(
            lambda z: erfc(sqrt(abs(q - w * z * z) / 2)) * mp.exp(-z * z / 2),
            [mpf(0), *(mpf(z) for z in (1, 2, 3, 4, 5, 7, 10, 15, 20, 25, 28) if z < end), end],
        )
        exact = float(2 / sqrt(2 * mp.pi) * inside + erfc(end / sqrt(2)))
    check(weighted_chi_square_tail([1.0, small], q), exact, 1e-4)


def test_many_weights_by_monte_carlo():
    rng = np.random.default_rng(0)
    w = rng.normal(size=30) / np.arange(1, 31)
    draws = rng.normal(size=(200_000, 30)) ** 2 @ w
    for q in (-2.0, 0.0, 1.0, 4.0):
        p = weighted_chi_square_tail(w, q).value
        assert abs(p - np.mean(draws > q)) < 4 * np.sqrt(p * (1 - p) / 200_000)


@pytest.mark.parametrize("q", [0.4, 1.5, 6.0])
@pytest.mark.parametrize("known", [5, 20, 100])
def test_a_remainder_is_bounded(q, known):
    w = 1 / np.arange(1, 501) ** 2
    rest = w[known:].sum(), (w[known:] ** 2).sum(), w[known]
    found = weighted_chi_square_tail(w[:known], q, remainder=rest)
    exact = weighted_chi_square_tail(w, q)
    assert abs(found.value - exact.value) <= found.error + exact.error
    assert found.error < 15.0 * known**-3.0


def test_only_a_remainder_is_a_gamma_law():
    found = weighted_chi_square_tail([], 1.1, remainder=(1.0, 0.002, 0.002))
    assert found.value == pytest.approx(gamma.sf(1.1, 250, scale=0.004), rel=1e-10)
    assert abs(found.value - chi2.sf(1.1 / 0.002, 500)) <= found.error


@pytest.mark.parametrize("unit", [1e-150, 1e-3, 1e150])
def test_units_do_not_matter(unit):
    w = np.array([3.0, 1.0, -0.5])
    plain = weighted_chi_square_tail(w, 10.0).value
    assert weighted_chi_square_tail(unit * w, unit * 10.0).value == pytest.approx(plain, rel=1e-9)


def test_outside_the_support_and_beyond_float64():
    assert weighted_chi_square_tail([1.0, 2.0], -1.0) == (1.0, 0.0)
    assert weighted_chi_square_tail([1.0, 2.0], 0.0) == (1.0, 0.0)
    assert weighted_chi_square_tail([-1.0], 0.0) == (0.0, 0.0)
    assert weighted_chi_square_tail([], 1.0) == (0.0, 0.0)
    assert weighted_chi_square_tail([0.0], -1.0) == (1.0, 0.0)
    far = weighted_chi_square_tail([1.0, 2.0], 1e5)
    assert far.value == 0.0
    assert far.error < 1e-290


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [[1.0]]}, "weights"),
        ({"weights": [np.nan]}, "weights"),
        ({"q": np.nan}, "q"),
        ({"degrees": [0.0]}, "degrees must be > 0"),
        ({"degrees": [1.0, 2.0]}, "degrees"),
        ({"offsets": [1.0, 2.0]}, "offsets"),
        ({"remainder": (1.0, 1.0, 0.5)}, "largest"),
        ({"remainder": (1.0, 1.0)}, "remainder"),
    ],
)
def test_refusals_name_the_cure(options, message):
    with pytest.raises((InputError, TypeError), match=message):
        weighted_chi_square_tail(**{"weights": [1.0], "q": 1.0, **options})


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_weights_of_any_scale(scale):
    check(weighted_chi_square_tail([2.0 * scale] * 3, 4.0 * scale), chi2.sf(2.0, 3))


def test_remainder_is_three_numbers():
    with pytest.raises(InputError, match="three numbers"):
        weighted_chi_square_tail([1.0], 1.0, remainder=0.5)


@pytest.mark.parametrize("q", [1e-80, 1e-160, 1e-300, 5e-324])
@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, 2.0], [1.0, 1e-160], [1e300, 1.0]])
def test_tiny_quantiles(weights, q):
    low, high = weighted_chi_square_tail(weights, q).bounds
    assert 1.0 - 1e-12 <= low <= high == 1.0
    low, high = weighted_chi_square_tail([-w for w in weights], -q).bounds
    assert low <= high <= 1e-30


def test_what_cannot_be_computed_has_a_large_error():
    low, high = weighted_chi_square_tail([1.0, 2.0], 1.0, offsets=[1e300, 1.0]).bounds
    assert 0.0 <= low <= high == 1.0
