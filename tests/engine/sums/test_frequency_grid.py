"""Grids of frequencies: the kernel on a box, a bound on the error, and when a grid is refused."""

import time

import numpy as np
import pytest

import mercer as mc
from mercer.engine.sums._frequency_grid import grid_for
from mercer.engine.sums._spectral import SpectralSum
from tests.engine.sums.test_spectral import KERNELS, at_zero, finufft

pytestmark = finufft


@pytest.mark.parametrize("name", KERNELS)
def test_a_grid_stands_for_the_kernel_on_its_box(name, rng):
    program = KERNELS[name].program
    X = rng.normal(size=(200, 2))
    low, high = X.min(axis=0), X.max(axis=0) + 0.1
    grid = grid_for(program, low, high, 1e-6)
    assert np.all(np.array(grid.weights.shape) % 2 == 1)
    assert np.all(high - low < grid.period)
    np.testing.assert_allclose(grid.centre, (low + high) / 2)
    corners = np.array([low, high, [low[0], high[1]]])
    value = SpectralSum(program, corners[:1], np.ones((1, 1)), grid).fields(corners).value[:, 0]
    exact = KERNELS[name](corners, corners[:1])[:, 0]
    k0 = at_zero(KERNELS[name], 2)
    assert np.all(np.abs(value - exact) <= 1e-6 * k0)
    assert grid.error <= 1e-6 * k0
    np.testing.assert_allclose(grid.weights, grid.weights[::-1, ::-1], atol=1e-12 * k0)


def test_smaller_tolerances_need_larger_grids():
    program, low, high = mc.Matern(2.5, 0.5).program, np.full(2, -1.0), np.full(2, 1.0)
    sizes = [grid_for(program, low, high, t).weights.size for t in (1e-2, 1e-4, 1e-6)]
    assert sizes[0] < sizes[1] < sizes[2]
    assert grid_for(program, low, high, 1e-6, most=100) is None


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", ["narrow", "product", "rational"])
def test_a_grid_that_would_be_too_large_is_refused_quickly(name, d):
    """Before it is computed: choosing an engine must not take longer than the sum."""
    low, high = np.full(d, -1e3), np.full(d, 1e3)
    start = time.process_time()
    assert grid_for(KERNELS[name].program, low, high, 1e-6, most=1e3) is None
    assert time.process_time() - start < 1.0


def test_a_slow_spectrum_falls_back_to_samples(rng):
    """A grid from the density would be too large; one that bends the axes is not."""
    low, high = np.full(3, -3.0), np.full(3, 3.0)
    assert grid_for(mc.RationalQuadratic(1.5, 1.0).program, low, high, 1e-3) is not None
