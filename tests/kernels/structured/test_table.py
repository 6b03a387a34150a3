"""Kernels of tables: what is a table, how groups multiply, and what is chosen unasked."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.testing import check_kernel

PEOPLE = {
    "age": [31.0, 45.0, 31.0, 62.0, 18.0, 45.0],
    "height": [1.8, 1.7, 1.6, 1.75, 1.9, 1.7],
    "city": ["Bonn", "Rome", "Rome", "Bonn", "Oslo", "Rome"],
    "member": [True, False, True, True, False, False],
    "remark": ["likes tea", "likes coffee", "dislikes tea", "no", "likes tea too", "likes coffee"],
}


def frames():
    polars = pytest.importorskip("polars")
    pandas = pd.DataFrame(PEOPLE)
    typed = pandas.astype({"city": "category", "age": "Float64", "member": "boolean"})
    shuffled = pandas[["remark", "city", "age", "member", "height"]].set_index(np.arange(6)[::-1])
    return {
        "mapping": PEOPLE,
        "pandas": pandas,
        "typed": typed,
        "columns in another order, an index": shuffled,
        "polars": polars.DataFrame(PEOPLE),
        "polars, typed": polars.DataFrame(PEOPLE, schema_overrides={"city": polars.Categorical}),
    }


def kernel():
    return mc.kernels.Table(
        {
            ("age", "height"): mc.Gaussian(1.0).transform(mc.Scales([10.0, 0.1])),
            ("city", "member"): mc.kernels.Hamming(1.0),
            "remark": mc.Spectrum(2) + 1.0,
        }
    )


def test_a_product_over_groups_of_columns():
    numbers = np.column_stack([PEOPLE["age"], PEOPLE["height"]])
    expected = mc.Gaussian(1.0).transform(mc.Scales([10.0, 0.1]))(numbers)
    for name in ("city", "member"):
        labels = np.array(PEOPLE[name])
        expected = expected * np.where(labels[:, None] == labels, 1.0, np.exp(-1.0))
    expected = expected * (mc.Spectrum(2)(PEOPLE["remark"]) + 1.0)
    assert_allclose(kernel()(PEOPLE), expected, rtol=1e-12)
    assert_allclose(kernel().diag(PEOPLE), np.diag(expected), rtol=1e-12)


def test_every_kind_of_frame_is_the_same_table():
    expected = kernel()(PEOPLE)
    for frame in frames().values():
        assert_allclose(kernel()(frame), expected, rtol=1e-12)
        assert_allclose(kernel()(frame, PEOPLE), expected, rtol=1e-12)


def test_conformance():
    check_kernel(kernel(), points=kernel().points(PEOPLE))
    check_kernel(mc.kernels.Table({"age": mc.Laplace(1.0)}), points=kernel().points(PEOPLE))
    both = mc.kernels.Table({"age": mc.Gaussian(9.0)}) + 0.5 * mc.kernels.Table(
        {"city": mc.kernels.Hamming(1.0)}
    )
    check_kernel(both, points=both.points(PEOPLE))


def test_tables_add_and_multiply():
    a, b = (
        mc.kernels.Table({"age": mc.Gaussian(9.0)}),
        mc.kernels.Table({"city": mc.kernels.Overlap()}),
    )
    assert_allclose((a + b)(PEOPLE), a(PEOPLE) + b(PEOPLE))
    assert_allclose((2.0 * a * b)(PEOPLE), 2.0 * a(PEOPLE) * b(PEOPLE))
    assert (a + b).domain.columns == ("age", "city")
    with pytest.raises(mc.exceptions.DomainError, match="cannot be combined"):
        a + mc.Gaussian(1.0)


def test_pre_images_are_rows_of_the_table():
    k = kernel()
    psi = mc.feature(k, pd.DataFrame(PEOPLE).iloc[[2]]) * 1.0
    found = mc.preimage(psi, mc.Candidates(PEOPLE))
    frame = pd.DataFrame(found.points)
    assert frame.loc[0, ["age", "city", "remark"]].tolist() == [31.0, "Rome", "dislikes tea"]
    assert_allclose(found.distance, 0.0, atol=1e-7)
    mean = mc.mean_embedding(k, PEOPLE)
    assert mc.preimage(mean).points.dtype.names == k.domain.columns
    assert len((mean + mean).merge().points) == 5  # two people are the same


def test_duplicates_are_merged():
    twice = pd.concat([pd.DataFrame(PEOPLE), pd.DataFrame(PEOPLE)])
    merged = mc.mean_embedding(kernel(), twice).merge()
    assert len(merged.points) == 5  # two people are the same
    assert_allclose(merged.norm(), mc.mean_embedding(kernel(), PEOPLE).norm())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"age": [1.0]}, "no column 'city'"),
        ({"age": [1.0, 2.0], "city": ["a"]}, "different lengths"),
        ({"age": [], "city": []}, "no points"),
        ({"age": [1.0, np.nan], "city": ["a", "b"]}, "missing value in row 1"),
        ({"age": [1.0, 2.0], "city": [None, "b"]}, "missing value in row 0"),
        ({"age": [1.0, np.inf], "city": ["a", "b"]}, "infinity"),
        ({"age": ["old", "young"], "city": ["a", "b"]}, "not numeric"),
        ({"age": pd.to_datetime(["2020-01-01"]), "city": ["a"]}, "holds times"),
        ({"age": [[1.0], [2.0]], "city": ["a", "b"]}, "one value per row"),
        (np.ones((2, 2)), "named columns"),
        ([[1.0, "a"]], "named columns"),
        (pd.DataFrame({"age": pd.array([1, None], dtype="Int64"), "city": ["a", "b"]}), "missing"),
    ],
)
def test_what_is_refused(table, message):
    k = mc.kernels.Table({"age": mc.Gaussian(1.0), "city": mc.kernels.Hamming(1.0)})
    with pytest.raises(mc.InputError, match=message):
        k(table)


@pytest.mark.parametrize("groups", [{}, {"a": 3.0}, {(): mc.Gaussian()}, {("a", "a"): mc.Linear()}])
def test_groups_are_checked(groups):
    with pytest.raises(mc.InputError):
        mc.kernels.Table(groups)


@given(
    st.lists(
        st.tuples(st.floats(-5, 5), st.text(max_size=4), st.integers(-3, 3)), min_size=1, max_size=8
    )
)
def test_any_rows(rows):
    table = {
        name: list(column) for name, column in zip("xyz", zip(*rows, strict=True), strict=True)
    }
    k = mc.kernels.Table(
        {"x": mc.Gaussian(1.0), "y": mc.kernels.Hamming(0.7), "z": mc.Linear() + 1.0}
    )
    naive = [
        [
            np.exp(-((a[0] - b[0]) ** 2) / 2)
            * (1.0 if a[1] == b[1] else np.exp(-1 / 0.7))
            * (a[2] * b[2] + 1.0)
            for b in rows
        ]
        for a in rows
    ]
    assert_allclose(k(table), naive, rtol=1e-10, atol=1e-14)


# --- chosen from the data -------------------------------------------------------------------------


def many(rng, n=200):
    return pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "constant": 3.0,
            "city": rng.choice(["Bonn", "Rome"], n),
            "member": rng.random(n) < 0.5,
            "note": [f"note {i} {rng.integers(1000)}" for i in range(n)],
        }
    )


def test_columns_are_told_apart(rng):
    table = many(rng)
    k = mc.table_kernel(table)
    assert [columns for columns, _ in k.groups] == [
        ("age", "constant"), ("city", "member"), ("note",)
    ]  # fmt: skip
    K = k(table)
    assert np.linalg.eigvalsh(K)[0] > -1e-10 * np.trace(K)
    assert_allclose(np.diag(K), 1.0)
    off = K[~np.eye(200, dtype=bool)]
    assert 0.01 < np.median(off) < 0.5  # neither a constant nor an identity
    assert k == mc.table_kernel(table)


def test_polars_gives_the_same_choice(rng):
    polars = pytest.importorskip("polars")
    table = many(rng)
    assert mc.table_kernel(polars.DataFrame(table.to_dict("list"))) == mc.table_kernel(table)


def test_what_is_said_is_done(rng):
    table = many(rng)
    table["code"] = rng.integers(0, 3, 200)
    k = mc.table_kernel(table, categorical=["code"], text="city")
    groups = dict(k.groups)
    assert ("code", "member") in groups or ("member", "code") in groups
    assert groups[("city",)] == mc.kernels.Normalised(mc.Spectrum(3) + 1.0)
    with pytest.raises(mc.InputError, match="not a column"):
        mc.table_kernel(table, numeric=["weight"])
    with pytest.raises(mc.InputError, match="both"):
        mc.table_kernel(table, numeric=["code"], categorical=["code"])
    with pytest.raises(mc.InputError, match="listed as numeric"):
        mc.table_kernel(table, numeric=["city"])


def test_one_row_and_constant_tables():
    for table in ({"x": [1.0], "c": ["a"]}, {"x": [2.0, 2.0], "c": ["a", "a"]}):
        assert np.array_equal(mc.table_kernel(table)(table), np.ones((len(table["x"]),) * 2))


def test_null_characters_count():
    k = mc.kernels.Table({"a": mc.kernels.Hamming(1.0)})
    assert_allclose(k({"a": ["x", "x\0"]})[0, 1], np.exp(-1.0))


def test_names_that_are_not_text_are_refused():
    """In a frame of narwhals, frame[0] is a row."""
    frame = pd.DataFrame(np.zeros((8, 2))).assign(word=list("abababab"))
    with pytest.raises(mc.InputError, match=r"names are not text, such as 0; .*columns=str"):
        mc.table_kernel(frame)
    assert mc.table_kernel(frame.rename(columns=str))(frame.rename(columns=str)).shape == (8, 8)


@pytest.mark.parametrize(
    "cells", [[1.0, [1.0], 2.0], ["u", [1], "v"], [[1], [2], [3]], [np.ones(2), "a", "b"]]
)
def test_lists_in_cells_are_refused(cells):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": cells, "b": ["u", "v", "u"]})
    with pytest.raises(mc.InputError, match="column 'a' of table must have one value per row"):
        mc.table_kernel(frame)
