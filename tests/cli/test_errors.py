"""Bad files and bad words: one sentence with the cure, exit code 1 for data and 2 for usage."""

import gzip
import os
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

from mercer.cli import _run
from mercer.cli._files import Source, check_expansion
from mercer.cli._images import read_image
from mercer.cli._terminal import DataError

from .conftest import write_image, write_images

TABLE = ["measured.csv", "-o", "out.csv"]


def refused(ran, code, *parts):
    assert ran.code == code, (ran.out, ran.err)
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1, ran.err
    assert ran.err.startswith("mercer: ")
    for part in parts:
        assert part in ran.err


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["measurd.csv", "-o", "out.csv"], ["measurd.csv does not exist", "mean measured.csv?"]),
        (["no/where.csv", "-o", "out.csv"], ["no/where.csv does not exist"]),
        (["notes.doc", "-o", "out.txt"], ["cannot read notes.doc", ".csv", "folder of images"]),
        (["scans/00.png", "-o", "out.png"], ["one image", "give a folder"]),
        (["measured.csv", "-o", "out.npy"], ["must end in .csv or .tsv or"]),
        (["measured.csv", "-o", "scans"], ["is a folder; give the name of a file in it"]),
        (["scans", "-o", "notes.doc"], ["is a file", "into a folder"]),
        (["measured.csv", "-o", "no/out.csv"], ["the folder no does not exist", "create it"]),
        (["measured.csv"], ["missing option -o OUTPUT", "-o - writes"]),
        (["-o", "out.csv"], ["Missing argument 'INPUT'"]),
        ([*TABLE, "--columns", "x,z"], ["no column 'z'", "id, name, x, y"]),
        ([*TABLE, "--kernel", "gauss:1"], ["unknown kernel 'gauss:1'", "linear"]),
        ([*TABLE, "--kernel", "gaussian"], ["the form gaussian:LENGTH"]),
        ([*TABLE, "--kernel", "gaussian:-1"], ["length_scale must be > 0"]),
        ([*TABLE, "--kernel", "laplace:x"], ["the form laplace:LENGTH"]),
        ([*TABLE, "--kernel", "polynomial:2.5"], ["degree"]),
        ([*TABLE, "--noise", "-1"], ["--noise -1", "at least 0"]),
        ([*TABLE, "--noise", "nan"], ["--noise nan"]),
        ([*TABLE, "--noise", "much"], ["--noise much", "at least 0"]),
        ([*TABLE, "--components", "0"], ["--components 0", "share"]),
        ([*TABLE, "--components", "1.5"], ["between 0 and 1"]),
        ([*TABLE, "--encoding", "rot13"], ["--encoding rot13: unknown"]),
        ([*TABLE, "--components", "500"], ["too many for 120 rows"]),
        ([*TABLE, "--seed", "-1"], ["--seed", "-1"]),
        ([*TABLE, "--train", "scans"], ["both be files"]),
        (["scans", "-o", "out", "--columns", "x"], ["--skip are for tables"]),
        (["pair.npz", "-o", "out.npz"], ["several arrays (X, y)", "--array NAME"]),
        (["pair.npz", "-o", "out.npz", "--array", "Z"], ["no array 'Z'", "X, y"]),
    ],
)  # fmt: skip
def test_usage(words, parts, run, files):
    folder = files["folder"]
    (folder / "notes.doc").touch()
    np.savez(folder / "pair.npz", X=np.eye(3), y=np.arange(3))
    refused(run("denoise", *words), 2, *parts)
    assert not (folder / "out.csv").exists()


def test_devices_are_not_read(run, tmp_path):
    (tmp_path / "t.csv").symlink_to("/dev/zero")
    refused(run("denoise", "t.csv", "-o", "out.csv"), 2, "cannot read t.csv")


