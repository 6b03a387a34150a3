"""Profiles in log space: the logarithm as an expression, finite where the profile underflows."""

import math

import numpy as np
import pytest

import mercer as mc
from mercer.engine import Const, evaluate
from mercer.engine.programs._expr import Cut, Exp
from mercer.engine.programs._log_profile import log_expr
from tests.engine.profiles import GRID, POSITIVE, T, U, written_out


@pytest.mark.parametrize("name", POSITIVE)
def test_log_expressions_are_logs(name):
    expr = POSITIVE[name]
    log = log_expr(expr)
    k, L = evaluate(expr, [GRID], order=2), evaluate(log, [GRID], order=2)
    value, first, second = (written_out(entry) for entry in (k.value, k.first[0], k.second[0][0]))
    np.testing.assert_allclose(written_out(L.value), np.log(value), rtol=1e-13, atol=1e-15)
    slope = first / value
    np.testing.assert_allclose(written_out(L.first[0]), slope, rtol=1e-13, atol=1e-15)
    curvature = second / value - slope**2
    np.testing.assert_allclose(written_out(L.second[0][0]), curvature, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", POSITIVE)
def test_logs_are_finite_where_the_profile_underflows(name):
    """At u = 1e7, in units of which log exp(-u / 2) is -5e6."""
    far = [np.array([1e7])]
    log = written_out(evaluate(log_expr(POSITIVE[name]), far).value, [0.0])[0]
    underflow = {"gaussian": -5e6, "laplace": -math.sqrt(1e7) / 2, "cut": -np.inf}
    if name in underflow:
        assert log == pytest.approx(underflow[name], rel=1e-15)
        assert evaluate(POSITIVE[name], far).value == 0.0
    else:
        assert math.isfinite(log)


NOT_POSITIVE = {
    "linear": T,
    "polynomial": (1.0 + T) ** 2,
    "window": Cut(1.0 - U, 1.0 - U),
    "negative distance": 1.0 - U**0.5,
    "difference": np.exp(-U) - np.exp(-2.0 * U),
    "distance": np.sqrt(U),
    "non-zero outside": Cut(1.0 - U, np.exp(-U), outside=1.0),
}


@pytest.mark.parametrize("name", NOT_POSITIVE)
def test_what_may_be_zero_or_negative_has_no_log(name):
    assert log_expr(NOT_POSITIVE[name]) is None


def test_sums_of_windows_stay_numbers_in_log_space():
    """Outside both windows the weight is zero, its logarithm -inf and never NaN."""
    window = Cut(1.0 - U, Exp(Const(0.0) * U))
    log = log_expr(np.exp(-U) * window + np.exp(-2.0 * U) * window)
    with np.errstate(invalid="ignore"):
        value = evaluate(log, [np.array([0.5, 4.0])]).value
    assert value[0] == pytest.approx(math.log(math.exp(-0.5) + math.exp(-1.0)))
    assert value[1] == -np.inf


def test_log_profile_of_a_program_is_that_of_its_profile():
    program = (mc.Gaussian(1.0) + 0.5 * mc.Laplace(2.0)).program
    u = [GRID]
    expected = np.log(evaluate(program.profile, u).value)
    np.testing.assert_allclose(evaluate(program.log_profile, u).value, expected, rtol=1e-14)
    assert mc.Polynomial(2).program.log_profile is None
