"""Support vector machines: scikit-learn's contract and predictions, weights, limits."""

from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer.estimators import (
    SVC,
    SVR,
    KernelLogisticRegression,
    KernelMachine,
    NuSVC,
    NuSVR,
    OneClassSVM,
)


@pytest.mark.sample(2)
@parametrize_with_checks(
    [
        SVC(),
        SVC(mc.Laplace(2.0), C=10.0, class_weight="balanced", fit_intercept=False),
        SVC("matern", C=100.0),
        NuSVC(nu=0.3),
        SVR(),
        SVR("laplacian", epsilon=0.0, fit_intercept=False),
        NuSVR(),
        OneClassSVM(nu=0.2),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# --- beside scikit-learn --------------------------------------------------------------------------


def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_classes_are_those_of_scikit_learn(C):
    X, y = wine()
    ours = SVC("rbf", C=C, gamma=0.05, scale_columns="none", tol=1e-9).fit(X[::2], y[::2])
    theirs = svm.SVC(C=C, gamma=0.05, tol=1e-9, break_ties=True).fit(X[::2], y[::2])
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_array_equal(ours.support_, np.sort(theirs.support_))


def test_many_classes_are_solved_pair_by_pair(rng):
    """More problems than threads, side by side."""
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 7, size=300)
    k = mc.Laplace(1.0)
    together = SVC(k, n_jobs=2, tol=1e-6).fit(X, y)
    assert len(together.certificate_) == 21
    for number, (a, b) in ((0, (0, 1)), (20, (5, 6))):
        pair = (y == a) | (y == b)
        alone = SVC(k, tol=1e-6).fit(X[pair], y[pair])
        assert together.certificate_[number] == alone.certificate_
        assert together.intercept_[number] == alone.intercept_[0]


def test_two_classes_have_the_sign_of_the_second():
    X, y = wine()
    X, y = X[y > 0], np.array(["b", "a"])[y[y > 0] - 1]
    ours = SVC("rbf", gamma=0.05, scale_columns="none", tol=1e-9).fit(X, y)
    theirs = svm.SVC(gamma=0.05, tol=1e-9).fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (NuSVC("rbf", nu=0.2, gamma=0.05), svm.NuSVC(nu=0.2, gamma=0.05, break_ties=True)),
        (SVR("rbf", C=3.0, epsilon=0.2, gamma=0.05), svm.SVR(C=3.0, epsilon=0.2, gamma=0.05)),
        (NuSVR("rbf", C=3.0, nu=0.4, gamma=0.05), svm.NuSVR(C=3.0, nu=0.4, gamma=0.05)),
        (OneClassSVM("rbf", nu=0.2, gamma=0.05), svm.OneClassSVM(nu=0.2, gamma=0.05)),
    ],
    ids=["NuSVC", "SVR", "NuSVR", "OneClassSVM"],
)
def test_predictions_are_those_of_scikit_learn(ours, theirs):
    X, y = wine()
    ours.set_params(scale_columns="none", tol=1e-9).fit(X[::2], y[::2])
    theirs.set_params(tol=1e-9).fit(X[::2], y[::2])
    method = "decision_function" if hasattr(theirs, "decision_function") else "predict"
    assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), atol=1e-4)


def test_class_weights_are_factors_of_C():
    X, y = wine()
    weights = {0: 2.0, 1: 0.5, 2: 1.0}
    ours = SVC("rbf", gamma=0.05, class_weight=weights, scale_columns="none", tol=1e-9).fit(X, y)
    theirs = svm.SVC(gamma=0.05, class_weight=weights, tol=1e-9).fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


# --- what users do --------------------------------------------------------------------------------


def test_a_precomputed_matrix_is_the_kernel():
    X, y = wine()
    k = mc.Gaussian(3.0)
    rows = SVC(k, tol=1e-9).fit(X[::2], y[::2])
    matrix = SVC("precomputed", tol=1e-9).fit(k(X[::2]), y[::2])
    assert_allclose(matrix.decision_function(k(X, X[::2])), rows.decision_function(X), atol=1e-6)


