"""The process that `memory` measures: sums of two sizes, and the peak memory of the larger."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import mercer
from benchmarks._harness import data
from mercer.engine import Dense, fields

_STATUS = Path("/proc/self/status")


def main(order: dict[str, Any]) -> dict[str, Any]:
    """Times of both sizes in turns, and what the large sum added to resident memory."""
    kernel, dim = mercer.Gaussian(order["dim"] ** 0.5), order["dim"]
    large, small = data(order["large"], dim, "float64"), data(order["small"], dim, "float64")
    growth, times = 0, {"large": [], "small": []}  # type: ignore[var-annotated]
    with mercer.options(engine=order["engine"]):
        _sum(kernel, *data(500, dim, "float64"))  # threads and imports are there from now on
        for _ in range(order["repeats"]):
            forget_peak()
            before = status("VmRSS")
            seconds, output = _sum(kernel, *large)
            growth = max(growth, status("VmHWM") - before - output)
            times["large"].append(seconds)
            times["small"].append(_sum(kernel, *small)[0])
    return {
        "growth_bytes": growth,
        "large_seconds": times["large"],
        "small_seconds": times["small"],
    }


def _sum(kernel: mercer.Kernel, X: Any, Y: Any, A: Any) -> tuple[float, int]:
    """Seconds, and the bytes of the result."""
    start = time.perf_counter()
    value = fields(kernel.program, X, Y, Dense(A)).value
    return time.perf_counter() - start, value.nbytes


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


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
