"""Kernel logistic regression: the contract and models of scikit-learn, weights, limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer.estimators import KernelLogisticRegression


@pytest.mark.sample(2)
@parametrize_with_checks(
    [
        KernelLogisticRegression(),
        KernelLogisticRegression("matern", C=10.0, class_weight="balanced", fit_intercept=False),
        KernelLogisticRegression(mc.Linear(), C=100.0, scale_columns="none"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def wine(classes=3):
    X, y = load_wine(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    return StandardScaler().fit_transform(X), y


# --- beside scikit-learn --------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_linear_kernel_is_logistic_regression(C, intercept):
    X, y = wine(2)
    X = X[:, :4]
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    ours = KernelLogisticRegression(mc.Linear(), C=C, fit_intercept=intercept, tol=1e-12)
    theirs = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-10, solver="newton-cholesky")
    ours.fit(X, y, sample_weight=w)
    theirs.fit(X, y, sample_weight=w)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-4, atol=1e-4)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_several_classes_are_multinomial_as_in_scikit_learn(C, intercept):
    X, y = wine()
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    ours = KernelLogisticRegression(mc.Linear(), C=C, fit_intercept=intercept, tol=1e-10)
    theirs = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-10, max_iter=10_000)
    ours.fit(X, y, sample_weight=w)
    theirs.fit(X, y, sample_weight=w)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert ours.certificate_.relative_gap <= 1e-10
    assert len(ours.element_) == 3


@pytest.mark.parametrize("weights", ["balanced", {0: 3.0, 1: 0.5}])
def test_class_weights_are_factors_of_C(weights):
    X, y = wine(2)
    ours = KernelLogisticRegression(mc.Linear(), class_weight=weights, tol=1e-12).fit(X, y)
    theirs = LogisticRegression(class_weight=weights, tol=1e-10, solver="newton-cholesky").fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_classes_without_weight_are_never_predicted():
    X, y = wine()
    for model, w in (
        (KernelLogisticRegression(class_weight={0: 0.0}), None),
        (KernelLogisticRegression(), np.where(y == 0, 0.0, 1.0)),
    ):
        model.fit(X, y, sample_weight=w)
        assert set(model.predict(X)) == {1, 2}
        assert model.predict_proba(X)[:, 0].max() < 1e-3


# --- what users do --------------------------------------------------------------------------------


def test_probabilities_are_calibrated_where_the_truth_is_known(rng):
    X = rng.uniform(-3.0, 3.0, size=(2000, 1))
    truth = 1.0 / (1.0 + np.exp(-3.0 * np.sin(2.0 * X[:, 0])))
    model = KernelLogisticRegression().fit(X, rng.uniform(size=2000) < truth)
    found = model.predict_proba(X)[:, 1]
    assert np.abs(found - truth).mean() < 0.05
    assert_array_equal(model.predict(X), found >= 0.5)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_sum_to_one_and_logarithms_do_not_vanish(classes):
    X, y = wine(classes)
    model = KernelLogisticRegression(mc.Linear(), C=10.0).fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert np.isfinite(model.predict_log_proba(1e4 * X)).all()
    assert log_loss(y, model.predict_proba(X)) < 0.1


def test_weights_are_repeated_rows(rng):
    X, y = wine()
    w = rng.integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), w)
    weighted = KernelLogisticRegression().fit(X, y, sample_weight=w)
    copies = KernelLogisticRegression().fit(X[again], y[again])
    assert_allclose(weighted.decision_function(X), copies.decision_function(X), rtol=1e-10)


def test_a_row_of_both_classes_has_even_odds():
    model = KernelLogisticRegression(mc.Gaussian(1.0), fit_intercept=False)
    model.fit([[0.0], [0.0]], [0, 1])
    assert_allclose(model.predict_proba([[0.0], [5.0]]), 0.5, atol=1e-12)


def test_a_precomputed_matrix_is_the_kernel():
    X, y = wine()
    k = mc.Gaussian(3.0)
    rows = KernelLogisticRegression(k, tol=1e-10).fit(X[::2], y[::2])
    matrix = KernelLogisticRegression("precomputed", tol=1e-10).fit(k(X[::2]), y[::2])
    assert_allclose(matrix.predict_proba(k(X, X[::2])), rows.predict_proba(X), atol=1e-8)


def test_strings_can_be_classified():
    words = np.array(["aab", "aba", "abab", "aabb", "xyx", "yxy", "xxyy", "xyxy"])
    model = KernelLogisticRegression(mc.Spectrum(1)).fit(words, np.repeat(["ab", "xy"], 4))
    assert_array_equal(model.predict(["abba", "yyx"]), ["ab", "xy"])


def test_the_element_is_the_log_odds_and_comes_back():
    X, y = wine(2)
    model = KernelLogisticRegression().fit(X, y)
    f = model.element_
    assert_allclose(f(X) + model.intercept_[0], model.decision_function(X), atol=1e-12)
    small = mc.compress(f, 20)
    assert np.abs(f(X) - small.element(X)).max() <= f.distance(small.element) + 1e-12
    assert mc.preimage(f).points.shape == (1, 13)


def test_limits_warn_and_warm_starts_go_on(rng):
    X, y = rng.normal(size=(200, 2)), rng.choice([0, 1], 200)
    model = KernelLogisticRegression(mc.Laplace(1.0), C=1e4, tol=1e-9, max_iter=2, warm_start=True)
    with pytest.warns(mc.MercerWarning, match=r"stopped at max_iter.*duality gap is"):
        model.fit(X, y)
    assert model.certificate_.relative_gap > 1e-9
    model.set_params(max_iter=100).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-9
    with pytest.warns(mc.MercerWarning, match="duality gap"):
        KernelLogisticRegression(time_limit=1e-9).fit(X, y)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (KernelLogisticRegression(C=0.0), "C must be > 0"),
        (KernelLogisticRegression(C=np.inf), "C must be"),
        (KernelLogisticRegression(tol=-1.0), "tol must be > 0"),
        (KernelLogisticRegression(max_iter=0), "max_iter"),
        (KernelLogisticRegression(fit_intercept="no"), "fit_intercept"),
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused(model, match):
    X, y = wine()
    with pytest.raises(mc.InputError, match=match):
        model.fit(X, y)


def test_hard_inputs():
    y = [0, 1, 0, 1]
    same = KernelLogisticRegression().fit(np.ones((4, 2)), y)  # nothing to learn
    assert_allclose(same.predict_proba(np.ones((3, 2))), 0.5, atol=1e-6)
    for scale in (1e-60, 1e60):
        rows = np.array([[0.0], [3.0], [1.0], [2.0]]) * scale
        assert_array_equal(KernelLogisticRegression().fit(rows, y).predict(rows), y)
    far = np.array([[0.0], [3.0], [1.0], [2.0]]) + 1e9
    assert_array_equal(KernelLogisticRegression().fit(far, y).predict(far), y)
    wide = KernelLogisticRegression().fit(np.eye(4, 1000), y)
    assert_array_equal(wide.predict(np.eye(4, 1000)), y)
    single = KernelLogisticRegression().fit(np.eye(4, dtype=np.float32), y)
    assert_array_equal(single.predict(np.eye(4, dtype=np.float32)), y)
    rare = np.r_[0, np.ones(99, dtype=int)]
    model = KernelLogisticRegression(C=1e-6, tol=1e-10).fit(np.arange(100.0)[:, None], rare)
    assert model.predict_proba([[50.0]])[0, 0] == pytest.approx(0.01, rel=1e-2)  # the share
    with pytest.raises(ValueError, match="1 class"):
        KernelLogisticRegression().fit(np.eye(3), [1, 1, 1])
    with pytest.raises(ValueError, match="NaN"):
        KernelLogisticRegression().fit([[np.nan], [1.0]], [0, 1])
