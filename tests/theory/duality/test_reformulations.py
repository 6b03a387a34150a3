"""Reformulated problems, bisection, convexity checks and projections: corners and wrong input."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.theory import duality

SUM = ([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]])


def test_robust_programs_without_uncertainty_are_linear_programs():
    A, b, c = np.vstack([np.eye(2), -np.eye(2)]), np.ones(4), [1.0, 2.0]
    found = duality.robust_lp(c, A, b, np.zeros((4, 2, 1)))
    assert_allclose(found.value, duality.inequality_lp(c, A, b).primal, rtol=1e-6)
    singular = duality.chance_lp(c, A, b, [np.zeros((2, 2))] * 4, 0.9)
    assert_allclose(singular.value, found.value, rtol=1e-6)
    half = duality.chance_lp(c, A, b, [np.eye(2)] * 4, 0.5)
    assert_allclose(half.value, found.value, rtol=1e-6)


def test_bisection_that_never_succeeds_or_has_nothing_to_do():
    found = duality.bisection(lambda t: None, 0.0, 1.0, 0.3)
    assert found.x is None
    assert found.brackets[-1].tolist() == [0.75, 1.0]
    same = duality.bisection(lambda t: t, 2.0, 2.0)
    assert (same.n_iter, same.value) == (0, 2.0)


def test_checks_allow_for_rounding():
    """An affine function far from the origin is convex: its margin is rounding."""
    X = 1e6 + np.random.default_rng(0).normal(size=(10, 2))
    assert duality.jensen(lambda x: x @ [3.0, -7.0], X).holds
    assert duality.first_order_convexity(lambda x: x @ [3.0, -7.0], lambda x: [3.0, -7.0], X).holds


def test_equal_points_satisfy_every_inequality():
    assert duality.jensen(lambda x: -(x @ x), np.ones((2, 3))).holds


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: duality.chebyshev_centre([[1.0]], [1.0]), "unbounded"),
        (lambda: duality.chebyshev_centre([[1.0], [-1.0]], [-1.0, 0.0]), "infeasible"),
        (lambda: duality.robust_lp([1.0], [[1.0]], [1.0], []), "1 matrices with 1 rows"),
        (lambda: duality.robust_lp([1.0], [[1.0]], [1.0], 2.0), "P must be a list of matrices"),
        (lambda: duality.minimise_eigenvalue([[[1.0]]]), "at least two matrices"),
        (lambda: duality.minimise_spectral_norm([[[1.0]], [[1.0, 2.0]]]), "the same shape"),
        (lambda: duality.geometric_program(1.0), "must be a pair"),
        (lambda: duality.geometric_program(([1], [[1]]), [([1], [[1, 2]])]), "one column for each"),
        (lambda: duality.norm_lmi([[1.0]], "a"), "t must be"),
        (lambda: duality.scalarise([], []), "list of expressions"),
        (lambda: duality.scalarise([1.0, [2.0, 3.0]], [1.0, 1.0]), "objectives must be a single"),
        (lambda: duality.scalarise([cp.Variable() ** 2], [1.0], [3.0]), "list of comparisons"),
        (lambda: duality.scalarise([-(cp.Variable() ** 2)], [1.0]), "must be convex"),
        (lambda: duality.conjugate(lambda x: x, [1.0, 2.0]), "must be a single real number"),
        (lambda: duality.conjugate(lambda x: None, [1.0]), "must be a real number"),
        (lambda: duality.conjugate(lambda x: np.nan * cp.sum(x), [1.0]), "does not solve"),
        (lambda: duality.chance_lp([1.0], [[1.0]], [1.0], [[[1.0]]], 0.4), "at least 0.5"),
        (lambda: duality.chance_lp([1.0], [[1.0]], [1.0], [[[-1.0]]], 0.9), "semidefinite"),
        (
            lambda: duality.linear_fractional([1.0], 2.0, [1.0], 1.0, [[-1.0]], [0.0]),
            "not attained",
        ),
        (
            lambda: duality.linear_fractional(
                [1.0], 2.0, [1.0], 1.0, [[-1.0]], [0.0], [[1.0, 2.0]], [0.0]
            ),
            "G has 1 features, but A has 2",
        ),
        (lambda: duality.geometric_program(([-1.0], [[1.0]])), "must be > 0"),
        (lambda: duality.geometric_program(SUM, equalities=[SUM]), "monomials"),
        (lambda: duality.geometric_program(SUM), "unbounded|infeasible"),
        (lambda: duality.perron_frobenius([[1.0, 0.0], [1.0, 1.0]]), "entries > 0"),
        (lambda: duality.perron_frobenius([[1.0, 1.0]]), "square"),
        (lambda: duality.minimise_eigenvalue([np.eye(2), np.eye(2)]), "unbounded"),
        (lambda: duality.bisection(lambda t: t, 1.0, 0.0), "low must be <= high"),
        (lambda: duality.bisection(None, 0.0, 1.0), "must be a function"),
        (lambda: duality.bisection(lambda t: t, 0.0, 1.0, 0.0), "tol must be > 0"),
        (lambda: duality.jensen(np.sum, [[1.0]]), "at least two rows"),
        (
            lambda: duality.jensen(lambda x: np.log(x[0]), [[1.0], [2.0], [np.inf]]),
            "finite|infinity",
        ),
        (lambda: duality.jensen(lambda x: x[0] / np.nan, [[1.0], [2.0]]), "must be a number"),
        (
            lambda: duality.log_concavity(np.sum, np.ones_like, lambda x: [[0.0]], [[-1.0]]),
            "f must be > 0",
        ),
        (lambda: duality.project_halfspace([1.0], [0.0], 1.0), "must not be zero"),
        (lambda: duality.project_ball([1.0], [0.0], -1.0), "radius must be >= 0"),
        (lambda: duality.scalarise([cp.Variable()], [1.0]), "unbounded"),
    ],
)
def test_errors_say_why(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()


def test_projections_of_points_inside_and_at_the_centre():
    assert duality.project_ball([0.1, 0.0], [0.0, 0.0], 1.0).tolist() == [0.1, 0.0]
    assert duality.project_ball([2.0, 2.0], [2.0, 2.0], 0.0).tolist() == [2.0, 2.0]
    assert duality.project_halfspace([0.0], [1.0], 1.0).tolist() == [0.0]
    found = duality.project_affine([1.0, 3.0], [[1.0, 1.0]] * 2, [2.0, 2.0])  # the same row twice
    assert_allclose(found, [0.0, 2.0], atol=1e-12)
