"""Kernel sums with values, gradients and Hessians against double loops, in every combination."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mercer as mc
from mercer import engine
from mercer.engine import Dense, LowRank, Scales, SingleFeatures, Stacked
from mercer.engine._compiled import core
from tests import naive
from tests.engine.cases import (
    FORMS,
    PROGRAMS,
    TINY,
    TOLERANCE,
    assert_close,
    case,
    coefficients,
    gaussian,
    looped,
    numpy_gaussian,
    unshifted,
)
from tests.naive import dot

# --- the oracle itself ----------------------------------------------------------------------------


def test_the_double_loops_are_right(rng):
    """Of a Gaussian: gradient -(y - x) k / s^2, Hessian ((y - x)(y - x)' / s^4 - I / s^2) k."""
    X, Y, s = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), 1.3
    gap = Y[:, None] - X[None]
    K = np.exp(-(gap**2).sum(axis=-1) / (2 * s**2))
    np.testing.assert_allclose(naive.values(gaussian, X, Y), K, rtol=1e-14)
    np.testing.assert_allclose(naive.gradients(gaussian, X, Y), -gap * K[..., None] / s**2)
    outer = gap[..., :, None] * gap[..., None, :] / s**4 - np.eye(2) / s**2
    np.testing.assert_allclose(
        naive.hessians(gaussian, X, Y), outer * K[..., None, None], atol=1e-15
    )
    mixed = naive.mixed_derivatives(gaussian, X, Y)
    np.testing.assert_allclose(mixed, -np.swapaxes(outer * K[..., None, None], 0, 1), atol=1e-15)
    A, B = rng.normal(size=(3, 2)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(naive.sums(K, A), K @ A)
    np.testing.assert_allclose(
        naive.paired_sums(K, A[:, [0, 1, 0, 1]]), (K * A[:, [0, 1, 0, 1]].T).sum(1)
    )
    np.testing.assert_allclose(naive.inner(gaussian, X, A, Y, B), A.T @ K.T @ B)


# --- every combination ----------------------------------------------------------------------------


def on_each_engine():
    """(engine, program, paired); the compiled core only where it has a part in the work."""
    for name, (make, _) in PROGRAMS.items():
        for paired in (False, True):
            how = "paired" if paired else "all"
            yield pytest.param("blocked", name, paired, id=f"blocked-{name}-{how}")
            if core() is not None and make(5).program.runs_on_core and not paired:
                yield pytest.param(None, name, paired, id=f"native-{name}-{how}")


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize(("which", "name", "paired"), list(on_each_engine()))
def test_sums_are_double_loops(which, name, d, form, paired, dtype):
    c, coef = case(name, d), coefficients(form)[0]
    X, Y = c.X.astype(dtype), c.Y.astype(dtype)
    expected = looped(name, d, form, paired)
    for order, shifted in itertools.product((0, 1, 2), (False, True)):
        with mc.options(working_memory=TINY, engine=which):
            f = engine.fields(
                c.kernel.program, X, Y, coef, order=order, paired=paired, shifted=shifted
            )
        found = [f.value, f.gradient, f.hessian]
        assert [a is None for a in found] == [False, order < 1, order < 2]
        for k in range(order + 1):
            assert found[k].dtype == dtype
            assert_close(unshifted(found[k], f.shift), *expected[k], 10**k * TOLERANCE[dtype])
        if not shifted:
            np.testing.assert_array_equal(f.shift, np.zeros(11))
        if order and any(c.kernel.program.cusps):
            np.testing.assert_array_equal(f.cusp, np.zeros(f.value.shape))
        else:
            assert f.cusp is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_size_of_the_tiles_does_not_matter(name):
    c = case(name, 5)
    coef = Dense(np.random.default_rng(0).normal(size=(19, 2)))
    results = []
    for memory in (TINY, 0.02, 0.3, 128):
        with mc.options(working_memory=memory, n_jobs=1, engine="blocked"):
            results.append(engine.fields(c.kernel.program, c.X, c.Y, coef, order=2))
    for f in results[1:]:
        np.testing.assert_allclose(f.value, results[0].value, atol=1e-12)
        np.testing.assert_allclose(f.gradient, results[0].gradient, atol=1e-11)
        np.testing.assert_allclose(f.hessian, results[0].hessian, atol=1e-10)


@pytest.mark.usefixtures("each_engine")
def test_slopes_are_sums_of_partial_derivatives():
    """Of a Gaussian in u: k' = -k / (2 s^2); of t times that: k itself over t."""
    c = case("gaussian", 5)
    coef, A = coefficients("dense")
    f = engine.fields(c.kernel.program, c.X, c.Y, coef, order=1)
    np.testing.assert_allclose(f.slopes[0], -f.value / (2 * 1.3**2), rtol=1e-12)
    product = (mc.Gaussian(1.3) * mc.Linear()).program
    f = engine.fields(product, c.X, c.Y, coef, order=1)
    weights = naive.values(gaussian, c.X, c.Y)
    inner = naive.values(dot, c.X, c.Y)
    assert len(f.slopes) == 2
    np.testing.assert_allclose(
        f.slopes[0], naive.sums(-weights * inner / (2 * 1.3**2), A), atol=1e-12
    )
    np.testing.assert_allclose(f.slopes[1], naive.sums(weights, A), atol=1e-12)


@pytest.mark.usefixtures("each_engine")
def test_sums_are_linear_in_the_coefficients():
    c = case("composite", 5)
    dense, A = coefficients("dense")
    lowrank, B = coefficients("low rank")
    run = lambda coef: engine.fields(c.kernel.program, c.X, c.Y, coef, order=2)  # noqa: E731
    a, b, total = run(dense), run(lowrank), run(Dense(2.0 * A - 3.0 * B))
    for field in ("value", "gradient", "hessian"):
        expected = 2.0 * getattr(a, field) - 3.0 * getattr(b, field)
        np.testing.assert_allclose(getattr(total, field), expected, atol=1e-10)


# --- shapes and layouts ---------------------------------------------------------------------------


LAYOUTS = {
    "c": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "read-only": lambda X: mc._array.frozen(np.array(X)),
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1])[::-1],
}


