"""Quadratic forms of a kernel matrix by the compiled core, for many points in any dimension.

    sum_ij u_i k(x_i, x_j) u_j = sum_i u_i s_i,   s = K u

K is symmetric, so sums over some points are needed at these and at later points only. The core
computes kernel values and products in float32 without storing the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options
from mercer._progress import tracked
from mercer._threads import map_threads
from mercer.engine._sizes import as_float32, as_float64, n_rows, pieces
from mercer.engine.pairs._distance_limits import recompute_below
from mercer.engine.pairs._distances import bound_on_error, middle, squared_norms
from mercer.engine.pairs._tiles import mapped_points
from mercer.engine.programs._program import Program
from mercer.engine.sums._choice import fits_float32, use_native
from mercer.engine.sums._native import PRODUCT_FORM, compiled_program

_PART = 2048  # points of one sum: results are read once per part
_TILE = 480  # queries of one task, in whole panels of every instruction set
_FEWEST = 4 * _PART  # with fewer points, pairs within a part would be most of the work

Vectors = Callable[[slice], Array]


class NativeForms:
    """Forms and products of the matrix k(x_i, x_j), i != j, right to float32.

    `points` are those that the program measures, in float32, so that their squared distances may
    be computed from inner products.
    """

    def __init__(self, program: Program, points: Array) -> None:
        self.program, self.points = program, points
        self.at_zero = float(program.value_at_zero)

    def __call__(self, vectors: Vectors, count: int) -> tuple[Array, Array]:
        """sum over i != j of u_i K_ij u_j for each of `count` vectors, and zero: no bounds.

        `vectors(some)` has some of the vectors in rows, float32.
        """
        at_once = int(get_options().working_memory * 2**20 / (4 * len(self.points)))
        found = [self._forms(vectors(some)) for some in pieces(count, max(1, at_once))]
        return np.concatenate(found), np.zeros(count)

    def products(self, A: Array) -> tuple[Array, float]:
        """K A without the diagonal, and zero: no bound."""
        n = len(self.points)
        out = -self.at_zero * A
        for part in pieces(n, _PART):
            for rows, sums in self._sums(part, A[part], slice(0, n), lambda *found: found):
                out[rows] += sums
        return out, 0.0

    def _forms(self, U: Array) -> Array:
        n = len(self.points)

        def use(rows: slice, sums: Array) -> Any:
            return np.einsum("bi,ib->b", U[:, rows], sums)

        values: Array = -self.at_zero * np.einsum("bi,bi->b", U, U, dtype=np.float64)
        for part in tracked(list(pieces(n, _PART)), "permutations"):
            A = U[:, part].T
            values += sum(self._sums(part, A, part, use))
            values += 2.0 * sum(self._sums(part, A, slice(part.stop, n), use))
        return values

    def _sums(
        self, part: slice, A: Array, rows: slice, use: Callable[[slice, Array], Any]
    ) -> list[Any]:
        """use(tile, S) for tiles of the rows, where S = K A is a sum over a part of the points."""
        compiled = compiled_program(self.program, self.points[part], PRODUCT_FORM)
        compiled.set_coef(0, np.ascontiguousarray(A, dtype=np.float32))

        def job(tile: slice) -> Any:
            sums = np.empty((tile.stop - tile.start, A.shape[1]))
            compiled.sums(self.points[tile], [sums], None)
            return use(tile, sums)

        return map_threads(job, list(pieces(rows.stop, _TILE, rows.start)))


def native_forms(program: Program, X: Any) -> NativeForms | None:
    """Forms by the compiled core; None if there are few points, or float32 is not enough."""
    if program.kind != "radial" or n_rows(X) < _FEWEST or not use_native(program, X, X):
        return None
    points = as_float64(X)
    x, _ = mapped_points(program.variables[0], points, points)
    x = x - middle(x)
    radius2 = float(squared_norms(x).max())
    error = bound_on_error(radius2, np.float32)
    if not fits_float32(program, radius2):
        return None
    if recompute_below(program, 0, "float32", error, radius2) > 0.0:
        return None
    return NativeForms(program, as_float32(x))
