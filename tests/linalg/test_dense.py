"""Newton's steps with the sizes of the eigenvalues."""

import numpy as np
from numpy.testing import assert_allclose

from mercer.linalg._dense import saddle_free_steps


def test_steps_are_newtons_where_the_hessian_is_definite(rng):
    A = rng.normal(size=(5, 3, 3))
    H, g = A @ np.swapaxes(A, 1, 2) + np.eye(3), rng.normal(size=(5, 3))
    steps, values = saddle_free_steps(g, H, 1e-12)
    assert_allclose(steps, -np.linalg.solve(H, g[:, :, None])[:, :, 0])
    assert_allclose(values, np.linalg.eigvalsh(H))


def test_steps_lead_away_from_saddles_and_stay_finite():
    H = np.array([np.diag([2.0, -0.5]), np.diag([1.0, 0.0]), np.zeros((2, 2))])
    steps = saddle_free_steps(np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]), H, 1e-8)[0]
    assert_allclose(steps, [[-0.5, -2.0], [-1.0, -1e8], [0.0, 0.0]])
