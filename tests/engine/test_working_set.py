"""Small quadratic problems with bounds and fixed sums, in the compiled core and in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.engine._compiled import core
from mercer.methods.machines._working_set import minimise_working_set
from tests.engine.isas import compiled


@pytest.mark.parametrize("engine", [None, "blocked"])
def test_a_working_set_keeps_bounds_and_sums(engine, rng):
    A = rng.normal(size=(12, 12))
    M, linear = A @ A.T, rng.normal(size=12)
    lower, upper = np.full(12, -0.2), np.full(12, 0.3)
    b = np.zeros(12)
    gradient = linear.copy()
    start = np.array([0, 5, 12])
    with mc.options(engine=engine):
        minimise_working_set(M, gradient, b, lower, upper, start, 1e-10, 10_000)
    assert b.min() >= -0.2
    assert b.max() <= 0.3
    assert_allclose([b[:5].sum(), b[5:].sum()], 0.0, atol=1e-15)
    assert_allclose(gradient, M @ b + linear, atol=1e-10)
    for group in (slice(0, 5), slice(5, 12)):
        g, at = gradient[group], b[group]
        assert g[at > -0.2].max() <= g[at < 0.3].min() + 1e-9


@pytest.mark.parametrize("engine", [None, "blocked"])
def test_without_groups_variables_move_alone(engine, rng):
    A = rng.normal(size=(8, 8))
    M, linear = A @ A.T + np.eye(8), rng.normal(size=8)
    b, gradient = np.zeros(8), linear.copy()
    big = np.full(8, 100.0)
    with mc.options(engine=engine):
        steps = minimise_working_set(
            M, gradient, b, -big, big, np.zeros(0, dtype=np.int64), 1e-12, 100_000
        )
    assert steps < 100_000
    assert_allclose(b, np.linalg.solve(M, -linear), atol=1e-9)


@compiled
def test_the_core_checks_its_arrays():
    run = core().minimise_working_set
    M, v, none = np.eye(3), np.zeros(3), np.zeros(0, dtype=np.int64)
    with pytest.raises(ValueError, match="sizes differ"):
        run(M, np.zeros(2), v, v, v, none, 1e-3, 10, "")
    with pytest.raises(ValueError, match="groups must hold all"):
        run(M, v.copy(), v.copy(), v, v, np.array([0, 2]), 1e-3, 10, "")
    with pytest.raises(ValueError, match="must not overlap"):
        run(M, v.copy(), v.copy(), v, v, np.array([0, 2, 1, 3]), 1e-3, 10, "")
