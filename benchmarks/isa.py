"""The instruction sets of the compiled core compared with each other and with NumPy alone."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import mercer
from benchmarks._harness import Array, Contender, Key, Settings, data, race
from benchmarks._report import Outcome, at_most
from mercer.engine import Dense, fields

TITLE = "Instruction sets: the Gaussian mean-shift sum"

POINTS = 10_000
DIMENSIONS = (2, 10, 64)
BARS = {"avx2 over avx512": at_most(3.5)}
_VARIABLE = "MERCER_ISA"


def run(settings: Settings) -> Outcome:
    """Every instruction set this machine has, both dtypes of a dimension in one race."""
    outcome = Outcome(TITLE)
    try:
        sets = importlib.import_module("mercer._core").instruction_sets()
    except ImportError:
        outcome.notes.append("there is no compiled core here")
        return outcome
    best = sets[-1]
    if best != "avx512":
        outcome.notes.append(f"the best instruction set here is {best}, so the bar cannot be met")
    for dim in DIMENSIONS:
        contenders: dict[Key, Contender] = {}
        for dtype in ("float64", "float32"):
            X, Y, A = data(settings.size(POINTS, 1000), dim, dtype)
            for name in (*reversed(sets), "NumPy only"):
                contenders[Key(dtype, name)] = _sum(name, X, Y, A)
        raced = race(f"isa, d = {dim}", contenders, settings)
        outcome.add_notes(f"d = {dim}", raced)
        for dtype in ("float64", "float32"):
            label, ours = f"d = {dim}, {dtype}", Key(dtype, best)
            outcome.add_rows(label, raced, ours)
            others = [key for key in contenders if key.group == dtype and key != ours]
            values = {f"{key.name} over {best}": raced.ratio(key, ours) for key in others}
            outcome.add_figures(label, values, BARS)
    return outcome


def _sum(name: str, X: Array, Y: Array, A: Array) -> Contender:
    program, coef = mercer.Gaussian(X.shape[1] ** 0.5).program, Dense(A)

    def native() -> Array:
        with forced(name), mercer.options(engine="native"):
            return fields(program, X, Y, coef).value

    def blocked() -> Array:
        with mercer.options(engine="blocked"):
            return fields(program, X, Y, coef).value

    return blocked if name == "NumPy only" else native


@contextmanager
def forced(name: str) -> Iterator[None]:
    """The instruction set of the calls inside; the core reads the variable each time."""
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
