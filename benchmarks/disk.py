"""A density in the plane from a file that is not read into memory: time, memory and accuracy.

The limit is reading the file: blocks are read and summed, once after the file was dropped from the
page cache ("cold") and once when it is in memory ("warm"). Bars compare the density with the cold
reading, which is what a file larger than memory needs each time. Resident memory is VmHWM of the
process: all of it, and without the pages of the mapped file, which the system takes back when it
needs them (RssAnon, sampled).
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

import mercer as mc
from benchmarks._harness import Contender, Settings
from benchmarks._process import measured, status
from benchmarks._report import Outcome, Row, at_most

TITLE = "Density in the plane from disk"

ROWS = 100_000_000
SIDE = 512  # queries along each axis of a grid
TOLERANCE = 1e-6  # of the sum of the weights times k(0); the bar is on the maximum of the density
BLOCK = 1 << 20
REPEATS = 3
COLD, WARM = "time over reading the file, cold", "time over reading the file, warm"
RESIDENT, OWN = "peak resident memory, GB", "peak without file pages, GB"
ERROR = "error over the maximum"
BARS = {COLD: at_most(5.0), RESIDENT: at_most(4.0), ERROR: at_most(1e-3)}
_CHECKED = 5  # queries that are compared with sums over all pairs


def run(settings: Settings) -> Outcome:
    """Write the files, and measure each in processes of their own."""
    outcome, n = Outcome(TITLE), settings.size(ROWS, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("float32", "float64"):
            path = str(Path(folder) / f"{dtype}.npy")
            _write(path, n, dtype)
            case, found = f"{n:,} rows, {dtype}", _measure(path)
            for name, seconds in found["seconds"].items():
                middle = sorted(seconds)[len(seconds) // 2]
                outcome.rows.append(Row(case, name, min(seconds), middle, len(seconds)))
            outcome.notes += found["notes"]
            # the figures of a quick run say nothing: a file that small is read in milliseconds
            outcome.add_figures(case, found["figures"], {} if settings.quick else BARS)
            Path(path).unlink()
    return outcome


def _measure(path: str) -> dict[str, Any]:
    names = ("reading, cold", "reading, warm", "density, cold", "density, warm")
    seconds: dict[str, list[float]] = {name: [] for name in names}
    notes, own, whole = [], 0.0, 0.0
    for _ in range(REPEATS):  # in turns, so that other work on the machine affects all of them
        for name in names:
            make: Any = read_file if name.startswith("reading") else make_density
            if name.endswith("cold"):
                forget(path)
            one = measured(make, once=True, path=path)  # a second call would find the file read
            if isinstance(one, str):
                notes.append(f"{name}: {one}")
                continue
            seconds[name].append(one.seconds)
            if make is make_density:
                whole, own = max(whole, one.bytes / 1e9), max(own, one.output_bytes / 1e9)
    figures = {RESIDENT: whole, OWN: own, ERROR: _error(path)}
    for ratio, kind in ((COLD, "cold"), (WARM, "warm")):
        if seconds[f"density, {kind}"]:
            figures[ratio] = min(seconds[f"density, {kind}"]) / min(seconds[f"reading, {kind}"])
    return {"seconds": {k: v for k, v in seconds.items() if v}, "notes": notes, "figures": figures}


def read_file(path: str) -> Contender:
    """Read the file in blocks, and add its numbers."""
    dtype = np.load(path, mmap_mode="r").dtype

    def call() -> None:
        total = 0.0
        with Path(path).open("rb", buffering=0) as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            while (block := np.fromfile(file, dtype, 2 * BLOCK)).size:
                total += float(block.sum())

    return call


class Peak:
    """The most anonymous memory during a call; `nbytes` is what a result is asked for."""

    def __init__(self) -> None:
        self.nbytes, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(0.005):
            self.nbytes = max(self.nbytes, status("RssAnon"))

    def stop(self) -> Peak:
        self._over.set()
        self._thread.join()
        return self


def make_density(path: str) -> Contender:
    """The density of a mapped file on a grid; a small one first, so that threads are there."""
    _density_on_grid(np.random.default_rng(0).normal(size=(50_000, 2)))

    def call() -> Peak:
        peak = Peak()
        _density_on_grid(np.load(path, mmap_mode="r"))
        return peak.stop()

    return call


def _density_on_grid(X: Any) -> Any:
    axis = np.linspace(-4.0, 4.0, SIDE)
    Y = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    with mc.options(tolerance=TOLERANCE):
        return mc.kernel_density(_kernel(len(X)), X)(Y)


def _kernel(n: int) -> mc.Gaussian:
    return mc.Gaussian(1.06 * n ** (-1.0 / 6.0))  # close to Silverman's rule for unit variance


def _error(path: str) -> float:
    """The largest error at some queries, over the maximum of the density."""
    X = np.load(path, mmap_mode="r")
    Y = np.random.default_rng(1).normal(size=(_CHECKED, 2))
    Y[0] = 0.0  # where the density is largest
    h = _kernel(len(X)).length_scale
    exact = np.zeros(_CHECKED)
    for start in range(0, len(X), BLOCK):
        x = X[start : start + BLOCK].astype(np.float64)
        for j, y in enumerate(Y):
            exact[j] += np.exp(((x - y) ** 2).sum(axis=1) / (-2.0 * h**2)).sum()
    exact /= len(X) * 2.0 * np.pi * h**2
    with mc.options(tolerance=TOLERANCE, engine="spectral"):
        found = mc.kernel_density(_kernel(len(X)), X)(Y)
    return float(np.abs(found - exact).max() / exact.max())


def _write(path: str, n: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(n, 2))
    for start in range(0, n, BLOCK):
        X[start : start + BLOCK] = rng.standard_normal((min(BLOCK, n - start), 2))
    X.flush()


def forget(path: str) -> None:
    """Drop the file from the page cache."""
    with Path(path).open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
