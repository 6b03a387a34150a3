"""The Jaccard kernel of sets, and inner products of feature counts, which strings use too."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from mercer._array import Array, real
from mercer.exceptions import InputError
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._parameters import checked
from mercer.kernels._precomputed import OfBlocks
from mercer.kernels.structured._domains import Sets

_TABLE = 1 << 20  # things that are numbered by a table; more are ranked by sorting
_DENSE = 4096  # things of which a dense matrix may be made
_GAIN = 25.0  # an entry of a BLAS product is this much cheaper than one of a sparse product
_REPEATED = 16.0  # coincidences per pair above which equal things of a point are merged


def _zero_or_one(value: Any, name: str) -> float:
    number = real(value, name)
    if number not in (0.0, 1.0):
        raise InputError(f"{name} must be 1 or 0, got {number!r}")
    return number


@dataclass(frozen=True)
@checked(empty=_zero_or_one)
class Jaccard(OfBlocks):
    """Jaccard kernel k(A, B) = |A n B| / |A u B| of finite sets.

    Points are sets, or lists, tuples or arrays of hashable elements, in which repetitions do not
    count. k is positive definite: it is the probability that a random order of all elements puts
    the same one first in A and in B. Source: Rudi and Gaillard 2021, section 2, where two empty
    sets are left undefined.

    Parameters
    ----------
    empty : {1, 0}, default=1
        The value of k for two empty sets, which the formula leaves open: 1 makes k(A, A) = 1 for
        all sets, 0 gives the empty set the feature zero. Either way k(A, B) = 0 if just one is
        empty.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Jaccard()([{"tea", "milk"}, {"milk"}, set()])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    empty: float = 1.0

    flags = Flags(Definiteness.POSITIVE)
    domain = Sets()

    def _block(self, X: Any, Y: Any = None) -> Array:
        if Y is None:
            return np.where(_sizes(X) > 0, 1.0, self.empty)
        sizes_x, sizes_y = _sizes(X), _sizes(Y)
        number = {element: i for i, element in enumerate(frozenset().union(*Y))}
        common = inner_products(
            _counts(X, sizes_x, number), _counts(Y, sizes_y, number), len(number)
        )
        union = sizes_x[:, None] + sizes_y[None, :] - common
        return np.asarray(np.where(union > 0, common / np.maximum(union, 1.0), self.empty))


def _sizes(X: Any) -> Array:
    return np.fromiter(map(len, X), dtype=np.int64, count=len(X))


def _counts(X: Any, sizes: Array, number: dict[Hashable, int]) -> Counts:
    """The counts of the elements that have a number."""
    found = [number.get(element, -1) for element in chain.from_iterable(X)]
    things = np.array(found, dtype=np.int64)
    known = things >= 0
    return Counts(np.repeat(np.arange(len(X)), sizes)[known], things[known], len(X))


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


def squared_norms(x: Counts, size: int) -> Array:
    counts = x.sparse(size)
    counts.sum_duplicates()
    return np.asarray(counts.power(2).sum(axis=1))


def _ranked(x: Counts, y: Counts) -> tuple[Counts, Counts, int]:
    """Only the features that occur in y, renumbered in their order."""
    known = np.unique(y.things)
    at = np.searchsorted(known, x.things)
    both = known.take(at, mode="clip") == x.things if known.size else np.zeros(at.size, dtype=bool)
    left = Counts(x.rows[both], at[both], x.count)
    return left, Counts(y.rows, np.searchsorted(known, y.things), y.count), len(known)
