"""Steps, those who watch them, and the bar on stderr."""

import io
import re
import sys
import time

import numpy as np
import pytest

import mercer as mc
from mercer import _progress, linalg
from mercer._progress import is_watched, progress_bar, report, tracked, watched

X = np.random.default_rng(0).normal(size=(60, 2))


class Terminal(io.StringIO):
    def isatty(self):
        return True


kinds = pytest.mark.parametrize("kind", [Terminal, io.StringIO])


def stand_in(monkeypatch, kind):
    """Replace stderr, and let the bar be drawn often."""
    stream = kind()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(_progress, "_OFTEN", 0.005)
    monkeypatch.setattr(_progress, "_SELDOM", 0.005)
    return stream


def until(stream, text):
    """Wait until the bar shows a text."""
    end = time.monotonic() + 20.0
    while text not in stream.getvalue():
        assert time.monotonic() < end, stream.getvalue()
        time.sleep(0.002)


def test_steps_go_to_the_callback_and_to_all_who_watch():
    outer, inner, own = [], [], []
    with watched(outer.append), watched(inner.append):
        assert is_watched()
        linalg.eigenpairs(mc.Gaussian(1.0), X, 3, method="krylov", callback=own.append)
    assert own == inner == outer
    assert {step.task for step in own} == {"eigenvectors"}
    assert not is_watched()


@pytest.mark.parametrize("answer", [True, np.True_, 1])
def test_one_who_watches_can_stop(answer):
    with watched(lambda step: answer):
        found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(0.3), X))
    assert mc.Status.STOPPED in found.status


def test_loops_of_known_length():
    steps = []
    with watched(steps.append):
        assert list(tracked("abc", "letters")) == ["a", "b", "c"]
    assert [(s.n_iter, s.total, s.task) for s in steps] == [(i, 3, "letters") for i in range(4)]
    assert [s.residual for s in steps] == pytest.approx([1, 2 / 3, 1 / 3, 0])


@kinds
def test_the_bar_shows_loops_steps_and_time(monkeypatch, kind):
    stream = stand_in(monkeypatch, kind)
    with progress_bar("work"):
        until(stream, "work: ")
        for i in tracked(range(4), "rounds"):
            report("ascent", 7, 1e-3)
            until(stream, f"{i}/4: ascent")
    text = stream.getvalue()
    assert re.search(r"work: \d\.\d s", text)
    assert "work: rounds [##########..........] 2/4: ascent 7, residual 1e-03: 0." in text
    assert re.fullmatch(r"work: \d\.\d s *", text.splitlines()[-1])


@kinds
def test_a_bar_that_is_not_kept_leaves_a_blank_line(monkeypatch, kind):
    stream = stand_in(monkeypatch, kind)
    with progress_bar("work", keep=False):
        until(stream, "work: ")
    assert not stream.isatty() or stream.getvalue().split("\r")[-2].strip() == ""


@kinds
def test_a_bar_in_a_bar_shows_its_steps_there(monkeypatch, kind):
    stream = stand_in(monkeypatch, kind)
    with progress_bar("outer"), progress_bar("inner"):
        report("ascent", 3, 0.5)
        until(stream, "outer: ascent 3")
    assert "inner" not in stream.getvalue()


@kinds
def test_errors_pass_and_end_the_bar(monkeypatch, kind):
    stream = stand_in(monkeypatch, kind)
    with pytest.raises(ZeroDivisionError), progress_bar("work"):
        _ = 1 / 0
    assert not is_watched()
    before = stream.getvalue()
    time.sleep(0.03)
    assert stream.getvalue() == before


@pytest.mark.parametrize("how", ["none", "closed"])
def test_without_stderr(monkeypatch, how):
    stream = None if how == "none" else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(_progress, "_SELDOM", 0.005)
    with progress_bar("work"):
        if stream is not None:
            stream.close()
        time.sleep(0.03)
