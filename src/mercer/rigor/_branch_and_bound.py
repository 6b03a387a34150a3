"""Branch and bound over boxes: examine a batch, drop what is decided, cut the rest in two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mercer._array import Array


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes low <= x <= high, shape (m, d), each with a lower bound of what it may hold."""

    low: Array
    high: Array
    bound: Array

    @classmethod
    def root(cls, low: Array, high: Array) -> Boxes:
        """A single box about which nothing is known."""
        return cls(low[None], high[None], np.full(1, -np.inf))

    @classmethod
    def joined(cls, parts: Sequence[Boxes]) -> Boxes:
        """The boxes of several lists, one after the other."""
        rows = ((p.low, p.high, p.bound) for p in parts)
        return cls(*(np.concatenate(x) for x in zip(*rows, strict=True)))

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, rows: Array | slice) -> Boxes:
        return Boxes(self.low[rows], self.high[rows], self.bound[rows])

    @property
    def centres(self) -> Array:
        """The middle of each box."""
        return np.clip(self.low + (self.high - self.low) / 2, self.low, self.high)

    def halved(self, scale: Array) -> tuple[Boxes, Boxes]:
        """Each box cut across its longest side, in scaled lengths; and those that are too thin.

        Halves are side by side, so that neighbours in the list are neighbours in space.
        """
        rows = np.arange(len(self))
        side = np.argmax((self.high - self.low) * scale, axis=1) if len(self) else rows
        middle = self.centres[rows, side]
        cuts = (middle > self.low[rows, side]) & (middle < self.high[rows, side])
        whole, side, middle = self[cuts], side[cuts], middle[cuts]
        low, high = np.repeat(whole.low, 2, axis=0), np.repeat(whole.high, 2, axis=0)
        at = 2 * np.arange(len(whole))
        high[at, side], low[at + 1, side] = middle, middle
        return Boxes(low, high, np.repeat(whole.bound, 2)), self[~cuts]


def branch_and_bound(
    root: Boxes,
    examine: Callable[[Boxes], Boxes],
    scale: Array,
    *,
    max_boxes: int,
    batch: int,
    start: int = 1,
    ceiling: Callable[[], float] = lambda: np.inf,
) -> tuple[Boxes, int]:
    """Examine boxes until none is left, the most promising ones first.

    Parameters
    ----------
    root : Boxes
    examine : callable
        Takes a batch and returns what is still open of it, with better bounds: those are halved.
    scale : array of shape (d,)
        Lengths along the axes are multiplied by these; 0 along axes that are not cut.
    max_boxes, batch : int
        Boxes to examine in all, and at a time.
    start : int
        The root is cut into at least so many boxes first.
    ceiling : callable
        Boxes with a bound of at least this are dropped.

    Returns
    -------
    (Boxes, int)
        The boxes that are left undecided (too many, or too thin to cut), and how many were
        examined.
    """
    queue, left, count = root, [], 0
    while 0 < len(queue) < start:
        halves, thin = queue.halved(scale)
        if len(thin):
            break
        queue = halves
    while len(queue):
        queue = queue[queue.bound < ceiling()]
        if count >= max_boxes:
            left.append(queue)
            break
        now = min(batch, max_boxes - count)
        chosen = np.zeros(len(queue), dtype=bool)
        chosen[_lowest(queue.bound, now)] = True
        count += int(np.count_nonzero(chosen))
        halves, thin = examine(queue[chosen]).halved(scale)
        left.append(thin)
        queue = Boxes.joined([queue[~chosen], halves])
    return Boxes.joined([root[:0], *left]), count


def _lowest(bound: Array, count: int) -> Array | slice:
    """The places of the lowest bounds; the first ones, where nothing is known."""
    if count >= len(bound) or np.isneginf(bound).all():
        return slice(0, count)
    return np.argpartition(bound, count)[:count]
