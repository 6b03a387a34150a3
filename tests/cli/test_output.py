"""Inputs stay what they are, and outputs are whole or not there."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from mercer.cli import _app, _arrays, _csv, _images
from mercer.cli._files import Output


def untouched(folder, names):
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize(
    "spelling", ["measured.csv", "./measured.csv", "sub/../measured.csv", "link.csv", "hard.csv"]
)
def test_output_is_never_the_input(spelling, force, run, files):
    folder = files["folder"]
    (folder / "sub").mkdir()
    (folder / "link.csv").symlink_to("measured.csv")
    (folder / "hard.csv").hardlink_to(folder / "measured.csv")
    before = untouched(folder, ["measured.csv"])
    ran = run("denoise", "measured.csv", "-o", spelling, *force)
    assert ran.code == 2
    assert "never overwritten" in ran.err
    assert untouched(folder, before) == before


def test_output_is_never_the_input_under_an_absolute_path_or_through_a_link(run, files):
    folder = files["folder"]
    (folder / "link.csv").symlink_to(folder / "measured.csv")
    for source, output in [("measured.csv", folder / "measured.csv"), ("link.csv", "measured.csv")]:
        assert run("denoise", source, "-o", output, "--force").code == 2


def test_output_is_never_the_training_file(run, files):
    ran = run("denoise", "new.csv", "-o", "measured.csv", "--train", "measured.csv", "--force")
    assert ran.code == 2
    assert "never overwritten" in ran.err


@pytest.mark.parametrize("output", ["scans", "scans/", "./scans/../scans", "link"])
def test_folder_is_never_written_into_itself(output, run, files):
    folder = files["folder"]
    (folder / "link").symlink_to("scans")
    names = [f"scans/{p.name}" for p in (folder / "scans").iterdir()]
    before = untouched(folder, names)
    assert run("denoise", "scans", "-o", output, "--force").code == 2
    assert untouched(folder, names) == before


def test_folders_that_cannot_be_written_are_refused_before_any_work(run, files, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    ran = run("denoise", "measured.csv", "-o", "clean.csv")
    assert ran.code == 2
    assert "not writable" in ran.err


def test_existing_output_needs_force(run, files):
    output = files["folder"] / "clean.csv"
    output.write_text("precious")
    ran = run("denoise", "measured.csv", "-o", "clean.csv")
    assert ran.code == 2
    assert "--force" in ran.err
    assert output.read_text() == "precious"
    assert run("denoise", "measured.csv", "-o", "clean.csv", "--force").code == 0
    assert output.read_text().startswith("id,name,x,y\n")


def test_links_are_replaced_not_followed(run, files):
    folder = files["folder"]
    (folder / "precious.csv").write_text("precious")
    (folder / "clean.csv").symlink_to("precious.csv")
    assert run("denoise", "measured.csv", "-o", "clean.csv").code == 2
    assert run("denoise", "measured.csv", "-o", "clean.csv", "--force").code == 0
    assert (folder / "precious.csv").read_text() == "precious"
    assert not (folder / "clean.csv").is_symlink()


def test_dangling_links_count_as_existing(run, files):
    (files["folder"] / "clean.csv").symlink_to("nowhere.csv")
    assert run("denoise", "measured.csv", "-o", "clean.csv").code == 2


def test_existing_folder_keeps_its_other_files(run, files):
    folder = files["folder"] / "out"
    folder.mkdir()
    (folder / "notes.txt").write_text("precious")
    assert run("denoise", "scans", "-o", "out").code == 2
    assert run("denoise", "scans", "-o", "out", "--force").code == 0
    assert (folder / "notes.txt").read_text() == "precious"
    assert len(list(folder.glob("*.png"))) == 30


def test_images_linked_from_the_output_folder_stay(run, files):
    folder = files["folder"]
    (folder / "out").mkdir()
    (folder / "out" / "00.png").symlink_to(folder / "scans" / "00.png")
    (folder / "out" / "01.png").hardlink_to(folder / "scans" / "01.png")
    names = ["scans/00.png", "scans/01.png"]
    before = untouched(folder, names)
    assert run("denoise", "scans", "-o", "out", "--force").code == 0
    assert untouched(folder, names) == before


def test_empty_folder_may_be_filled(run, files):
    (files["folder"] / "out").mkdir()
    assert run("denoise", "scans", "-o", "out").code == 0


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("source", "output", "module", "name"),
    [
        ("measured.csv", "clean.csv", _csv.csv, "writer"),
        ("complete.npy", "clean.npy", _arrays.np, "save"),
        ("scans", "out", _images.np, "rint"),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_interrupted_writing_leaves_nothing_behind(
    source, output, module, name, exists, run, files, monkeypatch
):
    folder = files["folder"]
    if exists:
        (folder / output).write_text("old") if "." in output else (folder / output).mkdir()
    before = names_in(folder)
    monkeypatch.setattr(module, name, interrupted)
    ran = run("denoise", source, "-o", output, "--force")
    assert ran.code == 130
    assert ran.err.strip() == "mercer: interrupted; nothing was written"
    assert names_in(folder) == before
    if exists and "." in output:
        assert (folder / output).read_text() == "old"


def test_full_disk_leaves_nothing_behind(run, files, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "clean.npy")

    monkeypatch.setattr(np, "save", full)
    before = names_in(files["folder"])
    ran = run("denoise", "complete.npy", "-o", "clean.npy")
    assert ran.code == 1
    assert ran.err == "mercer: clean.npy: No space left on device\n"
    assert names_in(files["folder"]) == before


def _opened(pipe):
    """The writing end of a pipe, or None if nobody reads it."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_interrupt_from_the_keyboard(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "mercer.cli", "denoise", "pipe.csv", "-o", "out.csv"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while (writer := _opened(pipe)) is None:  # until the command reads; it then waits for data
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode == 130
    assert err.strip() == "mercer: interrupted; nothing was written"
    assert [p.name for p in tmp_path.iterdir()] == ["pipe.csv"]


