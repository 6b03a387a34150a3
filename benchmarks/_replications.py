"""How often a test rejects over many data sets: counts that a restarted run continues.

The data of repetition r of a design come from the seed (design, r), so the counts do not depend on
how often a run was interrupted. `benchmarks/results/<suite>_counts.json` is written after every few
repetitions; delete it to start anew after a change of the tests.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import mercer as mc
from benchmarks._harness import Settings

_RESULTS = Path(__file__).parent / "results"
_SECONDS = 20.0  # between two writings of the counts
_ROUNDING = 1e-12

PValue = Callable[[np.random.Generator], float]
"""Draw a data set and return the p-value of a test of it."""


def rejections(
    suite: str, designs: Mapping[str, PValue], n: int, levels: tuple[float, ...], settings: Settings
) -> dict[str, list[float]]:
    """The share of `n` data sets of each design with p <= level, for each level."""
    n = settings.size(n, 2)
    file = None if settings.quick else _RESULTS / f"{suite}_counts.json"
    counts = json.loads(file.read_text()) if file is not None and file.exists() else {}
    for name, pvalue in designs.items():
        entry = counts.setdefault(name, {"repetitions": 0, "rejected": [0] * len(levels)})
        start = time.monotonic()
        with mc.options(n_jobs=1):
            for r in range(entry["repetitions"], n):
                p = pvalue(np.random.default_rng([zlib.crc32(name.encode()), r]))
                rejected = [int(p <= level + _ROUNDING) for level in levels]
                entry["rejected"] = np.add(entry["rejected"], rejected).tolist()
                entry["repetitions"] = r + 1
                if time.monotonic() - start > _SECONDS or r + 1 == n:
                    _write(counts, file)
                    start = time.monotonic()
        share = [round(b / entry["repetitions"], 4) for b in entry["rejected"]]
        print(f"{name}: {share} of {entry['repetitions']}", file=sys.stderr, flush=True)
    return {
        name: [b / counts[name]["repetitions"] for b in counts[name]["rejected"]]
        for name in designs
    }


def _write(counts: Mapping[str, object], file: Path | None) -> None:
    if file is None:
        return
    file.parent.mkdir(exist_ok=True)
    new = file.with_suffix(".new")
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(c)}" for name, c in counts.items())
    new.write_text(f"{{\n{lines}\n}}\n")
    new.replace(file)
