"""Imputation: the rounds against closed forms, what must not change, and hard inputs."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer

import mercer as mc
from mercer import Status
from mercer.methods import Landweber, Tikhonov, Truncation, fit_imputer
from mercer.methods.imputation._rounds import (
    Components,
    Settings,
    _median_distance,
    complete,
    fill_from_neighbours,
)


def holes(X, share=0.2, seed=0):
    out = np.array(X)
    out[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return out


def curve(n, seed=0):
    t = np.random.default_rng(seed).uniform(-1.0, 1.0, n)
    return np.column_stack([t, t**2, np.sin(3.0 * t), np.cos(2.0 * t)])


def correlated(n, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.1 * rng.normal(size=(n, d))


def completed(X, **options):
    return fit_imputer(X, **options)(X)


def relative_error(found, X, missing_in):
    """Mean squared error on missing entries, over that of column means."""
    missing = np.isnan(missing_in)
    means = np.broadcast_to(np.nanmean(missing_in, axis=0), X.shape)
    return np.mean((found - X)[missing] ** 2) / np.mean((means - X)[missing] ** 2)


# --- the parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_landmarks", [None, 8])
def test_a_round_is_kernel_ridge_regression_of_each_column_on_the_rows(n_landmarks):
    rng = np.random.default_rng(1)
    Z, w = rng.normal(size=(20, 3)), rng.uniform(0.5, 3.0, 20)
    missing = rng.random(Z.shape) < 0.3
    parts = Components.fit(Z, w, Settings(mc.Gaussian(1.5), Tikhonov(), None, n_landmarks, 0))
    strength = 0.02
    smoother = parts.smoother(strength)
    W = w.sum()
    lam, C = parts.plane.eigenvalues, parts.C
    np.testing.assert_allclose(C.T @ (w[:, None] * C), np.diag(lam), atol=1e-8 * lam[0])
    a = strength * parts.plane.total
    H = np.outer(np.ones(20), w) / W + (C / (lam + a)) @ C.T * w
    np.testing.assert_allclose(smoother(Z), H @ Z, atol=1e-9)
    np.testing.assert_allclose(smoother.leverage, np.diag(H), atol=1e-9)
    found = complete(smoother, np.where(missing, 0.0, Z), missing)
    for j in range(3):
        m, o = missing[:, j], ~missing[:, j]
        exact = np.linalg.solve(np.eye(m.sum()) - H[np.ix_(m, m)], H[np.ix_(m, o)] @ Z[o, j])
        np.testing.assert_allclose(found[m, j], exact, atol=0.01)
        assert np.array_equal(found[o, j], Z[o, j])


def test_coordinates_of_rows_are_those_of_the_subspace():
    rng = np.random.default_rng(2)
    Z, w = rng.normal(size=(15, 2)), rng.uniform(0.5, 3.0, 15)
    parts = Components.fit(Z, w, Settings(mc.Gaussian(1.0), Tikhonov()))
    kept = parts.plane.eigenvalues > 1e-6
    expected = parts.plane.coordinates(mc.feature(mc.Gaussian(1.0), Z))
    np.testing.assert_allclose(parts.C[:, kept], expected[:, kept], atol=1e-7)


def test_neighbours_against_a_double_loop():
    rng = np.random.default_rng(3)
    T, R, w = (
        holes(rng.normal(size=(7, 4))),
        holes(rng.normal(size=(30, 4)), seed=1),
        rng.random(30),
    )
    T[0], R[0] = np.nan, np.nan
    found = fill_from_neighbours(T, R, w)
    mean = np.array([np.average(c[~np.isnan(c)], weights=w[~np.isnan(c)]) for c in R.T])
    np.testing.assert_allclose(found[0], mean)
    for i in range(1, 7):
        D = np.full(30, np.inf)
        for j in range(30):
            both = ~np.isnan(T[i]) & ~np.isnan(R[j])
            if both.any():
                D[j] = np.mean((T[i, both] - R[j, both]) ** 2)
        v = w * np.exp(-((D / np.sort(D)[9]) ** 4))
        for c in range(4):
            has = ~np.isnan(R[:, c])
            guess = v[has] @ R[has, c] / v[has].sum()
            expected = guess if np.isnan(T[i, c]) else T[i, c]
            assert found[i, c] == pytest.approx(expected, rel=1e-9)


def test_median_distance_of_complete_rows_is_that_of_the_library():
    X, w = np.random.default_rng(4).normal(size=(40, 3)), np.arange(1.0, 41.0)
    assert _median_distance(X, w) == pytest.approx(mc.median_scale(X, weights=w), rel=1e-2)
    assert _median_distance(X[:1], w[:1]) == 0.0
    assert _median_distance(np.ones((5, 2)), np.ones(5)) == 0.0


# --- what must hold -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_observed_entries_are_never_changed(dtype):
    X = holes(curve(80)).astype(dtype)
    before = X.copy()
    found = completed(X)
    assert np.array_equal(X, before, equal_nan=True)
    assert found.dtype == dtype
    seen = ~np.isnan(X)
    assert np.array_equal(found[seen], X[seen])
    assert np.isfinite(found).all()


def test_rows_of_rank_one_are_recovered_by_one_linear_component():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) @ rng.normal(size=(1, 5))
    missing = holes(X)
    found = fit_imputer(missing, mc.Linear(), filter=Truncation(), n_components=1, max_iter=50)
    some = ~np.isnan(missing).all(axis=1)
    assert relative_error(found(missing)[some], X[some], missing[some]) < 0.02


def test_a_weight_of_two_is_a_repeated_row():
    X = holes(curve(50))
    w = np.random.default_rng(0).integers(0, 4, 50)
    shuffled = np.random.default_rng(1).permutation(w.sum())
    repeated = np.repeat(X, w, axis=0)[shuffled]
    new = holes(curve(20, seed=5), seed=2)
    one, other = fit_imputer(X, weights=w), fit_imputer(repeated)
    np.testing.assert_allclose(one(new), other(new), rtol=1e-6, atol=1e-8)
    assert not np.allclose(one(new), fit_imputer(X)(new), rtol=1e-4)


def test_units_do_not_matter_to_standardised_columns():
    X = holes(correlated(60))
    plain = completed(X, scale_columns="std")
    for units in (
        2.0 ** np.array([-30, 0, 20, 3, -7, 40]),
        np.array([3.0, 1.0, 1e-3, 7.0, 0.1, 1]),
    ):
        scaled = completed(X * units, scale_columns="std")
        np.testing.assert_allclose(scaled / units, plain, rtol=1e-6)


@pytest.mark.parametrize("scale_columns", ["auto", "std", "none"])
@pytest.mark.parametrize("factor", [3.0, 1e-3, 1e6])
def test_one_unit_for_all_columns_does_not_matter(scale_columns, factor):
    X = holes(correlated(60))
    plain, scaled = (completed(Z, scale_columns=scale_columns) for Z in (X, factor * X))
    np.testing.assert_allclose(scaled / factor, plain, rtol=1e-6)


def test_units_are_found_where_they_differ_by_much():
    X = correlated(150)
    missing = holes(X)
    units = np.array([1e-4, 1.0, 1e4, 10.0, 1e-2, 1.0])
    found = completed(missing * units) / units
    assert relative_error(found, X, missing) < 0.2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(12, 3), (60, 5), (200, 8)])
def test_independent_columns_are_hardly_worse_than_means(shape, seed):
    X = np.random.default_rng(seed).normal(size=shape)
    missing = holes(X, seed=seed)
    assert relative_error(completed(missing), X, missing) < 1.1


def test_new_rows_are_filled_about_as_well_as_old_ones():
    X = correlated(300)
    missing = holes(X)
    old, new = missing[:200], missing[200:]
    found = fit_imputer(old)
    assert relative_error(found(old), X[:200], old) < 0.15
    assert relative_error(found(new), X[200:], new) < 0.15


def test_rows_are_filled_one_by_one_as_all_together():
    X = holes(curve(60))
    fill = fit_imputer(X)
    apart = np.concatenate([fill(X[i : i + 1]) for i in range(60)])
    np.testing.assert_allclose(apart, fill(X), rtol=1e-9, atol=1e-12)


def test_digits_against_nearest_neighbours():
    X = np.random.default_rng(0).permutation(load_digits().data)[:250] / 16.0
    missing = holes(X)
    ours = np.mean((completed(missing) - X) ** 2)
    peers = [np.mean((KNNImputer(n_neighbors=k).fit_transform(missing) - X) ** 2) for k in (5, 10)]
    assert ours < 0.85 * min(peers)


def test_landmarks_come_close_to_all_rows():
    X = correlated(150)
    missing = holes(X)
    found = fit_imputer(missing, n_landmarks=40)
    assert relative_error(found(missing), X, missing) < 0.2
    assert found.regression.points.shape == (40, 6)


@pytest.mark.parametrize("spectral", [Tikhonov(0.5), Landweber(), Landweber(5), Truncation()])
def test_every_filter_can_be_used(spectral):
    X = correlated(100)
    missing = holes(X)
    found = fit_imputer(missing, filter=spectral, n_components=3)
    assert relative_error(found(missing), X, missing) < 0.6


def test_the_result_says_how_it_came_about():
    X = holes(curve(80))
    found = fit_imputer(X)
    assert found.status in (Status.CHOSEN, Status.CONVERGED)
    assert found.changes.shape == (len(found.changes),)
    assert 0.0 < found.error < 1.0
    assert isinstance(found.kernel, mc.Gaussian)
    with pytest.raises(FrozenInstanceError):
        found.error = 3
    assert fit_imputer(X, max_iter=1).status is Status.MAX_ITER
    assert fit_imputer(X, tol=10.0).status is Status.CONVERGED
    assert fit_imputer(curve(20)).status is Status.COMPLETE
    assert fit_imputer([[1.0, np.nan], [2.0, 3.0]]).status is Status.TOO_FEW


def test_the_expected_error_is_about_the_true_one():
    X = correlated(200)
    missing = holes(X, 0.1)
    found = fit_imputer(missing)
    true = relative_error(found(missing), X, missing)
    assert 0.3 * true < found.error < 5.0 * true


# --- hard inputs ----------------------------------------------------------------------------------


def test_few_rows_get_means():
    np.testing.assert_array_equal(completed([[1.0, 2.0]]), [[1.0, 2.0]])
    found = fit_imputer([[1.0, np.nan], [3.0, 5.0]])
    np.testing.assert_allclose(found([[1.0, np.nan], [3.0, 5.0]]), [[1.0, 5.0], [3.0, 5.0]])
    np.testing.assert_allclose(found([[np.nan, np.nan]]), [[2.0, 5.0]])


def test_one_column_gets_its_mean():
    found = completed([[1.0], [np.nan], [2.0], [6.0]])
    np.testing.assert_allclose(found, [[1.0], [3.0], [2.0], [6.0]])


def test_a_row_of_nothing_gets_the_means():
    X = holes(curve(60))
    X[3] = np.nan
    found = completed(X)
    np.testing.assert_allclose(found[3], np.nanmean(X, axis=0))


def test_constant_columns_stay_constant():
    X = curve(60)
    X[:, 1] = 7.0
    missing = holes(X)
    np.testing.assert_allclose(completed(missing)[:, 1], 7.0)
    np.testing.assert_allclose(completed(np.where(np.isnan(missing), np.nan, 7.0)), 7.0)


def test_a_column_observed_once():
    X = curve(40)
    X[1:, 2] = np.nan
    np.testing.assert_allclose(completed(X)[:, 2], X[0, 2])


def test_far_from_the_origin():
    X = correlated(80)
    missing = holes(X)
    found = completed(missing + 1e6) - 1e6
    assert relative_error(found, X, missing) < 0.2


def test_more_columns_than_rows():
    X = correlated(20, 50)
    missing = holes(X)
    assert relative_error(completed(missing), X, missing) < 0.3


def test_duplicated_rows():
    X = np.repeat(holes(curve(10)), 5, axis=0)
    found = completed(X)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[::5], found[4::5])


@settings(max_examples=40, deadline=None)
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 8), st.integers(1, 4)),
        elements=st.one_of(st.just(np.nan), st.sampled_from([0.0, 1.0, -2.5, 1e-9, 1e9])),
    )
)
def test_any_small_array_is_completed_or_refused(X):
    if np.isnan(X).all(axis=0).any():
        with pytest.raises(mc.InputError, match="no observed entry"):
            fit_imputer(X)
        return
    found = completed(X)
    assert np.isfinite(found).all()
    seen = ~np.isnan(X)
    assert np.array_equal(found[seen], X[seen])
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    assert ((found >= low - 3.0 * (high - low)) & (found <= high + 3.0 * (high - low))).all()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.inf], [2.0, 3.0]], "infinity"),
        ([[1.0, np.nan], [2.0, np.nan]], r"columns \[1\]"),
        ([1.0, 2.0], "reshape"),
        (np.zeros((0, 2)), "no rows"),
        ([["a", "b"]], "numbers"),
    ],
)
def test_bad_arrays_are_refused_with_a_cure(X, message):
    with pytest.raises(mc.InputError, match=message):
        fit_imputer(X)


def test_bad_settings_are_refused_with_a_cure():
    from scipy.sparse import csr_array

    X = holes(curve(20))
    with pytest.raises(mc.InputError, match="toarray"):
        fit_imputer(csr_array(np.eye(3)))
    for bad in ({"max_iter": 0}, {"tol": -1.0}, {"n_components": 0}, {"n_landmarks": 0}):
        with pytest.raises(mc.InputError, match=next(iter(bad))):
            fit_imputer(X, **bad)
    with pytest.raises(mc.InputError, match="vectors"):
        fit_imputer(X, mc.Spectrum(2))
    with pytest.raises(mc.InputError, match="4 columns"):
        fit_imputer(X)([[1.0]])
    with pytest.raises(mc.InputError, match="weight"):
        fit_imputer(X, weights=np.zeros(20))
