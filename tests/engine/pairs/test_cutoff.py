"""Reach: how far a profile goes, and sums that leave out what is farther."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mercer as mc
from mercer import engine
from mercer.engine import Dense, Scales
from mercer.engine.pairs import _distance_limits
from mercer.engine.pairs._distance_limits import extent2, reach, useful_cutoff
from mercer.engine.pairs._distances import sorted_in_space
from mercer.engine.sums._native import CorePoints
from tests.engine.cases import TOLERANCE
from tests.engine.isas import ISAS, compiled, each_isa, forced

# --- how far a profile goes -----------------------------------------------------------------------

DECAYING = [
    mc.Gaussian(0.3),
    mc.Laplace(0.2),
    mc.Matern(1.5, 0.3),
    mc.Matern(2.5, 0.3),
    mc.Epanechnikov(0.7),
    mc.Epanechnikov(0.7, 0.4),
    mc.Gaussian(0.3) + 0.1 * mc.Gaussian(1.0),
    3.0 * mc.Gaussian(0.3) * mc.Laplace(1.0),
    mc.RationalQuadratic(8.0, 0.1),
]


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("tolerance", [0.0, 1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("kernel", DECAYING, ids=repr)
def test_beyond_its_reach_a_profile_is_small(kernel, tolerance, order):
    """|k|, u |k'| and u^2 |k''| stay below tolerance times k(0)."""
    largest = 1e4
    cutoff = reach(kernel.program, order, tolerance, largest)
    assert cutoff > 0
    u = np.linspace(1, 1.2, 20_001)[:, None] * min(cutoff, largest) * 10.0 ** np.arange(3)
    u = u[u <= largest]
    jet = engine.evaluate(kernel.program.profile, [u], order)
    parts = [jet.value, *(u * d for d in jet.first), *(u**2 * row[0] for row in jet.second)]
    if np.isfinite(cutoff):
        assert np.max(np.abs(parts)) <= tolerance * kernel([[0.0]])[0, 0]


@pytest.mark.parametrize("tolerance", [1e-12, 1e-6, 1e-2])
def test_the_reach_of_a_gaussian_is_tight(tolerance):
    exact = -2 * 0.3**2 * np.log(tolerance)
    assert exact <= reach(mc.Gaussian(0.3).program, 0, tolerance, 1e4) <= 1.02 * exact
    zero = reach(mc.Gaussian(0.3).program, 0, 0.0, 1e4)
    assert 2 * 0.3**2 * 745 <= zero <= 1.02 * 2 * 0.3**2 * 746


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_reach_of_a_window_is_its_edge(order):
    assert 0.4 <= reach(mc.Epanechnikov(0.7, 0.4).program, order, 0.0, 1e4) <= 1.02 * 0.4


@pytest.mark.parametrize(
    "kernel",
    [mc.InverseMultiquadric(), mc.NegativeDistance(), mc.NegativeDistance(1.0, c=2.0)],
    ids=repr,
)
def test_what_does_not_decay_reaches_everywhere(kernel):
    assert reach(kernel.program, 0, 1e-6, 1e4) == np.inf


def test_a_gap_inside_the_reach_does_not_end_it():
    """A profile that vanishes somewhere and comes back."""
    u = engine.Var(0, nonnegative=True)
    program = engine.Program((engine.Distance(),), np.exp(-u) + 0.5 * np.exp(-((u - 50.0) ** 2)))
    assert 51 < reach(program, 0, 1e-6, 1e4) < 60


# --- sorting --------------------------------------------------------------------------------------


def test_sorting_is_a_permutation_that_puts_neighbours_together(rng):
    X = rng.uniform(size=(1000, 2))
    order, points = sorted_in_space(X, 64)
    np.testing.assert_array_equal(np.sort(order), np.arange(1000))
    np.testing.assert_array_equal(points, X[order])
    areas = [np.prod(np.ptp(points[i : i + 64], axis=0)) for i in range(0, 1000, 64)]
    assert np.sum(areas) < 1.5  # leaves hardly overlap; in the order given they would cover 15


def test_sorting_must_pay(rng):
    X = rng.uniform(size=(4000, 2))
    window, wide, many = mc.Epanechnikov(0.1).program, mc.Epanechnikov(1.0).program, np.tile(X, 10)
    np.testing.assert_allclose(useful_cutoff(window, X, X, 0, 0.0), 0.1, rtol=0.03)
    assert useful_cutoff(wide, X, X, 0, 0.0) == np.inf  # nothing is out of reach
    assert useful_cutoff(window, X[:100], X, 0, 0.0) == np.inf  # too few pairs
    assert useful_cutoff(window, X[:100], X, 0, 0.0, n_queries=100_000) < np.inf
    assert useful_cutoff(window, many, many, 0, 0.0) == np.inf  # too many dimensions
    np.testing.assert_allclose(extent2(X, X + 1.0), 8.0, rtol=0.01)


# --- sums -----------------------------------------------------------------------------------------

NARROW = {
    "gaussian": mc.Gaussian(0.05),
    "laplace": mc.Laplace(0.005),
    "window": mc.Epanechnikov(0.03),
    "jump": mc.Epanechnikov(0.03, 0.02),
    "sum": mc.Gaussian(0.05) + 0.5 * mc.Matern(2.5, 0.01),
    "mapped": mc.Gaussian(1.0).transform(Scales([0.05, 0.1, 0.03])),
}


