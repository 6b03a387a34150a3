"""Kernels known by their values: functions of blocks, strings, precomputed matrices."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.testing import check_element, check_kernel, check_subspace


def letters(A, B):
    """The number of letters two words share, counted with multiplicity."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    count = lambda words: np.array([[w.count(c) for c in alphabet] for w in words], float)  # noqa: E731
    return count(A) @ count(B).T


WORDS = ["mercer", "kernel", "space", "moore", "aronszajn", "hilbert", "mercer"]


def test_strings():
    k = mc.kernels.FromFunction(letters, on=mc.kernels.Objects())
    K = k(WORDS)
    assert K[0, 0] == K[0, 6] == 2 * 2 + 2 * 2 + 1 + 1
    assert K[0, 1] == 2 * 2 + 2 * 1
    assert np.array_equal(k.diag(WORDS), np.diag(K))
    assert np.array_equal(k(np.array(WORDS)), K)
    assert np.array_equal(k(tuple(WORDS), WORDS[:2]), K[:, :2])
    check_kernel(k, WORDS, claims=mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE))


def test_elements_on_strings(rng):
    k = mc.kernels.FromFunction(letters, on=mc.kernels.Objects())
    psi = mc.Element(k, WORDS, rng.normal(size=(7, 2)))
    check_element(psi)
    check_element(mc.feature(k, WORDS))
    assert len(psi.merge().points) == 6
    plane = mc.Subspace.span(mc.mean_embedding(k, WORDS), mc.feature(k, WORDS[:3]))
    check_subspace(plane, mc.feature(k, WORDS))


def test_composites_on_strings():
    k = mc.kernels.FromFunction(letters, on=mc.kernels.Objects())
    unit = mc.kernels.Normalised(k)
    K = k(WORDS)
    root = np.sqrt(np.diag(K))
    assert_allclose(unit(WORDS), K / np.outer(root, root), rtol=1e-14)
    both = 2.0 * k + 0.5 * unit * k + 1.0
    assert_allclose(both(WORDS), 2 * K + 0.5 * K**2 / np.outer(root, root) + 1.0, rtol=1e-14)
    with pytest.raises(mc.exceptions.DomainError, match=r"their points differ"):
        k + mc.Gaussian(1.0)


def test_objects_are_refused_where_they_are_no_list():
    k = mc.kernels.FromFunction(letters, on=mc.kernels.Objects())
    with pytest.raises(mc.exceptions.DomainError, match=r"must be a list of points, got str"):
        k("word")
    with pytest.raises(mc.exceptions.DomainError, match=r"must be a list of points, got int"):
        k(3)
    with pytest.raises(mc.InputError, match=r"has no points"):
        k([])


def test_objects_that_look_like_arrays_stay_objects():
    """Points that are themselves sequences of equal length are points, not rows of a matrix."""
    k = mc.kernels.FromFunction(
        lambda A, B: [[float(len(set(a) & set(b))) for b in B] for a in A], on=mc.kernels.Objects()
    )
    sets = [(1, 2), (2, 3), (4, 5)]
    assert np.array_equal(k(sets), [[2, 1, 0], [1, 2, 0], [0, 0, 2]])


def test_a_function_of_vectors(rng):
    k = mc.kernels.FromFunction(lambda X, Y: np.minimum(X[:, None], Y[None]).prod(axis=-1))
    X = rng.uniform(0.1, 1.0, size=(6, 2))
    check_kernel(k, X, claims=mc.kernels.Flags(mc.kernels.Definiteness.POSITIVE), dims=())
    moved = k.transform(mc.Columns([1]))
    assert_allclose(moved(X), np.minimum(X[:, 1:], X[:, 1]), rtol=1e-15)
    assert_allclose(moved.diag(X), X[:, 1], rtol=1e-15)


def test_a_function_has_no_derivatives(rng):
    k = mc.kernels.FromFunction(lambda X, Y: X @ Y.T)
    X = rng.normal(size=(3, 2))
    for call in (
        lambda: k.gradient(X),
        lambda: (k + mc.Gaussian(1.0)).mixed_derivative(X),
        lambda: mc.Element(k, X, np.ones(3)).gradient(X),
        lambda: mc.kernels.Normalised(k).gradient(X),
    ):
        with pytest.raises(mc.exceptions.DerivativeError, match=r"known by its values only"):
            call()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, Y: np.ones(3), r"returned shape \(3,\), not"),
        (lambda X, Y: np.full((len(X), len(Y)), np.nan), "returned NaN or infinity"),
    ],
)
def test_results_of_functions_are_checked(function, message):
    with pytest.raises(mc.InputError, match=message):
        mc.kernels.FromFunction(function)(np.ones((4, 2)))


