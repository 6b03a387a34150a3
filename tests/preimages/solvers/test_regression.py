"""The learned way back: ridge regression, its leave-one-out error, and what it promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.preimages._constraint import Box, Constraint
from mercer.preimages._objective import Nearest
from mercer.preimages._problem import Problem
from mercer.preimages.solvers._regression import LearnedMap

FREE = Constraint(None, None)


def points_of(solver, psi, constraint=FREE):
    if psi.batch is None:
        psi = mc.Element(psi.kernel, psi.points, psi.coef, 1)
    return solver.solve(Problem(psi, Nearest(), constraint), None).points


def plane_of(kernel, X, dim=None):
    plane = mc.Subspace.span(mc.mean_embedding(kernel, X), mc.feature(kernel, X))
    return plane if dim is None else plane.truncate(min(dim, plane.dim))


def naive_ridge(L, Y, penalty):
    """Intercept and weights from the bordered system."""
    n = len(L)
    system = np.block([[L + penalty * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), 0.0]])
    solved = np.linalg.solve(system, np.concatenate([Y, np.zeros((1, Y.shape[1]))]))
    return solved[-1], solved[:-1]


def naive_leave_one_out(L, Y, penalty):
    """Refit without each point."""
    errors = []
    for i in range(len(L)):
        rest = np.delete(np.arange(len(L)), i)
        m, w = naive_ridge(L[np.ix_(rest, rest)], Y[rest], penalty)
        errors.append(Y[i] - m - L[i, rest] @ w)
    return np.sqrt(np.mean(np.sum(np.square(errors), axis=1)))


@pytest.fixture
def X(rng):
    t = rng.uniform(0, np.pi, size=25)
    return np.column_stack([np.cos(t), np.sin(t)]) + 0.05 * rng.normal(size=(25, 2))


@pytest.mark.parametrize("penalty", [1e-6, 1e-2, 10.0])
@pytest.mark.parametrize("kernel", [mc.Gaussian(0.7), mc.Linear(), mc.Polynomial(2)], ids=repr)
def test_it_is_ridge_regression_with_an_intercept(kernel, penalty, X):
    plane = plane_of(mc.Gaussian(1.0), X, 4)
    way_back = LearnedMap(kernel, penalty).fit(plane, X)
    C = plane.coordinates(mc.feature(mc.Gaussian(1.0), X))
    m, w = naive_ridge(kernel(C), X, penalty)
    assert_allclose(way_back.predict(C), m + kernel(C) @ w, rtol=1e-6, atol=1e-7)
    assert_allclose(way_back.loo_error, naive_leave_one_out(kernel(C), X, penalty), rtol=1e-6)


def test_the_penalty_has_the_smallest_leave_one_out_error(X):
    plane = plane_of(mc.Gaussian(1.0), X, 1)  # one coordinate cannot tell the noise
    chosen = LearnedMap().fit(plane, X)
    assert 1e-6 < chosen.penalty < 1e2
    for factor in 10.0 ** np.arange(-4, 5):
        other = LearnedMap(chosen.kernel, chosen.penalty * factor).fit(plane, X)
        assert chosen.loo_error <= other.loo_error * (1 + 1e-9)


def test_the_length_scale_is_that_of_the_coordinates(X):
    k = mc.Gaussian(50.0)
    plane = plane_of(k, X, 2)
    way_back = LearnedMap().fit(plane, X)
    C = plane.coordinates(mc.feature(k, X))
    assert way_back.kernel == mc.Gaussian(mc.median_scale(C))
    assert way_back.kernel.length_scale < 1.0


def test_training_points_default_to_those_of_the_plane(X):
    k = mc.Gaussian(1.0)
    plane = plane_of(k, X, 4)
    twice = plane_of(k, np.concatenate([X, X]), 4)
    psi = mc.feature(k, X[:5] + 0.1)
    wanted = points_of(LearnedMap().fit(plane, X), psi)
    assert_allclose(points_of(LearnedMap().fit(plane), psi), wanted, atol=1e-8)
    assert_allclose(points_of(LearnedMap().fit(twice), psi), wanted, atol=1e-6)


@given(shift=st.floats(-100, 100))
def test_no_mean_is_lost(shift):
    """Shifted data give shifted pre-images, however far from the origin."""
    rng = np.random.default_rng(5)
    X, k = rng.normal(size=(12, 2)), mc.Gaussian(2.0)
    here = LearnedMap(penalty=0.1).fit(plane_of(k, X, 3), X)
    there = LearnedMap(penalty=0.1).fit(plane_of(k, X + shift, 3), X + shift)
    at = X[:3] + 0.2
    moved = points_of(there, mc.feature(k, at + shift))
    assert_allclose(moved, points_of(here, mc.feature(k, at)) + shift, atol=1e-6)


def test_with_a_huge_penalty_everything_goes_to_the_mean(X):
    fitted = LearnedMap(penalty=1e12).fit(plane_of(mc.Gaussian(1.0), X), X)
    found = points_of(fitted, mc.feature(mc.Gaussian(1.0), X[:3]))
    assert_allclose(found, np.tile(X.mean(axis=0), (3, 1)), atol=1e-9)


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, 2.0]],
        [[1.0, 2.0]] * 3,
        [[1.0, 7.0], [2.0, 7.0], [4.0, 7.0]],
        [[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 1.0], [0.0, 2.0, 0.0, 1.0]],
    ],
    ids=["one", "equal", "constant column", "more columns than rows"],
)
def test_awkward_points(X):
    X = np.asarray(X)
    k = mc.Gaussian(1.0)
    origin = mc.Element(k, np.zeros((1, X.shape[1])), [1.0])
    fitted = LearnedMap().fit(mc.Subspace.span(origin, mc.feature(k, X)), X)
    found = points_of(fitted, mc.feature(k, X))
    assert np.isfinite(found).all()
    assert np.isnan(fitted.loo_error) == (len(X) == 1)
    constant = np.ptp(X, axis=0) == 0
    assert_allclose(found[:, constant], X[:, constant], atol=1e-9)


def test_float32_points_and_constraints(X):
    k = mc.Gaussian(1.0)
    single, double = plane_of(k, X.astype(np.float32), 3), plane_of(k, X, 3)
    psi = mc.feature(k, X[:4])
    ours, wanted = (
        points_of(LearnedMap(penalty=0.1).fit(p), psi, Constraint(Box(0.0, 0.5), None))
        for p in (single, double)
    )
    assert_allclose(ours, wanted, atol=1e-3)
    assert (wanted >= 0).all()
    assert (wanted <= 0.5).all()


def test_errors_name_the_condition_and_the_cure(X, monkeypatch):
    plane = plane_of(mc.Gaussian(1.0), X, 3)
    with pytest.raises(mc.InputError, match="penalty must be > 0"):
        LearnedMap(penalty=0.0)
    with pytest.raises(mc.InputError, match="kernel must be a Kernel"):
        LearnedMap("rbf")
    with pytest.raises(mc.InputError, match="plane must be a Subspace"):
        LearnedMap().fit(mc.mean_embedding(mc.Gaussian(1.0), X))
    with pytest.raises(mc.InputError, match="positive definite kernel"):
        LearnedMap(mc.NegativeDistance()).fit(plane)
    with pytest.raises(mc.exceptions.SpaceError):
        points_of(LearnedMap().fit(plane), mc.feature(mc.Gaussian(2.0), X))
    objects = mc.kernels.FromFunction(
        lambda A, B: [[float(a == b) for b in B] for a in A], on=mc.kernels.Objects()
    )
    words = mc.feature(objects, ["a", "b"])
    words = mc.Subspace.span(words[0], words)
    with pytest.raises(mc.InputError, match="Candidates"):
        LearnedMap().fit(words)
    monkeypatch.setattr("mercer.preimages.solvers._closed_form._MANY", 10)
    with pytest.raises(mc.InputError, match="pass a sample"):
        LearnedMap().fit(plane)
    assert LearnedMap().fit(plane, X[:10]).penalty > 0
