"""The functions of the demonstration, on a few digits."""

import importlib.util
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

FILE = Path(__file__).resolve().parent.parent / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["demo"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["demo"]


def errors(results):
    return {(c.group, c.name): outcome.error for c, outcome in results.items()}


def test_the_best_setting_is_kept(demo):
    one = demo.Contender("tuned", "shift", [lambda x, s=s: x + s for s in (3.0, -1.0, 2.0)])
    outcome = demo.compare([one], lambda found: abs(float(found)), 0.0)[one]
    assert (outcome.error, outcome.found) == (1.0, -1.0)


def test_noise_is_what_was_asked_for_and_ours_removes_it(demo):
    panel, results = demo.denoising(0.3, 0, train=80, test=100)
    found = errors(results)
    assert found["before", "noisy"] == pytest.approx(1e4 * 0.09, rel=0.05)
    assert found["mercer", "KernelDenoiser"] < 0.6 * found["before", "noisy"]
    assert panel[0][2].shape == panel[-1][2].shape == (6, 64)
    assert panel[-1][1] == "KernelDenoiser, mercer"


def test_only_missing_pixels_are_judged(demo, monkeypatch):
    few = [c for c in demo.IMPUTERS if c.name in ("column means", "KernelImputer")]
    monkeypatch.setattr(demo, "IMPUTERS", few)
    panel, results = demo.missing_pixels(0, count=150)
    found = errors(results)
    assert found["mercer", "KernelImputer"] < found["before", "column means"]
    assert 0.4 < np.isnan(panel[1][2]).mean() < 0.6


def test_no_alarm_misjudges_half(demo, monkeypatch):
    few = [c for c in demo.DETECTORS if c.group in ("before", "mercer")]
    monkeypatch.setattr(demo, "DETECTORS", few)
    found = errors(demo.novelties(0, outliers=50)[1])
    assert found["before", "no alarm"] == 50.0
    assert found["mercer", "KernelNovelty"] < 15.0


def test_a_row_names_the_best_of_each_group(demo):
    contenders = [
        demo.Contender(group, name, [])
        for group, name in (
            ("before", "no"), ("mercer", "ours"), ("untuned", "a"), ("untuned", "b"), ("tuned", "c")
        )
    ]  # fmt: skip
    runs = [
        {
            c: demo.Outcome(e + s, 0.0, None)
            for c, e in zip(contenders, (9, 2, 5, 4, 1), strict=True)
        }
        for s in (-0.5, 0.5)
    ]
    assert " ".join(demo.row("task", runs, 1).split()) == "task 9.0 2.0 ± 0.5 4.0 b 1.0 c"


def test_the_whole_of_it_on_few_digits(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SEEDS", 1)
    few = {
        "noise": (partial(demo.denoising, 0.5, train=120, test=80), 0),
        "the same": (partial(demo.denoising, 0.5, train=100, test=80), 0),
        "more": (partial(demo.denoising, 0.25, train=120, test=80), 0),
    }
    monkeypatch.setattr(demo, "TASKS", few)
    demo.main()
    printed = capsys.readouterr().out
    assert all(title in printed for title in few)
    assert "10 of 10 pre-images are\nproved to be minima" in printed
    assert (tmp_path / demo.OUTPUT).stat().st_size > 1000