def clusters(rng, n, d, dtype="float64"):
    """Points in clumps, as they come: not sorted."""
    centres = rng.uniform(-6, 6, size=(8, d))
    return (centres[rng.integers(0, 8, size=n)] + 0.05 * rng.normal(size=(n, d))).astype(dtype)


def is_sorted(kernel, X, Y, order=0):
    placed = CorePoints(kernel.program, X, X.dtype).placed(Y, order)
    tolerance = mc.get_options().tolerance
    cutoff = useful_cutoff(kernel.program, placed.points, placed.queries, order, tolerance)
    return cutoff < np.inf


@pytest.mark.sample(3)
@compiled
@each_isa
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("tolerance", [0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("name", NARROW)
def test_skipped_blocks_change_no_more_than_the_bound(name, tolerance, dtype, isa, rng):
    kernel = NARROW[name]
    n, m, d = 4001, 2600, 3
    X, Y, A = clusters(rng, n, d, dtype), clusters(rng, m, d, dtype), rng.normal(size=(n, 2))
    with mc.options(engine="blocked"):
        exact = engine.fields(
            kernel.program, X.astype(float), Y[:200].astype(float), Dense(A), order=1
        )
    with forced(isa), mc.options(engine="native", tolerance=tolerance):
        assert is_sorted(kernel, X, Y)
        f = engine.fields(kernel.program, X, Y, Dense(A), order=1)
        again = engine.fields(kernel.program, X, Y, Dense(A), order=1)
        value = engine.fields(kernel.program, X, Y, Dense(A)).value
    np.testing.assert_array_equal(f.value, again.value)
    np.testing.assert_array_equal(f.gradient, again.gradient)
    rounding = TOLERANCE[dtype] * 300 * kernel([[0.0] * d])[0, 0]  # as many are in reach
    bound = tolerance * np.abs(A).sum(axis=0) * kernel([[0.0] * d])[0, 0]
    if tolerance:
        np.testing.assert_allclose(f.bound, bound, atol=rounding)
    else:
        assert f.bound is None
    assert np.all(np.abs(f.value[:200] - exact.value) <= bound + rounding)
    assert np.all(np.abs(value[:200] - exact.value) <= bound + rounding)
    slope = 1 / 0.005  # the steepest of these kernels, and then some
    error = np.abs(f.gradient[:200] - exact.gradient).max(axis=-1)
    assert np.all(error <= slope * 10 * (bound + 10 * rounding))


@compiled
@given(
    isa=st.sampled_from(ISAS or ["none"]),
    dtype=st.sampled_from(["float32", "float64"]),
    n=st.integers(1, 700),
    m=st.integers(1, 300),
    d=st.sampled_from([1, 2, 4, 5, 9, 16]),
    tolerance=st.sampled_from([0.0, 1e-12, 1e-4]),
    kernel=st.sampled_from([mc.Gaussian(0.05), mc.Epanechnikov(0.1), mc.Matern(1.5, 0.02)]),
    order=st.integers(0, 2),
    seed=st.integers(0, 2**31),
)
def test_sorted_sums_of_any_size(isa, dtype, n, m, d, tolerance, kernel, order, seed):
    rng = np.random.default_rng(seed)
    X, Y, A = clusters(rng, n, d, dtype), clusters(rng, m, d, dtype), rng.normal(size=(n, 1))
    Y[0] = X[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_distance_limits, "_PAIRS", 0)
        with forced(isa), mc.options(engine="native", tolerance=tolerance):
            f = engine.fields(kernel.program, X, Y, Dense(A), order=order)
    with mc.options(engine="blocked"):
        wide = X.astype(float), Y.astype(float)
        exact = engine.fields(kernel.program, *wide, Dense(A), order=order)
    share = tolerance + 20 * TOLERANCE[dtype]
    for k, name in enumerate(("value", "gradient", "hessian")[: order + 1]):
        size = np.abs(A).sum() * kernel([[0.0] * d])[0, 0] * (1 / 0.01) ** k
        assert np.abs(getattr(f, name) - getattr(exact, name)).max() <= 10**k * share * size


@compiled
@pytest.mark.parametrize("tolerance", [1e-9, 1e-3])
@pytest.mark.parametrize("kernel", [mc.Gaussian(0.5), mc.Epanechnikov(1.0)], ids=repr)
def test_small_sums_keep_their_relative_accuracy_when_shifted(kernel, tolerance, rng):
    """What is left out may be most of a sum in the tails."""
    X = rng.normal(size=(5000, 2)) + 40.0 * rng.integers(0, 2, size=(5000, 1))
    Y = np.column_stack([np.linspace(-6, 46, 2100), np.linspace(-6, 46, 2100)])
    coef = Dense(np.ones((5000, 1)))
    with mc.options(engine="blocked"):
        exact = engine.fields(kernel.program, X, Y, coef, order=1, shifted=True)
    with mc.options(engine="native", tolerance=tolerance):
        assert is_sorted(kernel, X, Y, 1)
        f = engine.fields(kernel.program, X, Y, coef, order=1, shifted=True)
    hit = exact.value[:, 0] > 0
    ratio, wanted = (g.gradient[hit, 0] / g.value[hit] for g in (f, exact))
    np.testing.assert_allclose(ratio, wanted, rtol=2e-3, atol=2e-3)
