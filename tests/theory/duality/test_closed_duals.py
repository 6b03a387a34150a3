"""Closed duals in corners: singular matrices, hard cases, scales, no solution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.theory import duality

EYE = np.eye(2)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(
    ("A", "b"),
    [
        (np.diag([-1.0, 2.0]), [0.0, 0.5]),  # the hard case: b has no part along the first axis
        (np.diag([-1.0, -1.0]), [0.0, 0.0]),  # every unit vector is optimal
        (np.diag([-1.0, 2.0]), [1e-9, 0.5]),  # nearly hard
        (np.diag([1.0, 2.0]), [0.1, 0.1]),  # the minimum is inside
        (np.diag([0.0, 2.0]), [0.0, 0.1]),  # singular
        (np.diag([1.0, 2.0]), [3.0, 4.0]),
        (np.array([[0.0]]), [1.0]),
        (np.array([[0.0]]), [0.0]),
    ],
)
def test_trust_regions(A, b, scale):
    A, b = scale * np.asarray(A), scale * np.asarray(b)
    found = duality.trust_region(A, b)
    assert abs(found.gap) <= 1e-8 * scale
    assert np.linalg.norm(found.x) <= 1 + 1e-9
    angle = np.linspace(0, 2 * np.pi, 2001)
    grid = np.column_stack([np.cos(angle), np.sin(angle)])[:, : len(b)]
    assert found.primal <= np.min(np.sum(grid @ A * grid, axis=1) + 2 * grid @ b) + 1e-5 * scale


def test_domains_of_dual_functions():
    assert duality.trust_region(np.diag([-1.0, 2.0]), [0.5, 0.5]).g(0.5) == -np.inf
    found = duality.trust_region(np.diag([-1.0, 2.0]), [0.5, 0.5])
    assert found.g(1.0) == -np.inf  # b is not in the range of A + I
    assert duality.trust_region(EYE, [0.0, 0.0]).g(-0.5) == -np.inf  # lambda >= 0
    assert duality.quadratic_program(EYE, EYE, [1.0, 1.0]).g(np.array([-1.0, 0.0])) == -np.inf
    assert duality.inequality_lp([0.0], [[1.0]], [1.0]).g(np.array([1.0])) == -np.inf
    assert duality.norm_approximation(np.ones((2, 1)), [0.0, 1.0]).g(np.ones(2)) == -np.inf


def test_singular_matrices():
    twice = [[1.0, 1.0], [1.0, 1.0]]
    found = duality.least_norm(twice, [2.0, 2.0])
    assert_allclose(found.x, [1.0, 1.0])
    assert_allclose(found.gap, 0.0, atol=1e-9)
    assert abs(duality.norm_approximation(twice, [1.0, 3.0]).gap) < 1e-6
    assert abs(duality.standard_lp([1.0, 2.0], twice, [1.0, 1.0]).gap) < 1e-6


def test_float32_and_lists():
    A = np.ones((1, 3), dtype=np.float32)
    assert_allclose(duality.least_norm(A, np.float32([3.0])).primal, 3.0, rtol=1e-6)
    assert_allclose(duality.standard_lp([1, 2], [[1, 1]], [1]).primal, 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: duality.least_norm([[0.0, 0.0]], [1.0]), "infeasible"),
        (lambda: duality.standard_lp([1.0], [[1.0]], [-1.0]), "infeasible"),
        (lambda: duality.inequality_lp([1.0], [[1.0]], [1.0]), "unbounded"),
        (lambda: duality.inequality_lp([1.0, 2.0], [[1.0]], [1.0]), "c must have 1 entries"),
        (lambda: duality.box_lp([1.0], [[1.0]], [2.0]), "infeasible"),
        (lambda: duality.norm_minimisation([[0.0]], [1.0]), "infeasible"),
        (lambda: duality.norm_minimisation([[1.0]], [1.0], p=0.5), "p must be >= 1"),
        (lambda: duality.norm_approximation([[1.0]], [1.0], p=np.nan), "p must be >= 1"),
        (lambda: duality.norm_minimisation([[1.0]], [1.0], p=1e6), "at most 100 or inf"),
        (lambda: duality.norm_minimisation([[1.0]], [1.0], p="a"), "p must hold numbers"),
        (lambda: duality.standard_lp([1.0], [[1.0]], [1e100]), "b has entries above 1e.75"),
        (
            lambda: duality.norm_minimisation(
                np.random.default_rng(8).normal(size=(5, 1)),
                np.random.default_rng(6).normal(size=5),
            ),
            "infeasible",
        ),
        (lambda: duality.least_norm([[1e100]], [1.0]), "A has entries above 1e.75"),
        (lambda: duality.quadratic_program(EYE, [[1.0]], [1.0]), "P must have 1 rows"),
        (lambda: duality.quadratic_program(np.ones((2, 2)), EYE, [1, 1]), "positive definite"),
        (lambda: duality.semidefinite_program([1.0], [EYE], [[1.0]]), "of the shape"),
        (lambda: duality.semidefinite_program([1.0], 3.0, EYE), "F must be a list of matrices"),
        (lambda: duality.project_halfspace([1.0], [5e-324], -1.0), "leaves the range"),
        (lambda: duality.bisection(lambda t: None, -1e308, 1e308), "larger tol"),
        (lambda: duality.quadratic_program(-EYE, EYE, [1.0, 1.0]), "positive definite"),
        (
            lambda: duality.quadratic_program(EYE, [[1.0, 0.0], [-1.0, 0.0]], [0.0, -1.0]),
            "infeasible",
        ),
        (lambda: duality.two_way_partition(np.eye(17)), "at most 16 rows"),
        (lambda: duality.two_way_partition([[0.0, 1.0], [0.0, 0.0]]), "symmetric"),
        (lambda: duality.semidefinite_program([1.0], [EYE], EYE), "unbounded"),
        (lambda: duality.semidefinite_program([1.0, 2.0], [EYE], EYE), "c must have 1 entries"),
        (lambda: duality.conjugate_form(duality.CONJUGATES["negative entropy"]), "A or C"),
        (lambda: duality.conjugate_form(None, A=EYE, b=[1.0, 1.0]), "pair must be"),
    ],
)
def test_errors_say_why(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("columns", [1, 3])
def test_logarithms_that_grow_without_end_are_refused(seed, columns):
    """-sum log x on a plane Cx = d is bounded below where all entries of C have one sign."""
    rng = np.random.default_rng(seed)
    C, d = rng.normal(size=(1, columns)), rng.normal(size=1)
    logarithm = duality.CONJUGATES["negative logarithm"]
    if np.all(C / d > 0.0):  # the optimum is x_i = d / (n C_i)
        found = duality.conjugate_form(logarithm, C=C, d=d)
        best = -np.log(d / (columns * C)).sum()
        assert (found.primal, found.dual) == pytest.approx((best, best), abs=1e-5)
    else:
        with pytest.raises(mc.InputError, match=r"infeasible|unbounded below"):
            duality.conjugate_form(logarithm, C=C, d=d)
