"""Cusps: where slopes are infinite, at the points themselves."""

from functools import cache

import numpy as np
import pytest

import mercer as mc
from mercer import engine
from mercer.engine import Dense, SingleFeatures
from tests import naive
from tests.engine.cases import SMOOTH, TINY, TOLERANCE, assert_close, case, unshifted


@pytest.mark.parametrize(
    ("kernel", "cusps"),
    [
        (mc.Laplace(), (True,)),
        (mc.Matern(1.5), (False,)),
        (mc.Gaussian(), (False,)),
        (mc.NegativeDistance(1.0), (True,)),
        (mc.NegativeDistance(2.0), (False,)),
        (mc.Linear(), (False,)),
        (mc.Gaussian() + mc.Laplace(), (True,)),
        (mc.Laplace() * mc.Linear(), (True, False)),
        (mc.Gaussian() * mc.kernels.Normalised(mc.Linear()), (False,) * 4),
        (mc.Gaussian() * mc.Linear(), (False, False)),
    ],
    ids=repr,
)
def test_cusps_are_where_the_slope_is_infinite(kernel, cusps):
    assert kernel.program.cusps == cusps


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("memory", [TINY, 128])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 3, 5, 20])
def test_points_at_a_cusp_are_left_out_and_counted(d, dtype, shifted, memory):
    """Their terms stay in the value; the derivatives are those of the other points."""
    X, A, derivatives = at_cusps(d)
    with mc.options(working_memory=memory):
        f = engine.fields(
            mc.Laplace(1.7).program,
            X.astype(dtype),
            X.astype(dtype),
            Dense(A),
            order=2,
            shifted=shifted,
        )
    own = A.copy()
    own[[2, 13]] = A[2] + A[13]
    np.testing.assert_allclose(f.cusp, own, rtol=1e-5)
    for k, (expected, size) in enumerate(derivatives):
        found = (f.value, f.gradient, f.hessian)[k]
        assert_close(unshifted(found, f.shift), expected, size, 20**k * TOLERANCE[dtype])


