"""The command `mercer explore`: reading, errors, and Ctrl-C."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

import mercer.explore
from mercer.cli import _explore
from mercer.exceptions import InputError
from mercer.explore._views import Views


@pytest.fixture
def served(run, files, monkeypatch):
    """What the command serves: a table, and a reader of second files."""

    def words(*args):
        found = []
        monkeypatch.setattr(mercer.explore, "serve", lambda *given, **_: found.append(given))
        assert run("explore", *args, "--no-browser").code == 0
        return found[0]

    return words


def test_a_table_is_read_like_by_other_commands(served):
    table, _ = served("measured.csv")
    assert (table.name, table.columns, table.values.shape) == ("measured.csv", ("x", "y"), (120, 2))
    assert table.left_out == {"id": "row numbers", "name": "text"}


def test_options_choose_columns(served):
    table, _ = served("measured.csv", "--include", "id", "--skip", "y")
    assert table.columns == ("id", "x")


def test_missing_values_are_kept_for_the_page_to_count(served):
    assert served("gaps.csv")[0].columns == ("x", "y")
    assert served("gaps.npy")[0].columns == ("0", "1", "2", "3")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".tsv.gz", ".xlsx"])
def test_second_files_of_every_kind(suffix, served, run):
    name = f"second{suffix}"
    if suffix == ".xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in (("y", "x"), (1.0, 2.0), (3.0, 4.0), (5.0, 7.0)):
            book.active.append(row)
        book.save(name)
    else:
        Path("plain.csv").write_text("y,x,more\n1,2,a\n3,4,b\n5,7,c\n")
        assert run("denoise", "plain.csv", "-o", name, "--noise", "0").code == 0
    _, read = served("measured.csv")
    found = read(name, Path(name).read_bytes())
    assert (found.name, found.columns) == (name, ("x", "y"))
    assert found.values == pytest.approx(np.array([[2.0, 1.0], [4.0, 3.0], [7.0, 5.0]]))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("b.csv", b"x,z\n1,2\n3,4\n5,6\n", "b.csv has no column 'y', which measured.csv has"),
        ("b.csv", b"x,y\n1,2\n", "b.csv has 1 row; at least 3 needed"),
        ("b.csv", b"", "b.csv is empty"),
        ("../../b.csv", b"x,y\n1\n", "line 2 of b.csv has 1 cell"),
        ("b.pdf", b"%PDF", "cannot read b.pdf; give .csv"),
        ("b.png", b"", "b.png is one image"),
        ("b.npy", b"damaged", "b.npy cannot be read as NumPy arrays"),
        ("b.xlsx", b"PK damaged", "b.xlsx is not an Excel workbook"),
        ("/", b"\x00\x01", "is not a text table"),
        ("scans", b"x,y\n1,2\n", "at least 3 needed"),  # a folder of this name exists
        ("n" * 400 + ".csv", b"x,y\n1,2\n", "at least 3 needed"),
        ("b\0.csv", b"x,y\n1,2\n", "at least 3 needed"),
    ],
    ids=range(12),
)
def test_second_files_that_cannot_be_used(name, content, words, served, files):
    _, read = served("measured.csv")
    with pytest.raises(InputError) as error:
        read(name, content)
    assert words in str(error.value)
    assert str(files["folder"]) not in str(error.value)


def test_the_p_value_is_that_of_the_test_command(served, run):
    told = json.loads(run("test", "two-sample", "measured.csv", "new.csv", "--json").out)
    table, read = served("measured.csv")
    views = Views(table, read)
    views.load("new.csv", Path("new.csv").read_bytes())
    found = views.test({"columns": [0, 1]})
    assert (found["pvalue"], found["statistic"]) == (told["pvalue"], told["statistic"])


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["no.csv"], 2, "no.csv does not exist"),
        (["scans"], 2, "scans is a folder; give a table or an array"),
        (["photo.png"], 2, "photo.png is one image"),
        (["measured.csv", "--port", "70000"], 2, "70000 is not in the range"),
        (["measured.csv", "--columns", "z"], 2, "no column 'z'"),
        (["short.csv"], 1, "at least 3 needed"),
    ],
)
def test_errors_are_one_sentence(words, code, sentence, run, files):
    (files["folder"] / "short.csv").write_text("x,y\n1,2\n3,5\n")
    ran = run("explore", *words, "--no-browser")
    assert (ran.code, len(ran.err.splitlines())) == (code, 1)
    assert sentence in ran.err


def test_a_port_that_is_taken(run, files):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = run("explore", "measured.csv", "--no-browser", "--port", taken.getsockname()[1])
    assert (ran.code, "choose another" in ran.err) == (2, True)


def test_help_has_the_examples(run):
    ran = run("explore", "--help")
    assert (ran.code, ran.err) == (0, "")
    for what, line in _explore.EXAMPLES:
        assert f"# {what}\n    {line}\n" in ran.out


def test_a_browser_is_opened(files, run, monkeypatch):
    opened = []
    monkeypatch.setattr(_explore.webbrowser, "open", opened.append)

    def interrupted(*_, **__):
        time.sleep(0.2)
        raise KeyboardInterrupt

    monkeypatch.setattr("mercer.explore._server.Server.serve_forever", interrupted)
    ran = run("explore", "measured.csv")
    assert (ran.code, ran.out) == (0, f"{opened[0]}\nCtrl-C stops it\n")
    assert opened[0].startswith("http://127.0.0.1:")


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to all processes")
def test_ctrl_c_ends_it_while_it_computes(files):
    process = subprocess.Popen(
        [sys.executable, "-m", "mercer.cli", "explore", "measured.csv", "--no-browser"],
        cwd=files["folder"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    address = urlsplit(process.stdout.readline().strip())
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    try:
        assert process.stdout.readline() == "Ctrl-C stops it\n"
        rows = "\n".join(["x,y", *(f"{i * 37 % 101},{i * 53 % 97}" for i in range(900))])
        for question, body in (("load?name=b.csv", rows), ("test", '{"columns": [0, 1]}')):
            connection.request("POST", address.path + question, body)
            if question != "test":
                assert connection.getresponse().status == 200
                connection.close()  # the next request opens it again
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
        assert time.monotonic() - start < 10.0  # a busy machine; else half a second
    finally:
        connection.close()
        process.kill()
        process.communicate()
