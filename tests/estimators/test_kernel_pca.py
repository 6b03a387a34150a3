"""KernelPCA: against scikit-learn, its contract, weights, batches, scores, hard inputs."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array, random_array
from sklearn import datasets
from sklearn import decomposition as peer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer import KernelPCA


@pytest.mark.sample(3)
@parametrize_with_checks(
    [
        KernelPCA(),
        KernelPCA(2),
        KernelPCA(2, n_landmarks=8, random_state=0),
        KernelPCA(2, whiten=True),
        KernelPCA(3, kernel=mc.Laplace(2.0)),
        KernelPCA(2, inverse=mc.FixedPoint()),
        KernelPCA(scale_columns="std"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def error(X, Y):
    return float(np.mean((np.asarray(X) - Y) ** 2))


# --- against scikit-learn -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"kernel": "rbf", "gamma": 0.3}, {"kernel": "poly", "gamma": 0.5},
                {"kernel": "linear"}, {"kernel": "cosine"}],
)  # fmt: skip
def test_equals_scikit_learns_up_to_sign(options, rng):
    X, Y = rng.normal(size=(60, 5)), rng.normal(size=(20, 5))
    ours = KernelPCA(4, **options).fit(X)
    theirs = peer.KernelPCA(4, **options).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    for Z in (X, Y):
        a, b = ours.transform(Z), theirs.transform(Z)
        np.testing.assert_allclose(a * np.sign(np.sum(a * b, axis=0)), b, atol=1e-7)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_eigenvectors_are_scikit_learns_up_to_sign(solver, rng):
    X, w = rng.normal(size=(60, 5)), rng.integers(0, 3, 60)
    model = KernelPCA(4, kernel="rbf", eigen_solver=solver, random_state=0).fit(X)
    theirs = peer.KernelPCA(4, kernel="rbf").fit(X)
    found = model.eigenvectors_
    np.testing.assert_allclose(np.abs(found), np.abs(theirs.eigenvectors_), atol=1e-7)
    np.testing.assert_allclose(found * np.sqrt(model.eigenvalues_), model.transform(X), atol=1e-7)
    weighted = KernelPCA(4, kernel="rbf").fit(X, sample_weight=w)
    V = weighted.eigenvectors_
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-12)
    expected = np.sqrt(w)[:, None] * weighted.transform(X) / np.sqrt(weighted.eigenvalues_)
    np.testing.assert_allclose(V, expected, atol=1e-10)
    with pytest.raises(AttributeError, match="with landmarks it is transform"):
        _ = KernelPCA(4, n_landmarks=20).fit(X).eigenvectors_
    with pytest.raises(AttributeError):
        _ = KernelPCA(4).eigenvectors_


def test_precomputed_equals_scikit_learns_and_comes_back_as_row_numbers(rng):
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(10, 3))
    k = mc.Gaussian(1.0)
    ours = KernelPCA(5, kernel="precomputed").fit(k(X))
    theirs = peer.KernelPCA(5, kernel="precomputed").fit(k(X))
    np.testing.assert_allclose(
        np.abs(ours.transform(k(Y, X))), np.abs(theirs.transform(k(Y, X))), atol=1e-9
    )
    np.testing.assert_allclose(ours.transform(k(X)), KernelPCA(5, kernel=k).fit_transform(X))
    every = KernelPCA(kernel="precomputed", inverse=mc.Candidates()).fit(k(X))
    np.testing.assert_array_equal(every.inverse_transform(every.transform(k(X))), np.arange(40))
    Z = every.transform(k(X[3:6], X))
    np.testing.assert_array_equal(every.inverse_transform(Z), [3, 4, 5])
    with pytest.raises(mc.InputError, match=r"needs k\(x, x\)"):
        ours.score_samples(k(Y, X))
    with pytest.raises(mc.InputError, match="must be square"):
        KernelPCA(kernel="precomputed").fit(k(Y, X))


def test_the_linear_kernel_is_pca_with_its_mean_which_scikit_learns_loses(rng):
    X = rng.normal(size=(50, 6)) * np.arange(1, 7) + 10.0
    ours, pca = KernelPCA(2, kernel="linear").fit(X), peer.PCA(2).fit(X)
    back = pca.inverse_transform(pca.transform(X))
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), back, atol=1e-8)
    np.testing.assert_allclose(ours.inverse_transform(np.zeros((1, 2)))[0], X.mean(axis=0))
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9
    )
    np.testing.assert_allclose(ours.eigenvalues_ / 49, pca.explained_variance_, rtol=1e-9)
    theirs = peer.KernelPCA(2, kernel="linear", fit_inverse_transform=True).fit(X)
    lost = theirs.inverse_transform(theirs.transform(X))
    assert np.linalg.norm(lost.mean(axis=0)) < 0.1 * np.linalg.norm(X.mean(axis=0))
    assert error(lost, X) > 10.0 * error(back, X)


def test_whitened_coordinates_have_unit_variance_and_the_same_inverse(rng):
    X = rng.normal(size=(80, 3))
    plain, white = KernelPCA(4).fit(X), KernelPCA(4, whiten=True).fit(X)
    Z = white.transform(X)
    np.testing.assert_allclose(Z.T @ Z / 80, np.eye(4), atol=1e-9)
    expected = plain.inverse_transform(plain.transform(X))
    np.testing.assert_allclose(white.inverse_transform(Z), expected, atol=1e-9)


def test_n_components(rng):
    X = rng.normal(size=(30, 4))
    shares = KernelPCA().fit(X).explained_variance_ratio_
    assert shares.sum() == pytest.approx(1.0)
    model = KernelPCA(0.7).fit(X)
    assert model.explained_variance_ratio_.sum() >= 0.7
    assert model.explained_variance_ratio_[:-1].sum() < 0.7
    assert KernelPCA().fit_transform(X).shape == (30, 29)
    assert KernelPCA(100, kernel="linear").fit_transform(X).shape == (30, 4)
    for wrong in (0, -1, 1.5, 0.0, "all"):
        with pytest.raises(mc.InputError, match="n_components"):
            KernelPCA(wrong).fit(X)


# --- data of all kinds ----------------------------------------------------------------------------


WAYS = [
    {},
    {"n_components": 4},
    {"n_components": 4, "n_landmarks": 15, "random_state": 0},
    {"n_components": 4, "inverse": mc.FixedPoint()},
    {"kernel": mc.Laplace(1.5)},
    {"kernel": "poly", "n_components": 5},
]


@pytest.mark.parametrize("options", WAYS)
def test_sparse_is_dense(options, rng):
    X = np.where(rng.random((40, 6)) < 0.5, 0.0, rng.normal(size=(40, 6)))
    dense, sparse = KernelPCA(**options).fit(X), KernelPCA(**options).fit(csr_array(X))
    S = csr_array(X[:9])
    np.testing.assert_allclose(sparse.transform(S), dense.transform(X[:9]), atol=1e-9)
    back = sparse.inverse_transform(sparse.transform(S))
    np.testing.assert_allclose(back, dense.inverse_transform(dense.transform(X[:9])), atol=1e-7)


def test_wide_sparse_rows(rng):
    X = random_array((40, 3200), density=2e-3, rng=rng, format="csr")
    sparse, dense = (KernelPCA(3).fit(A) for A in (X, X.toarray()))
    np.testing.assert_allclose(sparse.transform(X), dense.transform(X.toarray()), atol=1e-9)


@pytest.mark.parametrize("options", WAYS)
def test_float32_stays_float32(options, rng):
    X = rng.normal(size=(40, 3)).astype(np.float32)
    model, double = KernelPCA(**options).fit(X), KernelPCA(**options).fit(X.astype(np.float64))
    Z = model.transform(X)
    back = model.inverse_transform(Z)
    assert Z.dtype == back.dtype == np.float32
    expected = double.inverse_transform(double.transform(X.astype(np.float64)))
    np.testing.assert_allclose(back, expected, atol=1e-3)


def test_frames_and_names(rng):
    frame = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    model = KernelPCA(2).set_output(transform="pandas").fit(frame)
    Z = model.transform(frame)
    assert list(Z.columns) == ["kernelpca0", "kernelpca1"]
    assert Z.index.equals(frame.index)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"a": "z"}))


def test_strings_are_points_and_come_back_as_training_strings():
    words = ["banana", "bandana", "ananas", "cabana", "rhythm", "algorithm"]
    model = KernelPCA(2, kernel=mc.Subsequences(2, 0.5)).fit(words)
    Z = model.transform(words)
    assert Z.shape == (6, 2)
    assert set(model.inverse_transform(Z)) <= set(words)
    assert set(model.inverse_transform(model.transform(["bananana"]))) <= set(words)
    every = KernelPCA(kernel=mc.Subsequences(2, 0.5)).fit(words)
    assert list(every.inverse_transform(every.transform(words))) == words
    assert every.score_samples(words) == pytest.approx(np.zeros(6), abs=1e-10)
    variance = model.subspace_.total / 6.0
    expected = 1.0 + float(model.score_samples(["bananana"])[0]) / variance
    assert model.score(["bananana"]) == pytest.approx(expected)


def test_one_row_constant_rows_and_nan():
    for X in ([[1.0, 2.0]], np.ones((4, 2))):
        with pytest.raises(mc.InputError, match="no direction of scatter"):
            KernelPCA().fit(X)
    with pytest.raises(ValueError, match="NaN"):
        KernelPCA().fit([[0.0], [np.nan]])
    with pytest.raises(mc.InputError, match="must have 1 columns"):
        KernelPCA(1).fit([[0.0], [1.0], [3.0]]).inverse_transform([[1.0, 2.0]])


@pytest.mark.parametrize("shape", [(12, 200), (2, 3), (3, 1)])
def test_few_rows_and_many_columns(shape, rng):
    X = rng.normal(size=shape)
    model = KernelPCA().fit(X)
    np.testing.assert_allclose(model.score_samples(X), 0.0, atol=1e-12)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"n_components": 4}, {"inverse": mc.FixedPoint()}])
def test_far_from_the_origin(options, rng):
    X = rng.normal(size=(40, 3))
    near, far = KernelPCA(**options).fit(X), KernelPCA(**options).fit(X + 1e6)
    np.testing.assert_allclose(far.transform(X + 1e6), near.transform(X), atol=1e-6)
    back = far.inverse_transform(far.transform(X + 1e6)) - 1e6
    np.testing.assert_allclose(back, near.inverse_transform(near.transform(X)), atol=1e-5)
    # inner products of the linear kernel are 1e12: a thousandth is what rounding leaves
    linear = KernelPCA(3, kernel="linear").fit(X + 1e6)
    back = linear.inverse_transform(linear.transform(X + 1e6))
    np.testing.assert_allclose(back, X + 1e6, atol=1e-2)


# --- many rows ------------------------------------------------------------------------------------


def test_many_rows_take_landmarks_by_default(rng, monkeypatch):
    monkeypatch.setattr("mercer.estimators._kernel_pca._MANY", 200)
    monkeypatch.setattr("mercer.estimators._kernel_pca._LANDMARKS", 60)
    X = rng.normal(size=(201, 3))
    exact = KernelPCA(5, eigen_solver="dense").fit(X)
    assert len(exact.subspace_.origin.points) == 201
    for number, landmarks in ((5, 60), (0.8, 60), (None, 60), (40, 80)):
        model = KernelPCA(number, random_state=0).fit(X)
        assert len(model.subspace_.origin.points) == landmarks
        np.testing.assert_allclose(model.eigenvalues_[:5], exact.eigenvalues_, rtol=1e-2)
        assert not hasattr(model, "partial_fit")
    assert len(KernelPCA(5).fit(X[:200]).subspace_.origin.points) == 200
    # landmarks need a positive definite kernel, and a Gram matrix that is given needs none
    conditional = KernelPCA(5, kernel=mc.NegativeDistance(1.0)).fit(X)
    given = KernelPCA(5, kernel="precomputed").fit(exact.kernel_(X))
    assert all(len(m.subspace_.origin.points) == 201 for m in (conditional, given))
    np.testing.assert_allclose(given.eigenvalues_, exact.eigenvalues_)


# --- weights and batches --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [*WAYS, {"n_components": 4, "inverse": mc.LearnedMap()}, {"scale_columns": "std"},
     {"n_landmarks": 15, "rule": "kmeans", "random_state": 0, "whiten": True}],
)  # fmt: skip
def test_weights_are_repetitions(options, rng):
    X, Y = rng.normal(size=(45, 3)), rng.normal(size=(10, 3))
    w = rng.integers(0, 4, 45)
    weighted = KernelPCA(**options).fit(X, sample_weight=w)
    repeated = KernelPCA(**options).fit(np.repeat(X, w, axis=0))
    Z = repeated.transform(Y)
    np.testing.assert_allclose(weighted.transform(Y), Z, atol=1e-8)
    few = np.zeros_like(Z)
    few[:, :3] = Z[:, :3]
    back = weighted.inverse_transform(few)
    np.testing.assert_allclose(back, repeated.inverse_transform(few), atol=1e-6)
    assert weighted.mass_ == repeated.mass_ == w.sum()


def test_weights_are_routed_through_a_pipeline(rng):
    X, w = rng.normal(size=(30, 3)), rng.uniform(size=30)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            KernelPCA(2).set_fit_request(sample_weight=True),
        )
        routed = pipe.fit(X, sample_weight=w).transform(X)
    S = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(routed, KernelPCA(2).fit(S, sample_weight=w).transform(S))
    assert not np.allclose(routed, KernelPCA(2).fit(S).transform(S))


def test_batches_are_all_rows_at_once(rng):
    X, Y = rng.normal(size=(120, 4)), rng.normal(size=(10, 4))
    w = rng.uniform(size=120)
    kernel = mc.Gaussian(2.0)
    options = {"kernel": kernel, "n_landmarks": 20}
    batched = KernelPCA(**options, random_state=0).partial_fit(X[:40], sample_weight=w[:40])
    Z = batched.subspace_.origin.points
    for rows in (slice(40, 41), slice(41, 120)):
        batched.partial_fit(X[rows], sample_weight=w[rows])
    np.testing.assert_array_equal(batched.subspace_.origin.points, Z)
    assert batched.mass_ == pytest.approx(w.sum())
    # the same from the definition: the scatter of the features, projected on the landmarks
    T = np.linalg.cholesky(kernel(Z))
    L, M = (np.linalg.solve(T, kernel(Z, A)).T for A in (X, Y))
    mean = w @ L / w.sum()
    values, vectors = np.linalg.eigh((L - mean).T @ (w[:, None] * (L - mean)))
    np.testing.assert_allclose(batched.eigenvalues_, values[::-1], rtol=1e-7, atol=1e-10)
    c = np.abs((M - mean) @ vectors[:, ::-1])
    np.testing.assert_allclose(np.abs(batched.transform(Y))[:, :10], c[:, :10], atol=1e-6)
    C = (L - mean) @ vectors[:, ::-1]
    slopes = C.T @ (w[:, None] * X) / values[::-1, None]
    found = batched.inverse_transform(np.eye(20)[:10])
    expected = np.abs(slopes[:10])
    np.testing.assert_allclose(np.abs(found - w @ X / w.sum()), expected, rtol=1e-4, atol=1e-6)


def test_partial_fit_needs_landmarks_and_fit_forgets(rng):
    X = rng.normal(size=(30, 2))
    assert not hasattr(KernelPCA(), "partial_fit")
    with pytest.raises(AttributeError, match=r"partial_fit needs landmarks: .*n_landmarks"):
        _ = KernelPCA().partial_fit
    model = KernelPCA(2, n_landmarks=10, random_state=0).fit(X)
    model.set_params(n_landmarks=None).fit(X[:20])
    assert model.mass_ == 20.0
    np.testing.assert_allclose(model.transform(X), KernelPCA(2).fit(X[:20]).transform(X))


# --- model selection ------------------------------------------------------------------------------


def test_score_is_the_explained_variance(rng):
    X, Y = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
    for options in ({}, {"n_components": 4, "whiten": True}):
        model = KernelPCA(**options).fit(X)
        back = model.inverse_transform(model.transform(Y))
        assert model.score(Y) == pytest.approx(1.0 - error(back, Y) / X.var(axis=0).mean())
    w = rng.integers(0, 3, 60)
    weighted = KernelPCA(4).fit(X, sample_weight=w)
    repeated = KernelPCA(4).fit(np.repeat(X, w, axis=0))
    assert weighted.score(Y) == pytest.approx(repeated.score(Y))
    far = KernelPCA(4).fit(X + 1e6)
    assert far.score(Y + 1e6) == pytest.approx(KernelPCA(4).fit(X).score(Y), abs=1e-6)
    units = np.array([1.0, 1e3, 1e-3])
    plain, other = (KernelPCA(4, scale_columns="std").fit(X * u) for u in (1.0, units))
    assert other.score(Y * units) == pytest.approx(plain.score(Y), rel=1e-6)
    assert KernelPCA(4).fit(csr_array(X)).score(csr_array(Y)) == pytest.approx(
        KernelPCA(4).fit(X).score(Y), rel=1e-6
    )


def test_grid_search_finds_the_length_scale_with_the_least_error():
    t = np.random.default_rng(0).uniform(0.0, 2.0 * np.pi, 200)
    curve = np.column_stack([np.cos(t), np.sin(t), np.cos(2.0 * t)])
    grid = {"kernel__length_scale": [0.05, 0.3, 1.0]}
    found = GridSearchCV(KernelPCA(6, kernel=mc.Gaussian(1.0)), grid, cv=4).fit(curve)
    assert found.best_params_ == {"kernel__length_scale": 1.0}
    left = 1.0 - found.cv_results_["mean_test_score"]
    assert np.all(left[1:] < 0.67 * left[:-1])  # far apart, unlike distances in H


@pytest.mark.parametrize("name", ["iris", "wine", "diabetes"])
@pytest.mark.parametrize(
    "options", [{"n_components": 2}, {"n_components": 5, "whiten": True}, {},
                {"n_components": 3, "inverse": mc.FixedPoint()}],
)  # fmt: skip
def test_grid_search_is_near_the_best_held_out_error(name, options):
    rows = getattr(datasets, f"load_{name}")().data
    X, Y = train_test_split(rows, test_size=0.4, random_state=0)
    scaler = StandardScaler().fit(X)
    X, Y = scaler.transform(X), scaler.transform(Y)
    lengths = mc.median_scale(X) * np.geomspace(0.1, 300.0, 8)
    model = KernelPCA(kernel=mc.Gaussian(1.0), **options)
    search = GridSearchCV(model, {"kernel__length_scale": lengths}, cv=3).fit(X)
    errors = []
    for s in lengths:
        model.set_params(kernel__length_scale=s).fit(X)
        errors.append(1e-6 + error(model.inverse_transform(model.transform(Y)), Y))
    assert errors[search.best_index_] <= 1.05 * min(errors)


def test_bad_inverses_are_refused(rng):
    with pytest.raises(mc.InputError, match="inverse must be"):
        KernelPCA(inverse="exact").fit(rng.normal(size=(10, 2)))


@pytest.mark.parametrize("inverse", [None, mc.Candidates(), mc.FixedPoint()], ids=repr)
def test_points_of_sparse_rows_come_back_dense(inverse, rng):
    X = np.where(rng.random((12, 3)) < 0.5, 0.0, rng.normal(size=(12, 3)))
    found = []
    for rows in (X, csr_array(X)):
        model = mc.KernelPCA(3, inverse=inverse).fit(rows)
        found.append(model.inverse_transform(model.transform(rows)))
    assert isinstance(found[1], np.ndarray)
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)
