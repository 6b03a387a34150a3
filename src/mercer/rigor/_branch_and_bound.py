"""Branch and bound: examine a batch of boxes or cells, drop what is decided, cut the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mercer._array import Array

_CELLS, _HALVINGS = 10_000, 60  # of a proof on a line: cells at once, and rounds of halving


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
        rows = ((p.low, p.high, p.bound) for p in parts)
        return cls(*(np.concatenate(x) for x in zip(*rows, strict=True)))

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, rows: Array | slice) -> Boxes:
        return Boxes(self.low[rows], self.high[rows], self.bound[rows])

    @property
    def centres(self) -> Array:
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
    ceiling: Callable[[], float] = lambda: np.inf,
    *,
    max_boxes: int,
    batch: int,
    start: int = 1,
) -> tuple[Boxes, int]:
    """Examine boxes until none is left, the most promising ones first.

    `examine` takes a batch and returns those that are still open, with better bounds; these are cut
    in two, along the longest side in lengths times `scale` (0 along axes that are not cut). Boxes
    with a bound of at least `ceiling()` are dropped. The root is cut into at least `start` boxes
    first, and at most `max_boxes` are examined in all. Returns the boxes that are left undecided
    (too many, or too thin to cut), and how many were examined.
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
        now = min(batch, max_boxes - count, len(queue))
        chosen = np.zeros(len(queue), dtype=bool)
        if now == len(queue) or np.isneginf(queue.bound).all():  # nothing is known
            chosen[:now] = True
        else:
            chosen[np.argpartition(queue.bound, now)[:now]] = True
        count += now
        halves, thin = examine(queue[chosen]).halved(scale)
        left.append(thin)
        queue = Boxes.joined([queue[~chosen], halves])
    return Boxes.joined([root[:0], *left]), count


def negative_up_to(
    upper: Callable[[Array, Array], Array], value: Callable[[Array], Array], edges: Array
) -> tuple[float, float | None]:
    """Prove that a function is negative from edges[0] on, and return how far.

    `upper` bounds it on cells low <= x <= high, at first those between the edges, and `value`
    approximates it at points. Returns the end of the part for which it is proved, and a point at
    which the function is not negative, if one was found.
    """
    low, high = edges[:-1], edges[1:]
    for _ in range(_HALVINGS):
        still = ~(upper(low, high) < 0)
        low, high = low[still], high[still]
        if not len(low):
            return float(edges[-1]), None
        middle = low + (high - low) / 2
        wrong = ~(value(middle) < 0)
        if wrong.any():
            return float(low.min()), float(middle[wrong].min())
        if len(low) > _CELLS:
            break
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return float(low.min()), None
