"""Length scales from data: exact medians, and the rules of Scott and Silverman."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist

import mercer as mc

WHOLE = st.integers(-4, 4).map(float)


def points(max_rows=12, max_columns=4, values=WHOLE):
    """Small matrices, often with ties and equal rows."""
    shape = st.tuples(st.integers(2, max_rows), st.integers(1, max_columns))
    return shape.flatmap(lambda s: arrays(np.float64, s, elements=values))


def distances(X):
    d = pdist(X)
    return d[d > 0]


# --- median ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 20, 33, 80])
def test_median_of_distances_exactly(n, d, rng):
    """Odd and even numbers of pairs; up to three columns the distances are the same numbers."""
    for _ in range(5):
        X = rng.normal(size=(n, d))
        assert mc.median_scale(X) == pytest.approx(np.median(pdist(X)), rel=4e-16, abs=0)


@pytest.mark.parametrize("d", [4, 8, 50])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 20, 33])
def test_median_of_distances_in_many_columns(n, d, rng):
    X = rng.normal(size=(n, d)) + 3.0
    assert mc.median_scale(X) == pytest.approx(np.median(pdist(X)), rel=1e-12, abs=0)


@given(points())
def test_median_with_ties_and_equal_rows(X):
    found = distances(X)
    if found.size == 0:
        with pytest.raises(mc.InputError, match=r"all points are equal"):
            mc.median_scale(X)
    else:
        assert mc.median_scale(X) == pytest.approx(np.median(found), rel=1e-12, abs=0)


@given(points(), st.data())
def test_a_weight_is_a_number_of_equal_rows(X, data):
    counts = data.draw(arrays(np.int64, len(X), elements=st.integers(0, 4)))
    repeated = np.repeat(X, counts, axis=0)
    if len(np.unique(repeated, axis=0)) < 2:
        with pytest.raises(mc.InputError):
            mc.median_scale(X, weights=counts)
        return
    expected = mc.median_scale(repeated)
    assert mc.median_scale(X, weights=counts) == pytest.approx(expected, rel=1e-13, abs=0)
    assert mc.median_scale(X, weights=counts * 0.1) == pytest.approx(expected, rel=1e-13, abs=0)
    assert expected == pytest.approx(np.median(distances(repeated)), rel=1e-12, abs=0)


@given(points(values=st.floats(-1e6, 1e6)), st.floats(1e-3, 1e3), st.floats(-1e6, 1e6))
def test_median_moves_and_scales_with_the_data(X, factor, shift):
    gaps = distances(X)
    if gaps.size == 0 or gaps.min() < 1e-3:
        return
    m = mc.median_scale(X)
    assert mc.median_scale(factor * X) == pytest.approx(factor * m, rel=1e-9)
    assert mc.median_scale(X + shift) == pytest.approx(m, rel=1e-6, abs=1e-9 * abs(shift))


def test_median_over_several_blocks(rng):
    """More rows than one block of pairs, and more pairs than are sorted at once."""
    X = rng.normal(size=(1700, 2))
    assert mc.median_scale(X) == pytest.approx(np.median(pdist(X)), rel=1e-14, abs=0)
    rounded = X.round(1)  # many ties
    assert mc.median_scale(rounded) == pytest.approx(
        np.median(distances(rounded)), rel=1e-14, abs=0
    )


def test_median_of_few_distinct_distances():
    X = np.repeat([[0.0], [1.0]], [1200, 1], axis=0)
    assert mc.median_scale(X) == 1.0
    X = np.repeat([[0.0], [1.0], [3.0]], [900, 1, 900], axis=0)
    assert mc.median_scale(X) == 3.0


def test_two_points_at_any_scale():
    for gap in (1e-150, 1e-20, 1.0, 1e20, 1e150):
        assert mc.median_scale([[0.0], [gap]]) == pytest.approx(gap, rel=1e-15)


@pytest.mark.parametrize("X", [[[1.0]], [[2.0, 3.0]] * 5, np.zeros((3, 2))])
def test_equal_points_have_no_median(X):
    with pytest.raises(mc.InputError, match=r"all points are equal.*give a length scale"):
        mc.median_scale(X)


def test_far_from_the_origin(rng):
    X = rng.normal(size=(30, 6))
    assert mc.median_scale(X + 1e6) == pytest.approx(np.median(pdist(X + 1e6)), rel=1e-9)


def test_subsampling_honours_the_seed(rng):
    X = rng.normal(size=(400, 2))
    whole = mc.median_scale(X)
    assert mc.median_scale(X, n_points=None) == whole
    assert mc.median_scale(X, n_points=400) == whole
    draws = [mc.median_scale(X, n_points=50, random_state=seed) for seed in range(6)]
    assert len(set(draws)) == 6
    assert draws[3] == mc.median_scale(X, n_points=50, random_state=3)
    assert mc.median_scale(X, n_points=50) == draws[0]  # a function of its data by default
    assert_allclose(draws, whole, rtol=0.25)
    state = [mc.median_scale(X, n_points=50, random_state=np.random.RandomState(5)) for _ in "ab"]
    assert state[0] == state[1]
    generator = np.random.default_rng(5)
    assert mc.median_scale(X, n_points=50, random_state=generator) != mc.median_scale(
        X, n_points=50, random_state=generator
    )
    rows = np.sort(np.random.default_rng(3).choice(400, 50, replace=False))
    assert draws[3] == mc.median_scale(X[rows])


def test_subsampling_draws_among_rows_with_weight(rng):
    """Rows of weight zero are not there; drawing them would leave nothing."""
    X, w = rng.normal(size=(2000, 2)), np.zeros(2000)
    w[:20] = 1.0
    expected = mc.median_scale(X[:20])
    assert mc.median_scale(X, weights=w, n_points=100) == pytest.approx(expected, rel=1e-13)


def test_sparse_and_float32(rng):
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.4)
    expected = np.median(distances(X))
    assert mc.median_scale(csr_array(X)) == pytest.approx(expected, rel=1e-12)
    assert mc.median_scale(csr_array(X), weights=np.ones(40)) == pytest.approx(expected, rel=1e-12)
    single = mc.median_scale(X.astype(np.float32))
    assert type(single) is float
    assert single == pytest.approx(expected, rel=1e-6)
    assert mc.median_scale(X[:, :2].astype(np.float32)) == pytest.approx(
        np.median(distances(X[:, :2])), rel=1e-6
    )


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_float32_keeps_its_whole_range(size, rng):
    """Squared distances of float32 data leave the range of float32; the median does not."""
    X = (size * rng.normal(size=(9, 2))).astype(np.float32)
    assert mc.median_scale(X) == pytest.approx(np.median(pdist(X.astype(float))), rel=1e-6)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"weights": [1.0, -1.0, 1.0]}, r"weights must be >= 0, got -1\.0"),
        ({"weights": [0.0, 0.0, 0.0]}, "weights must not all be zero"),
        ({"weights": [1.0]}, "weights must have 3 entries, got 1"),
        ({"weights": [np.nan, 1.0, 1.0]}, "weights contains NaN"),
        ({"n_points": 0}, "n_points must be an integer >= 1, got 0"),
        ({"n_points": 1.5}, "n_points must be an integer >= 1, got 1.5"),
        ({"n_points": 2, "random_state": -1}, "random_state must be None, an integer >= 0"),
        ({"n_points": 2, "random_state": "seed"}, "random_state must be None, an integer >= 0"),
    ],
)
def test_bad_arguments(keywords, message):
    with pytest.raises(mc.InputError, match=message):
        mc.median_scale([[0.0], [1.0], [3.0]], **keywords)


def test_one_weight_that_counts_is_not_a_median():
    with pytest.raises(mc.InputError, match=r"all points are equal"):
        mc.median_scale([[0.0], [1.0]], weights=[1.0, 0.0])
