"""Convex optimisation: duality, conjugates, optimality, bisection, reformulations, convexity."""

import math
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize
from scipy.stats import norm

from mercer.theory import duality, kkt

SEEDS = range(4)
TOL = 1e-6  # clarabel solves to a relative 1e-8


def random_qp(rng, n=4, m=6):
    """min x'Px + q'x with Ax <= b, Cx = d; strictly feasible, and the constraints bind."""
    R, A, C = rng.normal(size=(n, n)), rng.normal(size=(m, n)), rng.normal(size=(1, n))
    inside = rng.normal(size=n)
    x = cp.Variable(n)
    constraints = [A @ x <= A @ inside + 0.1 * rng.random(m), C @ x == C @ inside]
    objective = cp.sum_squares(R @ x) + 5 * rng.normal(size=n) @ x
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=cp.CLARABEL)
    return problem


def check_strong(found, x_is_feasible):
    """d* = p*, attained at feasible points; elsewhere g is a lower bound."""
    scale = 1.0 + abs(found.primal)
    assert x_is_feasible
    assert abs(found.gap) < TOL * scale
    assert found.dual == found.g(*found.multipliers)
    check_weak(found)


def check_weak(found):
    rng = np.random.default_rng(0)
    scale = 1.0 + abs(found.primal)
    values = []
    for step in (0.0, 1e-3, 0.1, 1.0, 10.0):
        moved = [np.abs(m + step * rng.normal(size=m.shape)) * np.where(m < 0, -1, 1)
                 for m in found.multipliers]  # fmt: skip
        values.append(found.g(*moved))
    assert max(values) <= found.primal + 1e-5 * scale


# --- G1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_G1_the_lagrangian_is_the_weighted_sum(seed):
    rng = np.random.default_rng(seed)
    problem = random_qp(rng)
    (x,) = problem.variables()
    lam, nu = rng.random(6), rng.normal(size=1)
    x.value = rng.normal(size=4)
    f, h = (c.expr.value for c in problem.constraints)
    L = duality.lagrangian(problem, [lam, nu])
    assert_allclose(L.value, problem.objective.value + lam @ f + nu @ h)


@pytest.mark.parametrize("seed", SEEDS)
def test_G1_the_dual_function_is_the_minimum_of_the_lagrangian(seed):
    """For x'R'Rx + q'x the minimum over x is a linear system."""
    rng = np.random.default_rng(seed)
    R, q, A, b = (rng.normal(size=s) for s in ((3, 3), 3, (2, 3), 2))
    x = cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(R @ x) + q @ x), [A @ x <= b])
    lam = rng.random(2)
    slope = q + A.T @ lam
    expected = -slope @ np.linalg.solve(R.T @ R, slope) / 4 - lam @ b
    assert_allclose(duality.dual_function(problem, [lam]), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_G1_weak_duality(seed):
    rng = np.random.default_rng(seed)
    problem = random_qp(rng)
    for _ in range(10):
        g = duality.dual_function(problem, [10 * rng.random(6), 10 * rng.normal(size=1)])
        assert g <= problem.value + TOL


def test_G1_the_dual_function_is_concave_and_may_be_minus_infinity():
    rng = np.random.default_rng(0)
    problem = random_qp(rng)
    a, b = ([5 * rng.random(6), rng.normal(size=1)] for _ in range(2))
    middle = [(s + t) / 2 for s, t in zip(a, b, strict=True)]
    ends = [duality.dual_function(problem, m) for m in (a, b)]
    assert duality.dual_function(problem, middle) >= sum(ends) / 2 - TOL
    x = cp.Variable()
    linear = cp.Problem(cp.Minimize(x), [x >= 1])
    assert duality.dual_function(linear, [0.5]) == -np.inf
    assert_allclose(duality.dual_function(linear, [1.0]), 1.0, atol=TOL)


@pytest.mark.parametrize("seed", SEEDS)
def test_G1_the_dual_problem_is_a_maximum(seed):
    """Strong duality, and a smaller g near the multipliers of the solution."""
    rng = np.random.default_rng(seed)
    problem = random_qp(rng)
    best = duality.dual_function(problem)
    assert_allclose(best, problem.value, atol=TOL * (1 + abs(problem.value)))
    lam, nu = (c.dual_value for c in problem.constraints)
    for _ in range(5):
        near = [np.maximum(lam + rng.normal(size=6), 0), nu + rng.normal(size=1)]
        assert duality.dual_function(problem, near) <= best + TOL


# --- G2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_G2_least_norm(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(3, 5)), rng.normal(size=3)
    found = duality.least_norm(A, b)
    check_strong(found, np.allclose(A @ found.x, b))
    assert_allclose(found.x, np.linalg.lstsq(A, b)[0])
    nu = rng.normal(size=3)
    assert_allclose(found.g(nu), -nu @ A @ A.T @ nu / 4 - b @ nu)


@pytest.mark.parametrize("seed", SEEDS)
def test_G2_linear_program(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 6))
    b, c = A @ rng.random(6), rng.random(6) + A.T @ rng.normal(size=3)
    found = duality.standard_lp(c, A, b)
    check_strong(found, np.allclose(A @ found.x, b) and np.all(found.x >= -TOL))
    (nu,) = found.multipliers
    assert_allclose(found.dual, -b @ nu)
    assert np.all(A.T @ nu + c >= -TOL)
    assert found.g(nu + 1e3 * A[:, 0]) == -np.inf or found.g(nu - 1e3 * A[:, 0]) == -np.inf


