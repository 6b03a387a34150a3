"""Kernels of non-negative vectors: against loops, closed forms and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel

import mercer as mc
from mercer.kernels._coordinates import AdditiveChiSquare, ChiSquare, Harmonic, Minimum
from mercer.testing import check_element, check_kernel, lattice

KERNELS = [Minimum(), Harmonic(), AdditiveChiSquare(), ChiSquare(), ChiSquare(0.05)]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def loop(kernel, x, y):
    """One pair by definition."""
    pairs = [(float(a), float(b)) for a, b in zip(x, y, strict=True)]
    if isinstance(kernel, Minimum):
        return sum(min(a, b) for a, b in pairs)
    if isinstance(kernel, Harmonic):
        return sum(a * (b / (a + b)) for a, b in pairs if a + b)
    distance = sum((a - b) * ((a - b) / (a + b)) for a, b in pairs if a + b)
    return -distance if isinstance(kernel, AdditiveChiSquare) else np.exp(-kernel.gamma * distance)


def loops(kernel, X, Y):
    return np.array([[loop(kernel, x, y) for y in Y] for x in X])


@each_kernel
@pytest.mark.parametrize(("d", "side"), [(1, 12), (2, 5), (3, 3), (5, 2)])
@pytest.mark.parametrize("step", [0.1, 1.0, 7.0])
def test_conformance(kernel, d, side, step):
    """On lattices that touch the origin, because the kit's own stay in one dimension here."""
    check_kernel(kernel, lattice(d, side, step), dims=(1,))


@each_kernel
def test_conformance_of_composites(kernel, rng):
    X = rng.poisson(1.0, size=(12, 3)) + 0.25
    for composite in (
        2.0 * kernel + 1.0,
        kernel + mc.Gaussian(1.0),
        kernel.transform(mc.Scales([1.0, 2.0, 0.5])),
        kernel.transform(mc.Columns([2, 0])) + mc.Linear(),
    ):
        check_kernel(composite, X, dims=())


@given(
    arrays(np.float64, st.tuples(st.integers(1, 9), st.just(3)), elements=st.floats(0.0, 1e9)),
    arrays(np.float64, st.tuples(st.integers(1, 9), st.just(3)), elements=st.floats(0.0, 1e9)),
)
def test_against_loops(X, Y):
    for kernel in KERNELS:
        expected = loops(kernel, X, Y)
        assert_allclose(kernel(X, Y), expected, rtol=1e-12, atol=1e-300, err_msg=repr(kernel))


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (40, 3), (3, 40)])
def test_against_scikit_learn(rng, shape):
    X, Y = rng.poisson(1.0, size=(2, *shape)).astype(float)
    Y = Y[:2]
    for gamma in (0.1, 1.0, 3.0):
        assert_allclose(ChiSquare(gamma)(X, Y), chi2_kernel(X, Y, gamma=gamma), rtol=1e-13)
    assert_allclose(AdditiveChiSquare()(X, Y), additive_chi2_kernel(X, Y), rtol=1e-13)


def test_the_minimum_is_half_of_sums_less_the_city_block_distance(rng):
    X, Y = rng.gamma(1.0, size=(30, 4)), rng.gamma(1.0, size=(20, 4))
    sums = X.sum(axis=1)[:, None] + Y.sum(axis=1)
    assert_allclose(Minimum()(X, Y), 0.5 * (sums - cdist(X, Y, "cityblock")), rtol=1e-13)


@each_kernel
def test_float32(rng, kernel):
    X, Y = rng.gamma(1.0, size=(2, 30, 150)).astype(np.float32)
    K = kernel(X, Y)
    assert K.dtype == np.float32
    assert kernel.diag(X).dtype == np.float32
    double = kernel(X.astype(float), Y.astype(float))
    assert_allclose(K, double, rtol=2e-5, atol=1e-37)  # exp(-100) is good to 100 roundings


