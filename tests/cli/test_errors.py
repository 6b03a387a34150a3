"""Bad files and bad words: one sentence with the cure, exit code 1 for data and 2 for usage."""

import numpy as np
import pytest

from mercer.cli import _denoise

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
        (["measurd.csv", "-o", "out.csv"], ["there is no measurd.csv", "mean measured.csv?"]),
        (["no/where.csv", "-o", "out.csv"], ["there is no no/where.csv"]),
        (["notes.txt", "-o", "out.txt"], ["no kind that can be read", ".csv", "folder of images"]),
        (["scans/00.png", "-o", "out.png"], ["one image", "give the folder"]),
        (["measured.csv", "-o", "out.npy"], ["must end in .csv or .tsv"]),
        (["measured.csv", "-o", "scans"], ["is a folder; name a file in it"]),
        (["scans", "-o", "notes.txt"], ["is a file", "into a folder"]),
        (["measured.csv", "-o", "no/out.csv"], ["there is no folder no", "make it"]),
        (["measured.csv"], ["Missing option '-o'", "mercer denoise --help"]),
        (["-o", "out.csv"], ["Missing argument 'INPUT'"]),
        ([*TABLE, "--columns", "x,z"], ["no column 'z'", "id, name, x, y"]),
        ([*TABLE, "--kernel", "gauss:1"], ["no kernel 'gauss:1'", "linear"]),
        ([*TABLE, "--kernel", "gaussian"], ["of the form gaussian:LENGTH"]),
        ([*TABLE, "--kernel", "gaussian:-1"], ["length_scale must be > 0"]),
        ([*TABLE, "--kernel", "laplace:x"], ["of the form laplace:LENGTH"]),
        ([*TABLE, "--kernel", "polynomial:2.5"], ["degree"]),
        ([*TABLE, "--noise", "-1"], ["--noise -1", "at least 0"]),
        ([*TABLE, "--noise", "nan"], ["--noise nan"]),
        ([*TABLE, "--noise", "much"], ["'much' is not a valid float"]),
        ([*TABLE, "--components", "0"], ["--components 0", "share"]),
        ([*TABLE, "--components", "1.5"], ["between 0 and 1"]),
        ([*TABLE, "--components", "500"], ["too many for 120 rows"]),
        ([*TABLE, "--solver", "magic"], ["'magic'", "fixed-point"]),
        ([*TABLE, "--seed", "-1"], ["--seed -1"]),
        ([*TABLE, "--train", "scans"], ["of the same kind"]),
        (["scans", "-o", "out", "--columns", "x"], ["--columns and --skip are for tables"]),
        (["pair.npz", "-o", "out.npz"], ["several arrays (X, y)", "--array NAME"]),
        (["pair.npz", "-o", "out.npz", "--array", "Z"], ["no array 'Z'", "X, y"]),
    ],
)  # fmt: skip
def test_usage(words, parts, run, files):
    folder = files["folder"]
    (folder / "notes.txt").touch()
    np.savez(folder / "pair.npz", X=np.eye(3), y=np.arange(3))
    refused(run("denoise", *words), 2, *parts)
    assert not (folder / "out.csv").exists()


TABLES = {
    "empty": ("", "is empty"),
    "blank": ("\n\n", "is empty"),
    "names only": ("a,b\n", "names and no rows"),
    "no numbers": ("a,b\nx,y\nz,w\nu,v\n", "no column of numbers: a (text), b (text)"),
    "ragged": ("a,b\n1,2\n3\n4,5\n", "line 3 of t.csv has 1 cell and the first line 2"),
    "cut off": ('a,b\n1,2\n3,"4\n', "is not a table: line"),
    "numbers for names": ("1.5,2.5\n1,2\n3,4\n6,6\n", "--no-header"),
    "missing": ("a,b\n1,2\n3,\n5,7\n9,9\n", "1 missing value, the first in column 'b', line 3"),
    "infinite": ("a,b\n1,2\n3,inf\n5,7\n9,9\n", "(column 'b', line 3) is infinite"),
    "equal rows": ("a,b\n1,2\n1,2\n1,2\n", "all rows of t.csv are equal"),
    "two rows": ("a,b\n1,2\n3,7\n", "has 2 rows, and at least 3 are needed"),
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
    refused(ran, 1, "column 'x' of t.csv", "1 of 120 cells", "'0,5' in line 6", "decimal commas")
    ran = run("denoise", "t.csv", "-o", "out.csv")
    assert ran.code == 0
    assert "x (1 of 120 cells is no number, the first is '0,5' in line 6" in ran.out


def test_text_that_is_not_utf8(run, tmp_path):
    (tmp_path / "t.csv").write_bytes("größe,b\n1,2\n".encode("latin-1"))
    refused(run("denoise", "t.csv", "-o", "out.csv"), 1, "UTF-8")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npy", "t.npz"])
def test_files_that_are_not_what_they_are_called(name, run, tmp_path, rng):
    (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\n" + rng.bytes(2000))
    refused(run("denoise", name, "-o", "out" + name[1:]), 1, name)


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
    refused(run("denoise", "in", "-o", "out"), 1, "holds no images")
    (folder / "a.png").write_bytes(b"no image")
    refused(run("denoise", "in", "-o", "out"), 1, "a.png is not an image", "take it out")


def test_training_images_must_be_alike(run, tmp_path, rng):
    write_images(tmp_path / "in", rng, 3)
    write_images(tmp_path / "big", rng, 5, shape=(7, 5))
    ran = run("denoise", "in", "-o", "out", "--train", "big")
    refused(ran, 1, "5 x 6 pixels", "5 x 7 pixels", "alike")


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
        (["--share", "0"], "--share 0"),
        (["--top", "-1"], "--top -1"),
        (["--share", "x"], "at most 0.5, or auto"),
    ],
)
def test_anomalies_usage(words, part, run, files):
    refused(run("anomalies", "measured.csv", "-o", "out.csv", *words), 2, part)
    refused(run("anomalies", "complete.npy", "-o", "out.npy"), 2, ".csv or .npz")
    refused(run("anomalies", "scans", "-o", "out"), 2, "must end in .csv")


def broken(*_):
    raise ZeroDivisionError("a defect")


def test_defects_have_no_traceback_unless_asked_for(run, files, monkeypatch):
    monkeypatch.setattr(_denoise, "check_complete", broken)
    words = ["denoise", "measured.csv", "-o", "out.csv"]
    refused(run(*words), 1, "unexpected ZeroDivisionError: a defect; --debug shows where")
    ran = run(*words, "--debug")
    assert ran.code == 1
    assert "Traceback" in ran.err
    assert "in broken" in ran.err


def test_memory(run, files, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(_denoise, "check_complete", full)
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
