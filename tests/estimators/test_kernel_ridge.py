"""Kernel ridge regression: scikit-learn's contract and predictions, choice, weights, intervals."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn import kernel_ridge
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer.estimators import KernelRidge


@pytest.mark.sample(2)
@parametrize_with_checks(
    [
        KernelRidge(),
        KernelRidge(mc.Gaussian(1.0), penalty=0.1),
        KernelRidge("matern", fit_intercept=False, reduction="mean", penalty=1e-3),
        KernelRidge("rbf", max_norm=100.0),
        KernelRidge(n_landmarks=20, rule="pivoted"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def diabetes(n=200):
    X, y = load_diabetes(return_X_y=True)
    return 20.0 * X[:n], y[:n]


def curve(rng, n=80):
    X = rng.uniform(0.0, 6.0, (n, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.2 * rng.normal(size=n)


# --- beside scikit-learn --------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "poly"])
def test_predictions_are_those_of_scikit_learn(name, weighted, rng):
    X, y = diabetes()
    y = np.column_stack([y, y**2 / 100.0])
    w = rng.uniform(0.1, 3.0, len(y)) if weighted else None
    gamma = None if name == "linear" else 0.1
    ours = KernelRidge(name, penalty=0.3, gamma=gamma, fit_intercept=False).fit(X, y, w)
    theirs = kernel_ridge.KernelRidge(alpha=0.3, kernel=name, gamma=gamma).fit(X, y, w)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)


def test_the_mean_loss_has_a_penalty_times_the_weights(rng):
    X, y = diabetes()
    w = rng.uniform(0.1, 3.0, len(y))
    mean = KernelRidge("rbf", penalty=1e-3, reduction="mean").fit(X, y, w)
    total = KernelRidge("rbf", penalty=1e-3 * w.sum()).fit(X, y, w)
    assert_allclose(mean.predict(X), total.predict(X), rtol=1e-12)
    assert mean.certificate_.primal == pytest.approx(total.certificate_.primal / w.sum())
    assert mean.penalty_ == pytest.approx(1e-3)


def test_untuned_it_is_as_good_as_a_tuned_peer():
    X, y = load_diabetes(return_X_y=True)
    X, X_new, y, y_new = train_test_split(20.0 * X, y - 150.0, random_state=0)
    grid = {"alpha": np.logspace(-4, 2, 7), "gamma": np.logspace(-4, 0, 5)}
    peer = GridSearchCV(kernel_ridge.KernelRidge(kernel="rbf"), grid).fit(X, y)
    assert KernelRidge().fit(X, y).score(X_new, y_new) > peer.score(X_new, y_new) - 0.02


def test_columns_that_matter_little_count_little(rng):
    X = rng.normal(size=(200, 6))
    y = np.sin(3.0 * X[:, 2]) + 0.1 * rng.normal(size=200)
    model = KernelRidge(penalty="auto").fit(X, y)
    new = rng.normal(size=(200, 6))
    assert isinstance(model.kernel_, mc.kernels.Transformed)
    lengths = model.kernel_.point_map.array
    assert lengths[2] == 1.0
    assert np.delete(lengths, 2).min() > 3.0
    assert model.score(new, np.sin(3.0 * new[:, 2])) > 0.9
    units = [1.0, 1e6, 1e-3, 1.0, 1.0, 10.0]
    other = KernelRidge(scale_columns="std").fit(units * X, y)
    plain = KernelRidge(scale_columns="std").fit(X, y)
    assert_allclose(other.predict(units * new), plain.predict(new), rtol=1e-6)


def test_columns_are_not_scaled_for_few_rows_or_constants(rng):
    X = rng.normal(size=(60, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=60)
    few = KernelRidge().fit(X[:20], y[:20]).kernel_
    assert not isinstance(few, mc.kernels.Transformed)
    constant = KernelRidge().fit(X, np.ones(60)).kernel_  # no slope anywhere
    assert not isinstance(constant, mc.kernels.Transformed)
    X[:, 1] = 5.0
    model = KernelRidge().fit(X, y)
    assert model.kernel_.point_map.array[1] == 100.0  # the longest
    assert model.score(X, y) > 0.8


# --- weights, copies, outputs ---------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"n_landmarks": 30, "random_state": 0}])
def test_weights_are_repeated_rows(options, rng):
    X, y = diabetes(60)
    w = rng.integers(0, 4, 60)
    again = np.repeat(np.arange(60), w)
    weighted = KernelRidge(**options).fit(X, y, sample_weight=w)
    copies = KernelRidge(**options).fit(X[again], y[again])
    assert weighted.kernel_ == copies.kernel_
    assert_allclose(weighted.predict(X), copies.predict(X), rtol=1e-9)
    assert weighted.loo_error_ == pytest.approx(copies.loo_error_, rel=1e-9)
    assert_allclose(weighted.gcv_path_, copies.gcv_path_, rtol=1e-6)
    if not options:
        found = [model.predict_interval(X, 0.8) for model in (weighted, copies)]
        assert_allclose(*found, rtol=1e-8)
        found = [model.predict(X, return_std=True)[1] for model in (weighted, copies)]
        assert_allclose(*found, rtol=1e-8)


def test_outputs_are_fitted_together(rng):
    X, y = curve(rng)
    Y = np.column_stack([y, 3.0 - 2.0 * y, np.full(80, 7.0)])
    both = KernelRidge(mc.Gaussian(0.5), penalty=0.1).fit(X, Y)
    one = KernelRidge(mc.Gaussian(0.5), penalty=0.1).fit(X, y)
    assert_allclose(both.predict(X)[:, 0], one.predict(X), rtol=1e-9)
    assert_allclose(both.predict(X)[:, 1], 3.0 - 2.0 * one.predict(X), rtol=1e-9)
    assert_allclose(both.predict(X)[:, 2], 7.0)
    mean, sd = both.predict(X, return_std=True)
    assert mean.shape == sd.shape == (80, 3)
    assert_allclose(sd[:, 1], 2.0 * sd[:, 0], rtol=1e-9)
    assert both.predict_interval(X).shape == (80, 3, 2)
    assert both.loo_residuals().shape == (80, 3)
    assert len(both.element_) == 3
    assert KernelRidge().fit(X, Y).path_penalties_.shape == (45,)


# --- leave-one-out and intervals ------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("options", [{"penalty": 0.1}, {"penalty": "auto"}])
def test_leave_one_out_residuals_are_those_of_refits(intercept, options, rng):
    X, y = curve(rng, 30)
    X[3], X[4] = X[5], X[5]  # three copies, left out together
    w = rng.uniform(0.5, 2.0, 30)
    model = KernelRidge(mc.Laplace(1.0), fit_intercept=intercept, **options).fit(X, y, w)
    fixed = KernelRidge(mc.Laplace(1.0), fit_intercept=intercept, penalty=model.penalty_)
    found = model.loo_residuals()
    for i in (0, 4, 17):
        others = (X[:, 0] != X[i, 0]).nonzero()
        refit = fixed.fit(X[others], y[others], w[others])
        assert found[i] == pytest.approx(y[i] - refit.predict(X[[i]])[0], rel=1e-8)
    assert model.loo_error_ == pytest.approx(w @ found**2 / w.sum())


def test_the_penalty_has_the_smallest_error_of_the_path(rng):
    X, y = curve(rng)
    model = KernelRidge(mc.Gaussian(0.5)).fit(X, y)
    at = int(np.argmin(model.loo_path_))
    assert model.penalty_ == model.path_penalties_[at]
    assert model.loo_path_[at, 0] == pytest.approx(model.loo_error_)
    fixed = KernelRidge(mc.Gaussian(0.5), penalty=model.penalty_).fit(X, y)
    assert fixed.loo_error_ == pytest.approx(model.loo_error_, rel=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_intervals_are_those_of_the_jackknife_plus(intercept, rng):
    X, y = curve(rng, 25)
    new = np.array([[1.0], [9.0]])
    make = KernelRidge(mc.Gaussian(0.7), penalty=0.1, fit_intercept=intercept)
    low, high = np.empty((2, 25, 2))
    for i in range(25):
        rest = np.arange(25) != i
        make.fit(X[rest], y[rest])
        error = abs(y[i] - make.predict(X[[i]])[0])
        low[i], high[i] = make.predict(new) - error, make.predict(new) + error
    found = make.fit(X, y).predict_interval(new, 0.8)
    assert_allclose(found[:, 0], np.sort(low, axis=0)[4], rtol=1e-8)  # floor(0.2 * 26) = 5th
    assert_allclose(found[:, 1], np.sort(high, axis=0)[20], rtol=1e-8)  # ceil(0.8 * 26) = 21st
    assert np.isinf(make.predict_interval(new, 0.99)).all()


def test_intervals_cover_new_targets(rng):
    X, y = diabetes(442)
    covered = []
    for seed in range(4):
        A, B, a, b = train_test_split(X, y, test_size=0.5, random_state=seed)
        ends = KernelRidge(mc.Gaussian(4.0), penalty=1.0).fit(A, a).predict_interval(B, 0.8)
        covered.append(np.mean((ends[:, 0] <= b) & (b <= ends[:, 1])))
    assert np.mean(covered) >= 0.8 - 2.0 * np.sqrt(0.16 / 884)


def test_standard_deviations_are_those_of_the_gaussian_process(rng):
    X, y = curve(rng, 40)
    k, lam, new = mc.Gaussian(0.5), 0.2, np.array([[1.0], [9.0]])
    model = KernelRidge(k, penalty=lam, fit_intercept=False).fit(X, y)
    G = np.linalg.inv(k(X) + lam * np.eye(40))
    scale = np.mean((G @ y) ** 2 / np.diag(G))
    left = 1.0 - np.einsum("ji,ik,jk->j", k(new, X), G, k(new, X)) + lam
    assert_allclose(model.predict(new, return_std=True)[1], np.sqrt(scale * left), rtol=1e-8)
    loo = model.loo_residuals()
    assert np.mean(loo**2 * np.diag(G) / scale) == pytest.approx(1.0)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("penalty", [0.0, 1e-30, 1e-6, 1.0])
def test_standard_deviations_at_landmarks_that_are_all_equal(rows, penalty):
    """Features without their mean are zero: the variance is that of the Gaussian process."""
    X, y, new = np.ones((rows, 2)), np.arange(rows) + 1.0, np.array([[1.0, 1.0], [2.0, 2.0]])
    options = {"penalty": penalty, "n_landmarks": 10, "random_state": 0}
    with_intercept = KernelRidge(mc.Gaussian(1.0), **options).fit(X, y)
    assert with_intercept._landmarks.variance(*_to_landmarks(with_intercept, new)) == pytest.approx(
        np.array([0.0, 2.0 - 2.0 * np.exp(-1.0)]) + penalty / rows, abs=1e-12
    )
    without = KernelRidge(mc.Gaussian(1.0), fit_intercept=False, **options).fit(X, y)
    k = np.exp(-1.0)
    ridge = max(penalty, rows**2 * np.finfo(float).eps)
    expected = 1.0 - np.array([1.0, k**2]) * rows / (rows + ridge)
    assert without._landmarks.variance(*_to_landmarks(without, new)) == pytest.approx(
        expected, abs=1e-12
    )


def _to_landmarks(model, new):
    return model.kernel_(np.ones((1, 2)), new), np.ones(len(new))


def test_an_intercept_of_unknown_value_is_a_constant_kernel_of_large_variance(rng):
    X, y = curve(rng, 40)
    new = np.array([[1.0], [9.0]])
    free = KernelRidge(mc.Gaussian(0.5), penalty=0.2).fit(X, y)
    wide = KernelRidge(mc.Gaussian(0.5) + 1e7, penalty=0.2, fit_intercept=False).fit(X, y)
    for a, b in zip(*(m.predict(new, return_std=True) for m in (free, wide)), strict=True):
        assert_allclose(a, b, rtol=1e-4)


# --- ways to fit ----------------------------------------------------------------------------------


def test_conjugate_gradients_agree_with_cholesky(monkeypatch, rng):
    X, y = curve(rng, 300)
    direct = KernelRidge(mc.Gaussian(0.5), penalty=0.1).fit(X, y)
    monkeypatch.setattr("mercer.linalg._solve.DIRECT_UP_TO", 100)
    iterated = KernelRidge(mc.Gaussian(0.5), penalty=0.1, tol=1e-10).fit(X, y)
    assert_allclose(iterated.predict(X), direct.predict(X), atol=1e-7)
    assert 0.0 <= iterated.certificate_.relative_gap < 1e-12
    with pytest.warns(mc.MercerWarning, match=r"max_iter.*duality gap"):
        short = KernelRidge(mc.Laplace(0.1), penalty=1e-6, max_iter=1, tol=1e-14).fit(X, y)
    assert short.certificate_.gap > 0.0


def test_all_rows_as_landmarks_are_the_exact_fit(rng):
    X, y = curve(rng)
    exact = KernelRidge(mc.Laplace(1.0), penalty=0.1).fit(X, y)
    low = KernelRidge(mc.Laplace(1.0), penalty=0.1, n_landmarks=80).fit(X, y)
    few = KernelRidge(mc.Gaussian(0.5), n_landmarks=15, random_state=0).fit(X, y)
    assert_allclose(low.predict(X), exact.predict(X), atol=1e-9)
    assert_allclose(low.loo_residuals(), exact.loo_residuals(), atol=1e-9)
    assert low.certificate_.primal == pytest.approx(exact.certificate_.primal)
    assert len(few.element_.points) == 15
    assert few.certificate_.relative_gap < 1e-10
    with pytest.raises(mc.InputError, match="n_landmarks=None"):
        few.predict_interval(X)


@pytest.mark.parametrize("intercept", [True, False])
def test_standard_deviations_with_landmarks(intercept, rng):
    X, y = curve(rng)
    new, w = np.array([[1.0], [9.0]]), rng.uniform(0.5, 2.0, 80)
    options = {"penalty": 0.1, "fit_intercept": intercept}
    exact = KernelRidge(mc.Laplace(1.0), **options).fit(X, y, w)
    low = KernelRidge(mc.Laplace(1.0), n_landmarks=80, **options).fit(X, y, w)
    assert_allclose(low.predict(new, True)[1], exact.predict(new, True)[1], rtol=1e-8)
    few = KernelRidge(mc.Gaussian(0.5), n_landmarks=12, random_state=0, **options).fit(X, y, w)
    full = KernelRidge(mc.Gaussian(0.5), **options).fit(X, y, w)
    assert_allclose(few.predict(new, True)[1], full.predict(new, True)[1], rtol=0.2)


def test_more_rows_than_the_path_takes(monkeypatch, rng):
    X, y = curve(rng, 300)
    monkeypatch.setattr("mercer.estimators._ridge_choice.PENALTY_ROWS", 100)
    model = KernelRidge().fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.loo_residuals().shape == (300,)


def test_a_precomputed_matrix_is_the_kernel(rng):
    X, y = curve(rng)
    k, new = mc.Gaussian(0.5), X[:7] + 0.1
    rows = KernelRidge(k).fit(X, y)
    matrix = KernelRidge("precomputed").fit(k(X), y)
    assert_allclose(matrix.predict(k(new, X)), rows.predict(new), atol=1e-6)
    found = matrix.predict_interval(k(new, X))
    assert_allclose(found, rows.predict_interval(new), atol=1e-6)
    with pytest.raises(mc.InputError, match="return_std"):
        matrix.predict(k(new, X), return_std=True)


def test_frames_and_sparse_rows(rng):
    X, y = diabetes(60)
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    model = KernelRidge().fit(frame, pd.Series(y))
    assert_allclose(model.predict(frame), KernelRidge().fit(X, y).predict(X))
    k = mc.Gaussian(4.0)
    sparse = KernelRidge(k, penalty=0.1).fit(csr_array(X), y)
    dense = KernelRidge(k, penalty=0.1).fit(X, y)
    assert_allclose(sparse.predict(csr_array(X)), dense.predict(X), rtol=1e-6)
    assert np.isfinite(KernelRidge().fit(csr_array(X), y).predict(X)).all()


def test_strings_can_be_fitted():
    words = np.array(["aab", "aba", "abab", "aabb", "xyx", "yxy", "xxyy", "xyxy"])
    model = KernelRidge(mc.Spectrum(1)).fit(words, np.repeat([0.0, 1.0], 4))
    first, second = model.predict(["abba", "yyx"])
    assert first < 0.2 < 0.8 < second


def test_the_element_is_the_function():
    X, y = diabetes()
    model = KernelRidge(mc.Gaussian(4.0)).fit(X, y)
    assert_allclose(model.element_(X) + model.intercept_, model.predict(X))
    small = mc.compress(model.element_, 40).element
    assert np.abs(model.element_(X) - small(X)).max() <= model.element_.distance(small) + 1e-8


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (KernelRidge(penalty=-1.0), "penalty must be >= 0"),
        (KernelRidge(penalty="big"), "penalty must be"),
        (KernelRidge(penalty=1.0, max_norm=1.0), "not both"),
        (KernelRidge(max_norm=-1.0), "max_norm must be > 0"),
        (KernelRidge(reduction="max"), "reduction must be one of"),
        (KernelRidge(fit_intercept="no"), "fit_intercept"),
        (KernelRidge(n_landmarks=0), "n_landmarks"),
        (KernelRidge(tol=-1.0), "tol must be > 0"),
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused(model, match):
    X, y = diabetes(30)
    with pytest.raises(mc.InputError, match=match):
        model.fit(X, y)


def test_wrong_coverage_is_refused(rng):
    X, y = curve(rng)
    model = KernelRidge(mc.Gaussian(1.0), penalty=1.0).fit(X, y)
    with pytest.raises(mc.InputError, match=r"coverage must lie in \(0, 1\)"):
        model.predict_interval(X, 90)


def test_hard_inputs(rng):
    X, y = curve(rng, 40)
    alone = KernelRidge().fit([[1.0, 2.0]], [3.0])
    assert_allclose(alone.predict([[5.0, 5.0]]), 3.0)
    assert alone.loo_error_ == np.inf
    equal = KernelRidge().fit(np.ones((4, 2)), [0.0, 1.0, 2.0, 3.0])
    assert_allclose(equal.predict(np.ones((2, 2))), 1.5)
    constant = KernelRidge().fit(X, np.full(40, 1e9))
    assert_allclose(constant.predict(X), 1e9)
    plain = KernelRidge().fit(X, y)
    shifted = KernelRidge().fit(X, y + 1e9)
    assert_allclose(shifted.predict(X) - 1e9, plain.predict(X), atol=1e-5)
    few = [
        KernelRidge(mc.Gaussian(1.0), penalty=1e-8, n_landmarks=20, random_state=0).fit(X, y + a)
        for a in (0.0, 1e9)
    ]
    assert_allclose(few[1].predict(X) - 1e9, few[0].predict(X), atol=1e-4)
    assert few[1].certificate_.relative_gap < 1e-6
    far = KernelRidge().fit(X + 1e8, y)
    assert_allclose(far.predict(X + 1e8), plain.predict(X), atol=1e-5)
    for unit in (1e-60, 1e60):
        other = KernelRidge().fit(unit * X, unit * y)
        assert_allclose(other.predict(unit * X) / unit, plain.predict(X), rtol=1e-6)
    small = KernelRidge().fit(X, 1e-200 * y)
    assert np.abs(small.predict(X)).max() < 1e-199
    single = KernelRidge().fit(X.astype(np.float32), y.astype(np.float32))
    assert_allclose(single.predict(X), plain.predict(X), atol=1e-3)
    wide = KernelRidge().fit(np.eye(6, 500), np.arange(6.0))
    assert np.isfinite(wide.predict(np.eye(6, 500))).all()


def test_penalty_zero_interpolates_or_fits_least_squares(rng):
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, 2.0, 3.0] + 5.0 + 0.1 * rng.normal(size=30)
    linear = KernelRidge(mc.Linear(), penalty=0.0).fit(X, y)
    least = np.linalg.lstsq(np.column_stack([X, np.ones(30)]), y)[0]
    assert_allclose(linear.predict(np.eye(3)), least[:3] + least[3], rtol=1e-8)
    through = KernelRidge(mc.Laplace(1.0), penalty=0.0).fit(X, y)
    assert_allclose(through.predict(X), y, rtol=1e-8)


@pytest.mark.parametrize("penalty", ["auto", 2.0, 1e-9])
@pytest.mark.parametrize("kernel", ["auto", mc.Laplace(3.0), mc.Linear()], ids=repr)
def test_a_single_row_has_no_interval(kernel, penalty):
    model = KernelRidge(kernel, penalty=penalty).fit([[1.0, 2.0]], [0.3])
    assert model.loo_residuals().tolist() == [np.inf]
    assert model.predict_interval([[0.0, 5.0]]).tolist() == [[-np.inf, np.inf]]


@pytest.mark.parametrize("limit", [1e-300, 1e-200, 1e-3])
def test_a_norm_is_met_however_small(limit, rng):
    X, y = curve(rng, 20)
    model = KernelRidge(max_norm=limit).fit(X, y)
    assert_allclose(model.element_.norm() / limit, 1.0, rtol=1e-9)


def test_a_norm_that_is_too_small_is_refused(rng):
    X, y = curve(rng, 20)
    with pytest.raises(mc.InputError, match="max_norm 5e-324 is too small for these targets"):
        KernelRidge(max_norm=5e-324).fit(X, 1e3 * y)


@pytest.mark.parametrize("options", [{}, {"n_landmarks": 1}], ids=["all rows", "landmarks"])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_single_distinct_row_has_an_infinite_deviation(options, penalty, rows):
    model = KernelRidge(mc.Gaussian(1.0), penalty=penalty, random_state=0, **options)
    model.fit(np.zeros((rows, 1)), np.full(rows, 2.0))
    mean, deviation = model.predict([[0.0], [1.0]], return_std=True)
    assert_allclose(mean, 2.0)
    assert deviation.tolist() == [np.inf, np.inf]


def test_landmarks_of_a_single_row():
    model = mc.KernelRidge(n_landmarks=2, random_state=0).fit([[1.0, 2.0]], [-1.5])
    mean, deviation = model.predict([[0.0, 0.0]], return_std=True)
    assert mean[0] == -1.5
    assert not np.isfinite(deviation[0])


@pytest.mark.parametrize("scale", [0.01, 0.03, 0.3])
def test_the_dual_is_below_the_primal_where_squares_of_coefficients_underflow(scale):
    """k(x, x) up to 1e208: coefficients of 1e-209, whose squares count."""
    X, y = np.random.default_rng(8).normal(size=(2, 2)), np.array([-1.5, -0.5])
    for w in (None, [1.0, 2.0]):
        model = mc.KernelRidge(kernel=mc.Exponential(scale)).fit(X, y, sample_weight=w)
        found = model.certificate_
        assert found.dual <= found.primal * (1.0 + 1e-12)
        assert found.dual == pytest.approx(found.primal, rel=1e-6)
