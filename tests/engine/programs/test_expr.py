"""Profiles: recorded from ordinary arithmetic, and what a program makes of them."""

import numpy as np
import pytest

import mercer as mc
from mercer.engine import Const, Expr, Opaque, Program, Var, evaluate
from mercer.engine.programs._expr import Cut, Matern, Pow, substitute
from mercer.engine.programs._log_profile import log_expr
from tests.engine.profiles import GRID, U, V, written_out

# every function NumPy may hand to a profile, as a profile writes it
WRITTEN = {
    "add": (lambda u: np.add(u, 2.0) + np.add(1, u), lambda u: 2 * u + 3),
    "subtract": (lambda u: np.subtract(1.0, u) - 3 * u, lambda u: 1 - 4 * u),
    "rsub": (lambda u: 1.0 - u, lambda u: 1 - u),
    "multiply": (lambda u: np.multiply(u, u) * 2.0, lambda u: 2 * u**2),
    "numpy scalar first": (lambda u: np.float64(3.0) * u + np.float32(0.5), lambda u: 3 * u + 0.5),
    "zero-dimensional array": (lambda u: np.array(2.0) * u, lambda u: 2 * u),
    "divide": (lambda u: np.divide(1.0, 1 + u) / 2, lambda u: 0.5 / (1 + u)),
    "negative": (lambda u: np.negative(-u), lambda u: u),
    "exp": (lambda u: np.exp(-u), lambda u: np.exp(-u)),
    "log": (np.log, np.log),
    "sqrt": (np.sqrt, np.sqrt),
    "square": (lambda u: np.square(u - 1), lambda u: (u - 1) ** 2),
    "reciprocal": (np.reciprocal, lambda u: 1 / u),
    "power": (lambda u: np.power(u, 1.5), lambda u: u**1.5),
    "power of a constant": (lambda u: np.power(2.0, u), lambda u: 2.0**u),
    "power of a variable": (lambda u: np.power(u, u), lambda u: u**u),
    "whole power": (lambda u: u**7, lambda u: u**7),
    "negative power": (lambda u: u**-3, lambda u: u**-3.0),
    "power zero": (lambda u: u**0 + u, lambda u: 1 + u),
    "large power": (lambda u: u**100, lambda u: u**100),
    "maximum with zero": (lambda u: np.maximum(u - 1, 0), lambda u: np.maximum(u - 1, 0)),
    "maximum, zero first": (lambda u: np.maximum(0, 1 - u), lambda u: np.maximum(0, 1 - u)),
    "maximum with a number": (lambda u: np.maximum(u, 0.6), lambda u: np.maximum(u, 0.6)),
    "maximum, number first": (lambda u: np.maximum(0.6, u), lambda u: np.maximum(0.6, u)),
    "maximum of two": (lambda u: np.maximum(u * u, u), lambda u: np.maximum(u * u, u)),
}


# --- recording ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITTEN)
def test_arithmetic_is_recorded(name):
    profile, expected = WRITTEN[name]
    expr = profile(U)
    assert isinstance(expr, Expr)
    np.testing.assert_allclose(evaluate(expr, [GRID]).value, expected(GRID), rtol=1e-14)


@pytest.mark.parametrize("name", sorted(WRITTEN.keys() - {"large power"}))
def test_recorded_slopes_are_finite_differences(name):
    profile, expected = WRITTEN[name]
    jet = evaluate(profile(U), [GRID], order=2)
    h = 1e-4
    up, middle, down = expected(GRID + h), expected(GRID), expected(GRID - h)
    size = 1 + np.abs(expected(GRID)) / GRID**2
    slope, curvature = (up - down) / (2 * h), (up - 2 * middle + down) / h**2
    assert np.all(np.abs(written_out(jet.first[0]) - slope) < 1e-5 * size)
    assert np.all(np.abs(written_out(jet.second[0][0]) - curvature) < 1e-3 * size)


@pytest.mark.parametrize("function", [np.sin, np.abs, np.minimum])
def test_other_functions_are_refused(function):
    arguments = (U, 1.0) if function is np.minimum else (U,)
    with pytest.raises(TypeError):
        function(*arguments)


@pytest.mark.parametrize("use", [lambda: U < 1.0, lambda: U % 2.0, lambda: np.arange(2.0) * U])
def test_what_is_not_one_formula_is_refused(use):
    with pytest.raises(TypeError):
        use()


