"""enclosing_ball: closed forms, brute force over supports, invariances, hard inputs."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import mercer as mc
from mercer.methods.modes._enclosing_ball import enclosing_ball as of_points


def enclosing_ball(X):
    return of_points(mc.Gaussian().points(X).array)


def gap(ball):
    return max(ball.radius - ball.lower, 0.0)


def circumball(P):
    """Centre and radius of the smallest sphere through all rows of P, None if there is none."""
    A = 2.0 * (P[1:] - P[0])
    b = np.sum(P[1:] ** 2, axis=1) - np.sum(P[0] ** 2)
    step, *_ = np.linalg.lstsq(A, b - A @ P[0], rcond=1e-10)
    c = P[0] + step
    r = np.linalg.norm(P - c, axis=1)
    return (c, r.max()) if np.ptp(r) < 1e-9 * (1 + r.max()) else None


def brute(X):
    """The smallest of the spheres through up to d + 1 points that hold all of them."""
    best = np.inf
    for size in range(1, X.shape[1] + 2):
        for rows in itertools.combinations(range(len(X)), size):
            found = circumball(X[list(rows)])
            if found is not None and np.linalg.norm(X - found[0], axis=1).max() <= found[1] + 1e-9:
                best = min(best, found[1])
    return best


def encloses(ball, X):
    distance = np.linalg.norm(np.asarray(X, dtype=float) - ball.centre, axis=1)
    return bool((distance <= ball.radius).all())


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 7))
def test_against_all_supports(seed, d, n):
    X = np.random.default_rng(seed).normal(size=(n, d))
    ball = enclosing_ball(X)
    assert_allclose(ball.radius, brute(X), rtol=1e-11, atol=1e-12)
    assert gap(ball) <= 1e-12 * ball.radius
    assert encloses(ball, X)


@given(
    arrays(
        np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(-3, 3)
    )
)
def test_lattice_points_have_ties_and_duplicates(X):
    ball = enclosing_ball(X)
    assert encloses(ball, X)
    assert ball.lower <= ball.radius
    assert gap(ball) <= 1e-9 * max(ball.radius, 1e-9)


@pytest.mark.parametrize("d", [2, 10, 100])
def test_the_simplex(d):
    ball = enclosing_ball(np.eye(d))
    assert_allclose(ball.centre, np.full(d, 1 / d), atol=1e-13)
    assert_allclose(ball.radius, np.sqrt(1 - 1 / d), rtol=1e-12)


def test_cube_and_circle():
    cube = np.array(list(itertools.product([-1.0, 1.0], repeat=7)))
    assert_allclose(enclosing_ball(cube + 3.0).radius, np.sqrt(7.0), rtol=1e-12)
    t = np.linspace(0, 2 * np.pi, 500, endpoint=False)
    assert_allclose(enclosing_ball(np.c_[np.cos(t), np.sin(t)]).radius, 1.0, rtol=1e-12)


def test_collinear_points():
    X = np.arange(11.0)[:, None] * [1.0, 2.0, 2.0]
    ball = enclosing_ball(X)
    assert_allclose(ball.centre, [5.0, 10.0, 10.0], rtol=1e-12)
    assert_allclose(ball.radius, 15.0, rtol=1e-12)


def test_one_point_and_equal_points():
    for X in ([[1.0, 2.0]], [[1.0, 2.0]] * 5):
        ball = enclosing_ball(X)
        assert ball.radius == ball.lower == gap(ball) == 0.0
        assert ball.centre.tolist() == [1.0, 2.0]


def test_the_centre_moves_with_the_points(rng):
    X = rng.normal(size=(60, 4))
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    ball, moved = enclosing_ball(X), enclosing_ball(3.0 * X @ Q + 7.0)
    assert_allclose(moved.radius, 3.0 * ball.radius, rtol=1e-11)
    assert_allclose(moved.centre, 3.0 * ball.centre @ Q + 7.0, atol=1e-10)


@pytest.mark.parametrize("shift", [1e6, -1e10])
def test_far_from_the_origin(shift, rng):
    X = rng.normal(size=(100, 3)) + shift
    ball = enclosing_ball(X)
    exact = enclosing_ball(X - shift)  # the shifted numbers, which are exact
    assert_allclose(ball.radius, exact.radius, rtol=abs(shift) * 1e-15)
    assert encloses(ball, X)


@pytest.mark.parametrize("unit", [1e-140, 1e140])
def test_tiny_and_huge_numbers(unit, rng):
    X = rng.normal(size=(40, 3))
    assert_allclose(enclosing_ball(unit * X).radius / unit, enclosing_ball(X).radius, rtol=1e-12)


def test_more_columns_than_rows_sparse_and_float32(rng):
    X = rng.normal(size=(20, 50)).astype(np.float32)
    ball = enclosing_ball(X)
    assert ball.centre.dtype == np.float64
    assert_allclose(enclosing_ball(X.astype(float)).radius, ball.radius, rtol=1e-14)
    assert_allclose(enclosing_ball(csr_array(X)).radius, ball.radius, rtol=1e-14)
    assert encloses(ball, X)


def test_many_points_and_many_dimensions(rng):
    X = rng.normal(size=(200_000, 2))
    ball = enclosing_ball(X)
    assert encloses(ball, X)
    assert gap(ball) <= 1e-12 * ball.radius
    Y = rng.normal(size=(300, 200))
    assert gap(enclosing_ball(Y)) <= 1e-11 * enclosing_ball(Y).radius
