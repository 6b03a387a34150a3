"""Text tables of other countries and programs: they are recognised, and come back the same way."""

import csv
import gzip

import numpy as np
import pytest

from mercer.cli._csv import read_csv
from mercer.cli._data import Selection
from mercer.cli._files import Source
from mercer.cli._terminal import DataError
from mercer.cli._text import find_separator

from .test_tables import numbers, rows_of

DIALECTS = [  # separator, decimal sign, line ending, encoding
    (";", ",", "\r\n", "cp1252"),
    (";", ",", "\n", "utf-8"),
    ("\t", ",", "\n", "utf-8"),
    ("|", ",", "\n", "utf-16"),
    (",", ".", "\n", "utf-8-sig"),
    (";", ".", "\n", "utf-16"),
    (",", ",", "\n", "utf-8"),  # cells in quotes
]


def translate(path, target, separator, decimal, newline, encoding):
    """Write gaps.csv in another dialect, with a name that is not ASCII."""
    header, *rows = rows_of(path)
    header[2] = "Größe"
    rows = [row[:2] + [cell.replace(".", decimal) for cell in row[2:]] for row in rows]
    with target.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=separator, lineterminator=newline)
        writer.writerows([header, *rows])


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: "-".join(map(ascii, d)))
def test_dialects_are_recognised_and_kept(dialect, run, files):
    folder = files["folder"]
    translate(folder / "gaps.csv", folder / "t.csv", *dialect)
    separator, decimal, newline, encoding = dialect
    ran = run("impute", "t.csv", "-o", "out.csv")
    assert ran.code == 0, ran.err
    assert "filled      13 values in 13 rows" in ran.out
    assert ("Windows-1252" in ran.err) == (encoding == "cp1252")
    run("impute", "gaps.csv", "-o", "plain.csv")
    with (folder / "out.csv").open(encoding=encoding, newline="") as file:
        assert file.readline() == separator.join(["id", "name", "Größe", "y"]) + newline
        rows = list(csv.reader(file, delimiter=separator))
    expected = rows_of(folder / "plain.csv")[1:]
    assert [[c.replace(",", ".") for c in row[2:]] for row in rows] == [r[2:] for r in expected]
    assert all(decimal in row[2] for row in rows)


def test_the_result_of_a_table_with_many_holes(run, tmp_path, rng):
    """495 empty cells between semicolons and decimal commas used to be left empty, exit code 0."""
    t = rng.uniform(0.0, 3.0, (1650, 1))
    X = np.sin(t + 0.4 * np.arange(3)) + 0.01 * rng.normal(size=(1650, 3))
    cells = np.char.replace(np.round(X, 3).astype(str), ".", ",")
    cells.ravel()[rng.choice(cells.size, 495, replace=False)] = ""
    (tmp_path / "t.csv").write_text("a;b;c\n" + "\n".join(";".join(row) for row in cells) + "\n")
    ran = run("impute", "t.csv", "-o", "out.csv")
    assert ran.code == 0, ran.err
    assert "filled      495 values" in ran.out
    rows = rows_of(tmp_path / "out.csv", delimiter=";")[1:]
    found = np.array([[float(cell.replace(",", ".")) for cell in row] for row in rows])
    assert np.median(np.abs(found - X)[cells == ""]) < 0.05


def test_new_columns_have_the_decimal_sign_of_the_file(run, files):
    folder = files["folder"]
    translate(folder / "measured.csv", folder / "t.csv", ";", ",", "\n", "utf-8")
    assert run("anomalies", "t.csv", "-o", "out.csv", "-q").code == 0
    rows = rows_of(folder / "out.csv", delimiter=";")[1:]
    assert sum("," in row[4] for row in rows) > 100
    assert not any("." in row[4] for row in rows)


def test_other_formats_get_another_separator(run, files):
    folder = files["folder"]
    translate(folder / "measured.csv", folder / "t.tsv", "\t", ",", "\n", "utf-8")
    assert run("denoise", "t.tsv", "-o", "out.csv", "-q").code == 0
    assert (folder / "out.csv").read_text().startswith("id;name;Größe;y\n")


