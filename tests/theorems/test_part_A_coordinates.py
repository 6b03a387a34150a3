"""Part A, laws of kernels that add up over coordinates, and of categories (A17)."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.linalg import null_space

import mercer as mc
from mercer.kernels._coordinates import AdditiveChiSquare, ChiSquare, Harmonic, Minimum
from mercer.kernels.structured._categorical import Hamming, Overlap
from mercer.testing import lattice

LATTICES = [(1, 30), (2, 6), (3, 4), (5, 2)]
PAIRS = [(1.0, 1.0), (0.3, 2.0), (5.0, 1e-3), (40.0, 30.0)]


@pytest.mark.parametrize(("d", "side"), LATTICES)
@pytest.mark.parametrize("step", [0.01, 0.5, 1.0, 20.0])
@pytest.mark.parametrize(
    "kernel", [Minimum(), Harmonic(), ChiSquare(0.1), ChiSquare(4.0)], ids=repr
)
def test_A17_positive_definite_on_lattices(kernel, d, side, step):
    """The lattice touches the axes, where coordinates are zero."""
    K = kernel(lattice(d, side, step))
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)


@pytest.mark.parametrize(("d", "side"), LATTICES)
def test_A17_additive_chi_square_is_conditionally_positive_definite(d, side):
    """And not positive definite: its diagonal is zero."""
    K = AdditiveChiSquare()(lattice(d, side))
    Z = null_space(np.ones((1, len(K))))
    assert np.linalg.eigvalsh(Z.T @ K @ Z)[0] >= -1e-12 * np.abs(K).sum()
    assert np.linalg.eigvalsh(K)[0] < -0.1
    assert not K.diagonal().any()


@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_A17_minimum_is_the_inner_product_of_indicators(x, y):
    """min(x, y) = int 1[t <= x] 1[t <= y] dt, by quadrature and on a grid."""
    inner, _ = quad(
        lambda t: float(t <= x) * float(t <= y), 0.0, max(x, y), points=[x, y], limit=200
    )
    assert_allclose(Minimum()([[x]], [[y]]), [[inner]], rtol=1e-7)
    steps = 20_000
    t = (np.arange(steps) + 0.5) * max(x, y) / steps
    on_grid = np.mean((t <= x) & (t <= y)) * max(x, y)
    assert_allclose(Minimum()([[x]], [[y]]), [[on_grid]], atol=max(x, y) / steps)


def test_A17_minimum_of_counts_is_the_size_of_an_intersection(rng):
    """Multisets of letters: counts, and the letters that both have."""
    words = ["mississippi", "mission", "sip", "", "ppp"]
    letters = sorted(set("".join(words)))
    X = [[w.count(c) for c in letters] for w in words]

    def common(a, b):
        rest = list(b)
        return sum(1 for c in a if c in rest and not rest.remove(c))

    assert np.array_equal(Minimum()(X), [[common(a, b) for b in words] for a in words])


def test_A17_minimum_is_the_covariance_of_brownian_motion(rng):
    """Increments between sorted times are independent: the inverse has three diagonals."""
    t = np.sort(rng.uniform(0.1, 3.0, size=12))[:, None]
    precision = np.linalg.inv(Minimum()(t))
    far = np.abs(np.subtract.outer(np.arange(12), np.arange(12))) > 1
    assert np.abs(precision[far]).max() < 1e-9 * np.abs(precision).max()


@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_A17_harmonic_is_an_integral_of_products(x, y):
    """x y / (x + y) = int_0^inf x exp(-t x) y exp(-t y) dt."""
    end = 40.0 / (x + y)  # beyond it exp(-40) of the integral is left
    integral, _ = quad(lambda t: x * np.exp(-t * x) * y * np.exp(-t * y), 0.0, end)
    assert_allclose(Harmonic()([[x]], [[y]]), [[integral]], rtol=1e-9)


def test_A17_harmonic_is_zero_at_zero():
    """Undefined as a quotient; the limit along every way into the corner is 0.

    Rudi and Gaillard 2021, Section 2, corrected.
    """
    k = Harmonic()
    assert k([[0.0]])[0, 0] == 0.0
    for x, y in ((1.0, 1.0), (1.0, 0.0), (1.0, 1e-3)):
        small = 10.0 ** -np.arange(1, 300, 7.0)
        values = np.array([k([[x * s]], [[y * s]])[0, 0] for s in small])
        assert np.all(values <= small)
        assert np.all(np.diff(values) <= 0)
    assert_allclose(k([[0.0, 2.0]], [[0.0, 2.0]]), [[1.0]])  # the column of zeros adds nothing
    K = k(np.vstack([np.zeros((1, 2)), lattice(2, 4)]))
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)


def test_A17_harmonic_lies_between_half_the_minimum_and_the_minimum(rng):
    X, Y = rng.gamma(0.5, size=(40, 1)), rng.gamma(0.5, size=(40, 1))
    H, M = Harmonic()(X, Y), Minimum()(X, Y)
    assert np.all(H <= M)
    assert np.all(H >= 0.5 * M * (1 - 1e-15))


def test_A17_chi_square_identities(rng):
    """(x - y)^2 / (x + y) = x + y - 4 xy / (x + y), and so a squared distance of features of H."""
    X, Y = (
        rng.poisson(1.0, size=(30, 6)).astype(float),
        rng.poisson(1.0, size=(20, 6)).astype(float),
    )
    H = 4.0 * Harmonic()(X, Y)
    sums = X.sum(axis=1)[:, None] + Y.sum(axis=1)
    assert_allclose(AdditiveChiSquare()(X, Y), H - sums, atol=1e-13)
    assert_allclose(
        AdditiveChiSquare()(X, Y), -2.0 * _squared_distances(Harmonic(), X, Y), atol=1e-12
    )
    for gamma in (0.2, 1.0):
        expected = np.exp(gamma * AdditiveChiSquare()(X, Y))
        assert_allclose(ChiSquare(gamma)(X, Y), expected, rtol=1e-13)


def _squared_distances(kernel, X, Y):
    """|k(x, .) - k(y, .)|^2 by the norms of elements."""
    one, two = mc.feature(kernel, X), mc.feature(kernel, Y)
    return np.array(
        [[float((one[i] - two[j]).norm()) ** 2 for j in range(len(Y))] for i in range(len(X))]
    )


def test_A17_chi_square_of_schoenberg(rng):
    """exp(-gamma D) is positive definite for every gamma because -D is conditionally so."""
    X = rng.poisson(1.0, size=(60, 8)).astype(float)
    for gamma in 10.0 ** np.arange(-4.0, 3.0):
        K = ChiSquare(gamma)(X)
        assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)
    one_over = -np.log(ChiSquare(1e-3)(X)) / 1e-3  # and back
    assert_allclose(one_over, -AdditiveChiSquare()(X), atol=1e-9)


def test_A17_hamming_is_a_product_over_columns():
    """On all rows of three columns the Gram matrix is a Kronecker product, so strictly positive."""
    sets = [("a", "b", "c"), (0, 1), (None, "x")]
    rows = list(itertools.product(*sets))
    for length in (0.1, 1.0, 10.0):
        c = np.exp(-1.0 / length)
        factors = [np.full((len(s), len(s)), c) + (1.0 - c) * np.eye(len(s)) for s in sets]
        expected = np.kron(np.kron(factors[0], factors[1]), factors[2])
        K = Hamming(length)(rows)
        assert_allclose(K, expected, rtol=1e-14)
        assert_allclose(np.linalg.eigvalsh(K)[0], (1.0 - c) ** 3, rtol=1e-10)


def test_A17_hamming_separates_distributions_that_overlap_does_not(rng):
    """Two tables with equal columns, apart from which labels come together."""
    P = [["a", "x"], ["b", "y"]]
    Q = [["a", "y"], ["b", "x"]]
    gaps = [
        float((mc.mean_embedding(k, P) - mc.mean_embedding(k, Q)).norm())
        for k in (Hamming(), Overlap())
    ]
    assert_allclose(gaps[0], 1.0 - np.exp(-1.0), rtol=1e-12)  # sqrt of (1 - c)^2
    assert gaps[1] < 1e-8


def test_A17_overlap_is_the_inner_product_of_indicators(rng):
    rows = rng.integers(0, 3, size=(25, 4))
    one_hot = np.concatenate([rows == v for v in range(3)], axis=1).astype(float)
    assert_allclose(Overlap()(rows.astype(str)), one_hot @ one_hot.T / 4, rtol=1e-15)
    assert np.linalg.matrix_rank(Overlap()(rows)) <= 1 + 4 * 2