def test_functions_are_equal_by_identity():
    assert mc.kernels.FromFunction(letters) == mc.kernels.FromFunction(letters)
    assert mc.kernels.FromFunction(letters) != mc.kernels.FromFunction(
        letters, on=mc.kernels.Objects()
    )
    assert mc.kernels.FromFunction(lambda X, Y: X @ Y.T) != mc.kernels.FromFunction(
        lambda X, Y: X @ Y.T
    )


def test_nothing_is_claimed_about_a_function():
    assert mc.kernels.FromFunction(letters).flags == mc.kernels.Flags()
    assert mc.kernels.FromFunction(letters).flags.is_positive_definite is None


# --- precomputed ----------------------------------------------------------------------------------


@pytest.fixture
def K(rng):
    A = rng.normal(size=(6, 4))
    return A @ A.T


def test_precomputed_is_the_matrix(K):
    k = mc.Precomputed(K, definiteness=mc.kernels.Definiteness.POSITIVE)
    assert np.array_equal(k(range(6)), K)
    assert np.array_equal(k([[0], [5]], [3, 3]), K[np.ix_([0, 5], [3, 3])])
    assert np.array_equal(k.diag(np.arange(6)), np.diag(K))
    check_kernel(k, np.arange(6))


def test_precomputed_elements(K, rng):
    k, linear = mc.Precomputed(K), mc.Linear()
    roots = np.linalg.cholesky(K + 1e-9 * np.eye(6))
    a = rng.normal(size=(6, 2))
    psi, phi = mc.Element(k, range(6), a), mc.Element(linear, roots, a)
    assert_allclose(psi(range(6)), phi(roots), atol=1e-7)
    assert_allclose(psi.inner(psi), phi.inner(phi), rtol=1e-7)
    check_element(psi)
    check_element(mc.feature(k, [1, 3, 3]))
    assert psi.merge().points.tolist() == list(range(6))


def test_precomputed_composes(K):
    k = mc.Precomputed(K)
    both = 0.5 * k * k + mc.kernels.Normalised(k) + 2.0
    root = np.sqrt(np.diag(K))
    assert_allclose(both(range(6)), 0.5 * K**2 + K / np.outer(root, root) + 2.0, rtol=1e-13)
    other = mc.Precomputed(K[:3, :3])
    with pytest.raises(mc.exceptions.DomainError, match=r"their points differ"):
        k + other


def test_precomputed_reads_back(K):
    k = mc.Precomputed(K.round(3), definiteness=mc.kernels.Definiteness.POSITIVE)
    again = eval(repr(k), vars(mc.kernels))
    assert again == k
    assert hash(again) == hash(k)
    assert k != mc.Precomputed(K.round(3))
    assert k != mc.Precomputed(K)
    assert k != mc.Linear()


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k))])
def test_copies_of_precomputed_cannot_be_changed_either(K, how):
    again = how(mc.Precomputed(K))
    assert again == mc.Precomputed(K)
    assert not again.K.flags.writeable


def test_precomputed_does_not_follow_the_array_it_was_made_of(K):
    given = K.copy()
    k = mc.Precomputed(given)
    before = hash(k)
    given[0, 0] += 1.0
    assert hash(k) == before
    assert k([0])[0, 0] == K[0, 0]


def test_equal_matrices_have_equal_hashes():
    k = mc.Precomputed(np.eye(2))
    for same in (
        [[1, 0], [0, 1]],
        [[1.0, -0.0], [-0.0, 1.0]],
        np.asfortranarray(np.eye(2)),
        np.eye(2, dtype=np.float32),
    ):
        assert mc.Precomputed(same) == k
        assert hash(mc.Precomputed(same)) == hash(k)


def test_a_conditional_matrix_is_checked_as_one():
    """-|x - y| is not positive definite, but conditionally."""
    x = np.arange(5.0)[:, None]
    k = mc.Precomputed(-np.abs(x - x.T), definiteness=mc.kernels.Definiteness.CONDITIONAL)
    assert k.flags.is_positive_definite is None
    check_kernel(k, np.arange(5))
    with pytest.raises(mc.InputError, match="definiteness"):
        mc.Precomputed(np.eye(2), definiteness=True)


def test_precomputed_flags(K):
    assert mc.Precomputed(K).flags.is_positive_definite is None
    positive = mc.Precomputed(K, definiteness=mc.kernels.Definiteness.POSITIVE)
    assert positive.flags.is_positive_definite is True