@given(
    n=st.integers(1, 40),
    m=st.integers(1, 20),
    d=st.integers(1, 6),
    b=st.integers(1, 4),
    dtype=st.sampled_from(["float32", "float64"]),
    layouts=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 3),
    magnitude=st.integers(-8, 8),
    offset=st.sampled_from([0.0, 1.0, 1000.0]),
    shifted=st.booleans(),
    which=st.sampled_from([{"engine": None}, {"engine": "blocked", "working_memory": TINY}]),
    seed=st.integers(0, 2**31),
)
def test_any_shape_and_layout(n, m, d, b, dtype, layouts, magnitude, offset, shifted, which, seed):
    rng = np.random.default_rng(seed)
    s = 10.0**magnitude
    X = (s * (rng.normal(size=(n, d)) + offset)).astype(dtype)
    X = X[rng.integers(0, n, size=n)]  # duplicates
    Y = X[rng.integers(0, n, size=m)] + (s * rng.normal(size=(m, d))).astype(dtype)
    Y[: m // 3] = X[rng.integers(0, n, size=m // 3)]  # queries at points
    A = rng.normal(size=(n, b))
    value, first, second, size = numpy_gaussian(X, Y, A, s)
    given_X, given_Y, given_A = (
        LAYOUTS[name](Z) for name, Z in zip(layouts, (X, Y, A), strict=True)
    )
    with mc.options(**which):
        f = engine.fields(
            mc.Gaussian(s).program, given_X, given_Y, Dense(given_A), order=2, shifted=shifted
        )
    scale = np.exp(f.shift)[:, None]
    tolerance = 10 * TOLERANCE[dtype] * size
    assert np.all(np.abs(f.value * scale - value) <= tolerance)
    gap = s * np.abs(f.gradient * scale[..., None] - first).max(axis=-1)
    assert np.all(gap <= 5 * tolerance)
    gap = s**2 * np.abs(f.hessian * scale[..., None, None] - second).max(axis=(-1, -2))
    assert np.all(gap <= 25 * tolerance)
    np.testing.assert_array_equal(given_X, X)  # inputs are left alone


U = engine.Var(0, nonnegative=True)
ZOO = {
    "exp": np.exp(-0.7 * U),
    "exp of a root": np.exp(-np.sqrt(0.3 + U)),
    "root": np.sqrt(1.0 + 2.0 * U),
    "inverse": 1.0 / (2.0 + U),
    "inverse root": (2.0 + U) ** -0.5,
    "power": (2.0 + U) ** -1.3,
    "whole power": (0.1 * U - 1.0) ** 5,
    "negative whole power": (1.0 + U) ** -3,
    "logarithm": -np.log(1.0 + U),
    "matern 3/2": engine.matern(2.0 * U, 1.5),
    "matern 5/2": engine.matern(2.0 * U, 2.5),
    "sum": np.exp(-U) + 0.5 * (1.0 + U) ** -2,
    "product": (1.0 + U) * np.exp(-0.2 * U),
    "nested": np.exp(-(np.log(1.0 + U) ** 2)) * (np.exp(-0.1 * U) + 0.25),
    "window": engine.cut(9.0 - U, (9.0 - U) ** 2),
    "constant": engine.Const(1.5) + 0.0 * U,
    "long": sum((np.exp(-c * U) for c in (0.1, 0.2, 0.3, 0.5, 0.8, 1.3)), start=engine.Const(0.5)),
}


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "m", "d"), [(130, 60, 3), (600, 260, 2), (97, 49, 7)])
@pytest.mark.parametrize("name", ZOO)
def test_profiles_of_every_kind(name, n, m, d, dtype, rng):
    """Sums over more than one tile of what `evaluate` gives at exact distances."""
    X, Y = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    a = rng.normal(size=n)
    program = engine.Program((engine.Distance(),), ZOO[name])
    f = engine.fields(program, X, Y, Dense(a[:, None]), order=2)
    gap = Y[:, None].astype(float) - X[None].astype(float)
    jet = engine.evaluate(ZOO[name], [(gap**2).sum(axis=-1)], order=2)
    K, first, second = (
        a * np.broadcast_to(np.asarray(e, dtype=float), (m, n))
        for e in (jet.value, jet.first[0], jet.second[0][0])
    )
    gradient, size = 2 * np.einsum("ji,jip->jp", first, gap), np.abs(first).sum(axis=1)
    hessian = 4 * np.einsum("ji,jip,jiq->jpq", second, gap, gap, optimize=True)
    hessian += 2 * first.sum(axis=1)[:, None, None] * np.eye(d)
    curvature = size + np.abs(second).sum(axis=1) * 10
    tolerance = 10 * TOLERANCE[dtype]
    assert np.all(np.abs(f.value[:, 0] - K.sum(axis=1)) <= tolerance * np.abs(K).sum(axis=1))
    assert np.all(np.abs(f.gradient[:, 0] - gradient) <= 10 * tolerance * size[:, None])
    assert np.all(np.abs(f.hessian[:, 0] - hessian) <= 10 * tolerance * curvature[:, None, None])


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("n", [1, 2, 47, 48, 49, 511, 513, 1025])
@pytest.mark.parametrize("m", [1, 15, 17, 257, 481])
def test_sizes_around_those_of_tiles(n, m, rng):
    for d in (1, 4, 5, 12):
        X, Y, A = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=(n, 3))
        K = np.exp(-0.5 * ((Y[:, None] - X[None]) ** 2).sum(axis=-1) / d)
        kernel = mc.Gaussian(np.sqrt(d))
        f = engine.fields(kernel.program, X, Y, Dense(A))
        assert np.all(np.abs(f.value - K @ A) < 1e-12 * (K @ np.abs(A)))
        np.testing.assert_allclose(kernel(Y, X), K, atol=1e-12)


