"""The compiled core: elementary functions, sums and Gram matrices on every instruction set."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mercer as mc
from mercer import engine
from mercer.engine import Dense
from mercer.engine._compiled import core
from mercer.engine.sums._native import CorePoints
from tests.engine.cases import TOLERANCE, numpy_gaussian
from tests.engine.isas import ISAS, compiled, core_program, each_isa, forced
from tests.engine.sums.test_fields import LAYOUTS

pytestmark = compiled

DTYPES = ["float32", "float64"]
DOT, PRODUCT, DIFFERENCE = 0, 1, 2
GAUSSIAN = [(1, 1, 0, 0, -0.5, 0.0, 0.0)]  # exp(-u / 2)

# --- elementary functions -------------------------------------------------------------------------


def function(name, dtype, x, isa):
    x = np.ascontiguousarray(x, dtype=dtype)
    y = np.empty_like(x)
    getattr(core(), name + dtype[-2:])(x, y, isa)
    return y


def ulps(found, exact):
    """The error in units of the last place of the exact result."""
    return np.abs(found - exact) / np.spacing(np.abs(exact).astype(found.dtype))


@each_isa
@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("float32", -86.9, 88.7), ("float64", -708, 709.7)]
)
def test_exponentials_to_two_units(dtype, low, high, isa, rng):
    x = [rng.uniform(low, high, size=20_000), rng.normal(size=10_000), 1e-9 * rng.normal(size=999)]
    x = np.concatenate(x).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    assert ulps(function("exp", dtype, x, isa), exact).max() < 2.0


@each_isa
@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("float32", -125, 127), ("float64", -1021, 1023)]
)
def test_powers_of_two_to_two_units(dtype, low, high, isa, rng):
    x = [rng.uniform(low, high, size=20_000), rng.normal(size=10_000), 1e-9 * rng.normal(size=999)]
    x = np.concatenate(x).astype(dtype)
    exact = np.exp2(x.astype(np.longdouble))
    assert ulps(function("two_to", dtype, x, isa), exact).max() < 2.0


@pytest.mark.parametrize("kernel", [mc.Laplace(1.0), mc.Matern(1.5, 1.0)], ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_with_a_cusp_take_differences(kernel, dtype, rng):
    X = rng.normal(size=(20, 6)).astype(dtype)
    assert CorePoints(kernel.program, X, X.dtype).placed(X, 1).form == DIFFERENCE


@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_to_two_and_a_half_units(dtype, isa, rng):
    info = np.finfo(dtype)
    decades = np.exp(rng.uniform(np.log(info.tiny), np.log(info.max), size=20_000))
    x = [decades, 1 + rng.uniform(-0.4, 0.6, size=10_000), 1 + 1e-4 * rng.normal(size=9999)]
    x = np.concatenate(x).astype(dtype)
    exact = np.log(x.astype(np.longdouble))
    x = x[exact != 0]
    assert ulps(function("log", dtype, x, isa), exact[exact != 0]).max() < 2.5


@each_isa
@pytest.mark.parametrize(("dtype", "edge"), [("float32", 86.9), ("float64", 708.0)])
def test_special_arguments(dtype, edge, isa):
    inf, nan, info = np.inf, np.nan, np.finfo(dtype)
    top = np.log(info.max.astype(np.longdouble))
    below, above = top * (1 - info.eps), top * (1 + 2 * info.eps)
    x = [0.0, -0.0, inf, -inf, nan, info.max, -info.max, -1.01 * edge, above]
    expected = [1, 1, inf, 0, nan, inf, 0, 0, inf]
    y = [1.0, 0.0, -0.0, inf, -inf, nan, -1.0, -info.tiny]
    logs = [0, -inf, -inf, inf, nan, nan, nan, nan]
    for repeats in range(1, 6):  # whole vectors, and the rest of one
        found = function("exp", dtype, x * repeats, isa)
        np.testing.assert_array_equal(found, expected * repeats)
        np.testing.assert_array_equal(function("log", dtype, y * repeats, isa), logs * repeats)
    assert np.isfinite(function("exp", dtype, [below], isa)).all()
    subnormal = function("log", dtype, [info.smallest_subnormal], isa)
    assert np.isfinite(subnormal).all()
    assert np.all(subnormal <= np.log(info.tiny))


# --- sums -----------------------------------------------------------------------------------------


def raw_sums(isa, dtype, form, X, Y, kinds, corners=(False, False)):
    program = core_program(dtype, X, GAUSSIAN, 1, form, isa)
    for kind, A in kinds.items():
        program.set_coef(kind, A)
    program.set_corners(*corners)
    out = [np.full((len(Y), A.shape[1]), np.nan) for A in kinds.values()]
    program.sums(Y, out)
    return dict(zip(kinds, out, strict=True))


def variables(form, X, Y):
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    return Y @ X.T if form == DOT else ((Y[:, None] - X[None]) ** 2).sum(axis=-1)


@given(
    isa=st.sampled_from(ISAS or ["none"]),
    dtype=st.sampled_from(DTYPES),
    form=st.sampled_from([DOT, PRODUCT, DIFFERENCE]),
    n=st.integers(1, 300),
    m=st.integers(1, 120),
    d=st.sampled_from([1, 2, 3, 4, 5, 8, 17, 64, 127, 128, 129, 255, 256, 257, 300]),
    columns=st.lists(st.integers(1, 20), min_size=4, max_size=4),
    kinds=st.sets(st.integers(0, 3), min_size=1),
    seed=st.integers(0, 2**31),
)
def test_sums_of_all_weights_in_all_forms(isa, dtype, form, n, m, d, columns, kinds, seed):
    """The profile, its derivatives and the indicator of u = 0, each against its own matrix."""
    rng = np.random.default_rng(seed)
    X, Y = ((rng.normal(size=(s, d)) / np.sqrt(d)).astype(dtype) for s in (n, m))
    if form == PRODUCT:  # may round u to 0; who asks for u = 0 gets differences, see below
        kinds = (kinds - {3}) or {0}
    coef = {k: rng.normal(size=(n, columns[k])).astype(dtype) for k in sorted(kinds)}
    Y[0] = X[-1] if form == DIFFERENCE else Y[0]
    u = variables(form, X, Y)
    K = np.exp(-u / 2)
    weights = [K, -K / 2, K / 4, u == 0]
    for kind, found in raw_sums(isa, dtype, form, X, Y, coef).items():
        A = coef[kind].astype(np.float64)
        size = 1e-300 + np.abs(weights[kind]) @ np.abs(A)
        error = np.abs(found - weights[kind] @ A)
        assert np.all(error <= TOLERANCE[dtype] * size), (error / size).max()


@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number_of_columns(dtype, isa, rng):
    X, Y = rng.normal(size=(131, 2)).astype(dtype), rng.normal(size=(50, 2)).astype(dtype)
    A = rng.normal(size=(131, 20)).astype(dtype)
    whole = raw_sums(isa, dtype, DIFFERENCE, X, Y, {0: A})[0]
    for c in range(1, 20):
        part = raw_sums(isa, dtype, DIFFERENCE, X, Y, {0: np.ascontiguousarray(A[:, :c])})[0]
        np.testing.assert_allclose(part, whole[:, :c], rtol=0, atol=TOLERANCE[dtype] * 131)


@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
def test_corners_drop_derivatives_of_coinciding_points(dtype, isa):
    X = np.array([[0.0], [1.0]], dtype=dtype)
    A = np.array([[1.0], [10.0]], dtype=dtype)
    e = np.exp(-0.5)
    coef = dict.fromkeys(range(4), A)
    for first, second in ((False, False), (True, False), (True, True), (False, True)):
        found = raw_sums(isa, dtype, DIFFERENCE, X, X[:1], coef, (first, second))
        expected = [1 + 10 * e, (first - 1) / 2 - 5 * e, (1 - second) / 4 + 2.5 * e, 1.0]
        np.testing.assert_allclose(np.ravel(list(found.values())), expected, rtol=1e-6)


@given(
    isa=st.sampled_from(ISAS or ["none"]),
    dtype=st.sampled_from(DTYPES),
    n=st.integers(1, 200),
    m=st.integers(1, 100),
    d=st.integers(1, 9),
    b=st.integers(1, 5),
    layouts=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 3),
    magnitude=st.integers(-9, 9),
    offset=st.sampled_from([0.0, 1.0, 1000.0]),
    seed=st.integers(0, 2**31),
)
def test_any_layout_and_scale(isa, dtype, n, m, d, b, layouts, magnitude, offset, seed):
    rng = np.random.default_rng(seed)
    s = 10.0**magnitude
    X = (s * (rng.normal(size=(n, d)) + offset)).astype(dtype)[rng.integers(0, n, size=n)]
    Y = X[rng.integers(0, n, size=m)] + (s * rng.normal(size=(m, d))).astype(dtype)
    Y[: m // 3] = X[rng.integers(0, n, size=m // 3)]
    A = rng.normal(size=(n, b))
    value, first, second, size = numpy_gaussian(X, Y, A, s)
    laid = [LAYOUTS[name](Z) for name, Z in zip(layouts, (X, Y, A), strict=True)]
    with forced(isa), mc.options(engine="native"):
        f = engine.fields(mc.Gaussian(s).program, *laid[:2], Dense(laid[2]), order=2)
    tolerance = 10 * TOLERANCE[dtype] * size
    assert np.all(np.abs(f.value - value) <= tolerance)
    assert np.all(s * np.abs(f.gradient - first).max(axis=-1) <= 5 * tolerance)
    assert np.all(s**2 * np.abs(f.hessian - second).max(axis=(-1, -2)) <= 25 * tolerance)


@each_isa
@pytest.mark.parametrize("d", [4, 5, 128, 129, 300])
def test_the_form_follows_from_dimension_and_accuracy(d, isa, rng):
    X, Y = rng.normal(size=(40, d)), rng.normal(size=(30, d))
    A = rng.normal(size=(40, 3))
    for kernel, form in (
        (mc.Gaussian(np.sqrt(d)), DIFFERENCE if d <= 4 else PRODUCT),
        (mc.Gaussian(np.sqrt(d) * 1e-4), DIFFERENCE),  # where the product form loses digits
        (mc.Polynomial(2, scale=float(d)), DOT),
    ):
        Y[0] = X[0]
        assert CorePoints(kernel.program, X, X.dtype).placed(Y).form == form
        with forced(isa), mc.options(engine="native"):
            found = engine.fields(kernel.program, X, Y, Dense(A)).value
        u = variables(form, X, Y)
        K = (u / d + 1) ** 2 if form == DOT else np.exp(-0.5 * u / kernel.length_scale**2)
        assert np.all(np.abs(found - K @ A) <= 1e-12 * (K @ np.abs(A)))


@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 5, 8, 9, 65, 129])
def test_padding_adds_nothing(n, dtype, isa):
    """Not even where the weight of the point that pads is infinite."""
    X, Y = np.full((n, 2), 1e3, dtype=dtype), np.full((7, 2), 1e3, dtype=dtype)
    with forced(isa), mc.options(engine="native"):
        f = engine.fields(mc.Exponential(1.0).program, X, Y, Dense(np.ones((n, 3))))
    np.testing.assert_array_equal(f.value, np.full((7, 3), np.inf))


@each_isa
def test_an_overflow_is_not_a_distance_of_zero(isa):
    X = np.full((9, 6), 1e200)
    found = raw_sums(isa, "float64", PRODUCT, X, 2 * X, {0: np.ones((9, 1))})[0]
    assert not np.any(found > 0)  # 0, or NaN from inf - inf; the engine takes differences here


@each_isa
def test_float32_with_a_scale_beyond_its_range(isa, rng):
    X = rng.normal(size=(9, 3)).astype(np.float32)
    for scale in (1e-12, 1e-20, 1e-30, 1e20):
        with forced(isa), mc.options(engine="native"):
            K = mc.Gaussian(scale)(X)
        np.testing.assert_array_equal(K, np.ones((9, 9)) if scale > 1 else np.eye(9))


# --- Gram matrices --------------------------------------------------------------------------------


@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [2, 5, 64, 129, 300])
@pytest.mark.parametrize("n", [1, 7, 130])
def test_gram_matrices_are_symmetric_to_the_last_bit(n, d, dtype, isa, rng):
    X = (rng.normal(size=(n, d)) + 3.0).astype(dtype)
    u = variables(DIFFERENCE, X, X)
    t = variables(DOT, X, X)
    for kernel, expected in (
        (mc.Gaussian(np.sqrt(d)), np.exp(-0.5 * u / d)),
        (mc.Laplace(np.sqrt(d)), np.exp(-np.sqrt(u / d))),
        (mc.InverseMultiquadric(1.0, 0.7), (1 + u) ** -0.7),
        (mc.Polynomial(3, scale=10.0 * d), (t / (10 * d) + 1) ** 3),
    ):
        with forced(isa), mc.options(engine="native"):
            K = kernel(X)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K, expected, rtol=20 * TOLERANCE[dtype])


@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 5, 48, 49, 100])
def test_gram_writes_the_rows_it_is_given_and_no_others(m, dtype, isa, rng):
    n, d = 37, 3
    X, Y = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    program = core_program(dtype, X, GAUSSIAN, 1, DIFFERENCE, isa)
    K, g = np.exp(-variables(DIFFERENCE, X, Y) / 2).T, program.group
    for first, last in ((0, n), (0, g), (g, 2 * g), (4 * g, n), (g, g)):
        guarded = np.full((n + 2, m), -1.0, dtype=dtype)
        program.gram(Y, guarded[1:-1], first, last)
        expected = np.full((n + 2, m), -1.0)
        expected[1 + first : 1 + last] = K[first:last]
        np.testing.assert_allclose(guarded, expected, rtol=TOLERANCE[dtype])


# --- threads --------------------------------------------------------------------------------------


@each_isa
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m"), [(3000, 1100), (200_000, 3)])
def test_results_do_not_depend_on_chance(n, m, dtype, isa, rng):
    X, Y = rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=(m, 3)).astype(dtype)
    coef = Dense(rng.normal(size=(n, 2)))
    runs = []
    for n_jobs in (2, 2, 1, 3):
        with forced(isa), mc.options(engine="native", n_jobs=n_jobs):
            f = engine.fields(mc.Matern(2.5).program, X, Y, coef, order=1)
            runs.append((f.value, f.gradient))
    for k in range(2):
        np.testing.assert_array_equal(runs[0][k], runs[1][k])
        for other in runs[2:]:
            np.testing.assert_allclose(other[k], runs[0][k], rtol=0, atol=1e-12 * n)


INTERRUPTED = """
import numpy as np
import mercer as mc
from mercer import engine

X = np.random.default_rng(0).normal(size=(200_000, {d}))
coef = engine.Dense(np.ones((200_000, 4)))
print("ready", flush=True)
try:
    with mc.options(engine="native", n_jobs={n_jobs}):
        engine.fields(mc.InverseMultiquadric(1.0, 0.7).program, X, X, coef, order=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("finished", flush=True)
"""


@pytest.mark.parametrize(("d", "n_jobs"), [(3, 2), (12, 1)])
def test_an_interrupt_is_honoured_within_about_a_second(d, n_jobs):
    code = INTERRUPTED.format(d=d, n_jobs=n_jobs)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "ready\n", child.stderr.read()
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            start = time.monotonic()
            assert child.stdout.readline() == "interrupted\n", child.stderr.read()
            assert time.monotonic() - start < 5.0  # a second where nothing else runs
        finally:
            child.kill()
