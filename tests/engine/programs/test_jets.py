"""Jets: profiles evaluated with exact derivatives, in the namespace of their arrays."""

import math

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.engine import Opaque, Var, evaluate, profile_at
from mercer.engine.programs._expr import Cut, LogAddExp, Matern
from mercer.engine.programs._log_profile import log_expr
from tests.engine.profiles import CLOSED_FORMS, GRID, POSITIVE, T, U, V, written_out

# --- jets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_jets_are_closed_forms(name):
    profile, *exact = CLOSED_FORMS[name]
    jet = evaluate(profile(U), [GRID], order=2)
    for entry, f in zip((jet.value, jet.first[0], jet.second[0][0]), exact, strict=True):
        np.testing.assert_allclose(written_out(entry), f(GRID), rtol=5e-15)


@pytest.mark.parametrize("name", CLOSED_FORMS)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_lower_orders_are_a_part_of_higher_ones(name, order):
    expr = CLOSED_FORMS[name][0](U)
    full, part = evaluate(expr, [GRID], order=2), evaluate(expr, [GRID], order=order)
    np.testing.assert_array_equal(part.value, full.value)
    assert len(part.first) == (order >= 1)
    assert len(part.second) == (order == 2)
    if order >= 1:
        np.testing.assert_array_equal(part.first[0], full.first[0])


def mixed_profile(u, t):
    """A profile of two variables in which every rule of the calculus occurs."""
    return np.exp(-0.5 * u) * (1 + t) ** 3 / (2 + u) + np.sqrt(1 + u * t) - np.log(2 + t)


