"""Log-shifts: rows where every weight underflows keep their value and direction."""

import math
from functools import cache

import numpy as np
import pytest

import mercer as mc
from mercer import engine
from mercer.engine import Dense, LowRank, Scales, SingleFeatures
from tests import naive
from tests.engine.cases import TINY, TOLERANCE, assert_close, case, coefficients, unshifted
from tests.naive import sqrt, squared_distance

SCALES = [1.0, 2.0, 1.0, 3.0]


def log_gaussian(x, y):
    return squared_distance(x, y) * -50.0


def log_matern(x, y):
    z = sqrt(squared_distance(x, y) * 3e4)
    return naive.log(1 + z) - z


LOGS = {
    "gaussian": (mc.Gaussian(0.1), log_gaussian),
    "laplace": (mc.Laplace(0.002), lambda x, y: sqrt(squared_distance(x, y)) * -500.0),
    "matern": (mc.Matern(1.5, 0.01), log_matern),
    "scaled": (
        3.0 * mc.Gaussian(0.1).transform(Scales(SCALES)),
        lambda x, y: (
            math.log(3.0) + naive.mapped(log_gaussian, np.diag(1 / np.array(SCALES)))(x, y)
        ),
    ),
    "product": (
        mc.Gaussian(0.1) * mc.InverseMultiquadric(1.0, 2.0),
        lambda x, y: log_gaussian(x, y) - 2.0 * naive.log(1 + squared_distance(x, y)),
    ),
}


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("memory", [TINY, 128])
@pytest.mark.parametrize("form", ["dense", "low rank", "stacked"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LOGS)
def test_rows_that_underflow_keep_value_and_direction(name, dtype, form, memory):
    X, Y, high, terms = far_away(name)
    coef, A = coefficients(form, n=17, b=3)
    with mc.options(working_memory=memory):
        f = engine.fields(
            LOGS[name][0].program, X.astype(dtype), Y.astype(dtype), coef, order=2, shifted=True
        )
    # far out, one unit in the last place of log k is already a relative error of k
    rounding = 8 * float(np.finfo(dtype).eps) * np.abs(high).max()
    for found, t in zip((f.value, f.gradient, f.hessian), terms, strict=True):
        expected, size = naive.sums(t, A), naive.sums(np.abs(t), np.abs(A))
        assert_close(
            unshifted(found, f.shift - high), expected, size, 10 * TOLERANCE[dtype] + rounding
        )


@cache
def far_away(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """Points, queries, the log of the largest weight of each, and all terms relative to it."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(17, 4)).astype(np.float32)
    Y = np.float32([5.0, 8.0, 11.0])[:, None] + rng.normal(size=(3, 4)).astype(np.float32)
    high = naive.highest(LOGS[name][1], X, Y)
    assert np.all(high < -750)
    local = [naive.shifted(LOGS[name][1], h) for h in high]
    return (
        X,
        Y,
        high,
        [
            np.concatenate([g(k, X, Y[j : j + 1]) for j, k in enumerate(local)])
            for g in (naive.values, naive.gradients, naive.hessians)
        ],
    )


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("name", LOGS)
def test_log_of_a_sum_far_below_underflow(name):
    """log sum_i k(x_i, y) exactly, by logsumexp over Python numbers."""
    kernel, log_k = LOGS[name]
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(40, 4)), 6.0 + rng.normal(size=(5, 4))
    f = engine.fields(kernel.program, X, Y, Dense(np.ones((40, 1))), shifted=True)
    for j, row in enumerate(naive.values(log_k, X, Y)):
        exact = row.max() + math.log(math.fsum(math.exp(v - row.max()) for v in row))
        assert math.log(f.value[j, 0]) + f.shift[j] == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("d", [2, 6])
def test_single_features_far_away_keep_their_log(d, rng):
    """Element j at query j only: each has a scale of its own."""
    X, Y = rng.normal(size=(9, d)), 50.0 * np.arange(1, 10)[:, None] + rng.normal(size=(9, d))
    coef = SingleFeatures(np.arange(9), np.full(9, -2.0), 9)
    f = engine.fields(mc.Gaussian(1.0).program, X, Y, coef, order=1, paired=True, shifted=True)
    gap = Y - X
    np.testing.assert_allclose(f.shift, -0.5 * (gap**2).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(f.value, -2.0, rtol=1e-14)
    np.testing.assert_allclose(f.gradient, 2.0 * gap, rtol=1e-12)


@pytest.mark.usefixtures("each_engine")
def test_far_and_near_rows_in_one_call(rng):
    X = rng.normal(size=(30, 3))
    Y = np.vstack([X[:2], X[:2] + 1e3])
    f = engine.fields(mc.Gaussian(1.0).program, X, Y, Dense(np.ones((30, 1))), shifted=True)
    assert np.all(f.shift[:2] == 0.0)
    assert np.all(f.shift[2:] < -1e6)
    assert np.all(f.value >= 1.0 - 1e-12)


@pytest.mark.usefixtures("each_engine")
def test_outside_all_windows_there_is_nothing(rng):
    """A sum that is exactly zero has the value zero whatever its shift is; nothing is NaN."""
    program = engine.Program(
        (engine.Distance(),), engine.cut(1.0 - engine.Var(0, True), np.exp(-engine.Var(0, True)))
    )
    X, Y = rng.normal(size=(20, 2)), np.array([[0.0, 0.0], [100.0, 0.0]])
    for coef in (Dense(np.ones((20, 1))), LowRank(np.ones((20, 1)), np.ones((1, 1)))):
        for memory in (TINY, 128):
            with mc.options(working_memory=memory):
                f = engine.fields(program, X, Y, coef, order=2, shifted=True)
            assert f.value[0, 0] > 0
            assert f.value[1, 0] == 0
            np.testing.assert_array_equal(f.gradient[1], 0.0)
            np.testing.assert_array_equal(f.hessian[1], 0.0)


def test_profiles_without_a_logarithm_are_not_shifted():
    c = case("polynomial", 5)
    f = engine.fields(c.kernel.program, c.X, c.Y, coefficients("dense")[0], shifted=True)
    np.testing.assert_array_equal(f.shift, 0.0)


@pytest.mark.usefixtures("each_engine")
def test_normalising_does_not_overflow(rng):
    """exp(<x, y>) over its diagonal is a Gaussian, also where exp(|x|^2) is too large a number."""
    X = 30.0 * rng.normal(size=(20, 4))
    assert (X**2).sum(axis=1).max() > 800
    K = mc.kernels.Normalised(mc.Exponential(1.0))(X)
    np.testing.assert_allclose(K, mc.Gaussian(1.0)(X), atol=1e-9)


@pytest.mark.parametrize("paired", [False, True])
def test_points_of_coefficient_zero_do_not_set_the_scale(paired):
    """The nearest point has no weight; the far one alone must still be heard."""
    X, Y = np.array([[0.0, 0.0], [100.0, 0.0]]), np.zeros((2, 2))
    A = np.array([[0.0, 0.0], [1.0, 2.0]])
    coef = Dense(A if paired else A[:, :1])
    f = engine.fields(mc.Gaussian(1.0).program, X, Y, coef, order=1, paired=paired, shifted=True)
    values = f.value if paired else f.value[:, 0]
    np.testing.assert_allclose(np.log(values) + f.shift, np.log(A[1] if paired else 1.0) - 5000.0)
    gradient = f.gradient if paired else f.gradient[:, 0]
    np.testing.assert_allclose(gradient[:, 0] / values, 100.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mean_shift_far_below_underflow(dtype, rng):
    """-gradient / (2 slope) leads to the weighted mean of the points, whatever their scale."""
    X = rng.normal(size=(40, 2)).astype(dtype)
    Y = np.array([[300.0, 10.0], [-500.0, 0.0]], dtype=dtype)
    f = engine.fields(
        mc.Gaussian(1.0).program, X, Y, Dense(np.ones((40, 1))), order=1, shifted=True
    )
    step = -0.5 * f.gradient[:, 0] / f.slopes[0]
    nearest = X[((Y[:, None] - X[None]) ** 2).sum(axis=-1).argmin(axis=1)]
    logs = -0.5 * ((Y[:, None].astype(float) - X[None]) ** 2).sum(axis=-1)
    w = np.exp(logs - logs.max(axis=1, keepdims=True))
    mean = (w @ X) / w.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(step, mean - Y, rtol=1e-4 if dtype == "float32" else 1e-11)
    assert np.all(f.shift < -1e4)
    assert np.all(np.abs(mean - nearest) < 1.0)