@each_kernel
def test_whole_numbers_and_booleans(kernel):
    K = kernel([[1, 0], [3, 2], [0, 0]])
    assert K.dtype == np.float64
    assert np.array_equal(K, kernel(np.array([[1.0, 0.0], [3.0, 2.0], [0.0, 0.0]])))
    seen = np.array([[True, False], [True, True]])
    assert np.array_equal(kernel(seen), kernel(seen.astype(float)))


@each_kernel
def test_duplicates_zeros_and_more_columns_than_points(rng, kernel):
    X = np.repeat(rng.poisson(0.3, size=(3, 500)).astype(float), 2, axis=0)
    X = np.vstack([X, np.zeros((2, 500))])
    K = kernel(X)
    assert np.array_equal(K[0], K[1])
    assert_allclose(K, loops(kernel, X, X), rtol=1e-13, atol=1e-300)
    at_zero = 1.0 if isinstance(kernel, ChiSquare) else 0.0
    assert K[-1, -1] == K[-1, -2] == at_zero
    assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-13)


@each_kernel
def test_far_from_the_origin(kernel):
    """Differences are taken first, so nothing cancels."""
    x = 1e9 + np.arange(5.0)[:, None]
    assert_allclose(kernel(x), loops(kernel, x, x), rtol=1e-14)


@each_kernel
def test_what_is_refused(kernel):
    X = np.array([[1.0, 2.0], [0.0, -1e-9]])
    with pytest.raises(
        mc.exceptions.DomainError, match=r"must be >= 0, but entry \(1, 1\) is -1e-09"
    ):
        kernel(X)
    with pytest.raises(mc.exceptions.DomainError, match=r"use X.toarray\(\)"):
        kernel(csr_array(np.abs(X)))
    with pytest.raises(mc.exceptions.DomainError, match=r"use X.toarray\(\)"):
        kernel.transform(mc.Columns([0]))(csr_array(np.abs(X)))
    with pytest.raises(mc.exceptions.DomainError, match="must be >= 0"):
        kernel.transform(mc.kernels.Matrix([[1.0, -1.0]]))([[1.0, 2.0]])
    assert kernel.transform(mc.Columns([0]))(X).shape == (2, 2)  # the other column is not seen
    for bad, message in (
        ([[np.nan]], "NaN"),
        ([[np.inf]], "infinity"),
        (np.ones((0, 2)), "no rows"),
        (np.ones(3), "reshape"),
        ([["a"]], "numbers"),
    ):
        with pytest.raises(mc.InputError, match=message):
            kernel(bad)
    with pytest.raises(mc.exceptions.DerivativeError, match="values only"):
        kernel.gradient([[1.0, 2.0]])


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf, "1", None])
def test_gamma_is_positive(gamma):
    with pytest.raises(mc.InputError, match="gamma"):
        ChiSquare(gamma)


@each_kernel
def test_negative_zero_is_zero(kernel):
    signed, plain = [[-0.0, 1.0]], [[0.0, 1.0]]
    assert kernel(signed, plain)[0, 0] == kernel(plain)[0, 0] == kernel(signed)[0, 0]


@each_kernel
def test_elements_and_preimages(rng, kernel):
    X = rng.poisson(2.0, size=(9, 4)).astype(float)
    psi = mc.Element(kernel, X, rng.normal(size=(9, 3)))
    check_element(psi, queries=X[:4])
    if kernel.flags.definiteness is mc.kernels.Definiteness.POSITIVE:
        back = mc.preimage(mc.feature(kernel, X[[2, 5]]), mc.Candidates(X))
        assert np.array_equal(back.points, X[[2, 5]])
        assert_allclose(back.distance, 0.0, atol=1e-6)


def test_normalised_intersection_of_histograms(rng):
    X = rng.poisson(2.0, size=(9, 4)) + 1.0
    k = mc.kernels.Normalised(Minimum())
    total = X.sum(axis=1)
    assert_allclose(k(X), Minimum()(X) / np.sqrt(np.outer(total, total)), rtol=1e-13)
    check_kernel(k, X, dims=())
