"""Integer codes and classes are not quantities: they are used only if they are asked for."""

from pathlib import Path

import numpy as np
import pytest

from .test_tables import rows_of


@pytest.fixture
def flowers(tmp_path, rng):
    """Three groups with their class, a flag, a count and a rounded measurement."""
    species = np.repeat([1, 2, 3], 40)
    X = rng.normal(size=(120, 2)) + 3.0 * species[:, None]
    columns = {
        "species": species, "a": X[:, 0].round(3), "b": X[:, 1].round(3),
        "flag": rng.integers(0, 2, 120), "waiting": np.rint(70.0 + 20.0 * X[:, 0]).astype(int),
    }  # fmt: skip
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "flowers.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")
    return tmp_path


@pytest.mark.parametrize("command", ["denoise", "anomalies", "cluster"])
def test_codes_are_left_alone_and_it_is_said(command, run, flowers):
    words = ["--noise", "0.3"] if command == "denoise" else []
    ran = run(command, "flowers.csv", "-o", "out.csv", *words)
    assert ran.code == 0
    assert "120 rows of 3 columns" in ran.out
    assert "unchanged" in ran.out
    assert "species, flag (integer codes)" in ran.out
    assert ran.err == (
        "note: species, flag seem to hold integer codes, not quantities, and are not used; "
        "to use them, add --include species,flag\n"
    )
    before, after = (rows_of(flowers / name) for name in ("flowers.csv", "out.csv"))
    assert [(row[0], row[3]) for row in before] == [(row[0], row[3]) for row in after]
    assert run(command, "flowers.csv", "-o", "b.csv", "-q", *words).err == ""


def test_codes_that_are_asked_for(run, flowers):
    ran = run("denoise", "flowers.csv", "-o", "a.csv", "--include", "species", "--noise", "0.3")
    assert "120 rows of 4 columns" in ran.out
    assert "note: flag seems to hold integer codes" in ran.err
    ran = run("denoise", "flowers.csv", "-o", "b.csv", "--columns", "species,a", "--noise", "0.3")
    assert ("120 rows of 2 columns" in ran.out, ran.err) == (True, "")
    words = ["--columns", "a", "--include", "flag", "--noise", "0.3"]
    assert "of 2 columns" in run("denoise", "flowers.csv", "-o", "c.csv", *words).out
    ran = run("denoise", "flowers.csv", "-o", "d.csv", "--skip", "species,flag", "--noise", "0.3")
    assert ran.err == ""
    ran = run("denoise", "flowers.csv", "-o", "e.csv", "--include", "colour")
    assert (ran.code, "no column 'colour'" in ran.err) == (2, True)


def test_missing_codes_are_not_filled_with_fractions(run, flowers):
    lines = (flowers / "flowers.csv").read_text().splitlines()
    lines[5] = lines[5].replace("1,", ",", 1)
    lines[9] = lines[9].rsplit(",", 1)[0] + ","
    (flowers / "t.csv").write_text("\n".join(lines) + "\n")
    ran = run("impute", "t.csv", "-o", "out.csv")
    assert ran.code == 0
    assert "note: species, flag" in ran.err
    assert "by column   waiting 1" in ran.out
    assert rows_of(flowers / "out.csv")[5][0] == ""
    ran = run("impute", "t.csv", "-o", "b.csv", "--include", "species")
    assert "species 1" in ran.out


def test_codes_of_the_training_rows(run, flowers):
    (flowers / "new.csv").write_text("species,a,b,flag,waiting\n2,6.1,5.9,1,190\n")
    ran = run("denoise", "new.csv", "-o", "a.csv", "--train", "flowers.csv", "--noise", "0.3")
    assert (ran.code, ran.err.count("note")) == (0, 1)
    assert rows_of(flowers / "a.csv")[1][0] == "2"
    words = ["--train", "flowers.csv", "--include", "species,flag", "--noise", "0.3"]
    assert "1 row of 5 columns" in run("denoise", "new.csv", "-o", "b.csv", *words).out


def test_nothing_but_codes_is_an_error_with_a_cure(run, tmp_path):
    (tmp_path / "t.csv").write_text("q1,q2\n" + "1,5\n2,4\n3,3\n1,2\n" * 5)
    ran = run("anomalies", "t.csv", "-o", "out.csv")
    assert ran.code == 1
    assert "no column of numbers: q1 (integer codes), q2 (integer codes)" in ran.err
    assert "--include q1,q2" in ran.err
    assert run("anomalies", "t.csv", "-o", "out.csv", "--include", "q1,q2").code == 0


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([1, 2, 3] * 4, True),
        ([0.0, 1.0] * 6, True),
        ([-1, 1] * 6, True),
        (list(range(20)) * 2, True),
        (list(range(21)) * 2, False),  # too many values
        ([1, 2, 3, 5], False),  # too few repetitions
        ([0.5, 1.5] * 6, False),
        ([7] * 12, False),  # constant
    ],
)
def test_what_codes_are(values, codes):
    from mercer.cli._data import CODES, _why_not

    assert _why_not(np.array(values, dtype=float), False, True) == (CODES if codes else "")
    assert _why_not(np.array([*values, np.nan], float), False, True) == (CODES if codes else "")
    assert _why_not(np.array(values, dtype=float), True, True) == ""


def test_arrays_and_parquet(run, flowers, rng):
    """Columns of arrays have one type and no names, so integers are numbers like others."""
    np.save("a.npy", rng.integers(0, 9, (60, 3)).astype(np.uint8))
    ran = run("anomalies", "a.npy", "-o", "a.csv")
    assert ("60 rows of 3 columns" in ran.out, ran.err) == (True, "")
    pytest.importorskip("pyarrow")
    assert run("denoise", "flowers.csv", "-o", "t.parquet", "-q").code == 0
    assert "species, flag (integer codes)" in run("denoise", "t.parquet", "-o", "u.parquet").out


@pytest.mark.parametrize(
    ("name", "unused"), [("iris", 1), ("wine", 1), ("seeds", 1), ("faithful", 0)]
)
def test_classes_of_real_tables(name, unused, run, data_dir):
    path = data_dir / f"{name}.csv"
    ran = run("denoise", path, "-o", "out.csv", "--noise", "0.1")
    assert ran.code == 0
    assert ("class (integer codes)" in ran.out) == bool(unused)
    before, after = rows_of(path), rows_of(Path("out.csv"))
    if unused:
        assert [row[-1] for row in before] == [row[-1] for row in after]
