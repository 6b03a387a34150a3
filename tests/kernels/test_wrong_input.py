"""Parameters at the ends of their range and of wrong types: a right answer, or a clear error."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.kernels import (
    Constant,
    Features,
    FromFunction,
    Geometric,
    Hamming,
    JacobiTheta,
    OpenBall,
    Overlap,
    Periodic,
    PeriodicSobolev,
    Table,
    Taylor,
    VovkPolynomial,
)

NOT_A_NUMBER = [None, True, "1.0", b"x", [], {}, set(), 1j, np.nan, np.inf, np.ma.masked,
                np.datetime64("2020-01-01"), dt.date(2020, 1, 1), mc.Gaussian]  # fmt: skip
ONE_NUMBER = [
    mc.Gaussian, mc.Laplace, lambda s: mc.Matern(1.5, s), mc.RationalQuadratic,
    mc.InverseMultiquadric, lambda p: mc.InverseMultiquadric(1.0, p), mc.Epanechnikov,
    mc.NegativeDistance, mc.Exponential, mc.Sigmoid, lambda s: mc.Polynomial(2, s), Constant,
    Geometric, JacobiTheta, lambda p: JacobiTheta(1.0, p), lambda p: Periodic((1.0, 2.0), p),
    lambda p: PeriodicSobolev(1, 1.0, p), Hamming, OpenBall, mc.Gaussian.from_gamma,
    mc.Subsequences, lambda d: mc.Subsequences(3, d), mc.Spectrum, mc.Polynomial, VovkPolynomial,
]  # fmt: skip


@pytest.mark.parametrize("make", ONE_NUMBER)
@pytest.mark.parametrize("value", NOT_A_NUMBER, ids=lambda v: type(v).__name__)
def test_parameters_that_are_no_numbers(make, value):
    with pytest.raises(mc.InputError, match="must"):
        make(value)


@pytest.mark.parametrize("value", [1e300, 1e-300, 5e-324, 1e160, 1e-160, 10**400])
@pytest.mark.parametrize("make", ONE_NUMBER)
def test_parameters_at_the_ends(make, value):
    """Refused, or values and gradients without NaN; never a warning or a bare error."""
    try:
        k = make(value)
    except mc.InputError:
        return
    if not isinstance(k, mc.Kernel):
        return
    if k.domain.is_vector:
        X = np.array([[0.1], [0.3], [0.0]])
        assert not np.isnan(k(X)).any()
        assert k.gradient(X).shape == (3, 3, 1)
    else:
        assert not np.isnan(k([["a"], ["b"]] if isinstance(k, Hamming) else ["ab", "b"])).any()


@pytest.mark.parametrize("scale", [1e-74, 1e-60, 1e60, 1e74])
def test_circles_of_any_length(scale):
    """k(s x, s y) with period s L is k(x, y) with period L, up to a factor."""
    x = np.array([[0.0], [0.3], [0.9]])
    for make, factor in (
        (lambda s: Periodic((1.0, 0.5), s), 1.0),
        (lambda s: PeriodicSobolev(2, 1.0, s), 1.0),
        (lambda s: JacobiTheta(0.2 * s, s), scale),
        (lambda s: JacobiTheta(2.0 * s, s), scale),
    ):
        k, one = make(scale), make(1.0)
        assert_allclose(factor * k(scale * x), one(x), rtol=1e-12)
        assert_allclose(
            factor * scale * k.gradient(scale * x), one.gradient(x), rtol=1e-9, atol=1e-15
        )


def test_inverse_multiquadrics_in_range():
    for c, p in ((1e-100, 5.0), (0.5, 1e4), (2.0, 1e300)):
        with pytest.raises(mc.InputError, match=r"leaves the range of numbers.*RationalQuadratic"):
            mc.InverseMultiquadric(c, p)
    assert mc.InverseMultiquadric(1.0, 1e29)([[0.0]])[0, 0] == 1.0


def test_degrees():
    for degree in (2**53 + 1, 10**400):
        for make in (mc.Polynomial, VovkPolynomial):
            with pytest.raises(mc.InputError, match="degree must be at most"):
                make(degree)
    with pytest.raises(mc.InputError, match=r"the kernel at the origin, overflows"):
        mc.Polynomial(3, 1.0, 1e200)
    assert mc.Polynomial(np.int8(2)).degree == 2
    for wrong in (2.0, True, "2", np.float64(2.0)):
        with pytest.raises(mc.InputError, match="degree must be an integer >= 1"):
            mc.Polynomial(wrong)


def test_column_numbers():
    assert mc.Columns(np.array([1, 0], dtype=np.uint8)) == mc.Columns([1, 0])
    for wrong in ([2**63], [2**64], [10**30], [-1], [0, 0], [True], [1.0], ["a"], 3, None, []):
        with pytest.raises(mc.InputError, match="indices must be"):
            mc.Columns(wrong)
    with pytest.raises(mc.InputError, match="looks at column 9223372036854775807"):
        mc.Gaussian(1.0).transform(mc.Columns([2**63 - 1]))([[1.0]])
    with pytest.raises(mc.InputError, match="whole numbers below"):
        Periodic((1.0, 2.0)).coefficient(np.uint64(2**63))


def test_gamma_is_a_word_of_scikit_learn():
    for kind in (mc.Gaussian, mc.Laplace, mc.Polynomial, mc.Exponential, mc.Sigmoid):
        with pytest.raises(TypeError, match=rf"use {kind.__name__}\.from_gamma"):
            kind(gamma=0.5)
    assert mc.kernels.ChiSquare(gamma=0.5).gamma == 0.5
    with pytest.raises(TypeError, match="unexpected keyword argument 'width'"):
        mc.Gaussian(width=1.0)


@pytest.mark.parametrize("wrong", [1.0, "x", mc.Gaussian(1.0), mc.kernels.Objects])
def test_domains_and_functions(wrong):
    for make in (FromFunction, Features):
        with pytest.raises(mc.InputError, match="on must be a Domain"):
            make(len, on=wrong)
    for no_function in (None, 1.0, "f"):
        for make in (FromFunction, Features):
            with pytest.raises(mc.InputError, match="function must be a function"):
                make(no_function)


@pytest.mark.parametrize("groups", [None, 3.0, "ab", [1, 2], {}, {3: mc.Linear()}, {"a": 1.0}])
def test_groups_of_a_table(groups):
    with pytest.raises(mc.InputError):
        Table(groups)


@pytest.mark.parametrize("wrong", [True, 1.0, mc.Gaussian(1.0), np.ones(2), lambda c: c, {"a": 1}])
def test_lists_of_columns(wrong):
    for kind in ("numeric", "categorical", "text"):
        with pytest.raises(mc.InputError, match=f"{kind} must be a list of column names"):
            mc.table_kernel({"a": [1.0, 2.0]}, **{kind: wrong})


def test_tables_that_cannot_be_used():
    for table, words in (
        ({"a": [1.0, 2.0], "b": [1.0]}, "different lengths"),
        ({"a": []}, "no points"),
        ({"a": [1e300, -1e300]}, "above 1e.150"),
        ({"a": [10**400, 1]}, "holds infinity, or a number as large"),
        ({"a": np.ma.array([1.0, 2.0], mask=[0, 1])}, "is masked"),
        (pd.DataFrame({"when": pd.to_datetime(["2020", "2021"])}), "'when'.*holds times"),
        (pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}), "'n'.*missing value in row 1"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "several columns with the same name: a"),
        (None, "must be a table"),
        (3.0, "must be a table"),
    ):
        with pytest.raises(mc.InputError, match=words):
            mc.table_kernel(table)


def test_frames_with_text_or_dates_are_refused_by_column():
    frame = pd.DataFrame({"b": [1.0, 2.0], "word": ["x", "y"]})
    dates = pd.DataFrame({"b": [1.0, 2.0], "word": pd.to_datetime(["2020", "2021"])})
    for X in (frame, dates):
        for use in (mc.Gaussian(1.0), mc.median_scale, mc.Linear().diag):
            with pytest.raises(mc.InputError, match="not numeric: word"):
                use(X)
    assert Overlap()(frame).shape == (2, 2)


def test_the_median_rule_at_every_scale(rng):
    rule = mc.median_scale
    X = rng.normal(size=(30, 3))
    for s in (1e-300, 1e-170, 1e100, 1e149):
        assert rule(s * X) == pytest.approx(s * rule(X), rel=1e-12)
    for w in (5e-324, 1e-200, 1e300):
        assert rule(X, weights=np.full(30, w)) == pytest.approx(rule(X), rel=1e-12)
    for wrong in (None, "a", 3.0, [1.0], {"a": [1.0]}, [["a"]], [[1j]], [[np.nan]], [[1e200]]):
        with pytest.raises(mc.InputError):
            rule(wrong)
    for weights in ("a", [1.0], -np.ones(30), np.zeros(30), np.full(30, np.nan), 1.0):
        with pytest.raises(mc.InputError, match="weights"):
            rule(X, weights=weights)
    for constant in (np.zeros((4, 2)), np.full((4, 1), 1e-300), np.full((3, 1), 0.1)):
        with pytest.raises(mc.InputError, match="all points are equal"):
            rule(constant)


def test_masked_row_numbers():
    with pytest.raises(mc.InputError, match="masked"):
        mc.Precomputed(np.eye(2))(np.ma.array([0, 1], mask=[0, 1]))


def test_radii_of_power_series():
    for radius in (1e200, 1e-200, "inf", None, np.nan):
        with pytest.raises(mc.InputError, match="radius must be"):
            Taylor([1.0, 1.0], radius=radius)
    assert Taylor([1.0, 1.0], radius=np.float64(np.inf)).radius == np.inf
