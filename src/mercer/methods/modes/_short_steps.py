"""Short steps of mean shift: has the row arrived at a mode, or must it leave a saddle or a cusp?

A short step is not a sign of a mode. Mean shift is slow near a saddle, on a ridge, and near every
data point where the kernel has a cusp. `settle` tells these cases apart by the Hessian and by the
pull at the cusp, and moves rows that have not arrived farther along their own way uphill.
"""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer.engine import pieces
from mercer.methods.modes._density_sum import DensitySum, heights, is_held, is_top
from mercer.preimages._driver import row_products
from mercer.space._points import number_keys

SAME = 1e-4  # of the kernel's length: rows closer than this share a Hessian and a mode
_LEAP = 0.03  # of the kernel's length: no leap is longer, so that it passes over no hill
_SLOW = 1e-2  # directions in which a step goes less than this share of the way to the maximum
_UPWARD = 1e-9  # of the largest eigenvalue: a positive one above this is not rounding
_TIE = 1e-15  # of the kernel's length: the rounding of a step
_NEAR = 0.1  # of the kernel's length: how far a row may be moved to a data point ahead of it


def settle(density: DensitySum, Z: Array, limit: float) -> tuple[Array, Array]:
    """Where rows with short steps go next, and which of them have arrived; (m, d) and (m,).

    Steps no longer than `limit` are short. Rows have arrived if they are at a maximum, or if no way
    up is left.
    """
    if density.has_cusps:
        return _settle_with_cusps(density, Z, limit)
    return _settle_smooth(density, Z, limit)


def cells(Z: Array, density: DensitySum) -> Array:
    """A number for each row, the same for rows in the same small cell of a grid."""
    return number_keys(np.round(Z / (SAME * density.length)))


def _settle_with_cusps(density: DensitySum, Z: Array, limit: float) -> tuple[Array, Array]:
    """Rows that head for a data point nearby are moved there, if the density there is no lower.

    Near a data point x_j the iteration is z - x_j -> |z - x_j| R / eta, with R the pull of the
    others and eta the slope of the cusp: it converges to x_j if |R| < eta, and otherwise leaves in
    the direction of R, which is that of the step at x_j itself.
    """
    here = density.at(Z, exact=True)
    points, arrived = Z.copy(), is_held(here)
    nearest = density.points[density.tree.query(Z)[1]]
    ahead = nearest - Z
    distance = np.linalg.norm(ahead, axis=1)
    close = (distance > 0.0) & (distance <= _NEAR * density.length)
    close &= row_products(ahead, here.fixed_point_step) > 0.0
    rows = np.flatnonzero(close)
    if rows.size:
        there = heights(density.at(nearest[rows], exact=True))
        rows = rows[there >= heights(here)[rows]]
        points[rows] = nearest[rows]
    rest = ~arrived
    rest[rows] = False
    beside = distance <= SAME * density.length  # where second derivatives are mostly rounding
    leaving = np.flatnonzero(rest & beside)
    if leaving.size:
        points[leaving] = _leap(density, Z[leaving], here.fixed_point_step[leaving])
    smooth = np.flatnonzero(rest & ~beside)
    if smooth.size:
        points[smooth], arrived[smooth] = _settle_smooth(density, Z[smooth], limit)
    return points, arrived


def _settle_smooth(density: DensitySum, Z: Array, limit: float) -> tuple[Array, Array]:
    """`settle` by the Hessian, which rows of one small cell share if the density is smooth.

    Rows have arrived if it is negative definite and Newton's step is short. Others leap along the
    part of their own step in the directions in which the iteration is slow or leads away. In many
    columns a short step is enough.
    """
    points, arrived = Z.copy(), np.ones(len(Z), dtype=bool)
    if not density.has_few_columns:
        return points, arrived
    keys = number_keys(Z) if density.has_cusps else cells(Z, density)
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    for part in pieces(len(first), density.hessian_rows):
        here = density.at(Z[first[part]], 2, exact=True)
        top = is_top(here, SAME * density.length)
        if top.all():
            continue
        values, vectors = np.linalg.eigh(here.hessian[~top])
        number = np.full(len(first), -1)
        number[part.start + np.flatnonzero(~top)] = np.arange(len(values))
        rows = np.flatnonzero(number[group] >= 0)
        of = number[group[rows]]
        step = density.at(Z[rows], exact=True).fixed_point_step
        slow = values < _SLOW * here.stiffness[~top, None]
        upward = values[:, 0] < -_UPWARD * np.abs(values).max(axis=1)
        way = np.empty_like(step)
        for some in pieces(len(rows), density.hessian_rows):
            g, V = of[some], vectors[of[some]]
            along = np.einsum("ijk,ij->ik", V, step[some]) * slow[g]
            tie = (np.abs(along[:, 0]) <= _TIE * density.length) & upward[g]
            along[tie, 0] = np.where(along[tie, 0] < 0.0, -limit, limit)
            way[some] = np.einsum("ijk,ik->ij", V, along)
        moves = way.any(axis=1)
        rows, way = rows[moves], way[moves]
        if rows.size:
            arrived[rows] = False
            points[rows] = _leap(density, Z[rows], way)
    return points, arrived


def _leap(density: DensitySum, Z: Array, step: Array) -> Array:
    """A step, doubled as long as the density still rises along it, up to a small share of a length.

    The slope decides, because near a saddle differences of the density are mostly rounding.
    """
    out = Z + step
    height = heights(density.at(Z, exact=True))
    size = np.linalg.norm(step, axis=1)
    rows, t = np.arange(len(Z)), 1.0
    while rows.size:
        there = density.at(Z[rows] + t * step[rows], exact=True)
        rising = row_products(there.gradient, step[rows]) < 0.0
        rising &= heights(there) >= height[rows] * (1.0 - 1e-13)
        rows = rows[rising]
        out[rows], height[rows] = there.points[rising], heights(there)[rising]
        t *= 2.0
        rows = rows[t * size[rows] <= _LEAP * density.length]
    return out
