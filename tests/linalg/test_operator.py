"""The Gram operator is the matrix it stands for, without being written down."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer import linalg
from mercer.testing import awkward_kernels
from tests import naive


def by_definition(K, centred, weights):
    """S = D^(1/2) (I - 1 w') K (I - w 1') D^(1/2)."""
    n = len(K)
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    root, share = np.diag(np.sqrt(weights)), weights / weights.sum()
    H = np.eye(n) - np.outer(np.ones(n), share) if centred else np.eye(n)
    return root @ H @ K @ H.T @ root


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_products_diagonal_and_trace(kernel, centred, weighted, rng):
    X = rng.normal(size=(17, 3))
    weights = rng.integers(0, 4, size=17).astype(float) if weighted else None
    S = linalg.GramOperator(kernel, X, centred=centred, weights=weights)
    expected = by_definition(kernel(X), centred, weights)
    size = np.abs(expected).max()
    assert S.shape == (17, 17)
    assert_allclose(S.matmat(np.eye(17)), expected, atol=1e-12 * size)
    assert_allclose(S.dense(), expected, atol=1e-12 * size)
    assert_allclose(S.diag, expected.diagonal(), atol=1e-12 * size)
    assert_allclose(S.trace, np.trace(expected), atol=1e-11 * size)
    v = rng.normal(size=17)
    assert_allclose(S @ v, expected @ v, atol=1e-11 * size)


def test_against_the_double_loop(rng):
    X = rng.normal(size=(6, 2))
    K = naive.gram(lambda x, y: naive.exp(-0.5 * naive.squared_distance(x, y)), X)
    S = linalg.GramOperator(mc.Gaussian(1.0), X, centred=True)
    assert_allclose(S.matmat(np.eye(6)), by_definition(K, True, None), atol=1e-14)


@pytest.mark.parametrize("centred", [False, True])
def test_a_weight_of_two_is_a_row_that_stands_twice(centred, rng):
    X, weights = rng.normal(size=(9, 3)), np.array([1, 2, 3, 1, 0, 2, 1, 1, 4])
    kernel = mc.Gaussian(1.0) * mc.Linear() + 0.3
    single = linalg.GramOperator(kernel, X, centred=centred, weights=weights)
    twice = linalg.GramOperator(kernel, np.repeat(X, weights, axis=0), centred=centred)
    values, repeated = (np.linalg.eigvalsh(S.dense())[::-1] for S in (single, twice))
    assert_allclose(values[:8], repeated[:8], atol=1e-12 * values[0])
    assert_allclose(repeated[8:], 0.0, atol=1e-12 * values[0])
    assert_allclose(single.trace, twice.trace)


def test_float32_points_are_computed_in_float64(rng):
    X = rng.normal(size=(40, 3)).astype(np.float32)
    product = linalg.GramOperator(mc.Gaussian(1.0), X) @ np.ones(40)
    assert product.dtype == np.float64
    assert_allclose(product, mc.Gaussian(1.0)(X.astype(float)).sum(axis=1), rtol=1e-14)


def test_points_that_are_not_vectors():
    words = ["ab", "ac", "xy", "xyz"]
    same = mc.kernels.FromFunction(
        lambda A, B: [[float(a[0] == b[0]) for b in B] for a in A], on=mc.kernels.Objects()
    )
    assert_allclose(linalg.GramOperator(same, words) @ np.ones(4), [2, 2, 2, 2])
    K = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert_allclose(linalg.GramOperator(mc.Precomputed(K), [1, 0]).dense(), K[::-1, ::-1])


def test_sparse_points(rng):
    from scipy.sparse import csr_array

    X = rng.normal(size=(20, 5)) * (rng.random((20, 5)) < 0.3)
    S = linalg.GramOperator(mc.Gaussian(1.0), csr_array(X), centred=True)
    assert_allclose(S.dense(), linalg.GramOperator(mc.Gaussian(1.0), X, centred=True).dense())
    assert_allclose(S.matmat(np.eye(20)), S.dense(), atol=1e-13)


def test_repr_says_what_it_is():
    S = linalg.GramOperator(mc.Linear(), [[1.0], [2.0]], centred=True, weights=[1, 2])
    assert repr(S) == "<centred weighted GramOperator of Linear() on 2 points>"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": [[np.nan]]}, "NaN"),
        ({"weights": [-1.0, 1.0]}, "weights must be >= 0"),
        ({"weights": [1.0]}, "weights must have 2 entries"),
        ({"weights": [0.0, 0.0]}, "must not all be zero"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {"points": [[0.0], [1.0]]} | change
    with pytest.raises(mc.InputError, match=message):
        linalg.GramOperator(mc.Gaussian(1.0), **arguments)


def test_products_need_matching_rows():
    with pytest.raises(mc.InputError, match=r"V must have shape \(2,\)"):
        linalg.GramOperator(mc.Gaussian(1.0), [[0.0], [1.0]]).matmat(np.ones(3))
