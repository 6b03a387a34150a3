"""Standard input and standard output."""

import gzip
import io
import os
import shlex
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from .test_tables import rows_of


@pytest.fixture
def pipe(capfdbinary, tmp_path, monkeypatch):
    """Run a command with bytes on its standard input."""
    from mercer.cli import main

    monkeypatch.chdir(tmp_path)

    def words(data, *args):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = main([str(arg) for arg in args])
        out, err = capfdbinary.readouterr()
        return code, out, err.decode()

    return words


COMMANDS = {
    "denoise": ("measured.csv", ["--noise", "0.2"]),
    "impute": ("gaps.csv", []),
    "anomalies": ("measured.csv", []),
    "cluster": ("measured.csv", []),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_pipes_do_what_files_do(command, pipe, files):
    name, options = COMMANDS[command]
    code, out, err = pipe(b"", command, name, "-o", "out.csv", *options)
    assert (code, err) == (0, "")
    data, expected = (
        (files["folder"] / name).read_bytes(),
        (files["folder"] / "out.csv").read_bytes(),
    )
    summary = out.decode().replace("written", "")
    for words in ([], ["-o", "-"]):
        code, out, err = pipe(data, command, "-", *words, *options)
        assert (code, out) == (0, expected)
        assert err.split()[:2] == summary.split()[:2]  # all that is said goes to standard error
    code, out, err = pipe(data, command, "-", "-q", *options)
    assert (code, out, err) == (0, expected, "")
    code, out, _ = pipe(b"", command, name, "-o", "-", *options)
    assert (code, out) == (0, expected)


def test_errors_leave_standard_output_empty(pipe, files):
    code, out, err = pipe(b"a,b\nx,y\n", "impute", "-")
    assert (code, out) == (1, b"")
    assert err == "mercer: standard input has no column of numbers: a (text), b (text)\n"
    assert pipe(b"", "impute", "-")[2] == "mercer: standard input is empty\n"
    code, out, err = pipe(b"a,b\n1,\n2,3\n5,6\n", "denoise", "-")
    assert "fill them first: mercer impute - -o" in err


def test_training_rows_or_new_rows_from_a_pipe(pipe, files):
    folder = files["folder"]
    pipe(b"", "denoise", "new.csv", "-o", "out.csv", "--train", "measured.csv", "--noise", "0.2")
    expected = (folder / "out.csv").read_bytes()
    data = {name: (folder / name).read_bytes() for name in ("measured.csv", "new.csv")}
    words = ["--noise", "0.2", "-q"]
    _, out, _ = pipe(data["new.csv"], "denoise", "-", "--train", "measured.csv", *words)
    assert out == expected
    _, out, _ = pipe(data["measured.csv"], "denoise", "new.csv", "-o", "-", "--train", "-", *words)
    assert out == expected
    code, _, err = pipe(data["new.csv"], "denoise", "-", "--train", "-")
    assert code == 2
    assert "both be standard input" in err


def test_formats_are_recognised_on_the_way_in_and_chosen_on_the_way_out(pipe, files):
    folder = files["folder"]
    parquet = pytest.importorskip("pyarrow.parquet")
    data = (folder / "measured.csv").read_bytes()
    code, out, _ = pipe(data, "denoise", "-", "--format", "parquet")
    assert code == 0
    table = parquet.read_table(io.BytesIO(out))
    assert table.column_names == ["id", "name", "x", "y"]
    for packed in (out, gzip.compress(data)):
        code, text, err = pipe(packed, "denoise", "-", "--noise", "0")
        assert code == 0, err
        assert text.startswith(b"id,name,x,y\n1,")
    code, out, _ = pipe((folder / "gaps.npy").read_bytes(), "impute", "-", "--format", "npy")
    assert code == 0
    assert np.isfinite(np.load(io.BytesIO(out))).all()
    archive = io.BytesIO()
    np.savez(archive, X=np.load(folder / "complete.npy"))
    code, out, _ = pipe(archive.getvalue(), "anomalies", "-", "--format", "npz")
    assert code == 0
    assert sorted(np.load(io.BytesIO(out)).files) == ["X", "is_anomaly", "score"]
    code, out, err = pipe((folder / "gaps.npy").read_bytes(), "impute", "-")
    assert (code, out) == (2, b"")
    assert "standard output as csv; choose --format for .npy" in err


def test_results_for_images_can_be_piped_but_not_images(pipe, files):
    code, out, _ = pipe(b"", "anomalies", "scans", "-o", "-", "-q")
    assert (code, out.splitlines()[0]) == (0, b"file,score,is_anomaly")
    code, out, err = pipe(b"", "denoise", "scans", "-o", "-")
    assert (code, out) == (2, b"")
    assert "into a folder" in err


def test_segment_in_a_pipe(pipe, files):
    data = (files["folder"] / "photo.png").read_bytes()
    code, out, err = pipe(data, "segment", "-")
    assert code == 0, err
    assert err.startswith("segmented  24 x 20 pixels")
    with Image.open(io.BytesIO(out)) as image:
        assert (image.format, image.size) == ("PNG", (24, 20))
    pipe(b"", "segment", "photo.png", "-o", "out.png")
    assert (files["folder"] / "out.png").read_bytes() == out
    assert pipe(b"no image", "segment", "-")[0] == 1


def test_minus_is_standard_input_even_if_there_is_such_a_file(pipe, files):
    (files["folder"] / "-").write_bytes((files["folder"] / "measured.csv").read_bytes())
    code, out, _ = pipe(b"a\n1\n2\n5\n", "denoise", "-", "-q")
    assert (code, out) == (0, b"a\n1\n2\n5\n")


needs_shell = pytest.mark.skipif(os.name != "posix", reason="needs a shell")


def shell(line, folder):
    python = f"{shlex.quote(sys.executable)} -m mercer.cli"
    line = line.replace("mercer ", f"{python} ")
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], cwd=folder, capture_output=True, timeout=120,
        check=False,
    )  # fmt: skip


@needs_shell
def test_commands_in_a_row(files):
    line = "cat gaps.csv | mercer impute - | mercer denoise - --noise 0.2 -q | mercer anomalies -"
    ran = shell(line, files["folder"])
    assert ran.returncode == 0
    assert ran.stdout.startswith(b"id,name,x,y,score,is_anomaly\n")
    assert ran.stdout.count(b"\n") == 121
    assert b"filled      13 values" in ran.stderr


@needs_shell
@pytest.mark.parametrize("output", ["-o -", "-o out.csv"])
def test_a_reader_that_leaves_is_no_error(output, files):
    rows = rows_of(files["folder"] / "measured.csv")
    with (files["folder"] / "long.csv").open("w") as file:
        file.write("id,name,x,y\n" + "\n".join("7," + "n" * 5000 + ",1.5,2.5" for _ in rows[1:]))
        file.write("\n7,m,1,2\n")
    ran = shell(f"mercer impute long.csv {output} | head -c 1 >/dev/null", files["folder"])
    if output == "-o -":
        assert (ran.returncode, ran.stderr) == (1, b"")
    assert b"Traceback" not in ran.stderr
    assert b"Exception ignored" not in ran.stderr


@needs_shell
def test_process_substitution(files):
    ran = shell("mercer denoise <(cat measured.csv) -o out.csv --noise 0", files["folder"])
    assert ran.returncode == 0, ran.stderr
    assert rows_of(files["folder"] / "out.csv") == rows_of(files["folder"] / "measured.csv")
