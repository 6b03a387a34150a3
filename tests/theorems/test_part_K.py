"""Laws of covariance operators, COCO and HSIC: K1 to K8 of docs/spec.md."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, gamma

import mercer as mc
from mercer.methods import coco, coco_witness, hsic, hsic_test, mmd, weighted_chi_square_tail
from mercer.methods.hypothesis_tests._null_distributions import hsic_tail

KERNELS = [(mc.Gaussian(1.0), mc.Laplace(0.7)), (mc.Linear(), mc.Polynomial(2, 1.0, 1.0))]


def pairs(rng, n=20):
    X = rng.normal(size=(n, 2))
    return X, X[:, :1] ** 2 + 0.5 * rng.normal(size=(n, 1))


def centred(K):
    H = np.eye(len(K)) - 1.0 / len(K)
    return H @ K @ H


# --- K1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K1_uncentred_operator_gives_the_mean_of_products(k, l, rng):  # noqa: E741
    X, Y = pairs(rng)
    f, g = mc.Element(k, X[:5], rng.normal(size=5)), mc.Element(l, Y[:4], rng.normal(size=4))
    C = mc.covariance(k, X, l, Y, centred=False)
    assert_allclose(C.bilinear(f, g), np.mean(f(X) * g(Y)), rtol=1e-10)


# --- K2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K2_coco_is_the_root_of_the_largest_eigenvalue_of_the_product(k, l, rng):  # noqa: E741
    X, Y = pairs(rng)
    product = centred(k(X)) @ centred(l(Y))
    largest = np.linalg.eigvals(product).real.max()
    assert_allclose(coco(k, X, l, Y), np.sqrt(largest) / 20, rtol=1e-7)


def test_K2_coco_is_the_norm_of_the_product_of_roots(rng):
    from scipy.linalg import sqrtm

    X, Y = pairs(rng, 12)
    k, ell = mc.Gaussian(0.5), mc.Gaussian(0.4)
    roots = [sqrtm(centred(K) + 1e-12 * np.eye(12)).real for K in (k(X), ell(Y))]
    assert_allclose(coco(k, X, ell, Y), np.linalg.norm(roots[0] @ roots[1], 2) / 12, rtol=1e-6)


def test_K2_coco_is_the_direct_supremum(rng):
    """Alternate between the best f for g and the best g for f."""
    X, Y = pairs(rng)
    k, ell = mc.Gaussian(1.0), mc.Gaussian(1.0)
    C = mc.covariance(k, X, ell, Y)
    g = mc.Element(ell, Y, rng.normal(size=20))
    for _ in range(200):
        f = C(g / g.norm())
        g = C.T(f / f.norm())
    assert_allclose(coco(k, X, ell, Y), g.norm(), rtol=1e-6)


def test_K2_corrected_pencil(rng):
    """[0, K~L~; L~K~, 0] / n against diag(K~, L~), solved on the ranges (Sakulwongtana)."""
    X, Y = pairs(rng, 10)
    k, ell = mc.Gaussian(1.0), mc.Gaussian(1.0)
    K, L, zero = centred(k(X)), centred(ell(Y)), np.zeros((10, 10))
    A = np.block([[zero, K @ L], [L @ K, zero]]) / 10
    B = np.block([[K, zero], [zero, L]])
    values, vectors = np.linalg.eigh(B)
    V = vectors[:, values > 1e-10] / np.sqrt(values[values > 1e-10])
    assert_allclose(coco(k, X, ell, Y), np.linalg.eigvalsh(V.T @ A @ V)[-1], rtol=1e-6)


# --- K3 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K3_witnesses_are_centred_expansions(k, l, rng):  # noqa: E741
    X, Y = pairs(rng)
    for psi in coco_witness(k, X, l, Y):
        a = np.asarray(psi.coef.tile(slice(None), slice(None)))
        assert abs(a.sum()) < 1e-8 * np.abs(a).max()


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K3_witnesses_have_norm_one(k, l, rng):  # noqa: E741
    X, Y = pairs(rng)
    f, g = coco_witness(k, X, l, Y)
    assert_allclose([f.norm(), g.norm()], 1.0, rtol=1e-7)


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K3_the_covariance_of_the_witnesses_is_coco(k, l, rng):  # noqa: E741
    X, Y = pairs(rng)
    f, g = coco_witness(k, X, l, Y)
    assert_allclose(np.cov(f(X), g(Y), bias=True)[0, 1], coco(k, X, l, Y), rtol=1e-7)


# --- K4 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K4_biased_hsic_is_a_trace(k, l, rng):  # noqa: E741
    X, Y = pairs(rng)
    expected = np.trace(k(X) @ centred(l(Y))) / 400
    assert_allclose(hsic(k, X, l, Y, estimator="biased"), expected, rtol=1e-9)


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K4_biased_hsic_is_the_sum_of_squared_singular_values(k, l, rng):  # noqa: E741
    X, Y = pairs(rng)
    squares = np.linalg.eigvals(centred(k(X)) @ centred(l(Y))).real / 400
    value = hsic(k, X, l, Y, estimator="biased")
    assert_allclose(value, squares.sum(), rtol=1e-9)
    gammas = np.sqrt(np.maximum(squares, 0.0))
    assert not np.isclose(value, gammas.sum(), rtol=0.1)  # as printed, without the square


def test_K4_biased_hsic_is_the_squared_norm_of_the_covariance_operator(rng):
    X, Y = pairs(rng)
    k, ell = KERNELS[0]
    expected = mc.covariance(k, X, ell, Y).norm() ** 2
    assert_allclose(hsic(k, X, ell, Y, estimator="biased"), expected, rtol=1e-9)


def test_K4_biased_hsic_is_an_mmd_of_joint_and_product(rng):
    X, Y = pairs(rng, 8)
    k, ell = mc.Gaussian(1.0), mc.Laplace(0.7)
    product = k.transform(mc.Columns([0, 1])) * ell.transform(mc.Columns([2]))
    joint = np.c_[X, Y]
    every = np.array([np.r_[x, y] for x in X for y in Y])
    expected = mmd(product, joint, every, estimator="biased")
    assert_allclose(hsic(k, X, ell, Y, estimator="biased"), expected, rtol=1e-8)


# --- K5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K5_unbiased_hsic_is_the_formula(k, l, rng):  # noqa: E741
    X, Y = pairs(rng)
    K, L, n = k(X), l(Y), 20
    np.fill_diagonal(K, 0.0)
    np.fill_diagonal(L, 0.0)
    expected = np.trace(K @ L) + K.sum() * L.sum() / ((n - 1) * (n - 2))
    expected -= 2.0 / (n - 2) * (K @ L).sum()
    assert_allclose(hsic(k, X, l, Y), expected / (n * (n - 3)), rtol=1e-8)


def test_K5_unbiased_hsic_is_the_enumerated_u_statistic(rng):
    X, Y = pairs(rng, 6)
    K, L = mc.Gaussian(1.0)(X), mc.Laplace(0.7)(Y)
    terms = [
        K[i, j] * (L[i, j] + L[q, r] - 2.0 * L[i, q]) for i, j, q, r in permutations(range(6), 4)
    ]
    assert_allclose(hsic(mc.Gaussian(1.0), X, mc.Laplace(0.7), Y), np.mean(terms), rtol=1e-9)


def test_K5_needs_four_rows(rng):
    X, Y = pairs(rng, 3)
    with pytest.raises(mc.InputError, match="four"):
        hsic(mc.Gaussian(1.0), X, mc.Gaussian(1.0), Y)


# --- K6 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K6_uncentred_estimates_are_means_of_products(k, l, rng):  # noqa: E741
    X, Y = pairs(rng)
    P = k(X) * l(Y)
    assert_allclose(hsic(k, X, l, Y, centred=False, estimator="biased"), P.mean(), rtol=1e-10)
    off = P[~np.eye(20, dtype=bool)].mean()
    assert_allclose(hsic(k, X, l, Y, centred=False), off, rtol=1e-10)
    operator = mc.covariance(k, X, l, Y, centred=False)
    assert_allclose(operator.norm() ** 2, P.mean(), rtol=1e-9)


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=repr)
def test_K6_difference_of_the_uncentred_estimates(k, l, rng):  # noqa: E741
    """A - A_b = (off-diagonal mean - diagonal mean) / n; printed with the other sign."""
    X, Y = pairs(rng)
    P = k(X) * l(Y)
    A = hsic(k, X, l, Y, centred=False)
    A_b = hsic(k, X, l, Y, centred=False, estimator="biased")
    assert_allclose(A - A_b, (A - np.diag(P).mean()) / 20, rtol=1e-7)


# --- K7 and K8 ------------------------------------------------------------------------------------


def test_K7_null_is_chi_squares_weighted_by_products_of_eigenvalues(rng):
    """Eigenvalues of the symmetrised h, printed as the weights, are a sixth of these."""
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(60, 1))
    k, ell = mc.Gaussian(1.0), mc.Laplace(0.7)
    K, L = centred(k(X)), centred(ell(Y))
    lam, mu = (np.maximum(np.linalg.eigvalsh(A) / 60, 0.0) for A in (K, L))
    weights = np.sort(np.outer(lam, mu).ravel())[-1500:]
    q = 60 * hsic(k, X, ell, Y, estimator="biased")
    rest = lam.sum() * mu.sum() - weights.sum()  # tiny, so its mean is enough
    expected = weighted_chi_square_tail(weights, q - rest).value
    found = hsic_test(X, Y, kernel=(k, ell), null="spectral").pvalue
    assert_allclose(found, expected, atol=1e-5)


def test_K7_the_symmetrised_h_is_a_sixth_of_the_product_of_centred_kernels(rng):
    """On a product of two laws with a few atoms, where all means are finite sums."""
    X, Y = rng.normal(size=(3, 1)), rng.normal(size=(4, 1))
    p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
    K, L = mc.Gaussian(1.0)(X), mc.Laplace(0.7)(Y)
    weights = np.outer(p, q).ravel()
    K, L = np.kron(K, np.ones((4, 4))), np.kron(np.ones((3, 3)), L)  # at the pairs of atoms
    h = 0.0  # mean over the last two of the four rows t, u, v, w
    for t, u, v, w in permutations("tuvw"):
        for left, right, factor in ((t + u, t + u, 1.0), (t + u, v + w, 1.0), (t + u, t + v, -2.0)):
            terms = f"{left},{right},v,w,t,u->tu"
            ones = np.ones(12)
            h = h + factor / 24.0 * np.einsum(terms, K, L, weights, weights, ones, ones)
    H = np.eye(12) - np.outer(np.ones(12), weights)
    assert_allclose(h, (H @ K @ H.T) * (H @ L @ H.T) / 6.0, atol=1e-12)


def test_K7_linear_kernels_have_the_square_of_a_normal_variable(rng):
    n = 300
    values = []
    for _ in range(2000):
        x, y = rng.normal(size=(2, n))
        values.append(n * np.mean((x - x.mean()) * (y - y.mean())) ** 2)
    assert abs(np.mean(values) - 1.0) < 0.15
    assert abs(np.var(values) - 2.0) < 0.8
    X, Y = rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
    found = hsic_test(X, Y, kernel=(mc.Linear(), mc.Linear()), null="spectral").pvalue
    value = n * hsic(mc.Linear(), X, mc.Linear(), Y, estimator="biased")
    assert_allclose(found, chi2.sf(value / (X.var() * Y.var()), 1), rtol=1e-6)


def test_K7_permutation_null_counts_the_observed_draw(rng):
    X = rng.normal(size=(60, 1))
    assert hsic_test(X, X, n_permutations=199, random_state=0).pvalue == 1 / 200


def test_K8_gamma_law_has_the_moments_of_the_formula(rng):
    n, k, ell = 40, mc.Gaussian(1.0), mc.Polynomial(2, 1.0, 1.0)  # k(x, x) is not constant
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    K, L = centred(k(X)), centred(ell(Y))
    off = ~np.eye(n, dtype=bool)
    mean = np.prod([np.trace(A) / n - A[off].mean() for A in (k(X), ell(Y))]) / n
    variance = 2 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3))
    variance *= np.mean((K * L)[off] ** 2)
    q = n * hsic(k, X, ell, Y, estimator="biased")
    expected = gamma.sf(q, mean**2 / variance, scale=n * variance / mean)
    assert_allclose(hsic_test(X, Y, kernel=(k, ell), null="gamma").pvalue, expected, rtol=1e-6)


def test_K8_mean_for_kernels_that_are_one_on_the_diagonal(rng):
    n, k = 30, mc.Gaussian(1.0)
    X, Y = rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
    off = ~np.eye(n, dtype=bool)
    mx, my = k(X)[off].mean(), k(Y)[off].mean()
    mean = (1.0 + mx * my - mx - my) / n
    variance = 2 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3))
    variance *= np.mean((centred(k(X)) * centred(k(Y)))[off] ** 2)
    q = n * hsic(k, X, k, Y, estimator="biased")
    expected = gamma.sf(q, mean**2 / variance, scale=n * variance / mean)
    assert_allclose(hsic_test(X, Y, kernel=(k, k), null="gamma").pvalue, expected, rtol=1e-6)


def test_K8_the_95_percent_quantile_of_simulations_has_a_tail_of_5_percent(rng):
    """At n = 100; 2 % of the quantile are about 0.005 of the tail."""
    n, k, values = 100, mc.Gaussian(1.0), []
    samples = rng.normal(size=(4000, 2, n))
    for x, y in samples:
        K, L = (centred(np.exp(-0.5 * (z[:, None] - z) ** 2)) for z in (x, y))
        values.append((K * L).sum() / n)
    q = float(np.quantile(values, 0.95))
    tails = [hsic_tail(k, x[:, None], k, y[:, None], q, "gamma")[0] for x, y in samples[:200]]
    assert abs(np.mean([t.bounds[1] for t in tails]) - 0.05) < 0.006


def test_K8_gamma_quantile_is_that_of_the_null(rng):
    """At n = 100 the level of the gamma test at 5 % is 5 %, to the error of 1,000 draws."""
    k, p = mc.Gaussian(1.0), []
    for _ in range(1000):
        X, Y = rng.normal(size=(100, 1)), rng.normal(size=(100, 1))
        p.append(hsic_test(X, Y, kernel=(k, k), null="gamma").pvalue)
    assert abs(np.mean(np.array(p) <= 0.05) - 0.05) < 0.025
