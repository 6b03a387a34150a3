"""Equal rows, and samples of rows: orders, repetitions, units, containers."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mercer.methods._rows import (
    distinct_index,
    distinct_rows,
    nearest,
    renumbered,
    row_keys,
    spread_rows,
)


def test_row_keys_are_those_of_values(rng):
    X = np.array([[0.0, 1.5], [-0.0, 1.5], [1.5, 0.0], [0.0, 1.5 + 1e-15]])
    keys = row_keys(X)
    assert keys[0] == keys[1]
    assert len(set(keys.tolist())) == 3
    assert row_keys(csr_array(X)).tolist() == keys.tolist()
    assert row_keys(X.astype(np.float32))[0] == keys[0]
    assert int(row_keys(np.array([[1.0]]))[0]) == 260993317774790908  # in every process
    names = np.array([frozenset("ab"), frozenset("ba"), frozenset("a")], dtype=object)
    assert len(set(row_keys(names).tolist())) == 2


def test_distinct_rows_depend_on_neither_order_repetition_nor_units(rng):
    X = rng.integers(0, 3, size=(60, 3)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    rows, mass = distinct_rows(X)
    expected = np.unique(np.where(np.isnan(X), 9.0, X), axis=0)  # NaN comes last
    np.testing.assert_array_equal(np.where(np.isnan(rows), 9.0, rows), expected)
    assert mass.sum() == 60
    order, units = rng.permutation(60), np.array([3.0, 1e-5, 0.7])
    again, weights = distinct_rows(X[order] * units)
    np.testing.assert_array_equal(again, rows * units)
    np.testing.assert_array_equal(weights, mass)
    w = rng.integers(0, 3, 60)
    for one, other in zip(distinct_rows(X, w), distinct_rows(np.repeat(X, w, axis=0)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_columns_are_looked_at_until_they_decide(rng):
    X = np.zeros((50, 100))
    X[:, 97] = rng.permutation(50)
    assert distinct_rows(X)[0][:, 97].tolist() == list(range(50))
    sparse, _ = distinct_rows(csr_array(X))
    np.testing.assert_array_equal(sparse.toarray()[:, 97], np.arange(50))


@pytest.mark.parametrize("columns", [1, 3, 5, 40])
def test_distinct_rows_are_in_lexicographic_order(columns, rng):
    """Many ties, in groups that differ in different columns."""
    X = rng.integers(0, 3, size=(200, columns)).astype(float)
    X[:100, : columns // 2] = 0.0
    rows = [tuple(row) for row in distinct_rows(X)[0].tolist()]
    assert rows == sorted(set(map(tuple, X.tolist())))


def test_equal_rows_of_different_labels_are_different():
    X, labels = np.array([[1.0], [2.0], [1.0], [1.0]]), np.array([0.5, 0.5, 0.5, -3.0])
    rows, w = distinct_index(X, np.array([1.0, 2.0, 3.0, 4.0]), labels)
    assert sorted(zip(rows.tolist(), w.tolist(), strict=True)) == [(0, 4.0), (1, 2.0), (3, 4.0)]


def test_equal_rows_are_one_of_their_total_weight():
    X = np.array([[1.0, np.nan], [2.0, 3.0], [1.0, np.nan], [0.0, 1.0], [-0.0, 1.0]])
    rows, w = distinct_rows(X, np.array([1.0, 1.0, 2.5, 1.0, 1.0]))
    assert rows[[0, 2]].tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert w.tolist() == [2.0, 3.5, 1.0]
    rows, w = distinct_rows(X, np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
    assert rows.tolist() == [[2.0, 3.0]]


def test_points_that_are_not_vectors(rng):
    words = np.array(["ab", "b", "ab", "abc"], dtype=object)
    one, mass = distinct_rows(words)
    other, _ = distinct_rows(words[[3, 2, 1, 0]])
    assert one.tolist() == other.tolist()
    assert sorted(zip(one.tolist(), mass.tolist(), strict=True)) == [
        ("ab", 2),
        ("abc", 1),
        ("b", 1),
    ]


@pytest.mark.parametrize("size", [1, 5, 100])
def test_spread_rows_are_evenly_spaced(size, rng):
    X = rng.permutation(np.arange(20.0))[:, None]
    rows, mass = spread_rows(X, None, size)
    assert len(rows) == min(size, 20)
    assert (mass == 1.0).all()
    if size > 1:
        assert rows[[0, -1], 0].tolist() == [0.0, 19.0]


@pytest.mark.parametrize("shift", [0.0, 1e9, -1e12])
@pytest.mark.parametrize(("k", "d"), [(3, 2), (40, 2), (40, 30)])
def test_the_nearest_row_far_from_the_origin(shift, k, d, rng):
    rows = rng.normal(size=(k, d)) * 100.0 + shift
    Z = rows[rng.integers(0, k, 300)] + rng.normal(size=(300, d))
    distance, number = nearest(rows, Z)
    gaps = np.linalg.norm(Z[:, None] - rows, axis=2)
    np.testing.assert_allclose(distance, gaps[np.arange(300), number], rtol=1e-14)
    np.testing.assert_allclose(distance, gaps.min(axis=1), rtol=1e-9)


def test_no_row_is_nearest_among_none():
    distance, number = nearest(np.empty((0, 2)), np.zeros((3, 2)))
    assert np.isinf(distance).all()
    assert number.tolist() == [-1, -1, -1]


def test_labels_follow_a_new_order():
    labels = np.array([0, 1, 2, -1, 1])
    assert renumbered(labels, np.array([2, 1]), 3).tolist() == [-1, 1, 0, -1, 1]