def read(tmp_path, text, **options):
    path = tmp_path / "t.csv"
    path.write_text(text)
    return read_csv(Source(path), Selection(**options))


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a;b\n1,5;2\n2,5;3\n", {}, [[1.5, 2.0], [2.5, 3.0]]),
        ("a;b\n1;2,25\n2;3\n", {}, [[1.0, 2.25], [2.0, 3.0]]),
        ("Temp, C;Druck, bar\n1,5;2\n2,5;3\n", {}, [[1.5, 2.0], [2.5, 3.0]]),
        ("a;b\n1.234,5;1\n2,5;3\n", {}, [[1234.5, 1.0], [2.5, 3.0]]),
        ('a,b\n"1,234.5",1\n2,3\n', {}, [[1234.5, 1.0], [2.0, 3.0]]),
        ('a,b\n"1,234",1.5\n2,3\n', {}, [[1234.0, 1.5], [2.0, 3.0]]),
        ("a;b\n1.234;5\n2.345;6\n", {}, [[1.234, 5.0], [2.345, 6.0]]),
        ("a;b\n1,234;5\n2,345;6\n", {"decimal": ","}, [[1.234, 5.0], [2.345, 6.0]]),
        ("a;b\n1,234;5\n2,345;6\n", {"decimal": "."}, [[1234.0, 5.0], [2345.0, 6.0]]),
        ("a;b\n1,5;1.25\n2,5;x\n", {"decimal": ",", "skip": ("b",)}, [[1.5], [2.5]]),
        ("a\n1,5\n2,5\n", {"decimal": ","}, [[1.5], [2.5]]),
        ("a b\n1.5 2\n2.5 3\n", {"separator": " "}, [[1.5, 2.0], [2.5, 3.0]]),
        ("a,b;c\n1,2\n2,5\n", {"header": False, "separator": ";"}, None),
    ],
)
def test_decimal_signs(text, options, expected, tmp_path):
    if expected is None:
        with pytest.raises(DataError):
            read(tmp_path, text, **options)
    else:
        np.testing.assert_array_equal(read(tmp_path, text, **options).values, expected)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a;b\n1,5;1.5\n2,5;2.5\n", ["'1,5' in column 'a'", "'1.5' in column 'b'", "--decimal ,"]),
        ("a;b\n1,5;1\n2.5;2\n", ["'1,5' in column 'a'", "'2.5' in column 'a'", "--decimal ."]),
        ("a;b\n1,5;1.234\n2,5;2.345\n", ["'1,5' in column 'a'", "'1.234' in column 'b'"]),
        ("a;b\n1,234;5\n2,345;6\n", ["'1,234' in column 'a' may group digits", "--decimal ,"]),
        ("a\n1,5\n2,5\n", ["line 2", "2 cells", "--decimal ,"]),
        ("a,b\n1,5,2,5\n3,5,4,5\n", ["line 2", "4 cells", "decimal commas"]),
        ("a;b\n1,5;1\n2,5;2\n3,5;3\nx;4\n", ["column 'a'", "1 of 4 cells is not a number", "'x'"]),
        ("a;b\n1,5;1\n2.5.3;2\n3,5;3\n4,5;5\n", ["1 of 4 cells", "'2.5.3' in line 3"]),
    ],
)
def test_doubtful_tables_are_errors_with_a_cure(text, parts, tmp_path):
    with pytest.raises(DataError) as found:
        read(tmp_path, text)
    for part in parts:
        assert part in str(found.value)


def test_signs_late_in_a_file_are_not_overlooked(tmp_path):
    text = "a;b\n" + "1;2.5\n" * 3000 + "1,5;2.5\n"
    with pytest.raises(DataError, match=r"1 of 3,001 cells is not a number, the first is '1,5'"):
        read(tmp_path, text)
    text = "a;b\n" + ";1\n" * 3000 + "1,5;1\n"  # the first cells are missing
    assert read(tmp_path, text, missing=("1",), include=("a",)).values[-1, 0] == 1.5


