"""CSV, TSV and Parquet: numbers are worked on, everything else comes out as it went in."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.cli._csv import read_csv
from mercer.cli._data import Selection, free_name
from mercer.cli._files import Output, Source
from mercer.cli._terminal import DataError
from mercer.cli._text import as_numbers, as_text, write_table

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TEXT = np.dtypes.StringDType()


def rows_of(path, **options):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, **options))


def numbers(path, *columns):
    header, *rows = rows_of(path)
    return np.array([[float(row[header.index(c)]) for c in columns] for row in rows])


def test_denoising_a_table_brings_it_nearer_to_the_truth(run, files):
    folder = files["folder"]
    assert run("denoise", "measured.csv", "-o", "clean.csv", "--noise", "0.14").code == 0
    scale = np.array([1.0, 10.0])
    before, after = (
        np.mean(((numbers(folder / name, "x", "y") - files["clean"]) / scale) ** 2)
        for name in ("measured.csv", "clean.csv")
    )
    assert after < 0.8 * before


def test_denoising_does_what_the_estimator_does(run, files):
    from mercer.estimators import KernelDenoiser

    X = numbers(files["folder"] / "measured.csv", "x", "y")
    mean, spread = X.mean(axis=0), X.std(axis=0)
    Z = (X - mean) / spread
    expected = KernelDenoiser(noise=0.2, random_state=0).fit(Z).transform(Z) * spread + mean
    run("denoise", "measured.csv", "-o", "clean.csv", "--noise", "0.2")
    found = numbers(files["folder"] / "clean.csv", "x", "y")
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_other_columns_are_untouched_and_in_order(run, files):
    run("denoise", "measured.csv", "-o", "clean.csv", "--noise", "0.2")
    before = rows_of(files["folder"] / "measured.csv")
    after = rows_of(files["folder"] / "clean.csv")
    assert [row[:2] for row in after] == [row[:2] for row in before]
    assert after[0] == before[0]
    assert all(a[2:] != b[2:] for a, b in zip(after[1:], before[1:], strict=True))


def test_a_column_that_counts_rows_is_left_alone_unless_it_is_asked_for(run, files):
    out = run("denoise", "measured.csv", "-o", "a.csv").out
    assert "unchanged   id (row numbers); name (text)\n" in out
    out = run("denoise", "measured.csv", "-o", "b.csv", "--columns", "id,x,y").out
    assert "120 rows of 3 columns" in out
    assert "unchanged" not in out


def test_skip(run, files):
    assert run("denoise", "measured.csv", "-o", "a.csv", "--skip", "x").code == 0
    before, after = (rows_of(files["folder"] / name) for name in ("measured.csv", "a.csv"))
    assert [row[2] for row in before] == [row[2] for row in after]


def test_names_with_commas_can_be_chosen(run, files):
    text = (files["folder"] / "measured.csv").read_text().replace("id,name,x,y", 'id,n,"x, m",y')
    (files["folder"] / "t.csv").write_text(text)
    ran = run("denoise", "t.csv", "-o", "a.csv", "--columns", "x, m", "-c", "y")
    assert ran.code == 0, ran.err
    assert "of 2 columns" in ran.out


def test_without_noise_every_cell_keeps_its_text(run, files):
    ran = run("denoise", "measured.csv", "-o", "same.csv", "--noise", "0")
    assert ran.code == 0
    assert rows_of(files["folder"] / "same.csv") == rows_of(files["folder"] / "measured.csv")


@pytest.mark.parametrize(("separator", "newline"), [(";", "\r\n"), ("\t", "\n"), ("|", "\n")])
def test_dialects_come_back(separator, newline, run, files):
    rows = rows_of(files["folder"] / "measured.csv")
    lines = [separator.join(row) for row in rows]
    (files["folder"] / "t.csv").write_bytes((newline.join(lines) + newline).encode())
    assert run("denoise", "t.csv", "-o", "out.csv").code == 0
    written = (files["folder"] / "out.csv").read_bytes()
    assert written.count(newline.encode()) == len(rows)
    assert rows_of(files["folder"] / "out.csv", delimiter=separator)[0] == rows[0]


def test_tab_separated_files(run, files):
    assert run("denoise", "measured.csv", "-o", "t.tsv").code == 0
    assert run("denoise", "t.tsv", "-o", "back.csv").code == 0
    assert rows_of(files["folder"] / "t.tsv", delimiter="\t")[0] == ["id", "name", "x", "y"]
    assert rows_of(files["folder"] / "back.csv")[0] == ["id", "name", "x", "y"]


def test_byte_order_mark_is_no_part_of_a_name(run, files):
    text = (files["folder"] / "measured.csv").read_text()
    (files["folder"] / "t.csv").write_text(text, encoding="utf-8-sig")
    assert run("denoise", "t.csv", "-o", "out.csv", "--skip", "id").code == 0


def test_tables_without_names(run, files):
    lines = (files["folder"] / "measured.csv").read_text().splitlines()[1:]
    (files["folder"] / "t.csv").write_text("\n".join(lines) + "\n")
    ran = run("denoise", "t.csv", "-o", "out.csv", "--no-header")
    assert ran.code == 0, ran.err
    assert "120 rows of 2 columns" in ran.out
    assert len(rows_of(files["folder"] / "out.csv")) == 120


@given(
    cells=st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")), min_size=2,
                 max_size=2),
        min_size=1, max_size=5,
    )
)  # fmt: skip
def test_any_text_comes_back(cells, tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    rows = [[*row, str(i * i)] for i, row in enumerate(cells)]
    write_table(Output(folder / "a.csv"), ["p", "q", "n"], [np.array(c, TEXT) for c in zip(*rows)])  # noqa: B905
    table = read_csv(Source(folder / "a.csv"), Selection(columns=("n",)))
    table.write(table.values, Output(folder / "b.csv"))
    assert rows_of(folder / "b.csv") == [["p", "q", "n"], *rows]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_as_text_are_right_to_twelve_digits(value):
    assert float(as_text(np.array([value]))[0]) == pytest.approx(value, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(
    "cell", ["", "NA", "nan", "NaN", "N/A", "null", "None", " ", "  NA ", "#N/A"]
)
def test_missing_cells(cell):
    found, bad = as_numbers(np.array(["1", cell, " 2.5e1 "], TEXT), ())
    np.testing.assert_array_equal(found, [1.0, np.nan, 25.0])
    assert not bad.any()


def test_markers_of_missing_cells():
    cells = np.array(["1", "-999", "?"], TEXT)
    found, bad = as_numbers(cells, ("-999", "?"))
    np.testing.assert_array_equal(found, [1.0, np.nan, np.nan])
    assert not bad.any()


@pytest.mark.parametrize("cell", ["1_000", "0x10", "1,5", "True", "one"])
def test_cells_that_are_no_numbers(cell):
    found, bad = as_numbers(np.array(["1", cell, ""], TEXT), ())
    np.testing.assert_array_equal(found, [1.0, np.nan, np.nan])
    assert bad.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("cell", "point", "comma"),
    [
        ("1.5", 1.5, None), ("1,5", None, 1.5), ("-1,5e-3", None, -1.5e-3), (",5", None, 0.5),
        ("1,234", 1234.0, 1.234), ("1.234", 1.234, 1234.0), ("0,234", None, 0.234),
        ("1,234.5", 1234.5, None), ("1.234.567,8", None, 1234567.8), ("12,34,567", None, None),
        ("1\u202f234,5", None, 1234.5), ("1\u00a0234", 1234.0, 1234.0), ("7", 7.0, 7.0),
        ("1.5,2", None, None), ("01.02.2024", None, None), ("1,5;", None, None), ("inf",) * 3,
    ],
)  # fmt: skip
def test_numbers_with_either_decimal_sign(cell, point, comma):
    for decimal, expected in ((".", point), (",", comma)):
        (found,), (bad,) = as_numbers(np.array([cell], TEXT), (), decimal)
        assert bad == (expected is None)
        assert bad or found == float(expected)


def test_cells_are_not_changed_by_reading():
    cells = np.array([" 1 ", "NA"], TEXT)
    as_numbers(cells, ())
    as_numbers(cells, (), ",")
    assert cells.tolist() == [" 1 ", "NA"]


FORMULAS = ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "-5", "+1e3", "-", "a=1", ""]
ESCAPED = ["'=1+1", "'+cmd", "'-x", "'@SUM(A1)", "'\t=1", "-5", "+1e3", "'-", "a=1", ""]


@pytest.mark.parametrize("command", ["denoise", "anomalies"])
def test_formulas_are_escaped_if_asked_for(command, run, tmp_path, rng):
    header = ["=name", "x", "y"]
    rows = [[text, *map(str, rng.normal(size=2).round(3))] for text in FORMULAS]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    assert run(command, "t.csv", "-o", "plain.csv", "-q").code == 0
    assert run(command, "t.csv", "-o", "safe.csv", "-q", "--escape").code == 0
    assert [row[0] for row in rows_of(tmp_path / "plain.csv")] == ["=name", *FORMULAS]
    assert [row[0] for row in rows_of(tmp_path / "safe.csv")] == ["'=name", *ESCAPED]


def test_file_names_that_look_like_formulas_are_escaped(run, files):
    folder = files["folder"]
    (folder / "scans" / "00.png").rename(folder / "scans" / "=1+1.png")
    assert run("anomalies", "scans", "-o", "out.csv", "-q").code == 0
    assert "'=1+1.png" in [row[0] for row in rows_of(folder / "out.csv")]


def test_new_columns_get_free_names():
    assert free_name("score", ["a"]) == "score"
    assert free_name("score", ["score", "score_2"]) == "score_3"


def test_blank_lines_at_the_end_are_no_rows_and_elsewhere_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n4,6\n\n\n")
    assert len(read_csv(Source(path), Selection()).values) == 2
    path.write_text("a,b\n1,2\n\n4,6\n")
    with pytest.raises(DataError, match=r"line 3 of .* is blank"):
        read_csv(Source(path), Selection())


def test_in_a_single_column_a_blank_line_is_a_missing_value(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n\n4\n")
    np.testing.assert_array_equal(
        read_csv(Source(path), Selection()).values[:, 0], [1.0, np.nan, 4.0]
    )


@pytest.fixture
def stored(files):
    """A Parquet file with columns of many types."""
    X = numbers(files["folder"] / "measured.csv", "x", "y")
    n = len(X)
    table = pa.table(
        {
            "when": pa.array(np.arange(n), type=pa.timestamp("s")),
            "x": pa.array(X[:, 0].astype(np.float32)),
            "word": pa.array(["a", None, "c"] * (n // 3)).dictionary_encode(),
            "y": pa.array(np.rint(X[:, 1]).astype(int)),
            "flag": pa.array([True, False, None] * (n // 3)),
            "big": pa.array([2**60 + i for i in range(n)]),
            "place": pa.array(np.arange(n)[::-1].copy()),
        }
    )
    meta = {b"pandas": json.dumps({"index_columns": ["place"]}).encode(), b"own": b"kept"}
    parquet.write_table(table.replace_schema_metadata(meta), files["folder"] / "t.parquet")
    return files["folder"] / "t.parquet"


def test_parquet_keeps_other_columns_with_their_types(stored, run):
    ran = run("denoise", "t.parquet", "-o", "out.parquet", "--skip", "big", "--noise", "0.3")
    assert ran.code == 0, ran.err
    assert "place (index)" in ran.out
    before, after = parquet.read_table(stored), parquet.read_table("out.parquet")
    assert after.column_names == before.column_names
    for name in ("when", "word", "flag", "big", "place"):
        assert after.column(name).equals(before.column(name)), name
        assert after.schema.field(name).type == before.schema.field(name).type
    assert after.schema.field("x").type == pa.float32()
    assert after.schema.field("y").type == pa.float64()
    assert after.schema.metadata[b"own"] == b"kept"
    assert not after.column("y").equals(before.column("y").cast(pa.float64()))


def test_parquet_and_csv_give_the_same_numbers(files, run):
    X = numbers(files["folder"] / "measured.csv", "x", "y")
    parquet.write_table(pa.table({"x": X[:, 0], "y": X[:, 1]}), "t.parquet")
    run("denoise", "t.parquet", "-o", "out.parquet")
    run("denoise", "measured.csv", "-o", "out.csv")
    table = parquet.read_table("out.parquet")
    found = np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()])
    np.testing.assert_allclose(found, numbers(files["folder"] / "out.csv", "x", "y"), rtol=1e-9)


def test_training_columns_are_found_by_name_in_any_order(run, files):
    rows = rows_of(files["folder"] / "new.csv")
    turned = [[row[3], row[2], row[1]] for row in rows]
    with (files["folder"] / "turned.csv").open("w", newline="") as file:
        csv.writer(file).writerows(turned)
    for name in ("new", "turned"):
        ran = run("denoise", f"{name}.csv", "-o", f"{name}-out.csv", "--train", "measured.csv")
        assert ran.code == 0, ran.err
    straight = numbers(files["folder"] / "new-out.csv", "x", "y")
    np.testing.assert_array_equal(straight, numbers(files["folder"] / "turned-out.csv", "x", "y"))


def test_a_single_new_row_can_be_denoised(run, files):
    (files["folder"] / "one.csv").write_text("id,x,y,extra\n7,1.2,0.5,3\n")
    ran = run("denoise", "one.csv", "-o", "out.csv", "--train", "measured.csv")
    assert ran.code == 0, ran.err
    assert "1 row of 2 columns" in ran.out
    (_, row) = rows_of(files["folder"] / "out.csv")
    assert (row[0], row[3]) == ("7", "3")
    assert "extra (new)" in ran.out


def test_rows_of_tables_with_long_cells_are_numbered_as_in_a_spreadsheet(run, tmp_path, rng):
    rows = [f'"two\nlines",{x:.3f}' for x in rng.normal(size=20)]
    rows[9] = '"two\nlines",x'
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    assert "the first is 'x' in row 11;" in run("anomalies", "t.csv", "-o", "out.csv").err


def test_cells_keep_their_line_breaks(run, tmp_path, rng):
    cells = ["a\rb", "a\nb", "a\r\nb"] * 5
    pairs = zip(cells, rng.normal(size=(15, 2)), strict=True)
    lines = ['"t\r",x,y', *(f'"{cell}",{x:.3f},{y:.3f}' for cell, (x, y) in pairs)]
    (tmp_path / "t.csv").write_bytes(("\n".join(lines) + "\n").encode())
    assert run("anomalies", "t.csv", "-o", "out.csv").code == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["t\r", *cells]
