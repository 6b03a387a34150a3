"""Timing: contenders take turns within one run, so that other load affects all of them.

After one warm-up call each, contenders run round robin, forwards and backwards in turn. A pause
before every call lets the threads of the previous one stop spinning. Minimum and median are
reported; bars compare minima, which other load changes least.
"""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DATA = Path(__file__).parents[2] / "shared" / "data"  # of real data sets, which `NEEDS` names
Contender = Callable[[], Any]

_PAUSE = 0.05  # seconds; OpenBLAS threads spin for about half of it
_SLOW = 10.0  # seconds; a call beyond it is repeated `_FEW` times only
_FEW = 3


def threads() -> int:
    """Threads for every contender: all cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)


@dataclass(frozen=True)
class Settings:
    """How a run is done: `quick` is a smoke run, whose figures mean nothing."""

    quick: bool = False

    @property
    def rounds(self) -> int:
        return 2 if self.quick else 5

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full


class PeerError(Exception):
    """Another library did not build, did not run or did not fit into memory."""


class Key(NamedTuple):
    """A contender in a race: what it competes in, and its name."""

    group: str
    name: str


@dataclass(frozen=True)
class Timing:
    """Wall time of the calls of one contender, in seconds."""

    seconds: tuple[float, ...]

    @property
    def minimum(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Race:
    """The timings of one race and the cores that other processes kept busy meanwhile."""

    timings: dict[Key, Timing]
    others: float | None
    failed: dict[Key, str] = field(default_factory=dict)

    def ratio(self, key: Key, to: Key) -> float | None:
        """Minimum of `key` over minimum of `to`; None if one of them did not run."""
        if key not in self.timings or to not in self.timings:
            return None
        return self.timings[key].minimum / self.timings[to].minimum


def race(
    title: str,
    contenders: Mapping[Key, Contender],
    settings: Settings,
    inspect: Callable[[Key, Any], None] | None = None,
) -> Race:
    """Time the contenders in turns; `inspect` sees the result of each warm-up call.

    A peer whose warm-up fails is left out and does not end the run.
    """
    rounds: dict[Key, int] = {}
    failed: dict[Key, str] = {}
    for key, call in contenders.items():
        _progress(f"{title}: warming up {' '.join(key).strip()}")
        try:
            start = time.perf_counter()
            result = call()
            slow = time.perf_counter() - start > _SLOW
        except PeerError as error:
            failed[key] = str(error)
            continue
        if inspect is not None:
            inspect(key, result)
        del result
        rounds[key] = min(_FEW, settings.rounds) if slow else settings.rounds
    seconds: dict[Key, list[float]] = {key: [] for key in rounds}
    watch = _OtherLoad()
    for turn in range(settings.rounds):
        _progress(f"{title}: round {turn + 1} of {settings.rounds}")
        for key in list(rounds)[:: 1 if turn % 2 == 0 else -1]:
            if turn < rounds[key]:
                seconds[key].append(_timed(contenders[key]))
    others = watch.cores()
    _progress(f"{title}: done", end=True)
    return Race({key: Timing(tuple(s)) for key, s in seconds.items()}, others, failed)


def _timed(call: Contender) -> float:
    gc.collect()
    time.sleep(_PAUSE)
    start = time.perf_counter()
    result = call()
    stop = time.perf_counter()
    del result  # freeing it is not part of the time
    return stop - start


def _progress(text: str, *, end: bool = False) -> None:
    """One line on stderr, rewritten in a terminal; elsewhere only the last one is printed."""
    if sys.stderr.isatty():
        print(f"\r\x1b[2K{text}", end="\n" if end else "", file=sys.stderr, flush=True)
    elif end or "round 1 of" in text:
        print(text, file=sys.stderr, flush=True)


class _OtherLoad:
    """Cores kept busy by other processes since this object was made; Linux only."""

    def __init__(self) -> None:
        self.start = self._now()

    def cores(self) -> float | None:
        now = self._now()
        if self.start is None or now is None:
            return None
        wall, busy, own = (b - a for a, b in zip(self.start, now, strict=True))
        return max(0.0, (busy - own) / wall) if wall > 0 else None

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        """Wall time, busy time of all cores, time of this process and its children, in seconds."""
        try:
            with open("/proc/stat") as stat:  # noqa: PTH123
                ticks = [int(word) for word in stat.readline().split()[1:]]
        except (OSError, ValueError):
            return None
        user, nice, system, _idle, _wait, irq, softirq, steal = ticks[:8]
        busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), busy, sum(os.times()[:4]) + _time_of_children(os.getpid())


def _time_of_children(pid: int) -> float:
    """Processor time of the running descendants of a process, in seconds; Linux only."""
    seconds = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            with contextlib.suppress(OSError):  # it has ended
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                ticks = sum(int(field) for field in fields[11:15])  # its own, and ended children's
                seconds += ticks / os.sysconf("SC_CLK_TCK") + _time_of_children(int(child))
    return seconds


def data(n: int, dim: int, dtype: str, seed: int = 0) -> tuple[Array, Array, Array]:
    """Points X, queries Y and the coefficients [X, 1] of a mean-shift step, c = d + 1."""
    rng = np.random.default_rng(seed)
    X, Y = (rng.standard_normal((n, dim)).astype(dtype) for _ in range(2))
    return X, Y, np.hstack([X, np.ones((n, 1), dtype)])
