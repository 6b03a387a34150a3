"""Sums keep their digits: many terms, any units, any origin, any number of threads."""

import math

import numpy as np
import pytest

import mercer as mc
from mercer import engine
from mercer.engine import Dense, Matrix, Scales
from tests.engine.cases import LENGTHS, MATRIX, TOLERANCE, numpy_gaussian

# --- long sums ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("scale", [1.0, 50.0])  # equal terms are where rounding adds up
@pytest.mark.parametrize(("memory", "d"), [(0.125, 6), (128, 2)])  # small tiles; chunks of points
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_more_than_a_hundred_thousand_terms(dtype, memory, d, scale, rng):
    n, m = 140_000, 64 if memory < 1 else 3
    X = (rng.normal(size=(n, d)) + 10.0).astype(dtype)
    Y = (0.5 * rng.normal(size=(m, d)) + 10.0).astype(dtype)
    A = np.stack([np.full(n, 0.1), rng.normal(size=n)], axis=1)
    with mc.options(working_memory=memory):
        f = engine.fields(mc.Gaussian(scale).program, X, Y, Dense(A))
    for j in (0, m - 1):
        gap = X.astype(np.float64) - Y[j].astype(np.float64)
        K = np.exp(-0.5 * (gap**2).sum(axis=1) / scale**2)
        for b in range(2):
            exact, size = math.fsum(A[:, b] * K), math.fsum(np.abs(A[:, b]) * K)
            assert abs(f.value[j, b] - exact) < TOLERANCE[dtype] * size


@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
@pytest.mark.parametrize("d", [1, 3, 6])
@pytest.mark.parametrize(
    "kernel", [mc.Gaussian(0.05), mc.Matern(2.5, 0.3), mc.Laplace(0.3)], ids=repr
)
def test_a_tolerance_is_kept(kernel, d, tolerance, rng):
    """As a share of sum_i |a_i| k(x, x), however the sum is done."""
    X, Y = rng.normal(size=(20_000, d)), rng.normal(size=(300, d))
    A = rng.normal(size=(20_000, 1))
    with mc.options(tolerance=tolerance):
        f = engine.fields(kernel.program, X, Y, Dense(A))
    with mc.options(engine="blocked"):
        exact = engine.fields(kernel.program, X, Y, Dense(A))
    assert np.abs(f.value - exact.value).max() < tolerance * np.abs(A).sum()


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [mc.Gaussian(0.5), mc.Laplace(0.5)], ids=repr)
def test_few_queries_many_points(kernel, dtype, shifted, rng):
    """Points are summed in chunks that are put together in the end."""
    n, m, d = 100_000, 3, 2
    X, Y = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    a = rng.normal(size=(n, 1))
    f = engine.fields(kernel.program, X, Y, Dense(a), order=1, shifted=shifted)
    gap = Y[:, None].astype(float) - X[None].astype(float)
    u = (gap**2).sum(axis=-1)
    if isinstance(kernel, mc.Gaussian):
        K, slope = np.exp(-2 * u), -4 * np.exp(-2 * u)
    else:
        r = np.sqrt(u)
        K, slope = np.exp(-2 * r), -2 * np.exp(-2 * r) / r
    value, first = K @ a, np.einsum("ji,i,jip->jp", slope, a[:, 0], gap)
    size = K @ np.abs(a)
    scale = np.exp(f.shift)[:, None]
    assert np.all(np.abs(f.value * scale - value) < TOLERANCE[dtype] * size)
    assert np.all(np.abs(f.gradient[:, 0] * scale - first) < 20 * TOLERANCE[dtype] * size)


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize(("n", "m"), [(2000, 300), (40_000, 2)])
def test_the_number_of_threads_does_not_matter(n, m, shifted, order, rng):
    X, Y, A = rng.normal(size=(n, 5)), rng.normal(size=(m, 5)), rng.normal(size=(n, 2))
    results = []
    for n_jobs in (1, 2, 3):
        with mc.options(n_jobs=n_jobs):
            f = engine.fields(mc.Matern(1.5).program, X, Y, Dense(A), order=order, shifted=shifted)
            results.append((f.value, f.gradient, f.hessian, f.shift))
    size = np.abs(A).sum(axis=0).max()
    for other in results[1:]:
        for ours, theirs in zip(results[0], other, strict=True):
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14 * size)


# --- units ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("magnitude", [-10, 10])
def test_float32_derivatives_in_units_of_ten_to_the_ten(magnitude, rng):
    """The Hessian is of size s^-2, which float32 holds; k'' = k / (4 s^4) it does not."""
    s = 10.0**magnitude
    X, Y = (s * rng.normal(size=(20, 3))).astype("f"), (s * rng.normal(size=(4, 3))).astype("f")
    A = rng.normal(size=(20, 1))
    f = engine.fields(mc.Gaussian(s).program, X, Y, Dense(A), order=2)
    value, first, second, size = numpy_gaussian(X, Y, A, s)
    assert np.all(np.abs(f.value - value) < 1e-5 * size)
    assert np.all(np.abs(f.gradient - first) * s < 1e-4 * size[..., None])
    assert np.all(np.abs(f.hessian - second) * s**2 < 1e-3 * size[..., None, None])


