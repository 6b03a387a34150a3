"""One element per query in many dimensions: two BLAS products and one pass of the core.

The first product makes inner products of points and queries. The core turns them into weights
W = k'(u) A, with the coefficients A of the pairs. The second product, W' X, gives gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import is_sparse
from mercer._config import get_options
from mercer._threads import map_threads, thread_count
from mercer.engine._sizes import n_columns, n_rows, pieces
from mercer.engine.pairs._tiles import Pairs
from mercer.engine.programs._coef import Dense, LowRank
from mercer.engine.programs._maps import pull_all
from mercer.engine.programs._program import Distance, Dot, Program
from mercer.engine.sums._derivatives import direction
from mercer.engine.sums._fields import Fields

_QUERIES, _POINTS = 512, 2048  # of a tile: large enough for BLAS, a few MiB


def fields(program: Program, X: Any, Y: Any, coef: Dense | LowRank) -> Fields | None:
    """Values and gradients, unshifted; None where a pass of the core over tiles will not do."""
    if not program.runs_on_core or is_sparse(X) or is_sparse(Y):
        return None
    pairs = Pairs(program, Y, X, order=1)  # rows of a tile are points
    if any(program.cusps) or not pairs.one_pass:
        return None
    (variable,) = program.variables
    assert isinstance(variable, Distance | Dot)
    x, y = pairs.coordinates()
    n, m, dim = n_rows(X), n_rows(Y), n_columns(Y)
    value, slope, gradient = np.zeros(m), np.zeros(m), np.empty((m, dim))
    columns, rows = _tile(m, np.dtype(pairs.dtype).itemsize)

    def job(queries: slice) -> None:
        first: Any = None
        values, slopes = value[queries], slope[queries]
        for part in pieces(n, rows):
            A = np.ascontiguousarray(coef.tile(part, queries), dtype=pairs.dtype)
            sums = pairs.weigh(part, queries, A, values, slopes).T @ x[part]
            first = sums.astype(np.float64, copy=False) if first is None else first + sums
        alpha, beta, _ = direction(variable)
        first *= beta  # in place: making new arrays of this size would take as long as the sums
        if alpha:
            first += y[queries] * (alpha * slopes)[:, None]
        gradient[queries] = pull_all(variable.maps, first, dim)

    map_threads(job, list(pieces(m, columns)))
    dtype = pairs.dtype
    value, gradient = value.astype(dtype, copy=False), gradient.astype(dtype, copy=False)
    return Fields(value, gradient, slopes=(slope,))


def _tile(m: int, itemsize: int) -> tuple[int, int]:
    """Queries and points of a tile: equal work for each thread, within `working_memory`."""
    columns = min(_QUERIES, max(8, -(-m // thread_count())))
    budget = get_options().working_memory * 2**20 / (2 * thread_count() * itemsize * columns)
    return columns, int(np.clip(budget, 8, _POINTS))
