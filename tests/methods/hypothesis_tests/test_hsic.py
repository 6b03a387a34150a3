"""HSIC against double loops, closed forms and distance covariance."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.exceptions import InputError
from mercer.methods import hsic


def sample(n=9, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, :1] ** 2 + rng.normal(size=(n, 1))


def test_weights_of_the_unbiased_value_are_those_of_tuples():
    X, Y = sample(7)
    w = np.array([0.5, 1.0, 2.0, 0.0, 1.0, 3.0, 1.5])
    K, L, total, norm = mc.Gaussian(1.0)(X), mc.Laplace(1.0)(Y), 0.0, 0.0
    for i, j, q, r in permutations(range(7), 4):
        weight = w[i] * w[j] * w[q] * w[r]
        total += weight * K[i, j] * (L[i, j] + L[q, r] - 2 * L[i, q])
        norm += weight
    found = hsic(mc.Gaussian(1.0), X, mc.Laplace(1.0), Y, weights=w)
    assert_allclose(found, total / norm, rtol=1e-9)


def test_a_weight_of_two_repeats_the_pair():
    X, Y = sample()
    w = np.ones(9)
    w[[2, 5]] = 2.0
    again = [*range(9), 2, 5]
    k, ell = mc.Gaussian(1.0), mc.Laplace(1.0)
    for centred in (True, False):
        options = {"estimator": "biased", "centred": centred}
        assert_allclose(
            hsic(k, X, ell, Y, weights=w, **options),
            hsic(k, X[again], ell, Y[again], **options),
            rtol=1e-10,
        )


def test_many_tiles_are_one_sum():
    X, Y = sample(1100)
    k, ell = mc.Gaussian(1.0), mc.Gaussian(2.0)
    K, L = (A - A.mean(0) - A.mean(1)[:, None] + A.mean() for A in (k(X), ell(Y)))
    assert_allclose(hsic(k, X, ell, Y, estimator="biased"), np.mean(K * L), rtol=1e-9)


def test_distance_covariance():
    """By the definition: centred distances, multiplied and averaged."""
    X, Y = sample(30)

    def distances(Z):
        D = np.array([[np.linalg.norm(a - b) for b in Z] for a in Z])
        return D - D.mean(0) - D.mean(1)[:, None] + D.mean()

    k = mc.NegativeDistance()
    expected = np.mean(distances(X) * distances(Y))
    assert_allclose(hsic(k, X, k, Y, estimator="biased"), expected, rtol=1e-10)


def test_linear_kernels_give_the_squared_covariance():
    X, Y = sample(50)
    value = hsic(mc.Linear(), X, mc.Linear(), Y, estimator="biased")
    C = (X - X.mean(0)).T @ (Y - Y.mean(0)) / 50
    assert_allclose(value, np.sum(C**2), rtol=1e-9)


def test_incomplete_and_block_values_estimate_the_same():
    X, Y = sample(400)
    k, ell = mc.Gaussian(1.0), mc.Gaussian(1.0)
    full = hsic(k, X, ell, Y)
    many = hsic(k, X, ell, Y, estimator="incomplete", n_tuples=200_000, random_state=0)
    assert_allclose(many, full, atol=0.002)
    parts = [hsic(k, X[s : s + 20], ell, Y[s : s + 20]) for s in range(0, 400, 20)]
    assert_allclose(hsic(k, X, ell, Y, estimator="block"), np.mean(parts), rtol=1e-12)


def test_unbiased_value_has_mean_zero_under_independence():
    rng = np.random.default_rng(0)
    k = mc.Gaussian(1.0)
    values = [hsic(k, rng.normal(size=(8, 1)), k, rng.normal(size=(8, 1))) for _ in range(1500)]
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(1500)


def test_far_from_the_origin_and_tiny_scales():
    X, Y = sample(40)
    value = hsic(mc.Gaussian(1.0), X, mc.Gaussian(1.0), Y)
    far = hsic(mc.Gaussian(1.0), X + 1e5, mc.Gaussian(1.0), Y - 1e5)
    assert_allclose(far, value, rtol=1e-7)
    small = hsic(mc.Gaussian(1e-60), 1e-60 * X, mc.Gaussian(1.0), Y)
    assert_allclose(small, value, rtol=1e-9)
    assert hsic(mc.Gaussian(1.0), np.ones((5, 1)), mc.Gaussian(1.0), Y[:5]) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Y": np.ones((8, 1))}, "paired"),
        ({"estimator": "other"}, "estimator"),
        ({"estimator": "block", "weights": np.ones(9)}, "no weights"),
        ({"estimator": "incomplete", "centred": False}, "centred"),
        ({"estimator": "incomplete", "n_tuples": 0}, "n_tuples"),
        ({"estimator": "block", "block_size": 0}, "block_size"),
        ({"weights": [1.0, 1.0, 1.0] + [0.0] * 6}, "four"),
        ({"weights": -np.ones(9)}, "weights"),
        ({"centred": "yes"}, "centred"),
        ({"kernel_y": 3}, "kernel_y"),
    ],
)
def test_refusals_name_the_cure(change, message):
    X, Y = sample()
    given = {"kernel_x": mc.Gaussian(1.0), "X": X, "kernel_y": mc.Gaussian(1.0), "Y": Y} | change
    with pytest.raises(InputError, match=message):
        hsic(**given)
