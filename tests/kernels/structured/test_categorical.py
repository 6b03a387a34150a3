"""Kernels of categories: labels of every kind, tables of numbers, and what is no label."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

import mercer as mc
from mercer.kernels.structured._categorical import Categories, Hamming, Overlap
from mercer.testing import check_element, check_kernel, check_subspace

ROWS = [
    ["red", 1, None],
    ["blue", 2, None],
    ["red", 2.5, "x"],
    ["green", 1, (1, 2)],
    ["red", 1, None],
    ["1", "1", 1],
]
each_kernel = pytest.mark.parametrize("kernel", [Hamming(1.0), Hamming(0.3), Overlap()], ids=repr)


def loops(kernel, X, Y):
    """One pair of rows at a time, compared by Python."""

    def value(x, y):
        equal = [bool(a == b) for a, b in zip(x, y, strict=True)]
        if isinstance(kernel, Overlap):
            return sum(equal) / len(equal)
        return np.prod([1.0 if e else np.exp(-1.0 / kernel.length_scale) for e in equal])

    return np.array([[value(x, y) for y in Y] for x in X])


@each_kernel
def test_conformance(kernel, rng):
    check_kernel(kernel, ROWS)
    check_kernel(kernel, rng.integers(0, 3, size=(20, 4)))
    check_kernel(kernel, list("abracadabra"))
    check_kernel(kernel.transform(mc.Columns([0])), dims=(1, 2))
    check_kernel(2.0 * kernel * kernel + 1.0, ROWS)
    check_kernel(mc.kernels.Normalised(kernel + 1.0), ROWS)


def test_what_hamming_claims_holds_on_lattices():
    """No signed measure on distinct rows has norm zero; the kit looks on numbers."""
    claims = mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE, characteristic=True, universal=True)
    assert Hamming().flags == claims
    for scale in (0.2, 1.0, 5.0):
        for columns in ([0], [1, 0], [0, 1, 2]):
            check_kernel(
                Hamming(scale).transform(mc.Columns(columns)), claims=claims, dims=(len(columns),)
            )
    with pytest.raises(AssertionError, match="claims to be characteristic"):
        check_kernel(Overlap().transform(mc.Columns([0, 1])), claims=claims, dims=(2,))


@each_kernel
def test_against_loops(kernel):
    assert_allclose(kernel(ROWS), loops(kernel, ROWS, ROWS), rtol=1e-15)
    assert_allclose(kernel(ROWS, ROWS[2:4]), loops(kernel, ROWS, ROWS[2:4]), rtol=1e-15)
    assert np.array_equal(kernel.diag(ROWS), np.ones(6))


labels = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from("ab1"), st.floats(0, 2)
)


@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=12), st.integers(1, 5))
def test_any_rows(rows, split):
    for kernel in (Hamming(0.7), Overlap()):
        expected = loops(kernel, rows, rows[:split])
        assert_allclose(kernel(rows, rows[:split]), expected, rtol=1e-14)


def test_against_scipy(rng):
    X, Y = (
        rng.integers(0, 4, size=(30, 7)).astype(float),
        rng.integers(0, 4, size=(20, 7)).astype(float),
    )
    share = cdist(X, Y, "hamming")
    assert_allclose(Overlap()(X, Y), 1.0 - share, rtol=1e-15)
    assert_allclose(Hamming(2.0)(X, Y), np.exp(-7.0 * share / 2.0), rtol=1e-14)


# --- one answer for every form --------------------------------------------------------------------

TABLE = [["red", "S"], ["blue", "M"], ["red", "M"], ["red", "S"]]


@pytest.mark.parametrize(
    "form",
    [
        TABLE,
        tuple(map(tuple, TABLE)),
        [np.array(row) for row in TABLE],
        np.array(TABLE),
        np.array(TABLE, dtype=object),
        np.array(TABLE, dtype="S"),
        np.array([[1, 10], [2, 20], [1, 20], [1, 10]]),
        np.array([[1, 10], [2, 20], [1, 20], [1, 10]], dtype=np.float32),
        np.array([[1, 1], [0, 0], [1, 0], [1, 1]], dtype=bool),
        [[1, 10], [2, 20], [1, 20], [1, 10]],
        [[2**60, 0.5], [2**60 + 1, 1.5], [2**60, 1.5], [2**60, 0.5]],
        np.array([[2**60, 0], [2**60 + 1, 1], [2**60, 1], [2**60, 0]]),
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE).astype("category"),
        pd.DataFrame({"a": ["red", "blue", "red", "red"], "b": [1, 2, 2, 1]}),
        pd.DataFrame({"a": [1.0, 2.0, 1.0, 1.0], "b": [1, 2, 2, 1]}),
        pd.DataFrame({"a": [1, 2, 1, 1], "b": [True, False, False, True]}, dtype="Int64"),
        [[dt.date(2020, 1, d), e] for d, e in ((1, 1), (2, 2), (1, 2), (1, 1))],
        np.array(
            [["2020-01", "2021"], ["2020-02", "2022"], ["2020-01", "2022"], ["2020-01", "2021"]],
            "M8[D]",
        ),
    ],
    ids=lambda form: f"{type(form).__name__}-{getattr(form, 'dtype', '')}",
)
def test_forms_of_a_table(form):
    expected = [[1, 0, 0.5, 1], [0, 1, 0.5, 0], [0.5, 0.5, 1, 0.5], [1, 0, 0.5, 1]]
    assert np.array_equal(Overlap()(form), expected)
    K = Hamming(1.0)(form)
    rtol = 1e-6 if K.dtype == np.float32 else 1e-14
    assert_allclose(K, np.exp(2.0 * (np.array(expected) - 1.0)), rtol=rtol)
    points = Overlap().points(form).array
    assert np.array_equal(Overlap()(points, form), expected)  # what was checked is accepted again
    assert not points.flags.writeable


@pytest.mark.parametrize(
    "form",
    [
        list("abba"),
        tuple("abba"),
        np.array(list("abba")),
        pd.Series(list("abba")),
        pd.Series(list("abba"), dtype="category"),
        [1, 2, 2, 1],
        np.array([1.5, 2.5, 2.5, 1.5]),
        [None, "a", "a", None],
        [frozenset("a"), "a", "a", frozenset("a")],
    ],
    ids=lambda form: f"{type(form).__name__}-{getattr(form, 'dtype', '')}",
)
def test_a_list_of_labels_is_one_column(form):
    assert np.array_equal(Overlap()(form), [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]])
    assert Overlap().points(form).shape == (4, 1)


def test_numbers_stay_numbers_and_text_stays_text():
    """NumPy would write 1 as "1" beside a string."""
    assert np.array_equal(
        Overlap()([["a", 1]], [["a", "1"], ["a", 1.0], ["a", True]]), [[0.5, 1, 1]]
    )
    assert Overlap().points([[1, 2.5]]).array.dtype == np.float64
    assert Overlap().points([["1"]]).array.dtype == object
    assert Overlap()(np.ones((2, 3), np.float32)).dtype == np.float32
    assert Overlap()([["a", 1]], [[1.0, 1.0]]) == 0.5  # labels beside numbers


def test_what_is_no_label():
    k = Hamming()
    missing = r'missing value, .* at \(1, 0\); make it a category, as X.fillna\("missing"\)'
    for bad in (
        [["a"], [float("nan")]],
        np.array([["a"], [np.nan]], dtype=object),
        [["a"], [pd.NaT]],
        np.array([[1.0], [np.nan]]),
    ):
        with pytest.raises(mc.exceptions.DomainError, match=missing):
            k(bad)
    for kind in ("str", "Int64"):
        with pytest.raises(mc.InputError, match="X has missing values in a; make them a category"):
            k(pd.DataFrame({"a": [1, None]}, dtype=kind))
    with pytest.raises(mc.exceptions.DomainError, match="NaT"):
        k(np.array([["2020-01-01"], ["NaT"]], dtype="M8[D]"))
    filled = pd.DataFrame({"a": ["x", None]}).fillna("missing")
    assert k(filled)[1, 1] == 1.0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("word", "rows of labels, got str"),
        (3, "rows of labels, got int"),
        (None, "rows of labels, got NoneType"),
        ([], "no rows"),
        ([[], []], "no columns"),
        (np.empty((0, 2), dtype=object), "no rows"),
        ([["a", "b"], ["a"]], "row 0 has 2 labels and row 1 has 1"),
        ([[["a"], "b"]], "cannot be hashed"),
        (np.full((2, 2, 2), "a"), "shape"),
        (np.ma.array([[1.0]], mask=[[True]]), "masked"),
        (csr_array(np.eye(2)), r"zero is a category; use X.toarray\(\)"),
        (np.array([[np.inf]]), "infinity"),
        (np.zeros((2, 2), dtype=np.float16), "float32"),
    ],
    ids=str,
)
def test_what_is_refused(bad, message):
    for call in (Hamming(), Overlap(), Hamming().diag):
        with pytest.raises(mc.InputError, match=message):
            call(bad)


def test_other_refusals():
    with pytest.raises(mc.InputError, match="features"):
        Hamming()([["a", "b"]], [["a"]])
    with pytest.raises(mc.exceptions.DerivativeError, match="values only"):
        Hamming().gradient([["a"]])
    for scale in (0.0, -1.0, np.nan, "1"):
        with pytest.raises(mc.InputError, match="length_scale"):
            Hamming(scale)
    for wrong in (mc.Scales([1.0]), mc.kernels.Matrix([[1.0]])):
        with pytest.raises(mc.InputError, match="nothing to map"):
            Hamming().transform(wrong)


# --- beside kernels on vectors --------------------------------------------------------------------


def test_a_table_of_numbers(rng):
    """Two columns of measurements, two of codes."""
    X = np.hstack([rng.normal(size=(20, 2)), rng.integers(0, 3, size=(20, 2))])
    smooth = mc.Gaussian(1.0).transform(mc.Columns([0, 1]))
    k = smooth * Hamming(1.0).transform(mc.Columns([2, 3]))
    assert_allclose(k(X), mc.Gaussian(1.0)(X[:, :2]) * Hamming(1.0)(X[:, 2:]), rtol=1e-13)
    check_kernel(k, X, dims=())
    both = smooth + Overlap().transform(mc.Columns([3]))
    assert_allclose(both(X), mc.Gaussian(1.0)(X[:, :2]) + Overlap()(X[:, 3]), rtol=1e-13)
    check_element(mc.Element(k, X, rng.normal(size=20)))
    with pytest.raises(mc.exceptions.DomainError, match="their points differ"):
        mc.Gaussian(1.0) * Hamming(1.0)
    with pytest.raises(mc.InputError, match="must hold numbers"):
        Hamming().transform(mc.Columns([0]))([["a", "b"]])


# --- elements -------------------------------------------------------------------------------------


@each_kernel
def test_elements_on_labels(kernel, rng):
    psi = mc.Element(kernel, ROWS, rng.normal(size=(6, 2)))
    check_element(psi)
    check_element(mc.feature(kernel, ROWS))
    merged = psi.merge()
    assert len(merged.points) == 5
    assert_allclose(merged(ROWS), psi(ROWS), rtol=1e-13)
    plane = mc.Subspace.span(mc.mean_embedding(kernel, ROWS), mc.feature(kernel, ROWS[:3]))
    check_subspace(plane, mc.feature(kernel, ROWS))


def test_mean_embedding_of_one_column_holds_the_frequencies():
    word = list("mississippi")
    mu = mc.mean_embedding(Overlap(), word)
    assert_allclose(mu(list("mispx")), np.array([1, 4, 4, 2, 0]) / 11, rtol=1e-15)
    assert len(mu.merge().points) == 4


def test_preimages_are_rows():
    psi = mc.mean_embedding(Hamming(1.0), ROWS)
    back = mc.preimage(psi)
    assert list(back.points[0]) == ["red", 1, None]
    features = mc.feature(Hamming(1.0), ROWS)
    back = mc.preimage(features, mc.Candidates(ROWS[::-1]))
    assert [list(p) for p in back.points] == ROWS
    assert_allclose(back.distance, 0.0, atol=1e-7)
    assert_allclose(psi(back.points), psi(ROWS), rtol=1e-15)
    back = mc.preimage(mc.feature(Hamming(), np.eye(3)), mc.Candidates(np.eye(3)))
    assert np.array_equal(back.points, np.eye(3))


def test_the_domain_is_a_value():
    assert Categories() == Categories()
    assert hash(Hamming(2.0)) == hash(Hamming(2.0))
    assert Hamming(2.0).domain == Overlap().domain
    assert not Categories().is_vector
