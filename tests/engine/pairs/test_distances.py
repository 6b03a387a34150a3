"""Squared distances keep their digits, wherever the data lie and however narrow the kernel is.

The Gram matrix is compared with one from differences in float64, on the same inputs.
"""

import numpy as np
import pytest
from scipy import sparse

import mercer as mc
from mercer.engine import Columns, Matrix, Scales, gram
from mercer.engine.pairs._distances import sorted_in_space
from mercer.engine.pairs._tiles import Pairs

pytestmark = pytest.mark.usefixtures("each_engine")

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}

# kernels of length scale s, and their profiles of u in plain NumPy
KERNELS = {
    "gaussian": (mc.Gaussian, lambda u, s: np.exp(-u / (2 * s**2))),
    "laplace": (mc.Laplace, lambda u, s: np.exp(-np.sqrt(u) / s)),
    "matern 3/2": (
        lambda s: mc.Matern(1.5, s),
        lambda u, s: (1 + np.sqrt(3 * u) / s) * np.exp(-np.sqrt(3 * u) / s),
    ),
    "multiquadric": (
        lambda s: mc.InverseMultiquadric(s**2, 0.5) * mc.kernels.Constant(s),
        lambda u, s: s / np.sqrt(s**2 + u),
    ),
}


def squared_distances(X, Y):
    """By differences, in float64: exact to the last digits."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    return ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=-1)


def assert_gram_is_right(name, s, X, Y=None, dtype=None):
    kernel, profile = KERNELS[name]
    K = kernel(s)(X, Y)
    dtype = dtype or str(X.dtype)
    assert K.dtype == dtype
    error = np.abs(K - profile(squared_distances(X, X if Y is None else Y), s)).max()
    assert error < TOLERANCE[dtype]


def distances_of(kernel, X, Y):
    """How the engine measures, for tests of the choice it makes."""
    return Pairs(kernel.program, X, Y)._distances[0]


def two_clusters(rng, d, gap=2000.0):
    X = rng.normal(size=(120, d))
    X[::2] += gap / np.sqrt(d)
    return X


# --- the cancellation bound -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 10, 64])
@pytest.mark.parametrize("name", KERNELS)
def test_data_shifted_by_a_thousand(name, d, dtype, rng):
    X = (rng.normal(size=(120, d)) + 1000.0).astype(dtype)
    Y = (rng.normal(size=(50, d)) + 1000.0).astype(dtype)
    assert_gram_is_right(name, np.sqrt(d), X)
    assert_gram_is_right(name, np.sqrt(d), X, Y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 10, 64])
@pytest.mark.parametrize("name", KERNELS)
def test_two_clusters_far_apart(name, d, dtype, rng):
    """No centre is near all the points."""
    X = two_clusters(rng, d).astype(dtype)
    assert_gram_is_right(name, np.sqrt(d), X)
    assert_gram_is_right(name, np.sqrt(d), X[:31], X[31:])


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [5, 64, 300])
@pytest.mark.parametrize("name", KERNELS)
def test_every_length_scale(name, d, dtype, rng):
    """From kernels that see one point at a time to kernels that see none apart."""
    X = rng.normal(size=(60, d)).astype(dtype)
    X[30:] += X[:30] + 0.01 * rng.normal(size=(30, d)).astype(dtype)  # some close pairs
    for s in np.logspace(-4, 4, 17) * np.sqrt(d):
        assert_gram_is_right(name, s, X)


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize(("dtype", "offset"), [("float32", 1e4), ("float64", 1e8)])
def test_data_far_from_the_origin(d, dtype, offset, rng):
    """Inputs are rounded to a grid there, but what is left of them is used in full."""
    X = (rng.normal(size=(80, d)) + offset).astype(dtype)
    for name in KERNELS:
        assert_gram_is_right(name, np.sqrt(d), X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("point_map", ["scales", "matrix", "columns"])
def test_maps_of_shifted_data(point_map, dtype, rng):
    """A map must not round the points before their offset is gone."""
    d = 6
    X = (rng.normal(size=(60, d)) + 1000.0).astype(dtype)
    lengths, A = np.linspace(1.1, 3.7, d), rng.normal(size=(4, d)) / 3
    maps = {
        "scales": (Scales(lengths), np.diag(1 / lengths)),
        "matrix": (Matrix(A), A),
        "columns": (Columns([4, 0, 1, 5]), np.eye(d)[[4, 0, 1, 5]]),
    }
    step, matrix = maps[point_map]
    gaps = X[:, None].astype(float) - X[None].astype(float)
    u = ((gaps @ matrix.T) ** 2).sum(axis=-1)
    K = mc.Gaussian(2.0).transform(step)(X)
    assert np.abs(K - np.exp(-u / 8.0)).max() < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_values_keep_relative_digits(dtype, rng):
    """Far weights matter where all weights are far."""
    X, Y = rng.normal(size=(50, 8)).astype(dtype), (3 + rng.normal(size=(40, 8))).astype(dtype)
    K = mc.Gaussian(1.2)(X, Y)
    L = -squared_distances(X, Y) / (2 * 1.2**2)
    assert L.min() < -40
    eps = np.finfo(dtype).eps
    assert np.all(np.abs(K * np.exp(-L) - 1) < TOLERANCE[dtype] / 2 + 4 * eps * np.abs(L))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 6])
@pytest.mark.parametrize("exponent", [-15, 15])
@pytest.mark.parametrize("name", KERNELS)
def test_units_do_not_matter(name, exponent, d, dtype, rng):
    X = (rng.normal(size=(30, d)) * 10.0**exponent).astype(dtype)
    assert_gram_is_right(name, 10.0**exponent, X)


@pytest.mark.parametrize("d", [2, 6])
@pytest.mark.parametrize("exponent", [-25, 25])
def test_units_whose_square_float32_cannot_hold(exponent, d, rng):
    X = (rng.normal(size=(30, d)) * 10.0**exponent).astype(np.float32)
    assert_gram_is_right("gaussian", 10.0**exponent, X)


# --- coincident and nearly coincident points ------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 3, 10, 50])
def test_laplace_at_coincident_points_is_one(d, dtype, rng):
    """An error of eps in u would be one of sqrt(eps) here."""
    X = (rng.normal(size=(40, d)) + 5.0).astype(dtype)
    Y = np.vstack([X[::-1], X])
    K = mc.Laplace(1.0)(X, Y)
    same = (X[:, None] == Y[None]).all(axis=-1)
    assert same.sum() == 80
    np.testing.assert_allclose(K[same], 1.0, rtol=0.1 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 3, 10, 50])
def test_laplace_at_nearly_coincident_points(d, dtype, rng):
    X = rng.normal(size=(12, d)).astype(dtype)
    for gap in 10.0 ** -np.arange(1.0, 13.0):
        Y = (X + gap * rng.normal(size=X.shape)).astype(dtype)
        assert_gram_is_right("laplace", 1.0, X, Y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 10])
def test_duplicates_have_equal_rows(d, dtype, rng):
    X = (rng.normal(size=(20, d)) + 100.0).astype(dtype)
    index = rng.integers(0, 20, size=70)
    for name, (kernel, _) in KERNELS.items():
        K = kernel(1.0)(X[index], X)
        assert np.abs(K - kernel(1.0)(X)[index]).max() < TOLERANCE[dtype], name
        assert_gram_is_right(name, 1.0, X[index])


@pytest.mark.parametrize("d", [1, 3, 4, 20])
def test_all_points_equal(d):
    X = np.full((30, d), 7.25)
    for kernel, _ in KERNELS.values():
        np.testing.assert_allclose(kernel(1.0)(X), 1.0, rtol=1e-15)


@pytest.mark.parametrize("d", [3, 5])
def test_one_point(d, rng):
    X, Y = rng.normal(size=(1, d)), rng.normal(size=(1, d))
    for name in KERNELS:
        assert_gram_is_right(name, 1.0, X, Y)
        assert_gram_is_right(name, 1.0, X)


# --- many distances to recompute ------------------------------------------------------------------


def narrow(rng, n=900, d=6):
    """Points along a long line: the kernel sees only a few neighbours of each."""
    return rng.normal(size=(n, d)) + 200.0 * rng.random((n, 1))


@pytest.mark.parametrize("name", KERNELS)
def test_whole_tiles_of_differences(name, rng):
    X = narrow(rng)
    kernel, _ = KERNELS[name]
    assert distances_of(kernel(1.0), X, X).recompute_below > 10.0
    assert_gram_is_right(name, 1.0, X)
    assert_gram_is_right(name, 1.0, X[:70], X)


def test_wide_kernels_need_no_differences(rng):
    X = rng.normal(size=(300, 6))
    assert distances_of(mc.Gaussian(3.0), X, X).plain


def test_few_dimensions_use_differences(rng):
    X = narrow(rng, d=3)
    assert distances_of(mc.Gaussian(1.0), X, X).direct
    assert_gram_is_right("gaussian", 1.0, X)


def test_differences_in_two_metrics(rng):
    X = narrow(rng, n=300)
    lengths = np.linspace(1.0, 2.0, 6)
    k = mc.Gaussian(1.0) + mc.Laplace(1.0).transform(Scales(lengths))
    K = k(X, X[:50])
    expected = np.exp(-squared_distances(X, X[:50]) / 2)
    expected += np.exp(-np.sqrt(squared_distances(X / lengths, X[:50] / lengths)))
    assert np.abs(K - expected).max() < 1e-12


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("wide", [True, False])
def test_the_gram_matrix_is_exactly_symmetric(name, wide, rng):
    X = rng.normal(size=(700, 5)) if wide else narrow(rng, n=700)
    K = KERNELS[name][0](1.0)(X)
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 100])
@pytest.mark.parametrize("leaf", [1, 8, 16, 40])
def test_spatial_order_is_a_permutation(n, leaf, rng):
    order, _ = sorted_in_space(rng.integers(0, 4, size=(n, 3)).astype(float), leaf)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))


def test_spatial_order_puts_neighbours_together(rng):
    Y = np.repeat(np.arange(8.0) * 100, 16)[:, None] + rng.normal(size=(128, 2))
    shuffled = Y[rng.permutation(128)]
    leaves = sorted_in_space(shuffled, 16)[1].reshape(8, 16, 2)
    assert np.all(np.ptp(leaves[:, :, 0], axis=1) < 20)


# --- sparse points --------------------------------------------------------------------------------


@pytest.fixture
def sparse_points(rng):
    dense = np.where(rng.random((60, 30)) < 0.2, rng.normal(size=(60, 30)), 0.0)
    dense[7] = dense[3]  # duplicates
    dense[11] = 0.0  # an empty row
    return dense


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("name", KERNELS)
def test_sparse_equals_dense(name, container, sparse_points):
    kernel = KERNELS[name][0](1.5)
    S, D = container(sparse_points), sparse_points
    K = kernel(D, D[:20])
    for X, Y in ((S, container(D[:20])), (S, D[:20]), (D, container(D[:20]))):
        assert np.abs(kernel(X, Y) - K).max() < 1e-12
    assert np.abs(kernel(S) - kernel(D)).max() < 1e-12
    np.testing.assert_array_equal(kernel(S), kernel(S).T)


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Linear(),
        mc.Polynomial(3),
        mc.kernels.Normalised(mc.Polynomial(2)),
        mc.Linear() * mc.Gaussian(),
    ],
    ids=repr,
)
def test_sparse_inner_products_equal_dense(kernel, sparse_points):
    S = sparse.csr_array(sparse_points)
    np.testing.assert_allclose(kernel(S), kernel(sparse_points), atol=1e-12)
    np.testing.assert_allclose(kernel.diag(S), kernel.diag(sparse_points), atol=1e-12)


def test_sparse_float32_is_measured_in_float64(sparse_points):
    dense = sparse_points.astype(np.float32)
    K = mc.Laplace(1.0)(sparse.csr_array(dense))
    assert K.dtype == np.float32
    assert np.abs(K - np.exp(-np.sqrt(squared_distances(dense, dense)))).max() < 1e-6


def test_sparse_with_stored_zeros_and_duplicate_entries():
    data, columns, starts = [1.0, 2.0, 0.0, 3.0], [1, 1, 0, 2], [0, 2, 4]
    S = sparse.csr_array((data, columns, starts), shape=(2, 3))
    dense = np.array([[0.0, 3.0, 0.0], [0.0, 0.0, 3.0]])
    for kernel in (mc.Gaussian(2.0), mc.Laplace(2.0), mc.Linear()):
        np.testing.assert_allclose(kernel(S), kernel(dense), rtol=1e-15)


def test_sparse_with_scales_and_columns(sparse_points):
    S = sparse.csr_array(sparse_points)
    for step in (Scales(np.linspace(1.0, 2.0, 30)), Columns([3, 0, 17])):
        k = mc.Gaussian(1.0).transform(step)
        np.testing.assert_allclose(k(S), k(sparse_points), atol=1e-12)


def test_a_matrix_map_would_make_sparse_points_dense(sparse_points):
    k = mc.Gaussian(1.0).transform(Matrix(np.ones((2, 30))))
    with pytest.raises(mc.InputError, match=r"X @ A.T"):
        k(sparse.csr_array(sparse_points))


def test_both_orders_of_arguments_are_transposes(rng):
    X, Y = rng.normal(size=(33, 7)), rng.normal(size=(20, 7))
    for kernel, _ in KERNELS.values():
        program = kernel(1.0).program
        np.testing.assert_allclose(gram(program, X, Y), gram(program, Y, X).T, rtol=1e-13)
