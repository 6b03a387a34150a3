"""Variance, power and sample sizes of the MMD test, and choosing its kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

import mercer as mc
from mercer.exceptions import InputError
from mercer.methods import mmd_power, mmd_sample_size, mmd_test, mmd_variance

k = mc.Gaussian(1.0)


def pair(n, seed, shift):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)), rng.normal(shift, 1.0, (n, 1))


def test_variance_is_that_of_paired_terms():
    X, Y = pair(30, 0, 1.0)
    h = k(X) + k(Y) - k(X, Y) - k(Y, X)
    assert_allclose(mmd_variance(k, X, Y, paired=True), 4 / 30 * np.var(h.mean(axis=1)))
    fx, fy = k(X).mean(1) - k(X, Y).mean(1), k(Y).mean(1) - k(Y, X).mean(1)
    assert_allclose(mmd_variance(k, X, Y), 4 / 30 * (fx.var() + fy.var()))


def test_power_is_that_of_many_tests():
    found = mmd_power(k, *pair(2000, 0, 0.7), n=40)
    rejected = [
        mmd_test(*pair(40, i, 0.7), kernel=k, n_permutations=199, random_state=0).pvalue <= 0.05
        for i in range(1, 201)
    ]
    assert abs(found - np.mean(rejected)) < 0.12


def test_sample_size_is_the_smallest_with_that_power():
    X, Y = pair(200, 0, 0.5)
    n = mmd_sample_size(k, X, Y, power=0.9)
    assert mmd_power(k, X, Y, n=n) >= 0.9 > mmd_power(k, X, Y, n=n - 1)
    assert mmd_sample_size(k, X, Y, power=0.9, level=0.01) > n


def test_selection_keeps_the_level():
    kernels = [mc.Gaussian(s) for s in (0.1, 1.0, 10.0)]
    p = [
        mmd_test(
            *pair(30, i, 0.0), kernel=kernels, selection=0.5, n_permutations=39, random_state=i
        ).pvalue
        for i in range(200)
    ]
    assert np.sum(np.array(p) <= 0.1) <= binom.ppf(0.9999, 200, 0.1)
    result = mmd_test(*pair(30, 0, 2.0), kernel=kernels, selection=0.4, random_state=0)
    assert result.n == (18, 18)
    assert result.kernels == (result.kernel,)
    again = mmd_test(*pair(30, 0, 2.0), kernel=kernels, selection=0.4, random_state=result.seed)
    assert again.pvalue == result.pvalue


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, Y: mmd_power(k, X, Y, n=0), "n must"),
        (lambda X, Y: mmd_power(k, X, Y, n=5, level=0.0), "level must be between"),
        (lambda X, Y: mmd_sample_size(k, X, Y, power=1.0), "power must be between"),
        (lambda X, Y: mmd_sample_size(k, X, X), "no difference"),
        (lambda X, Y: mmd_power(mc.kernels.Constant(1.0), X, Y, n=9), "constant"),
        (lambda X, Y: mmd_power("median", X, Y, n=9), "kernel"),
        (lambda X, Y: mmd_variance(k, X, Y[:5], paired=True), "equal length"),
    ],
)
def test_refusals_name_the_cure(call, message):
    with pytest.raises((InputError, TypeError), match=message):
        call(*pair(20, 0, 0.5))


@pytest.mark.parametrize("scale", [1e75, 1e150])
@pytest.mark.parametrize("kernel", [mc.Linear(), mc.Exponential(1.0), mc.Polynomial(3, 1.0, 1.0)])
def test_values_that_overflow_are_refused(kernel, scale):
    X, Y = (scale * Z for Z in pair(5, 0, 1.0))
    with pytest.raises(InputError, match="overflow"):
        mmd_sample_size(kernel, X, Y)
    with pytest.raises(InputError, match="overflow"):
        mmd_variance(mc.NegativeDistance(30.0), X, Y)


@pytest.mark.parametrize("paired", [np.zeros((2, 2)), "x", None])
def test_paired_is_true_or_false(paired):
    for call in (lambda *xy, **o: mmd_variance(k, *xy, **o), mmd_test):
        with pytest.raises(InputError, match="paired must be"):
            call(*pair(5, 0, 1.0), paired=paired)
