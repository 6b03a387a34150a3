"""How often a test rejects over many data sets, with counts that a restarted run continues.

`benchmarks/results/<suite>_counts.json` is written after every few repetitions; delete it to start
anew after a change of the tests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks._harness import Settings
from mercer.reproduce._replications import PValue
from mercer.reproduce._replications import rejections as count_rejections

__all__ = ["PValue", "rejections"]

_RESULTS = Path(__file__).parent / "results"


def rejections(
    suite: str, designs: Mapping[str, PValue], n: int, levels: tuple[float, ...], settings: Settings
) -> dict[str, list[float]]:
    """The share of `n` data sets of each design with p <= level, for each level."""
    n = settings.size(n, 2)
    file = None if settings.quick else _RESULTS / f"{suite}_counts.json"
    counts = json.loads(file.read_text()) if file is not None and file.exists() else {}
    save = partial(_write, counts, file)
    shares: dict[str, list[float]] = {}
    for name, pvalue in designs.items():
        shares |= count_rejections({name: pvalue}, n, levels, counts, save)
        rounded = [round(share, 4) for share in shares[name]]
        print(f"{name}: {rounded} of {n}", file=sys.stderr, flush=True)
    return shares


def _write(counts: Mapping[str, object], file: Path | None) -> None:
    if file is None:
        return
    file.parent.mkdir(exist_ok=True)
    new = file.with_suffix(".new")
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(c)}" for name, c in counts.items())
    new.write_text(f"{{\n{lines}\n}}\n")
    new.replace(file)
