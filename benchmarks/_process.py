"""Measure a call in a process of its own: seconds, and what it adds to resident memory at most."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_STATUS = Path("/proc/self/status")
_ENOUGH = 0.5  # seconds; shorter calls are repeated


class Measured(NamedTuple):
    """One call. `bytes` is its peak memory beyond what was resident before, its result included.

    `seconds` is the least time: calls are repeated for half a second, unless once is asked for.
    Memory is that of the first.
    """

    seconds: float
    bytes: int
    output_bytes: int


def measured(
    make: Callable[..., Callable[[], Any]], *, once: bool = False, **arguments: Any
) -> Measured | str:
    """Measure the call that `make(**arguments)` returns; if the process fails, its last words.

    `make` is a function of a suite. It prepares the data, and makes a small call first, so that
    threads and imports are there before anything is measured.
    """
    order = [make.__module__, make.__name__, arguments, once]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._process", json.dumps(order)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return Measured(*json.loads(done.stdout.splitlines()[-1]))


def status(name: str) -> int:
    """A figure of this process in bytes; the kernel counts in KiB."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"{name} is not known here; this needs Linux")


def forget_peak() -> None:
    """Let VmHWM start again from what is resident now; refused, it errs against us."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _main(module: str, name: str, arguments: dict[str, Any], once: bool) -> Measured:
    call = getattr(importlib.import_module(module), name)(**arguments)
    gc.collect()
    forget_peak()
    before = status("VmRSS")
    seconds, result = _timed(call)
    peak, times = status("VmHWM") - before, [seconds]
    while not once and sum(times) < _ENOUGH:
        times.append(_timed(call)[0])
    return Measured(min(times), peak, int(getattr(result, "nbytes", 0)))


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    print(json.dumps(_main(*json.loads(sys.argv[1]))))
