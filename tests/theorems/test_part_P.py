"""Laws of subgradient methods: P1 to P4 and X12 of docs/spec.md."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.exceptions import InputError
from mercer.methods import AbsoluteLoss, HingeLoss
from mercer.theory import first_order as fo
from tests.theorems.pep import worst_case

REPEATS = 1000


def polyhedral(count, seed=0, d=3, m=6):
    """Functions max_i <a_i, x - b> >= 0 with minimiser b, their Lipschitz constant, and a start."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        A = rng.normal(size=(m, d))
        A -= A.mean(axis=0)  # 0 is a mean of slopes: x = b is a minimiser
        b, start = rng.normal(size=(2, d))
        yield A, b, start, np.linalg.norm(A, axis=1).max()


def run(A, b, start, steps, L, **given):
    return fo.subgradient_method(
        lambda x: float(np.max(A @ (x - b))),
        lambda x: A[np.argmax(A @ (x - b))],
        start,
        steps,
        lipschitz=L,
        minimiser=b,
        **given,
    )


def test_P1_subdifferential_on_the_line_is_the_interval_of_one_sided_slopes():
    assert_allclose(fo.subdifferential(abs, 0.0), (-1.0, 1.0))
    assert_allclose(fo.subdifferential(abs, 2.0), (1.0, 1.0))
    assert_allclose(fo.subdifferential(lambda x: max(0.0, 1.0 - x), 1.0), (-1.0, 0.0), atol=1e-7)
    assert_allclose(fo.subdifferential(np.exp, 1.0), (np.e, np.e), rtol=1e-7)


def test_P1_every_slope_of_the_interval_is_a_subgradient_and_no_other():
    points = np.linspace(-3.0, 3.0, 61)[:, None]

    def f(x):
        return float(np.maximum(-x[0], 2.0 * x[0]))

    for u in np.linspace(-1.0, 2.0, 7):
        assert fo.subgradient_slack(f, [0.0], [u], points) >= 0.0
    for u in (-1.01, 2.01):
        assert fo.subgradient_slack(f, [0.0], [u], points) < 0.0


def test_P1_separable_sums_have_products_of_subdifferentials():
    rng, x = np.random.default_rng(0), np.array([2.0, 0.0, -1.0])
    low, high = fo.l1_subdifferential(x)
    assert_allclose([low, high], [[1.0, -1.0, -1.0], [1.0, 1.0, -1.0]])
    points = 2 * rng.normal(size=(200, 3))
    for _ in range(100):
        u = rng.uniform(low, high)
        assert fo.subgradient_slack(lambda z: np.abs(z).sum(), x, u, points) >= -1e-12
    assert (
        fo.subgradient_slack(lambda z: np.abs(z).sum(), x, high + np.array([0, 0.1, 0]), points)
        < 0.0
    )


def test_P1_subgradients_are_at_most_the_lipschitz_constant():
    for A, b, start, L in polyhedral(200):
        u = A[np.argmax(A @ (start - b))]
        assert np.linalg.norm(u) <= L * (1 + 1e-12)
        assert fo.subgradient_slack(lambda x, A=A, b=b: np.max(A @ (x - b)), start, u, A) >= -1e-12


STEPS = {
    "constant": fo.constant_steps,
    "root": lambda t, D, L: fo.decreasing_steps(t, D / L),
    "inverse": lambda t, D, L: fo.decreasing_steps(t, D / L, power=1.0),
}


@pytest.mark.parametrize("rule", STEPS)
def test_P2_best_and_average_are_below_the_bound(rule):
    worst = 0.0
    for A, b, start, L in polyhedral(REPEATS):
        D = np.linalg.norm(start - b)
        found = run(A, b, start, STEPS[rule](50, D, L), L)
        assert np.all(found.best_values <= found.bound + 1e-12)
        assert np.max(A @ (found.average - b)) <= found.bound[-1] + 1e-12
        worst = max(worst, float((found.best_values / found.bound).max()))
    assert worst > 0.3


