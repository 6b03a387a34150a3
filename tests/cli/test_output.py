"""Inputs stay what they are, and outputs are whole or not there."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.cli import _arrays, _csv, _images


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
    assert ran.err.strip() == "mercer: stopped; nothing was written"
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_interrupt_from_the_keyboard(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "mercer.cli", "denoise", "pipe.csv", "-o", "out.csv"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with pipe.open("wb"):  # waits until the command reads, and keeps it waiting
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip() == "mercer: stopped; nothing was written"
    assert [p.name for p in tmp_path.iterdir()] == ["pipe.csv"]


def test_permissions_are_those_of_new_files(run, files):
    run("denoise", "measured.csv", "-o", "clean.csv")
    Path("plain").touch()
    assert Path("clean.csv").stat().st_mode == Path("plain").stat().st_mode