# --- where the origin is --------------------------------------------------------------------------


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize(("dtype", "offset"), [("float32", 2.0**10), ("float64", 2.0**20)])
@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize(
    "transform", [None, Scales(LENGTHS[5]), Matrix(MATRIX)], ids=["plain", "scales", "matrix"]
)
@pytest.mark.parametrize(
    "kernel", [mc.Gaussian(1.3), mc.Laplace(1.7), mc.Matern(1.5, 2.0)], ids=repr
)
def test_the_origin_does_not_matter(kernel, transform, d, dtype, offset, rng):
    """Points on a dyadic grid, moved by a power of two: the inputs are exact in both places."""
    X, Y = (rng.integers(-64, 65, size=(n, d)) / 16 for n in (60, 23))
    Y[4] = X[5]
    if transform is not None:
        array = np.asarray(transform.array)[..., :d]
        kernel = kernel.transform(type(transform)(array))
    coef = Dense(rng.normal(size=(60, 2)))
    here, there = (
        engine.fields(
            kernel.program, (X + o).astype(dtype), (Y - 0.0 + o).astype(dtype), coef, order=2
        )
        for o in (0.0, offset * np.where(np.arange(d) % 2, -1.0, 1.0))
    )
    size = np.abs(coef.array).sum(axis=0).max()
    for k, field in enumerate(("value", "gradient", "hessian")):
        gap = np.abs(getattr(here, field) - getattr(there, field)).max()
        assert gap < 10**k * TOLERANCE[dtype] * size, field


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("d", [2, 5, 10])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_of_two_clusters_far_apart(dtype, d, rng):
    """Moments about a centre far from both clusters must not cancel."""
    X = rng.normal(size=(120, d))
    X[::2] += 2000.0 / np.sqrt(d)
    X = X.astype(dtype)
    Y = X[:30] + (0.5 * rng.normal(size=(30, d))).astype(dtype)
    A = rng.normal(size=(120, 1))
    f = engine.fields(mc.Gaussian(1.0).program, X, Y, Dense(A), order=2)
    value, first, second, size = numpy_gaussian(X, Y, A, 1.0)
    tolerance = {"float32": 1e-5, "float64": 1e-9}[dtype]
    assert np.all(np.abs(f.value - value) < tolerance * size)
    assert np.all(np.abs(f.gradient - first).max(axis=-1) < tolerance * size)
    assert np.all(np.abs(f.hessian - second).max(axis=(-1, -2)) < 10 * tolerance * size)


# --- derivatives far from most of the points ------------------------------------------------------

WIDER = mc.Gaussian(2**0.5)
GAUSSIANS = {  # all of them exp(-r^2 / 2)
    "one": mc.Gaussian(1.0),
    "scaled": mc.Gaussian(0.5).transform(Scales([2.0] * 3)),
    "two metrics": WIDER * WIDER.transform(Scales([1.0] * 3)),
}


def by_pairs(X, a, Y):
    """Value, gradient and Hessian of sums of exp(-r^2 / 2), from differences."""
    D = X[None] - Y[:, None]
    w = a * np.exp(-(D**2).sum(axis=-1) / 2)
    outer = D[..., :, None] * D[..., None, :] - np.eye(X.shape[1])
    return w.sum(axis=1), (w[..., None] * D).sum(axis=1), (w[..., None, None] * outer).sum(axis=1)


@pytest.mark.parametrize("engine_name", [None, "blocked"])
@pytest.mark.parametrize("far", [1e6, 1e9, 1e12])
@pytest.mark.parametrize("which", ["one outlier", "two clusters"])
@pytest.mark.parametrize("name", GAUSSIANS)
def test_derivatives_beside_points_far_away(name, which, far, engine_name, rng):
    """Moments about one centre cancel: a Hessian was off by hundreds."""
    kernel = GAUSSIANS[name]
    X, a = rng.normal(size=(60, 3)), rng.normal(size=60)
    X[: 1 if which == "one outlier" else 30] += far
    Y = np.concatenate([X[:3], X[-8:]]) + 0.25
    value, gradient, hessian = by_pairs(X, a, Y)
    for paired in (False, True):
        coef = Dense(np.repeat(a[:, None], len(Y), axis=1) if paired else a[:, None])
        for shifted in (False, True):
            with mc.options(engine=engine_name):
                f = engine.fields(
                    kernel.program, X, Y, coef, order=2, paired=paired, shifted=shifted
                )
            f = f if paired else f.only_element()
            scale = np.exp(f.shift)
            np.testing.assert_allclose(f.value * scale, value, atol=1e-9)
            np.testing.assert_allclose(f.gradient * scale[:, None], gradient, atol=1e-9)
            np.testing.assert_allclose(f.hessian * scale[:, None, None], hessian, atol=1e-6)


@pytest.mark.parametrize("engine_name", [None, "blocked"])
@pytest.mark.parametrize("r", [1e-11, 5e-8, 1e-5, 1e-3])
def test_derivatives_beside_a_cusp(r, engine_name, rng):
    """A Hessian 5e-8 lengths from a point had the wrong sign."""
    P = rng.normal(size=9)
    y = P[3] + r
    k = np.exp(-np.abs(y - P))
    psi = mc.Element(mc.Laplace(1.0), P[:, None], np.ones(9))
    with mc.options(engine=engine_name):
        np.testing.assert_allclose(psi.gradient([[y]]), [[(k * np.sign(P - y)).sum()]], rtol=1e-5)
        np.testing.assert_allclose(psi.hessian([[y]]), [[[k.sum()]]], rtol=1e-4)


@pytest.mark.parametrize("d", [2, 7, 20, 300])
@pytest.mark.parametrize("length", [1e-6, 1e-9, 1e-20, 1e-70])
@pytest.mark.parametrize("make", [mc.Gaussian, mc.Laplace, lambda s: mc.Matern(2.5, s)])
def test_equal_points_have_distance_zero_however_short_the_kernel(make, length, d, rng):
    X = rng.normal(size=(30, d))
    np.testing.assert_array_equal(make(length)(X), np.eye(30))
    np.testing.assert_array_equal(make(length)(X, X.copy()), np.eye(30))
    np.testing.assert_array_equal(mc.Element(make(length), X, np.ones(30))(X), np.ones(30))
