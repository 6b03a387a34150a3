"""Part A of the specification: kernels on sets and sequences."""

import itertools
from collections import Counter
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.kernels.structured._sets import Jaccard
from mercer.kernels.structured._strings import Spectrum, Subsequences

ALPHABET = "ab"
ALL = ["".join(s) for n in range(6) for s in itertools.product(ALPHABET, repeat=n)]  # 63 strings


def least_eigenvalue(K):
    return np.linalg.eigvalsh(K)[0] / np.trace(K)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_A17_spectrum_kernel_is_the_inner_product_of_counts(p):
    """Explicit features: one column per word of p letters, overlaps counted."""
    words = ["".join(u) for u in itertools.product(ALPHABET, repeat=p)]
    count = [[sum(s.startswith(u, i) for i in range(len(s))) for u in words] for s in ALL]
    phi = np.array(count, dtype=float)
    assert np.array_equal(Spectrum(p)(ALL), phi @ phi.T)
    assert np.linalg.matrix_rank(Spectrum(p)(ALL)) == np.linalg.matrix_rank(phi)


@pytest.mark.parametrize("decay", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_A17_subsequence_kernel_is_the_inner_product_of_gap_weights(p, decay):
    words = list(itertools.product(ALPHABET, repeat=p))
    phi = np.zeros((len(ALL), len(words)))
    for row, s in zip(phi, ALL, strict=True):
        for places in itertools.combinations(range(len(s)), p):
            u = tuple(s[i] for i in places)
            row[words.index(u)] += decay ** (places[-1] - places[0] + 1)
    K = Subsequences(p, decay)(ALL)
    assert_allclose(K, phi @ phi.T, rtol=1e-12, atol=0)
    assert least_eigenvalue(K) > -1e-12


@pytest.mark.parametrize("d", [0.5, 0.3, 1.0])
def test_A17_subsequence_kernel_by_hand(d):
    """Examples of Lodhi et al.: the only pair that cat and car share is c-a, without a gap."""
    k = Subsequences(2, d)
    assert_allclose(k(["cat"], ["car"]), d**4, rtol=1e-14)
    assert_allclose(k(["cat"], ["cat"]), 2 * d**4 + d**6, rtol=1e-14)
    assert_allclose(k(["cat"], ["bat"]), d**4, rtol=1e-14)
    assert k(["car"], ["bat"]) == 0.0
    assert_allclose(mc.kernels.Normalised(k)(["cat"], ["car"]), 1 / (2 + d**2), rtol=1e-14)


def test_A17_without_a_price_for_gaps_all_places_count():
    """decay = 1 and one letter: C(n, p) C(m, p)."""
    K = Subsequences(3, 1.0)(["a" * n for n in range(1, 12)])
    count = np.array([comb(n, 3) for n in range(1, 12)], dtype=float)
    assert np.array_equal(K, np.outer(count, count))


def test_A17_small_decay_leaves_contiguous_parts():
    """decay^(-2p) k tends to the spectrum kernel as decay falls to zero."""
    for p in (1, 2, 3):
        gaps = [
            np.abs(Subsequences(p, d)(ALL) / d ** (2 * p) - Spectrum(p)(ALL)).max()
            for d in (1e-2, 1e-4, 1e-6)
        ]
        assert gaps[2] <= 1e-4
        assert p == 1 or gaps[0] > 10 * gaps[1] > 100 * gaps[2]


def test_A17_reversed_strings_have_the_same_kernel():
    back = [s[::-1] for s in ALL]
    for k in (Spectrum(2), Subsequences(2, 0.5), Subsequences(3, 0.8)):
        assert_allclose(k(back), k(ALL), rtol=1e-12, atol=0)


def test_A17_letters_may_be_renamed():
    """Only which letters are equal matters: strings, words, numbers."""
    names = {"a": ("alpha", 1), "b": 2.5}
    renamed = [[names[c] for c in s] for s in ALL]
    for k in (Spectrum(3), Subsequences(3, 0.5)):
        assert_allclose(k(renamed), k(ALL), rtol=1e-14, atol=0)


@pytest.mark.parametrize("empty", [1.0, 0.0])
def test_A17_jaccard_is_positive_definite(empty):
    """All subsets of six elements, with either value for two empty sets."""
    sets = [c for n in range(7) for c in itertools.combinations(range(6), n)]
    K = Jaccard(empty)(sets)
    expected = [[_share(set(a), set(b), empty) for b in sets] for a in sets]
    assert np.array_equal(K, expected)
    least = np.linalg.eigvalsh(K)[0]
    assert least > 1e-3 if empty else abs(least) < 1e-12
    assert np.linalg.matrix_rank(K) == 64 - (empty == 0)


def _share(a, b, empty):
    return len(a & b) / len(a | b) if a | b else empty


def test_A17_jaccard_is_the_chance_of_the_same_first_element():
    """Over all orders of the elements: how often A and B have the same first one."""
    sets = [set(c) for n in range(1, 5) for c in itertools.combinations(range(4), n)]
    same = Counter()
    orders = list(itertools.permutations(range(4)))
    for order in orders:
        first = [min(s, key=order.index) for s in sets]
        for i, j in itertools.product(range(len(sets)), repeat=2):
            same[i, j] += first[i] == first[j]
    expected = [[same[i, j] / len(orders) for j in range(len(sets))] for i in range(len(sets))]
    assert_allclose(Jaccard()(sets), expected, rtol=1e-14)
