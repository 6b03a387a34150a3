"""`mercer impute`: missing cells are filled, all others stay."""

import numpy as np

from mercer.estimators import KernelImputer

from .test_tables import numbers, rows_of


def test_filling_changes_only_missing_cells(run, files):
    ran = run("impute", "gaps.csv", "-o", "filled.csv")
    assert ran.code == 0, ran.err
    before, after = rows_of(files["folder"] / "gaps.csv"), rows_of(files["folder"] / "filled.csv")
    filled = 0
    for old, new in zip(before, after, strict=True):
        assert old[:3] == new[:3]
        if old[3]:
            assert old[3] == new[3]
        else:
            float(new[3])
            filled += 1
    assert filled == 13
    assert "filled      13 values in 13 rows\n" in ran.out
    assert "by column   y 13\n" in ran.out


def test_filling_does_what_the_estimator_does(run, files):
    holes = np.load(files["folder"] / "gaps.npy")
    run("impute", "gaps.npy", "-o", "filled.npy")
    found = np.load(files["folder"] / "filled.npy")
    np.testing.assert_allclose(found, KernelImputer().fit(holes).transform(holes), rtol=1e-9)
    np.testing.assert_array_equal(found[~np.isnan(holes)], holes[~np.isnan(holes)])


def test_rows_with_an_empty_column_are_filled_from_others(run, files):
    (files["folder"] / "t.csv").write_text("id,x,y\n1,0.5,\n2,0.1,\n")
    ran = run("impute", "t.csv", "-o", "out.csv", "--train", "measured.csv")
    assert ran.code == 0, ran.err
    assert np.isfinite(numbers(files["folder"] / "out.csv", "x", "y")).all()


def test_a_column_without_any_value_is_left_alone(run, files):
    text = (files["folder"] / "gaps.csv").read_text().splitlines()
    lines = [text[0] + ",z", *(line + "," for line in text[1:])]
    (files["folder"] / "t.csv").write_text("\n".join(lines))
    ran = run("impute", "t.csv", "-o", "out.csv")
    assert ran.code == 0, ran.err
    assert "z (empty)" in ran.out
    assert all(row[4] == "" for row in rows_of(files["folder"] / "out.csv")[1:])


def test_nothing_to_fill(run, files):
    ran = run("impute", "measured.csv", "-o", "out.csv")
    assert "nothing: no value is missing in the columns used" in ran.out
    assert rows_of(files["folder"] / "out.csv") == rows_of(files["folder"] / "measured.csv")


def test_numbers_that_stand_for_missing_values(run, files):
    holes = np.load(files["folder"] / "gaps.npy")
    np.save(files["folder"] / "t.npy", np.where(np.isnan(holes), -99.0, holes))
    run("impute", "gaps.npy", "-o", "a.npy")
    run("impute", "t.npy", "-o", "b.npy", "--missing", "-99")
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


def test_errors_are_reported_by_column(run, files):
    ran = run("impute", "gaps.csv", "-o", "out.csv")
    assert "test error  y " in ran.out


def test_columns_are_not_scaled_only_with_a_kernel(run, files):
    ran = run("impute", "gaps.csv", "-o", "out.csv", "--no-scale")
    assert ran.code == 2
    assert "--no-scale needs a kernel" in ran.err
    ran = run("impute", "gaps.csv", "-o", "out.csv", "--no-scale", "--kernel", "gaussian:1")
    assert ran.code == 0, ran.err