def test_two_variables_have_a_full_hessian():
    u, t = np.array([0.3, 1.0, 2.5]), np.array([0.8, 0.2, 1.7])
    jet = evaluate(mixed_profile(U, V), [u, t], order=2)
    h = 1e-4
    f = mixed_profile
    np.testing.assert_allclose(jet.value, f(u, t), rtol=1e-15)
    np.testing.assert_allclose(jet.first[0], (f(u + h, t) - f(u - h, t)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(jet.first[1], (f(u, t + h) - f(u, t - h)) / (2 * h), rtol=1e-6)
    second = {
        (0, 0): (f(u + h, t) - 2 * f(u, t) + f(u - h, t)) / h**2,
        (1, 1): (f(u, t + h) - 2 * f(u, t) + f(u, t - h)) / h**2,
        (0, 1): (f(u + h, t + h) - f(u + h, t - h) - f(u - h, t + h) + f(u - h, t - h))
        / (4 * h**2),
    }
    for (v, w), expected in second.items():
        np.testing.assert_allclose(jet.second[v][w], expected, atol=2e-6)
        np.testing.assert_array_equal(jet.second[v][w], jet.second[w][v])


def test_two_variables_product_in_closed_form():
    u, t = np.array([0.3, 1.0]), np.array([0.8, 0.2])
    jet = evaluate(np.exp(-U) * V**2, [u, t], order=2)
    np.testing.assert_allclose(jet.first[0], -np.exp(-u) * t**2, rtol=1e-15)
    np.testing.assert_allclose(jet.first[1], 2 * np.exp(-u) * t, rtol=1e-15)
    np.testing.assert_allclose(jet.second[0][1], -2 * np.exp(-u) * t, rtol=1e-15)
    np.testing.assert_allclose(jet.second[1][1], 2 * np.exp(-u), rtol=1e-15)


def test_what_a_profile_does_not_see_is_a_structural_zero():
    jet = evaluate(np.exp(-U), [GRID, GRID], order=2)
    assert jet.first[1] == 0
    assert isinstance(jet.first[1], int)
    assert jet.second[0][1] == jet.second[1][1] == 0


def test_equal_nodes_are_evaluated_once():
    calls = []
    inner = Opaque(U, lambda x: calls.append(1) or x)
    shared = inner * 2.0
    evaluate(shared * shared + shared, [GRID])
    assert len(calls) == 1


@given(st.floats(0.1, 10.0), st.floats(-3.0, 3.0), st.floats(0.1, 4.0), st.floats(0.2, 3.0))
def test_the_chain_rule_holds(x, a, b, p):
    """d/dx (b + x)^p exp(a x) = (p / (b + x) + a) f, and its derivative in turn."""
    jet = evaluate((b + U) ** p * np.exp(a * U), [np.array([x])], order=2)
    f = (b + x) ** p * math.exp(a * x)
    slope = p / (b + x) + a
    assert jet.value[0] == pytest.approx(f, rel=1e-13)
    size = (p / (b + x) + abs(a)) * f
    assert abs(jet.first[0][0] - slope * f) <= 1e-13 * size
    second = (slope**2 - p / (b + x) ** 2) * f
    assert abs(jet.second[0][0][0] - second) <= 1e-12 * size * (p / (b + x) + abs(a) + 1 / (b + x))


@given(st.integers(1, 12), st.floats(-5.0, 5.0))
def test_whole_powers_take_any_sign(p, x):
    jet = evaluate((T + 0.5) ** p, [np.array([x])], order=2)
    y = x + 0.5
    assert jet.value[0] == pytest.approx(y**p, rel=1e-13)
    assert written_out(jet.first[0], [0])[0] == pytest.approx(p * y ** (p - 1), rel=1e-13)
    expected = p * (p - 1) * y ** (p - 2) if p > 1 else 0.0
    assert written_out(jet.second[0][0], [0])[0] == pytest.approx(expected, rel=1e-13)


# --- special nodes --------------------------------------------------------------------------------


def test_a_cut_takes_value_and_slopes_from_its_side():
    u = np.array([0.0, 0.5, 1.0, 1.5])  # the edge belongs to the inside
    jet = evaluate(Cut(1.0 - U, 3.0 - U**2, outside=-7.0), [u], order=2)
    np.testing.assert_array_equal(jet.value, [3.0, 2.75, 2.0, -7.0])
    np.testing.assert_array_equal(jet.first[0], [0.0, -1.0, -2.0, 0.0])
    np.testing.assert_array_equal(jet.second[0][0], [-2.0, -2.0, -2.0, 0.0])


def test_a_cut_of_a_linear_body():
    jet = evaluate(Cut(1.0 - U, 1.0 - U), [np.array([0.5, 2.0])], order=2)
    np.testing.assert_array_equal(jet.first[0], [-1.0, 0.0])
    assert jet.second[0][0] == 0


def test_log_add_exp_neither_over_nor_underflows():
    a, b = np.array([1000.0, -1000.0, -5000.0]), np.array([1000.0, -1001.0, 3.0])
    value = evaluate(LogAddExp(T, Var(1)), [a, b]).value
    np.testing.assert_allclose(value, np.logaddexp(a, b), rtol=1e-15)


def test_log_add_exp_derivatives():
    a, b = np.array([0.2, -3.0, 2.0]), np.array([0.1, 1.0, -2.0])
    jet = evaluate(LogAddExp(2.0 * T, Var(1) ** 2), [a, b], order=2)
    p = 1 / (1 + np.exp(b**2 - 2 * a))  # softmax weight of the left node
    np.testing.assert_allclose(jet.first[0], 2 * p, rtol=1e-14)
    np.testing.assert_allclose(jet.first[1], (1 - p) * 2 * b, rtol=1e-14)
    np.testing.assert_allclose(jet.second[0][0], 4 * p * (1 - p), rtol=1e-13)
    np.testing.assert_allclose(jet.second[0][1], -4 * b * p * (1 - p), rtol=1e-13)
    np.testing.assert_allclose(jet.second[1][1], 2 * (1 - p) + 4 * b**2 * p * (1 - p), rtol=1e-13)


def test_log_add_exp_of_two_zeros_is_the_log_of_zero():
    nothing = np.array([-np.inf])
    with np.errstate(invalid="ignore"):
        value = evaluate(LogAddExp(T, Var(1)), [nothing, nothing]).value
    np.testing.assert_array_equal(value, [-np.inf])


@pytest.mark.parametrize(("nu", "slope"), [(1.5, -0.5), (2.5, -1 / 6)])
def test_matern_is_smooth_to_first_order_at_zero(nu, slope):
    jet = evaluate(Matern(U, nu), [np.array([0.0])], order=1)
    assert jet.value[0] == 1.0
    assert jet.first[0][0] == pytest.approx(slope, rel=1e-15)


def test_matern_second_derivative_at_zero():
    zero = [np.array([0.0])]
    assert evaluate(Matern(U, 2.5), zero, order=2).second[0][0][0] == pytest.approx(1 / 12)
    with np.errstate(divide="ignore"):
        assert evaluate(Matern(U, 1.5), zero, order=2).second[0][0][0] == np.inf


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_matern_slopes_near_zero_have_no_cancellation(nu):
    """Through sqrt the chain rule would lose everything here."""
    u = np.array([1e-30, 1e-20, 1e-10])
    jet = evaluate(Matern(U, nu), [u], order=1)
    expected = -0.5 if nu == 1.5 else -1 / 6
    np.testing.assert_allclose(jet.first[0], expected, rtol=2e-5)


# --- other array libraries ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*CLOSED_FORMS, *POSITIVE, "window"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_profiles_stay_in_the_namespace_of_their_arrays(name, dtype):
    expr = CLOSED_FORMS[name][0](U) if name in CLOSED_FORMS else POSITIVE.get(name)
    expr = Cut(1.0 - U, 1.0 - U) if expr is None else expr
    x = strict.asarray(GRID.tolist(), dtype=getattr(strict, dtype))
    expected = evaluate(expr, [GRID.astype(dtype)], order=2)
    jet = evaluate(expr, [x], order=2)
    _same_in_strict(jet, expected, dtype)


@pytest.mark.parametrize("name", POSITIVE)
def test_log_profiles_stay_in_the_namespace_of_their_arrays(name):
    log = log_expr(POSITIVE[name])
    x = strict.asarray(GRID.tolist(), dtype=strict.float64)
    _same_in_strict(evaluate(log, [x], order=2), evaluate(log, [GRID], order=2), "float64")


def _same_in_strict(jet, expected, dtype):
    pairs = [
        (jet.value, expected.value),
        (jet.first[0], expected.first[0]),
        (jet.second[0][0], expected.second[0][0]),
    ]
    rtol = 1e-5 if dtype == "float32" else 1e-14
    for ours, theirs in pairs:
        if isinstance(theirs, np.ndarray):
            assert ours.__array_namespace__() is strict
            assert ours.dtype == getattr(strict, dtype)
            ours = np.asarray(ours)
        np.testing.assert_allclose(ours, theirs, rtol=rtol)


def test_a_profile_at_points_has_their_shape_even_where_it_is_constant():
    u = np.array([[0.0, 1.0], [4.0, 1e300]])
    value, slope, bend = profile_at(np.exp(-Var(0)), u, 2)
    np.testing.assert_array_equal(value, np.exp(-u))
    np.testing.assert_array_equal(slope, -value)
    np.testing.assert_array_equal(bend, value)
    for part, number in zip(profile_at(3.0 * Var(0), u, 2)[1:], (3.0, 0.0), strict=True):
        np.testing.assert_array_equal(part, np.full(u.shape, number))
