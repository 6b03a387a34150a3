"""A large kernel sum: resident memory beyond input and output, and time as the square of n."""

from __future__ import annotations

import sys
from typing import Any

import mercer as mc
from benchmarks._harness import Contender, Settings, data
from benchmarks._process import measured
from benchmarks._report import Outcome, Row, at_most
from mercer.engine import Dense, fields

TITLE = "Large sum: memory and growth"

GROWTH = "resident memory beyond input and output, MB"
TIME = "time over extrapolation from the smaller sum"

LARGE, SMALL, DIM = 100_000, 30_000, 3
REPEATS = 3
BARS = {GROWTH: at_most(100), TIME: at_most(1.3)}


def run(settings: Settings) -> Outcome:
    """Each sum in a fresh process; the NumPy path is reported beside, once."""
    sizes = settings.size(SMALL, 1200), settings.size(LARGE, 4000)
    outcome = Outcome(TITLE)
    for engine, bars, repeats in ((None, BARS, REPEATS), ("blocked", {}, 1)):
        name = "mercer" if engine is None else "mercer, NumPy only"
        print(f"memory: {name}", file=sys.stderr, flush=True)
        least, growth = [], 0
        for n in sizes:
            found: list[Any] = [measured(make_sum, n=n, engine=engine) for _ in range(repeats)]
            if errors := [one for one in found if isinstance(one, str)]:
                outcome.notes.append(f"{name}, n = {n:,}: {errors[0]}")
                break
            seconds = sorted(one.seconds for one in found)
            least.append(seconds[0])
            middle = seconds[len(seconds) // 2]
            outcome.rows.append(Row(f"n = m = {n:,}", name, seconds[0], middle, len(seconds)))
            growth = max(one.bytes - one.output_bytes for one in found)
        else:
            values = {GROWTH: growth / 1e6, TIME: least[1] / least[0] * (sizes[0] / sizes[1]) ** 2}
            label = f"{sizes[1]:,} x {sizes[1]:,}, d = {DIM}, float64"
            outcome.add_figures(label if engine is None else f"{label}, NumPy only", values, bars)
    return outcome


def make_sum(n: int, engine: str | None) -> Contender:
    """A Gaussian sum over n points at n points."""
    program = mc.Gaussian(DIM**0.5).program

    def call(X: Any, Y: Any, A: Any) -> Any:
        with mc.options(engine=engine):
            return fields(program, X, Y, Dense(A)).value

    call(*data(500, DIM, "float64"))
    arrays = data(n, DIM, "float64")
    return lambda: call(*arrays)