def test_strings_can_be_classified():
    words = np.array(["aab", "aba", "abab", "aabb", "xyx", "yxy", "xxyy", "xyxy"])
    y = np.repeat([0, 1], 4)
    model = SVC(mc.Spectrum(1)).fit(words, y)
    assert_array_equal(model.predict(["abba", "yyx"]), [0, 1])


@pytest.mark.parametrize("make", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_weights_are_repeated_rows(make, rng):
    X, y = wine()
    y = y.astype(float) if make in (SVR, NuSVR) else y
    w = rng.integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), w)
    args = () if make is OneClassSVM else (y,)
    repeated = () if make is OneClassSVM else (y[again],)
    weighted = make().fit(X, *args, sample_weight=w)
    copies = make().fit(X[again], *repeated)
    method = "predict" if make in (SVR, NuSVR) else "decision_function"
    assert_allclose(getattr(weighted, method)(X), getattr(copies, method)(X), rtol=1e-10)


def test_warm_starts_go_on(rng):
    X, y = rng.normal(size=(400, 2)), rng.choice([0, 1], 400)
    model = SVC(mc.Laplace(1.0), C=10.0, max_iter=3, tol=1e-8, warm_start=True)
    with pytest.warns(mc.MercerWarning, match=r"stopped at max_iter.*duality gap is"):
        model.fit(X, y)
    gap = model.certificate_.relative_gap
    model.set_params(max_iter=1000).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-8 < gap


@pytest.mark.parametrize(
    ("model", "name", "path"),
    [
        (SVC(C=10.0), "C", (11.0, 12.0, 9.0)),
        (SVR(C=10.0), "C", (11.0, 12.0, 9.0)),
        (NuSVC(nu=0.5), "nu", (0.52, 0.48)),
        (NuSVR(nu=0.5), "nu", (0.52, 0.48)),
        (OneClassSVM(nu=0.2), "nu", (0.22, 0.18)),
    ],
    ids=repr,
)
def test_a_path_is_that_of_fresh_fits(model, name, path, rng):
    """Bounds and sums change, up and down, and the start satisfies the new ones."""
    X, y = rng.normal(size=(600, 2)), rng.choice([0, 1], 600)
    model = clone(model).set_params(kernel=mc.Laplace(1.0), tol=1e-8, warm_start=True).fit(X, y)
    rounds = []
    for value in path:
        model.set_params(**{name: value}).fit(X, y)
        fresh = clone(model).set_params(warm_start=False).fit(X, y)
        assert model.certificate_.dual == pytest.approx(fresh.certificate_.dual, rel=1e-7)
        assert model.certificate_.feasibility < 1e-9 * np.abs(model.dual_coef_).sum()
        assert model.dual_coef_.sum() == pytest.approx(fresh.dual_coef_.sum(), abs=1e-9)
        rounds.append((model.n_iter_, fresh.n_iter_))
    assert sum(warm for warm, _ in rounds) < sum(cold for _, cold in rounds)


def test_a_warm_start_with_other_labels_is_right(rng):
    X, y = rng.normal(size=(200, 2)), rng.choice([0, 1], 200)
    model = SVC(mc.Laplace(1.0), C=10.0, tol=1e-8, warm_start=True).fit(X, y)
    other = np.where(rng.random(200) < 0.3, 1 - y, y)
    model.fit(X, other)
    fresh = SVC(mc.Laplace(1.0), C=10.0, tol=1e-8).fit(X, other)
    assert model.certificate_.dual == pytest.approx(fresh.certificate_.dual, rel=1e-7)
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9)


def test_time_runs_out():
    X, y = wine()
    with pytest.warns(mc.MercerWarning, match="duality gap"):
        model = SVC(time_limit=1e-9).fit(X, y)
    assert model.predict(X).shape == y.shape


def test_probabilities_do_not_depend_on_chance():
    X, y = wine()
    fits = [CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y) for _ in range(2)]
    assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))
    assert log_loss(y, fits[0].predict_proba(X)) < 0.2


def test_the_element_is_the_function_and_comes_back():
    X, y = wine()
    model = SVC(C=10.0).fit(X[y < 2], y[y < 2])
    f = model.element_
    assert_allclose(f(X) + model.intercept_[0], model.decision_function(X), atol=1e-12)
    small = mc.compress(f, 10)
    worst = np.abs(f(X) - small.element(X)).max()
    assert worst <= f.distance(small.element) + 1e-12  # k(x, x) = 1
    assert mc.preimage(f).points.shape == (1, 13)


