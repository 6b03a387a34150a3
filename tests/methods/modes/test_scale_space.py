"""Numbers of modes by bandwidth: against sign changes of the slope, and the laws of plateaus."""

import numpy as np
import pytest

import mercer as mc
from mercer.methods.modes._scale_space import ScaleSpace, scale_space


def modes_on_a_line(x, h, weights=None):
    """Maxima of the Gaussian density, by sign changes of its slope on a fine grid."""
    w = np.ones(len(x)) if weights is None else weights
    t = np.linspace(x.min() - h, x.max() + h, 20_001)
    slope = np.zeros_like(t)
    for xi, wi in zip(x, w, strict=True):
        slope += wi * (xi - t) * np.exp(-0.5 * ((xi - t) / h) ** 2)
    return int(np.sum((slope[:-1] > 0) & (slope[1:] <= 0)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_on_a_line_counts_are_those_of_the_slope_and_never_rise(seed):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(m, 0.5, 12) for m in (0.0, 2.0, 7.0)])
    h = np.geomspace(0.05, 5.0, 15)
    space = scale_space(x[:, None], h)
    np.testing.assert_array_equal(space.n_modes, [modes_on_a_line(x, b) for b in h])
    assert (np.diff(space.n_modes) <= 0).all()


def test_shoulders_that_take_long_to_leave_are_no_modes():
    rng = np.random.default_rng(0)
    centres = 6.0 * rng.normal(size=(4, 1))
    x = centres[rng.integers(4, size=300)] + rng.normal(size=(300, 1))
    h = np.geomspace(0.008698, 0.6605, 25)[15:20]
    expected = [modes_on_a_line(x[:, 0], b) for b in h]
    np.testing.assert_array_equal(scale_space(x, h).n_modes, expected)


def test_weights_count(rng):
    x, w = rng.uniform(0.0, 10.0, 25), rng.uniform(0.1, 3.0, 25)
    h = [0.3, 0.6, 1.2]
    space = scale_space(x[:, None], h, weights=w)
    np.testing.assert_array_equal(space.n_modes, [modes_on_a_line(x, b, w) for b in h])
    w[5:] = 0.0
    assert scale_space(x[:, None], [1e-3], weights=w).n_modes.tolist() == [5]


def test_two_equal_points_part_at_half_their_distance():
    space = scale_space([[-1.0], [1.0]], [0.5, 0.9, 0.99, 1.01, 1.1])
    assert space.n_modes.tolist() == [2, 2, 2, 1, 1]


def test_in_the_plane_a_new_mode_may_appear():
    # three points of an equilateral triangle: at the critical bandwidth the middle is a mode too
    X = np.array([[np.cos(t), np.sin(t)] for t in np.pi * np.array([0.0, 2 / 3, 4 / 3]) + 0.3])
    h = np.linspace(0.69, 0.71, 21)
    starts = np.vstack([X, np.zeros((1, 2))])
    counts = scale_space(starts, h, weights=[1.0, 1.0, 1.0, 1e-9]).n_modes
    assert counts[0] == 3
    assert counts.max() == 4
    assert counts[-1] in (1, 4)
    assert (np.diff(counts) > 0).any()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_default_bandwidths_find_blobs(d):
    rng = np.random.default_rng(d)
    centres = 8.0 * np.eye(5)[:4, :d] if d > 1 else 8.0 * np.arange(4.0)[:, None]
    count = len(np.unique(centres, axis=0))
    X = np.concatenate([c + 0.7 * rng.normal(size=(40, d)) for c in centres])
    space = scale_space(X, n_bandwidths=20)
    assert space.n_modes[-1] == 1
    assert space.n_modes[0] > count
    assert space.longest.n_modes == count
    assert len(mc.mean_shift(mc.mean_embedding(mc.Gaussian(space.best), X))) == count


@pytest.mark.parametrize(
    ("kernel", "count"),
    [
        (mc.Epanechnikov(1.0), 2),
        (mc.Laplace(1.0), 3),  # each point of a pair is a cusp that the other cannot pull over
        (mc.Gaussian(3.0), 2),
        (mc.Matern(1.5, 0.2), 2),
    ],
)
def test_other_kernels_and_their_own_length(kernel, count):
    X = np.array([[0.0], [0.2], [5.0], [5.2], [5.4]])
    space = scale_space(X, [1.0, 100.0], kernel=kernel)
    assert space.n_modes.tolist() == [count, 1]


