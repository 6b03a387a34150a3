"""Branch and bound: the claim of proof, against grids, other optimisers and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import mercer as mc
from mercer import Status
from mercer.engine import Distance
from mercer.preimages._constraint import Ball, Box, Constraint
from mercer.preimages._objective import Collinear, Nearest
from mercer.preimages._problem import Problem
from mercer.preimages.solvers._global import Global, global_minimum, minima
from mercer.rigor import GlobalMinimum


def problem(kernel: Any, X: Any, a: Any, region: Any = None, held: Any = None) -> Problem:
    a = np.asarray(a, dtype=float)
    psi = mc.Element(kernel, np.asarray(X, dtype=float), a.reshape(len(a), -1))
    held = None if held is None else np.broadcast_to(held, (len(psi), np.shape(X)[1]))
    return Problem(psi, Nearest(), Constraint(region, held))


def objective(p: Problem, x: Any) -> Any:
    value = -np.asarray(p.psi(np.atleast_2d(x)))[:, 0]
    if all(isinstance(v, Distance) for v in p.program.variables):
        return value
    return value + 0.5 * p.kernel.diag(np.atleast_2d(x))


def brute(p: Problem, low: Any, high: Any, polish: int = 3) -> float:
    """The best of a fine grid and the points, polished by another library."""
    d = p.dim
    axes = [np.linspace(a, b, {1: 4001, 2: 121, 3: 26}[d]) for a, b in zip(low, high, strict=True)]
    G = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    G = np.concatenate([G, np.clip(p.psi.points, low, high)])
    value = objective(p, G)
    best = float(value.min())
    for i in np.argsort(value)[:polish]:

        def f(x: Any) -> float:
            return float(objective(p, np.clip(x, low, high))[0])

        options = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 300}
        best = min(best, float(minimize(f, G[i], method="Nelder-Mead", options=options).fun))
    return best


def scale_of(p: Problem) -> float:
    return float(
        np.abs(p.psi.coef.tile(slice(None), slice(0, 1))).sum() * p.kernel.diag(p.psi.points).max()
    )


def holds(p: Problem, found: GlobalMinimum, best: float) -> None:
    """Nothing anywhere is below the proved bound, and the point is what is claimed of it."""
    slack = 1e-12 * max(scale_of(p), abs(found.upper))
    at = float(objective(p, found.point)[0])
    assert found.lower <= best + slack
    assert found.lower - slack <= at <= found.upper + slack


class Wave(mc.Radial):
    """A profile that cannot be recorded."""

    def profile(self, u: Any) -> Any:
        return np.cos(u)


def kernels(s: float, d: int) -> list[Any]:
    M = np.eye(d) + 0.4 * np.tri(d, k=-1)
    return [
        mc.Gaussian(s),
        mc.Laplace(s),
        mc.Matern(1.5, s),
        mc.Matern(2.5, s),
        mc.RationalQuadratic(1.5, s),
        mc.InverseMultiquadric(s**2, 1.0),
        mc.Epanechnikov(s),
        mc.Epanechnikov(s, s / 2),
        mc.Gaussian(s) + mc.Laplace(2 * s),
        mc.Gaussian(2 * s) * mc.Matern(1.5, s),
        mc.Gaussian(s) + 0.5,
        mc.Gaussian(s).transform(mc.Scales([1.0, 2.0, 0.5][:d])),
        mc.Laplace(s).transform(mc.kernels.Matrix(M)),
        mc.Gaussian(s).transform(mc.Columns([0]))
        * mc.Matern(2.5, s).transform(mc.Columns([d - 1])),
        mc.Gaussian(s) + 0.3 * mc.Linear(),
        mc.Linear(),
        mc.Polynomial(2),
        mc.Polynomial(3, 2.0),
        mc.Exponential(2.0),
    ]


@pytest.mark.sample(3)
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("index", range(19))
def test_against_a_grid_and_another_optimiser(index: int, d: int, rng: Any) -> None:
    kernel = kernels(0.8, d)[index]
    X, a = rng.normal(size=(12, d)), rng.normal(size=12)
    p = problem(kernel, X, a)
    (found,) = minima(p)
    assert found.status is Status.PROVED
    best = brute(p, X.min(axis=0) - 2, X.max(axis=0) + 2)
    holds(p, found, best)
    if index < 14:  # a profile of distances, largest at zero
        assert found.upper - found.lower <= 1.001e-6 * scale_of(p)


def random_problem(rng: Any) -> tuple[Problem, Any, Any]:
    d, n = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    s = 10 ** rng.uniform(-0.5, 0.5)
    every = kernels(s, d)
    kernel = every[int(rng.integers(len(every)))]
    X = np.round(rng.normal(size=(n, d)), int(rng.integers(0, 3)))
    a = rng.normal(size=n) * rng.choice([1.0, 1e-3, 1e3])
    if not all(isinstance(v, Distance) for v in kernel.program.variables):
        a = np.clip(a, -2, 2)
    if d > 1 and rng.random() < 0.2:
        value = 2 * rng.normal()
        held = np.r_[value, np.full(d - 1, np.nan)]
        low, high = X.min(axis=0) - 3 * s, X.max(axis=0) + 3 * s
        low[0] = high[0] = value
        return problem(kernel, X, a, held=held), low, high
    if rng.random() < 0.3:
        low = rng.normal(size=d)
        region = Box(low, low + rng.exponential(size=d))
        return problem(kernel, X, a, region), region.low, region.high
    return problem(kernel, X, a), X.min(axis=0) - 3 * s, X.max(axis=0) + 3 * s


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 10))]
)
def test_a_proof_is_never_violated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(15):
        p, low, high = random_problem(rng)
        (found,) = minima(p, gap=10 ** rng.uniform(-7, -2), max_boxes=20_000)
        holds(p, found, brute(p, low, high, polish=1))
        assert (found.status is Status.MAX_ITER) <= (found.n_boxes >= 20_000)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(-2, 2)), min_size=1, max_size=8),
    st.sampled_from(range(11)),
    st.floats(0.2, 3.0),
)
def test_a_proof_is_never_violated_in_one_dimension(terms: Any, index: int, s: float) -> None:
    X, a = np.array([[x] for x, _ in terms]), np.array([c for _, c in terms])
    p = problem(kernels(s, 1)[index], X, a)
    (found,) = minima(p, gap=1e-5, max_boxes=20_000)
    holds(p, found, brute(p, [-3 - 4 * s], [3 + 4 * s], polish=1))


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", kernels(0.7, 2)[:14], ids=str)
def test_one_point_is_its_own_pre_image(kernel: Any) -> None:
    found = Global().solve(problem(kernel, [[0.3, -1.2]], [2.0]), None)
    assert found.status[0] is Status.PROVED
    np.testing.assert_allclose(found.points, [[0.3, -1.2]], atol=1e-7)


def test_two_equal_gaussians_have_one_mode_up_to_two_sigma() -> None:
    near = Global().solve(problem(mc.Gaussian(1.0), [[-0.95], [0.95]], [1.0, 1.0]), None)
    assert abs(near.points[0, 0]) < 1e-2
    far = Global().solve(problem(mc.Gaussian(1.0), [[-1.5], [1.5]], [1.0, 1.0]), None)
    x = abs(far.points[0, 0])
    assert 1.0 < x < 1.5
    assert x == pytest.approx(1.5 * np.tanh(1.5 * x), abs=1e-6)  # the critical equation
    assert near.status[0] is far.status[0] is Status.PROVED


def test_linear_kernel_gives_the_combination(rng: Any) -> None:
    X, a = rng.normal(size=(9, 3)), rng.normal(size=9)
    found = Global(gap=1e-10).solve(problem(mc.Linear(), X, a), None)
    np.testing.assert_allclose(found.points[0], a @ X, atol=1e-7)


def test_homogeneous_quadratic_gives_the_leading_eigenvector(rng: Any) -> None:
    X, a = rng.normal(size=(8, 3)), rng.uniform(0, 1, size=8)
    found = Global(gap=1e-8).solve(problem(mc.Polynomial(2, offset=0.0), X, a), None)
    w, V = np.linalg.eigh((X.T * a) @ X)
    expected = np.sqrt(w[-1]) * V[:, -1]
    x = found.points[0]
    np.testing.assert_allclose(x * np.sign(x @ expected), expected, atol=1e-4)


def test_the_laplace_optimum_on_a_line_is_a_point(rng: Any) -> None:
    X, a = rng.normal(size=(20, 1)), rng.uniform(0, 1, size=20)
    p = problem(mc.Laplace(0.5), X, a)
    (found,) = minima(p)
    assert found.point[0] == X[np.argmin(objective(p, X)), 0]
    assert found.status is Status.PROVED


def test_duplicates_and_cancelling_points() -> None:
    X = [[0.0, 0.0], [0.0, 0.0], [3.0, 0.0], [3.0, 0.0]]
    found = Global().solve(problem(mc.Laplace(1.0), X, [0.5, 0.5, 2.0, -2.0]), None)
    assert found.points.tolist() == [[0.0, 0.0]]
    nothing = Global().solve(problem(mc.Gaussian(1.0), X[:2], [1.0, -1.0]), None)
    assert nothing.status[0] is Status.PROVED


# --- at infinity, far away, at other scales -------------------------------------------------------


@pytest.mark.parametrize("kernel", kernels(0.7, 2)[:6], ids=str)
def test_negative_coefficients_escape(kernel: Any, rng: Any) -> None:
    p = problem(kernel, rng.normal(size=(5, 2)), -rng.uniform(0.1, 1, size=5))
    (found,) = minima(p, gap=1e-3)
    assert found.status is Status.ESCAPED
    assert -2e-3 * scale_of(p) <= found.lower <= 0.0 <= found.upper


def test_a_minimum_outside_of_the_hull_of_the_points() -> None:
    p = problem(mc.Gaussian(1.0), [[0.0], [0.1]], [1.0, -1.0])
    (found,) = minima(p)
    assert found.status is Status.PROVED
    assert found.point[0] == pytest.approx(-0.95, abs=0.02)


@pytest.mark.parametrize("kind", [mc.Gaussian, mc.Laplace])
@pytest.mark.parametrize(("size", "shift"), [(1e-8, 0.0), (1e8, 0.0), (1e-70, 0.0), (1.0, 1e6)])
def test_scales_and_places(kind: Any, size: float, shift: float, rng: Any) -> None:
    X, a = np.round(rng.normal(size=(15, 2)), 4), rng.normal(size=15)
    (here,) = minima(problem(kind(0.5), X, a))
    (there,) = minima(problem(kind(0.5 * size), X * size + shift, a))
    assert there.status is Status.PROVED
    assert there.upper == pytest.approx(here.upper, abs=2e-6 * np.abs(a).sum())
    np.testing.assert_allclose((there.point - shift) / size, here.point, atol=1e-2)


def test_where_nothing_is_known_at_infinity_a_box_is_needed() -> None:
    kernel = mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Linear().transform(mc.Columns([1]))
    X, a = [[0.0, 1.0], [1.0, 2.0]], [1.0, -1.0]
    with pytest.raises(mc.InputError, match="Box"):
        minima(problem(kernel, X, a))
    p = problem(kernel, X, a, Box(-2.0, 3.0))
    (found,) = minima(p)
    assert found.status is Status.PROVED
    holds(p, found, brute(p, [-2, -2], [3, 3]))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_negative_distances_lead_to_a_median(p: float, rng: Any) -> None:
    X, a = rng.normal(size=(9, 2)), rng.uniform(0.1, 1, size=9)
    (found,) = minima(problem(mc.NegativeDistance(p), X, a))
    assert found.status is Status.PROVED
    for x in np.concatenate([X, rng.normal(size=(500, 2))]):
        assert found.lower <= a @ np.linalg.norm(X - x, axis=1) ** p
    if p == 2.0:
        np.testing.assert_allclose(found.point, a @ X / a.sum(), atol=1e-6)
    one = problem(mc.NegativeDistance(p), [[1.0, 2.0]], [1.0])
    assert minima(one)[0].point.tolist() == [1.0, 2.0]


def test_a_sum_over_columns_has_no_limit_and_needs_a_box(rng: Any) -> None:
    one, two = mc.Columns([0]), mc.Columns([1])
    kernel = mc.Gaussian(1.0).transform(one) + mc.Laplace(1.0).transform(two)
    X, a = rng.normal(size=(6, 2)), rng.normal(size=6)
    with pytest.raises(mc.InputError, match="Box"):
        minima(problem(kernel, X, a))
    p = problem(kernel, X, a, Box(-3.0, 3.0))
    holds(p, minima(p)[0], brute(p, [-3, -3], [3, 3]))


# --- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", kernels(0.8, 2), ids=str)
def test_a_box(kernel: Any, rng: Any) -> None:
    X, a = rng.normal(size=(10, 2)), rng.normal(size=10)
    low, high = np.array([0.3, -0.5]), np.array([0.9, 0.1])
    p = problem(kernel, X, a, Box(low, high))
    (found,) = minima(p)
    assert found.status is Status.PROVED
    assert ((low <= found.point) & (found.point <= high)).all()
    holds(p, found, brute(p, low, high))


def test_a_box_far_from_everything() -> None:
    p = problem(mc.Gaussian(1.0), [[0.0, 0.0]], [1.0], Box(10.0, 12.0))
    (found,) = minima(p)
    assert found.status is Status.PROVED
    half = problem(mc.Gaussian(1.0), [[0.0]], [1.0], Box(2.0, np.inf))
    np.testing.assert_allclose(minima(half)[0].point, [2.0], atol=1e-6)


def test_held_coordinates(rng: Any) -> None:
    X, a = rng.normal(size=(10, 4)), rng.normal(size=10)
    held = np.array([np.nan, 0.3, np.nan, -0.2])
    p = problem(mc.Gaussian(1.0), X, a, held=held)
    (found,) = minima(p)
    assert found.status is Status.PROVED
    assert found.point[[1, 3]].tolist() == [0.3, -0.2]
    free = rng.normal(size=(20_000, 4)) * 1.5
    free[:, [1, 3]] = [0.3, -0.2]
    assert found.lower <= objective(p, free).min()
    all_held = problem(mc.Gaussian(1.0), X, a, held=np.zeros(4))
    assert minima(all_held)[0].point.tolist() == [0.0] * 4


@pytest.mark.sample(3)
@pytest.mark.parametrize("index", range(19))
@pytest.mark.parametrize("value", [-4.0, 0.2, 3.0])
def test_a_coordinate_held_off_the_points(index: int, value: float, rng: Any) -> None:
    p = problem(
        kernels(0.8, 2)[index], rng.normal(size=(6, 2)), rng.normal(size=6), held=[value, np.nan]
    )
    (found,) = minima(p)
    assert found.point[0] == value
    line = np.stack([np.full(4001, value), np.linspace(-6, 6, 4001)], axis=1)
    holds(p, found, float(objective(p, line).min()))


def test_a_point_at_the_origin_of_a_linear_kernel() -> None:
    (found,) = minima(problem(mc.Linear(), [[0.0]], [1.0]))
    assert found.status is Status.PROVED
    assert abs(found.point[0]) < 1e-3


def test_a_coordinate_the_kernel_does_not_see(rng: Any) -> None:
    kernel = mc.Gaussian(0.5).transform(mc.Columns([0, 2]))
    p = problem(kernel, rng.normal(size=(6, 4)), rng.normal(size=6))
    assert minima(p)[0].status is Status.PROVED


# --- the solver -----------------------------------------------------------------------------------


def test_a_batch_has_a_row_per_element(rng: Any) -> None:
    X, A = rng.normal(size=(7, 2)), rng.normal(size=(7, 3))
    found = Global().solve(problem(mc.Gaussian(0.5), X, A), None)
    assert found.points.shape == (3, 2)
    assert {s.name for s in found.status} == {"PROVED"}
    for j in range(3):
        alone = Global().solve(problem(mc.Gaussian(0.5), X, A[:, j]), None)
        np.testing.assert_array_equal(found.points[j], alone.points[0])


def test_the_budget_of_boxes_is_kept(rng: Any) -> None:
    p = problem(mc.Epanechnikov(0.3), rng.normal(size=(200, 3)), rng.normal(size=200))
    (found,) = minima(p, gap=1e-9, max_boxes=300)
    assert found.status is Status.MAX_ITER
    assert found.n_boxes < 300 + 2100
    assert found.lower < found.upper - 1e-9
    holds(p, found, float(objective(p, rng.normal(size=(5000, 3))).min()))
    assert Global(gap=1e-9, max_boxes=300).solve(p, None).status[0] is Status.MAX_ITER


def test_a_gap_below_rounding_is_not_claimed() -> None:
    p = problem(mc.Gaussian(1.0), [[0.1], [1.3]], [1.0, 1.0 / 3.0])
    (found,) = minima(p, gap=1e-30, max_boxes=3000)
    assert found.status is Status.MAX_ITER


def test_collinear_is_the_same_problem_for_radial_kernels() -> None:
    p = problem(mc.Gaussian(1.0), [[0.0], [6.0]], [0.9, 1.0])
    q = Problem(p.psi, Collinear(), p.constraint)
    np.testing.assert_array_equal(Global().solve(q, None).points, Global().solve(p, None).points)
    dot = problem(mc.Polynomial(2), [[0.0], [6.0]], [0.9, 1.0])
    with pytest.raises(mc.InputError, match="Nearest"):
        Global().solve(Problem(dot.psi, Collinear(), dot.constraint), None)


def test_what_is_refused(rng: Any) -> None:
    X, a = rng.normal(size=(5, 4)), rng.normal(size=5)
    with pytest.raises(mc.InputError, match="at most 3"):
        minima(problem(mc.Gaussian(1.0), X, a))
    with pytest.raises(mc.InputError, match="Box"):
        minima(problem(mc.Gaussian(1.0), X[:, :2], a, Ball([0.0, 0.0], 1.0)))
    with pytest.raises(mc.InputError, match="recorded"):
        minima(problem(Wave(), X[:, :1], a))
    with pytest.raises(mc.InputError, match="gap"):
        Global(gap=0.0)
    with pytest.raises(mc.InputError, match="max_boxes"):
        Global(max_boxes=0)


def test_starts_are_candidates() -> None:
    p = problem(mc.Gaussian(1.0), [[0.0], [6.0]], [0.9, 1.0])
    found = Global().solve(p, np.array([[[6.0]], [[0.0]]]))
    np.testing.assert_allclose(found.points, [[6.0]], atol=1e-6)


def test_the_bounds_of_an_element(rng: Any) -> None:
    X, a = rng.normal(size=(6, 2)).astype(np.float32), rng.normal(size=6)
    psi = mc.Element(mc.Gaussian(0.5), X, a)
    (whole,) = global_minimum(psi)
    (part,) = global_minimum(psi, region=Box(-0.1, 0.1), fixed=[0.0, np.nan])
    assert whole.lower <= whole.upper <= part.upper
    assert part.point[0] == 0.0
    with pytest.raises(mc.InputError, match="gap"):
        global_minimum(psi, gap=-1.0)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e6])
@pytest.mark.parametrize("gap", [1e-4, 1e-9])
def test_in_float32_the_returned_point_is_proved_or_not_called_so(offset, gap, rng):
    for _ in range(3):
        X, a = (offset + rng.normal(size=(5, 1))).astype(np.float32), rng.uniform(0.2, 1.0, 5)
        back = mc.preimage(mc.Element(mc.Gaussian(1.0), X, a), Global(gap=gap))
        (best,) = global_minimum(mc.Element(mc.Gaussian(1.0), X.astype(float), a), gap=1e-10)
        D = back.points.astype(float) - X.astype(float)
        value = -np.exp(-(D[:, 0] ** 2) / 2) @ a
        if back.status[0] is Status.PROVED:
            assert value <= best.upper + gap * a.sum()
        else:
            assert offset >= 1e3
