"""Inner products of feature counts, such as the substrings of a text or the elements of a set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array

_TABLE = 1 << 20  # things that are numbered by a table; more are ranked by sorting
_DENSE = 4096  # things of which a dense matrix may be made
_GAIN = 25.0  # an entry of a BLAS product is that much cheaper than one of a sparse product
_REPEATED = 16.0  # coincidences per pair above which equal things of a point are put together


@dataclass(frozen=True)
class Counts:
    """Occurrence i is of feature `things[i]` in point `rows[i]`; `rows` is sorted."""

    rows: Array
    things: Array
    count: int

    def sparse(self, size: int) -> Any:
        """The counts as a CSR matrix, with one entry for each occurrence."""
        from scipy.sparse import csr_array

        ends = np.searchsorted(self.rows, np.arange(self.count + 1))
        shape = (self.count, size)
        return csr_array((np.ones(len(self.things)), self.things.copy(), ends), shape=shape)

    def dense(self, size: int) -> Array:
        """The counts as a matrix."""
        flat = np.bincount(self.rows * size + self.things, minlength=self.count * size)
        return flat.reshape(self.count, size).astype(np.float64)


def inner_products(x: Counts, y: Counts, size: int) -> Array:
    """sum over features of count in x times count in y; features are numbered below `size`."""
    if size > _TABLE:
        x, y, size = _ranked(x, y)
    if size == 0:
        return np.zeros((x.count, y.count))
    often = [np.bincount(z.things, minlength=size).astype(np.float64) for z in (x, y)]
    coincidences = float(often[0] @ often[1]) / (x.count * y.count)
    if size <= _DENSE and size < _GAIN * coincidences:
        return np.asarray(x.dense(size) @ y.dense(size).T)
    left, right = x.sparse(size), y.sparse(size)
    if coincidences > _REPEATED:
        left.sum_duplicates()
        right.sum_duplicates()
    return np.asarray((left @ right.T.tocsr()).toarray())


def squared_norms(x: Counts) -> Array:
    """The sum of squared counts of each point."""
    order = np.lexsort((x.things, x.rows))
    rows, things = x.rows[order], x.things[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]) | (things[1:] != things[:-1])
    first = np.flatnonzero(new)
    often = np.diff(np.append(first, len(rows))).astype(np.float64)
    return np.bincount(rows[first], weights=often**2, minlength=x.count)


def _ranked(x: Counts, y: Counts) -> tuple[Counts, Counts, int]:
    """Only the features that occur in y, renumbered in their order."""
    known = np.unique(y.things)
    at = np.searchsorted(known, x.things)
    both = known.take(at, mode="clip") == x.things if known.size else np.zeros(at.size, dtype=bool)
    left = Counts(x.rows[both], at[both], x.count)
    return left, Counts(y.rows, np.searchsorted(known, y.things), y.count), len(known)