@pytest.mark.parametrize("seed", SEEDS)
def test_G2_linear_program_with_inequalities(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(7, 3))
    b, c = A @ rng.normal(size=3) + rng.random(7), -A.T @ rng.random(7)
    found = duality.inequality_lp(c, A, b)
    check_strong(found, np.all(A @ found.x <= b + TOL))
    (lam,) = found.multipliers
    assert_allclose(A.T @ lam, -c, atol=TOL)
    assert np.all(lam >= 0)


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_G2_norm_minimisation(seed, p):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(3, 5)), rng.normal(size=3)
    found = duality.norm_minimisation(A, b, p)
    check_strong(found, np.allclose(A @ found.x, b, atol=TOL))
    assert_allclose(found.primal, np.linalg.norm(found.x, p), rtol=1e-5)
    assert_allclose(found.dual, b @ found.multipliers[0])
    assert found.g(2 * found.multipliers[0]) == -np.inf  # |A'nu|_* = 1 at the optimum


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_G2_norm_approximation(seed, p):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(6, 2)), rng.normal(size=6)
    found = duality.norm_approximation(A, b, p)
    check_strong(found, True)
    assert_allclose(found.primal, np.linalg.norm(A @ found.x - b, p), rtol=1e-5)
    near = [np.linalg.norm(A @ (found.x + 0.01 * rng.normal(size=2)) - b, p) for _ in range(20)]
    assert min(near) >= found.primal - TOL


