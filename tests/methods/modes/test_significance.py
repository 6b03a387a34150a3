"""Significant modes: the test by its definition, the tree, one cloud, equivariance, hard inputs."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import mercer as mc
from mercer import InputError
from mercer.methods import significant_modes
from mercer.methods._rows import followed
from mercer.methods.density._bandwidth import column_spreads
from mercer.methods.modes import _significance as significance
from mercer.methods.modes._row_graph import (
    bridged,
    join_tree,
    neighbour_edges,
    row_basins,
)


@pytest.fixture
def clusters(rng):
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    truth = np.repeat([0, 1, 2], [80, 60, 40])
    return centres[truth] + rng.normal(size=(180, 2)), truth


# --- the test of a mode -------------------------------------------------------------------------


def test_t_is_that_of_the_definition(rng):
    Z, w = rng.normal(size=(40, 3)), rng.integers(1, 4, 40).astype(float)
    M, S, h = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), 0.8
    every = np.repeat(Z, w.astype(int), axis=0)
    k = mc.Gaussian(h)
    g = k(every, M) - k(every, S)
    expected = np.maximum(g.mean(axis=0), 0.0) / (g.std(axis=0) / np.sqrt(len(every)))
    np.testing.assert_allclose(significance._t(Z, w, M, S, h), expected, rtol=1e-9)


def test_basins_join_over_the_highest_saddle_first():
    """Heights 3 | 1 2 | 0.5 1.5 along a line: the hills of 2 and 1.5 join those left of them."""
    f = np.array([1.0, 3.0, 1.0, 2.0, 0.5, 1.5])
    Z = np.arange(6.0)[:, None]
    edges = np.arange(5), np.arange(1, 6)
    modes, basin = row_basins(Z, f, edges, 0.1)
    assert modes.tolist() == [1, 3, 5]
    tree = join_tree(Z, f, modes, basin, edges, lambda Q: np.interp(Q[:, 0], Z[:, 0], f))
    assert (tree.child.tolist(), tree.parent.tolist()) == ([1, 2], [0, 1])
    np.testing.assert_allclose(tree.saddle, [[2.0], [4.0]])
    assert followed(np.array([0, 0, 1])).tolist() == [0, 0, 0]


def test_the_graph_is_connected(rng):
    Z = np.concatenate([rng.normal(m, 0.1, (30, 2)) for m in (0.0, 50.0, 300.0)])
    a, b = bridged(Z, neighbour_edges(Z))
    part = np.arange(len(Z)) // 30
    assert {tuple(sorted(p)) for p in zip(part[a], part[b], strict=True)} >= {(0, 1), (1, 2)}


def test_a_row_on_a_slope_is_no_mode():
    """Its neighbours in the graph lie below it, and a higher row within the bandwidth does not."""
    Z, f = np.array([[0.0], [1.0], [1.5]]), np.array([1.0, 2.0, 3.0])
    edges = np.array([0]), np.array([1])
    assert row_basins(Z, f, edges, 0.1)[0].tolist() == [1, 2]
    assert row_basins(Z, f, edges, 1.0)[0].tolist() == [2]


def test_no_row_climbs_over_a_bridge():
    """The last row of one group is the nearest to the other, where the density is higher."""
    Z = np.concatenate([np.arange(10.0), 20.0 + np.arange(20.0) / 4])[:, None]
    f = np.concatenate([5.0 - np.abs(np.arange(10.0) - 4.0) / 2, np.full(20, 9.0)])
    edges = neighbour_edges(Z)
    modes, basin = row_basins(Z, f, edges, 1.0)
    assert basin[:10].tolist() == [0] * 10
    a, b = bridged(Z, edges)
    assert len(a) == len(edges[0]) + 1
    assert join_tree(Z, f, modes, basin, (a, b), lambda Q: np.zeros(len(Q))).saddle.shape[1] == 1


# --- clusters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5, 20, 50])
def test_one_normal_cloud_is_one_cluster(d):
    """The benchmark `clustering` counts how often this fails."""
    for seed in range(3):
        found = significant_modes(np.random.default_rng(seed).normal(size=(300, d)))
        assert len(found) == 1
        assert "no clusters" in found.message
        assert found.significance.tolist() == [np.inf]


@pytest.mark.parametrize(("d", "seed"), [(2, 0), (2, 11), (5, 3), (5, 15)])
def test_a_long_cloud_is_one_cluster(d, seed):
    """These draws were split while all directions had one bandwidth."""
    X = np.random.default_rng(seed).normal(size=(1000, d)) * np.geomspace(1.0, 0.1, d)
    assert len(significant_modes(X)) == 1


def test_in_two_columns_their_shape_does_not_matter(clusters):
    """Components have equal spreads, up to those of quartiles instead of deviations."""
    X, truth = clusters
    for A in ([[1.0, 0.0], [0.0, 1e-4]], [[1.0, 5.0], [0.0, 1.0]]):
        found = significant_modes(X @ A)
        assert adjusted_rand_score(truth, found.labels) > 0.98
        spreads = column_spreads(X @ A @ found.components.T, np.ones(len(X)))
        assert spreads[0] == pytest.approx(spreads[1])


@pytest.mark.parametrize("d", [1, 2, 3, 8, 50])
def test_separate_clouds_are_found_from_1_to_50_columns(d, rng):
    truth = np.repeat([0, 1], [120, 60])
    X = rng.normal(size=(180, d))
    X[:, 0] += 8.0 * truth
    found = significant_modes(X)
    assert adjusted_rand_score(truth, found.labels) > 0.95
    assert found.significance[1] >= found.critical
    assert "2 clusters" in found.message


def test_a_small_group_far_away_is_found(rng):
    """Fewer rows than this are not significant, however far away."""
    X = np.concatenate([rng.normal(size=(100, 2)), rng.normal([8.0, 0.0], 0.5, (12, 2))])
    found = significant_modes(X)
    assert np.array_equal(found.labels, np.repeat([0, 1], [100, 12]))
    assert len(significant_modes(X[:105])) == 1


def test_clusters_in_more_directions_than_two(rng):
    """Eight corners of a cube: in the plane of two components they overlap."""
    truth = np.repeat(np.arange(8), 60)
    corners = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)]) * 10.0
    found = significant_modes(corners[truth] + rng.normal(size=(480, 3)))
    assert adjusted_rand_score(truth, found.labels) > 0.99
    assert found.components.shape == (3, 3)


def test_labels_are_numbered_by_size_and_points_are_rows(clusters):
    X, truth = clusters
    found = significant_modes(X)
    assert np.array_equal(found.labels, truth)
    for point, label in zip(found.points, range(3), strict=True):
        (row,) = np.flatnonzero((point == X).all(axis=1))
        assert found.labels[row] == label


@pytest.mark.parametrize("d", [2, 6])
def test_order_shift_and_scale_change_nothing(d, rng):
    X = rng.normal(size=(150, d))
    X[:60, 0] += 7.0
    found = significant_modes(X)
    order = rng.permutation(len(X))
    for other, labels in (
        (X[order], found.labels[order]),
        (X + 1e5, found.labels),
        (X * 1e-9, found.labels),
        (X * 3.7e20, found.labels),
    ):
        assert np.array_equal(significant_modes(other).labels, labels)


def test_a_weight_of_two_is_a_repeated_row(clusters, rng):
    X, _ = clusters
    w = rng.integers(0, 4, len(X))
    weighted, repeated = significant_modes(X, weights=w), significant_modes(np.repeat(X, w, axis=0))
    assert weighted.bandwidth == pytest.approx(repeated.bandwidth)
    np.testing.assert_allclose(weighted.significance, repeated.significance, rtol=1e-9)
    assert np.array_equal(np.repeat(weighted.labels, w), repeated.labels)


def test_many_rows_are_sampled_evenly(clusters, monkeypatch, rng):
    X, truth = clusters
    monkeypatch.setattr(significance, "_MOST_ROWS", 90)
    found = significant_modes(X)
    assert adjusted_rand_score(truth, found.labels) > 0.9
    w = rng.integers(1, 4, len(X))
    weighted, repeated = significant_modes(X, weights=w), significant_modes(np.repeat(X, w, axis=0))
    assert np.array_equal(np.repeat(weighted.labels, w), repeated.labels)


def test_an_outlier_changes_nothing_for_the_others(clusters):
    X, truth = clusters
    for far in (1e3, 1e6):
        found = significant_modes(np.vstack([X, [[far, far]]]))
        assert adjusted_rand_score(truth, found.labels[:-1]) == 1.0


def test_constant_and_collinear_columns(clusters):
    X, truth = clusters
    plain = significant_modes(X)
    constant = significant_modes(np.column_stack([X, np.full(len(X), 5.0)]))
    assert np.array_equal(constant.labels, truth)
    assert constant.bandwidth == pytest.approx(plain.bandwidth)
    assert constant.components.shape == (2, 3)
    assert np.array_equal(significant_modes(X @ [[1.0, 0, 1, 1], [0, 1, 1, -1]]).labels, truth)


def test_few_rows():
    for X in ([[1.0, 2.0]], np.ones((5, 3)), [[0.0], [1.0]], [[0.0, 1.0], [1.0, 5.0], [2.0, 2.0]]):
        found = significant_modes(X)
        assert (len(found), set(found.labels.tolist())) == (1, {0})


def test_more_columns_than_rows_and_many_of_both(rng):
    for shape in ((20, 300), (600, 520)):
        assert len(significant_modes(rng.normal(size=shape))) == 1


def test_a_callback_hears_and_stops(clusters):
    X, _ = clusters
    steps = []
    significant_modes(X, callback=lambda step: steps.append(step.n_iter))
    assert steps == [2, 3, 4, 5]
    assert len(significant_modes(X, callback=lambda _: True)) >= 1


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([[np.nan], [1.0]], {}, "NaN"),
        ([["a"], ["b"]], {}, "numbers"),
        ([[0.0], [1.0]], {"weights": [0.0, 0.0]}, "not all be zero"),
        ([[0.0], [1.0]], {"weights": [0.1, 0.2]}, "numbers of rows"),
        ([[0.0], [1.0]], {"callback": 3}, "callback"),
    ],
)
def test_refusals(X, options, message):
    with pytest.raises(InputError, match=message):
        significant_modes(X, **options)