@pytest.mark.parametrize("kernel", [mc.Gaussian(5.0), "precomputed"], ids=repr)
def test_a_copy_with_a_compressed_element_predicts(kernel):
    X, y = wine()
    rows = mc.Gaussian(5.0)(X) if kernel == "precomputed" else X
    model = SVC(kernel, C=10.0).fit(rows, y)
    found = mc.compress(model.element_, 25)
    small = copy(model)
    small.element_ = found.element
    change = np.abs(small._values(rows) - model._values(rows)).max(axis=0)
    assert np.all(change <= found.error + 1e-9)  # k(x, x) = 1, three pairs of classes
    assert change.min() > 0.0
    assert np.mean(small.predict(rows) == model.predict(rows)) > 0.95
    assert len(model.element_.points) == len(model.support_) > 25


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (SVC(C=-1.0), "C must be > 0"),
        (SVC(C=np.nan), "C must be"),
        (SVC(tol=0.0), "tol must be > 0"),
        (SVC(max_iter=0), "max_iter"),
        (SVC(time_limit=-1.0), "time_limit"),
        (SVC(fit_intercept="no"), "fit_intercept"),
        (SVR(epsilon=-0.1), "epsilon"),
        (NuSVC(nu=1.5), r"nu must lie in \(0, 1\]"),
        (NuSVC(nu=0.99), "nu is too large"),
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused(model, match):
    X, y = wine()
    with pytest.raises(mc.InputError, match=match):
        model.fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        SVC(), SVC(C=1e160), NuSVC(nu=0.1), SVR(), NuSVR(), OneClassSVM(), KernelMachine(C=1e160),
        KernelLogisticRegression(C=1e160),
    ],
    ids=repr,
)  # fmt: skip
def test_weights_whose_squares_overflow_are_refused(model):
    X, y = wine()
    with pytest.raises(mc.InputError, match="C times the largest weight must be at most 1e"):
        model.fit(X, y, sample_weight=np.full(len(y), 1e300))


@pytest.mark.parametrize(
    "model", [SVC, NuSVR, OneClassSVM, KernelLogisticRegression, KernelMachine]
)
def test_kernel_values_that_overflow_are_refused(model, rng):
    with pytest.raises(mc.InputError, match="overflow"):
        model(mc.Exponential(0.01)).fit(rng.normal(size=(6, 7)), np.arange(6) % 2)


def test_decisions_that_overflow_have_a_class(rng):
    X, far = rng.normal(size=(9, 2)), 1e60 * rng.normal(size=(5, 2))
    model = SVC(mc.Polynomial(9)).fit(X, np.arange(9) % 3)
    with np.errstate(all="ignore"):
        assert not np.isfinite(model.element_(far)).all()
    assert model.decision_function(far).shape == (5, 3)
    assert set(model.predict(far)) <= {0, 1, 2}


def test_a_class_without_weight_is_left_out_of_a_hard_margin():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = SVC(mc.Linear(), C=np.inf, class_weight={0: 0.0, 1: 1.0, 2: 1.0})
    assert_array_equal(model.fit(X, [0, 1, 2, 2]).predict(X[1:]), [1, 2, 2])
    assert model.certificate_[2].relative_gap < 1e-4


def test_hard_inputs():
    y = [0, 1, 0, 1]
    same = SVC().fit(np.ones((4, 2)), y)  # nothing to learn
    assert set(same.predict(np.ones((3, 2)))) <= {0, 1}
    tiny = SVC().fit(np.array([[0.0], [3.0], [1.0], [2.0]]) * 1e-60, [0, 1, 0, 1])
    assert_array_equal(tiny.predict(np.array([[0.1], [2.9]]) * 1e-60), [0, 1])
    far = SVC().fit(np.array([[0.0], [3.0], [1.0], [2.0]]) + 1e9, [0, 1, 0, 1])
    assert_array_equal(far.predict(np.array([[0.0], [3.0]]) + 1e9), [0, 1])
    wide = SVC().fit(np.eye(4, 1000), y)
    assert_array_equal(wide.predict(np.eye(4, 1000)), y)
