"""Excel workbooks, and tables that change their format on the way."""

import re
import sys
import zipfile
from datetime import datetime

import numpy as np
import pytest

from .test_tables import numbers, rows_of

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def test_from_text_to_parquet(run, files):
    folder = files["folder"]
    lines = (folder / "measured.csv").read_text().splitlines()
    header = [lines[0] + ",zip,day,at,ok,count,ratio,note,id20"]
    extra = "0{0:04d},2024-01-{1:02d},2024-01-01 10:{1:02d}:00,{2},{3},{3}.5,,1234567890123456{0}"
    lines = [
        f"{line},{extra.format(i, i % 28 + 1, 'true' if i % 2 else 'false', i * i)}"
        for i, line in enumerate(lines[1:])
    ]
    (folder / "t.csv").write_text("\n".join(header + lines) + "\n")
    words = ["--noise", "0.2", "--columns", "x,y", "-q"]
    for name in ("a.parquet", "a.csv"):
        assert run("denoise", "t.csv", "-o", name, *words).code == 0
    table = parquet.read_table("a.parquet")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {
        "id": "int64", "name": "string", "x": "double", "y": "double", "zip": "string",
        "day": "date32[day]", "at": "timestamp[us]", "ok": "bool", "count": "int64",
        "ratio": "double", "note": "string", "id20": "string",
    }  # fmt: skip
    found = np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()])
    np.testing.assert_allclose(found, numbers(folder / "a.csv", "x", "y"), rtol=1e-11)
    assert table["zip"][3].as_py() == "00003"
    assert table["id"].to_pylist() == list(range(1, 121))


def test_missing_cells_become_null(run, tmp_path):
    (tmp_path / "t.csv").write_text("a;b;c\n1,5;;x\n2,5;3;NA\n3,75;NA;\n4;5;z\n")
    assert run("anomalies", "t.csv", "-o", "t.parquet", "-q", "--columns", "a").code == 0
    table = parquet.read_table("t.parquet")
    assert table.column_names == ["a", "b", "c", "score", "is_anomaly"]
    assert table["a"].to_pylist() == [1.5, 2.5, 3.75, 4.0]
    assert table["b"].to_pylist() == [None, 3, None, 5]
    assert table["c"].to_pylist() == ["x", "NA", "", "z"]
    assert table["is_anomaly"].type == pa.bool_()


