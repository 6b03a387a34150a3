"""Coefficients in four forms: each does what the matrix it stands for does."""

import numpy as np
import pytest

from mercer.engine import Dense, LowRank, SingleFeatures, Stacked, stack


def forms():
    """(coefficient, the matrix written out) for each form, with 9 points and 5 elements."""
    rng = np.random.default_rng(0)
    A, left, right = rng.normal(size=(9, 5)), rng.normal(size=(9, 2)), rng.normal(size=(2, 5))
    index, value = np.array([4, 0, 4, 8, 1]), rng.normal(size=5)
    chosen = np.zeros((9, 5))
    chosen[index, np.arange(5)] = value
    top, middle = A[:3], np.zeros((4, 5))
    middle[index % 4, np.arange(5)] = value
    parts = (Dense(top), SingleFeatures(index % 4, value, 4), LowRank(left[:2], right))
    return {
        "dense": (Dense(A), A),
        "selection": (SingleFeatures(index, value, 9), chosen),
        "low rank": (LowRank(left, right), left @ right),
        "stacked": (Stacked(parts), np.vstack([top, middle, left[:2] @ right])),
    }


FORMS = forms()
EVERYTHING = slice(None), slice(None)


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def written(coef):
    return coef.tile(*EVERYTHING)


def test_shape_and_type(form):
    coef, A = form
    assert coef.shape == A.shape
    assert coef.dtype == np.float64
    np.testing.assert_allclose(written(coef), A)


@pytest.mark.parametrize(
    "rows", [slice(0, 1), slice(2, 5), slice(3, 7), slice(6, 9), slice(0, 9), slice(4, 20)]
)
@pytest.mark.parametrize("columns", [slice(None), slice(1, 3), np.array([4, 0, 2])], ids=str)
def test_tiles(form, rows, columns):
    coef, A = form
    np.testing.assert_allclose(coef.tile(rows, columns), A[rows, columns])


@pytest.mark.parametrize("columns", [slice(1, 3), np.array([4, 0]), np.array([2])], ids=str)
def test_some_of_the_elements(form, columns):
    coef, A = form
    np.testing.assert_allclose(written(coef.columns(columns)), A[:, columns])


@pytest.mark.parametrize("factor", [2.0, np.arange(1.0, 6.0)], ids=["number", "one each"])
def test_scaling(form, factor):
    coef, A = form
    np.testing.assert_allclose(written(coef.scale(factor)), A * factor)


def test_linear_combinations(form):
    coef, A = form
    B = np.random.default_rng(1).normal(size=(5, 3))
    combined = coef.combine(B)
    assert combined.shape == (9, 3)
    np.testing.assert_allclose(written(combined), A @ B)


def test_weighing(form):
    coef, A = form
    V = np.random.default_rng(1).normal(size=(9, 3))
    np.testing.assert_allclose(coef.weigh(V), V.T @ A)


@pytest.mark.parametrize("rows", [slice(0, 4), slice(3, 7), slice(8, 9), slice(None)], ids=str)
def test_some_of_the_points(form, rows):
    coef, A = form
    np.testing.assert_allclose(coef.tile(rows, slice(None)), A[rows])


def test_merging_equal_points(form):
    coef, A = form
    groups = np.array([0, 1, 0, 2, 2, 3, 1, 0, 3])
    merged = coef.merged(groups, 4)
    expected = np.array([A[groups == g].sum(axis=0) for g in range(4)])
    assert merged.shape == (4, 5)
    np.testing.assert_allclose(written(merged), expected)


def test_nothing_is_changed_in_place(form):
    coef, A = form
    before = A.copy()
    coef.scale(3.0)
    coef.combine(np.ones((5, 2)))
    coef.merged(np.zeros(9, dtype=int), 1)
    np.testing.assert_allclose(written(coef), before)


def test_stacks_are_flat():
    (dense, A), (lowrank, B) = FORMS["dense"], FORMS["low rank"]
    nested = stack([stack([dense, lowrank]), dense])
    assert len(nested.parts) == 3
    np.testing.assert_allclose(written(nested), np.vstack([A, B, A]))
    assert stack([dense]) is dense


def test_types_are_those_of_the_parts():
    single = Dense(np.ones((2, 2), dtype=np.float32))
    double = LowRank(np.ones((2, 1)), np.ones((1, 2)))
    assert single.dtype == np.float32
    assert stack([single, single]).dtype == np.float32
    assert stack([single, double]).dtype == np.float64
    assert written(stack([single, double])).dtype == np.float64


def test_sizes_add_up_absolute_coefficients(rng):
    A, L, R = rng.normal(size=(7, 3)), rng.normal(size=(5, 2)), rng.normal(size=(2, 3))
    one = SingleFeatures(np.array([0, 2, 2]), np.array([1.0, -2.0, 0.5]), 4)
    for coef in (Dense(A), LowRank(L, R), one, stack([Dense(A), LowRank(L, R), one])):
        written = np.abs(coef.tile(slice(None), slice(None))).sum(axis=0)
        np.testing.assert_allclose(coef.sizes, written, rtol=1e-14)
        assert coef.sizes.dtype == np.float64