TABLES = {
    "empty": ("", "is empty"),
    "blank": ("\n\n", "is empty"),
    "names only": ("a,b\n", "column names but no rows"),
    "no numbers": ("a,b\nx,y\nz,w\nu,v\n", "no column of numbers: a (text), b (text)"),
    "ragged": ("a,b\n1,2\n3\n4,5\n", "line 3 of t.csv has 1 cell, but the first line has 2"),
    "cut off": ('a,b\n1,2\n3,"4\n', "is not a table: line"),
    "numbers for names": ("1.5,2.5\n1,2\n3,4\n6,6\n", "--no-header"),
    "missing": ("a,b\n1,2\n3,\n5,7\n9,9\n", "1 missing value, the first in column 'b', line 3"),
    "infinite": (
        "a,b\n1,2\n3,inf\n5,7\n9,9\n",
        "1 huge value, the first in column 'b', line 3",
    ),
    "huge": (
        "a,b\n1,2\n3,1e200\n5,7\n9,9\n",
        "1 huge value, the first in column 'b', line 3",
    ),
    "equal rows": ("a,b\n1,2\n1,2\n1,2\n", "all rows of t.csv are equal"),
    "two rows": ("a,b\n1,2\n3,7\n", "has 2 rows; at least 3 needed"),
}


