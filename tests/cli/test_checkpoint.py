"""`--checkpoint`: an interrupted command continues, and writes the same output."""

from itertools import count

import numpy as np
import pytest

import mercer as mc
from mercer import _checkpoint
from mercer._progress import watched
from mercer.cli import _large
from tests.cli.conftest import write_circle

COMMANDS = {
    "cluster": ("cluster", "a.csv", "-o", "out.csv", "--bandwidth", "0.3"),
    "fit": ("fit", "a.csv", "-o", "out.mercer", "--target", "kind", "--loss", "hinge"),
    "test": ("test", "two-sample", "a.npy", "b.npy", "--permutations", "20"),
}


def watch_and_stop(seen, at=None):
    def watch(step):
        seen.append(step)
        if len(seen) == at:
            raise RuntimeError("broken off")

    return watch


@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupted_command_continues(name, run, tmp_path, monkeypatch, rng):
    write_circle(tmp_path / "a.csv", rng, 400)
    lines = (tmp_path / "a.csv").read_text().splitlines()
    kinds = ["kind", *("ab"[i] for i in rng.integers(0, 2, 400))]
    table = [f"{line},{kind}" for line, kind in zip(lines, kinds, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(table) + "\n")
    for file in ("a.npy", "b.npy"):
        np.save(tmp_path / file, rng.normal(size=(600, 2)))
    monkeypatch.setattr(_checkpoint, "monotonic", count(0.0, 100.0).__next__)  # states are due
    monkeypatch.setattr(_large, "memory", lambda: 1000 if name == "test" else 10**12)
    whole, rest = [], []
    with watched(watch_and_stop(whole)), mc.options(working_memory=0.01):
        expected = run(*COMMANDS[name])
    assert expected.code == 0
    written = {path.name: path.read_bytes() for path in tmp_path.glob("out.*")}
    for path in tmp_path.glob("out.*"):
        path.unlink()
    with watched(watch_and_stop([], len(whole) // 2)), mc.options(working_memory=0.01):
        assert run(*COMMANDS[name], "--checkpoint", "state").code != 0
    assert (tmp_path / "state").exists()
    assert not list(tmp_path.glob("out.*"))
    with watched(watch_and_stop(rest)), mc.options(working_memory=0.01):
        found = run(*COMMANDS[name], "--checkpoint", "state")
    assert found.code == 0
    assert len(rest) < len(whole)
    assert not (tmp_path / "state").exists()
    if name == "test":
        assert found.out == expected.out
    for file, content in written.items():
        assert (tmp_path / file).read_bytes() == content
