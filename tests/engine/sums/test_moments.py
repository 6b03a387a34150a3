"""Moments under kernel weights: the sums that fixed-point and Newton steps are made of."""

import math

import numpy as np
import pytest
from scipy import sparse

import mercer as mc
from mercer.engine import Dense, LowRank, Scales, Selection, Stacked, moments
from tests import naive

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
TINY = 0.001  # MiB: tiles of 8 x 8

# kernel, and its profile with two derivatives in u as functions of a number
PROFILES = {
    "gaussian": (
        mc.Gaussian(1.3),
        lambda u: math.exp(-u / 3.38),
        lambda u: -math.exp(-u / 3.38) / 3.38,
        lambda u: math.exp(-u / 3.38) / 3.38**2,
    ),
    "laplace": (
        mc.Laplace(2.0),
        lambda u: math.exp(-math.sqrt(u) / 2),
        lambda u: -math.exp(-math.sqrt(u) / 2) / (4 * math.sqrt(u)),
        lambda u: math.exp(-math.sqrt(u) / 2) * (1 / (16 * u) + 1 / (8 * u**1.5)),
    ),
    "multiquadric": (
        mc.InverseMultiquadric(1.5, 0.5),
        lambda u: (1.5 + u) ** -0.5,
        lambda u: -0.5 * (1.5 + u) ** -1.5,
        lambda u: 0.75 * (1.5 + u) ** -2.5,
    ),
    "window": (
        mc.Epanechnikov(4.0),
        lambda u: max(4.0 - u, 0.0),
        lambda u: -1.0 if u <= 4.0 else 0.0,
        lambda u: 0.0,
    ),
}


def assert_moments(found, expected, size, tolerance):
    """Compare the three moments, relative to the moments of absolute weights and gaps."""
    scale = np.exp(found.shift)
    for ours, exact, largest in zip(
        (found.weight, found.first, found.second), expected, size, strict=True
    ):
        if ours is None:
            continue
        assert ours.dtype == np.float64
        ours = ours * scale.reshape(-1, *(1,) * (ours.ndim - 1))
        assert ours.shape == exact.shape
        assert np.all(np.abs(ours - exact) <= tolerance * max(largest.max(), 1e-300))


def exact_moments(weight, X, A, Y):
    """The double loop, and the same over absolute weights and coordinates."""
    return naive.moments(weight, X, A, Y), naive.moments(lambda u: abs(weight(u)), X, np.abs(A), Y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("derivative", [0, 1, 2])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("name", PROFILES)
def test_moments_are_double_loops(name, d, shifted, derivative, dtype):
    kernel, *weights = PROFILES[name]
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(19, d)).astype("f"), rng.normal(size=(11, d)).astype("f")
    A = rng.normal(size=(19, 11))
    for matrix, coef in (
        (A[:, :1], Dense(A[:, :1])),  # one element for all queries
        (A, Dense(A)),  # element j for query j
        (A[:, :2] @ A[:2], LowRank(A[:, :2], A[:2])),
    ):
        expected, size = exact_moments(weights[derivative], X, matrix, Y)
        with mc.options(working_memory=TINY):
            found = moments(
                kernel.program,
                X.astype(dtype),
                Y.astype(dtype),
                coef,
                derivative=derivative,
                scatter=True,
                shifted=shifted,
            )
        assert_moments(found, expected, size, 10 * TOLERANCE[dtype])


def test_selections_and_stacks(rng):
    X, Y = rng.normal(size=(9, 3)), rng.normal(size=(5, 3))
    index, value, left = np.array([3, 0, 3, 1, 5]), rng.normal(size=5), rng.normal(size=(3, 5))
    selected = Selection(index, value, 6)
    stacked = Stacked((selected, Dense(left)))
    top = np.eye(6)[:, index] * value
    for coef, A, points in ((selected, top, X[:6]), (stacked, np.vstack([top, left]), X)):
        expected, size = exact_moments(PROFILES["gaussian"][2], points, A, Y)
        found = moments(mc.Gaussian(1.3).program, points, Y, coef, scatter=True)
        assert_moments(found, expected, size, 1e-12)


def test_scatter_is_written_only_on_request(rng):
    X = rng.normal(size=(9, 3))
    assert moments(mc.Gaussian().program, X, X, Dense(np.ones((9, 1)))).second is None


def test_the_mean_shift_vector_of_equal_points(rng):
    """All points in one place: the shift leads there from anywhere."""
    x = rng.normal(size=4)
    X, Y = np.tile(x, (25, 1)), rng.normal(size=(6, 4)) * 20
    m = moments(mc.Gaussian(0.5).program, X, Y, Dense(np.ones((25, 1))), shifted=True)
    np.testing.assert_allclose(Y + m.first / m.weight[:, None], np.tile(x, (6, 1)), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mean_shift_far_below_underflow(dtype, rng):
    """The nearest point wins where every weight underflows."""
    X = rng.normal(size=(30, 2)).astype(dtype)
    Y = np.array([[50.0, 50.0], [-80.0, 10.0]], dtype=dtype)
    m = moments(mc.Gaussian(0.1).program, X, Y, Dense(np.ones((30, 1))), shifted=True)
    nearest = X[((Y[:, None] - X[None]) ** 2).sum(axis=-1).argmin(axis=1)]
    np.testing.assert_allclose(Y + m.first / m.weight[:, None], nearest, atol=2e-5)
    assert np.all(m.shift < -1e5)


def test_moments_of_a_mapped_kernel_are_in_the_original_coordinates(rng):
    X, Y, lengths = rng.normal(size=(12, 3)), rng.normal(size=(4, 3)), np.array([1.0, 2.0, 0.5])
    kernel = mc.Gaussian(1.3).transform(Scales(lengths))
    found = moments(kernel.program, X, Y, Dense(np.ones((12, 1))), derivative=0, scatter=True)
    K = mc.Gaussian(1.3)(Y / lengths, X / lengths)
    gap = X[None] - Y[:, None]
    np.testing.assert_allclose(found.weight, K.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found.first, (K[..., None] * gap).sum(axis=1), atol=1e-12)
    expected = np.einsum("ji,jip,jiq->jpq", K, gap, gap)
    np.testing.assert_allclose(found.second, expected, atol=1e-12)


def test_inner_products_have_moments_too(rng):
    """Weights 3 (1 + <x, y>)^2 of a cubic."""
    X, Y = rng.normal(size=(12, 3)), rng.normal(size=(4, 3))
    found = moments(mc.Polynomial(3).program, X, Y, Dense(np.ones((12, 1))))
    W = 3 * (1 + Y @ X.T) ** 2
    np.testing.assert_allclose(found.weight, W.sum(axis=1), rtol=1e-12)
    expected = (W[..., None] * (X[None] - Y[:, None])).sum(axis=1)
    np.testing.assert_allclose(found.first, expected, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 5])