@pytest.mark.parametrize(("text", "part"), TABLES.values(), ids=TABLES)
def test_tables(text, part, run, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    refused(run("denoise", "t.csv", "-o", "out.csv"), 1, part)
    assert not (tmp_path / "out.csv").exists()


def test_missing_values_name_the_command_that_fills_them(run, files):
    refused(run("denoise", "gaps.csv", "-o", "o.csv"), 1, "mercer impute gaps.csv -o OUTPUT")


def test_chosen_columns_must_hold_numbers(run, files):
    text = (files["folder"] / "measured.csv").read_text().splitlines()
    text[5] = '5,five,"0,5",2'
    (files["folder"] / "t.csv").write_text("\n".join(text))
    ran = run("denoise", "t.csv", "-o", "out.csv", "--columns", "x")
    refused(ran, 1, "decimal commas ('0,5' in column 'x')", "--decimal")
    for words in ([], ["--columns", "x"]):
        ran = run("denoise", "t.csv", "-o", "out.csv", "--decimal", ".", *words)
        refused(ran, 1, "column 'x' of t.csv: 1 of 120 cells is not a number", "'0,5' in line 6")
        assert "--missing, or leave the column out with --skip" in ran.err
    assert run("denoise", "t.csv", "-o", "out.csv", "--decimal", ".", "--skip", "x").code == 0


def test_a_column_of_text_with_some_numbers_is_text(run, files):
    rows = (files["folder"] / "measured.csv").read_text().splitlines()
    rows = [f"{row},{'7' if i % 3 else 'room 7'}" for i, row in enumerate(rows[:3])] + [
        f"{row},room {i}" for i, row in enumerate(rows[3:])
    ]
    rows[0] = "id,name,x,y,room"
    (files["folder"] / "t.csv").write_text("\n".join(rows))
    ran = run("denoise", "t.csv", "-o", "out.csv")
    assert ran.code == 0
    assert "room (118 of 120 cells are not numbers, the first is 'room 0' in line 4" in ran.out


def test_text_in_an_unknown_encoding(run, tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a\x81,b\n1,2\n")  # neither UTF-8 nor Windows-1252
    refused(run("denoise", "t.csv", "-o", "out.csv"), 1, "utf-8 or cp1252", "--encoding")
    (tmp_path / "t.csv").write_bytes("a,b\n1,2\n".encode("utf-16-le"))  # without a mark
    refused(run("denoise", "t.csv", "-o", "out.csv"), 1, "--encoding utf-16-le")
    ran = run("denoise", "t.csv", "-o", "out.csv", "--encoding", "klingon")
    refused(ran, 2, "--encoding klingon: unknown")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.xlsx", "t.parquet", "t.npy", "t.npz"])
def test_files_that_are_not_what_they_are_called(name, run, tmp_path, rng):
    (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\n" + rng.bytes(2000))
    output = "out.csv" if name == "t.xlsx" else "out" + name[1:]
    refused(run("denoise", name, "-o", output), 1, name)


@pytest.mark.parametrize(
    ("array", "part"),
    [
        (np.arange(5.0), "reshape(-1, 1)"),
        (np.empty((0, 3)), "is empty"),
        (np.eye(3) * 1j, "complex128"),
        (np.array([["a", "b"]]), "<U1"),
        (np.array([[{}]], dtype=object), "cannot be read as NumPy arrays"),
        (np.array([[1.0, np.nan]] * 4), "no column of numbers"),
    ],
)
def test_arrays(array, part, run, tmp_path):
    if part == "no column of numbers":
        array[:, 0] = np.nan
    np.save(tmp_path / "t.npy", array)
    refused(run("denoise", "t.npy", "-o", "out.npy"), 1, part)


def test_nothing_in_an_array_file_is_executed(run, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "trapped"), "w"))

    np.save(tmp_path / "t.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    assert run("denoise", "t.npy", "-o", "out.npy").code == 1
    assert not (tmp_path / "trapped").exists()


def test_images_must_have_one_size_and_one_mode(run, tmp_path, rng):
    write_images(tmp_path / "in", rng, 4)
    write_image(tmp_path / "in" / "x.png", np.zeros((6, 4), np.uint8))
    ran = run("denoise", "in", "-o", "out")
    refused(ran, 1, "00.png has 5 x 6 pixels in grey, x.png has 4 x 6", "one size")
    write_image(tmp_path / "in" / "x.png", np.zeros((6, 5, 3), np.uint8))
    refused(run("denoise", "in", "-o", "out"), 1, "x.png has 5 x 6 pixels in colour")
    assert not (tmp_path / "out").exists()


def test_folders_without_images_and_broken_images(run, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    refused(run("denoise", "in", "-o", "out"), 1, "contains no images")
    (folder / "a.png").write_bytes(b"no image")
    refused(run("denoise", "in", "-o", "out"), 1, "a.png cannot be read as an image", "remove it")


def test_training_images_must_be_alike(run, tmp_path, rng):
    write_images(tmp_path / "in", rng, 3)
    write_images(tmp_path / "big", rng, 5, shape=(7, 5))
    ran = run("denoise", "in", "-o", "out", "--train", "big")
    refused(ran, 1, "5 x 6 pixels", "5 x 7 pixels", "must be equal")


def test_training_columns_must_be_there(run, files):
    (files["folder"] / "t.csv").write_text("x,z\n1,2\n")
    ran = run("denoise", "t.csv", "-o", "out.csv", "--train", "measured.csv")
    refused(ran, 1, "t.csv has no column 'y', which measured.csv has", "--skip")


def test_unknown_commands(run):
    refused(run("denoize"), 2, "No such command 'denoize'", "mercer --help")


def test_images_have_no_missing_values(run, files):
    refused(run("impute", "scans", "-o", "out"), 2, "images have no missing values")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--false-alarms", "0"], "--false-alarms 0"),
        (["--top", "-1"], "--top"),
        (["--false-alarms", "x"], "at most 0.5"),
    ],
)
def test_anomalies_usage(words, part, run, files):
    refused(run("anomalies", "measured.csv", "-o", "out.csv", *words), 2, part)
    refused(run("anomalies", "complete.npy", "-o", "out.npy"), 2, ".csv or .npz")
    refused(run("anomalies", "scans", "-o", "out"), 2, "must end in .csv")


def broken(*_, **__):
    raise ZeroDivisionError("a defect")


def test_defects_have_no_traceback_unless_asked_for(run, files, monkeypatch):
    monkeypatch.setattr(_run, "check_rows", broken)
    words = ["denoise", "measured.csv", "-o", "out.csv"]
    refused(run(*words), 1, "unexpected ZeroDivisionError: a defect; --debug prints a traceback")
    ran = run(*words, "--debug")
    assert ran.code == 1
    assert "Traceback" in ran.err
    assert "in broken" in ran.err


def test_memory(run, files, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(_run, "check_rows", full)
    refused(run("denoise", "measured.csv", "-o", "out.csv"), 1, "not enough memory")


def test_unreadable_files(run, files, monkeypatch):
    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied", "measured.csv")

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    refused(run("denoise", "measured.csv", "-o", "out.csv"), 1, "measured.csv: Permission denied")


def test_errors_in_a_process_of_its_own(spawn, files):
    ran = spawn("denoise", "measured.csv", "-o", "measured.csv")
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["denoise", "segment"])
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_images_of_other_formats_are_refused_whatever_their_name(command, suffix, run, tmp_path):
    """Pillow would run Ghostscript for PostScript."""
    (tmp_path / "in").mkdir()
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
    (tmp_path / "in" / f"a{suffix}").write_bytes(script)
    source, output = ("in", "out") if command == "denoise" else (f"in/a{suffix}", "out.png")
    refused(run(command, source, "-o", output), 1, "cannot be read as an image")


def test_damaged_images(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 1000)  # wrong sizes are refused at once
    path = tmp_path / "a.tif"
    write_image(path, rng.integers(0, 255, (6, 5)).astype(np.uint8))
    whole = path.read_bytes()
    refusals = 0
    for i in range(8, len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 0xFF]) + whole[i + 1 :])
        try:
            with warnings.catch_warnings(action="ignore"):
                read_image(Source(path))
        except DataError:
            refusals += 1
    assert refusals > 10


