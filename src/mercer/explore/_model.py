"""The page's computations as pure functions: landscapes, ascents, pre-images, witnesses, tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from mercer._array import Array
from mercer.explore._table import Sample, Table, sample, spread
from mercer.kernels import Gaussian, Kernel, Laplace, Matern, Scales
from mercer.methods import (
    TestResult,
    density_scale,
    kernel_density,
    kernel_pca,
    mean_shift,
    mmd_test,
)
from mercer.methods._rows import followed, nearest, renumbered
from mercer.preimages import FixedPoint, PreImage, preimage
from mercer.space import feature, mean_embedding

KERNELS: dict[str, Callable[[float], Kernel]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "matern": partial(Matern, 1.5),
}
QUICK, FINE = {1: 256, 2: 56}, {1: 512, 2: 80}  # nodes of the grid along each axis, by dimension
SECONDS = 6.0  # of processor time for mean shift; Laplace kernels of many rows need more
STEPS = 300  # of one ascent
TEST_ROWS = 1000  # of each sample; the test then takes a few seconds
_LANDMARKS = 200  # rows that span the principal subspace, so that eigenvectors are found quickly


def make_kernel(name: str, bandwidth: float, rows: Sample) -> Kernel:
    """The kernel with this length scale, in standard deviations of the columns."""
    return KERNELS[name](bandwidth).transform(Scales(rows.spread))


def usual_bandwidth(name: str, rows: Sample) -> float:
    """The bandwidth in the middle of the slider: best for the modes of normal data."""
    return density_scale(rows.X / rows.spread, rule="modes", kernel=KERNELS[name](1.0))


@dataclass(frozen=True, eq=False)
class Grid:
    """Equally spaced nodes of an interval or a rectangle."""

    low: Array
    high: Array
    size: int  # nodes along each axis

    @classmethod
    def around(cls, samples: list[Sample], fine: bool) -> Grid:
        """A grid that holds all rows, with a margin."""
        X = np.concatenate([rows.X for rows in samples])
        low, high = X.min(axis=0), X.max(axis=0)
        margin = 0.08 * (high - low)
        return cls(low - margin, high + margin, (FINE if fine else QUICK)[X.shape[1]])

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,) * len(self.low)

    @property
    def nodes(self) -> Array:
        """Shape (size^d, d); the last coordinate changes fastest."""
        axes = np.linspace(self.low, self.high, self.size).T
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def nearest(self, X: Array) -> Array:
        """The number of the node nearest to each row."""
        cells = np.rint((X - self.low) / (self.high - self.low) * (self.size - 1)).astype(int)
        cells = np.clip(cells, 0, self.size - 1)
        return np.asarray(np.ravel_multi_index(tuple(cells.T), self.shape))


@dataclass(frozen=True, eq=False)
class Landscape:
    """A density on a grid, its modes (most rows first), and which nodes and rows reach them."""

    density: Array  # at the nodes
    basins: Array  # the mode of each node; -1 where the density is zero
    rows: Array  # the mode of each row; -1 where it is not known
    modes: Array  # shape (k, d)
    heights: Array  # the density at the modes
    proved: Array  # whether each mode is proved to be one
    exact: bool  # whether modes are those of mean shift, not of the grid


def quick_landscape(rows: Sample, kernel: Kernel, grid: Grid) -> Landscape:
    """The landscape at the resolution of the grid: every node climbs to its highest neighbour."""
    f = kernel_density(kernel, rows.X)
    values = np.asarray(f(grid.nodes))
    top = grid_peaks(values.reshape(grid.shape))
    peaks, basins = np.unique(np.where(values[top] > 0.0, top, -1), return_inverse=True)
    if peaks[0] == -1:
        peaks, basins = peaks[1:], basins - 1
    reached = basins[grid.nearest(rows.X)]
    unproved = np.zeros(len(peaks), dtype=bool)
    return _numbered(
        values, basins, reached, grid.nodes[peaks], values[peaks], unproved, exact=False
    )


def landscape(rows: Sample, kernel: Kernel, grid: Grid, seconds: float = SECONDS) -> Landscape:
    """The landscape by mean shift from every row and every node.

    Nodes that have not arrived after this many seconds of processor time get the mode nearest to
    the peak that they reach on the grid.
    """
    f = kernel_density(kernel, rows.X)
    nodes, n = grid.nodes, len(rows.X)
    values = np.asarray(f(nodes))
    end = time.process_time() + seconds
    found = mean_shift(
        f, np.concatenate([rows.X, nodes]), callback=lambda _: time.process_time() > end
    )
    reached, basins = found.labels[:n], found.labels[n:].copy()
    lost = np.flatnonzero((basins < 0) & (values > 0.0))
    if len(lost) and not len(found):
        return quick_landscape(rows, kernel, grid)
    if len(lost):
        top = nodes[grid_peaks(values.reshape(grid.shape))[lost]]
        basins[lost] = nearest(found.points / rows.spread, top / rows.spread)[1]
    exact = bool((reached >= 0).all())
    return _numbered(
        values, basins, reached, found.points, found.density, found.proved, exact=exact
    )


def grid_peaks(values: Array) -> Array:
    """The number of the node that each node reaches by steps to its steepest neighbour.

    Among equal values the node with the larger number counts as higher, so that a flat top is one
    peak.
    """
    number = np.arange(values.size).reshape(values.shape)
    around = np.pad(values, 1, constant_values=-np.inf)
    numbers = np.pad(number, 1)
    slope, target = np.zeros(values.shape), number.copy()
    for step in product((-1, 0, 1), repeat=values.ndim):
        if not any(step):
            continue
        there = tuple(slice(1 + s, 1 + s + m) for s, m in zip(step, values.shape, strict=True))
        rise = (around[there] - values) / np.linalg.norm(step)
        higher = (rise > slope) | ((rise == slope) & (numbers[there] > target))
        slope, target = np.where(higher, rise, slope), np.where(higher, numbers[there], target)
    return followed(target.ravel())


def _numbered(
    density: Array, basins: Array, rows: Array, modes: Array, heights: Array, proved: Array,
    *, exact: bool,
) -> Landscape:  # fmt: skip
    """Number the modes by the rows that reach them."""
    k = len(modes)
    counts = np.bincount(rows[rows >= 0], minlength=k)
    order = np.lexsort((-heights, -counts))
    rows, basins = renumbered(rows, order, k), renumbered(basins, order, k)
    return Landscape(density, basins, rows, modes[order], heights[order], proved[order], exact)


def ascent(rows: Sample, kernel: Kernel, point: Array) -> PreImage:
    """The path of mean shift from a point, which is the fixed point of the mean embedding."""
    mean = mean_embedding(kernel, rows.X)
    plain = FixedPoint(max_iter=STEPS, safeguard=False)  # with weights >= 0 every step goes up
    return preimage(mean, plain, start=point[None], history=True)


def projected(rows: Sample, kernel: Kernel, point: Array, n_components: int) -> PreImage:
    """The pre-image of the point's projection on kernel principal components."""
    landmarks = _LANDMARKS if len(rows.X) > _LANDMARKS else None
    plane = kernel_pca(kernel, rows.X, n_components, n_landmarks=landmarks, random_state=0)
    return preimage(plane.project(feature(kernel, point[None])), start=point[None])


def compare(first: Table, second: Table, columns: tuple[int, ...]) -> TestResult:
    """Test whether two samples differ, as `mercer test two-sample` does."""
    samples = [sample(table, columns, TEST_ROWS).X for table in (first, second)]
    unit = spread(np.concatenate(samples))
    return mmd_test(*(X / unit for X in samples), random_state=0)
