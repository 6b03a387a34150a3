"""Laws of gradient descent: O1 to O6b of docs/spec.md."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.exceptions import InputError
from mercer.theory import first_order as fo
from tests.theorems.pep import worst_case

REPEATS = 1000


def quadratics(count=REPEATS, d=4, seed=0):
    """Random convex quadratics (A, x*, x_0) with eigenvalues between 0.1 and 10."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
        A = Q @ np.diag(np.concatenate([[0.1, 10.0], rng.uniform(0.1, 10.0, d - 2)])) @ Q.T
        yield A, *rng.normal(size=(2, d))


def run(A, best, start, step, n=30, **given):
    return fo.gradient_descent(
        lambda x: 0.5 * (x - best) @ A @ (x - best),
        lambda x: A @ (x - best),
        start,
        n,
        smoothness=10.0,
        step_size=step,
        minimiser=best,
        **given,
    )


def log_sum_exp(x):
    return float(np.log(np.sum(np.exp(x))))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


@pytest.mark.parametrize("step", [0.02, 0.1, 0.19])
def test_O1_each_step_falls_by_at_least_the_descent_lemma(step):
    for A, best, start in quadratics():
        found = run(A, best, start, step)
        moves = np.sum(np.diff(found.points, axis=0) ** 2, axis=1)
        falls = -np.diff(found.values)
        assert np.all(falls >= (1 / step - 5.0) * moves - 1e-12 * found.values[0])


def test_O1_the_lemma_is_attained_along_the_steepest_direction():
    A = np.diag([10.0])
    found = run(A, np.zeros(1), np.ones(1), 0.15, 1)
    move = float(np.sum(np.diff(found.points, axis=0) ** 2))
    assert_allclose(found.values[0] - found.values[1], (1 / 0.15 - 5.0) * move)


def test_O1_steps_of_two_over_smoothness_and_more_are_refused():
    A = np.diag([10.0])
    for step in (0.2, 0.25):
        with pytest.raises(InputError, match="below 2 / smoothness"):
            run(A, np.zeros(1), np.ones(1), step)


@pytest.mark.parametrize("step", [0.02, 0.1, 0.15, 0.19])
def test_O2_values_are_below_the_rate_and_within_a_factor(step):
    worst = 0.0
    for A, best, start in quadratics():
        found = run(A, best, start, step)
        assert np.all(found.values[1:] <= found.bound[1:] * (1 + 1e-12))
        worst = max(worst, float((found.values[1:] / found.bound[1:]).max()))
    assert worst > 0.1


def test_O2_special_case_of_the_best_step():
    assert_allclose(fo.smooth_rate(5, 0.1, 10.0, 3.0)[1:], 10.0 * 9.0 / (2 * np.arange(1, 6)))
    steps = np.linspace(0.01, 0.19, 181)
    last = [fo.smooth_rate(5, s, 10.0, 3.0, excess=0.5 * 10.0 * 9.0)[-1] for s in steps]
    assert_allclose(steps[np.argmin(last)], 0.1, atol=1e-3)