def test_points_at_a_cusp_are_left_out(d, dtype, rng):
    X = rng.normal(size=(15, d)).astype(dtype)
    found = moments(mc.Laplace(2.0).program, X, X, Dense(np.ones((15, 1))), scatter=True)
    for j in range(15):
        rest = np.delete(X, j, axis=0)
        expected, size = exact_moments(PROFILES["laplace"][2], rest, np.ones((14, 1)), X[j : j + 1])
        tolerance = 100 * TOLERANCE[dtype]
        assert abs(found.weight[j] - expected[0][0]) <= tolerance * size[0][0]
        assert np.abs(found.first[j] - expected[1][0]).max() <= tolerance * size[0][0]
        assert np.abs(found.second[j] - expected[2][0]).max() <= tolerance * size[0][0]


@pytest.mark.parametrize(("dtype", "offset"), [("float32", 2.0**10), ("float64", 2.0**20)])
@pytest.mark.parametrize("d", [2, 5])
def test_the_origin_does_not_matter(d, dtype, offset, rng):
    X, Y = (rng.integers(-64, 65, size=(n, d)) / 16 for n in (60, 23))
    coef = Dense(rng.normal(size=(60, 1)))
    here, there = (
        moments(
            mc.Gaussian(1.3).program,
            (X + o).astype(dtype),
            (Y + o).astype(dtype),
            coef,
            derivative=0,
            scatter=True,
        )
        for o in (0.0, offset)
    )
    size = np.abs(coef.array).sum()
    for k, field in enumerate(("weight", "first", "second")):
        gap = np.abs(getattr(here, field) - getattr(there, field)).max()
        assert gap < 10**k * TOLERANCE[dtype] * size, field


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_clusters_far_apart(dtype, d, rng):
    """Shifts and scatters of one cluster must not feel how far away the other is."""
    X = rng.normal(size=(60, d))
    X[::2] += 2000.0 / np.sqrt(d)
    X = X.astype(dtype)
    found = moments(
        mc.Gaussian(1.3).program, X, X, Dense(np.ones((60, 1))), derivative=0, scatter=True
    )
    expected, size = exact_moments(PROFILES["gaussian"][1], X, np.ones((60, 1)), X)
    tolerance = {"float32": 1e-5, "float64": 1e-9}[dtype]
    assert_moments(found, expected, size, 10 * tolerance)


@pytest.mark.parametrize("sparse_points", [False, True])
@pytest.mark.parametrize("sparse_queries", [False, True])
@pytest.mark.parametrize("scatter", [False, True])
def test_sparse_equals_dense(sparse_points, sparse_queries, scatter, rng):
    X = np.where(rng.random((30, 6)) < 0.4, 1.0 + rng.normal(size=(30, 6)), 0.0)
    Y = X[:5] + 0.5 * (X[:5] != 0)
    coef = Dense(rng.normal(size=(30, 1)))
    program = mc.Gaussian(1.3).program
    expected = moments(program, X, Y, coef, scatter=scatter)
    found = moments(
        program,
        sparse.csr_array(X) if sparse_points else X,
        sparse.csr_array(Y) if sparse_queries else Y,
        coef,
        scatter=scatter,
    )
    np.testing.assert_allclose(found.weight, expected.weight, atol=1e-12)
    np.testing.assert_allclose(found.first, expected.first, atol=1e-12)
    if scatter:
        np.testing.assert_allclose(found.second, expected.second, atol=1e-12)


def test_few_queries_many_points(rng):
    X, Y, a = rng.normal(size=(100_000, 2)), rng.normal(size=(3, 2)), rng.normal(size=(100_000, 1))
    found = moments(mc.Gaussian(0.5).program, X, Y, Dense(a), derivative=0)
    gap = X[None] - Y[:, None]
    W = np.exp(-2 * (gap**2).sum(axis=-1)) * a[:, 0]
    size = np.abs(W).sum(axis=1)
    assert np.all(np.abs(found.weight - W.sum(axis=1)) < 1e-12 * size)
    expected = np.einsum("ji,jip->jp", W, gap)
    assert np.all(np.abs(found.first - expected) < 1e-11 * size[:, None])


@pytest.mark.parametrize(
    "kernel",
    [mc.Gaussian() * mc.Linear(), mc.kernels.Constant(1.0), mc.kernels.Normalised(mc.Linear())],
    ids=repr,
)
def test_other_kernels_have_no_moments(kernel):
    with pytest.raises(
        mc.exceptions.DerivativeError, match="one squared distance or inner product"
    ):
        moments(kernel.program, np.ones((2, 2)), np.ones((2, 2)), Dense(np.ones((2, 1))))
