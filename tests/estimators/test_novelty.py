"""KernelNovelty: scores of rows left out, thresholds, scikit-learn's contract, hard inputs."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer import datasets
from mercer.estimators._novelty import KernelNovelty


@pytest.mark.sample(2)
@parametrize_with_checks(
    [
        KernelNovelty(),
        KernelNovelty(scale_columns="none", penalty=1.0),
        KernelNovelty(mc.Laplace(2.0), false_alarm_rate=0.1, n_landmarks=8, random_state=0),
        KernelNovelty("poly", false_alarm_rate=0.2),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


UNITS = [1e-3, 1.0, 1e6]


def ring_and_others(rng, n=200, m=60):
    ring = datasets.ring(n, random_state=0).points
    apart = rng.uniform(-2.0, 2.0, (20 * m, 2))
    apart = apart[np.abs(np.linalg.norm(apart, axis=1) - 1.0) > 0.3][:m]
    return ring, apart


# --- scores ---------------------------------------------------------------------------------------


def scores_by_definition(kernel, X, Y, penalty):
    """-a <h, (C + a)^-1 h> with the scatter C, on the features of all rows."""
    Z = np.vstack([X, Y])
    values, vectors = np.linalg.eigh(kernel(Z))
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    mean, X, Y = F[: len(X)].mean(axis=0), F[: len(X)], F[len(X) :]
    a = penalty * np.mean(np.sum((X - mean) ** 2, axis=1))
    C = (X - mean).T @ (X - mean) + a * np.eye(len(Z))
    return -a * np.sum((Y - mean) * np.linalg.solve(C, (Y - mean).T).T, axis=1)


KERNELS = [mc.Gaussian(0.7), mc.Laplace(1.0), mc.Polynomial(3, 2.0, 1.0), mc.Linear()]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("penalty", [1e-3, 0.1, 5.0])
def test_the_score_of_a_new_row_is_minus_a_times_its_mahalanobis_distance(kernel, penalty, rng):
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(9, 3))
    model = KernelNovelty(kernel, penalty=penalty).fit(X)
    expected = scores_by_definition(kernel, X, Y, penalty)
    np.testing.assert_allclose(model.score_samples(Y), expected, rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_training_row_is_scored_exactly_as_if_the_model_had_not_seen_it(kernel, rng):
    X = rng.normal(size=(40, 3))
    model = KernelNovelty(kernel).fit(X)
    scores = model.score_samples(X)
    for i in range(0, 40, 7):
        rest = np.delete(X, i, axis=0)
        other = KernelNovelty(kernel).fit(rest)
        # the same penalty in absolute terms
        again = KernelNovelty(kernel, penalty=0.1 * model.penalty_ / other.penalty_).fit(rest)
        assert scores[i] == pytest.approx(again.score_samples(X[i : i + 1])[0], rel=1e-8)


def test_a_scaled_training_row_is_scored_nearly_as_if_the_model_had_not_seen_it(rng):
    X = rng.normal(size=(60, 3)) * UNITS
    X[0, 0] = 9e-3
    scores = KernelNovelty(scale_columns="std").fit(X).score_samples(X)
    again = [
        KernelNovelty(scale_columns="std")
        .fit(np.delete(X, i, axis=0))
        .score_samples(X[i : i + 1])[0]
        for i in range(60)
    ]
    np.testing.assert_allclose(scores, again, rtol=0.15)  # found: 0.08
    assert np.corrcoef(scores, again)[0, 1] > 0.998


def test_the_linear_kernel_gives_the_mahalanobis_distance_in_the_plane(rng):
    X = rng.normal(size=(500, 2)) @ [[2.0, 1.0], [0.0, 0.3]]
    Y = rng.normal(size=(20, 2))
    model = KernelNovelty("linear", penalty=1e-6).fit(X)
    h = Y - X.mean(axis=0)
    distance = np.sum(h * np.linalg.solve(np.cov(X.T), h.T).T, axis=1)
    np.testing.assert_allclose(-model.score_samples(Y) / model.penalty_ * 499, distance, rtol=1e-3)


def test_a_small_penalty_gives_the_error_of_kernel_pca(rng):
    X, Y = rng.normal(size=(30, 3)), 2.0 * rng.normal(size=(9, 3))
    model = KernelNovelty(mc.Laplace(1.0), penalty=1e-9).fit(X)
    pca = mc.KernelPCA(kernel=mc.Laplace(1.0)).fit(X)
    np.testing.assert_allclose(model.score_samples(Y), pca.score_samples(Y), rtol=1e-5)


def test_a_lonely_training_row_is_an_outlier_though_a_component_is_its_own(rng):
    ring, _ = ring_and_others(rng)
    X = np.vstack([ring, [[3.0, 3.0]], [[-4.0, 0.0]]])
    model = KernelNovelty(penalty=1e-3).fit(X)
    assert np.argsort(model.score_samples(X))[:2].tolist() in ([200, 201], [201, 200])
    assert model.predict(X)[-2:].tolist() == [-1, -1]


@pytest.mark.parametrize("large", [1.0, 1e6])
def test_an_outlier_in_a_small_column_is_found_beside_a_large_one(large, rng):
    X = rng.normal(size=(300, 2)) * [large, 1.0]
    model = KernelNovelty().fit(X)
    assert model.predict([[0.0, 8.0], [0.0, 0.0]]).tolist() == [-1, 1]
    plain = KernelNovelty(scale_columns="none").fit(X)
    assert plain.predict([[0.0, 8.0]])[0] == (-1 if large == 1.0 else 1)


def test_landmarks_are_nearly_as_good_and_all_of_them_exact(rng):
    ring, apart = ring_and_others(rng)
    exact = KernelNovelty().fit(ring)
    every = KernelNovelty(n_landmarks=200, random_state=0).fit(ring)
    some = KernelNovelty(n_landmarks=60, random_state=0).fit(ring)
    both = np.vstack([ring, apart])
    np.testing.assert_allclose(every.score_samples(both), exact.score_samples(both), rtol=1e-5)
    assert every.offset_ == pytest.approx(exact.offset_, rel=1e-5)
    np.testing.assert_allclose(some.score_samples(both), exact.score_samples(both), atol=1e-3)
    assert (some.predict(apart) == -1).mean() > 0.95


def test_many_rows_take_landmarks_by_themselves(rng):
    X = rng.normal(size=(2500, 2))
    model = KernelNovelty(random_state=0).fit(X)
    assert model.subspace_.origin.points.shape[0] <= 1000
    assert model.predict([[0.0, 0.0], [6.0, 6.0]]).tolist() == [1, -1]
    assert (model.predict(rng.normal(size=(2000, 2))) == -1).mean() == pytest.approx(0.05, abs=0.02)


# --- thresholds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.25, 0.5])
def test_a_training_row_is_flagged_if_its_rank_is_above_the_rate(rate, rng):
    X = rng.normal(size=(199, 3))
    model = KernelNovelty(false_alarm_rate=rate).fit(X)
    errors = np.sort(-model.score_samples(X))
    assert model.offset_ == -errors[int(np.ceil((1.0 - rate) * 200)) - 1]
    assert (model.predict(X) == -1).sum() == round(200 * rate) - 1


@pytest.mark.parametrize("options", [{}, {"n_landmarks": 60}, {"n_landmarks": 9, "rule": "kmeans"}])
@pytest.mark.parametrize(("n", "d"), [(100, 2), (100, 50), (300, 5), (300, 20)])
def test_new_rows_like_the_training_rows_are_flagged_at_the_stated_rate(n, d, options):
    rng, rate, seeds, new = np.random.default_rng(0), 0.1, 20, 1000
    found = [
        np.mean(
            KernelNovelty(false_alarm_rate=rate, random_state=seed, **options)
            .fit(rng.standard_t(5, size=(n, d)))
            .predict(rng.standard_t(5, size=(new, d)))
            == -1
        )
        for seed in range(seeds)
    ]
    counted = n // 2 if options else n  # rows from which the threshold comes
    error = np.sqrt(rate * (1.0 - rate) * (1.0 / counted + 1.0 / new) / seeds)
    assert abs(np.mean(found) - rate) < 3.0 * error + rate / counted  # ranks are whole numbers


def test_heavy_tails_and_scaled_columns_do_not_raise_the_rate(rng):
    # a large value makes the standard deviation of its own column large
    units = 10.0 ** np.linspace(-3.0, 3.0, 50)
    found = [
        np.mean(
            KernelNovelty()
            .fit(rng.standard_t(4, (100, 50)) * units)
            .predict(rng.standard_t(4, (500, 50)) * units)
            == -1
        )
        for _ in range(20)
    ]
    assert 0.03 < np.mean(found) < 0.06  # found: 0.04; with the scales of all rows 0.08


def test_with_few_rows_the_largest_error_is_the_threshold(rng):
    X = rng.normal(size=(10, 2))
    model = KernelNovelty(false_alarm_rate=0.05).fit(X)
    assert model.offset_ == model.score_samples(X).min()
    assert (model.predict(X) == 1).all()


@pytest.mark.parametrize("rate", [0.0, 0.6, -0.1, "auto", None, [0.1], np.nan])
def test_what_the_rate_may_be(rate):
    with pytest.raises(mc.InputError, match=r"false_alarm_rate must lie in \(0, 0.5\]"):
        KernelNovelty(false_alarm_rate=rate).fit([[0.0], [1.0], [2.0]])


@pytest.mark.parametrize("penalty", [0.0, -1.0, "auto", None, np.inf])
def test_what_the_penalty_may_be(penalty):
    with pytest.raises((mc.InputError, TypeError), match="penalty"):
        KernelNovelty(penalty=penalty).fit([[0.0], [1.0], [2.0]])


# --- against others -------------------------------------------------------------------------------


def test_better_than_the_peers_on_a_ring_and_on_digits(rng):
    ring, apart = ring_and_others(rng)
    fresh = datasets.ring(200, random_state=1).points
    X, y = load_digits(return_X_y=True)
    rows = rng.permutation(np.flatnonzero(y != 9))
    tasks = [
        (ring, np.vstack([fresh, apart]), np.arange(len(fresh) + len(apart)) < len(fresh)),
        (X[rows[:800]], X[np.r_[rows[800:], np.flatnonzero(y == 9)]], None),
    ]
    for train, test, inlier in tasks:
        inlier = np.arange(len(test)) < len(rows) - 800 if inlier is None else inlier
        auc = [
            roc_auc_score(inlier, model.fit(train).score_samples(test))
            for model in (KernelNovelty(), IsolationForest(random_state=0), OneClassSVM())
        ]
        assert auc[0] > 0.9  # found: 1.00 and 0.93
        assert auc[0] > max(auc[1:])


@pytest.mark.parametrize(("load", "size"), [(load_digits, 120), (load_wine, 40)])
def test_the_penalty_hardly_matters(load, size):
    X, y = load(return_X_y=True)
    train, rest = X[y == 1][:size], np.vstack([X[y == 1][size:], X[y != 1]])
    inlier = np.arange(len(rest)) < (y == 1).sum() - size
    areas = [
        roc_auc_score(inlier, KernelNovelty(penalty=a).fit(train).score_samples(rest))
        for a in (1e-8, 1e-4, 1e-2, 0.1, 0.3)
    ]
    assert np.ptp(areas) < 0.01


# --- scikit-learn's contract, and hard inputs -----------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"false_alarm_rate": 0.1, "scale_columns": "std"},
        {"kernel": mc.Laplace(1.0)},
        {"n_landmarks": 12, "random_state": 0},
        {"n_landmarks": 12, "rule": "pivoted", "random_state": 0},
    ],
)
def test_weights_are_repetitions(options, rng):
    X, Y = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    w = rng.integers(0, 4, 50)
    weighted = KernelNovelty(**options).fit(X, sample_weight=w)
    repeated = KernelNovelty(**options).fit(rng.permutation(np.repeat(X, w, axis=0)))
    assert weighted.offset_ == pytest.approx(repeated.offset_, rel=1e-8)
    for Z in (X[w > 0], Y, X[w == 0]):
        expected = repeated.score_samples(Z)
        np.testing.assert_allclose(weighted.score_samples(Z), expected, rtol=1e-7, atol=1e-12)


def test_weights_may_be_shares(rng):
    X, w = rng.normal(size=(40, 2)), rng.uniform(size=40)
    a = KernelNovelty().fit(X, sample_weight=w)
    b = KernelNovelty().fit(X, sample_weight=1000.0 * w)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=1e-7)


def test_sparse_float32_and_frames_are_the_same(rng):
    X = np.round(rng.normal(size=(40, 5)), 2).astype(np.float32)
    X[X < 0.3] = 0.0
    expected = KernelNovelty().fit(X.astype(np.float64))
    scores = expected.score_samples(X)  # training rows are known again in another precision
    np.testing.assert_allclose(expected.score_samples(X.astype(np.float64)), scores)
    np.testing.assert_allclose(expected.score_samples(csr_array(X)), scores, rtol=1e-8)
    for train in (X, csr_array(X), pd.DataFrame(X, columns=list("abcde"))):
        model = KernelNovelty().fit(train)
        np.testing.assert_allclose(model.score_samples(train), scores, rtol=1e-8)


def test_far_from_the_origin(rng):
    X, Y = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
    near, far = KernelNovelty().fit(X), KernelNovelty().fit(X + 1e6)
    np.testing.assert_allclose(far.score_samples(Y + 1e6), near.score_samples(Y), atol=1e-7)
    np.testing.assert_array_equal(far.predict(Y + 1e6), near.predict(Y))


def test_more_columns_than_rows(rng):
    X = rng.normal(size=(20, 300))
    model = KernelNovelty().fit(X)
    assert np.isfinite(model.offset_)
    assert (model.predict(5.0 * rng.normal(size=(10, 300))) == -1).all()
    assert (model.predict(rng.normal(size=(10, 300))) == 1).mean() >= 0.7


def test_duplicated_rows_are_left_out_together(rng):
    X = rng.normal(size=(30, 2))
    once, thrice = KernelNovelty().fit(X), KernelNovelty().fit(np.repeat(X, 3, axis=0))
    np.testing.assert_allclose(thrice.score_samples(X), once.score_samples(X), rtol=1e-7)


def test_rows_that_are_all_alike_are_an_error():
    for X in (np.ones((5, 2)), [[1.0, 2.0]]):
        with pytest.raises(mc.InputError, match="no direction of scatter"):
            KernelNovelty().fit(X)


@pytest.mark.parametrize("unit", [1e-160, 1e-30, 1e100])
def test_units_of_any_size(unit, rng):
    X, Y = rng.normal(size=(50, 2)), np.array([[0.0, 0.0], [9.0, 0.0]])
    if 1e-75 < unit < 1e75:
        assert KernelNovelty().fit(unit * X).predict(unit * Y).tolist() == [1, -1]
    else:
        with pytest.raises(mc.InputError, match="rescale the data"):
            KernelNovelty().fit(unit * X)
    for spread in ([1.0, unit], [unit, 1.0]):
        assert KernelNovelty().fit(spread * X).predict(spread * Y).tolist() == [1, -1]


def test_one_row_of_nearly_all_weight_and_constant_columns(rng):
    X = np.column_stack([rng.normal(size=(30, 2)), np.full(30, 7.0)])
    model = KernelNovelty().fit(X, sample_weight=[1e9] + 29 * [1.0])
    assert np.isfinite(model.score_samples(X)).all()
    assert KernelNovelty().fit(X).predict([[0.0, 0.0, 7.0], [0.0, 0.0, 50.0]]).tolist() == [1, -1]


def test_two_rows():
    model = KernelNovelty().fit([[0.0], [1.0]])
    assert model.predict([[0.0], [1.0], [50.0]]).tolist() == [1, 1, -1]


def test_precomputed_and_nan_are_refused():
    with pytest.raises(mc.InputError, match="has no k"):
        KernelNovelty("precomputed").fit(np.eye(3))
    with pytest.raises(ValueError, match="NaN"):
        KernelNovelty().fit([[0.0], [np.nan]])


def test_strings():
    words = ["banana", "bananas", "ananas", "bandana", "cabana", "savanna", "havanna", "hosanna"]
    model = KernelNovelty(mc.Spectrum(2), false_alarm_rate=0.25).fit(words)
    assert (model.predict(words) == -1).sum() == 1
    unlike, like = model.score_samples(["rhythm", "bananana"])
    assert unlike < like
    again = KernelNovelty(mc.Spectrum(2)).fit(words, sample_weight=[2] + [1] * 7)
    twice = KernelNovelty(mc.Spectrum(2)).fit(["banana", *words])
    np.testing.assert_allclose(again.score_samples(words), twice.score_samples(words), rtol=1e-7)


def test_in_a_pipeline_after_pickling_and_with_threads(rng):
    X = rng.normal(size=(50, 2)) * [1.0, 100.0]
    pipe = make_pipeline(StandardScaler(), KernelNovelty(false_alarm_rate=0.1, n_jobs=1))
    labels = pipe.fit_predict(X)
    assert (labels == -1).sum() == 4
    again = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(again.predict(X), labels)


def test_weights_and_a_penalty_that_overflow(rng):
    model = mc.KernelNovelty(penalty=2**70, n_landmarks=2, random_state=0)
    with pytest.raises(mc.InputError, match="overflows; use a smaller penalty or smaller weights"):
        model.fit(rng.normal(size=(5, 2)), sample_weight=1e300 * np.ones(5))
