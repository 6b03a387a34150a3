"""Random Fourier features: unbiased for every kernel with a spectral measure, and convergent."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer import linalg

KERNELS = [
    mc.Gaussian(1.5),
    mc.Laplace(2.0),
    mc.Matern(1.5, 1.0),
    mc.RationalQuadratic(0.8, 1.0),
    mc.InverseMultiquadric(2.0, 0.7),
    2.0 * mc.Gaussian(1.0) + 0.5 * mc.Laplace(1.0) + 0.25,
    mc.Gaussian(1.5) * mc.Matern(2.5, 2.0),
    mc.Gaussian(1.0).transform(mc.Scales([0.5, 1.0, 4.0])),
    mc.Laplace(1.0).transform(mc.Columns([2])) + mc.Gaussian(1.0).transform(mc.Columns([0, 1])),
    mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Matern(1.5).transform(mc.Columns([1, 2])),
    mc.Gaussian(1.0).transform(mc.kernels.Matrix([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0]])),
]
KINDS = ("plain", "orthogonal")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_features_are_unbiased(kernel, kind, rng):
    """The mean over many frequencies, within five standard errors at every pair."""
    X = rng.normal(size=(6, 3))
    m, repeats = 600, 40
    values = np.stack(
        [
            z(X) @ z(X).T
            for z in (
                linalg.random_features(kernel, 3, 2 * m, kind=kind, random_state=seed)
                for seed in range(repeats)
            )
        ]
    )
    error = values.std(axis=0) / np.sqrt(repeats - 1)
    assert np.all(np.abs(values.mean(axis=0) - kernel(X)) <= 5 * error + 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_has_the_length_of_the_kernel(kind, rng):
    X, k = rng.normal(size=(9, 3)), 3.0 * mc.Laplace(1.0) + 0.5
    z = linalg.random_features(k, 3, 10, kind=kind, random_state=0)
    assert z(X).shape == (9, 10)
    assert z.n_features == 10
    assert_allclose(np.sum(z(X) ** 2, axis=1), k.diag(X))


def test_frequencies_are_orthogonal_in_blocks():
    z = linalg.random_features(mc.Gaussian(1.0), 4, 22, kind="orthogonal", random_state=0)
    W = z.frequencies
    assert W.shape == (11, 4)
    for block in (W[:4], W[4:8], W[8:]):
        G = block @ block.T
        assert_allclose(G - np.diag(np.diag(G)), 0.0, atol=1e-12)


def test_mapped_kernels_are_orthogonal_where_they_measure():
    A = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    k = mc.Gaussian(1.0).transform(mc.kernels.Matrix(A))
    W = linalg.random_features(k, 3, 8, kind="orthogonal", random_state=0).frequencies
    inner = W @ np.linalg.pinv(A)  # w = A' v
    assert_allclose(inner @ A, W, atol=1e-12)
    for block in (inner[:2], inner[2:]):
        assert_allclose(block[0] @ block[1], 0.0, atol=1e-12)


def test_lengths_of_orthogonal_frequencies_have_the_law_of_plain_ones():
    from scipy.stats import ks_2samp

    plain, orthogonal = (
        linalg.random_features(mc.Matern(1.5, 1.0), 5, 8000, kind=kind, random_state=1).frequencies
        for kind in KINDS
    )
    lengths = (np.linalg.norm(W, axis=1) for W in (plain, orthogonal))
    assert ks_2samp(*lengths).pvalue > 0.01
    assert ks_2samp(plain[:, 0], orthogonal[:, 0]).pvalue > 0.01


def test_orthogonal_features_have_smaller_errors(rng):
    X, k = rng.normal(size=(300, 12)), mc.Gaussian(5.0)
    mean = {
        kind: np.mean(
            [
                linalg.random_features(k, 12, 48, kind=kind, random_state=s).error(X, 2000, 0) ** 2
                for s in range(30)
            ]
        )
        for kind in KINDS
    }
    assert mean["orthogonal"] < 0.5 * mean["plain"]


def test_the_measured_error_is_the_error(rng):
    X, k = rng.normal(size=(40, 3)), mc.Gaussian(1.0)
    z = linalg.random_features(k, 3, 100, random_state=0)
    gap = z(X) @ z(X).T - k(X)
    found = z.error(X, n_pairs=50_000, random_state=0)
    assert_allclose(found, np.sqrt(np.mean(gap**2)), rtol=0.02)
    assert found == z.error(X, n_pairs=50_000, random_state=0)


def test_float32_and_sparse_points(rng):
    from scipy.sparse import csr_array

    X = rng.normal(size=(7, 3))
    z = linalg.random_features(mc.Gaussian(1.0), 3, 6, random_state=0)
    assert z(X.astype(np.float32)).dtype == np.float32
    assert_allclose(z(X.astype(np.float32)), z(X), atol=1e-6)
    assert_allclose(z(csr_array(X)), z(X))
    assert z.error(X.astype(np.float32), 10, 0) < 1.0


def test_seeds_are_honoured():
    for kind in KINDS:
        first, again, other = (
            linalg.random_features(mc.Laplace(1.0), 3, 20, kind=kind, random_state=seed).frequencies
            for seed in (1, np.random.default_rng(1), 2)
        )
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)


def test_one_dimension():
    z = linalg.random_features(mc.Gaussian(1.0), 1, 4000, kind="orthogonal", random_state=0)
    assert_allclose((z([[0.0]]) @ z([[1.0]]).T)[0, 0], np.exp(-0.5), atol=0.05)


def test_what_cannot_be_done_is_refused():
    with pytest.raises(mc.exceptions.UnavailableError, match="no known spectral measure"):
        linalg.random_features(mc.Polynomial(2), 3, 10)
    with pytest.raises(mc.InputError, match="must be even"):
        linalg.random_features(mc.Gaussian(1.0), 3, 9)
    with pytest.raises(mc.InputError, match="kind must be one of"):
        linalg.random_features(mc.Gaussian(1.0), 3, 10, kind="sobol")
    with pytest.raises(mc.InputError, match="dim must be an integer >= 1"):
        linalg.random_features(mc.Gaussian(1.0), 0, 10)
    for dim, n_features in ((2, 2**31), (2**31, 10), (1, 10**400)):
        with pytest.raises(mc.InputError, match=r"use fewer features|at most"):
            linalg.random_features(mc.Gaussian(1.0), dim, n_features)
    for point_map in (mc.Scales([1.0, 2.0, 3.0]), mc.Columns([0, 5])):
        with pytest.raises(mc.InputError, match="x has 2 features, but the kernel"):
            linalg.random_features(mc.Gaussian(1.0).transform(point_map), 2, 10)
    z = linalg.random_features(mc.Gaussian(1.0), 3, 10)
    with pytest.raises(mc.InputError, match="X has 2 features"):
        z([[0.0, 1.0]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Laplace(1.0)], ids=repr)
def test_errors_fall_like_the_root_of_the_number_of_features(kernel, kind, rng):
    """Sixteen times the features, a quarter of the error; seeds are fixed."""
    X = rng.normal(size=(200, 3))
    rms = [
        np.sqrt(
            np.mean(
                [
                    linalg.random_features(kernel, 3, size, kind=kind, random_state=s).error(
                        X, 500, s
                    )
                    ** 2
                    for s in range(25)
                ]
            )
        )
        for size in (60, 960)
    ]
    assert_allclose(rms[0] / rms[1], 4.0, rtol=0.25)