def test_units_and_place_do_not_matter(rng):
    X = rng.normal(size=(60, 2))
    one, other = scale_space(X, n_bandwidths=8), scale_space(1e3 * X + 1e5, n_bandwidths=8)
    np.testing.assert_allclose(other.bandwidths, 1e3 * one.bandwidths, rtol=1e-6)
    np.testing.assert_array_equal(other.n_modes, one.n_modes)


def test_duplicates_and_float32(rng):
    X = rng.normal(size=(40, 2)).astype(np.float32)
    once, twice = scale_space(X, n_bandwidths=8), scale_space(np.vstack([X, X]), n_bandwidths=8)
    np.testing.assert_allclose(twice.bandwidths, once.bandwidths, rtol=1e-6)
    np.testing.assert_array_equal(twice.n_modes, once.n_modes)


def test_few_starts_are_enough_for_few_modes(rng):
    X = np.concatenate([rng.normal(m, 1.0, (300, 2)) for m in (-6.0, 0.0, 6.0)])
    assert scale_space(X, [1.5], max_starts=30).n_modes.tolist() == [3]


def test_plateaus():
    space = ScaleSpace(np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([7, 3, 3, 3, 1]))
    assert [p.n_modes for p in space.plateaus] == [7, 3, 1]
    assert space.longest.n_modes == 3
    np.testing.assert_allclose([p.high for p in space.plateaus], [2**0.5, 8 * 2**0.5, 16.0])
    assert space.best == pytest.approx(4.0)
    assert sum(p.length for p in space.plateaus) == pytest.approx(np.log(16.0))
    assert "3 modes" in repr(space)
    assert space.table()["n_modes"].tolist() == [7, 3, 3, 3, 1]


def test_of_equal_plateaus_that_with_fewer_modes():
    space = ScaleSpace(np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), np.array([9, 5, 5, 2, 2, 1]))
    assert space.longest.n_modes == 2


def test_with_one_mode_everywhere_that_is_the_answer():
    space = scale_space([[0.0], [1.0]], [1.0, 4.0])
    assert space.best == pytest.approx(2.0)
    assert scale_space([[3.0, 4.0]], [2.0]).best == pytest.approx(2.0)


def test_callback_sees_each_bandwidth_and_can_stop(rng):
    steps = []
    scale_space(rng.normal(size=(10, 1)), [0.1, 0.2, 0.4], callback=steps.append)
    assert [s.n_iter for s in steps] == [1, 2, 3]
    assert steps[-1].residual == 0.0
    space = scale_space([[0.0], [1.0]], [0.1, 0.2, 0.4], callback=lambda s: s.n_iter == 2)
    assert space.bandwidths.tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scale_space([[1.0], [1.0]]), "one distinct point"),
        (lambda: scale_space([[0.0], [1.0]], [0.0, 1.0]), "each > 0"),
        (lambda: scale_space([[0.0], [1.0]], []), "bandwidths"),
        (lambda: scale_space([[0.0], [1.0]], n_bandwidths=1), "n_bandwidths must be >= 2"),
        (lambda: scale_space([[np.nan], [1.0]]), "NaN"),
        (lambda: scale_space([[0.0], [1.0]], [1.0], kernel=mc.Linear()), "convex"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_bandwidths_of_kernels_without_a_length_scale_are_factors(unit, rng):
    X = np.concatenate([rng.normal(m, 0.3, (20, 1)) for m in (0.0, 4.0)])
    kernel = mc.Gaussian(unit) + mc.Gaussian(2.0 * unit)
    found = scale_space(X * unit, kernel=kernel, n_bandwidths=6)
    assert (
        found.n_modes.tolist()
        == scale_space(
            X, kernel=mc.Gaussian(1.0) + mc.Gaussian(2.0), n_bandwidths=6
        ).n_modes.tolist()
    )
    assert found.n_modes[-1] == 1
    assert 0.01 < found.bandwidths[0] < found.bandwidths[-1] < 100.0
