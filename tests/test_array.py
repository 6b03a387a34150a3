"""Arrays at the border: what is accepted, what is refused, and what the refusal says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import mercer as mc
from mercer._array import (
    as_points,
    as_vector,
    as_weights,
    frozen,
    instance,
    is_sparse,
    non_negative,
    positive,
    positive_int,
    positive_length,
    real,
)
from mercer._tensors import namespace

# --- points that are accepted ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_taken_as_they_are(dtype):
    X = np.ones((3, 2), dtype=dtype)
    assert as_points(X) is X


@pytest.mark.parametrize(
    "X",
    [
        [[1, 2], [3, 4]],
        [[True, False], [False, True]],
        ((1.0, 2.0), (3.0, 4.0)),
        np.array([[1, 2]], dtype=np.int8),
        np.array([[1, 255]], dtype=np.uint8),
        np.array([[1.0, 2.0]]).view(np.matrix),
        np.array([[2**53, -(2**53)]]),
    ],
    ids=["lists", "booleans", "tuples", "int8", "uint8", "matrix", "largest integers"],
)
def test_numbers_become_float64(X):
    points = as_points(X)
    assert type(points) is np.ndarray
    assert points.dtype == np.float64
    np.testing.assert_array_equal(points, np.asarray(X))


@pytest.mark.parametrize("X", [np.ones((4, 6), order="F"), np.ones((8, 12))[::2, ::2]])
def test_any_layout_is_taken_without_a_copy(X):
    assert as_points(X) is X


def test_read_only_points_stay_read_only():
    X = frozen(np.ones((2, 2)))
    assert as_points(X) is X


def test_values_whose_sum_overflows_are_finite_all_the_same():
    a = np.full(4, 1.7e308)
    assert as_vector(a, "a") is a
    Y = np.full((4, 1), 3e38, dtype=np.float32)
    assert as_points(Y) is Y


def test_points_whose_squares_overflow_are_refused():
    with pytest.raises(mc.InputError, match="rescale"):
        as_points(np.full((4, 1), 1e200))
    X = np.full((4, 1), 1e140)
    assert as_points(X) is X


@given(st.integers(-(2**53), 2**53))
def test_integers_are_exact(i):
    assert int(as_points([[i]])[0, 0]) == i


# --- points that are refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], r"shape \(n_points, n_features\), got \(2,\); use Z.reshape\(-1, 1\)"),
        (3.0, r"got \(\)"),
        (np.ones((2, 2, 2)), r"got \(2, 2, 2\)"),
        (np.ones((0, 3)), r"Z has no rows: shape \(0, 3\)"),
        (np.ones((3, 0)), r"Z has no features \(columns\): shape \(3, 0\)"),
        ([], r"got \(0,\)"),
        ([[1.0, np.nan]], r"Z contains NaN \(1 non-finite entries, the first at \(0, 1\)\)"),
        ([[1.0], [np.inf]], r"contains infinity \(1 non-finite entries, the first at \(1, 0\)\)"),
        ([[-np.inf, np.nan]], r"contains infinity \(2 non-finite"),
        ([[np.inf, -np.inf]], r"contains infinity \(2 non-finite"),
        ([[1 + 2j]], r"Z is complex. Complex data not supported; use the real part"),
        (np.ones((1, 1), np.float16), r"dtype float16; use Z.astype\(np.float32\)"),
        (np.ones((1, 1), np.longdouble), r"use Z.astype\(np.float64\)"),
        (np.ones((1, 1), ">f8"), r"use Z.astype\(np.float64\)"),
        (np.array([[1.0, "a"]], dtype=object), r"Z must hold numbers, got dtype object"),
        ([["a", "b"]], r"Z must hold numbers, got dtype <U1"),
        (np.array([["2020-01-01"]], "M8[D]"), r"Z must hold numbers"),
        ([[None]], r"Z must hold numbers, got dtype object"),
        ([[1.0, 2.0], [3.0]], r"Z must be a rectangular array of numbers"),
        ([[2**53 + 1]], r"Z has integers above 2\*\*53"),
        ([[-(2**53) - 1]], r"Z has integers above 2\*\*53"),
        (np.array([[2**64 - 1]], dtype=np.uint64), r"Z has integers above 2\*\*53"),
        ([[10**30]], r"Z must hold numbers, got dtype object"),
        (np.ma.masked_array([[1.0, 2.0]], [[False, True]]), "1 masked entries; fill or drop"),
    ],
)
def test_what_would_lose_something_is_refused(X, message):
    with pytest.raises(mc.InputError, match=message):
        as_points(X, "Z")


def test_refusals_are_value_errors():
    with pytest.raises(ValueError, match="X contains NaN"):
        as_points([[np.nan]])


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_the_first_bad_entry_is_named(n, d, data):
    i, j = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, d - 1))
    X = np.zeros((n, d))
    X[i, j] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    with pytest.raises(mc.InputError) as error:
        as_points(X)
    assert f"the first at ({i}, {j})" in str(error.value)
    assert "drop or impute" in str(error.value)


# --- sparse points --------------------------------------------------------------------------------


@pytest.mark.parametrize("container", ["csr_array", "csc_matrix", "coo_array", "lil_array"])
def test_sparse_points_become_csr(container):
    dense = np.array([[0.0, 2.0], [1.0, 0.0]])
    points = as_points(getattr(sparse, container)(dense))
    assert is_sparse(points)
    assert points.format == "csr"
    np.testing.assert_array_equal(points.toarray(), dense)


@pytest.mark.parametrize(("given_type", "kept"), [("f4", "f4"), ("f8", "f8"), ("i4", "f8")])
def test_sparse_types(given_type, kept):
    points = as_points(sparse.csr_array(np.eye(2, dtype=given_type)))
    assert points.dtype == kept


@pytest.mark.parametrize(
    ("entry", "message"), [(np.nan, "Z contains NaN"), (np.inf, "infinity"), (1j, "Z is complex")]
)
def test_sparse_entries_are_checked(entry, message):
    with pytest.raises(mc.InputError, match=message):
        as_points(sparse.csr_array([[0.0, entry]]), "Z")


def test_sparse_shapes_are_checked():
    with pytest.raises(mc.InputError, match="two-dimensional"):
        as_points(sparse.coo_array(np.ones(3)))
    with pytest.raises(mc.InputError, match="no rows"):
        as_points(sparse.csr_array((0, 3)))
    assert as_points(sparse.csr_array((2, 3))).nnz == 0


def test_only_scipy_matrices_are_sparse():
    assert is_sparse(sparse.csr_matrix((1, 1)))
    assert not is_sparse(np.eye(2))
    assert not is_sparse([[0.0]])


# --- data frames ----------------------------------------------------------------------------------


def test_a_masked_array_without_masked_entries_is_a_plain_one():
    X = np.ma.masked_array([[1.0, 2.0]], [[False, False]])
    assert type(as_points(X)) is np.ndarray
    np.testing.assert_array_equal(as_points(X), [[1.0, 2.0]])
    assert as_vector(np.ma.masked_array([1, 2]), "a").tolist() == [1.0, 2.0]
    with pytest.raises(mc.InputError, match="a is a masked array with 1 masked entries"):
        as_vector(np.ma.masked_array([1, 2], [True, False]), "a")


def test_pandas_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.5, 2.5], "b": [3, 4], "c": [True, False]})
    np.testing.assert_array_equal(as_points(frame[["a", "b"]]), [[1.5, 3.0], [2.5, 4.0]])
    assert as_points(frame[["a"]].astype("float32")).dtype == np.float32
    with pytest.raises(mc.InputError, match="not numeric: d; encode them"):
        as_points(frame.assign(d=["x", "y"]))
    np.testing.assert_array_equal(as_points(frame), [[1.5, 3.0, 1.0], [2.5, 4.0, 0.0]])
    with pytest.raises(mc.InputError, match="reshape"):
        as_points(frame["a"])
    with pytest.raises(mc.InputError, match=r"NaN .* in d \(1\); .* KernelImputer"):
        as_points(frame[["a"]].assign(d=pandas.array([1, None], dtype="Int64")))
    with pytest.raises(mc.InputError, match=r"NaN .* in a \(1\)"):
        as_points(pandas.DataFrame({"a": [1.0, None]}))


# --- vectors and weights --------------------------------------------------------------------------


def test_vectors():
    assert as_vector([1, 2], "a").dtype == np.float64
    assert as_vector(np.ones(2, np.float32), "a").dtype == np.float32


@pytest.mark.parametrize(
    ("a", "length", "message"),
    [
        ([[1.0]], None, r"a must be one-dimensional, got shape \(1, 1\)"),
        (1.0, None, r"got shape \(\)"),
        ([1.0, 2.0], 3, "a must have 3 entries, got 2"),
        ([1.0, np.nan], None, "a contains NaN .* the first at 1"),
        (["x"], None, "a must hold numbers"),
    ],
)
def test_what_is_no_vector(a, length, message):
    with pytest.raises(mc.InputError, match=message):
        as_vector(a, "a", length)


def test_weights_sum_to_one():
    np.testing.assert_array_equal(as_weights(None, 4), np.full(4, 0.25))
    np.testing.assert_allclose(as_weights([1, 3], 2), [0.25, 0.75], rtol=1e-15)
    assert as_weights(np.float32([1, 3]), 2).dtype == np.float64


@given(st.lists(st.floats(0.0, 1.79e308), min_size=1, max_size=8).filter(any))
def test_weights_neither_overflow_nor_vanish(weights):
    w = as_weights(weights, len(weights))
    assert w.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.all(w >= 0)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -0.5], r"weights must be >= 0, got -0.5"),
        ([0.0, 0.0], "weights must not all be zero"),
        ([1.0], "weights must have 2 entries, got 1"),
        ([1.0, np.inf], "weights contains infinity"),
    ],
)
def test_what_are_no_weights(weights, message):
    with pytest.raises(mc.InputError, match=message):
        as_weights(weights, 2)


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0)])
def test_numbers(value):
    for check in (real, positive, non_negative):
        number = check(value, "s")
        assert type(number) is float
        assert number == 2.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("2", "s must be a real number, got '2'"),
        (None, "s must be a real number, got None"),
        (True, "s must be a real number, got True"),
        (np.True_, "s must be a real number"),
        (1j, "s must be a real number"),
        (np.complex64(1), "s must be a real number"),
        ([1.0], r"s must be a single number, got shape \(1,\)"),
        (np.nan, "s must be finite, got nan"),
        (-np.inf, "s must be finite, got -inf"),
        (10**400, "s must be"),
        (object(), "s must be a real number"),
    ],
)
def test_what_is_no_number(value, message):
    for check in (real, positive, non_negative):
        with pytest.raises(mc.InputError, match=message):
            check(value, "s")


def test_signs():
    assert non_negative(0, "s") == 0.0
    assert real(-1, "s") == -1.0
    with pytest.raises(mc.InputError, match=r"s must be > 0, got 0.0"):
        positive(0, "s")
    with pytest.raises(mc.InputError, match=r"s must be >= 0, got -1.0"):
        non_negative(-1, "s")


def test_positive_integers():
    assert positive_int(3, "n") == 3
    assert type(positive_int(np.int32(3), "n")) is int
    for wrong in (0, -1, 2.0, True, "3", None):
        with pytest.raises(mc.InputError, match="n must be an integer >= 1, got"):
            positive_int(wrong, "n")


# --- small things ---------------------------------------------------------------------------------


def test_frozen_is_a_read_only_view():
    a = np.zeros(3)
    view = frozen(a)
    assert np.shares_memory(a, view)
    assert a.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0


def test_namespaces():
    strict = pytest.importorskip("array_api_strict")
    assert namespace(np.ones(2)) is np
    assert namespace(strict.ones(2)) is strict
    assert namespace(1.0, strict.ones(2)) is strict
    assert namespace(1.0, 2) is np


def test_types_are_named():
    k = mc.Gaussian(1.0)
    assert instance(k, mc.Kernel, "kernel") is k
    expected = r"kernel must be a Kernel such as mercer.Gaussian\(1.0\), got ABCMeta"
    with pytest.raises(mc.InputError, match=expected):
        instance(mc.Gaussian, mc.Kernel, "kernel")
    with pytest.raises(mc.InputError, match="psi must be an Element, got int"):
        instance(3, mc.Element, "psi")


def test_the_limits_of_lengths_are_allowed():
    for limit in (1e75, 1e150):
        for number in (limit, 1 / limit, 1.0):
            assert positive_length(number, "length", limit) == number
        for number in (1.01 * limit, 0.99 / limit):
            with pytest.raises(mc.InputError, match="rescale"):
                positive_length(number, "length", limit)
    assert mc.Gaussian(1e-75)([[0.0]]) == 1.0


def test_sparse_points_are_arrays_without_repeated_entries():
    import scipy.sparse

    entries = np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), np.array([0, 2, 3])
    repeated = scipy.sparse.csr_array(entries, shape=(2, 2))
    found = as_points(repeated)
    assert found.has_canonical_format
    assert found.data.tolist() == [3.0, 3.0]
    assert repeated.data.tolist() == [1.0, 2.0, 3.0]  # the caller's own
    for kind in (scipy.sparse.csc_matrix, scipy.sparse.csr_matrix, scipy.sparse.coo_array):
        assert isinstance(as_points(kind(repeated)), scipy.sparse.csr_array)
    assert as_points(found) is found


def test_a_preimage_on_one_point_of_a_sparse_matrix():
    import scipy.sparse

    point = scipy.sparse.csc_matrix([[1.0, 0.0, -2.0]])
    found = mc.preimage(mc.feature(mc.kernels.Polynomial(3), point), mc.FixedPoint())
    np.testing.assert_allclose(found.points, point.toarray(), atol=1e-5)
