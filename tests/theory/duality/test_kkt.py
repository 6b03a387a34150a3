"""`kkt` on every kind of constraint, and under attack: each residual reacts to its own error."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.theory import duality, kkt

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(9, 6)), RNG.normal(size=9)
S = RNG.normal(size=(4, 4))
S = S + S.T


def problems():
    """Smooth and not, all cones, attributes, maximisation, several variables, no constraints."""
    x, y, t = cp.Variable(6), cp.Variable(3), cp.Variable()
    a, b, c = cp.Variable(), cp.Variable(), cp.Variable()
    X, Z = cp.Variable((4, 4), symmetric=True), cp.Variable((4, 4), PSD=True)
    D, P = cp.Variable((3, 3), diag=True), cp.Variable(6, nonneg=True)
    rows, lengths = cp.Variable((5, 3)), cp.Variable(5)
    return {
        "quadratic": (cp.Minimize(cp.sum_squares(A @ x - B)), [x <= 0.3, cp.sum(x) == 1]),
        "linear": (cp.Minimize(x @ A[0]), [x >= -1, x <= 2, A[1] @ x == 0]),
        "maximum": (cp.Maximize(x @ A[0]), [x >= -1, x <= 2, A[1] @ x == 0]),
        "absolute": (cp.Minimize(cp.norm1(A @ x - B)), [cp.norm(x) <= 0.5]),
        "lasso": (cp.Minimize(cp.sum_squares(A @ x - B) + 3 * cp.norm1(x)), []),
        "entropy": (cp.Maximize(cp.sum(cp.entr(y))), [cp.sum(y) == 1, y[0] <= 0.2]),
        "logistic": (cp.Minimize(cp.sum(cp.logistic(A @ x)) + cp.norm1(x)), [cp.sum(x) == 1]),
        "semidefinite": (cp.Minimize(cp.trace(S @ X)), [X >> 0, cp.trace(X) == 1]),
        "PSD variable": (cp.Minimize(cp.trace(S @ Z)), [cp.trace(Z) == 1]),
        "diagonal variable": (cp.Minimize(cp.sum_squares(D - 1)), [cp.trace(D) <= 1]),
        "nonneg variable": (cp.Minimize(cp.sum_squares(A @ P - B)), [cp.sum(P) <= 1]),
        "eigenvalue": (cp.Minimize(cp.lambda_max(S + t * np.diag([1, 2, -3, 1]))), []),
        "cone": (cp.Minimize(t), [cp.SOC(t, A @ x - B)]),
        "several cones": (
            cp.Minimize(cp.sum(lengths)),
            [cp.SOC(lengths, rows, axis=1), rows[:, 0] >= 1],
        ),
        "tip of a cone": (cp.Minimize(cp.sum(lengths)), [cp.SOC(lengths, rows, axis=1)]),
        "exponential cone": (cp.Minimize(c - a), [cp.ExpCone(a, b, c), b == 1, a >= 0.3]),
        "power cone": (cp.Maximize(c), [cp.PowCone3D(a, b, c, 0.3), a + 2 * b == 1]),
        "log-determinant": (cp.Maximize(cp.log_det(X)), [cp.trace(X) <= 1, X[0, 1] == 0.1]),
        "nuclear norm": (cp.Minimize(cp.normNuc(rows)), [rows[0, 0] == 1, rows[1, 2] >= 2]),
        "parameter": (
            cp.Minimize(cp.Parameter(value=2.0, nonneg=True) * cp.norm1(x)),
            [A @ x == A[:, 0]],
        ),
        "equalities only": (
            cp.Minimize(0 * x[0]),
            [A[:3] @ x == B[:3], 2 * A[:3] @ x == 2 * B[:3]],
        ),
        "Zero": (cp.Minimize(cp.square(c)), [cp.Zero(c - 2)]),
        "NonNeg": (cp.Minimize(cp.square(c)), [cp.NonNeg(c - 2)]),
    }


def solve(name, solver=cp.CLARABEL):
    made = cp.Problem(*problems()[name])
    made.solve(solver=solver)
    return made


@pytest.fixture(params=problems())
def problem(request):
    return solve(request.param)


def dense(value):
    """The value of a diagonal variable is sparse."""
    return np.array(value.toarray() if hasattr(value, "toarray") else value)


def test_residuals_vanish(problem):
    found = kkt(problem)
    scale = 1 + abs(found.primal)
    assert abs(found.gap) < 1e-6 * scale
    assert found.feasibility < 1e-7 * scale
    assert found.complementarity < 1e-6 * scale
    assert found.stationarity < 1e-4 * scale  # with exponential cones x itself is this accurate
    assert_allclose(found.dual, duality.dual_function(problem), atol=1e-5 * scale)


LINEAR = ["linear", "maximum"]
QUADRATIC = [
    *LINEAR,
    "quadratic",
    "lasso",
    "diagonal variable",
    "nonneg variable",
    "Zero",
    "NonNeg",
]


@pytest.mark.parametrize(
    ("solver", "names"),
    [(cp.SCS, list(problems())), (cp.OSQP, QUADRATIC), (cp.HIGHS, QUADRATIC), (cp.SCIPY, LINEAR)],
)
def test_answers_of_other_solvers(solver, names):
    """Multipliers have the same signs and shapes; the accuracy is that of the solver."""
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    for name in names:
        found = kkt(solve(name, solver))
        residuals = found.gap, found.stationarity, found.feasibility, found.complementarity
        assert np.abs(residuals).max() < 1e-3 * (1 + abs(found.primal)), name


def test_the_problem_is_left_as_it_is(problem):
    before = [dense(x.value) for x in problem.variables()]
    kkt(problem)
    for x, value in zip(problem.variables(), before, strict=True):
        assert np.array_equal(dense(x.value), value)


def test_a_wrong_point_shows(problem):
    """The optimum is unique or the point leaves the constraints."""
    for x in problem.variables():
        x.save_value(1.5 * x.value + 0.3 * (dense(x.value) != 0))
    found = kkt(problem)
    assert max(abs(found.gap), found.feasibility, found.stationarity) > 1e-2


@pytest.mark.parametrize("name", [name for name, (_, limits) in problems().items() if limits])
def test_a_wrong_multiplier_shows(name):
    problem = solve(name)
    before = kkt(problem)
    for variable in problem.constraints[0].dual_variables:
        variable.save_value(variable.value + 0.5)
    found = kkt(problem)
    errors = found.stationarity, found.complementarity, found.feasibility
    assert max(errors) > 0.02
    assert found.primal == before.primal


@pytest.fixture
def solved():
    """Minimise (x - 2)^2 + y^2 with x <= 1 (multiplier 2), y <= 5 (0) and x + z = 3 (0)."""
    x, y, z = cp.Variable(), cp.Variable(), cp.Variable()
    problem = cp.Problem(cp.Minimize((x - 2) ** 2 + y**2 + 0 * z), [x <= 1, y <= 5, x + z == 3])
    problem.solve(solver=cp.CLARABEL)
    return problem, (x, y, z)


def test_each_error_shows_in_its_own_residual(solved):
    problem, (x, y, z) = solved
    first, second, third = problem.constraints

    def residuals():
        found = kkt(problem)
        return np.array([found.stationarity, found.feasibility, found.complementarity])

    for target, values in ((x, 1.0), (y, 0.0), (z, 2.0)):
        target.save_value(np.array(values))
    for constraint, value in ((first, 2.0), (second, 0.0), (third, 0.0)):
        constraint.save_dual_value(np.array(value))
    assert_allclose(residuals(), 0.0, atol=1e-9)

    z.save_value(np.array(2.25))  # only the equality is violated
    assert_allclose(residuals(), [0, 0.25, 0], atol=1e-7)
    z.save_value(np.array(2.0))

    second.save_dual_value(np.array(0.1))  # slack 5: complementarity; y - p = 0.1 / 3
    assert_allclose(residuals(), [0.1 / 3, 0, 0.5], atol=1e-6)
    second.save_dual_value(np.array(-0.1))  # the sign; the negative part leaves the Lagrangian
    assert_allclose(residuals(), [0, 0.1, 0.5], atol=1e-6)
    second.save_dual_value(np.array(0.0))

    first.save_dual_value(np.array(2.6))  # active, so only stationarity: (2 (1 - 2) + 2.6) / 3
    assert_allclose(residuals(), [0.2, 0, 0], atol=1e-6)
    first.save_dual_value(np.array(2.0))

    third.save_dual_value(np.array(0.4))  # z is free and linear in L: the gradient
    assert_allclose(residuals(), [0.4, 0, 0], atol=1e-6)


def test_stationarity_of_a_smooth_lagrangian_is_at_most_its_gradient():
    """And x - p is the gradient at p."""
    x = cp.Variable(6, value=RNG.normal(size=6))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - B)))
    found = kkt(problem)
    H, g = 2 * A.T @ A, 2 * A.T @ (A @ x.value - B)
    step = np.linalg.solve(np.eye(6) + H, g)  # x - p in closed form
    assert_allclose(found.stationarity, np.abs(step).max(), rtol=1e-5)
    p = x.value - step
    assert_allclose(2 * A.T @ (A @ p - B), step, rtol=1e-6, atol=1e-9)
    assert np.linalg.norm(step) <= np.linalg.norm(g)


def test_kinks_have_no_gradient_but_are_stationary():
    """|x| at 0: cvxpy's subgradient there need not be 0, the distance to the minimiser is."""
    x = cp.Variable(value=0.0)
    problem = cp.Problem(cp.Minimize(cp.abs(x) + 0.5 * x))
    assert kkt(problem).stationarity < 1e-7
    steep = cp.Problem(cp.Minimize(cp.abs(x) + 1.5 * x))
    assert_allclose(kkt(steep).stationarity, 0.5, rtol=1e-5)


