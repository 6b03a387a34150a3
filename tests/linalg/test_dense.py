"""Newton's steps, singular values of tall matrices, triangular systems."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.linalg._blocked_products import thin_svd
from mercer.linalg._dense import saddle_free_steps, solve_rows


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


@pytest.mark.parametrize(("n", "r"), [(1, 1), (5, 9), (300, 1), (700, 60), (20_000, 3), (5000, 40)])
@pytest.mark.parametrize("rank", [None, 1])
def test_singular_values_of_tall_matrices(n, r, rank, rng):
    F = rng.normal(size=(n, r)) * np.logspace(0.0, -12.0, r)
    if rank:
        F = np.outer(F[:, 0], F[0])
    U, s, V = thin_svd(F.copy())
    k = min(n, r)
    assert U.shape == (n, k)
    assert_allclose(U * s @ V.T, F, rtol=0.0, atol=1e-13 * np.abs(F).max() * np.sqrt(n))
    assert_allclose(V.T @ V, np.eye(k), atol=1e-13)
    assert_allclose(U.T @ U, np.eye(k), atol=1e-13)
    assert_allclose(s, np.linalg.svd(F, compute_uv=False), rtol=0.0, atol=1e-14 * s[0] * r)


@pytest.mark.parametrize(("m", "r"), [(1, 1), (7, 40), (2000, 30)])
def test_rows_of_triangular_systems(m, r, rng):
    T, C = np.tril(rng.normal(size=(r, r))) + 3.0 * np.sqrt(r) * np.eye(r), rng.normal(size=(m, r))
    expected = np.linalg.solve(T, C.T).T
    whole = np.vstack([C, C])
    solve_rows(T + np.triu(np.ones((r, r)), 1), whole[:m])  # above the diagonal nothing is read
    assert_allclose(whole[:m], expected, rtol=1e-10, atol=1e-12)
    assert np.array_equal(whole[m:], C)
