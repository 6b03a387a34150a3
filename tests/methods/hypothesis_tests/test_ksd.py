"""The Stein kernel against derivatives of kernels pair by pair, and against known values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import mercer as mc
from mercer.exceptions import DerivativeError, InputError
from mercer.kernels import Matrix
from mercer.methods import SteinKernel, ksd, stein_operator
from mercer.methods.hypothesis_tests._ksd import SteinTiles

KERNELS = [
    mc.Gaussian(1.3),
    mc.InverseMultiquadric(2.0, 0.5),
    mc.Matern(2.5, 1.0),
    mc.Matern(1.5, 1.0),
    mc.Polynomial(3),
    mc.Exponential(),
    mc.Gaussian(1.0) * mc.Linear() + mc.Polynomial(2),
    mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0, 0.3])),
    mc.Gaussian(1.0).transform(Matrix([[1.0, 2.0, 0.0], [0.5, -1.0, 1.0]])),
    mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Matern(2.5).transform(mc.Columns([1, 2])),
    mc.Gaussian(2.0).transform(mc.Scales([1.0, 2.0, 3.0])) * mc.RationalQuadratic(0.5, 2.0),
    mc.Gaussian(2.0) + mc.Linear().transform(mc.Scales([1.0, 2.0, 3.0])),
    mc.kernels.Cosine() * mc.Gaussian(1.0),
]  # fmt: skip


def stein_matrix(k, X, S):
    """The definition, from gradients and mixed derivatives of every pair."""
    by_x, mixed = k.gradient(X), k.mixed_derivative(X)
    h = (S @ S.T) * k(X)
    for i in range(len(X)):
        for j in range(len(X)):
            h[i, j] += S[j] @ by_x[i, j] + S[i] @ by_x[j, i] + np.trace(mixed[i, j])
    return h


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_every_kernel_is_the_definition(k):
    rng = np.random.default_rng(0)
    X, S = rng.normal(size=(12, 3)), rng.normal(size=(12, 3))
    tiles, expected = SteinTiles(k, X, S), stein_matrix(k, X, S)
    tolerance = 1e-13 * np.abs(expected).max()
    assert_allclose(tiles(slice(0, 12), slice(0, 12)), expected, atol=tolerance)
    assert_allclose(tiles(slice(2, 5), slice(4, 12)), expected[2:5, 4:12], atol=tolerance)
    assert_allclose(tiles.diagonal(), np.diag(expected), atol=tolerance)


def test_kernels_of_the_circle():
    k, X = mc.kernels.JacobiTheta(0.5), np.linspace(0.0, 6.0, 9)[:, None]
    S = -np.sin(X)
    H = SteinKernel(k, lambda X: -np.sin(X))(X)
    assert_allclose(H, stein_matrix(k, X, S), atol=1e-12 * np.abs(H).max())


@pytest.mark.parametrize("n", [1, 2, 700])
def test_statistics_are_means_of_the_stein_kernel(n):
    rng = np.random.default_rng(1)
    X, k, w = rng.normal(size=(n, 2)), mc.InverseMultiquadric(1.0), rng.uniform(0, 2, n)
    H = SteinKernel(k, lambda X: 0.5 - X)(X)
    assert_allclose(ksd(k, X, lambda X: 0.5 - X, estimator="biased"), H.mean())
    v = w / w.sum()
    assert_allclose(ksd(k, X, lambda X: 0.5 - X, weights=w, estimator="biased"), v @ H @ v)
    if n == 1:
        with pytest.raises(InputError, match="two rows"):
            ksd(k, X, lambda X: 0.5 - X)
        return
    off = ~np.eye(n, dtype=bool)
    assert_allclose(ksd(k, X, lambda X: 0.5 - X), H[off].mean(), rtol=1e-9, atol=1e-14)
    V = np.outer(v, v)
    expected = np.average(H[off], weights=V[off])
    assert_allclose(ksd(k, X, lambda X: 0.5 - X, weights=w), expected, rtol=1e-9, atol=1e-14)


def test_biased_value_is_the_squared_norm_in_the_space_of_the_stein_kernel():
    X, k = np.random.default_rng(0).normal(size=(30, 2)), mc.Gaussian(1.0)
    h = SteinKernel(k, lambda X: 0.3 - X)
    mean = mc.mean_embedding(h, X)
    assert_allclose(mean.norm() ** 2, ksd(k, X, lambda X: 0.3 - X, estimator="biased"))
    assert_allclose(mean(X[:4]), h(X[:4], X).mean(axis=1))


def test_far_from_the_origin_and_at_other_scales():
    rng = np.random.default_rng(0)
    X, S = rng.normal(size=(40, 5)), rng.normal(size=(40, 5))
    every = slice(0, 40)
    plain = SteinTiles(mc.Gaussian(1.0), X, S)(every, every)
    moved = SteinTiles(mc.Gaussian(1.0), X + 1e6, S)(every, every)
    assert_allclose(moved, plain, atol=1e-8 * np.abs(plain).max())
    for c in (1e-60, 1e60):
        scaled = SteinTiles(mc.Gaussian(c), c * X, S / c)(every, every)
        assert_allclose(scaled * c**2, plain, rtol=1e-9, atol=1e-12)


def test_many_columns_and_duplicates():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(5, 300)), 2, axis=0)
    k = mc.InverseMultiquadric(300.0)
    H = SteinKernel(k, lambda X: -X)(X)
    x, y = X[0], X[2]
    u = np.sum((x - y) ** 2)
    f = (300.0 + u) ** -0.5
    first, second = -0.5 * f / (300.0 + u), 0.75 * f / (300.0 + u) ** 2
    expected = (x @ y) * f + 2 * first * u - 600 * first - 4 * second * u
    assert_allclose(H[0, 2], expected, rtol=1e-12)
    assert_allclose(H[::2], H[1::2], rtol=1e-12)
    assert_allclose(ksd(k, X.astype(np.float32), lambda X: -X), ksd(k, X, lambda X: -X), rtol=1e-5)


def test_refusals_name_the_cure():
    X, score = np.ones((3, 1)), stats.norm()
    for k in (mc.Laplace(1.0), mc.Matern(0.5), mc.Gaussian(1.0) + mc.Laplace(1.0)):
        with pytest.raises(InputError, match=r"cusp at x = y.*InverseMultiquadric"):
            ksd(k, X, score)
    for k in (mc.Epanechnikov(), mc.NegativeDistance(2.0)):
        with pytest.raises(InputError, match="not positive definite"):
            ksd(k, X, score)
    with pytest.raises(DerivativeError):
        ksd(mc.Jaccard(), X, score)
    with pytest.raises(InputError, match="kernel must be"):
        ksd("gaussian", X, score)
    with pytest.raises(InputError, match="estimator"):
        ksd(mc.Gaussian(1.0), X, score, estimator="block")
    with pytest.raises(InputError, match="overflows"):
        ksd(mc.Gaussian(1.0), X, lambda X: 1e200 * X)
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match=r"NaN|infin"):
            ksd(mc.Gaussian(1.0), [[1.0], [bad]], score)
    sparse = pytest.importorskip("scipy.sparse").csr_array(X)
    with pytest.raises(InputError, match="toarray"):
        ksd(mc.Gaussian(1.0), sparse, score)


def test_stein_operator_of_a_batch():
    psi = mc.Element(mc.Gaussian(1.0), [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [2.0, -1.0]])
    X = np.random.default_rng(0).normal(size=(4, 2))
    both = stein_operator(psi, lambda X: -X, X)
    for b in range(2):
        one = psi[b].gradient(X) - psi[b](X)[:, None] * X
        assert_allclose(both[:, b], one)
        assert_allclose(stein_operator(psi[b], lambda X: -X, X), one)
