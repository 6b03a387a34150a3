"""Ridge regression on landmarks: normal equations beside singular values; rows in pieces."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer import linalg
from mercer.methods.machines import _ridge_landmarks as ours
from mercer.methods.machines._ridge import merged_rows
from mercer.methods.machines._ridge_landmarks import LandmarkSolution, fit_ridge_landmarks
from mercer.methods.machines._ridge_path import RidgePath

KERNEL = mc.Gaussian(0.7)


def problem(rng, n=2500, n_landmarks=60):
    """More rows than a block has; some of them twice."""
    X = rng.normal(size=(n, 2))
    X[-100:] = X[:100]
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] + 100.0]) + 0.1 * rng.normal(size=(n, 2))
    rows = merged_rows(X, Y, rng.uniform(0.1, 3.0, n))
    return linalg.nystrom(KERNEL, X[rows.index], n_landmarks, random_state=0), rows


def on_path(low, rows, penalty, free):
    path = RidgePath.of_features(
        low.factor, rows.targets, rows.weights, fit_intercept=free, scatter=rows.scatter
    )
    return LandmarkSolution.of(low, rows, penalty, path, fit_intercept=free)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e5])
def test_a_given_penalty_has_the_solution_of_the_path(penalty, free, rng, monkeypatch):
    low, rows = problem(rng)
    expected = on_path(low, rows, penalty, free)
    monkeypatch.setattr(ours, "RidgePath", None)  # it is not needed
    found = LandmarkSolution.of(low, rows, penalty, None, fit_intercept=free)
    size = np.abs(expected.coef).max()
    assert_allclose(found.coef, expected.coef, atol=1e-8 * size)
    assert_allclose(found.leave_one_out, expected.leave_one_out, rtol=1e-8, atol=1e-10)
    assert_allclose(found.second, expected.second, atol=1e-12 * np.trace(expected.second))
    fit, other = (fit_ridge_landmarks(low, s, rows) for s in (found, expected))
    assert_allclose(fit.certificate.primal, other.certificate.primal, rtol=1e-12)
    assert fit.certificate.relative_gap < 1e-12
    assert_allclose(fit.intercept, other.intercept, atol=1e-8)  # targets are near 100


@pytest.mark.parametrize("penalty", [0.0, 1e-9])
def test_the_condition_of_the_problem_is_not_squared(penalty, rng):
    low, rows = problem(rng, 300)
    found = LandmarkSolution.of(low, rows, penalty, None, fit_intercept=True)
    expected = on_path(low, rows, penalty, True)
    assert np.array_equal(found.coef, expected.coef)
    assert np.array_equal(found.leave_one_out, expected.leave_one_out)


def test_leaving_out_rows_by_refitting(rng):
    low, rows = problem(rng, 40, 8)
    Y, w, keep = rows.targets, rows.weights, np.arange(len(rows.weights)) != 5
    found = LandmarkSolution.of(low, rows, 0.3, None, fit_intercept=True)
    Z, mean = low.factor[keep], w[keep] @ low.factor[keep] / w[keep].sum()
    F = Z - mean
    right = F.T @ (w[keep, None] * Y[keep])
    theta = np.linalg.solve((F.T * w[keep]) @ F + 0.3 * np.eye(low.rank), right)
    prediction = w[keep] @ Y[keep] / w[keep].sum() + (low.factor[5] - mean) @ theta
    assert_allclose(found.leave_one_out[5], Y[5] - prediction, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_pieces_have_the_same_solution(weighted, rng):
    """The features of 9,000 rows, in blocks on the threads, beside all of them in memory."""
    X = rng.normal(size=(9000, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=9000)
    w = rng.uniform(0.5, 2.0, 9000) if weighted else None
    model = mc.KernelRidge(KERNEL, penalty=0.5, n_landmarks=40, random_state=0)
    whole = model.fit(X, y, w).predict(X[:50])
    with mc.options(working_memory=0.1):
        pieces = model.fit(X, y, w)
        assert model.certificate_.relative_gap < 1e-10
        with pytest.raises(mc.InputError, match="in pieces"):
            model.loo_residuals()
    assert_allclose(pieces.predict(X[:50]), whole, rtol=1e-6, atol=1e-8)