def test_P2_constant_steps_give_the_best_bound_for_their_number():
    D, L, t = 2.0, 3.0, 100
    best = fo.subgradient_rate(fo.constant_steps(t, D, L), L, D)[-1]
    assert_allclose(best, L * D / np.sqrt(t))
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert fo.subgradient_rate(factor * fo.constant_steps(t, D, L), L, D)[-1] > best


def test_P2_orders_of_the_other_rules():
    t = np.array([10**3, 10**5])
    inverse = [fo.subgradient_rate(fo.decreasing_steps(n, 1.0, 1.0), 1.0, 1.0)[-1] for n in t]
    assert_allclose(inverse * np.log(t), inverse[0] * np.log(t[0]), rtol=0.1)
    root = [fo.subgradient_rate(fo.decreasing_steps(n, 1.0), 1.0, 1.0)[-1] for n in t]
    order = np.log(t) / np.sqrt(t)
    assert_allclose(root / order, root[0] / order[0], rtol=0.2)
    tail = [fo.tail_rate(fo.decreasing_steps(n, 1.0), 1.0, 1.0) for n in t]
    assert_allclose(tail * np.sqrt(t), tail[0] * np.sqrt(t[0]), rtol=0.05)


def test_P2_tail_average_on_a_bounded_set_is_below_its_bound():
    project, worst = mc.theory.duality.project_ball, 0.0
    for A, b, start, L in polyhedral(REPEATS):
        b = b / max(1.0, np.linalg.norm(b))  # minimiser and start in the unit ball
        start = start / max(1.0, np.linalg.norm(start))
        steps = fo.decreasing_steps(40, 1.0 / L)
        found = run(A, b, start, steps, L, project=lambda x: project(x, np.zeros(3), 1.0))
        value = np.max(A @ (found.tail_average - b))
        worst = max(worst, value / fo.tail_rate(steps, L, 2.0))
        assert np.all(np.linalg.norm(found.points, axis=1) <= 1 + 1e-12)
    assert 0.1 < worst <= 1.0


def test_P2_steps_whose_sum_is_finite_stop_short():
    """|x| from 10: with steps 1 / (i + 1)^2 the iterates never pass 10 - pi^2 / 6."""
    with pytest.raises(InputError, match="power"):
        fo.decreasing_steps(10, 1.0, power=2.0)
    steps = 1.0 / np.arange(1, 5001) ** 2
    found = fo.subgradient_method(lambda x: abs(x[0]), np.sign, [10.0], steps)
    assert_allclose(found.points[-1, 0], 10.0 - np.pi**2 / 6, atol=1e-3)


@pytest.mark.parametrize("n", [1, 4])
def test_P2_exact_worst_case(n):
    """The rate with constant steps is exact for n steps, whose last point counts as well."""
    step = 1.0 / np.sqrt(n + 1)
    exact = worst_case("subgradient", n, step=step, smoothness=1.0)
    assert_allclose(exact, 1.0 / np.sqrt(n + 1), rtol=1e-3)
    steps = fo.constant_steps(n + 1, 1.0, 1.0)
    assert_allclose(fo.subgradient_rate(steps, 1.0, 1.0)[n], exact, rtol=1e-3)


def test_X12_a_subgradient_step_need_not_descend():
    """f = |x_1| + 2 |x_2| at (1, 0) with the subgradient (1, 2): f rises for every small step."""

    def f(x):
        return abs(x[0]) + 2 * abs(x[1])

    rng = np.random.default_rng(0)
    assert fo.subgradient_slack(f, [1.0, 0.0], [1.0, 2.0], rng.normal(size=(500, 2))) >= -1e-12
    for step in (1e-3, 0.1, 0.3):
        found = fo.subgradient_method(f, lambda x: np.array([1.0, 2.0]), [1.0, 0.0], [step])
        assert found.values[1] > found.values[0]


