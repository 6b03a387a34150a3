"""Soak test: does a process grow that runs for an hour? `make soak ARGS="--minutes 60"`.

A round calls representative functions of the whole library on fresh data, with interrupts and
errors, and is followed by a measurement (`MEASURES`). The first quarter of the time is for warming
up: caches fill, pools start. The rounds after it are divided into `BATCHES` batches. Means of
batches are nearly independent, so a line through them has a slope and a confidence interval by
Student's t. A measure grows if the lower end of the 95 % interval of its growth, from the first of
these rounds to the last, is above `floor + rate * hours`. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import sys
import tempfile
import threading
import time
import traceback
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from tools.soak_calls import CALLS

Call = Callable[[np.random.Generator], object]
BATCHES = 10
WARM_UP, LEAST = 0.25, 8  # of the time; rounds that are measured at least
ROUNDS = Path("build/soak.csv")  # the measurements


@dataclass(frozen=True)
class Measure:
    """What is measured after each round, and how much of it may be gained."""

    name: str
    take: Callable[[], float]
    floor: float  # of any run: how far it moves without a leak
    rate: float  # per hour


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _traced() -> float:
    return tracemalloc.get_traced_memory()[0] / 2**20


def _peak() -> float:
    """The most memory in use since the last call: work that needs more and more of it."""
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.reset_peak()
    return peak


def _entries(folder: str) -> float:
    return float(sum(1 for _ in Path(folder).iterdir()))


def _files() -> float:
    return sum(1 for _ in Path(tempfile.gettempdir()).rglob("*"))


MEASURES = (
    # the allocator of the C library gives pages back late; fragments settle within some MB
    Measure("resident MB", _resident, 12.0, 12.0),
    # arrays and objects of Python, exact: caches that are filled late may gain some
    Measure("allocated MB", _traced, 1.0, 0.5),
    Measure("peak MB", _peak, 5.0, 0.5),
    Measure("objects", lambda: float(len(gc.get_objects())), 5000.0, 1000.0),
    Measure("threads", lambda: _entries("/proc/self/task"), 0.5, 0.5),
    Measure("descriptors", lambda: _entries("/proc/self/fd"), 0.5, 0.5),
    Measure("temporary files", _files, 0.5, 0.5),
)


@dataclass(frozen=True)
class Trend:
    """How much a measure gained, with the ends of its 95 % interval."""

    first: float
    last: float
    gain: float
    low: float
    high: float
    allowed: float

    @property
    def grows(self) -> bool:
        """Whether more was gained than is allowed, beyond doubt."""
        return self.low > self.allowed


def trend(seconds: np.ndarray, values: np.ndarray, floor: float, rate: float) -> Trend:
    """The growth of a measure over the rounds, and whether it is more than what is allowed."""
    groups = np.array_split(np.arange(len(values)), min(BATCHES, len(values)))
    t = np.array([seconds[group].mean() for group in groups])
    y = np.array([values[group].mean() for group in groups])
    length = float(seconds[-1] - seconds[0])
    allowed = floor + rate * length / 3600.0
    if len(groups) < 3:
        raise SystemExit(f"{len(values)} rounds are too few for a trend: give more --minutes")
    x = t - t.mean()
    slope = x @ y / (x @ x)
    rest = y - y.mean() - slope * x
    error = np.sqrt(rest @ rest / (len(t) - 2) / (x @ x))
    width = float(stats.t.ppf(0.975, len(t) - 2) * error * length)
    gain = float(slope * length)
    return Trend(float(y[0]), float(y[-1]), gain, gain - width, gain + width, allowed)


@dataclass(frozen=True)
class Soaked:
    """What a run found: trends, measured rounds, calls that failed, and lines that allocated."""

    trends: dict[str, Trend]
    rounds: int
    failed: int
    allocated: str

    @property
    def ok(self) -> bool:
        """Whether nothing grows and no call failed."""
        return not self.failed and not any(one.grows for one in self.trends.values())


def soak(seconds: float, calls: tuple[Call, ...] = CALLS) -> Soaked:
    """Run rounds for some seconds, and fit the trends."""
    rows: list[list[float]] = []
    start = time.monotonic()
    before, number, failed, began = None, 0, 0, time.monotonic()
    tracemalloc.start()
    try:
        while (now := time.monotonic()) < start + seconds or len(rows) < LEAST:
            rng = np.random.default_rng(number)
            number += 1
            failed += sum(_fails(function, rng, number) for function in calls)
            gc.collect()
            if now < start + WARM_UP * seconds:
                continue
            if before is None:
                before, began = tracemalloc.take_snapshot(), time.monotonic()
                _peak()
                continue
            rows.append([time.monotonic() - began, *(m.take() for m in MEASURES)])
            if len(rows) % 20 == 0:
                shown = ", ".join(f"{v:.1f}" for v in rows[-1][1:])
                print(f"round {number}, {now - start:.0f} s: {shown}", flush=True)
        after = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    assert before is not None
    own = (tracemalloc.Filter(False, tracemalloc.__file__), tracemalloc.Filter(False, __file__))
    most = after.filter_traces(own).compare_to(before.filter_traces(own), "lineno")[:15]
    table = np.array(rows)
    ROUNDS.parent.mkdir(parents=True, exist_ok=True)
    names = ["seconds", *(m.name for m in MEASURES)]
    np.savetxt(ROUNDS, table, "%.6g", ",", header=",".join(names), comments="")
    found = {
        m.name: trend(table[:, 0], table[:, i], m.floor, m.rate)
        for i, m in enumerate(MEASURES, start=1)
    }
    return Soaked(found, len(rows), failed, "\n".join(map(str, most)))


def _fails(function: Call, rng: np.random.Generator, number: int) -> bool:
    """Run a call; say where it fails, and go on."""
    try:
        function(rng)
    except Exception:  # noqa: BLE001
        print(f"{function.__name__} of round {number}:\n{traceback.format_exc(limit=-3)}")
        return True
    return False


def main(arguments: list[str] | None = None) -> int:
    """Run for some minutes and print the trends; the exit code says whether something grows."""
    parser = argparse.ArgumentParser("tools.soak", description="Does anything grow?")
    parser.add_argument("--minutes", type=float, default=60.0)
    minutes = parser.parse_args(arguments).minutes
    if threading.active_count() > 1 or not sys.platform.startswith("linux"):
        raise SystemExit("the soak test needs a process of its own, on Linux")
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        with warnings.catch_warnings(action="ignore"):
            found = soak(60.0 * minutes)
        tempfile.tempdir = None
    print(f"{found.rounds} rounds after warming up, {minutes:g} minutes, {found.failed} failures")
    print(f"{'':<16}{'first':>10}{'last':>10}{'gain':>10}{'95 % interval':>22}{'allowed':>10}")
    for name, one in found.trends.items():
        print(
            f"{name:<16}{one.first:>10.2f}{one.last:>10.2f}{one.gain:>10.3f}"
            f"{f'{one.low:.3f} to {one.high:.3f}':>22}{one.allowed:>10.2f}"
            f"{'  grows' if one.grows else ''}"
        )
    if not found.ok:
        print(f"most was allocated here:\n{found.allocated}")
    return int(not found.ok)


if __name__ == "__main__":
    sys.exit(main())
