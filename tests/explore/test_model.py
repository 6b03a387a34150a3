"""What the page shows, against mercer's own functions, naive loops and closed forms."""

import numpy as np
import pytest

import mercer as mc
from mercer.explore import Table
from mercer.explore._model import (
    KERNELS,
    Grid,
    ascent,
    compare,
    grid_peaks,
    landscape,
    make_kernel,
    projected,
    quick_landscape,
    usual_bandwidth,
)
from mercer.explore._table import sample

SIZES = (60, 50, 40)
CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 700.0]])


@pytest.fixture
def rows(rng):
    """Three groups of different sizes; the columns have different units."""
    parts = [
        c + rng.normal(size=(n, 2)) * [1.0, 100.0] for c, n in zip(CENTRES, SIZES, strict=True)
    ]
    return sample(Table("a.csv", ("x", "y"), np.concatenate(parts)), (0, 1))


@pytest.fixture
def column(rows):
    return sample(Table("a.csv", ("x",), rows.X[:, :1]), (0,))


def test_bandwidths_are_in_standard_deviations(rows):
    kernel = make_kernel("gaussian", 0.5, rows)
    grid = Grid.around([rows], fine=False)
    Z = rows.X / rows.spread
    expected = mc.kernel_density(mc.Gaussian(0.5), Z)(grid.nodes / rows.spread)
    found = quick_landscape(rows, kernel, grid).density
    assert found == pytest.approx(expected / rows.spread.prod(), rel=1e-10)


@pytest.mark.parametrize("name", KERNELS)
def test_densities_integrate_to_one(name, column):
    grid = Grid(column.X.min(axis=0) - 40.0, column.X.max(axis=0) + 40.0, 2001)
    kernel = make_kernel(name, usual_bandwidth(name, column), column)
    values = quick_landscape(column, kernel, grid).density
    assert np.trapezoid(values, grid.nodes[:, 0]) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("fine", [False, True])
def test_grids_hold_all_rows_of_all_samples(fine, rows, rng):
    other = sample(Table("b.csv", ("x", "y"), rows.X + np.array([3.0, -500.0])), (0, 1))
    grid = Grid.around([rows, other], fine)
    X = np.concatenate([rows.X, other.X])
    assert (grid.low < X.min(axis=0)).all()
    assert (grid.high > X.max(axis=0)).all()
    assert grid.nodes[0] == pytest.approx(grid.low)
    assert grid.nodes[grid.size] - grid.nodes[0] == pytest.approx(
        [(grid.high[0] - grid.low[0]) / (grid.size - 1), 0.0]
    )
    nearest = np.linalg.norm((X[:, None] - grid.nodes) / (grid.high - grid.low), axis=2).argmin(1)
    assert (grid.nearest(X) == nearest).all()


@pytest.mark.parametrize("name", ["gaussian", "matern"])
@pytest.mark.parametrize("factor", [0.3, 1.0, 8.0])
def test_modes_are_those_of_mean_shift(name, factor, rows):
    kernel = make_kernel(name, factor * usual_bandwidth(name, rows), rows)
    found = landscape(rows, kernel, Grid.around([rows], fine=False), seconds=60.0)
    expected = mc.mean_shift(mc.kernel_density(kernel, rows.X))
    assert found.exact
    # modes of the same number of rows may come in another order
    assert found.modes[found.rows] == pytest.approx(
        expected.points[expected.labels], rel=1e-4, abs=1e-4
    )
    assert found.heights[found.rows] == pytest.approx(expected.density[expected.labels])
    assert (np.diff(np.bincount(found.rows, minlength=len(found.modes))) <= 0).all()
    assert found.proved.all()


def test_basins_are_those_of_mean_shift(rows):
    kernel = make_kernel("gaussian", 0.3, rows)
    grid = Grid.around([rows], fine=False)
    found = landscape(rows, kernel, grid, seconds=60.0)
    expected = mc.mean_shift(mc.kernel_density(kernel, rows.X), grid.nodes)
    assert found.modes[found.basins] == pytest.approx(
        expected.points[expected.labels], rel=1e-4, abs=1e-4
    )


def test_the_quick_landscape_agrees_where_modes_are_far_apart(rows):
    kernel = make_kernel("gaussian", usual_bandwidth("gaussian", rows), rows)
    coarse, fine = Grid.around([rows], fine=False), Grid.around([rows], fine=True)
    quick, exact = quick_landscape(rows, kernel, coarse), landscape(rows, kernel, fine, 60.0)
    assert len(quick.modes) == len(exact.modes) == 3
    cell = (coarse.high - coarse.low) / (coarse.size - 1)
    assert (np.abs(quick.modes - exact.modes) <= 2.0 * cell).all()
    assert (quick.rows == exact.rows).mean() > 0.97
    assert not quick.proved.any()
    assert not quick.exact


