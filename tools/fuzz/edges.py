"""What stands around the library: options, reports, and the questions of the interactive page."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import mercer
from mercer.explore import Table
from mercer.explore._server import _as_json
from mercer.explore._views import Views

QUESTIONS = ("tables", "rows", "unload", "landscape", "witness", "fine", "ascent", "preimage",
             "test", "load")  # fmt: skip


def check_options(kernel: Any, X: Any, **options: Any) -> None:
    """Options hold inside of the block only, and change no answer by more than rounding."""
    before, psi = mercer.get_options(), mercer.mean_embedding(kernel, X)
    mercer.Options(**options)
    truth = np.asarray(psi(psi.points), float)
    size = np.abs(np.asarray(kernel(psi.points), float)).max(initial=0.0)
    with mercer.options(**options):
        found = np.asarray(psi(psi.points), float)
    assert mercer.get_options() == before, "options remain"
    if np.isfinite(size):
        assert np.allclose(found, truth, 0.0, 1e-4 * size + 1e-300), "another answer"


def check_report(thing: Any, *given: Any, **options: Any) -> None:
    """A report can be written, and needs no network and no scripts."""
    written = mercer.report(thing, *given, **options)
    repr(written)
    page = written.html()
    assert "<script" not in page
    assert written._repr_html_() in page or page.startswith("<!doctype html>")
    mercer.show_versions()


def check_kit(kernels: Any, index: int) -> None:
    """The algebra of kernels, and an element with an awkward one, pass the public checks."""
    try:
        mercer.testing.check_algebra(kernels)
    except AssertionError as error:
        if not any(
            words in str(error) for words in ("pass `points`", "cannot be checked", "suits all of")
        ):
            raise
    awkward = mercer.testing.awkward_kernels()
    X = mercer.testing.lattice(3, 2)
    mercer.testing.check_element(mercer.mean_embedding(awkward[index % len(awkward)], X))


def check_views(X: Any, second: Any, question: str, asked: Any) -> None:
    """An answer of the interactive page is JSON without NaN."""
    names = tuple("abcdefgh"[: X.shape[1]])
    views = Views(Table("a.csv", names, X), lambda name, _: Table(name, names, second))
    if second is not None:
        views.load("b.csv", b"")
    if question == "load":
        return
    kind, body = _as_json(getattr(views, question)(asked))
    assert kind == "application/json"
    assert isinstance(json.loads(body), dict)
