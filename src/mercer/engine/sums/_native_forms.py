"""Quadratic forms of a kernel matrix by the compiled core, for many points in any dimension.

    sum_ij u_i k(x_i, x_j) u_j = sum_i u_i s_i,   s = K u

K is symmetric, so sums over some points are needed only at these and at later points. The core
computes kernel values and products in float32 without storing the values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._checkpoint import checkpointed
from mercer._config import get_options
from mercer._progress import tracked
from mercer._threads import map_threads
from mercer.engine._sizes import as_float32, as_float64, contiguous, n_rows, pieces
from mercer.engine.pairs._distance_limits import recompute_below
from mercer.engine.pairs._distances import bound_on_error, middle, squared_norms
from mercer.engine.pairs._tiles import mapped_points
from mercer.engine.programs._float_range import fits_float32
from mercer.engine.programs._program import Program
from mercer.engine.sums._choice import use_native
from mercer.engine.sums._native import PRODUCT_FORM, compiled_program

_PART = 2048  # points of one sum: results are read once per part
_TILE = 480  # queries of one task, in whole panels of every instruction set
_FEWEST = 4 * _PART  # with fewer points, pairs within a part would be most of the work

Vectors = Callable[[slice], Array]


class NativeForms:
    """Forms and products of the matrix k(x_i, x_j), i != j, accurate to float32.

    `points` are those that the program measures, in float32, so that their squared distances may
    be computed from inner products.
    """

    def __init__(self, program: Program, points: Array) -> None:
        self.program, self.points = program, points
        self.at_zero = float(program.value_at_zero)

    def __call__(
        self, vectors: Vectors, count: int, watched: Array
    ) -> tuple[Array, Array, Array, float]:
        """Forms, products, and zeros in place of the bounds that `SpectralForms` has.

        Forms are sums over i != j of u_i K_ij u_j for each of `count` vectors u; `vectors(some)`
        returns some of them as rows, in float32. Products are those of K, its diagonal left out,
        with the columns of `watched`.
        """
        at_once = int(get_options().working_memory * 2**20 / (4 * len(self.points)))
        found = [
            self._sums(vectors(some), watched if some.start == 0 else watched[:, :0])
            for some in pieces(count, max(1, at_once))
        ]
        return np.concatenate([values for values, _ in found]), found[0][1], np.zeros(count), 0.0

    def _sums(self, U: Array, watched: Array) -> tuple[Array, Array]:
        n = len(self.points)
        values: Array = -self.at_zero * np.einsum("bi,bi->b", U, U, dtype=np.float64)
        products: Array = -self.at_zero * watched
        place, done = checkpointed("permutations", self.program, self.points, U, watched), 0
        if place.found is not None:
            done = int(place.found["done"])
            values, products = (np.array(place.found[name]) for name in ("values", "products"))
        for part in tracked(list(pieces(n, _PART, done)), "permutations"):
            packed = self._packed(part, np.concatenate([U[:, part].T, watched[part]], axis=1))
            tiles = [*pieces(part.stop, _TILE, part.start), *pieces(n, _TILE, part.stop)]
            job = partial(self._tile, U, watched, part, packed)
            for rows, (form, down, back) in zip(tiles, map_threads(job, tiles), strict=True):
                values += form
                products[rows] += down
                products[part] += back
            place.keep(partial(_copied, part.stop, values, products), last=part.stop == n)
        return values, products

    def _tile(
        self, U: Array, watched: Array, part: slice, packed: Any, rows: slice
    ) -> tuple[Any, Array, Any]:
        """Forms over pairs of a row and a point in the part, and products at rows and points."""
        c = watched.shape[1]
        S = self._sums_at(rows, packed, len(U) + c)
        form, down = np.einsum("bi,ib->b", U[:, rows], S[:, : len(U)]), S[:, len(U) :].copy()
        if rows.start < part.stop:  # every pair within the part comes twice
            return form, down, 0.0
        back = self._sums_at(part, self._packed(rows, watched[rows]), c) if c else 0.0
        return 2.0 * form, down, back

    def _packed(self, part: slice, A: Array) -> Any:
        """Some points with coefficients A, in the core."""
        compiled = compiled_program(self.program, self.points[part], PRODUCT_FORM)
        compiled.set_coef(0, contiguous(A, dtype=np.float32))
        return compiled

    def _sums_at(self, rows: slice, compiled: Any, columns: int) -> Array:
        """Sums over packed points at other points."""
        sums = np.empty((rows.stop - rows.start, columns))
        compiled.sums(self.points[rows], [sums], None)
        return sums


def _copied(done: int, values: Array, products: Array) -> dict[str, Any]:
    """The state after some parts, for a checkpoint."""
    return {"done": done, "values": values.copy(), "products": products.copy()}


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
