"""A graph of neighbouring rows: basins of a density on it, and the saddles between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer._array import Array
from mercer._threads import thread_count
from mercer.methods._rows import connected, followed, renumbered

_NEIGHBOURS = 8  # with many more, a small group of rows would not have a highest row of its own

Edges = tuple[Array, Array]


class JoinTree(NamedTuple):
    """How basins join as the level falls: each but the highest joins another over a saddle.

    `child` and `parent` are numbers of basins, shape (k - 1,), and `saddle` points, (k - 1, d).
    The parent is the basin on the other side of the saddle, in the higher of the two joined parts.
    """

    child: Array
    parent: Array
    saddle: Array


def neighbour_edges(Z: Array) -> Edges:
    from scipy.spatial import cKDTree

    n = len(Z)
    near = cKDTree(Z).query(Z, min(_NEIGHBOURS + 1, n), workers=thread_count())[1].reshape(n, -1)
    a, b = np.repeat(np.arange(n), near.shape[1]), near.ravel()
    return a[a != b], b[a != b]


def bridged(Z: Array, edges: Edges) -> Edges:
    """The edges, and the shortest ones between parts that they leave apart."""
    from scipy.spatial import cKDTree

    a, b = edges
    while (part := connected(a, b, len(Z))).any():
        joins = []
        for c in np.argsort(np.bincount(part), kind="stable")[:-1]:  # all but the largest
            inside, outside = np.flatnonzero(part == c), np.flatnonzero(part != c)
            distance, other = cKDTree(Z[outside]).query(Z[inside])
            i = int(np.argmin(distance))
            joins.append((inside[i], outside[other[i]]))
        inner, outer = np.array(joins).T
        a, b = np.append(a, inner), np.append(b, outer)
    return a, b


def row_basins(Z: Array, f: Array, edges: Edges, h: float) -> tuple[Array, Array]:
    """Rows that are modes, shape (k,), and the number of the mode of each row, shape (n,).

    Each row goes to its highest neighbour, never over a bridge, which may be long. A row without a
    higher one goes to the highest within a bandwidth h: on a slope its neighbours may all lie to
    one side, and a density has hardly any modes closer than that.
    """
    from scipy.spatial import cKDTree

    rank = _ranks(f)
    best = rank.copy()
    for i, j in (edges, edges[::-1]):
        np.minimum.at(best, i, rank[j])
    tops = np.flatnonzero(best == rank)
    for top, near in zip(tops, cKDTree(Z).query_ball_point(Z[tops], h), strict=True):
        best[top] = rank[near].min()
    modes, basin = np.unique(followed(np.argsort(rank)[best]), return_inverse=True)
    return modes, basin


def join_tree(
    Z: Array, f: Array, modes: Array, basin: Array, edges: Edges, density: Callable[[Array], Array]
) -> JoinTree:
    """Join basins over the highest saddles first, the lower one to the higher.

    A saddle is the lowest of the two ends and the middle of an edge. Of all edges between two
    basins, the one with the highest ends is used.
    """
    rank, k = _ranks(f), len(modes)
    a, b = (e[basin[edges[0]] != basin[edges[1]]] for e in edges)
    low = np.where(rank[a] > rank[b], a, b)
    pair = np.sort(np.stack([basin[a], basin[b]]), axis=0)
    order = np.argsort(rank[low], kind="stable")
    first = order[np.unique((pair[0] * k + pair[1])[order], return_index=True)[1]]
    a, b, low = a[first], b[first], low[first]
    if not len(a):
        none = np.empty(0, dtype=np.intp)
        return JoinTree(none, none, Z[:0])
    middle = 0.5 * (Z[a] + Z[b])
    value = density(middle)
    saddle = np.where((value < f[low])[:, None], middle, Z[low])
    part, height, joins = list(range(k)), rank[modes].tolist(), []

    def root(i: int) -> int:
        while part[i] != i:
            part[i] = i = part[part[i]]
        return i

    for e in np.argsort(-np.minimum(value, f[low]), kind="stable").tolist():
        i, j = int(basin[a[e]]), int(basin[b[e]])
        r, s = root(i), root(j)
        if r == s:
            continue
        if height[r] < height[s]:  # r is the higher one
            r, s, j = s, r, i
        part[r] = s
        joins.append((r, j, e))
    child, parent, edge = np.array(joins).T
    return JoinTree(child, parent, saddle[edge])


def _ranks(f: Array) -> Array:
    """The rank of each row by falling density; equal ones keep the order of rows."""
    return renumbered(np.arange(len(f)), np.argsort(-f, kind="stable"), len(f))
