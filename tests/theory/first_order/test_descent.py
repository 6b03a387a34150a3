"""Runs of first-order methods: averages, projections, what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.exceptions import InputError
from mercer.theory import first_order as fo


def absolute(x):
    return float(np.abs(x).sum())


def test_averages_are_those_of_a_loop():
    steps = np.array([1.0, 0.5, 0.25, 0.25])
    run = fo.subgradient_method(absolute, np.sign, [2.0, -0.3], steps)
    total = sum(s * x for s, x in zip(steps, run.points[:-1], strict=True))
    assert_allclose(run.average, total / steps.sum())
    tail = sum(s * x for s, x in zip(steps[2:], run.points[2:-1], strict=True))
    assert_allclose(run.tail_average, tail / steps[2:].sum())
    assert_array_equal(run.best, run.points[np.argmin(run.values)])
    assert run.best_values[-1] == run.values.min()


def test_points_stay_in_the_set_and_bounds_are_infinite_without_a_minimiser():
    run = fo.gradient_descent(
        lambda x: float((x - 3.0) @ (x - 3.0)),
        lambda x: 2.0 * (x - 3.0),
        [0.0],
        10,
        smoothness=2.0,
        project=lambda x: np.clip(x, -1.0, 1.0),
    )
    assert_allclose(run.points[-1], 1.0)
    assert np.isinf(run.bound).all()


def test_results_cannot_be_changed():
    run = fo.subgradient_method(absolute, np.sign, [1.0], [0.1])
    with pytest.raises(ValueError, match="read-only"):
        run.points[0] = 0.0


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: fo.subgradient_method(absolute, np.sign, [1.0], [0.1, -0.1]), "steps must be > 0"),
        (
            lambda: fo.subgradient_method(absolute, lambda x: x * 1e308, [1e9], [1e9]),
            "shorter steps",
        ),
        (lambda: fo.gradient_descent(absolute, np.sign, [1.0], 0, smoothness=1.0), "n_steps"),
        (lambda: fo.strongly_convex_rate(3, 0.1, 1.0, 2.0, 1.0), "at most smoothness"),
        (lambda: fo.smooth_rate(3, 2.0, 1.0, 1.0), "below 2 / smoothness"),
        (lambda: fo.strongly_convex_rate(3, 2.0, 1.0, 0.5, 1.0), "below 2 / smoothness"),
        (lambda: fo.strongly_convex_rate(3, 1.0, 1.0, 0.5, -1.0), "excess"),
        (lambda: fo.subgradient_rate([-1.0, 0.5], 1.0, 1.0), "steps must be > 0"),
        (lambda: fo.tail_rate([1.0, 0.0], 1.0, 1.0), "steps must be > 0"),
        (lambda: fo.subgradient_slack(absolute, [0.0], [0.0], [[1.0, 2.0]]), "columns"),
    ],
)
def test_refusals_name_the_condition(call, reason):
    with np.errstate(over="ignore"), pytest.raises(InputError, match=reason):
        call()


def test_the_average_of_huge_steps():
    run = fo.gradient_descent(
        lambda x: 1e300 * float(x.sum()), np.cos, np.ones(2), 2, smoothness=1e-160
    )
    assert np.isfinite(run.average).all()
    assert_allclose(run.average, run.points[:-1].mean(axis=0))