def test_texts_with_commas_show_no_decimal_sign(tmp_path):
    table = read(tmp_path, 'a,b\n"Smith, J",1.5\n"Miller, K",2.5\n')
    assert table.dialect.decimal == "."
    assert table.unused == {"a": "text"}


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2\n", ";"),
        ("1,2,x;y\n3,4,u;v\n", ","),
        ("a\tb\n1,5\t2,5\n", "\t"),
        ('"a;b",c\n"1;2",3\n', ","),
        ("x|y\n1|2\n", "|"),
        ("name;city\nAnn, B.;Rome\nBen;Oslo\n", ";"),
        ('a,"long\ntext; with; signs"\n1,2\n', ","),
        ("a\n1\n", ","),
        ("", ","),
    ],
)
def test_separators(text, separator):
    assert find_separator(text, ",;\t|") == separator


def test_numbers_between_spaces(run, tmp_path, rng):
    X = rng.normal(size=(30, 3))
    np.savetxt(tmp_path / "t.txt", X)
    ran = run("denoise", "t.txt", "-o", "out.txt")
    assert (ran.code, "--no-header" in ran.err) == (1, True)
    assert run("denoise", "t.txt", "-o", "out.txt", "--no-header", "--noise", "0").code == 0
    np.testing.assert_array_equal(np.loadtxt("out.txt"), X)


@pytest.mark.parametrize("word", ["tab", "\\t", "\t"])
def test_separators_as_words(word, run, files):
    folder = files["folder"]
    text = (folder / "measured.csv").read_text().replace(",", "\t").replace('"', "")
    (folder / "t.csv").write_text(text.replace("point\t", "point"))
    ran = run("denoise", "t.csv", "-o", "out.csv", "--separator", word)
    assert ran.code == 0, ran.err
    assert run("denoise", "t.csv", "-o", "b.csv", "--separator", "ab").code == 2


def test_encodings_by_name(run, files):
    folder = files["folder"]
    text = (folder / "measured.csv").read_text().replace("name", "имя")
    (folder / "t.csv").write_text(text, encoding="koi8-r")
    ran = run("denoise", "t.csv", "-o", "out.csv", "--encoding", "koi8-r")
    assert (ran.code, "Windows" in ran.err) == (0, False)
    assert "имя (text)" in ran.out
    assert (folder / "out.csv").read_text("koi8-r").startswith("id,имя,x,y\n")
    assert run("denoise", "t.csv", "-o", "b.csv", "--encoding", "utf-8").code == 1


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_compressed_text(suffix, run, files):
    folder = files["folder"]
    run("denoise", "measured.csv", "-o", f"a{suffix}", "--noise", "0.2")
    text = (folder / f"a{suffix}").read_bytes()
    run("denoise", "measured.csv", "-o", f"a{suffix}.gz", "--noise", "0.2")
    assert gzip.decompress((folder / f"a{suffix}.gz").read_bytes()) == text
    ran = run("denoise", f"a{suffix}.gz", "-o", f"b{suffix}.gz", "--noise", "0")
    assert ran.code == 0, ran.err
    assert (folder / f"b{suffix}.gz").read_bytes() == (folder / f"a{suffix}.gz").read_bytes()
    (folder / f"c{suffix}.gz").write_bytes((folder / f"a{suffix}.gz").read_bytes()[:-100])
    ran = run("denoise", f"c{suffix}.gz", "-o", "out.csv")
    assert ran.code == 1
    assert "damaged" in ran.err
    assert run("denoise", f"b{suffix}.gz", "-o", "out.csv").code == 0
    np.testing.assert_array_equal(
        numbers(folder / "out.csv", "x"), numbers(folder / "a.csv", "x") if suffix == ".csv" else
        np.array([[float(r[2])] for r in rows_of(folder / "a.tsv", delimiter="\t")[1:]]),
    )  # fmt: skip
