"""Connected regions of an image: join similar neighbours, merge small regions."""

from __future__ import annotations

import heapq

import numpy as np

from mercer._array import Array
from mercer.methods._rows import connected, followed, renumbered, row_squares


def joined_regions(ends: Array, shape: tuple[int, ...], join: float) -> Array:
    """Number the regions of pixels that are connected by close neighbours, shape (h, w).

    Neighbouring pixels are close if their `ends` (one point per pixel, row by row) are at most
    `join` apart.
    """
    a, b = _neighbours(np.arange(len(ends)).reshape(shape))
    close = np.linalg.norm(ends[a] - ends[b], axis=1) <= join
    return connected(a[close], b[close], len(ends)).reshape(shape)


def without_small_regions(
    regions: Array, values: Array, min_size: int
) -> tuple[Array, Array, Array]:
    """Merge regions of fewer than `min_size` pixels into others, the smallest first.

    Each is merged into the adjacent region with the nearest mean colour, which is then updated.
    Returns labels, colours and counts of shapes (h, w), (k, channels), (k,), the largest region
    first.
    """
    flat = regions.ravel()
    k = int(flat.max()) + 1
    counts = np.bincount(flat, minlength=k)
    sums = np.column_stack([np.bincount(flat, column, k) for column in values.T])
    owner = _owners(counts, sums, _adjacent(regions, k), min_size)
    kept, labels = np.unique(owner[flat], return_inverse=True)
    order = np.argsort(-counts[kept], kind="stable")
    labels, kept = renumbered(labels, order, len(kept)), kept[order]
    colours = sums[kept] / counts[kept, None]
    return labels.reshape(regions.shape), colours, counts[kept]


def _owners(counts: Array, sums: Array, beside: list[set[int]], min_size: int) -> Array:
    """The region that each one was merged into; updates counts and sums."""
    owner = np.arange(len(counts))
    queue = [(int(counts[r]), r) for r in np.flatnonzero(counts < min_size).tolist()]
    heapq.heapify(queue)
    while queue:
        size, r = heapq.heappop(queue)
        if owner[r] != r or counts[r] != size or not beside[r]:
            continue  # merged, grown since, or the whole image
        near = sorted(beside[r])
        gap = sums[near] / counts[near, None] - sums[r] / counts[r]
        to = near[int(np.argmin(row_squares(gap)))]
        owner[r] = to
        counts[to] += counts[r]
        sums[to] += sums[r]
        for other in beside[r]:
            beside[other].discard(r)
            if other != to:
                beside[other].add(to)
                beside[to].add(other)
        if counts[to] < min_size:
            heapq.heappush(queue, (int(counts[to]), to))
    return followed(owner)


def _adjacent(regions: Array, k: int) -> list[set[int]]:
    a, b = _neighbours(regions)
    low, high = np.minimum(a, b), np.maximum(a, b)
    pairs = np.unique(low.astype(np.int64)[low != high] * k + high[low != high])
    beside: list[set[int]] = [set() for _ in range(k)]
    for i, j in zip((pairs // k).tolist(), (pairs % k).tolist(), strict=True):
        beside[i].add(j)
        beside[j].add(i)
    return beside


def _neighbours(image: Array) -> tuple[Array, Array]:
    """Pairs of adjacent entries: to the right, and below."""
    a = np.concatenate([image[:, :-1].ravel(), image[:-1].ravel()])
    b = np.concatenate([image[:, 1:].ravel(), image[1:].ravel()])
    return a, b