def test_a_loose_tolerance_shows():
    """The residuals are those of the values, not those that the solver reports."""
    sizes = []
    for tol in (1e-1, 1e-8):
        problem = cp.Problem(*problems()["quadratic"])
        names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        problem.solve(solver=cp.CLARABEL, **dict.fromkeys(names, tol))
        found = kkt(problem)
        sizes.append(max(found.stationarity, found.feasibility, abs(found.gap)))
    assert sizes[1] < 1e-5 < sizes[0]


def test_what_cannot_be_checked():
    x = cp.Variable()
    unsolved = cp.Problem(cp.Minimize(x**2), [x >= 1])
    with pytest.raises(mc.InputError, match=r"call problem.solve\(\) first"):
        kkt(unsolved)
    infeasible = cp.Problem(cp.Minimize(x), [x >= 1, x <= 0])
    infeasible.solve(solver=cp.CLARABEL)
    with pytest.raises(mc.InputError, match=r"call problem.solve\(\) first"):
        kkt(infeasible)
    for wrong in (
        cp.Problem(cp.Minimize(-(x**2)), [x <= 1, x >= 0]),
        cp.Problem(cp.Minimize(cp.Variable(integer=True))),
        cp.Problem(cp.Minimize(cp.real(cp.Variable(complex=True)))),
    ):
        with pytest.raises(mc.InputError, match="must be convex"):
            kkt(wrong)
    for wrong in (None, 3.0, x):
        with pytest.raises(mc.InputError, match="must be a cvxpy Problem"):
            kkt(wrong)