def test_from_parquet_to_text(run, files):
    X = numbers(files["folder"] / "measured.csv", "x", "y")
    n = len(X)
    table = pa.table({
        "x": X[:, 0], "y": X[:, 1], "n": pa.array([None, *range(n - 1)]),
        "f": np.full(n, 0.1, np.float32), "when": pa.array(np.arange(n), type=pa.timestamp("s")),
        "word": pa.array(["=1+1", None, "c, d"] * (n // 3)).dictionary_encode(),
        "flag": [True, False] * (n // 2),
    })  # fmt: skip
    parquet.write_table(table, "t.parquet")
    assert run("denoise", "t.parquet", "-o", "a.csv", "-c", "x,y", "--noise", "0").code == 0
    header, *rows = rows_of(files["folder"] / "a.csv")
    assert header == table.column_names
    np.testing.assert_array_equal(numbers(files["folder"] / "a.csv", "x", "y"), X)
    assert rows[0][2:] == ["", "0.1", "1970-01-01 00:00:00.000", "=1+1", "true"]
    assert rows[1][2:] == ["0", "0.1", "1970-01-01 00:00:01.000", "", "false"]
    words = ["--noise", "0.2", "--escape"]
    assert run("denoise", "t.parquet", "-o", "a.tsv", "-c", "x,y", *words).code == 0
    assert rows_of(files["folder"] / "a.tsv", delimiter="\t")[1][5] == "'=1+1"
    assert run("denoise", "t.parquet", "-o", "b.parquet", "-c", "x,y", *words).code == 0
    np.testing.assert_allclose(
        [float(row[0]) for row in rows_of(files["folder"] / "a.tsv", delimiter="\t")[1:]],
        parquet.read_table("b.parquet")["x"].to_numpy(), rtol=1e-11,
    )  # fmt: skip


def test_what_text_cannot_hold(run, files):
    parquet.write_table(pa.table({"x": np.arange(9.0) ** 2, "l": [[1, 2]] * 9}), "t.parquet")
    ran = run("anomalies", "t.parquet", "-o", "out.csv")
    assert ran.code == 1
    assert "column 'l' of type list" in ran.err
    assert ".parquet" in ran.err


@pytest.fixture
def workbook(files):
    """gaps.csv as a workbook, with other kinds of cells and empty ones around."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    for i, row in enumerate(rows_of(files["folder"] / "gaps.csv")):
        cells = [float(c) if i and j >= 2 and c else c or None for j, c in enumerate(row)]
        more = ["when", "flag"] if i == 0 else [datetime(2024, 1, 1 + i % 9), i % 2 == 0]
        sheet.append([*cells, *more])
    sheet.cell(200, 12).value = "x"
    sheet.cell(200, 12).value = None
    path = files["folder"] / "gaps.xlsx"
    book.save(path)
    return book, path


def test_workbooks_are_read_as_text_tables_are(run, files, workbook):
    ran = run("impute", "gaps.xlsx", "-o", "a.csv")
    assert (ran.code, ran.err) == (0, "")
    assert "filled      13 values in 13 rows" in ran.out
    run("impute", "gaps.csv", "-o", "b.csv")
    np.testing.assert_array_equal(
        numbers(files["folder"] / "a.csv", "x", "y"), numbers(files["folder"] / "b.csv", "x", "y")
    )
    header, first, *_ = rows_of(files["folder"] / "a.csv")
    assert header == ["id", "name", "x", "y", "when", "flag"]
    assert first[4:] == ["2024-01-02", "false"]
    assert run("impute", "gaps.xlsx", "-o", "a.parquet").code == 0
    assert parquet.read_schema("a.parquet").field("when").type == pa.date32()


def test_sheets_are_chosen_by_name(run, workbook):
    book, path = workbook
    book.create_sheet("empty")
    book.save(path)
    assert run("impute", "gaps.xlsx", "-o", "a.csv").code == 0  # the empty sheet does not count
    book.create_sheet("notes").append(["a", "b"])
    book.save(path)
    ran = run("impute", "gaps.xlsx", "-o", "b.csv")
    assert ran.code == 2
    assert "several sheets (Sheet, notes); choose one with --sheet NAME" in ran.err
    assert run("impute", "gaps.xlsx", "-o", "b.csv", "--sheet", "Sheet").code == 0
    ran = run("impute", "gaps.xlsx", "-o", "c.csv", "--sheet", "Data")
    assert (ran.code, "no sheet 'Data'; it has Sheet, notes" in ran.err) == (2, True)


def test_rows_of_a_sheet_are_called_rows(run, workbook):
    book, path = workbook
    book.active["C7"] = "seven"
    book.save(path)
    ran = run("impute", "gaps.xlsx", "-o", "a.csv")
    assert ran.code == 1
    assert "column 'x' of gaps.xlsx: 1 of 120 cells is not a number" in ran.err
    assert "'seven' in row 7" in ran.err
    assert "the first in column 'y', row 5" in run("denoise", path, "-o", "b.csv", "-c", "y").err


def with_dimension(path, size, more=""):
    """Change what the sheet of a workbook says about its size, and add cells."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    text = re.sub(r'<dimension ref="[^"]*"', f'<dimension ref="{size}"', parts[name].decode())
    parts[name] = text.replace("</sheetData>", f"{more}</sheetData>").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("size", ["A1", "A1:C9", "A1:XFD1048576"])
def test_a_sheet_may_state_a_wrong_size(size, run, files, workbook):
    run("impute", "gaps.xlsx", "-o", "a.csv")
    with_dimension(workbook[1], size)
    ran = run("impute", "gaps.xlsx", "-o", "b.csv")
    assert ran.code == 0, ran.err
    assert (files["folder"] / "a.csv").read_bytes() == (files["folder"] / "b.csv").read_bytes()


@pytest.mark.parametrize("last", ["XFD9999", "A99999999999"])
def test_one_cell_far_away_does_not_fill_the_memory(last, run, workbook):
    row = last.lstrip("ADFX")
    cell = f'<row r="{row}"><c r="{last}"><v>1</v></c></row>'
    with_dimension(workbook[1], f"A1:{last}", cell)
    ran = run("impute", "gaps.xlsx", "-o", "b.csv", "--max-expansion", "0.1")
    assert (ran.code, "GB of memory, much more than its size on disk" in ran.err) == (1, True)


def test_damaged_and_strange_workbooks(run, workbook):
    _, path = workbook
    ran = run("impute", "gaps.xlsx", "-o", "out.xlsx")
    assert ran.code == 2
    assert "must end in .csv" in ran.err
    path.write_bytes(path.read_bytes()[:-200])
    ran = run("impute", "gaps.xlsx", "-o", "out.csv")
    assert (ran.code, "not an Excel workbook" in ran.err) == (1, True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "b")
    assert run("impute", "gaps.xlsx", "-o", "out.csv").code == 1


def test_without_openpyxl_one_sentence(run, tmp_path, monkeypatch):
    (tmp_path / "t.xlsx").touch()
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    ran = run("impute", "t.xlsx", "-o", "out.csv")
    assert ran.code == 2
    assert ran.err == "mercer: Excel files need openpyxl: pip install 'mercer[excel]'\n"


@pytest.mark.parametrize("text", ["[]", "null", '{"index_columns": 3}', "[" * 99_999])
def test_strange_notes_of_pandas_are_passed_over(text, run, tmp_path, rng):
    columns = dict(zip("xy", rng.normal(size=(2, 20)), strict=True))
    table = pa.table(columns).replace_schema_metadata({"pandas": text})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert run("anomalies", "t.parquet", "-o", "out.csv").code == 0


def test_columns_of_parquet_with_equal_names_are_refused(run, tmp_path, rng):
    table = pa.table([*map(pa.array, rng.normal(size=(2, 20)))], names=["x", "x"])
    parquet.write_table(table, tmp_path / "t.parquet")
    ran = run("anomalies", "t.parquet", "-o", "out.csv")
    assert (ran.code, ran.err) == (1, "mercer: t.parquet has several columns 'x'; rename them\n")
