"""Tiles: how a sum over points and queries is cut into pieces that fit in memory and cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._config import get_options
from mercer._threads import thread_count

_ROWS, _TILE = 256, 1 << 20  # a tile of 1 MiB stays in cache; sums of at most 1,024 terms
_MANY_DIMENSIONS = 200  # BLAS does nearly all the work, and is faster on larger tiles
# larger still if each tile is passed over once: accumulators are read less often
_LARGE = 640, 4096
_SMALLEST = 8  # rows and columns, however little memory is allowed
_FEW_TILES = 8  # with fewer tiles of queries the points are split too, so that all cores have work
_CHUNK = 1 << 15  # points of such a part: 32 tiles


@dataclass(frozen=True)
class Plan:
    """Tile sizes, and the pieces of work that may run at the same time.

    Only the tile size may depend on the number of threads, and only if `working_memory` is tight;
    partial sums are added in a fixed order. So results hardly depend on the number of threads.
    """

    rows: int
    columns: int

    def row_tiles(self, m: int, order: Any) -> list[Any]:
        """Slices of the queries; of their spatial order, if one is given."""
        slices = list(pieces(m, self.rows))
        return slices if order is None else [order[s] for s in slices]

    def chunks(self, m: int, n: int) -> list[slice]:
        """Slices of the points that are summed separately, so that few queries use all cores."""
        if -(-m // self.rows) >= _FEW_TILES:
            return [slice(0, n)]
        return list(pieces(n, _CHUNK))


def plan(arrays: int, dtype: Any, dim: int, bytes_per_row: int = 0) -> Plan:
    """A plan for `arrays` temporaries per tile and accumulators of `bytes_per_row` per query."""
    budget = get_options().working_memory * 2**20 / thread_count()
    size = np.dtype(dtype).itemsize
    rows, columns = _ROWS, _TILE // (_ROWS * size)
    if dim > _MANY_DIMENSIONS:
        rows, columns = _LARGE if arrays == 1 else (2 * rows, 2 * columns)
    while rows > _SMALLEST and rows * (columns * size * arrays + bytes_per_row) > budget:
        rows //= 2
    while columns > _SMALLEST and rows * columns * size * arrays > budget:
        columns //= 2
    return Plan(rows, columns)


def pieces(stop: int, size: int, start: int = 0) -> Iterator[slice]:
    """Slices of at most `size` that cover range(start, stop)."""
    return (slice(i, min(i + size, stop)) for i in range(start, stop, size))
