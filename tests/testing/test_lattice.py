"""Lattices, and the surface of the conformance kit."""

import numpy as np
import pytest

import mercer as mc
from mercer.testing import lattice
from mercer.testing._lattice import cloud


def test_lattice():
    X = lattice(3, 4, 0.5)
    assert X.shape == (64, 3)
    assert np.array_equal(np.unique(X), [0.0, 0.5, 1.0, 1.5])
    assert np.unique(X, axis=0).shape == (64, 3)
    with pytest.raises(mc.InputError, match=r"step must be > 0, got -1.0"):
        lattice(1, 2, -1.0)
    with pytest.raises(mc.InputError, match=r"side must be an integer >= 1, got 0"):
        lattice(1, 0)


def test_clouds_in_a_small_ball(rng):
    k = mc.kernels.Geometric(0.5)
    narrow = k.transform(mc.Scales([0.01, 0.5, 0.01, 30.0, 30.0, 0.5, 2.0]))
    assert cloud(k + narrow, 7, rng).shape == (8, 7)


@pytest.mark.parametrize("scale", [0.01, 0.5, 1.0])
def test_points_are_near_enough_to_0_for_kernels_that_grow(scale):
    kernel = mc.Exponential(scale).transform(mc.Scales([0.01, 1.0]))
    X = cloud(kernel, 2, np.random.default_rng(0))
    assert kernel(X).max() < 1e30
