"""How often a test rejects over many data sets: counts that a later run continues.

The data of repetition r of a design come from the seed (design, r), so the counts do not depend on
how often a run was interrupted.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from mercer._config import options
from mercer._progress import tracked

_SECONDS = 20.0  # between two savings of the counts
_ROUNDING = 1e-12

PValue: TypeAlias = Callable[[np.random.Generator], float]
"""Draw a data set and return the p-value of a test of it."""


def rejections(
    designs: Mapping[str, PValue],
    n: int,
    levels: tuple[float, ...],
    counts: dict[str, Any],
    save: Callable[[], None] = lambda: None,
) -> dict[str, list[float]]:
    """Return the share of `n` data sets of each design with p <= level, for each level.

    `counts` holds what is known already, and is added to; `save` is called every 20 seconds and
    after each design.
    """
    for name, pvalue in tracked(list(designs.items()), "simulations"):
        entry = counts.setdefault(name, {"repetitions": 0, "rejected": [0] * len(levels)})
        start = time.monotonic()
        with options(n_jobs=1):
            for r in range(entry["repetitions"], n):
                p = pvalue(np.random.default_rng([zlib.crc32(name.encode()), r]))
                rejected = [int(p <= level + _ROUNDING) for level in levels]
                entry["rejected"] = np.add(entry["rejected"], rejected).tolist()
                entry["repetitions"] = r + 1
                if time.monotonic() - start > _SECONDS or r + 1 == n:
                    save()
                    start = time.monotonic()
    return {
        name: [b / counts[name]["repetitions"] for b in counts[name]["rejected"]]
        for name in designs
    }
