"""Dense pairwise derivatives of k(x, y) in its two arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer._threads import map_threads
from mercer.engine._points import as_float32, as_float64, dense, n_columns, n_rows
from mercer.engine._tiling import pieces
from mercer.engine.pairs._float32 import needs_float64
from mercer.engine.pairs._profile_tiles import tile_jet, without_cusps
from mercer.engine.pairs._tiles import Pairs
from mercer.engine.programs._jets import is_zero
from mercer.engine.programs._maps import pull_all, pull_both
from mercer.engine.programs._program import Distance, Dot, Gap, Norm, Program, Variable, maps_of
from mercer.engine.sums._derivatives import direction
from mercer.exceptions import DerivativeError


def input_gradient(program: Program, X: Any, Y: Any) -> Array:
    """d k(x_i, y_j) / d x_i, shape (n, m, d)."""
    return _derivative(program, X, Y, mixed=False)


def input_mixed(program: Program, X: Any, Y: Any) -> Array:
    """d^2 k(x_i, y_j) / d x_i d y_j', shape (n, m, d, d)."""
    return _derivative(program, X, Y, mixed=True)


def require_derivatives(program: Program) -> None:
    """Raise unless the kernel has derivatives in its arguments."""
    if not program.has_derivatives:
        raise DerivativeError(
            "this kernel is known by its values only (a function of blocks or of coordinates, a "
            "feature map, or a precomputed matrix), so it has no derivatives; use a kernel with a "
            "profile"
        )


def _derivative(program: Program, X: Any, Y: Any, *, mixed: bool) -> Array:
    require_derivatives(program)
    order = 2 if mixed else 1
    if needs_float64(program, Y, X, order):
        wide = _derivative(program, as_float64(X), as_float64(Y), mixed=mixed)
        return as_float32(wide)
    pairs = Pairs(program, Y, X, order=order)
    n, m, dim = n_rows(X), n_rows(Y), n_columns(X)
    out = np.zeros((n, m, dim, dim) if mixed else (n, m, dim), dtype=pairs.dtype)

    def job(rows: slice) -> None:
        inputs = pairs.tile(rows, slice(0, m))
        shape = (rows.stop - rows.start, m)
        jet = tile_jet(program.profile, inputs, order, shape, pairs.dtype)
        jet, at_cusp = without_cusps(program, jet, inputs)
        directions = [_directions(v, pairs, rows) for v in program.variables]
        with np.errstate(over="ignore", invalid="ignore"):  # where the profile overflows
            if mixed:
                _add_mixed(out[rows], program, jet, directions, dim)
            else:
                _add_gradient(out[rows], program, jet, directions, dim)
        if mixed and at_cusp is not None:
            out[rows][at_cusp] = np.nan  # the derivative does not exist there

    per_row = max(1, m * dim * (dim if mixed else 1))
    map_threads(job, list(pieces(n, max(1, (1 << 18) // per_row))))
    return out


def _directions(v: Variable, pairs: Pairs, rows: slice) -> tuple[Array, Array]:
    """d v / d z_x and d v / d z_y for every pair, shape (rows, m, p)."""
    columns_of, rows_of = pairs.mapped(v)
    x, y = dense(rows_of[rows]), dense(columns_of)
    row, column = x[:, None, :], y[None, :, :]
    alpha, beta, gamma = direction(v)
    by_x = alpha * row + beta * column + gamma
    match v:
        case Distance() | Gap():
            by_y = -by_x
        case Dot():
            by_y = row + 0.0 * column
        case Norm(of="column"):
            by_y = 2.0 * column + 0.0 * row
        case _:
            by_y = 0.0 * by_x
    return by_x + 0.0 * column, by_y


def _add_gradient(out: Array, program: Program, jet: Any, directions: Any, dim: int) -> None:
    for v, kind in enumerate(program.variables):
        if not is_zero(jet.first[v]):
            part = jet.first[v][..., None] * directions[v][0]
            out += pull_all(maps_of(kind), part, dim)


def _add_mixed(out: Array, program: Program, jet: Any, directions: Any, dim: int) -> None:
    for v, kind in enumerate(program.variables):
        curvature = {Distance: -2.0, Dot: 1.0}.get(type(kind), 0.0)
        if curvature and not is_zero(jet.first[v]):
            p = directions[v][0].shape[-1]
            identity = curvature * jet.first[v][..., None, None] * np.eye(p)
            out += pull_both(maps_of(kind), maps_of(kind), identity, dim)
        for w, other in enumerate(program.variables):
            if not is_zero(jet.second[v][w]):
                outer = directions[v][0][..., :, None] * directions[w][1][..., None, :]
                part = jet.second[v][w][..., None, None] * outer
                out += pull_both(maps_of(kind), maps_of(other), part, dim)
