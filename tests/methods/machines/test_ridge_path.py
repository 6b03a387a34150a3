"""The path of penalties beside direct solutions: coefficients, GCV, leave-one-out, norms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.methods.machines._ridge import merged_rows
from mercer.methods.machines._ridge_path import RidgePath

KERNEL = mc.Gaussian(0.7)


def problem(rng, n=25):
    X = rng.normal(size=(n, 2))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 3.0, rng.uniform(0.5, 2.0, n)


def smoother(X, w, penalty, intercept, new=None):
    """The matrix H of predictions H y at new points: (K + penalty D^-1) a + c 1 = y, 1'a = 0."""
    n, new = len(X), X if new is None else new
    M = np.zeros((n + intercept, n + intercept))
    M[:n, :n] = KERNEL(X) + penalty * np.diag(1.0 / w)
    M[:n, n:] = M[n:, :n] = 1.0
    K = np.hstack([KERNEL(new, X), np.ones((len(new), int(intercept)))])
    return K @ np.linalg.inv(M)[:, :n]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [1e-2, 1.0, 100.0])
def test_one_decomposition_serves_all_penalties(penalty, intercept, rng):
    X, Y, w = problem(rng)
    path = RidgePath.of(KERNEL, KERNEL.points(X), Y, w, fit_intercept=intercept)
    coef, H = path.coef(penalty), smoother(X, w, penalty, intercept)
    residuals = Y - H @ Y
    assert_allclose(penalty * coef / w[:, None], residuals, atol=1e-9)
    assert path.degrees_of_freedom(penalty) == pytest.approx(np.trace(H), rel=1e-8)
    total = w.sum()
    gcv = (w @ residuals**2 / total) / (1.0 - np.trace(H) / total) ** 2
    assert_allclose(path.gcv_error(penalty), gcv, rtol=1e-8)
    loo = residuals / (1.0 - np.diag(H))[:, None]
    assert_allclose(path.leave_one_out(penalty), loo, rtol=1e-8)
    errors = [w @ path.leave_one_out(p) ** 2 / total for p in path.grid]
    assert_allclose(path.leave_one_out_errors, errors, rtol=1e-12)
    f = mc.Element(KERNEL, X, coef)
    assert path.norm(penalty) == pytest.approx(np.sqrt(np.sum(np.square(f.norm()))), rel=1e-8)


def test_gcv_and_leave_one_out_count_weights_as_rows(rng):
    X, Y, _ = problem(rng)
    w = rng.integers(1, 4, 25)
    again = np.repeat(np.arange(25), w)
    Y_all = Y[again] + rng.normal(size=(len(again), 2))  # copies with different targets
    rows = merged_rows(X[again], Y_all)
    path = RidgePath.of(
        KERNEL,
        KERNEL.points(X[again][rows.index]),
        rows.targets,
        rows.weights,
        scatter=rows.scatter,
    )
    at = 25
    penalty = path.grid[at]
    H = smoother(X[again], np.ones(len(again)), penalty, True)
    residuals = Y_all - H @ Y_all
    gcv = np.mean(residuals**2, axis=0) / (1.0 - np.trace(H) / len(again)) ** 2
    assert_allclose(path.gcv_error(penalty), gcv, rtol=1e-8)
    left = []
    for i in range(25):  # refits without all copies of a row
        rest = np.flatnonzero(again != i)
        H = smoother(X[again][rest], np.ones(len(rest)), penalty, True, X[[i]])
        left.append(Y_all[again == i] - H @ Y_all[rest])
    errors = np.mean(np.concatenate(left) ** 2, axis=0)
    assert_allclose(path.leave_one_out_errors[at], errors, rtol=1e-8)