def test_P3_stochastic_method_is_below_the_bound_in_the_mean():
    """A mean of absolute values |<a_i, x> - c_i|, one of which is drawn at each step."""
    rng = np.random.default_rng(1)
    A, best, start = rng.normal(size=(20, 3)), rng.normal(size=3), np.zeros(3)
    c = A @ best  # min f = 0 at `best`
    B = np.sqrt(np.mean(np.sum(A**2, axis=1)))
    steps = fo.constant_steps(60, np.linalg.norm(best), B)

    def draw(x, rng):
        i = rng.integers(20)
        return np.sign(A[i] @ x - c[i]) * A[i]

    def f(x):
        return float(np.mean(np.abs(A @ x - c)))

    runs = [
        fo.subgradient_method(f, draw, start, steps, lipschitz=B, minimiser=best, random_state=s)
        for s in range(REPEATS)
    ]
    bound = runs[0].bound[-1]
    mean = np.mean([f(r.average) for r in runs])
    assert mean <= bound < 5.0 * mean
    assert np.mean([r.values for r in runs], axis=0).min() <= bound
    again = fo.subgradient_method(f, draw, start, steps, random_state=0)
    assert_allclose(again.points, runs[0].points)


def test_P3_orders_hold_for_decreasing_steps():
    steps = fo.decreasing_steps(60, 0.5)
    finals = []
    for seed in range(REPEATS):
        found = fo.subgradient_method(
            lambda x: abs(x[0]),
            lambda x, rng: np.sign(x) + rng.normal(size=1),
            [1.0],
            steps,
            lipschitz=np.sqrt(2.0),
            minimiser=[0.0],
            random_state=seed,
        )
        finals.append(abs(found.average[0]))
    assert np.mean(finals) <= found.bound[-1] < 3.0 * np.mean(finals)


LOSSES = [HingeLoss(), AbsoluteLoss()]


@pytest.mark.parametrize("loss", LOSSES)
def test_P4_kernel_method_is_the_explicit_method_on_features(loss):
    """With the linear kernel it is the stochastic subgradient method on the weights."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], 40)
    classes = [-1.0, 1.0] if loss.classifies else None
    w, total, mean = np.zeros(3), 0.0, np.zeros(3)
    for i in range(40):
        mean, total = mean + (i + 1) * w, total + (i + 1)
        w = w - 0.3 * float(loss.subgradient(y[i], X[i] @ w)) * X[i]
    new = rng.normal(size=(5, 3))
    for average, weights in ((True, mean / total), (False, w)):
        model = mc.estimators.KernelSGD(
            mc.Linear(), loss=loss, step_size=0.3, average=average, shuffle=False
        )
        model.partial_fit(X, y, classes)
        assert_allclose(model.element_(new), new @ weights, rtol=1e-9)


def draws(kernel, best, rows, n):
    """Mean absolute errors of `KernelSGD`, over samples of n of the rows; f* has no error."""
    y, step = best(rows), best.norm() / np.sqrt((n + 1) * kernel.diag(rows).mean())
    model = mc.estimators.KernelSGD(kernel, loss=AbsoluteLoss(), step_size=step, max_iter=1)
    for seed in range(REPEATS):
        sample = np.random.default_rng(seed).integers(len(rows), size=n)
        yield np.mean(np.abs(model.fit(rows[sample], y[sample]).predict(rows) - y))


@pytest.mark.parametrize("kernel", [mc.Gaussian(0.5), mc.Polynomial(2)], ids=repr)
def test_P4_risk_of_the_average_is_below_its_bound_in_the_mean(kernel):
    """D^2 / (s (n + 1)) + s B^2, with B^2 = L^2 E k(x, x); at the best s it is 2 D B / sqrt(n + 1).

    f* is in the space, and the risk is that of rows drawn with equal probability.
    """
    n, rows = 50, np.linspace(0.0, 2.0, 41)[:, None]
    best = mc.Element(kernel, [[0.2], [1.5]], [1.0, -1.0])
    B = np.sqrt(kernel.diag(rows).mean())  # the absolute loss has L = 1
    bound = 2.0 * best.norm() * B / np.sqrt(n + 1)
    mean = np.mean(list(draws(kernel, best, rows, n)))
    assert mean <= bound < 14.0 * mean