@pytest.mark.parametrize(
    ("kind", "scale", "fine"),
    [(float, 1e300, False), (float, 1e149, True), ("f4", 1e38, False), ("f4", 1e30, True)],
)
@pytest.mark.parametrize("command", ["denoise", "impute", "anomalies", "cluster"])
def test_values_near_the_largest_number(command, kind, scale, fine, run, rng):
    """An error that names the place, or a result: never a column of nan, or notes of NumPy."""
    X = (scale * rng.uniform(0.1, 1.0, (40, 3))).astype(kind)
    X[3, 1] = X[4, 1] if command != "impute" else np.nan
    np.save("t.npy", X)
    new = command in ("denoise", "impute")
    words = ["--noise", "0.2"] if command == "denoise" else []
    ran = run(command, "t.npy", "-o", "out.npy" if new else "out.npz", *words)
    if not fine:
        refused(ran, 1, "huge values, the first in column '0', row 0", "rescale")
        return
    assert (ran.code, ran.err) == (0, "")
    found = np.load("out.npy" if new else "out.npz")
    assert np.isfinite(found if new else found["score" if "score" in found else "cluster"]).all()


def test_results_that_are_not_numbers_are_an_error(run, files, monkeypatch):
    from mercer.estimators import KernelNovelty

    monkeypatch.setattr(KernelNovelty, "score_samples", lambda _, X: np.full(len(X), np.nan))
    refused(run("anomalies", "measured.csv", "-o", "out.csv"), 1, "not finite", "rescale")


@pytest.mark.parametrize(("value", "fine"), [(65_535, True), (65_536, False), (-1, False)])
def test_images_of_32_bits(value, fine, run, tmp_path, rng):
    pixels = rng.integers(0, 65_536, (6, 5)).astype(np.int32)
    pixels[2, 3] = value
    write_image(tmp_path / "a.tif", pixels)
    ran = run("segment", "a.tif", "-o", "out.png", "-q")
    if fine:
        assert (ran.code, ran.err) == (0, "")
    else:
        refused(ran, 1, "values outside 0 to 65,535")


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv.gz", ".xlsx"])
def test_compressed_files_do_not_expand_without_limit(suffix, run, tmp_path):
    X = np.zeros((200_000, 20))
    X[:3] = np.eye(3, 20)
    if suffix == ".npz":
        np.savez_compressed(tmp_path / "t.npz", X=X)
    elif suffix == ".csv.gz":
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 5_000_000))
    elif suffix == ".xlsx":
        with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/worksheets/sheet1.xml", b"0" * 20_000_000)
    else:
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pa.table({f"c{j}": X[:, j] for j in range(20)})
        parquet.write_table(table, tmp_path / "t.parquet")
    words = ["anomalies", f"t{suffix}", "-o", "out.csv"]
    assert (tmp_path / f"t{suffix}").stat().st_size < 100_000
    refused(run(*words, "--max-expansion", "0.01"), 1, "0.0 GB of memory", "--max-expansion 1")
    source = Source(tmp_path)
    check_expansion(source, 900_000_000, 1.0, stored=0)
    with pytest.raises(DataError, match=r"1\.6 GB of memory.*--max-expansion 2"):
        check_expansion(source, 1_600_000_000, 1.0, stored=300_000_000)
    check_expansion(source, 1_600_000_000, 1.0, stored=400_000_000)


