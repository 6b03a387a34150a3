"""Linear maps of points: values with an action and its transpose."""

import copy
import pickle

import numpy as np
import pytest

import mercer as mc
from mercer.engine import Columns, Matrix, Scales
from mercer.engine.programs._maps import apply_all, column_rank, pull_all

A = np.array([[1.0, -2.0, 0.5, 0.0], [0.0, 3.0, 1.0, -1.0]])
MAPS = {
    "scales": (Scales([1.0, 2.0, 4.0, 0.5]), np.diag([1.0, 0.5, 0.25, 2.0])),
    "columns": (Columns([2, 0]), np.eye(4)[[2, 0]]),
    "matrix": (Matrix(A), A),
}


@pytest.fixture(params=MAPS)
def step(request):
    return MAPS[request.param]


def test_points_go_forward(step, rng):
    point_map, matrix = step
    X = rng.normal(size=(7, 4))
    np.testing.assert_allclose(point_map.apply(X), X @ matrix.T)
    assert point_map.out_dim(4) == matrix.shape[0]
    assert point_map.apply(X.astype(np.float32)).dtype == np.float32


def test_gradients_come_back_by_the_transpose(step, rng):
    point_map, matrix = step
    G = rng.normal(size=(3, 2, matrix.shape[0]))
    np.testing.assert_allclose(point_map.pull(G, 4), G @ matrix)


def test_maps_are_applied_in_order(rng):
    maps = (MAPS["scales"][0], MAPS["columns"][0], Scales([2.0, 5.0]))
    matrix = np.diag([0.5, 0.2]) @ MAPS["columns"][1] @ MAPS["scales"][1]
    X, G = rng.normal(size=(7, 4)), rng.normal(size=(7, 2))
    np.testing.assert_allclose(apply_all(maps, X), X @ matrix.T)
    np.testing.assert_allclose(pull_all(maps, G, 4), G @ matrix)


def test_maps_are_values(step):
    point_map, _ = step
    other = type(point_map)(np.array(point_map.array))
    assert point_map == other
    assert hash(point_map) == hash(other)
    assert point_map != Scales([9.0, 9.0])
    assert pickle.loads(pickle.dumps(point_map)) == point_map
    assert copy.deepcopy(point_map) == point_map
    assert copy.copy(point_map) == point_map
    assert eval(repr(point_map), vars(mc.kernels)) == point_map


def test_equal_arrays_of_different_kinds_differ():
    assert Scales([1.0, 2.0]) != Columns([1, 2])


def test_maps_cannot_be_changed(step):
    point_map, _ = step
    with pytest.raises(AttributeError, match="immutable"):
        point_map.array = np.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        point_map.array[0] = 5


@pytest.mark.parametrize(("kind", "value"), [(Scales, [1.0, 2.0]), (Matrix, [[1.0, 2.0]])])
def test_maps_keep_a_copy(kind, value):
    given = np.array(value)
    point_map = kind(given)
    given[...] = 7.0
    np.testing.assert_array_equal(point_map.array, value)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Scales([1.0, 0.0]), r"lengths must all be > 0, got \[1.0, 0.0\]"),
        (lambda: Scales([]), "lengths must all be > 0"),
        (lambda: Scales([[1.0]]), "one-dimensional"),
        (lambda: Scales([1.0, np.nan]), "NaN"),
        (lambda: Columns([0, 0]), "distinct"),
        (lambda: Columns([-1]), ">= 0"),
        (lambda: Columns([]), "list of column numbers"),
        (lambda: Columns([0.5]), "list of column numbers"),
        (lambda: Columns([True, False]), "list of column numbers"),
        (lambda: Matrix([1.0, 2.0]), "shape"),
        (lambda: Matrix([[np.inf]]), "infinity"),
    ],
)
def test_what_is_no_map(build, message):
    with pytest.raises(mc.InputError, match=message):
        build()


def mapped_kernel(maps):
    """A kernel that sees its points through maps, the first of them first."""
    k = mc.Gaussian(1.0)
    for step in reversed(maps):
        k = k.transform(step)
    return k


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ((Scales([1.0, 2.0]),), "X has 4 features, but the kernel's Scales needs 2"),
        ((Matrix([[1.0, 2.0]]),), "X has 4 features, but the kernel's Matrix needs 2"),
        ((Columns([1, 4]),), "X has 4 features, but the kernel looks at column 4"),
        ((Columns([0, 1]), Scales([1.0, 2.0, 3.0])), "needs 3"),
    ],
)
def test_points_must_fit(maps, message):
    with pytest.raises(mc.InputError, match=message):
        mapped_kernel(maps)(np.zeros((3, 4)))


def test_points_that_fit():
    maps = (Columns([3, 0]), Scales([1.0, 2.0]), Matrix([[1.0, 1.0]]))
    assert mapped_kernel(maps)(np.zeros((3, 4))).shape == (3, 3)


@pytest.mark.parametrize("index", [2**63, 2**64 - 1])
def test_columns_beyond_every_index_are_refused(index):
    with pytest.raises(mc.InputError, match="below 2"):
        Columns([index])


def test_the_rank_does_not_depend_on_units(rng):
    A = rng.normal(size=(3, 3))
    singular = A * [1.0, 1.0, 0.0] + np.outer(A[:, 0], [0.0, 0.0, 2.0])
    for units in ([1.0, 1.0, 1.0], [1e-9, 1.0, 1e9], [1e-150, 1.0, 1e140]):
        assert column_rank(A * units) == 3
        assert column_rank(singular * units) == 2
    assert column_rank(np.zeros((2, 3))) == 0
