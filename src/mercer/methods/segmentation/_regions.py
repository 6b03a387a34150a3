"""Connected regions of an image: join similar neighbours, merge small regions."""

from __future__ import annotations

import heapq

import numpy as np

from mercer._array import Array


def joined_regions(ends: Array, shape: tuple[int, ...], join: float) -> Array:
    """Number the regions of pixels that are connected by close neighbours.

    Parameters
    ----------
    ends : array of shape (h w, d)
        One point for each pixel, row by row.
    shape : (h, w)
    join : float
        Neighbouring pixels are close if their points are at most this far apart.

    Returns
    -------
    array of int, shape (h, w)
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(ends)
    a, b = _neighbours(np.arange(n).reshape(shape))
    close = np.linalg.norm(ends[a] - ends[b], axis=1) <= join
    a, b = a[close], b[close]
    links = coo_array((np.ones(len(a), dtype=bool), (a, b)), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1]).reshape(shape)


def without_small_regions(
    regions: Array, values: Array, min_size: int
) -> tuple[Array, Array, Array]:
    """Merge regions of fewer than `min_size` pixels into others, the smallest first.

    Each is merged into the adjacent region with the nearest mean colour, which is then updated.

    Returns
    -------
    labels, colours, counts
        Shapes (h, w), (k, channels), (k,), the largest region first.
    """
    flat = regions.ravel()
    k = int(flat.max()) + 1
    counts = np.bincount(flat, minlength=k)
    sums = np.column_stack([np.bincount(flat, column, k) for column in values.T])
    owner = _owners(counts, sums, _adjacent(regions, k), min_size)
    kept, labels = np.unique(owner[flat], return_inverse=True)
    order = np.argsort(-counts[kept], kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    kept = kept[order]
    colours = sums[kept] / counts[kept, None]
    return rank[labels].reshape(regions.shape), colours, counts[kept]


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
        to = near[int(np.argmin(np.einsum("ij,ij->i", gap, gap)))]
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
    while (owner[owner] != owner).any():
        owner = owner[owner]
    return owner


def _adjacent(regions: Array, k: int) -> list[set[int]]:
    """The regions adjacent to each region."""
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
