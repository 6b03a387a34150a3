"""KernelNovelty: scores of rows left out, thresholds, scikit-learn's contract, hard inputs."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
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
        KernelNovelty(n_components=2),
        KernelNovelty(n_components=0.9, contamination=0.1),
        KernelNovelty(mc.Laplace(2.0), contamination=0.1, n_landmarks=8, random_state=0),
        KernelNovelty("poly", n_components=3, contamination=0.2),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def ring_and_others(rng, n=200, m=60):
    ring = datasets.ring(n, random_state=0).points
    apart = rng.uniform(-2.0, 2.0, (20 * m, 2))
    apart = apart[np.abs(np.linalg.norm(apart, axis=1) - 1.0) > 0.3][:m]
    return ring, apart


# --- scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [mc.Gaussian(0.7), mc.Laplace(1.0), mc.Polynomial(3, 2.0, 1.0)])
def test_the_score_of_a_new_row_is_minus_its_squared_distance_to_the_subspace(kernel, rng):
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(9, 3))
    model = KernelNovelty(kernel, n_components=6).fit(X)
    pca = mc.KernelPCA(6, kernel=kernel).fit(X)
    np.testing.assert_allclose(model.score_samples(Y), pca.score_samples(Y), rtol=1e-9)
    K, k = kernel(X), kernel(Y, X)
    H = np.eye(40) - 1.0 / 40
    values, vectors = np.linalg.eigh(H @ K @ H)
    c = (k - K.mean(axis=0)) @ H @ vectors[:, -6:] / np.sqrt(values[-6:])
    whole = kernel.diag(Y) - 2.0 * k.mean(axis=1) + K.mean()
    np.testing.assert_allclose(model.score_samples(Y), np.sum(c**2, axis=1) - whole, rtol=1e-7)


@pytest.mark.parametrize("n_components", [1, 4, 12])
@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Laplace(1.0)])
def test_a_training_row_is_scored_nearly_as_if_the_model_had_not_seen_it(kernel, n_components):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = KernelNovelty(kernel, n_components=n_components).fit(X)
    scores = model.score_samples(X)
    again = [
        KernelNovelty(kernel, n_components=n_components)
        .fit(np.delete(X, i, axis=0))
        .score_samples(X[i : i + 1])[0]
        for i in range(40)
    ]
    seen = -(model.subspace_.distance(mc.feature(kernel, X)) ** 2)
    assert np.mean(scores) == pytest.approx(np.mean(again), rel=0.15)  # found: 0.11 at most
    assert np.corrcoef(scores, again)[0, 1] > 0.93
    assert np.mean(seen) > 0.95 * np.mean(again)  # in sample errors are smaller


def test_the_share_of_a_row_is_exact_where_directions_do_not_change():
    # the mean alone: without row i it is (n mu - k_i) / (n - 1); one component is all there is
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    errors = -KernelNovelty("linear", n_components=1).fit(X).score_samples(X)
    np.testing.assert_allclose(errors, 0.0, atol=1e-12)  # the rest of a line is a line
    plane = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.1], [0.0, -0.1]])
    errors = -KernelNovelty("linear", n_components=1).fit(plane).score_samples(plane)
    # rows of no coordinate: share 1/4, so (0.1 / (3/4))^2; rows on the axis: none
    np.testing.assert_allclose(errors, [0.0, 0.0, 0.04 / 2.25, 0.04 / 2.25], atol=1e-12)


def test_a_lonely_training_row_is_an_outlier_though_a_component_is_its_own(rng):
    ring, _ = ring_and_others(rng)
    X = np.vstack([ring, [[3.0, 3.0]], [[-4.0, 0.0]]])
    model = KernelNovelty(n_components=40).fit(X)
    seen = model.subspace_.distance(mc.feature(model.kernel_, X)) ** 2
    assert seen[-2:].max() < 1e-6  # in sample it is reconstructed
    assert np.argsort(model.score_samples(X))[:2].tolist() in ([200, 201], [201, 200])
    assert model.predict(X)[-2:].tolist() == [-1, -1]


def test_n_components(rng):
    X = rng.normal(size=(60, 2))
    share = KernelNovelty(n_components=0.8).fit(X)
    held = np.cumsum(mc.KernelPCA(kernel=share.kernel_).fit(X).explained_variance_ratio_)
    assert share.n_components_ == np.argmax(held >= 0.8) + 1
    assert KernelNovelty(n_components=7).fit(X).n_components_ == 7
    assert KernelNovelty("linear", n_components=7).fit(X).n_components_ == 2
    with_landmarks = KernelNovelty(n_components=0.5, n_landmarks=20, random_state=0).fit(X)
    few = KernelNovelty(n_components=5, n_landmarks=20, random_state=0).fit(X)
    assert few.n_components_ == 5
    assert 1 <= with_landmarks.n_components_ < 20
    chosen = KernelNovelty().fit(X)
    errors = [
        -KernelNovelty(n_components=r).fit(X).score_samples(X).mean()
        for r in range(1, chosen.n_components_ + 3)
    ]
    left = 1.0 - np.cumsum(mc.KernelPCA(kernel=chosen.kernel_).fit(X).explained_variance_ratio_)
    allowed = np.count_nonzero(left > 1e-4)
    assert chosen.n_components_ == 1 + np.argmin(errors[:allowed])


def test_landmarks_are_nearly_as_good_and_all_of_them_exact(rng):
    ring, apart = ring_and_others(rng)
    exact = KernelNovelty(n_components=12).fit(ring)
    every = KernelNovelty(n_components=12, n_landmarks=200, random_state=0).fit(ring)
    some = KernelNovelty(n_landmarks=60, random_state=0).fit(ring)
    both = np.vstack([ring, apart])
    np.testing.assert_allclose(every.score_samples(both), exact.score_samples(both), rtol=1e-5)
    assert every.offset_ == pytest.approx(exact.offset_, rel=1e-5)
    assert (some.predict(apart) == -1).mean() > 0.95
    assert (some.predict(datasets.ring(300, random_state=9).points) == 1).mean() > 0.85


def test_many_rows_take_landmarks_by_themselves(rng):
    X = rng.normal(size=(2500, 2))
    model = KernelNovelty(random_state=0).fit(X)
    assert model.subspace_.origin.points.shape[0] <= 1000
    assert model.predict([[0.0, 0.0], [6.0, 6.0]]).tolist() == [1, -1]
    assert (model.predict(rng.normal(size=(500, 2))) == 1).mean() > 0.8  # found: 0.86


# --- thresholds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("contamination", [0.01, 0.05, 0.25, 0.5])
def test_contamination_is_the_share_of_training_rows_that_are_outliers(contamination, rng):
    X = rng.normal(size=(200, 3))
    model = KernelNovelty(contamination=contamination).fit(X)
    assert (model.predict(X) == -1).sum() == 200 * contamination
    # and, since training rows are scored like new ones, about that of new rows
    new = (model.predict(rng.normal(size=(4000, 3))) == -1).mean()
    assert new == pytest.approx(contamination, abs=0.06)


def test_auto_is_the_fence_of_a_box_plot(rng):
    X = rng.normal(size=(100, 2))
    model = KernelNovelty().fit(X)
    errors = np.sort(-model.score_samples(X))
    q1, q3 = errors[24], errors[74]  # more than a quarter of the rows at or above, and below
    assert model.offset_ == pytest.approx(-(q3 + 1.5 * (q3 - q1)), rel=1e-12)
    np.testing.assert_array_equal(model.predict(X) == -1, -model.score_samples(X) > -model.offset_)


@pytest.mark.parametrize("contamination", [0.0, 0.6, -0.1, "some", None, [0.1]])
def test_what_contamination_may_be(contamination):
    with pytest.raises(mc.InputError, match=r"contamination must be 'auto' or lie in \(0, 0.5\]"):
        KernelNovelty(contamination=contamination).fit([[0.0], [1.0], [2.0]])


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


# --- scikit-learn's contract, and hard inputs -----------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_components": 3, "contamination": 0.1},
        {"kernel": mc.Laplace(1.0)},
        {"n_landmarks": 12, "random_state": 0},
        {"n_landmarks": 12, "rule": "pivoted"},
    ],
)
def test_weights_are_repetitions(options, rng):
    X, Y = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    w = rng.integers(0, 4, 50)
    weighted = KernelNovelty(**options).fit(X, sample_weight=w)
    repeated = KernelNovelty(**options).fit(rng.permutation(np.repeat(X, w, axis=0)))
    assert weighted.n_components_ == repeated.n_components_
    assert weighted.offset_ == pytest.approx(repeated.offset_, rel=1e-8)
    for Z in (X[w > 0], Y, X[w == 0]):
        expected = repeated.score_samples(Z)
        np.testing.assert_allclose(weighted.score_samples(Z), expected, rtol=1e-7, atol=1e-12)


def test_weights_may_be_shares(rng):
    X, w = rng.normal(size=(40, 2)), rng.uniform(size=40)
    a = KernelNovelty(n_components=5).fit(X, sample_weight=w)
    b = KernelNovelty(n_components=5).fit(X, sample_weight=1000.0 * w)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=1e-7)


def test_sparse_float32_and_frames_are_the_same(rng):
    X = np.round(rng.normal(size=(40, 5)), 2).astype(np.float32)
    X[X < 0.3] = 0.0
    expected = KernelNovelty(n_components=4).fit(X.astype(np.float64))
    scores = expected.score_samples(X)  # training rows are known again in another precision
    np.testing.assert_allclose(expected.score_samples(X.astype(np.float64)), scores)
    np.testing.assert_allclose(expected.score_samples(csr_array(X)), scores, rtol=1e-8)
    for train in (X, csr_array(X), pd.DataFrame(X, columns=list("abcde"))):
        model = KernelNovelty(n_components=4).fit(train)
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


def test_two_rows():
    model = KernelNovelty().fit([[0.0], [1.0]])
    assert model.n_components_ == 1
    assert model.predict([[0.0], [1.0], [50.0]]).tolist() == [1, 1, -1]


def test_precomputed_and_nan_are_refused():
    with pytest.raises(mc.InputError, match="has no k"):
        KernelNovelty("precomputed").fit(np.eye(3))
    with pytest.raises(ValueError, match="NaN"):
        KernelNovelty().fit([[0.0], [np.nan]])


def test_strings():
    words = ["banana", "bananas", "ananas", "bandana", "cabana", "savanna", "havanna", "hosanna"]
    model = KernelNovelty(mc.Spectrum(2), n_components=3, contamination=0.125).fit(words)
    assert (model.predict(words) == -1).sum() == 1
    unlike, like = model.score_samples(["rhythm", "bananana"])
    assert unlike < like
    again = KernelNovelty(mc.Spectrum(2), n_components=3).fit(words, sample_weight=[2] + [1] * 7)
    twice = KernelNovelty(mc.Spectrum(2), n_components=3).fit(["banana", *words])
    np.testing.assert_allclose(again.score_samples(words), twice.score_samples(words), rtol=1e-7)


def test_in_a_pipeline_after_pickling_and_with_threads(rng):
    X = rng.normal(size=(50, 2)) * [1.0, 100.0]
    pipe = make_pipeline(StandardScaler(), KernelNovelty(contamination=0.1, n_jobs=1))
    labels = pipe.fit_predict(X)
    assert (labels == -1).sum() == 5
    again = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(again.predict(X), labels)
