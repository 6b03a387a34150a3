"""Transforms of many points to frequencies, piece by piece: B-splines on a grid, then one FFT.

    c_m = sum_i a_i exp(-i <w_m, x_i>),   w_m = 2 pi m / L

Points are spread over a grid of N cells per period by B-splines of order q = 4 or 8, which needs no
array of the size of the data. The transform of the grid is c_m times sinc(m / N)^q, plus aliases:

    |error of c_m| <= sum_i |a_i| (prod_k (1 + e(m_k)) - 1),   e(m) = sum_(j != 0) |m / (m + j N)|^q

They vanish quickly for low frequencies, which have most of the weight of a smooth kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._progress import report
from mercer._threads import map_threads, stop_if_interrupted, thread_count
from mercer.engine._compiled import core, core_allowed, instruction_set
from mercer.engine._sizes import pieces
from mercer.exceptions import InputError

PIECE = 1 << 18  # rows of a piece: milliseconds of work, a few MiB
_ORDERS = (4, 8)
# A point touches q^d nodes, on a grid that should stay in the cache: an order of 4 takes less time
# on grids up to this many times as long.
_LONGER = 2.5
_MOST_CELLS = 1 << 22  # 32 MiB for each thread
_IMAGES = 8  # aliases that are summed; the rest is bounded by an integral


@dataclass(frozen=True)
class SplineGrid:
    """Cells per axis, the order of the splines, and a bound on the error.

    `error` bounds the error of sum_m |D_m c_m| for sum_i |a_i| = 1.
    """

    cells: tuple[int, ...]
    order: int
    error: float


def spline_grid(weights: Array, error: float) -> SplineGrid | None:
    """The grid that takes least time for modes with weights D_m; None if all are too large."""
    if not core_allowed():
        return None
    found = [g for order in _ORDERS if (g := _smallest(weights, order, error)) is not None]
    if len(found) == len(_ORDERS) and max(found[0].cells) > _LONGER * max(found[1].cells):
        found.reverse()
    return found[0] if found else None


def _smallest(weights: Array, order: int, error: float) -> SplineGrid | None:
    from scipy.fft import next_fast_len  # slow to import

    size = np.abs(weights)
    total, stretch = float(size.sum()), 1.0
    while True:
        least = [max(order, math.ceil(stretch * (s + 1))) for s in size.shape]
        cells = tuple(next_fast_len(c, real=True) for c in least)
        if math.prod(cells) > _MOST_CELLS:
            return None
        found = size
        for axis, n in enumerate(cells):  # sum_m |D_m| prod_k (1 + e(m_k)), axis by axis
            found = np.tensordot(1.0 + _aliases(found.shape[0] // 2, n, order), found, axes=(0, 0))
            assert found.ndim == size.ndim - axis - 1
        if (bound := float(found) - total) <= error:
            return SplineGrid(cells, order, max(bound, 0.0))
        stretch *= 1.25


def _aliases(half: int, n: int, order: int) -> Array:
    """e(m) for m = -half, ..., half."""
    m = np.abs(np.arange(-half, half + 1)) / n
    near = [(m / np.abs(m + j)) ** order for j in range(-_IMAGES, _IMAGES + 1) if j]
    rest = 2.0 * m**order * (_IMAGES - 0.5) ** (1 - order) / (order - 1)
    return np.asarray(np.sum(near, axis=0) + rest)


def spread_modes(
    grid: SplineGrid,
    shape: tuple[int, ...],
    low: Array,
    period: Array,
    centre: Array,
    n: int,
    piece: Callable[[slice], tuple[Array, Array | None]],
) -> Array:
    """c_m on `shape` modes for points measured from the centre; `piece` returns rows and strengths.

    Rows are float32 or float64 of shape (rows, d); None for strengths means ones.
    """
    nodes = tuple(c + grid.order for c in grid.cells)
    scale = np.array(grid.cells) / period
    parts = list(pieces(n, -(-n // thread_count())))

    def spread(part: slice) -> Array:
        out = np.zeros(math.prod(nodes))
        for some in pieces(part.stop, PIECE, part.start):
            stop_if_interrupted()
            x, a = piece(some)
            run: Any = core().spread32 if x.dtype == np.float32 else core().spread64
            if run(x, a, low, scale, list(grid.cells), grid.order, out, instruction_set()):
                raise InputError("points left their box while they were summed; do not change them")
            if part.start == 0:
                report("points to frequencies", some.stop, 1.0 - some.stop / part.stop)
        return out

    total = reduce(np.add, map_threads(spread, parts)).reshape(nodes)
    for axis, c in enumerate(grid.cells):  # nodes beyond the period belong to its beginning
        total = np.moveaxis(total, axis, 0)
        total[: grid.order] += total[c:]
        total = np.moveaxis(total[:c], 0, axis)
    modes = np.fft.fftn(total)
    for axis, c in enumerate(grid.cells):
        m = np.arange(shape[axis]) - shape[axis] // 2
        start = (low[axis] - centre[axis]) / period[axis] - (grid.order // 2 - 1) / c
        factor = np.exp(-2j * math.pi * m * start) / np.sinc(m / c) ** grid.order
        broad = [-1 if k == axis else 1 for k in range(len(shape))]
        modes = np.take(modes, m % c, axis=axis) * factor.reshape(broad)
    return np.asarray(modes)