# --- the diagonal ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_diagonal_is_that_of_the_gram_matrix(name, dtype):
    c = case(name, 5)
    X = c.X.astype(dtype)
    k = PROGRAMS[name][1](5)
    diagonal = engine.diagonal(c.kernel.program, X)
    expected = [k(x, x) for x in naive.rows_of(X)]
    np.testing.assert_allclose(diagonal, expected, rtol=TOLERANCE[dtype])
    assert diagonal.flags.writeable


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_diagonal_keeps_float32(name):
    c = case(name, 5)
    assert engine.diagonal(c.kernel.program, c.X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("engine_name", [None, "blocked"])
@pytest.mark.parametrize("size", [1e-140, 1e75, 1e140])
@pytest.mark.parametrize(
    "kernel",
    [
        mc.Gaussian(1.0),
        mc.Laplace(1.0),
        mc.Exponential(1e-75),
        1e300 * mc.Gaussian(1.0),
        mc.Gaussian(1.0) * mc.Linear(),
        mc.Gaussian(1.0).transform(Scales([1e-75, 1e75])),
    ],
    ids=repr,
)
def test_overflow_is_seen_in_the_result_and_gives_no_warning(kernel, size, engine_name, rng):
    """Warnings are errors in this suite."""
    X = rng.normal(size=(6, 2)) * size
    Y = np.vstack([X[:2], rng.normal(size=(3, 2)) * size])
    with mc.options(engine=engine_name):
        kernel(X, Y)
        kernel.diag(X)
        for big in (1.0, 1e200):
            A = rng.normal(size=(6, 5)) * big
            stacked = Stacked((Dense(A[:3]), LowRank(A[3:, :2], A[:2])))
            single = SingleFeatures(np.arange(5), A[0], 6)
            for coef in (Dense(A), LowRank(A[:, :2], A[:2]), stacked, single):
                for order, paired in itertools.product((0, 1, 2), (False, True)):
                    for shifted in (False, True):
                        keywords = {"order": order, "paired": paired, "shifted": shifted}
                        engine.fields(kernel.program, X, Y, coef, **keywords)


def test_float32_scales_beyond_its_range():
    X = np.array([[1e-30, 1.0], [2e-30, 2.0]], dtype="float32")
    k = mc.Gaussian(1.0).transform(Scales([1e-30, 1e60]))
    np.testing.assert_allclose(k(X), [[1.0, np.exp(-0.5)], [np.exp(-0.5), 1.0]], rtol=1e-6)
