"""Transforms of many points, piece by piece: against the sum of exponentials, and their bound."""

from __future__ import annotations

import numpy as np
import pytest

import mercer as mc
from mercer.engine._compiled import core, instruction_set
from mercer.engine._sizes import column_range
from mercer.engine.sums import _spectral, _spread
from mercer.engine.sums._frequency_grid import grid_for
from mercer.engine.sums._spread import SplineGrid, _aliases, spline_grid, spread_modes
from mercer.exceptions import InputError

needs_core = pytest.mark.skipif(core() is None, reason="needs the compiled core")


def modes_of(grid: SplineGrid, X: np.ndarray, a: np.ndarray | None, half: int) -> np.ndarray:
    shape = (2 * half + 1,) * X.shape[1]
    low, period = np.full(X.shape[1], -1.0), np.full(X.shape[1], 2.5)

    def piece(rows: slice) -> tuple[np.ndarray, np.ndarray | None]:
        return X[rows], None if a is None else a[rows]

    return spread_modes(grid, shape, low, period, np.full(X.shape[1], 0.1), len(X), piece)


def naive_modes(X: np.ndarray, a: np.ndarray, half: int) -> np.ndarray:
    axes = [2.0 * np.pi / 2.5 * np.arange(-half, half + 1)] * X.shape[1]
    w = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    phases = np.exp(-1j * (w @ (X.astype(np.float64) - 0.1).T))
    return phases @ a


@needs_core
@pytest.mark.parametrize("isa", ["", "baseline"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [4, 8])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_modes_are_sums_of_exponentials_to_within_the_bound(
    dim, order, dtype, isa, rng, monkeypatch
):
    monkeypatch.setenv("MERCER_ISA", isa)
    monkeypatch.setattr(_spread, "PIECE", 13)
    X = rng.uniform(-1.0, 1.0, size=(50, dim)).astype(dtype)
    a = rng.normal(size=50)
    half, cells = 3, (24, 20, 27)[:dim]
    grid = SplineGrid(cells, order, 0.0)
    bound = 1.0
    for axis, n in enumerate(cells):
        e = _aliases(half, n, order)
        bound = bound * (1.0 + e.reshape([-1 if k == axis else 1 for k in range(dim)]))
    for strengths in (a, None):
        used = np.ones(50) if strengths is None else strengths
        error = np.abs(modes_of(grid, X, strengths, half) - naive_modes(X, used, half))
        assert (error <= np.abs(used).sum() * (bound - 1.0 + 1e-13)).all()
    assert error.max() > 0  # the bound is about something


@needs_core
def test_the_chosen_grid_keeps_its_word_and_costs_no_more_than_needed(rng):
    kernel = mc.Gaussian(0.3)
    grid = grid_for(kernel.program, np.full(2, -1.0), np.full(2, 1.0), 1e-6)
    for error in (1e-3, 1e-6, 1e-9):
        spline = spline_grid(grid.weights, error)
        assert spline.error <= error
        assert min(spline.cells) >= grid.weights.shape[0]
    assert spline_grid(grid.weights, 1e-300) is None


@needs_core
def test_points_outside_of_their_box_are_refused(rng):
    grid = SplineGrid((24, 24), 4, 0.0)
    for bad in (-1.1, 1.6, np.nan, np.inf):
        X = rng.uniform(-1.0, 1.0, size=(40, 2))
        X[37, 1] = bad
        with pytest.raises(InputError, match="left their box"):
            modes_of(grid, X, None, 3)


@needs_core
def test_the_core_checks_what_it_is_given(rng):
    X, two = np.zeros((5, 2)), np.zeros(2)
    run = core().spread64
    for cells, order, size in (([4, 4], 4, 63), ([4, 4], 5, 81), ([4], 4, 8), ([0, 4], 4, 32)):
        with pytest.raises(ValueError):
            run(X, None, two, two, cells, order, np.zeros(size), instruction_set())
    with pytest.raises(ValueError):
        run(X, np.zeros(4), two, two, [4, 4], 4, np.zeros(64), "")


@needs_core
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "kernel", [mc.Gaussian(0.5), mc.Gaussian(1.0).transform(mc.kernels.Scales([0.5, 2.0]))]
)
def test_a_density_of_many_points_is_as_accurate_as_asked(kernel, weighted, dtype, rng):
    X = rng.normal(size=(60_000, 2)).astype(dtype)
    w = rng.uniform(size=len(X)) if weighted else None
    psi = mc.mean_embedding(kernel, X, weights=w)
    Y = rng.normal(size=(400, 2))
    exact = psi(Y)
    made = []
    for tolerance in (1e-4, 1e-8):
        with mc.options(engine="spectral", tolerance=tolerance):
            error = np.abs(psi(Y) - exact).max()
        assert error <= tolerance + (1e-6 if dtype == np.float32 else 1e-15)
        made.append(error)
    assert made[0] > 0


@needs_core
def test_many_points_are_not_copied(rng, monkeypatch):
    def fail(*args):
        raise AssertionError("a transform of all points at once")

    monkeypatch.setattr(_spectral, "transform", fail)
    X = rng.normal(size=(100_000, 2))
    with mc.options(tolerance=1e-4, engine="spectral"):
        assert mc.kernel_density(mc.Gaussian(0.5), X)([[0.0, 0.0]]) == pytest.approx(
            1.0 / (2 * np.pi * 1.25), rel=0.02
        )


@pytest.mark.parametrize("shape", [(1, 1), (7, 2), (1000, 2), (1000, 3), (300, 400)])
def test_column_range(shape, rng):
    for X in (rng.normal(size=shape), np.asfortranarray(rng.normal(size=shape))):
        low, high = column_range(X)
        np.testing.assert_array_equal(low, X.min(axis=0))
        np.testing.assert_array_equal(high, X.max(axis=0))


@needs_core
def test_points_that_differ_in_their_last_digits_are_inside_their_box(rng):
    """Times in seconds since 1970, all within a second: rounding put the box above the first."""
    numbers = rng.integers(10_001, 60_003, 20_000)
    numbers[:2] = 10_001, 60_002
    X = (1.0 + numbers * 2.0**-52)[:, None]
    k = mc.Gaussian(1.0)
    with mc.options(tolerance=1e-6, engine="spectral"):
        values = mc.mean_embedding(k, X)(X[:1000])
    np.testing.assert_allclose(values, 1.0, rtol=1e-6)


@needs_core
def test_grids_have_at_least_as_many_cells_as_a_spline(rng):
    """Else what is folded back would be folded twice."""
    X = np.array([[0.95], [-0.2]])
    for order_of in (1e-6, 1e-3):
        grid = spline_grid(np.array([0.02, 1.0, 0.02]), order_of)
        assert min(grid.cells) >= grid.order
        found = modes_of(grid, X, np.ones(2), 1)
        assert np.abs(found - naive_modes(X, np.ones(2), 1)) @ [0.02, 1.0, 0.02] <= 3 * order_of
