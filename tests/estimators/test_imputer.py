"""KernelImputer: scikit-learn's contract, names, and what it adds to `fit_imputer`."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer.estimators import KernelImputer
from mercer.methods import fit_imputer


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1.0, 1.0, n)
    X = np.column_stack([t, t**2, np.sin(3.0 * t)])
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@parametrize_with_checks(
    [
        KernelImputer(),
        KernelImputer(mc.Gaussian(2.0), add_indicator=True, n_landmarks=5),
        KernelImputer("linear", max_iter=1, keep_empty_features=True),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_it_is_the_function():
    X = data()
    model = KernelImputer().fit(X)
    found = fit_imputer(X)
    np.testing.assert_array_equal(model.transform(X), found(X))
    assert model.kernel_ == found.kernel
    assert (model.n_iter_, model.status_) == (len(found.changes), found.status)
    np.testing.assert_array_equal(model.error_, found.error)


def test_complete_rows_come_back_bit_for_bit():
    X = data()
    model = KernelImputer().fit(X)
    whole = X[~np.isnan(X).any(axis=1)]
    assert np.array_equal(model.transform(whole), whole)
    filled = model.transform(X)
    assert np.array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.array_equal(model.fit_transform(X), filled)


@pytest.mark.filterwarnings("ignore:Skipping features")
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("indicator", [False, True])
def test_empty_columns_and_names_as_in_simple_imputer(keep, indicator):
    X = np.insert(data(), 1, np.nan, axis=1)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    options = {"keep_empty_features": keep, "add_indicator": indicator}
    ours, peer = KernelImputer(**options).fit(frame), SimpleImputer(**options)
    expected = peer.fit_transform(frame)
    found = ours.transform(frame)
    assert found.shape == expected.shape
    assert ours.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
    if keep:
        assert (found[:, 1] == 0.0).all()
    if indicator:
        flags = MissingIndicator(features="missing-only").fit_transform(X)
        assert np.array_equal(found[:, -flags.shape[1] :], flags.astype(float))


def test_frames_in_and_out():
    frame = pd.DataFrame(data(), columns=["a", "b", "c"])
    out = KernelImputer().set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["a", "b", "c"]
    assert not out.isna().any().any()
    nullable = frame.astype("Float64")
    np.testing.assert_array_equal(KernelImputer().fit_transform(nullable), out)


def test_float32_stays_float32():
    X = data().astype(np.float32)
    for options in ({}, {"add_indicator": True}, {"keep_empty_features": True}):
        assert KernelImputer(**options).fit_transform(X).dtype == np.float32


def test_sample_weight_counts_rows():
    X, w = data(), np.random.default_rng(3).integers(0, 3, 60)
    new = data(20, seed=9)
    one = KernelImputer().fit(X, sample_weight=w).transform(new)
    other = KernelImputer().fit(np.repeat(X, w, axis=0)).transform(new)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="zero"):
        KernelImputer().fit(X, sample_weight=np.zeros(60))


def test_a_column_empty_among_rows_that_count_is_empty():
    X = data()
    X[:, 2] = np.nan
    X[0, 2] = 1.0
    w = np.ones(60)
    w[0] = 0.0
    assert KernelImputer().fit(X, sample_weight=w).transform(X).shape == (60, 2)


def test_in_pipelines_and_grids():
    X = data(100)
    y = np.nan_to_num(X[:, 0]) + 1.0
    grid = GridSearchCV(
        make_pipeline(KernelImputer(mc.Gaussian(1.0)), PCA(2), LinearRegression()),
        {"kernelimputer__kernel__length_scale": [1.0, 2.0]},
        cv=2,
    ).fit(X, y)
    assert grid.best_estimator_[0].kernel.length_scale in (1.0, 2.0)
    model = clone(grid.best_estimator_[0]).set_params(kernel__length_scale=3.0)
    assert model.fit(X).kernel_ == mc.Gaussian(3.0)


def test_names_of_kernels():
    X = data()
    assert KernelImputer("rbf").fit(X).kernel_ == mc.Gaussian.from_gamma(1.0 / 3.0)
    with pytest.raises(mc.InputError, match="kernel must be"):
        KernelImputer("nothing").fit(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (csr_array(np.eye(3)), "toarray"),
        ([[1.0, np.inf]], "infinity"),
        ([[np.nan, np.nan]], "no observed value"),
    ],
)
def test_what_cannot_be_filled_is_refused(X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KernelImputer().fit(X)


def test_errors_of_all_columns():
    X = np.insert(data(), 1, np.nan, axis=1)
    error = KernelImputer().fit(X).error_
    assert np.isnan(error).tolist() == [False, True, False, False]


def test_units_do_not_matter():
    X, new = data(), data(20, seed=9)
    for factor in (3.0, np.array([1e-3, 1.0, 1e5])):
        found = KernelImputer().fit(factor * X).transform(factor * new) / factor
        np.testing.assert_allclose(found, KernelImputer().fit(X).transform(new), atol=1e-7)


def test_a_fitted_model_can_be_saved(tmp_path):
    X = data()
    model = KernelImputer(add_indicator=True).fit(X)
    mc.save(model, tmp_path / "model.npz")
    np.testing.assert_array_equal(mc.load(tmp_path / "model.npz").transform(X), model.transform(X))


def test_settings_are_checked():
    with pytest.raises(mc.InputError, match="max_iter"):
        KernelImputer(max_iter=0).fit(data())