def test_O2_holds_for_a_function_that_is_not_quadratic():
    """Log-sum-exp plus a quadratic; the gradient of the first part is 1-Lipschitz."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        c = rng.normal(size=3)
        best = np.zeros(3)
        for _ in range(200):  # Newton's method on log_sum_exp(x) - <c, x> + |x|^2 / 2
            s = softmax(best)
            best = best - np.linalg.solve(np.diag(s) - np.outer(s, s) + np.eye(3), s - c + best)
        found = fo.gradient_descent(
            lambda x, c=c: log_sum_exp(x) - c @ x + 0.5 * x @ x,
            lambda x, c=c: softmax(x) - c + x,
            3 * rng.normal(size=3),
            25,
            smoothness=2.0,
            strong_convexity=1.0,
            minimiser=best,
        )
        excess = found.values - (log_sum_exp(best) - c @ best + 0.5 * best @ best)
        assert np.all(excess <= found.bound + 1e-12)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_O2_exact_worst_case(n):
    """The exact worst case is L D^2 / (4 t + 2): the rate is at most 2 + 1 / t times as large."""
    exact = worst_case("smooth", n, step=0.1, smoothness=10.0)
    assert_allclose(exact, 10.0 / (4 * n + 2), rtol=1e-4)
    ratio = fo.smooth_rate(n, 0.1, 10.0, 1.0)[-1] / exact
    assert_allclose(ratio, 2.0 + 1.0 / n, rtol=1e-4)


def test_O3_gradient_domination_of_strongly_convex_functions():
    for A, best, start in quadratics():
        gradient = A @ (start - best)
        excess = 0.5 * (start - best) @ A @ (start - best)
        assert excess <= gradient @ gradient / (2 * 0.1) * (1 + 1e-12)


@pytest.mark.parametrize("step", [0.02, 0.1, 0.15])
def test_O3_linear_rate_holds(step):
    worst = 0.0
    for A, best, start in quadratics():
        found = run(A, best, start, step, 60, strong_convexity=0.1)
        rate = fo.strongly_convex_rate(60, step, 10.0, 0.1, found.values[0])
        assert np.all(found.values <= rate * (1 + 1e-9))
        assert np.all(found.bound <= rate)
        worst = max(worst, float((found.values / rate).max()))
    assert worst > 0.5


def test_O3_best_step_of_the_rate_is_one_over_smoothness():
    steps = np.linspace(0.001, 0.199, 199)
    rates = [fo.strongly_convex_rate(1, s, 10.0, 1.0, 1.0)[-1] for s in steps]
    assert_allclose(steps[np.argmin(rates)], 0.1, atol=2e-3)
    at = [fo.strongly_convex_rate(1, s, 10.0, 1.0, 1.0)[-1] for s in (0.1, 2 / 11)]
    assert_allclose(at, [0.9, 0.967], atol=5e-4)


def test_O3_exact_worst_case():
    """(1 - mu / L)^(2 t) is the exact one in the function value: the rate is its square root."""
    exact = worst_case("strongly convex", 3, step=0.1, smoothness=10.0, strong_convexity=1.0)
    assert_allclose(exact, 0.9**6, rtol=1e-3)
    assert_allclose(fo.strongly_convex_rate(3, 0.1, 10.0, 1.0, 1.0)[-1], 0.9**3)


def test_O4_projection_on_a_ball_is_the_nearest_point_and_obtuse():
    project = mc.theory.duality.project_ball
    rng = np.random.default_rng(5)
    for _ in range(REPEATS):
        w, v = 3 * rng.normal(size=(2, 3))
        p = project(w, np.zeros(3), 2.0)
        inside = project(v, np.zeros(3), 2.0)
        assert np.linalg.norm(p) <= 2.0 * (1 + 1e-12)
        assert_allclose(p, w if np.linalg.norm(w) <= 2.0 else 2.0 * w / np.linalg.norm(w))
        assert (w - p) @ (inside - p) <= 1e-12
        assert np.linalg.norm(w - p) <= np.linalg.norm(w - inside) + 1e-12
        assert np.linalg.norm(p - inside) <= np.linalg.norm(w - v) + 1e-12  # does not expand
        to_inside = np.sum((w - inside) ** 2) - np.sum((w - p) ** 2)
        assert np.sum((p - inside) ** 2) <= to_inside + 1e-12  # Lemma A.2.1


@pytest.mark.parametrize("step", [0.05, 0.1, 0.18])
def test_O4_projected_gradient_descent_keeps_descent_lemma_and_rate(step):
    project, worst = mc.theory.duality.project_ball, 0.0
    for A, best, start in quadratics():
        best = best / np.linalg.norm(best)  # on the ball, so that it is the minimiser there too
        start = start / max(1.0, np.linalg.norm(start))
        found = run(A, best, start, step, project=lambda x: project(x, np.zeros(4), 1.0))
        moves = np.sum(np.diff(found.points, axis=0) ** 2, axis=1)
        assert np.all(-np.diff(found.values) >= (1 / step - 5.0) * moves - 1e-12)
        assert np.all(found.values <= found.bound + 1e-12)
        worst = max(worst, float((found.values / found.bound).max()))
    assert worst > 0.1


def test_O5_tikhonov_step_is_the_gradient_step_and_ends_at_the_ridge_solution():
    rng = np.random.default_rng(6)
    X, y, penalty = rng.normal(size=(30, 3)), rng.normal(size=30), 0.2

    def objective(w):
        return np.mean((X @ w - y) ** 2) + penalty * w @ w

    w, step, h = rng.normal(size=3), 0.05, 1e-6
    slopes = [(objective(w + h * e) - objective(w - h * e)) / (2 * h) for e in np.eye(3)]
    assert_allclose(
        fo.tikhonov_step(X, y, w, penalty, step), w - step * np.array(slopes), rtol=1e-7
    )
    for _ in range(2000):
        w = fo.tikhonov_step(X, y, w, penalty, step)
    exact = np.linalg.solve(X.T @ X + 30 * penalty * np.eye(3), X.T @ y)
    assert_allclose(w, exact, rtol=1e-9)


def test_O6_inequalities_hold_and_fail_for_a_constant_that_is_too_small():
    rng = np.random.default_rng(7)
    for A, best, _ in quadratics(1000):
        X = rng.normal(size=(8, 4))

        def f(x, A=A, best=best):
            return 0.5 * (x - best) @ A @ (x - best)

        def slope(x, A=A, best=best):
            return A @ (x - best)

        for step in (0.05, 0.1, 0.2):
            found = fo.check_smoothness(f, slope, X, 10.0, step_size=step, smallest=0.0)
            parts = (found.descent, found.cocoercivity, found.contraction, found.gradient)
            assert min(parts) >= -1e-9
    wide = np.diag([10.0, 0.1])
    X = rng.normal(size=(8, 2))
    wrong = fo.check_smoothness(
        lambda x: 0.5 * x @ wide @ x, lambda x: wide @ x, X, 5.0, smallest=0.0
    )
    assert max(wrong.descent, wrong.cocoercivity, wrong.gradient) < 0.0
    far = fo.check_smoothness(
        lambda x: 0.5 * x @ wide @ x, lambda x: wide @ x, X, 10.0, step_size=0.25
    )
    assert far.contraction < 0.0  # beyond 2 / M steps take points apart


def test_O6b_matching_steps_reach_the_error_and_half_as_many_may_not():
    t = fo.matching_steps(0.01, smoothness=10.0, distance=1.0)
    assert t == 500
    assert fo.smooth_rate(t, 0.1, 10.0, 1.0)[-1] <= 0.01 * (1 + 1e-12)
    assert worst_case("smooth", 4, step=0.1, smoothness=10.0) > 10.0 / (4 * 5 + 2)
    for A, best, start in quadratics(1000):
        d = np.linalg.norm(start - best)
        n = fo.matching_steps(1.0, 10.0, d)
        assert run(A, best, start, 0.1, n).values[-1] <= 1.0


def test_O6b_costs_cross_where_rows_and_columns_are_equal():
    for n, d, cheaper in ((10_000, 10, "primal"), (10, 10_000, "dual")):
        costs = fo.ridge_cost(n, d)
        assert min(("primal", "dual"), key=costs.get) == cheaper
    equal = fo.ridge_cost(500, 500)
    assert equal["primal"] == equal["dual"]
    assert equal["step"] * 250 < equal["primal"]
