"""A large kernel sum: resident memory beyond input and output, and time as the square of n."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks._harness import Settings
from benchmarks._report import Outcome, Row, at_most

TITLE = "Large sum: memory and growth"

GROWTH = "resident memory beyond input and output, MB"
TIME = "time over extrapolation from the smaller sum"

LARGE, SMALL, DIM = 100_000, 30_000, 3
REPEATS = 3
BARS = {GROWTH: at_most(100), TIME: at_most(1.3)}


def run(settings: Settings) -> Outcome:
    """Measured in a fresh process; the NumPy path is reported beside, once."""
    large, small = settings.size(LARGE, 4000), settings.size(SMALL, 1200)
    outcome = Outcome(TITLE)
    label = f"{large:,} x {large:,}, d = {DIM}, float64"
    for engine, bars, repeats in ((None, BARS, REPEATS), ("blocked", {}, 1)):
        name = "mercer" if engine is None else "mercer, NumPy only"
        print(f"memory: {name}", file=sys.stderr, flush=True)
        found = _measured(engine, large, small, repeats)
        if "error" in found:
            outcome.notes.append(f"{name}: {found['error']}")
            continue
        times, before = found["large_seconds"], found["small_seconds"]
        for n, seconds in ((small, before), (large, times)):
            middle = sorted(seconds)[len(seconds) // 2]
            outcome.rows.append(Row(f"n = m = {n:,}", name, min(seconds), middle, len(seconds)))
        values = {
            GROWTH: found["growth_bytes"] / 1e6,
            TIME: min(times) / (min(before) * (large / small) ** 2),
        }
        case = label if engine is None else f"{label}, NumPy only"
        outcome.add_figures(case, values, bars)
    return outcome


def _measured(engine: str | None, large: int, small: int, repeats: int) -> dict[str, Any]:
    order = {"engine": engine, "large": large, "small": small, "dim": DIM, "repeats": repeats}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._resident", json.dumps(order)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return dict(json.loads(done.stdout))
