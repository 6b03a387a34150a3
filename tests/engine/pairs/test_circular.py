"""The gap of two points of one coordinate: sums and derivatives against the double loop."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import mercer as mc
from mercer import engine
from mercer.engine import Columns, Dense, Gap, LowRank, Matrix, Program, Scales, SingleFeatures, Var
from mercer.engine.pairs._tiles import wrapped
from mercer.kernels._circle import Periodic, PeriodicSobolev
from tests import naive
from tests.naive import Hyper, exp

WAVE = Periodic((0.7, 0.4, 0.3), period=1.9)
A = np.array([[0.4, -0.9, 0.6]])


def cos(x):
    if not isinstance(x, Hyper):
        return math.cos(x)
    return x.chain(math.cos(x.f), -math.sin(x.f), -math.cos(x.f))


def wave(v):
    w = 2 * math.pi / 1.9
    return 0.7 + 0.8 * cos(w * v) + 0.6 * cos(2 * w * v)


KERNELS = {
    "alone": (WAVE, lambda x, y: wave(y[0] - x[0]), 1),
    "column": (WAVE.transform(Columns([1])), lambda x, y: wave(y[1] - x[1]), 3),
    "matrix": (
        WAVE.transform(Matrix(A)),
        lambda x, y: wave(sum(a * (q - p) for a, p, q in zip(A[0], x, y, strict=True))),
        3,
    ),
    "scaled column": (
        WAVE.transform(Columns([2])).transform(Scales([1.0, 1.0, 2.5])),
        lambda x, y: wave((y[2] - x[2]) / 2.5),
        3,
    ),
    "times a Gaussian": (
        WAVE.transform(Columns([1])) * mc.Gaussian(1.0).transform(Columns([0, 2])),
        lambda x, y: wave(y[1] - x[1]) * exp(-0.5 * ((y[0] - x[0]) ** 2 + (y[2] - x[2]) ** 2)),
        3,
    ),
    "a distance first": (
        mc.Gaussian(1.0) * WAVE.transform(Columns([1])),
        lambda x, y: exp(-0.5 * naive.squared_distance(x, y)) * wave(y[1] - x[1]),
        3,
    ),
    "two gaps, an inner product": (
        WAVE.transform(Columns([0])) * (WAVE.transform(Columns([1])) + mc.Linear()),
        lambda x, y: wave(y[0] - x[0]) * (wave(y[1] - x[1]) + naive.dot(x, y)),
        3,
    ),
    "the same column twice": (
        WAVE.transform(Columns([1])) * mc.Gaussian(1.0) + mc.Polynomial(2),
        lambda x, y: (
            wave(y[1] - x[1]) * exp(-0.5 * naive.squared_distance(x, y))
            + (naive.dot(x, y) + 1) ** 2
        ),
        3,
    ),
}


@pytest.fixture(params=KERNELS)
def case(request, rng):
    kernel, k, d = KERNELS[request.param]
    return kernel, k, rng.normal(size=(9, d)), rng.normal(size=(5, d))


def truth(k, X, Y, A, sums):
    return [sums(f(k, X, Y), A) for f in (naive.values, naive.gradients, naive.hessians)]


def check(fields, expected, tol=1e-12):
    for found, right in zip((fields.value, fields.gradient, fields.hessian), expected, strict=True):
        assert_allclose(found, right, atol=tol * max(1.0, np.abs(right).max()))


def test_dense_sums(case, rng):
    kernel, k, X, Y = case
    B = rng.normal(size=(9, 2))
    found = engine.fields(kernel.program, X, Y, Dense(B), order=2)
    check(found, truth(k, X, Y, B, naive.sums))


def test_low_rank_and_selected_sums(case, rng):
    kernel, k, X, Y = case
    left, right = rng.normal(size=(9, 2)), rng.normal(size=(2, 3))
    found = engine.fields(kernel.program, X, Y, LowRank(left, right), order=2)
    check(found, truth(k, X, Y, left @ right, naive.sums))
    chosen = SingleFeatures(np.array([4, 0, 4]), np.array([1.0, -2.0, 0.5]), 9)
    B = chosen.tile(slice(None), slice(None))
    found = engine.fields(kernel.program, X, Y, chosen, order=2)
    check(found, truth(k, X, Y, B, naive.sums))


def test_paired_sums(case, rng):
    kernel, k, X, Y = case
    B = rng.normal(size=(9, 5))
    found = engine.fields(kernel.program, X, Y, Dense(B), order=2, paired=True)
    check(found, truth(k, X, Y, B, naive.paired_sums))


def test_aligned_sums(case):
    kernel, k, X, Y = case
    chosen = SingleFeatures(np.array([4, 0, 4, 8, 1]), np.array([1.0, -2.0, 0.5, 3.0, 1.0]), 9)
    B = chosen.tile(slice(None), slice(None))
    found = engine.fields(kernel.program, X, Y, chosen, order=2, paired=True)
    check(found, truth(k, X, Y, B, naive.paired_sums))


def test_shifted_sums_are_the_same(case, rng):
    kernel, k, X, Y = case
    B = rng.normal(size=(9, 1))
    found = engine.fields(kernel.program, X, Y, Dense(B), order=1, shifted=True)
    scale = np.exp(found.shift)[:, None]
    assert_allclose(found.value * scale, naive.sums(naive.values(k, X, Y), B), atol=1e-12)


def test_derivatives_in_the_points(case):
    kernel, k, X, Y = case
    assert_allclose(kernel.gradient(X, Y), naive.gradients(k, Y, X), atol=1e-12)
    assert_allclose(kernel.mixed_derivative(X, Y), naive.mixed_derivatives(k, X, Y), atol=1e-11)


def test_gram_diagonal_float32_and_sparse(case):
    kernel, k, X, Y = case
    K = naive.gram(k, X, Y)
    assert_allclose(kernel(X, Y), K, atol=1e-13 * np.abs(K).max())
    assert_allclose(kernel.diag(X), np.diag(naive.gram(k, X)), rtol=1e-13)
    single = kernel(X.astype(np.float32), Y.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, K, atol=3e-6 * np.abs(K).max())
    if not isinstance(getattr(kernel, "point_map", None), Matrix):
        assert_allclose(kernel(csr_array(X), csr_array(Y)), K, atol=1e-13 * np.abs(K).max())


def test_a_gap_is_query_minus_point(rng):
    """An odd profile shows the sign; sums take it as f(query - point)."""
    program = Program((Gap(),), Var(0) ** 3 + Var(0))
    X, Y = rng.normal(size=(4, 1)), rng.normal(size=(3, 1))
    gap = Y - X.T
    assert_allclose(engine.gram(program, Y, X), gap**3 + gap, rtol=1e-14)
    found = engine.fields(program, X, Y, Dense(np.ones((4, 1))), order=2)
    assert_allclose(found.value[:, 0], (gap**3 + gap).sum(axis=1), rtol=1e-13)
    assert_allclose(found.gradient[:, 0, 0], (3 * gap**2 + 1).sum(axis=1), rtol=1e-13)
    assert_allclose(found.hessian[:, 0, 0, 0], (6 * gap).sum(axis=1), atol=1e-13)
    one = SingleFeatures(np.array([0, 1, 2]), np.ones(3), 4)
    aligned = engine.fields(program, X, Y, one, order=1, paired=True)
    assert_allclose(aligned.value, (gap**3 + gap)[np.arange(3), np.arange(3)], rtol=1e-13)
    assert_array_equal(engine.diagonal(program, X), 0.0)


def test_equal_gaps_are_computed_once():
    column = Columns([1])
    k = WAVE.transform(column) + WAVE.transform(column) * mc.Linear()
    assert k.program.variables.count(Gap((column,), 1.9)) == 1
    assert k.program.kind == "mixed"
    assert WAVE.program.kind == "mixed"


@pytest.mark.parametrize("turns", [0, 1, -3, 1000, -(10**6)])
def test_wrapping_is_exact(turns, rng):
    period = 0.75  # so that the multiples are exact
    v = rng.integers(-300, 300, size=50) / 1024.0
    assert_array_equal(wrapped(v + turns * period, period), v)
    assert_array_equal(wrapped(v, None), v)


def test_wrapped_gaps_are_at_most_half_a_turn(rng):
    gap = rng.normal(size=1000) * 10.0 ** rng.uniform(-3, 6, size=1000)
    v = wrapped(gap, 2 * np.pi)
    assert np.all(np.abs(v) <= np.pi)
    assert_array_equal(wrapped(-gap, 2 * np.pi), -v)
    turns = (gap - v) / (2 * np.pi)
    assert_allclose(turns, np.rint(turns), atol=1e-9)


@pytest.mark.parametrize("point_map", [Columns([0]), Scales([1.7]), Matrix([[0.3]])])
def test_nothing_depends_on_the_origin(point_map, rng):
    X = np.rint(2**20 * rng.normal(size=(8, 1))) / 2**20  # so that the shift is exact
    k = PeriodicSobolev(2, period=0.9).transform(point_map)
    assert_allclose(k(X + 2.0**30), k(X), rtol=1e-12)


def test_a_kink_has_no_second_derivative_and_the_symmetric_first(rng):
    k = PeriodicSobolev(1, period=0.5)  # an exact period, so that equal points stay equal
    assert k.program.cusps == (True,)
    assert PeriodicSobolev(2).program.cusps == (False,)
    X = rng.integers(0, 64, size=(6, 1)) / 128.0
    X = np.unique(X, axis=0)
    psi = mc.Element(k, X, rng.normal(size=len(X)))
    for Y in (X, X + 0.5, X - 3.0):
        assert np.isnan(psi.hessian(Y)).all()
        h = 1e-6
        symmetric = (psi(Y + h) - psi(Y - h)) / (2 * h)
        assert_allclose(psi.gradient(Y)[:, 0], symmetric, atol=1e-6)
        assert np.isnan(np.diagonal(k.mixed_derivative(X, Y)[..., 0, 0])).all()
    between = X + 1 / 512
    assert np.isfinite(psi.hessian(between)).all()


def test_a_kink_elsewhere_leaves_other_elements_alone(rng):
    """Selected features: only the feature at the query has the kink."""
    k = PeriodicSobolev(1)
    X = np.array([[0.1], [0.4], [0.8]])
    H = mc.feature(k, X).hessian(X)
    missing = np.isnan(H[..., 0, 0])
    assert_array_equal(missing, np.eye(3, dtype=bool))


def test_a_smooth_gap_beside_a_cusp_keeps_its_second_derivative():
    """In Laplace (column 0) times a wave (column 1) the wave bends where the columns 1 agree."""
    k = mc.Laplace(1.0).transform(Columns([0])) * WAVE.transform(Columns([1]))
    psi = mc.feature(k, [[0.0, 0.3]])[0]
    at = np.array([[0.5, 0.3]])
    w = 2 * np.pi / 1.9
    bend = -np.exp(-0.5) * w**2 * (0.8 + 4 * 0.6)
    assert_allclose(psi.hessian(at)[0, 1, 1], bend, rtol=1e-12)
