"""Nystroem and RandomFeatures as transformers: features, inverses, scikit-learn's contract."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn import kernel_approximation as peer
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer.estimators._features import Nystroem, RandomFeatures

BOTH = [Nystroem, RandomFeatures]
RULES = ["uniform", "kmeans", "leverage", "pivoted"]


@pytest.mark.filterwarnings("ignore:n_components=")  # the checks have few rows
@parametrize_with_checks(
    [
        Nystroem(),
        RandomFeatures(),
        Nystroem("chi2", 5, rule="pivoted"),
        Nystroem(mc.Laplace(2.0), 5, rule="kmeans"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1200] / 16.0, X[1200:] / 16.0, y[:1200], y[1200:]


def gram(features, X, Y):
    return features.transform(X) @ features.transform(Y).T


# --- features -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_nystroem_is_scikit_learns_at_equal_landmarks(rule, rng):
    X, Y = rng.normal(size=(80, 3)), rng.normal(size=(30, 3))
    ours = Nystroem("rbf", 20, rule=rule, gamma=0.4, random_state=0).fit(X)
    theirs = peer.Nystroem("rbf", gamma=0.4, n_components=20).fit(ours.components_)
    Z = theirs.transform(Y)
    np.testing.assert_allclose(gram(ours, Y, Y), Z @ Z.T, atol=1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_error_is_the_share_of_the_trace_and_zero_at_landmarks(rule, rng):
    X = rng.normal(size=(90, 3))
    kernel = mc.Polynomial(3, 4.0, 1.0)  # k(x, x) is not constant
    nystroem = Nystroem(kernel, 12, rule=rule, random_state=0).fit(X)
    K, Z = kernel(X), nystroem.transform(X)
    assert nystroem.error_ == pytest.approx(np.trace(K - Z @ Z.T) / np.trace(K), rel=1e-8)
    assert 0.0 < nystroem.error_ < 1.0
    rows = nystroem.component_indices_
    if rule == "kmeans":
        assert rows is None
    else:
        np.testing.assert_array_equal(nystroem.components_, X[rows])
        np.testing.assert_allclose((K - Z @ Z.T)[rows], 0.0, atol=1e-9 * K.max())


def test_all_landmarks_give_the_kernel_itself(rng):
    X, Y = rng.normal(size=(25, 2)), rng.normal(size=(7, 2))
    nystroem = Nystroem(mc.Laplace(1.0), 25).fit(X)
    assert nystroem.n_components_ == 25
    assert nystroem.error_ < 1e-12
    np.testing.assert_allclose(gram(nystroem, X, Y), mc.Laplace(1.0)(X, Y), atol=1e-10)


def test_more_components_than_rows_are_as_many_with_a_warning(rng):
    X = rng.normal(size=(8, 2))
    with pytest.warns(UserWarning, match="more than the 8 training points"):
        nystroem = Nystroem(mc.Laplace(1.0), 9).fit(X)
    assert nystroem.n_components_ == 8
    with pytest.warns(mc.MercerWarning):
        assert Nystroem(mc.Laplace(1.0), 9).fit_transform(X).shape == (8, 8)


def test_dependent_landmarks_are_left_out(rng):
    X = np.repeat(rng.normal(size=(6, 2)), 5, axis=0)
    nystroem = Nystroem(mc.Gaussian(1.0), 30).fit(X)
    assert nystroem.n_components_ == 6
    assert nystroem.transform(X).shape == (30, 6)
    assert len(nystroem.get_feature_names_out()) == 6
    assert Nystroem("linear", 20).fit(rng.normal(size=(50, 3))).n_components_ == 3


def test_landmarks_without_features_are_an_error():
    with pytest.raises(mc.InputError, match="zero at every landmark"):
        Nystroem("linear", 2).fit(np.zeros((4, 3)))


def test_random_features_are_better_than_scikit_learns_on_average(rng):
    X = rng.normal(size=(60, 6))
    K = mc.Gaussian.from_gamma(0.1)(X)

    def rms(Z):
        return np.sqrt(np.mean((Z @ Z.T - K) ** 2))

    error = {"peer": [], "plain": [], "orthogonal": []}
    for seed in range(15):
        sampler = peer.RBFSampler(gamma=0.1, n_components=120, random_state=seed)
        error["peer"].append(rms(sampler.fit_transform(X)))
        for kind in ("plain", "orthogonal"):
            ours = RandomFeatures("rbf", 120, gamma=0.1, kind=kind, random_state=seed)
            error[kind].append(rms(ours.fit_transform(X)))
    mean = {name: np.mean(values) for name, values in error.items()}
    assert mean["orthogonal"] < 0.9 * mean["plain"] < 0.9 * mean["peer"]


def test_error_of_random_features_is_what_all_pairs_have(rng):
    X = rng.normal(size=(200, 4))
    features = RandomFeatures(mc.Matern(1.5, 2.0), 80, random_state=0).fit(X)
    gap = gram(features, X, X) - mc.Matern(1.5, 2.0)(X)
    assert features.error_ == pytest.approx(np.sqrt(np.mean(gap**2)), rel=0.15)
    finer = RandomFeatures(mc.Matern(1.5, 2.0), 8000, random_state=0).fit(X[:50])
    assert finer.error_ < 0.2 * features.error_


@pytest.mark.parametrize(("asked", "given"), [(1, 2), (2, 2), (7, 8)])
def test_an_odd_number_of_random_features_is_taken_one_up(asked, given, rng):
    features = RandomFeatures(n_components=asked).fit(rng.normal(size=(9, 2)))
    assert features.n_components_ == given == len(features.get_feature_names_out())


@pytest.mark.parametrize("kernel", ["poly", "cosine", mc.Linear(), mc.Spectrum(2)])
def test_a_kernel_without_frequencies_is_sent_to_nystroem(kernel, rng):
    X = ["abc", "bcd"] if kernel == mc.Spectrum(2) else rng.normal(size=(9, 2))
    with pytest.raises(mc.exceptions.UnavailableError, match="spectral measure; use Nystroem"):
        RandomFeatures(kernel).fit(X)


@pytest.mark.parametrize("n_components", [0, -3, 2.5, "many", None])
@pytest.mark.parametrize("kind", BOTH)
def test_n_components_is_a_positive_integer(kind, n_components):
    with pytest.raises(mc.InputError, match="n_components must be an integer"):
        kind(n_components=n_components).fit([[0.0], [1.0]])


def test_unknown_rules_and_kinds_are_refused():
    with pytest.raises(mc.InputError, match="rule must be one of 'uniform', 'kmeans'"):
        Nystroem(n_components=1, rule="best").fit([[0.0], [1.0]])
    with pytest.raises(mc.InputError, match="kind must be one of"):
        RandomFeatures(n_components=2, kind="best").fit([[0.0], [1.0]])


# --- the inverse ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "bound"),
    [
        (Nystroem(n_components=200, random_state=0), 0.02),  # found: 0.014
        (Nystroem(n_components=200, rule="kmeans", random_state=0), 0.02),
        (RandomFeatures(n_components=400, random_state=0), 0.03),  # found: 0.023
    ],
)
def test_round_trip_of_new_digits(features, bound, digits):
    train, test, _, _ = digits
    back = features.fit(train).inverse_transform(features.transform(test))
    gap = np.mean((back - test) ** 2) / np.mean((test - train.mean(axis=0)) ** 2)
    assert 0.0 < gap < bound


def test_round_trip_of_the_linear_kernel_is_exact_mean_included(rng):
    X, Y = rng.normal(size=(70, 4)) + 50.0, rng.normal(size=(9, 4)) + 50.0
    nystroem = Nystroem("linear", 10, random_state=0).fit(X)
    np.testing.assert_allclose(nystroem.inverse_transform(nystroem.transform(Y)), Y, atol=1e-6)


def test_the_inverse_follows_the_unit_of_each_column(rng):
    X = rng.normal(size=(80, 2))
    unit = np.array([1.0, 1e6])
    one = Nystroem(mc.Gaussian(1.0), 30, random_state=0).fit(X)
    other_kernel = mc.Gaussian(1.0).transform(mc.Scales(unit))  # the same features
    other = Nystroem(other_kernel, 30, random_state=0).fit(X * unit)
    np.testing.assert_allclose(gram(other, X * unit, X * unit), gram(one, X, X), atol=1e-9)
    back = one.inverse_transform(one.transform(X))
    wide = other.inverse_transform(other.transform(X * unit))
    np.testing.assert_allclose(wide / unit, back, atol=1e-4)


def test_far_from_the_origin_nothing_changes(rng):
    X = rng.integers(-100, 100, size=(60, 2)) / 64.0  # shifts are exact
    near = Nystroem(mc.Gaussian(1.0), 20, random_state=0).fit(X)
    far = Nystroem(mc.Gaussian(1.0), 20, random_state=0).fit(X + 2.0**20)
    Y = X + 2.0**20
    np.testing.assert_allclose(gram(far, Y, Y), gram(near, X, X), atol=1e-9)
    back, there = near.inverse_transform(near.transform(X)), far.inverse_transform(far.transform(Y))
    np.testing.assert_allclose(there - 2.0**20, back, atol=1e-5)


@pytest.mark.parametrize("kind", BOTH)
def test_one_row_comes_back_as_it_is(kind):
    features = kind(n_components=2 if kind is RandomFeatures else 1).fit([[3.0, 4.0]])
    assert features.kernel_ == mc.Gaussian(1.0)
    np.testing.assert_array_equal(
        features.inverse_transform(features.transform([[3.0, 4.0]])), [[3, 4]]
    )
    assert features.error_ == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", BOTH)
def test_equal_rows_and_constant_columns_come_back(kind, rng):
    X = np.tile([1.0, 2.0, 3.0], (6, 1))
    same = kind(n_components=2).fit(X)
    np.testing.assert_allclose(same.inverse_transform(same.transform(X)), X)
    X = np.column_stack([rng.normal(size=50), np.full(50, 7.0)])
    features = kind(n_components=20, random_state=0).fit(X)
    back = features.inverse_transform(features.transform(X))
    np.testing.assert_allclose(back[:, 1], 7.0, rtol=1e-10)
    np.testing.assert_allclose(back[:, 0], X[:, 0], atol=0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "features", [Nystroem(0.3 * mc.Gaussian(1e12), 1), RandomFeatures(mc.Gaussian(1e18), 2)]
)
def test_rounding_of_features_that_are_all_equal_is_not_regressed_on(features, dtype, rng):
    X = rng.normal(size=(50, 2)).astype(dtype)
    features.fit(X)
    back = features.inverse_transform(features.transform(X))
    np.testing.assert_allclose(back, np.tile(X.mean(axis=0), (50, 1)), atol=1e-5)


@pytest.mark.parametrize("kind", BOTH)
def test_more_columns_than_rows(kind, rng):
    X = rng.normal(size=(12, 40))
    features = kind(n_components=12, random_state=0).fit(X)
    back = features.inverse_transform(features.transform(X))
    assert back.shape == X.shape
    assert np.isfinite(back).all()
    assert np.mean((back - X) ** 2) <= np.mean((X - X.mean(axis=0)) ** 2)


@pytest.mark.parametrize("kind", BOTH)
def test_features_of_another_number_are_refused(kind, rng):
    features = kind(n_components=6).fit(rng.normal(size=(20, 2)))
    with pytest.raises(mc.InputError, match=r"Z has 5 features, but .* gives 6"):
        features.inverse_transform(np.ones((3, 5)))
    with pytest.raises(ValueError, match="NaN"):
        features.inverse_transform(np.full((3, 6), np.nan))


# --- scikit-learn's contract ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
def test_float32_stays_float32(kind, rng):
    X = rng.normal(size=(50, 3))
    wide = kind(mc.Gaussian(1.5), 20, random_state=0).fit(X)
    slim = kind(mc.Gaussian(1.5), 20, random_state=0).fit(X.astype(np.float32))
    Z = slim.transform(X.astype(np.float32))
    back = slim.inverse_transform(Z)
    again = clone(slim).fit_transform(X.astype(np.float32))
    assert Z.dtype == back.dtype == again.dtype == np.float32
    np.testing.assert_allclose(Z @ Z.T, gram(wide, X, X), atol=1e-4)
    np.testing.assert_allclose(again, Z, atol=1e-5)
    np.testing.assert_allclose(back, wide.inverse_transform(wide.transform(X)), atol=1e-2)
    assert slim.error_ == pytest.approx(wide.error_, rel=1e-3)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("container", [csr_array, csr_matrix])
def test_sparse_points_are_the_same_points(kind, container, rng):
    X = rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.4)
    dense = kind(n_components=16, random_state=0).fit(X)
    sparse = kind(n_components=16, random_state=0).fit(container(X))
    Z = sparse.transform(container(X))
    assert isinstance(Z, np.ndarray)
    np.testing.assert_allclose(Z @ Z.T, gram(dense, X, X), atol=1e-10)
    back = sparse.inverse_transform(Z)
    assert isinstance(back, np.ndarray)
    np.testing.assert_allclose(back, dense.inverse_transform(dense.transform(X)), atol=1e-6)


def test_kmeans_and_histograms_ask_for_dense_points(rng):
    X = csr_array(rng.random((20, 3)))
    for nystroem in (Nystroem(n_components=4, rule="kmeans"), Nystroem("chi2", 4)):
        with pytest.raises(TypeError, match="dense data is required"):
            nystroem.fit(X)


@pytest.mark.parametrize("kind", BOTH)
def test_frames_in_frames_out(kind, rng):
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"], index=range(5, 35))
    features = kind(n_components=4, random_state=0).set_output(transform="pandas")
    for out in (features.fit_transform(frame), features.transform(frame)):
        name = kind.__name__.lower()
        assert list(out.columns) == [f"{name}{i}" for i in range(4)]
        assert list(out.index) == list(frame.index)
    assert list(features.feature_names_in_) == ["a", "b", "c"]
    assert features.inverse_transform(out).shape == (30, 3)
    with pytest.raises(ValueError, match="feature names"):
        features.transform(frame[["b", "a", "c"]])


@pytest.mark.parametrize("kind", BOTH)
def test_random_state_decides(kind, rng):
    X = rng.normal(size=(40, 2))
    one, same, other = (kind(n_components=6, random_state=s).fit_transform(X) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3
    state = np.random.RandomState(0)
    a, b = (kind(n_components=6, random_state=state).fit(X).error_ for _ in range(2))
    assert a != b


@pytest.mark.parametrize("rule", RULES)
def test_fit_transform_is_fit_and_transform_and_may_be_written_to(rule, rng):
    X = rng.normal(size=(5000, 3))
    nystroem = Nystroem(mc.Gaussian(1.0), 30, rule=rule, random_state=0)
    Z = nystroem.fit_transform(X)
    np.testing.assert_allclose(nystroem.transform(X), Z, atol=1e-9)
    Z *= 2.0


@pytest.mark.parametrize("kind", BOTH)
def test_a_pickle_is_small_and_gives_the_same(kind, rng):
    X = rng.normal(size=(3000, 2))
    features = kind(mc.Gaussian(1.0), 50, random_state=0).fit(X)
    text = pickle.dumps(features)
    assert len(text) < 60_000  # neither the points nor their features
    np.testing.assert_array_equal(pickle.loads(text).transform(X), features.transform(X))


@pytest.mark.parametrize("kind", BOTH)
def test_grid_search_over_the_length_scale_in_a_pipeline(kind, rng):
    X = rng.uniform(-3, 3, size=(150, 1))
    y = np.sin(2.0 * X[:, 0])
    features = kind(mc.Gaussian(1.0), 40, random_state=0)
    pipeline = make_pipeline(StandardScaler(), features, Ridge(1e-4))
    name = f"{kind.__name__.lower()}__kernel__length_scale"
    search = GridSearchCV(pipeline, {name: [1e-3, 0.5, 1e3]}, cv=3).fit(X, y)
    assert search.best_params_ == {name: 0.5}
    assert search.best_score_ > 0.99
    assert features.kernel == mc.Gaussian(1.0)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Nystroem("rbf", 150, gamma=0.05), peer.Nystroem(gamma=0.05, n_components=150)),
        (RandomFeatures("rbf", 300, gamma=0.05), peer.RBFSampler(gamma=0.05, n_components=300)),
    ],
)
def test_pipelines_reach_the_accuracy_of_scikit_learns(ours, theirs, digits):
    train, test, y_train, y_test = digits
    score = []
    for features in (ours, theirs):
        features.set_params(random_state=0)
        model = make_pipeline(features, RidgeClassifier(1e-3))
        score.append(model.fit(train, y_train).score(test, y_test))
    assert score[0] > 0.92
    assert score[0] > score[1] - 0.015


def test_points_are_what_the_kernel_takes():
    words = ["kernel", "kernels", "colonel", "method", "methods", "method"]
    nystroem = Nystroem(mc.Spectrum(2), 5, rule="pivoted").fit(words)
    assert nystroem.n_components_ == 5  # one word is repeated
    np.testing.assert_allclose(gram(nystroem, words, words), mc.Spectrum(2)(words), atol=1e-10)
    np.testing.assert_allclose(nystroem.fit_transform(words), nystroem.transform(words))
    with pytest.raises(mc.InputError, match="not vectors"):
        nystroem.inverse_transform(np.ones((1, 5)))


def test_tables_with_text_columns():
    frame = pd.DataFrame({"size": [1.0, 2.0, 2.5, 4.0], "colour": ["red", "blue", "red", "red"]})
    kernel = mc.table_kernel(frame)
    nystroem = Nystroem(kernel, 4).fit(frame)
    np.testing.assert_allclose(gram(nystroem, frame, frame), kernel(frame), atol=1e-10)