@pytest.mark.parametrize("seed", SEEDS)
def test_G2_two_way_partition(seed):
    """A lower bound, with a gap in general; the primal is the double loop."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(6, 6))
    W = W + W.T
    found = duality.two_way_partition(W)
    check_weak(found)
    assert found.gap >= -TOL
    signs = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1).T
    assert_allclose(found.primal, min(s @ W @ s for s in signs))
    assert_allclose(found.x @ W @ found.x, found.primal)
    assert_allclose(found.dual, -found.multipliers[0].sum())
    assert np.linalg.eigvalsh(W + np.diag(found.multipliers[0]))[0] > -TOL
    assert found.g(np.zeros(6)) == -np.inf  # W has negative eigenvalues
    assert found.dual >= 6 * np.linalg.eigvalsh(W)[0] - TOL  # the bound of nu = -eigenvalue


def test_G2_two_way_partition_without_a_gap_and_with_one():
    y = np.array([1.0, -1.0, 1.0, 1.0])
    assert abs(duality.two_way_partition(-np.outer(y, y)).gap) < TOL
    assert duality.two_way_partition(np.ones((3, 3))).gap > 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_G2_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    R, A = rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    P, b = R @ R.T + np.eye(3), A @ rng.normal(size=3) - 0.1
    found = duality.quadratic_program(P, A, b)
    check_strong(found, np.all(A @ found.x <= b + TOL))
    lam = rng.random(4)
    expected = -lam @ A @ np.linalg.inv(P) @ A.T @ lam / 4 - b @ lam
    assert_allclose(found.g(lam), expected)
    assert_allclose(found.primal, found.x @ P @ found.x, rtol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_G2_trust_region(seed):
    """Not convex, but strong duality; the primal by many starts of a local search."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    A = A + A.T
    found = duality.trust_region(A, b)
    check_strong(found, found.x @ found.x <= 1 + TOL)
    lam = float(found.multipliers[0]) + rng.random()
    assert_allclose(found.g(lam), -b @ np.linalg.pinv(A + lam * np.eye(3)) @ b - lam)
    ball = {"type": "ineq", "fun": lambda x: 1 - x @ x}
    starts = rng.normal(size=(20, 3))
    local = [minimize(lambda x: x @ A @ x + 2 * b @ x, s, constraints=ball).fun for s in starts]
    assert_allclose(found.primal, min(local), atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_G2_box_linear_program(seed):
    rng = np.random.default_rng(seed)
    A, c = rng.normal(size=(2, 5)), rng.normal(size=5)
    b = A @ (2 * rng.random(5) - 1)
    found = duality.box_lp(c, A, b)
    check_strong(found, np.allclose(A @ found.x, b) and np.all(np.abs(found.x) <= 1 + TOL))
    nu = rng.normal(size=2)
    assert_allclose(found.g(nu), -b @ nu - np.abs(A.T @ nu + c).sum())


@pytest.mark.parametrize("seed", SEEDS)
def test_G2_semidefinite_program(seed):
    rng = np.random.default_rng(seed)
    F = [M + M.T for M in rng.normal(size=(2, 3, 3))]
    G = sum(F) + np.eye(3)  # x = (1, 1) is strictly feasible
    R = rng.normal(size=(3, 3))
    c = [-np.trace(Fi @ R @ R.T) for Fi in F]  # and the dual is feasible
    found = duality.semidefinite_program(c, F, G)
    slack = G - sum(x * Fi for x, Fi in zip(found.x, F, strict=True))
    check_strong(found, np.linalg.eigvalsh(slack)[0] > -TOL)
    (Z,) = found.multipliers
    assert_allclose(found.dual, -np.trace(G @ Z))
    assert_allclose([np.trace(Fi @ Z) for Fi in F], -np.array(c), atol=1e-5)
    assert found.g(2 * Z) == -np.inf  # tr(Fi Z) + ci is not zero


@pytest.mark.parametrize("name", duality.CONJUGATES)
@pytest.mark.parametrize("seed", SEEDS)
def test_G2_conjugate_form(seed, name):
    rng = np.random.default_rng(seed)
    A, C, inside = rng.normal(size=(3, 4)), np.ones((1, 4)), rng.random(4) + 0.1
    data = {"A": A, "b": A @ inside + 0.05, "C": C, "d": C @ inside}
    pair = duality.CONJUGATES[name]
    found = duality.conjugate_form(pair, **data)
    feasible = np.all(A @ found.x <= data["b"] + TOL) and np.allclose(C @ found.x, data["d"])
    check_strong(found, feasible)
    lam, nu = found.multipliers
    value = -pair.conjugate(-A.T @ lam - C.T @ nu) - data["b"] @ lam - data["d"] @ nu
    assert_allclose(found.dual, value)


# --- G3 -------------------------------------------------------------------------------------------

POINTS_OF_DOMAIN = {
    "half squared norm": [[0.3, -2.0, 0.0]],
    "negative entropy": [[0.3, -2.0, 1.0]],
    "exponential": [[0.3, 2.0, 1.0]],
    "negative logarithm": [[-0.3, -2.0, -1.0]],
    "log-sum-exp": [[0.3, 0.5, 0.2]],
    "sum of absolute values": [[0.3, -0.9, 0.0]],
}
POINTS_OUTSIDE = {
    "exponential": [0.3, -0.5, 1.0],
    "negative logarithm": [-0.3, 0.5, -1.0],
    "log-sum-exp": [0.3, 0.5, 0.4],
    "sum of absolute values": [0.3, -1.2, 0.0],
}


@pytest.mark.parametrize("name", duality.CONJUGATES)
def test_G3_closed_conjugates_are_suprema(name):
    pair = duality.CONJUGATES[name]
    for y in np.array(POINTS_OF_DOMAIN[name]):
        assert_allclose(pair.conjugate(y), duality.conjugate(pair.f, y), atol=1e-5)


@pytest.mark.parametrize("name", POINTS_OUTSIDE)
def test_G3_conjugates_are_infinite_outside_their_domain(name):
    pair, y = duality.CONJUGATES[name], np.array(POINTS_OUTSIDE[name])
    assert pair.conjugate(y) == duality.conjugate(pair.f, y) == np.inf


def test_G3_the_conjugate_of_the_negative_entropy():
    y = np.array([-1.0, 0.0, 2.0])
    assert_allclose(duality.CONJUGATES["negative entropy"].conjugate(y), np.exp(y - 1).sum())


@pytest.mark.parametrize("name", duality.CONJUGATES)
def test_G3_fenchel_young(name):
    """f(x) + f*(y) >= x'y, with equality for some x where f* is finite."""
    pair, rng = duality.CONJUGATES[name], np.random.default_rng(0)
    y = np.array(POINTS_OF_DOMAIN[name][0])
    X = rng.random(size=(200, 3)) + 0.01
    assert min(pair.f(x).value + pair.conjugate(y) - x @ y for x in X) >= -1e-9


# --- G4 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_G4_residuals_vanish_at_a_solution(seed):
    found = kkt(random_qp(np.random.default_rng(seed)))
    scale = 1 + abs(found.primal)
    for residual in (found.gap, found.stationarity, found.feasibility, found.complementarity):
        assert abs(residual) < 10 * TOL * scale


@pytest.mark.parametrize("seed", SEEDS)
def test_G4_residuals_are_those_of_the_definition(seed):
    """At an arbitrary point and multipliers, by hand; L is linear, so x - p is its gradient."""
    rng = np.random.default_rng(seed)
    A, b, c = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
    C, d = rng.normal(size=(1, 3)), rng.normal(size=1)
    x = cp.Variable(3, value=rng.normal(size=3))
    problem = cp.Problem(cp.Minimize(c @ x), [A @ x <= b, C @ x == d])
    lam, nu = rng.random(4), rng.normal(size=1)
    for constraint, multiplier in zip(problem.constraints, (lam, nu), strict=True):
        constraint.save_dual_value(multiplier)
    f, h = A @ x.value - b, C @ x.value - d
    found = kkt(problem)
    assert_allclose(found.primal, c @ x.value)
    assert_allclose(found.feasibility, max(np.maximum(f, 0).max(), np.abs(h).max()))
    assert_allclose(found.complementarity, np.abs(lam * f).max())
    assert_allclose(found.stationarity, np.abs(c + A.T @ lam + C.T @ nu).max(), rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_G4_multipliers_are_sensitivities(seed):
    """lambda* = -dp*/du and nu* = -dp*/dv, by central differences."""
    problem = random_qp(np.random.default_rng(seed))
    lam, nu = (c.dual_value for c in problem.constraints)
    h = 1e-3

    def slope(u, v):
        values = [duality.sensitivity(problem, [s * u, s * v]).value for s in (h, -h)]
        return (values[0] - values[1]) / (2 * h)

    assert_allclose(slope(0 * lam, 1.0), -nu[0], rtol=1e-3, atol=1e-3)
    i = int(np.argmax(lam))
    assert lam[i] > 0.1
    assert_allclose(slope(np.eye(6)[i], 0.0), -lam[i], rtol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_G4_the_tangent_is_a_lower_bound(seed):
    rng = np.random.default_rng(seed)
    problem = random_qp(rng)
    for _ in range(5):
        found = duality.sensitivity(problem, [rng.random(6), 0.05 * rng.normal(size=1)])
        assert found.value >= found.bound - TOL * (1 + abs(found.bound))


# --- G5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "tol"), [(4.0, 0.5), (1.0, 1e-3), (3.0, 0.1), (1e-3, 1.0)])
def test_G5_number_of_steps(width, tol):
    for target in (0.0, 0.3 * width, width):
        found = duality.bisection(lambda t, at=target: t if t >= at else None, 0.0, width, tol)
        assert found.n_iter == max(0, math.ceil(math.log2(width / tol)))
        low, high = found.brackets[-1]
        assert low <= target <= high
        assert high - low <= tol
        assert_allclose(np.diff(found.brackets).ravel(), width / 2.0 ** np.arange(found.n_iter + 1))


def test_G5_a_quasi_convex_problem():
    """The ratio p / q of a convex and a concave function, against a grid."""
    x = cp.Variable(2)
    p, q, limits = cp.norm(x - 3) + 1, cp.sqrt(x[0]) + 1, [cp.sum(x) <= 4, x >= 0]

    def feasible(t):
        problem = cp.Problem(cp.Minimize(p - t * q), limits)
        return x.value.copy() if problem.solve(solver=cp.CLARABEL) <= 0 else None

    found = duality.bisection(feasible, 0.0, 10.0, 1e-4)
    x.value = found.x
    assert float(p.value / q.value) <= found.value + TOL
    grid = np.array([(s, t) for s in np.linspace(0, 4, 401) for t in (0, 4 - s, (4 - s) / 2)])
    ratios = (np.linalg.norm(grid - 3, axis=1) + 1) / (np.sqrt(grid[:, 0]) + 1)
    assert_allclose(found.value, ratios.min(), atol=1e-3)


# --- G6 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_G6_chebyshev_centre(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(8, 3))
    A = np.vstack([A, -A])
    b = A @ rng.normal(size=3) + rng.random(16)
    x, r = duality.chebyshev_centre(A, b)
    distances = (b - A @ x) / np.linalg.norm(A, axis=1)
    assert_allclose(distances.min(), r)
    others = x + 0.3 * rng.normal(size=(200, 3))
    assert max(((b - A @ z) / np.linalg.norm(A, axis=1)).min() for z in others) <= r + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_G6_robust_linear_program(seed):
    """The worst a of each ellipsoid is at u = P'x / |P'x|; no a violates, and one is tight."""
    rng = np.random.default_rng(seed)
    A, P = np.vstack([np.eye(3), -np.eye(3)]), 0.2 * rng.normal(size=(6, 3, 2))
    c, b = rng.normal(size=3), np.ones(6)
    x, value = duality.robust_lp(c, A, b, P)
    U = rng.normal(size=(500, 2))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    worst = np.array([max((a + Pi @ u) @ x for u in U) for a, Pi in zip(A, P, strict=True)])
    assert np.all(worst <= 1 + TOL)
    assert worst.max() > 1 - 1e-3
    assert_allclose(c @ x, value, rtol=1e-6)
    assert value >= linprog(c, A_ub=A, b_ub=b, bounds=(None, None)).fun - TOL


@pytest.mark.parametrize("eta", [0.5, 0.9, 0.99])
def test_G6_chance_constraints(eta):
    rng = np.random.default_rng(0)
    A, c, b = np.vstack([np.eye(2), -np.eye(2)]), rng.normal(size=2), np.ones(4)
    S = [0.1 * M @ M.T + 0.01 * np.eye(2) for M in rng.normal(size=(4, 2, 2))]
    x, _ = duality.chance_lp(c, A, b, S, eta)
    deviations = np.sqrt([x @ Si @ x for Si in S])
    probabilities = norm.cdf((b - A @ x) / deviations)
    assert probabilities.min() >= eta - 1e-5
    assert_allclose(probabilities.min(), eta, atol=1e-4)  # one constraint binds


@pytest.mark.parametrize("seed", SEEDS)
def test_G6_linear_fractional(seed):
    """The linear program, against bisection on the level."""
    rng = np.random.default_rng(seed)
    c, e, d, f = rng.normal(size=3), rng.random(3), rng.normal(), 1.0
    G, h = np.vstack([np.eye(3), -np.eye(3)]), np.append(np.ones(3), np.zeros(3))
    A, b = np.ones((1, 3)), [1.5]

    def feasible(t):
        low = linprog(c - t * e, A_ub=G, b_ub=h, A_eq=A, b_eq=b, bounds=(None, None))
        return low.x if low.fun + d - t * f <= 0 else None

    x, value = duality.linear_fractional(c, d, e, f, G, h, A, b)
    assert_allclose((c @ x + d) / (e @ x + f), value)
    assert np.all(G @ x <= h + TOL)
    assert_allclose(x.sum(), 1.5)
    assert_allclose(value, duality.bisection(feasible, -10.0, 10.0, 1e-8).value, atol=1e-6)


def test_G6_geometric_program():
    """The largest box of a given surface is a cube; against cvxpy's own geometric programs."""
    volume = ([1.0], [[-1.0, -1.0, -1.0]])
    surface = ([2 / 6, 2 / 6, 2 / 6], [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    x, value = duality.geometric_program(volume, [surface])
    assert_allclose(x, np.ones(3), atol=1e-4)
    assert_allclose(value, 1.0, rtol=1e-5)
    flat = ([2.0], [[1.0, 0.0, -1.0]])  # x3 = 2 x1
    x, value = duality.geometric_program(volume, [surface], [flat])
    y = cp.Variable(3, pos=True)
    area = 2 / 6 * (y[0] * y[1] + y[0] * y[2] + y[1] * y[2])
    problem = cp.Problem(cp.Minimize(1 / (y[0] * y[1] * y[2])), [area <= 1, y[2] == 2 * y[0]])
    assert_allclose(value, problem.solve(gp=True, solver=cp.CLARABEL), rtol=1e-5)
    assert_allclose(x[2], 2 * x[0], rtol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_G6_perron_frobenius(seed):
    A = np.random.default_rng(seed).random((4, 4)) + 0.01
    v, value = duality.perron_frobenius(A)
    assert_allclose(value, np.abs(np.linalg.eigvals(A)).max(), rtol=1e-6)
    assert_allclose(A @ v, value * v, rtol=1e-3)
    assert np.all(v > 0)
    growth = [np.linalg.matrix_power(A, k).sum() for k in (30, 31)]
    assert_allclose(growth[1] / growth[0], value, rtol=1e-6)


@pytest.mark.parametrize("shape", [(4, 1), (1, 3), (3, 2), (2, 2)])
def test_G6_norms_as_matrix_inequalities(shape):
    """Positive semidefinite if and only if |A| <= t: the least eigenvalue is t - |A|."""
    A = np.random.default_rng(0).normal(size=shape)
    size = np.linalg.norm(A, 2)
    for t in (size + 0.1, size - 0.1):
        M = duality.norm_lmi(A, t).value
        assert_allclose(np.linalg.eigvalsh(M)[0], t - size)
        assert_allclose(M, M.T)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_G6_second_order_cone_program_as_semidefinite_program(seed):
    rng = np.random.default_rng(seed)
    A, b, f = rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=2)
    x = cp.Variable(2)
    inside = np.linalg.norm(b) + 1
    u = cp.reshape(A @ x + b, (3, 1), order="F")
    constraints = [cp.norm(A @ x + b) <= inside, duality.norm_lmi(u, inside) >> 0]
    problems = [cp.Problem(cp.Minimize(f @ x), [c]) for c in constraints]
    values = [problem.solve(solver=cp.CLARABEL) for problem in problems]
    assert_allclose(values[0], values[1], rtol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_G6_smallest_largest_eigenvalue(seed):
    rng = np.random.default_rng(seed)
    A = [M + M.T for M in rng.normal(size=(3, 4, 4))]
    A[1] -= np.trace(A[1]) / 4 * np.eye(4)
    A[2] -= np.trace(A[2]) / 4 * np.eye(4)  # traceless: bounded below
    x, value = duality.minimise_eigenvalue(A)

    def largest(z):
        return np.linalg.eigvalsh(A[0] + z[0] * A[1] + z[1] * A[2])[-1]

    assert_allclose(largest(x), value, rtol=1e-5)
    direct = minimize(largest, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8})
    assert_allclose(value, direct.fun, rtol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_G6_smallest_spectral_norm(seed):
    A = np.random.default_rng(seed).normal(size=(3, 4, 3))
    x, value = duality.minimise_spectral_norm(A)
    S = cp.Variable(2)
    other = cp.Problem(cp.Minimize(cp.sigma_max(A[0] + S[0] * A[1] + S[1] * A[2])))
    assert_allclose(np.linalg.norm(A[0] + x[0] * A[1] + x[1] * A[2], 2), value, rtol=1e-5)
    assert_allclose(value, other.solve(solver=cp.CLARABEL), rtol=1e-5)


def test_G6_scalarisation_gives_pareto_points():
    """Least squares against size: no weights give a point that another dominates."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(6, 3)), rng.normal(size=6)
    x = cp.Variable(3)
    objectives = [cp.sum_squares(A @ x - b), cp.sum_squares(x)]
    points = [duality.scalarise(objectives, w) for w in ([1.0, t] for t in (0.01, 0.1, 1.0, 10.0))]
    for p, q in combinations(points, 2):
        assert p[0] < q[0]
        assert p[1] > q[1]
    for z in x.value + 0.5 * rng.normal(size=(200, 3)):
        F = np.array([np.sum((A @ z - b) ** 2), z @ z])
        assert not any(np.all(p - 1e-5 > F) for p in points)


def test_G6_a_weight_of_zero_may_give_a_dominated_point():
    """Of the points (0, x2), all with the least x1 in the square, (0, 0) dominates the others."""
    x = cp.Variable(2)
    square = [x >= 0, x <= 1]
    cp.Problem(cp.Minimize(x[0]), square).solve(solver=cp.CLARABEL)
    assert_allclose(x.value[0], 0.0, atol=TOL)
    assert x.value[1] > 0.1  # an interior point method ends in the middle of the edge
    with pytest.raises(ValueError, match="weights must be > 0"):
        duality.scalarise([x[0], x[1]], [1.0, 0.0], square)
    assert_allclose(duality.scalarise([x[0], x[1]], [1.0, 1e-3], square), [0.0, 0.0], atol=1e-4)


# --- G7 -------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(12, 2))
Q = np.array([[2.0, 0.5], [0.5, 1.0]])
FUNCTIONS = {  # f, gradient, Hessian, convex
    "quadratic": (lambda x: x @ Q @ x, lambda x: 2 * Q @ x, lambda x: 2 * Q, True),
    "saddle": (
        lambda x: x[0] * x[1],
        lambda x: x[::-1],
        lambda x: np.array([[0.0, 1.0], [1.0, 0.0]]),
        False,
    ),
    "log-sum-exp": (
        lambda x: np.log(np.exp(x).sum()),
        lambda x: np.exp(x) / np.exp(x).sum(),
        lambda x: (
            np.diag(np.exp(x) / np.exp(x).sum())
            - np.outer(np.exp(x), np.exp(x)) / np.exp(x).sum() ** 2
        ),
        True,
    ),
    "affine": (lambda x: x.sum() + 3, np.ones_like, lambda x: np.zeros((2, 2)), True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_G7_first_order(name):
    f, gradient, _, convex = FUNCTIONS[name]
    found = duality.first_order_convexity(f, gradient, X)
    assert found.holds is convex
    x, y = found.witness
    assert_allclose(found.margin, f(y) - f(x) - gradient(x) @ (y - x), atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_G7_second_order(name):
    _, _, hessian, convex = FUNCTIONS[name]
    found = duality.second_order_convexity(hessian, X)
    assert found.holds is convex
    smallest = min(np.linalg.eigvalsh(hessian(x))[0] for x in X)
    assert_allclose(found.margin, smallest, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_G7_jensen(name):
    f, _, _, convex = FUNCTIONS[name]
    found = duality.jensen(f, X)
    assert found.holds is convex
    assert (np.mean([f(x) for x in X]) >= f(X.mean(axis=0)) - 1e-12) or not convex
    x, y = found.witness
    sides = [t * f(x) + (1 - t) * f(y) - f(t * x + (1 - t) * y) for t in (0.25, 0.5, 0.75)]
    assert_allclose(found.margin, min(sides), atol=1e-12)


def test_G7_affine_functions_are_not_refuted():
    """Every inequality is an equality, so only rounding is compared."""
    grid = np.array([(s, t) for s in np.linspace(-1, 1, 5) for t in np.linspace(-1, 1, 5)])
    a = np.array([0.1, 0.3])
    assert duality.jensen(lambda x: a @ x, grid).holds
    assert duality.first_order_convexity(lambda x: a @ x, lambda x: a, grid).holds
    f = lambda x: np.exp(a @ x)  # noqa: E731
    assert duality.log_concavity(f, lambda x: a * f(x), lambda x: np.outer(a, a) * f(x), grid).holds
    assert not duality.jensen(lambda x: a @ x - 1e-9 * x @ x, grid).holds


def test_G7_log_concavity():
    """The normal density is log-concave; a mixture of two far apart is not."""

    def bump(centre):
        f = lambda x: np.exp(-np.sum((x - centre) ** 2) / 2)  # noqa: E731
        gradient = lambda x: -(x - centre) * f(x)  # noqa: E731
        hessian = lambda x: (np.outer(x - centre, x - centre) - np.eye(2)) * f(x)  # noqa: E731
        return f, gradient, hessian

    one, two = bump(np.zeros(2)), bump(np.array([6.0, 0.0]))
    both = [lambda x, i=i: one[i](x) + two[i](x) for i in range(3)]
    grid = np.column_stack([np.linspace(-1, 7, 17), np.zeros(17)])
    assert duality.log_concavity(*one, grid).holds
    found = duality.log_concavity(*both, grid)
    assert not found.holds
    assert_allclose(found.witness[0], [3.0, 0.0])  # between the two
    assert_allclose(both[0]([3.0, 0.0]), 2 * np.exp(-4.5))


def test_G7_quasi_convexity():
    """sqrt|x| is quasi-convex and not convex; the sum of two quasi-convex functions need not be."""
    f = lambda x: np.sqrt(np.abs(x[0] - 1))  # noqa: E731
    both = lambda x: f(x) + np.sqrt(np.abs(x[0] + 1))  # noqa: E731
    grid = np.linspace(-3, 3, 25)[:, None]
    assert duality.quasiconvexity(f, grid).holds
    assert not duality.jensen(f, grid).holds
    assert not duality.quasiconvexity(both, grid).holds


@pytest.mark.parametrize("seed", SEEDS)
def test_G7_projections(seed):
    """Inside the set, nearer than every other point of it, and <x - Px, y - Px> <= 0."""
    rng = np.random.default_rng(seed)
    x, a, centre, A = (rng.normal(size=s) for s in (3, 3, 3, (2, 3)))
    x, b, radius = 5 * x, rng.normal(), rng.random() + 0.1
    others = 3 * rng.normal(size=(100, 3))
    for project in (
        lambda z: duality.project_ball(z, centre, radius),
        lambda z: duality.project_halfspace(z, a, b),
        lambda z: duality.project_affine(z, A, [b, radius]),
    ):
        p = project(x)
        assert_allclose(project(p), p, atol=1e-12)
        inside = np.array([project(z) for z in others])
        assert np.all(np.linalg.norm(inside - x, axis=1) >= np.linalg.norm(p - x) - 1e-9)
        assert np.all((inside - p) @ (x - p) <= 1e-9)
    assert np.linalg.norm(duality.project_ball(x, centre, radius) - centre) <= radius + 1e-12
    assert a @ duality.project_halfspace(x, a, b) <= b + 1e-9
    assert_allclose(duality.project_halfspace(x, a, b), x - max(0, a @ x - b) * a / (a @ a))


@pytest.mark.parametrize("seed", SEEDS)
def test_G7_first_order_optimality(seed):
    """Unconstrained, with Ax = b, and with x >= 0: solved by cvxpy, and refuted elsewhere."""
    rng = np.random.default_rng(seed)
    R, t, A = rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=(1, 3))
    b = rng.normal(size=1)
    x = cp.Variable(3)
    for constraints, project in (
        ([], lambda z: z),
        ([A @ x == b], lambda z: duality.project_affine(z, A, b)),
        ([x >= 0], lambda z: np.maximum(z, 0)),
    ):
        cp.Problem(cp.Minimize(cp.sum_squares(R @ x - t)), constraints).solve(solver=cp.CLARABEL)
        z = project(x.value)
        gradient = 2 * R.T @ (R @ z - t)
        assert duality.optimality_residual(z, gradient, project) < 1e-3
        y = project(z + 1 + rng.random(3))
        assert gradient @ (y - z) >= -1e-3
        assert duality.optimality_residual(y, 2 * R.T @ (R @ y - t), project) > 0.01
        if not constraints:
            assert_allclose(gradient, 0, atol=1e-3)
        elif constraints[0].expr.shape == (1,):
            nu = np.linalg.lstsq(A.T, -gradient)[0]
            assert_allclose(gradient + A.T @ nu, 0, atol=1e-3)
        else:
            assert np.all(gradient >= -1e-3)
            assert np.all(np.abs(gradient[z > 1e-4]) < 1e-2)