def test_powers_and_arithmetic_in_place_are_recorded():
    def profile(u):
        total = 1.0 + u
        total *= 3.0
        total -= 2.0**u
        return total / u**u

    value = evaluate(profile(U), [GRID]).value
    assert np.allclose(value, profile(GRID.copy()), rtol=1e-13, atol=0.0)


def test_ufunc_options_are_refused():
    with pytest.raises(TypeError):
        np.exp(U, dtype=np.float32)
    with pytest.raises(TypeError):
        np.add.reduce(U)


def test_constants_are_folded():
    assert 2.0 * (3.0 * U) == 6.0 * U
    assert 1.0 + (2.0 + U) == 3.0 + U
    assert 1.0 * U is U
    assert U + 0.0 is U
    assert U**1 is U
    assert Const(1.0) == U**0
    assert np.exp(Const(0.0)) == Const(1.0)
    assert Const(2.0) ** 3 == Const(8.0)


def test_powers_are_recorded_as_one_node():
    assert Pow(1.0 + U, -0.5) == (1.0 + U) ** -0.5


def test_expressions_are_values():
    a, b = np.exp(-0.5 * U) + U**2, np.exp(-0.5 * U) + U**2
    assert a == b
    assert hash(a) == hash(b)
    assert a != np.exp(-0.25 * U) + U**2
    assert Var(0) != Var(0, nonnegative=True)
    with pytest.raises(AttributeError):
        a.left = U


def test_substitution_replaces_variables_everywhere():
    expr = Cut(U - 1.0, np.exp(-U) * V + Matern(U, 1.5) + np.log(V) + V**-2, outside=0.25)
    swapped = substitute(expr, [V, U])
    inputs = [np.array([0.5, 2.0, 3.0]), np.array([1.5, 0.7, 2.5])]
    expected = evaluate(expr, inputs[::-1]).value
    np.testing.assert_allclose(evaluate(swapped, inputs).value, expected, rtol=1e-15)


def test_substitution_folds_what_becomes_constant():
    expr = np.exp(-U) + 3.0 * (1 + U) ** 2 + Matern(U, 2.5) + np.log(1 + U)
    assert substitute(expr, [Const(0.0)]) == Const(5.0)


# --- opaque profiles ------------------------------------------------------------------------------


def test_opaque_without_derivatives_has_values_only():
    expr = 2.0 * Opaque(U, np.cos) + 1.0
    np.testing.assert_allclose(evaluate(expr, [GRID]).value, 2 * np.cos(GRID) + 1)
    with pytest.raises(mc.exceptions.DerivativeError, match="profile_derivatives"):
        evaluate(expr, [GRID], order=1)


def test_opaque_with_derivatives_goes_through_the_chain_rule():
    inner = Opaque(2.0 * U, np.cos, lambda x: (-np.sin(x), -np.cos(x)))
    jet = evaluate(U * inner, [GRID], order=2)
    c, s = np.cos(2 * GRID), np.sin(2 * GRID)
    np.testing.assert_allclose(jet.value, GRID * c, rtol=1e-15)
    np.testing.assert_allclose(jet.first[0], c - 2 * GRID * s, rtol=1e-14)
    np.testing.assert_allclose(jet.second[0][0], -4 * s - 4 * GRID * c, rtol=1e-14)


def test_opaque_has_no_logarithm():
    assert log_expr(Opaque(U, np.cos)) is None
    assert log_expr(np.exp(-U) + Opaque(U, np.cos)) is None


# --- programs -------------------------------------------------------------------------------------


def test_equal_variables_are_measured_once():
    program = (mc.Gaussian(1.0) + mc.Laplace(2.0) * mc.Linear()).program
    assert len(program.variables) == 2
    assert isinstance(program, Program)
    assert (mc.Gaussian(1.0) + mc.Gaussian(2.0)).program.kind == "radial"
    assert (mc.Linear() * mc.Polynomial(2)).program.kind == "dot"
    assert program.kind == "mixed"
    assert mc.kernels.Constant(1.0).program.kind == "constant"


@pytest.mark.parametrize("c", [1e-300, 1e300])
def test_constants_near_the_ends_of_the_range(c, rng):
    """Products of constants overflow with an error, and normalising does not form them."""
    X = rng.normal(size=(4, 2))
    k = c * mc.Gaussian(1.0)
    np.testing.assert_allclose(mc.kernels.Normalised(k)(X), mc.Gaussian(1.0)(X), rtol=1e-14)
    if c > 1:
        with pytest.raises(mc.InputError, match="overflow"):
            (c * k)(X)
    else:
        assert not (c * k)(X).any()
