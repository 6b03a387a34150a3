"""Merging of the ends of ascents that are the same mode."""

from __future__ import annotations

import numpy as np

from mercer._array import Array
from mercer.engine import pieces
from mercer.methods._rows import TREE_COLUMNS, connected, nearest, renumbered, row_squares
from mercer.methods.modes._density_sum import DensitySum, is_held, newton_steps
from mercer.methods.modes._short_steps import SAME, cells
from mercer.space._points import unique

_MERGE = 0.5  # of the kernel's length: the farthest that an end may be from its mode
_NEARLY = 4.0  # steps of Newton: at a maximum of fourth order one goes a third of the way
_BETWEEN = np.linspace(0.0, 1.0, 11)[1:-1]  # where the density is evaluated between two ends
_ROUNDING = 1e-10  # of the density: smaller differences are ignored
_BLOCK = 1024  # rows whose distances to all others are held at a time
_CANCELLED = 1e-14  # of the largest square: the error of a distance from products


def merge_ends(density: DensitySum, modes: Array, ends: Array) -> tuple[Array, Array]:
    """Join ends to known modes, or to each other.

    An end at a data point where the density has a cusp is exact. Any other is off its mode by at
    most about 4 |H^-1 g|, or half the kernel's length where the Hessian H is not definite. Two are
    one mode if they are no farther apart than that and the density does not dip between them. No
    two known modes are joined.

    Returns the row number of the mode of each end, shape (m,), and the modes, shape (k + new, d):
    those that are known, then new ones, the highest end of each group.
    """
    if not len(ends):
        return np.zeros(0, dtype=np.intp), modes
    exact = is_held(density.at(ends, exact=True))
    known = unique(np.concatenate([modes, ends[exact]]))[0] if exact.any() else modes
    _, first, cell = np.unique(cells(ends, density), return_index=True, return_inverse=True)
    points = ends[first]
    off = np.full(len(points), SAME * density.length)
    reach = 2.0 * (_MERGE + SAME) * density.length
    near = _has_neighbour(np.concatenate([points, known]), reach)[: len(points)]
    off[near] += _distance_left(density, points[near])
    label = _nearest_known(density, known, points, off)
    rest = np.flatnonzero(label < 0)
    group, highest = _grouped(density, points[rest], off[rest])
    label[rest] = len(known) + group
    labels = label[cell]
    if exact.any():
        labels[exact] = unique(np.concatenate([known, ends[exact]]))[1][len(known) :]
    used = np.flatnonzero(np.bincount(labels, minlength=len(known) + len(highest)) > 0)
    used = np.concatenate([np.arange(len(modes)), used[used >= len(modes)]])
    found = np.concatenate([known, points[rest][highest]])
    return renumbered(labels, used, len(found)), found[used]


def without_small(labels: Array, centres: Array, weights: Array, least: int) -> tuple[Array, Array]:
    """Drop clusters of fewer than `least` rows, and number the others by decreasing weight.

    Returns the new labels, and the old numbers of the clusters that are kept.
    """
    found = labels >= 0
    mass = np.bincount(labels[found], weights[found], minlength=len(centres))
    keep = kept_clusters(mass, centres, least)
    return renumbered(labels, keep, len(centres)), keep


def kept_clusters(mass: Array, centres: Array, least: int) -> Array:
    """The numbers of clusters that are large enough, the largest first.

    Clusters of the same weight are ordered by their position, so the order of rows does not matter.
    """
    extent = float(np.abs(centres).max(initial=0.0))
    place = np.round(centres / (1e-9 * extent)) if extent > 0.0 else centres
    share = np.round(mass / (mass.max(initial=0.0) or 1.0), 9)
    order = np.lexsort((*place.T[::-1], -share))
    return order[mass[order] >= least] if least > 1 else order[mass[order] > 0.0]


def _has_neighbour(points: Array, reach: float) -> Array:
    """Whether another point lies within reach, shape (n,)."""
    if points.shape[1] <= TREE_COLUMNS:
        from scipy.spatial import cKDTree

        return np.asarray(cKDTree(points).query(points, 2)[0][:, 1] <= reach)
    near, C = np.zeros(len(points), dtype=bool), points - points.mean(axis=0)
    squares = row_squares(C)
    slack = _CANCELLED * float(squares.max(initial=0.0))
    for rows in pieces(len(C), _BLOCK):
        gap = squares[rows, None] + squares - 2.0 * (C[rows] @ C.T)
        near[rows] = np.sum(gap <= reach**2 + slack, axis=1) > 1  # one is the point itself
    return near


def _nearest_known(density: DensitySum, known: Array, points: Array, off: Array) -> Array:
    """The mode nearest to each point, -1 where it is too far away or behind a dip."""
    distance, label = nearest(known, points)
    rows = np.flatnonzero(distance <= off + SAME * density.length)
    rows = rows[~_dips(density, points[rows], known[label[rows]])]
    found = np.full(len(points), -1)
    found[rows] = label[rows]
    return found


def _grouped(density: DensitySum, points: Array, off: Array) -> tuple[Array, Array]:
    """Groups of points that are one mode, and the number of the highest of each.

    The highest point is compared with all others near it, then the highest that was not joined, and
    so on: the comparisons are as many as points times groups, not all pairs.
    """
    n = len(points)
    if not n:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    order = np.argsort(-density.values(points), kind="stable")
    free = _has_neighbour(points, 2.0 * float(off.max()))
    links = [np.zeros((0, 2), dtype=np.intp)]
    for top in order:
        if not free[top]:
            continue
        distance = np.linalg.norm(points - points[top], axis=1)
        near = np.flatnonzero(distance <= off + off[top])
        near = near[~_dips(density, points[near], points[[top] * len(near)])]
        free[near] = False
        links.append(np.stack([np.full(len(near), top), near], axis=1))
    a, b = np.concatenate(links).T
    part = connected(a, b, n)
    highest = np.zeros(part.max() + 1, dtype=np.intp)
    highest[part[order[::-1]]] = order[::-1]
    return part, highest


def _distance_left(density: DensitySum, ends: Array) -> Array:
    """How far each end may be from its mode: a few Newton steps, up to half a length."""
    left = np.full(len(ends), np.inf)
    for rows in pieces(len(ends) if density.has_few_columns else 0, density.hessian_rows):
        step = newton_steps(density.at(ends[rows], 2, exact=True))
        left[rows] = _NEARLY * np.linalg.norm(step, axis=1)
    return np.asarray(np.fmin(left, _MERGE * density.length))


def _dips(density: DensitySum, A: Array, B: Array) -> Array:
    """Whether the density between two points is lower than at the lower of them."""
    dips = np.zeros(len(A), dtype=bool)
    lower = np.minimum(density.values(A), density.values(B)) * (1.0 - _ROUNDING)
    for t in _BETWEEN:
        dips |= density.values((1.0 - t) * A + t * B) < lower
    return dips
