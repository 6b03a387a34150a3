"""Rows of data: equal, near and connected ones, and samples that do not depend on their order."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from mercer._array import Array, as_vector, is_sparse
from mercer._threads import thread_count
from mercer.engine import dense, n_columns, n_rows, pieces
from mercer.space._points import number_keys

TREE_COLUMNS = 20  # up to which a tree is faster than all distances
_FEW = 32  # rows that are compared one by one rather than by a tree
_ENTRIES = 1 << 23  # of a table of distances that is held at a time


def row_keys(X: Any) -> Array:
    """Return one 64-bit number per row, shape (n,).

    Equal rows have equal numbers, whether dense or sparse, float32 or float64, in any process.
    Two different rows have the same number with probability 2^-64.
    """
    if is_sparse(X) or X.dtype.kind in "fiub":
        return number_keys(X)
    return np.array([_hash(x) for x in X.tolist()], dtype=np.uint64)


def distinct_rows(X: Any, weights: Array | None = None) -> tuple[Any, Array]:
    """Return the distinct rows of positive weight, and the total weight of each.

    So a weight of 2 is the same as repeating the row. Vectors come in lexicographic order, which
    depends neither on the order of X nor on the units of its columns; other points in the order of
    their keys. NaN equals NaN.
    """
    index, mass = distinct_index(X, weights)
    return X[index], mass


def distinct_index(
    X: Any, weights: Array | None = None, labels: Array | None = None
) -> tuple[Array, Array]:
    """Return the numbers of the rows of `distinct_rows`, and the total weight of each.

    Equal rows with different labels are different.
    """
    raw = np.ones(n_rows(X)) if weights is None else as_vector(weights, "weights", n_rows(X))
    columns = (row_keys(X),) if labels is None else (labels, row_keys(X))
    order = np.lexsort(columns)
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([c[order[1:]] != c[order[:-1]] for c in columns], axis=0)
    starts = np.flatnonzero(new)
    first, mass = order[starts], np.add.reduceat(raw[order], starts)
    present = np.flatnonzero(mass > 0.0)
    if is_sparse(X) or (X.dtype.kind in "fiub" and X.ndim == 2):
        present = present[_lexicographic(X, first[present])]
    return first[present], mass[present]


def spread_rows(X: Any, weights: Array | None, size: int) -> tuple[Array, Array]:
    """Return up to `size` distinct rows of positive weight, dense, and the weight of each.

    They are evenly spaced in lexicographic order.
    """
    rows, mass = distinct_rows(X, weights)
    chosen = np.unique(np.linspace(0, len(mass) - 1, size).astype(int))
    return dense(rows[chosen]), mass[chosen]


def nearest(rows: Array, Z: Array) -> tuple[Array, Array]:
    """The distance of each row of Z to the nearest of some rows, and its number; -1 for none."""
    if not len(rows):
        return np.full(len(Z), np.inf), np.full(len(Z), -1)
    few_columns = rows.shape[1] <= TREE_COLUMNS
    if few_columns and len(rows) > _FEW:
        from scipy.spatial import cKDTree

        return cKDTree(rows).query(Z, workers=thread_count())  # type: ignore[no-any-return]
    from scipy.spatial.distance import cdist

    middle = rows.mean(axis=0)  # without centring, differences of products lose digits
    C, number = rows - middle, np.empty(len(Z), dtype=np.intp)
    for part in pieces(len(Z), max(1, _ENTRIES // len(rows))):
        if few_columns:
            gap = cdist(Z[part], rows, "sqeuclidean")
        else:
            gap = row_squares(C) - 2.0 * ((Z[part] - middle) @ C.T)
        number[part] = gap.argmin(axis=1)
    with np.errstate(over="ignore"):
        return np.linalg.norm(Z - rows[number], axis=1), number


def renumbered(labels: Array, order: Array, count: int) -> Array:
    """Renumber labels below `count`: `order[0]` becomes 0, and so on; -1 if not in the order."""
    number = np.full(count + 1, -1)  # one more: -1 stays -1
    number[order] = np.arange(len(order))
    return np.asarray(number[labels])


def connected(a: Array, b: Array, n: int) -> Array:
    """Number the connected parts of a graph of n nodes with edges from a_i to b_i, shape (n,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(a), dtype=bool), (a, b)), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1])


def followed(into: Array) -> Array:
    """Where each number ends if i is replaced by into[i] until nothing changes."""
    while not np.array_equal(into, into[into]):
        into = into[into]
    return into


def row_squares(X: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _lexicographic(X: Any, rows: Array) -> Array:
    """The order of some distinct rows by their first column, then by the second, and so on.

    A few columns nearly always decide, so further ones are only compared for tied rows.
    """
    order, tied = np.arange(len(rows)), np.arange(len(rows))  # so far; positions still undecided
    group, used, more = np.zeros(len(rows), dtype=np.int64), 0, 4
    while used < n_columns(X) and len(tied):
        columns = dense(X[:, used : used + more][rows[order[tied]]])
        inner = np.lexsort((*columns.T[::-1], group[tied]))
        order[tied], columns = order[tied[inner]], columns[inner]
        before, after = columns[:-1], columns[1:]
        new = ~((before == after) | (np.isnan(before) & np.isnan(after))).all(axis=1)
        new |= np.diff(group[tied]) != 0
        group[tied] = np.cumsum(np.concatenate([[0], new]))
        same = np.concatenate([[False], ~new, [False]])
        tied, used, more = tied[same[1:] | same[:-1]], used + more, 2 * more
    return order


def _hash(x: Any) -> int:
    """A number for an object from its text; for a set, whatever the order of its members."""
    text = repr(sorted(map(repr, x))) if isinstance(x, set | frozenset) else repr(x)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