def test_damaged_parquet_files_are_errors_of_one_line(run, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"number": np.arange(9.0) ** 2}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole.replace(b"number", b"num\xffer"))
    refused(run("anomalies", "t.parquet", "-o", "out.csv"), 1, "not a Parquet file")
    (tmp_path / "t.parquet").write_bytes(whole[:-20] + b"\xff" * 12 + whole[-8:])
    refused(run("anomalies", "t.parquet", "-o", "out.csv"), 1, "not a Parquet file")


def test_no_damaged_byte_of_a_parquet_file_ends_the_process(tmp_path):
    """pyarrow calls `abort` if the metadata of one column are asked for and are damaged."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"a": np.arange(9.0), "b": np.arange(9.0) ** 2}
    parquet.write_table(pa.table(columns), tmp_path / "whole.parquet")
    code = """
import contextlib, io, random, sys
from pathlib import Path
from mercer.cli import main
whole = Path("whole.parquet").read_bytes()
metadata = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
for i in range(metadata, len(whole), 7):
    for bit in (0, 5):
        data = bytearray(whole)
        data[i] ^= 1 << bit
        Path("bad.parquet").write_bytes(data)
        with contextlib.redirect_stderr(io.StringIO()):
            assert main(["impute", "bad.parquet", "-o", "out.csv", "--force", "-q"]) in (0, 1, 2)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_repeated_text_does_not_expand_without_limit(run, tmp_path):
    """A text is stored once in a Parquet file, however often it occurs; so is a list."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    numbers = np.arange(200.0) ** 2
    for column in (["x" * 100_000] * 200, [[0] * 10_000] * 200):
        parquet.write_table(pa.table({"n": numbers, "c": column}), tmp_path / "t.parquet")
        words = ["anomalies", "t.parquet", "-o", "out.parquet", "-q", "--force"]
        refused(run(*words, "--max-expansion", "0.01"), 1, "GB of memory", "--max-expansion 1")
        assert run(*words).code == 0
        assert parquet.read_table("out.parquet")["c"].to_pylist() == column


def test_many_images_do_not_expand_without_limit(run, tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(20):
        write_image(tmp_path / "in" / f"{i}.png", np.full((500, 500), i, np.uint8))
    refused(run("anomalies", "in", "-o", "out.csv", "--max-expansion", "0.01"), 1, "GB of memory")


def test_files_that_do_not_expand_may_be_large(run, files):
    """The limit is about compression, not about size."""
    np.savez(files["folder"] / "t.npz", X=np.load("complete.npy"))
    ran = run("anomalies", "t.npz", "-o", "out.npz", "-q", "--max-expansion", "0")
    assert (ran.code, ran.err) == (0, "")


def test_control_characters_of_files_do_not_reach_the_terminal(run, files):
    text = (files["folder"] / "measured.csv").read_text()
    (files["folder"] / "t.csv").write_text(text.replace("name,x", "na\x1b[31mme,x\x07\u202e", 1))
    out = [run("denoise", "t.csv", "-o", "out.csv"), run("anomalies", "t.csv", "-o", "a.csv")]
    out.append(run("denoise", "t.csv", "-o", "out.csv", "--columns", "na\x1b[31mme", "--force"))
    for ran in out:
        assert not {"\x1b", "\u202e"} & set(ran.out + ran.err)
        assert "\\x1b[31mme" in ran.out + ran.err


def test_file_names_that_are_not_unicode(run, tmp_path, rng):
    write_images(tmp_path / "in", rng, 20)
    name = os.fsdecode(b"\xff\xfe.png")
    try:
        (tmp_path / "in" / "03.png").rename(tmp_path / "in" / name)
    except OSError:
        pytest.skip("the file system allows Unicode names only")
    ran = run("anomalies", "in", "-o", "out.csv", "--top", "20")
    assert (ran.code, ran.err) == (0, "")
    assert "\\udcff\\udcfe.png" in ran.out
    assert "\\udcff\\udcfe.png" in (tmp_path / "out.csv").read_text()
    assert run("denoise", "in", "-o", "out").code == 0
    assert (tmp_path / "out" / name).exists()