@pytest.mark.parametrize(
    ("number", "source", "output"),
    [(signal.SIGTERM, "complete.npy", "out.npy"), (signal.SIGHUP, "scans", "out")],
)
def test_signals_leave_nothing_behind(number, source, output, files):
    before = names_in(files["folder"])
    module, function = ("arrays", "save") if source.endswith("npy") else ("images", "rint")
    code = f"""import os, signal, sys
from mercer.cli import _{module}, main
signal.signal({int(number)}, signal.SIG_DFL)  # the tests may run under nohup
_{module}.np.{function} = lambda *_: os.kill(os.getpid(), {int(number)})
sys.exit(main(["denoise", "{source}", "-o", "{output}"]))"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=files["folder"], check=False)
    assert ran.returncode == 128 + number
    assert names_in(files["folder"]) == before


def test_a_command_under_nohup_outlives_its_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _app._signals_as_exits():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_permissions_are_those_of_new_files(run, files):
    run("denoise", "measured.csv", "-o", "clean.csv")
    run("denoise", "scans", "-o", "restored")
    Path("plain").touch()
    Path("folder").mkdir()
    assert Path("clean.csv").stat().st_mode == Path("plain").stat().st_mode
    assert Path("restored/00.png").stat().st_mode == Path("plain").stat().st_mode
    assert Path("restored").stat().st_mode == Path("folder").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_replaced_files_keep_their_permissions(mode, run, files):
    Path("out").mkdir()
    for words in (["measured.csv", "-o", "clean.csv"], ["complete.npy", "-o", "clean.npy"]):
        Path(words[-1]).touch()
        Path(words[-1]).chmod(mode)
        assert run("denoise", *words, "--force").code == 0
        assert stat.S_IMODE(Path(words[-1]).stat().st_mode) == mode
    Path("out/03.png").touch()
    Path("out/03.png").chmod(mode)
    assert run("denoise", "scans", "-o", "out", "--force").code == 0
    assert stat.S_IMODE(Path("out/03.png").stat().st_mode) == mode


def created_meanwhile(monkeypatch, path, text):
    """Have another process create a file while the command writes its temporary one."""
    publish = Output._publish

    def late(self, temporary):
        path.write_text(text)
        publish(self, temporary)

    monkeypatch.setattr(Output, "_publish", late)


@pytest.mark.parametrize("links", [True, False])
def test_an_output_that_appears_meanwhile_is_kept_without_force(links, run, files, monkeypatch):
    if not links:  # as on file systems without hard links

        def refuse(*_):
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
    assert run("denoise", "measured.csv", "-o", "plain.csv").code == 0
    created_meanwhile(monkeypatch, files["folder"] / "clean.csv", "precious")
    ran = run("denoise", "measured.csv", "-o", "clean.csv")
    assert ran.code == 2
    assert "clean.csv exists" in ran.err
    assert Path("clean.csv").read_text() == "precious"
    assert run("denoise", "measured.csv", "-o", "clean.csv", "--force").code == 0
    assert Path("clean.csv").read_text() == Path("plain.csv").read_text()


@pytest.mark.parametrize(
    ("words", "suffix"),
    [
        (["denoise", "t.parquet", "-o", "out.parquet"], ".parquet"),
        (["segment", "photo.png", "-o", "out.png"], ".png"),
        (["cluster", "complete.npy", "-o", "out.csv", "--plot", "p.png"], ".png"),
    ],
)
def test_temporary_names_cannot_be_guessed(words, suffix, run, files, monkeypatch):
    """Links that wait under names made of the output's name and the process id are not followed."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    X = np.load("complete.npy")
    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), "t.parquet")
    Path("victim").write_text("precious")
    for stem in ("out", "p"):
        Path(f".{stem}.{os.getpid()}.part{suffix}").symlink_to("victim")
    seen = []
    make = tempfile.mkstemp
    monkeypatch.setattr(tempfile, "mkstemp", lambda *a: seen.append(make(*a)) or seen[-1])
    assert run(*words).code == 0
    assert Path("victim").read_text() == "precious"
    assert len({name for _, name in seen}) == len(seen) > 0
    assert not any(Path(name).exists() for _, name in seen)
