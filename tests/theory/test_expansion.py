"""Mercer's expansion of the Gaussian kernel: large orders, far points, many dimensions."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import eval_hermite, factorial

import mercer as mc
from mercer.theory import MercerExpansion


def by_formula(terms, x):
    """The formula as it stands, good for small orders."""
    a, b = 1 / (4 * terms.sigma**2), 1 / (2 * terms.length_scale**2)
    c = np.sqrt(a**2 + 2 * a * b)
    k = np.arange(terms.n_terms)
    norm = np.sqrt(np.sqrt(a / c) * 2.0**k * factorial(k))
    lam = np.sqrt(2 * a / (a + b + c)) * (b / (a + b + c)) ** k
    return lam, np.exp(-(c - a) * x**2) * eval_hermite(k, np.sqrt(2 * c) * x) / norm


def test_small_orders_are_the_formula():
    for length, sigma in ((1.0, 1.0), (0.3, 2.0), (4.0, 0.1)):
        terms = MercerExpansion(length, sigma, 25)
        x = sigma * np.array([[-2.0], [0.0], [0.7], [5.0]])
        lam, e = by_formula(terms, x)
        assert_allclose(terms.eigenvalues, lam, rtol=1e-12)
        assert_allclose(terms.eigenfunctions(x), e, rtol=1e-10, atol=1e-12)


def test_order_500_at_50_in_forty_digits():
    """The recurrence in decimals, without any scaling."""
    getcontext().prec = 60
    one, a, b, x = Decimal(1), Decimal("0.25"), Decimal("0.5"), Decimal(50)
    c = (a * a + 2 * a * b).sqrt()
    z = (2 * c).sqrt() * x
    before, now = Decimal(0), one
    exact = []
    for j in range(501):
        exact.append(now * (-(c - a) * x * x).exp() * (c / a).sqrt().sqrt())
        ratio = one / (j + 1)
        before, now = now, (2 * ratio).sqrt() * z * now - (j * ratio).sqrt() * before
    found = MercerExpansion(1.0, 1.0, 501).eigenfunctions([[50.0], [-50.0]])
    assert np.isfinite(found).all()
    for j in (100, 400, 499, 500):
        assert_allclose(found[0, j], float(exact[j]), rtol=1e-10)
        assert_allclose(found[1, j], (-1) ** j * float(exact[j]), rtol=1e-10)


def test_features_never_exceed_one(rng):
    X = np.concatenate([rng.normal(size=50), [-300.0, 60.0, 0.0, 1e8]])[:, None]
    for length in (0.01, 1.0, 100.0):
        terms = MercerExpansion(length, 1.0, 600)
        features = terms.features(X)
        assert np.isfinite(features).all()
        assert (np.sum(features**2, axis=1) <= 1.0 + 1e-10).all()


def test_many_terms_give_the_kernel_far_out():
    X = np.array([[-6.0], [0.0], [3.0], [10.0]])
    terms = MercerExpansion(1.0, 1.0, 400)
    assert_allclose(terms.kernel_values(X), mc.Gaussian(1.0)(X), atol=1e-10)
    assert (terms.bound(X) < 1e-5).all()
    assert_allclose(terms.bound(X[:2], X[2:]), terms.bound(X)[:2, 2:])


def test_tails_without_cancellation():
    """In one dimension the tail after n terms is B^n, here down to 1e-246."""
    terms = MercerExpansion(1.0, 1.0, 1)
    B = terms.tail
    assert_allclose(MercerExpansion(1.0, 1.0, 590).tail, B**590, rtol=1e-10)
    assert_allclose(B, (3 - np.sqrt(5)) / 2, rtol=1e-14)  # golden, for equal lengths


def test_orders_are_graded_and_complete():
    terms = MercerExpansion(1.0, 1.0, 20, 3)  # 1 + 3 + 6 + 10
    assert terms.orders.sum(axis=1).tolist() == [0] + [1] * 3 + [2] * 6 + [3] * 10
    assert len({tuple(row) for row in terms.orders.tolist()}) == 20
    assert_allclose(MercerExpansion(2.0, 1.0, 3, 50).eigenvalues.sum() + MercerExpansion(
        2.0, 1.0, 3, 50).tail, 1.0, rtol=1e-12)  # fmt: skip


def test_products_of_one_dimension(rng):
    X = rng.normal(size=(5, 2))
    flat, line = MercerExpansion(0.8, 1.2, 10, 2), MercerExpansion(0.8, 1.2, 10)
    parts = [line.eigenfunctions(X[:, [i]])[:, flat.orders[:, i]] for i in range(2)]
    assert_allclose(flat.eigenfunctions(X), parts[0] * parts[1], rtol=1e-12)


def test_values_and_refusals():
    terms = MercerExpansion(1.0, 2.0, 4)
    assert terms == MercerExpansion(1.0, 2.0, 4)
    assert terms.eigenfunctions(np.float32([[0.5]])).dtype == np.float64
    with pytest.raises(ValueError):
        terms.eigenvalues[0] = 2.0
    for bad in ((0.0, 1.0, 3), (1.0, -1.0, 3), (1.0, 1.0, 0)):
        with pytest.raises(mc.InputError):
            MercerExpansion(*bad)
    for X in ([[0.0, 1.0]], [[np.nan]], [0.0]):
        with pytest.raises(mc.InputError):
            terms.eigenfunctions(X)
