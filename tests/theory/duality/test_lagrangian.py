"""Lagrangians, dual functions and sensitivities of cvxpy problems."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.theory import duality


def test_a_semidefinite_constraint_has_a_matrix_of_multipliers():
    """max eigenvalue of M as a semidefinite program: Z = vv', and p*(U) has the slope -tr(ZU)."""
    M = np.array([[0.0, 2.0], [2.0, 3.0]])
    t = cp.Variable()
    problem = cp.Problem(cp.Minimize(t), [t * np.eye(2) - M >> 0])
    problem.solve(solver=cp.CLARABEL)
    assert_allclose(duality.dual_function(problem), 4.0, rtol=1e-6)
    v = np.linalg.eigh(M)[1][:, -1]
    assert_allclose(problem.constraints[0].dual_value, np.outer(v, v), atol=1e-4)
    U = np.array([[1.0, 0.5], [0.5, -1.0]])
    found = duality.sensitivity(problem, [1e-3 * U])
    assert_allclose(found.value, np.linalg.eigvalsh(M - 1e-3 * U)[-1], rtol=1e-7)
    assert_allclose(found.bound, 4.0 - 1e-3 * v @ U @ v, rtol=1e-6)
    assert found.value >= found.bound - 1e-7


def test_a_number_is_a_multiplier_for_all_entries_of_a_constraint():
    x = cp.Variable((2, 2), symmetric=True, value=[[1.0, 2.0], [2.0, 5.0]])
    matrix = cp.Problem(cp.Minimize(cp.trace(x)), [x >> 0, x[0] <= 1])
    assert duality.lagrangian(matrix, [0.5, 2.0]).value == 6.0 - 0.5 * 10.0 + 2.0 * 1.0
    cone = cp.Problem(cp.Minimize(cp.trace(x)), [cp.NonNeg(x)])
    assert duality.lagrangian(cone, [0.5]).value == 6.0 - 0.5 * 10.0


def test_maximisation_is_minimisation_of_the_negative():
    x = cp.Variable()
    problem = cp.Problem(cp.Maximize(2 - x**2), [x >= 1])
    problem.solve(solver=cp.CLARABEL)
    assert_allclose(duality.dual_function(problem), -1.0, atol=1e-6)
    assert_allclose(duality.sensitivity(problem, [0.1]).value, 0.9**2 - 2, atol=1e-6)


def test_perturbations_may_make_a_problem_infeasible():
    x = cp.Variable()
    problem = cp.Problem(cp.Minimize(x), [x >= 0, x <= 1])
    problem.solve(solver=cp.CLARABEL)
    assert duality.sensitivity(problem, [-2.0, -1.5]).value == np.inf


def test_variables_keep_their_values():
    x = cp.Variable(2, value=[3.0, 4.0])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [x >= 1])
    duality.dual_function(problem, [np.ones(2)])
    assert x.value.tolist() == [3.0, 4.0]


def test_wrong_arguments():
    x = cp.Variable()
    problem = cp.Problem(cp.Minimize(x**2), [x >= 1])
    with pytest.raises(mc.InputError, match="one entry for each of 1 constraints"):
        duality.dual_function(problem, [1.0, 2.0])
    for wrong in ("a", None, np.nan, [1.0, 2.0]):
        with pytest.raises(mc.InputError, match="multipliers"):
            duality.dual_function(problem, [wrong])
    with pytest.raises(mc.InputError, match="multipliers >= 0"):
        duality.dual_function(cp.Problem(cp.Minimize(x), [x**2 <= 1]), [-1.0])
    with pytest.raises(mc.InputError, match="cvxpy Problem"):
        duality.lagrangian(x**2, [])
    with pytest.raises(mc.InputError, match="solve"):
        duality.sensitivity(problem, [0.1])
    problem.solve(solver=cp.CLARABEL)
    with pytest.raises(mc.InputError, match="changes must be a list"):
        duality.sensitivity(problem, None)
    cone = cp.Problem(cp.Minimize(x), [cp.SOC(x, cp.Constant([3.0, 4.0]))])
    cone.solve(solver=cp.CLARABEL)
    with pytest.raises(mc.exceptions.UnavailableError, match="<=, >=, == or >>"):
        duality.sensitivity(cone, [0.1])


def test_the_error_without_cvxpy_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cvxpy", None)
    for call in (
        lambda: duality.conjugate(abs, [1.0]),
        lambda: duality.two_way_partition(np.eye(2)),
        lambda: mc.theory.kkt(None),
    ):
        with pytest.raises(ImportError, match=r"pip install 'mercer\[theory\]'"):
            call()
    assert duality.trust_region([[1.0]], [0.0]).primal == 0.0