@cache
def at_cusps(d: int) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Points as their own queries, two of them equal, and the sums without the coincident terms."""
    rng = np.random.default_rng(5)
    X = (rng.normal(size=(21, d)) + 2.0).astype(np.float32).astype(np.float64)
    X[13] = X[2]
    A = rng.normal(size=(21, 2))
    gap = X[:, None] - X[None]
    r = np.linalg.norm(gap, axis=-1)
    K, inverse = np.exp(-r / 1.7) / 1.7, np.divide(1.0, r, out=np.zeros_like(r), where=r > 0)
    unit = gap * inverse[..., None]
    outer = unit[..., :, None] * unit[..., None, :]
    curvature = outer * (1 / 1.7 + inverse)[..., None, None]
    curvature -= np.where(r > 0, inverse, 0.0)[..., None, None] * np.eye(d)
    terms = (1.7 * K, -K[..., None] * unit, K[..., None, None] * curvature)
    return X, A, [(naive.sums(t, A), naive.sums(np.abs(t), np.abs(A))) for t in terms]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 6])
def test_paired_features_at_their_own_points(d, dtype, rng):
    X = rng.normal(size=(7, d)).astype(dtype)
    Y = X.copy()
    Y[3:] += rng.normal(size=(4, d)).astype(dtype)
    coef = SingleFeatures(np.arange(7), np.linspace(1.0, 2.0, 7), 7)
    f = engine.fields(mc.Laplace(1.0).program, X, Y, coef, order=2, paired=True)
    np.testing.assert_allclose(f.cusp, np.where(np.arange(7) < 3, coef.value, 0.0), rtol=1e-6)
    np.testing.assert_array_equal(f.gradient[:3], 0.0)
    np.testing.assert_array_equal(f.hessian[:3], 0.0)
    gap = (Y - X)[3:].astype(float)
    r = np.linalg.norm(gap, axis=1)
    expected = -(coef.value[3:] * np.exp(-r) / r)[:, None] * gap
    np.testing.assert_allclose(f.gradient[3:], expected, rtol=TOLERANCE[dtype] * 10)


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 6])
def test_matern_is_twice_differentiable_at_its_points(d, dtype, rng):
    """Its curvature there is -3 a / l^2, though the second derivative in u is infinite."""
    X = (rng.normal(size=(15, d)) + 3.0).astype(dtype)
    f = engine.fields(mc.Matern(1.5, 1.5).program, X, X, Dense(2.0 * np.eye(15)), order=2)
    assert f.cusp is None
    own = np.arange(15)
    np.testing.assert_allclose(f.value[own, own], 2.0, rtol=TOLERANCE[dtype])
    np.testing.assert_allclose(f.gradient[own, own], 0.0, atol=10 * TOLERANCE[dtype])
    expected = np.broadcast_to(-2.0 * 3 / 1.5**2 * np.eye(d), (15, d, d))
    np.testing.assert_allclose(f.hessian[own, own], expected, atol=100 * TOLERANCE[dtype])


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("d", [2, 5])
def test_a_cusp_in_one_variable_leaves_the_others(d, rng):
    """psi = exp(-|y - x|) <x, y>: at y = x the inner product still has its slope."""
    X = rng.normal(size=(6, d))
    f = engine.fields(
        (mc.Laplace(1.0) * mc.Linear()).program, X, X[:1], Dense(np.eye(6)[:, :1]), order=1
    )
    np.testing.assert_allclose(f.gradient[0, 0], X[0], rtol=1e-12)
    np.testing.assert_allclose(f.cusp, 1.0)


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("name", sorted(SMOOTH - {"constant", "window"}))
def test_smooth_profiles_at_their_points(name):
    c = case(name, 5)
    assert np.array_equal(c.X[0], c.Y[0])
    f = engine.fields(c.kernel.program, c.X, c.Y[:1], Dense(np.eye(19)[:, :1]), order=2)
    assert f.cusp is None
    np.testing.assert_allclose(f.gradient[0, 0], c.terms[1][0, 0], atol=1e-11)
    np.testing.assert_allclose(f.hessian[0, 0], c.terms[2][0, 0], atol=1e-10)


PRODUCTS = [
    mc.kernels.NegativeDistance(1.0) * mc.Laplace(1.0),
    mc.kernels.NegativeDistance(0.5) * mc.Laplace(1.0),
    mc.kernels.NegativeDistance(1.0) * mc.Laplace(1.0) * mc.Gaussian(2.0),
    mc.kernels.NegativeDistance(1.0) * mc.Laplace(1.0) + mc.Gaussian(2.0),
    mc.kernels.NegativeDistance(1.0) * mc.Laplace(1.0).transform(mc.Scales([1.0, 2.0])),
]


@pytest.mark.parametrize("engine_name", [None, "blocked"])
@pytest.mark.parametrize("kernel", PRODUCTS, ids=repr)
def test_slopes_that_are_zero_times_infinity_at_a_point(kernel, engine_name, rng):
    """The term of the point itself is left out, as for every cusp."""
    X, a = rng.normal(size=(6, 2)), rng.normal(size=6)
    with mc.options(engine=engine_name):
        gradient = mc.Element(kernel, X, a).gradient(X)
        for j in range(6):
            others = np.arange(6) != j
            rest = mc.Element(kernel, X[others], a[others]).gradient(X[j : j + 1])
            np.testing.assert_allclose(gradient[j], rest[0], rtol=1e-10, atol=1e-12)
        assert np.isfinite(kernel.gradient(X, X)).all()
    assert any(kernel.program.cusps)


WITHOUT_CUSPS = [
    mc.kernels.NegativeDistance(2.0) * mc.Laplace(30.0),
    mc.kernels.NegativeDistance(2.0) * mc.Laplace(1.0) * mc.Gaussian(2.0),
    mc.kernels.NegativeDistance(2.0) * mc.Laplace(1.0).transform(mc.Scales([1.0, 2.0])),
]


@pytest.mark.parametrize("engine_name", [None, "blocked"])
@pytest.mark.parametrize("kernel", WITHOUT_CUSPS, ids=repr)
def test_slopes_that_have_a_limit_at_a_point(kernel, engine_name, rng):
    """The gradient of the term of the point itself is zero."""
    X, a = rng.normal(size=(6, 2)), rng.normal(size=6)
    with mc.options(engine=engine_name):
        psi = mc.Element(kernel, X, a)
        step = 1e-6 * np.array([1.0, -2.0])
        differences = (psi(X + step) - psi(X - step)) / 2.0
        np.testing.assert_allclose(psi.gradient(X) @ step, differences, rtol=1e-6, atol=1e-13)
        assert np.isfinite(kernel.gradient(X, X)).all()


def test_the_hessian_where_the_slope_has_a_limit():
    kernel = mc.kernels.NegativeDistance(2.0) * mc.Laplace(30.0)
    hessian = mc.Element(kernel, [[1.0, 2.0]], [1.0]).hessian([[1.0, 2.0]])
    np.testing.assert_allclose(hessian[0], -2.0 * np.eye(2))


def test_a_limit_that_depends_on_another_variable_is_not_made_up():
    kernel = mc.kernels.NegativeDistance(2.0) * mc.Laplace(30.0) * mc.Linear()
    psi = mc.Element(kernel, [[1.0, 2.0], [0.0, 1.0]], [1.0, 0.5])
    X = np.array([[1.0, 2.0]])
    step = 1e-6 * np.array([1.0, -2.0])
    differences = (psi(X + step) - psi(X - step)) / 2.0
    np.testing.assert_allclose(psi.gradient(X) @ step, differences, rtol=1e-6)
    assert np.isnan(psi.hessian(X)).any()
