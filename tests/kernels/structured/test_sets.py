"""The Jaccard kernel of finite sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import jaccard_score

import mercer as mc
from mercer import linalg
from mercer.kernels.structured._sets import Jaccard
from mercer.testing import check_element, check_kernel, check_subspace

SETS = [{"a", "b"}, {"b"}, {"b", "c", "d"}, set(), {"b"}, {("x", 1), 2}, {"e"}, {2, "a", "e"}]


def naive(X, Y, empty):
    def one(a, b):
        return len(a & b) / len(a | b) if a | b else empty

    return np.array([[one(set(a), set(b)) for b in Y] for a in X])


def random_sets(rng, n, universe, largest):
    sizes = rng.integers(0, largest + 1, n)
    return [set(rng.integers(0, universe, k).tolist()) for k in sizes]


@pytest.mark.parametrize("empty", [1.0, 0.0])
@pytest.mark.parametrize(("universe", "largest"), [(3, 3), (40, 20), (5000, 60), (10**9, 10)])
def test_values(rng, empty, universe, largest):
    """Small universes are dense products, large ones sparse."""
    X, Y = random_sets(rng, 30, universe, largest), random_sets(rng, 25, universe, largest)
    k = Jaccard(empty)
    assert np.array_equal(k(X, Y), naive(X, Y, empty))
    assert np.array_equal(k(X), naive(X, X, empty))
    assert np.array_equal(k.diag(X), np.diag(naive(X, X, empty)))


@given(
    st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=6),
    st.lists(st.sets(st.text("ab", max_size=1) | st.integers(0, 3)), min_size=1, max_size=6),
    st.sampled_from([0.0, 1.0]),
)
def test_any_sets(X, Y, empty):
    assert np.array_equal(Jaccard(empty)(X, Y), naive(X, Y, empty))


def test_many_tiles(rng):
    X = random_sets(rng, 700, 50, 8)
    K = Jaccard()(X)
    assert np.array_equal(K, naive(X, X, 1.0))


def test_values_are_those_of_scikit_learn(rng):
    M = rng.random((8, 12)) < 0.4
    X = [np.flatnonzero(row) for row in M]
    expected = [[jaccard_score(a, b, zero_division=1.0) for b in M] for a in M]
    assert_allclose(Jaccard()(X), expected, rtol=1e-15)


def test_repetitions_do_not_count():
    assert Jaccard()([[1, 1, 2]], [(2, 2, 2, 1)]) == 1.0


@pytest.mark.parametrize("empty", [1, 0])
def test_conformance(empty):
    check_kernel(Jaccard(empty), SETS)
    check_kernel(2.0 * Jaccard(empty) + Jaccard(0) * Jaccard(1), SETS)


def test_the_empty_set():
    assert Jaccard()([set()], [set(), {1}]).tolist() == [[1.0, 0.0]]
    assert Jaccard(0)([set()], [set(), {1}]).tolist() == [[0.0, 0.0]]
    with pytest.raises(mc.exceptions.DomainError, match=r"k\(x, x\) = 0.0 \(row 1\)"):
        mc.kernels.Normalised(Jaccard(0))([{1}, set()])
    for bad in (0.5, -1, 2):
        with pytest.raises(mc.InputError, match="empty must be 1 or 0"):
            Jaccard(bad)
    with pytest.raises(mc.InputError, match="empty must be finite"):
        Jaccard(np.nan)


def test_other_points_are_refused():
    with pytest.raises(mc.exceptions.DomainError, match="their points differ"):
        Jaccard() + mc.Gaussian(1.0)
    with pytest.raises(mc.exceptions.DomainError, match="X at position 0 is the str"):
        Jaccard()(["abc"])
    with pytest.raises(mc.exceptions.DerivativeError):
        Jaccard().gradient(SETS)


def test_elements_and_linear_algebra(rng):
    k = Jaccard()
    psi = mc.Element(k, SETS, rng.normal(size=(8, 2)))
    check_element(psi)
    assert len(psi.merge().points) == 7
    plane = mc.Subspace.span(mc.mean_embedding(k, SETS), mc.feature(k, SETS[:3]))
    check_subspace(plane, mc.feature(k, SETS))
    values = linalg.eigenpairs(k, SETS, 3).values
    assert_allclose(values, np.linalg.eigvalsh(k(SETS))[::-1][:3], rtol=1e-12)
    L = linalg.pivoted_cholesky(k, SETS, tol=1e-14).factor
    assert_allclose(L @ L.T, k(SETS), atol=1e-12)
    result = mc.preimage(mc.mean_embedding(k, SETS), mc.Candidates([{"b", "a"}, {"q"}]))
    assert result.points == [{"a", "b"}]
