"""Kernels given by an explicit feature map: laws A11, A7 and A10 of docs/spec.md."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc


def kernel_of(phi):
    return mc.Linear().transform(mc.kernels.Features(phi))


def waves(X):
    return np.hstack([np.sin(X), np.cos(2.0 * X)])


def squares(X):
    return np.hstack([np.ones((len(X), 1)), X, X**2])


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1.0, 1.0), (2.5, 0.7)])
def test_A11_weighted_monomials_reproduce_the_polynomial_kernel(rng, d, degree, scale, offset):
    X, Y = rng.normal(size=(6, d)), rng.normal(size=(5, d))
    phi = mc.kernels.Monomials(degree, scale, offset)
    assert_allclose(
        mc.Linear().transform(phi)(X, Y), mc.Polynomial(degree, scale, offset)(X, Y), rtol=1e-11,
        atol=1e-12,
    )  # fmt: skip
    variables = d if offset == 0 else d + 1
    assert phi.apply(X).shape == (6, math.comb(variables + degree - 1, degree))


def test_A11_monomials_without_their_weights_do_not():
    """The counterexample of the erratum: <x, y>^3 is not the sum of products of monomials."""
    x, y = np.array([[1.0, 2.0]]), np.array([[0.5, 1.5]])
    weighted = mc.kernels.Monomials(3, offset=0.0)
    plain = weighted.apply(x) / np.sqrt([1, 3, 3, 1]), weighted.apply(y) / np.sqrt([1, 3, 3, 1])
    true = mc.Polynomial(3, offset=0.0)(x, y)[0, 0]
    assert_allclose(true, 3.5**3)
    assert_allclose((weighted.apply(x) @ weighted.apply(y).T)[0, 0], true)
    assert abs((plain[0] @ plain[1].T)[0, 0] - true) > 1.0


def test_A11_the_gram_matrix_is_that_of_the_features(rng):
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=(4, 2))
    naive = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in waves(Y)] for p in waves(X)]
    assert_allclose(kernel_of(waves)(X, Y), naive, rtol=1e-12, atol=1e-14)
    assert_allclose(kernel_of(waves).diag(X), np.sum(waves(X) ** 2, axis=1), rtol=1e-12)
    K = kernel_of(waves)(X)
    assert np.linalg.matrix_rank(K) == 4
    assert np.linalg.eigvalsh(K)[0] > -1e-10 * np.trace(K)


def test_A11_elements_are_weight_vectors(rng):
    """psi = sum a_i k(x_i, .) is w'phi(.) with w = sum a_i phi(x_i), and its norm is |w|."""
    X, a, Y = rng.normal(size=(7, 2)), rng.normal(size=7), rng.normal(size=(5, 2))
    psi = mc.Element(kernel_of(waves), X, a)
    w = a @ waves(X)
    assert_allclose(psi(Y), waves(Y) @ w, rtol=1e-11)
    assert_allclose(psi.norm(), np.linalg.norm(w), rtol=1e-10)


def test_A10_features_of_sums_products_and_multiples(rng):
    """sqrt(a) phi, (phi, psi) and phi psi' are the features of a k, k + l and k l."""
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))
    k, m = kernel_of(waves), kernel_of(squares)

    def both(Z):
        return np.hstack([waves(Z), squares(Z)])

    def outer(Z):
        return (waves(Z)[:, :, None] * squares(Z)[:, None, :]).reshape(len(Z), -1)

    assert_allclose((3.0 * k)(X, Y), kernel_of(lambda Z: np.sqrt(3.0) * waves(Z))(X, Y), rtol=1e-11)
    assert_allclose((k + m)(X, Y), kernel_of(both)(X, Y), rtol=1e-11)
    assert_allclose((k * m)(X, Y), kernel_of(outer)(X, Y), rtol=1e-10, atol=1e-12)
