"""Spectral filters: formulas, limits, order, and what they ask for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mercer as mc
from mercer.methods import Filter

VALUES = np.array([8.0, 4.0, 1.0, 0.1])
spectra = arrays(np.float64, st.integers(1, 20), elements=st.floats(1e-9, 1e9)).map(
    lambda v: np.sort(v)[::-1]
)
filters = st.one_of(
    st.just(mc.methods.Truncation()),
    st.floats(0.0, 1e6).map(mc.methods.Tikhonov),
    st.integers(1, 1000).map(mc.methods.Landweber),
    st.just(mc.methods.Tikhonov()),
    st.just(mc.methods.Landweber()),
)


def test_formulas():
    np.testing.assert_array_equal(mc.methods.Truncation().weights(VALUES, None), np.ones(4))
    np.testing.assert_allclose(
        mc.methods.Tikhonov(2.0).weights(VALUES, None), VALUES / (VALUES + 2.0)
    )
    np.testing.assert_allclose(mc.methods.Tikhonov().weights(VALUES, 0.5), VALUES / (VALUES + 0.5))
    expected = 1.0 - (1.0 - VALUES / 8.0) ** 3
    np.testing.assert_allclose(mc.methods.Landweber(3).weights(VALUES, None), expected)


@given(filters, spectra, st.floats(0.0, 1e9))
def test_weights_are_shares_and_fall_with_the_eigenvalue(filter, values, noise):  # noqa: A002
    w = filter.weights(values, noise)
    assert w.shape == values.shape
    assert np.all((w >= 0.0) & (w <= 1.0))
    assert np.all(np.diff(w) <= 1e-12)


@given(spectra, st.floats(1e-6, 1e6), st.integers(1, 500))
def test_more_strength_shrinks_more_and_more_steps_less(values, strength, steps):
    a, b = (mc.methods.Tikhonov(s).weights(values, None) for s in (strength, 2.0 * strength))
    assert np.all(b <= a)
    a, b = (mc.methods.Landweber(t).weights(values, None) for t in (steps, 2 * steps))
    assert np.all(b >= a)


def test_limits():
    np.testing.assert_array_equal(mc.methods.Tikhonov(0.0).weights(VALUES, None), np.ones(4))
    np.testing.assert_array_equal(mc.methods.Tikhonov().weights(VALUES, 0.0), np.ones(4))
    np.testing.assert_allclose(mc.methods.Tikhonov(1e12).weights(VALUES, None), 0.0, atol=1e-10)
    np.testing.assert_allclose(mc.methods.Landweber(10**6).weights(VALUES, None), 1.0, atol=1e-10)
    one = mc.methods.Landweber(1).weights(VALUES, None)
    np.testing.assert_allclose(one, VALUES / VALUES[0])
    np.testing.assert_array_equal(mc.methods.Landweber().weights(VALUES, 0.0), np.ones(4))
    np.testing.assert_allclose(
        mc.methods.Landweber().weights(VALUES, 99.0), one
    )  # at least one step


@pytest.mark.parametrize("filter", [mc.methods.Tikhonov(), mc.methods.Landweber()])
def test_a_direction_as_strong_as_the_noise_is_halved(filter):  # noqa: A002
    assert filter.weights(VALUES, 1.0)[2] == pytest.approx(0.5)
    assert filter.weights(VALUES, 0.1)[3] == pytest.approx(0.5)


def test_landweber_iteration_is_the_filter(rng):
    # descent on |y - K a|^2 / 2 in the Hilbert space: f <- f + (y - f) K / lambda_1 at the rows
    A = rng.normal(size=(12, 12))
    values, V = np.linalg.eigh(A @ A.T)
    y, f = rng.normal(size=12), np.zeros(12)
    for _ in range(7):
        f = f + (A @ A.T) @ (y - f) / values[-1]
    w = mc.methods.Landweber(7).weights(values[::-1], None)
    np.testing.assert_allclose(V.T @ f, w[::-1] * (V.T @ y), atol=1e-10)


def test_which_filters_need_the_noise():
    assert not mc.methods.Truncation().needs_noise
    assert not mc.methods.Tikhonov(1.0).needs_noise
    assert not mc.methods.Landweber(3).needs_noise
    for left_open in (mc.methods.Tikhonov(), mc.methods.Landweber()):
        assert left_open.needs_noise
        with pytest.raises(mc.InputError, match="needs a strength, or the noise"):
            left_open.weights(VALUES, None)


def test_what_strengths_may_be():
    for wrong in (-1.0, np.nan, np.inf, "strong"):
        with pytest.raises(mc.InputError, match="strength"):
            mc.methods.Tikhonov(wrong)
    for wrong in (0, -1, 2.5, "many"):
        with pytest.raises(mc.InputError, match="n_steps"):
            mc.methods.Landweber(wrong)
    assert mc.methods.Tikhonov(1) == mc.methods.Tikhonov(1.0)
    assert all(
        issubclass(f, Filter)
        for f in (mc.methods.Truncation, mc.methods.Tikhonov, mc.methods.Landweber)
    )


def test_a_filter_of_ones_own(rng):
    class Half(Filter):
        def weights(self, eigenvalues, noise):
            return np.full(len(eigenvalues), 0.5)

    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(5, 2))
    options = {"kernel": "rbf", "noise": 0.1, "trust": 1.0}
    half = mc.KernelDenoiser(3, filter=Half(), **options).fit(X)
    whole = mc.KernelDenoiser(3, **options).fit(X)
    expected = 0.5 * (X.mean(axis=0) + whole.transform(Y))
    np.testing.assert_allclose(half.transform(Y), expected, atol=1e-12)