def test_without_time_the_grid_decides(rows):
    kernel = make_kernel("laplace", usual_bandwidth("laplace", rows), rows)
    grid = Grid.around([rows], fine=False)
    found = landscape(rows, kernel, grid, seconds=0.0)
    assert not found.exact
    assert (found.basins >= 0).all()
    assert len(found.modes) >= 1


def naive_peaks(values):
    """Climb from each node to the steepest neighbour, one node at a time."""
    tops = {}
    for start in np.ndindex(values.shape):
        here = start
        while True:
            around = [tuple(np.add(here, s) - 1) for s in np.ndindex((3,) * values.ndim)]
            inside = [
                n for n in around
                if n != here and all(0 <= i < m for i, m in zip(n, values.shape, strict=True))
            ]  # fmt: skip
            rise = [(values[n] - values[here]) / np.linalg.norm(np.subtract(n, here))
                    for n in inside]  # fmt: skip
            if max(rise) <= 0:
                break
            here = inside[int(np.argmax(rise))]
        tops[start] = np.ravel_multi_index(here, values.shape)
    return np.array(list(tops.values()))


@pytest.mark.parametrize("shape", [(40,), (9, 9)])
def test_grid_peaks_against_a_loop(shape, rng):
    values = rng.normal(size=shape)
    assert (grid_peaks(values) == naive_peaks(values)).all()


def test_a_flat_top_is_one_peak():
    values = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.5, 1.0, 0.0]])
    assert len(np.unique(grid_peaks(values)[np.flatnonzero(values)])) == 1


@pytest.mark.parametrize("name", KERNELS)
def test_an_ascent_is_mean_shift(name, rows):
    """Against the plain iteration: the mean of the rows, weighted with -k'."""
    kernel = make_kernel(name, usual_bandwidth(name, rows), rows)
    point = np.array([3.1, 330.0])
    path = ascent(rows, kernel, point).history.points[:, 0]
    h, Z = usual_bandwidth(name, rows), rows.X / rows.spread
    weight = {  # proportional to -k' of the squared distance r^2
        "gaussian": lambda r: np.exp(-0.5 * (r / h) ** 2),
        "laplace": lambda r: np.exp(-r / h) / r,
        "matern": lambda r: np.exp(-np.sqrt(3.0) * r / h),
    }[name]
    x = point / rows.spread
    for step in path[1:6]:
        w = weight(np.linalg.norm(Z - x, axis=1))
        x = w @ Z / w.sum()
        assert step == pytest.approx(x * rows.spread, rel=1e-8)
    heights = mc.kernel_density(kernel, rows.X)(path)
    assert (np.diff(heights) >= -1e-12 * heights.max()).all()


def test_an_ascent_ends_at_the_mode_of_its_basin(rows):
    kernel = make_kernel("gaussian", 0.3, rows)
    end = ascent(rows, kernel, np.array([1.0, 120.0])).points
    expected = mc.mean_shift(mc.kernel_density(kernel, rows.X), [[1.0, 120.0]]).points
    assert end == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_preimages_are_those_of_kernel_pca(rows):
    kernel = make_kernel("gaussian", 0.5, rows)
    point = np.array([2.0, 100.0])
    plane = mc.kernel_pca(kernel, rows.X, 4)
    expected = mc.preimage(plane.project(mc.feature(kernel, [point])), start=[point])
    found = projected(rows, kernel, point, 4)
    assert found.points == pytest.approx(expected.points, rel=1e-6)
    assert found.distance == pytest.approx(expected.distance, rel=1e-6)


def test_a_row_in_the_span_is_its_own_preimage(rng):
    rows = sample(Table("a.csv", ("x", "y"), rng.normal(size=(12, 2))), (0, 1))
    found = projected(rows, make_kernel("gaussian", 1.0, rows), rows.X[3], 11)
    assert found.points[0] == pytest.approx(rows.X[3], abs=1e-6)
    assert found.distance[0] == pytest.approx(0.0, abs=1e-6)


def test_the_witness_is_the_difference_of_means(rows):
    other = sample(Table("b.csv", ("x", "y"), rows.X[::2] + np.array([1.0, 0.0])), (0, 1))
    kernel = make_kernel("laplace", 0.5, rows)
    at = np.array([[0.0, 0.0], [3.0, 300.0]])

    def mean(X):
        return np.mean(
            [np.exp(-np.linalg.norm((at - x) / rows.spread, axis=1) / 0.5) for x in X], axis=0
        )

    found = mc.methods.witness(kernel, rows.X, other.X)(at)
    assert found == pytest.approx(mean(rows.X) - mean(other.X), abs=1e-12)


def test_the_comparison_is_that_of_the_library(rng):
    X, Y = rng.normal(size=(40, 2)), rng.normal(0.7, 1.0, size=(50, 2)) * [1.0, 30.0]
    first, second = (Table("t", ("x", "y"), Z) for Z in (X, Y))
    spread = np.concatenate([X, Y]).std(axis=0)
    expected = mc.mmd_test(X / spread, Y / spread, random_state=0)
    assert compare(first, second, (0, 1)).pvalue == expected.pvalue
