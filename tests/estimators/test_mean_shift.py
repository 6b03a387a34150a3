"""MeanShift: scikit-learn's contract, its own mean shift, seeds, weights, hard inputs."""

import numpy as np
import pytest
from sklearn import cluster as peer
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer import InputError, MeanShift, MercerWarning


@pytest.mark.sample(4)
@parametrize_with_checks(
    [
        MeanShift(),
        MeanShift("flat"),
        MeanShift(mc.Laplace(1.0)),
        MeanShift(bandwidth=1.0, bin_seeding=True),
        MeanShift(bandwidth=1.0, labels="nearest"),
        MeanShift(bandwidth=0.5, blurring=True),
        MeanShift(bandwidth="silverman", min_cluster_size=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def blobs():
    return make_blobs(300, centers=[[-4, 0], [4, 0], [0, 6]], cluster_std=0.8, random_state=0)


def test_finds_the_blobs_untuned(blobs):
    X, y = blobs
    model = MeanShift().fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.modes_.proved.all()
    assert not model.guarantee_.holds


def test_the_default_is_that_of_significant_modes(blobs):
    X, _ = blobs
    model, found = MeanShift().fit(X), mc.methods.significant_modes(X)
    assert model.kernel_ == mc.Gaussian(found.bandwidth).transform(
        mc.kernels.Matrix(found.components)
    )
    assert np.array_equal(model.labels_, found.labels)
    assert model.significance_.tolist() == found.significance.tolist()
    assert model.components_ is None
    assert model.significant_.message == found.message


def test_a_kernel_or_bandwidth_of_ones_own_is_classical(blobs):
    X, _ = blobs
    for model in (MeanShift(bandwidth=0.3), MeanShift(mc.Gaussian(0.3))):
        model.fit(X)
        assert (model.significance_, model.significant_, model.components_) == (None, None, None)
        assert len(model.cluster_centers_) > 3


@pytest.mark.parametrize("scale_columns", ["none", "std"])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_components_in_many_columns(scale_columns, shift, rng):
    truth = np.repeat([0, 1, 2], [60, 50, 40])
    X = rng.normal(size=(150, 40)) + 2.5 * rng.normal(size=(3, 40))[truth] + shift
    model = MeanShift(scale_columns=scale_columns).fit(X)
    assert np.array_equal(model.labels_, truth)
    assert np.array_equal(model.predict(X), truth)
    assert model.components_.shape[1] == 40
    means = np.stack([X[truth == j].mean(axis=0) for j in range(3)])
    assert np.abs(model.cluster_centers_ - means).max() < 1.5
    z = (X - X.mean(axis=0)) @ model.components_.T
    assert model.modes_.points.shape == (3, z.shape[1])
    # the density does not change across the components
    across = np.linalg.svd(model.components_)[2][-1]
    np.testing.assert_allclose(model.density_(X + 5.0 * across), model.density_(X), rtol=1e-4)
    for other in (
        {"kernel": "flat"},
        {"bin_seeding": True},
        {"seeds": X[::5]},
        {"blurring": True},
        {"labels": "nearest"},
    ):
        model = MeanShift(scale_columns=scale_columns, **other).fit(X)
        assert adjusted_rand_score(truth, model.labels_) > 0.9
        assert np.array_equal(model.predict(X), model.labels_)
        assert model.cluster_centers_.shape[1] == 40


def test_no_clusters_is_an_answer(rng):
    model = MeanShift().fit(rng.normal(size=(200, 5)))
    assert len(model.cluster_centers_) == 1
    assert "no clusters" in model.significant_.message
    assert (model.predict(rng.normal(size=(10, 5))) == 0).all()


def test_a_lattice_has_one_cluster_and_no_warning():
    """On its plateau an ascent takes longer than `max_iter`."""
    X = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    model = MeanShift(max_iter=5).fit(X)
    assert (model.labels_ == 0).all()
    assert model.cluster_centers_.shape == (1, 2)


@pytest.mark.parametrize("bandwidth", ["auto", "silverman", "stable", 1.0])
def test_constant_columns(bandwidth, blobs):
    X, y = blobs
    model = MeanShift(bandwidth=bandwidth).fit(np.column_stack([X, np.full(len(X), 5.0)]))
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert (model.cluster_centers_[:, 2] == 5.0).all()
    new = np.column_stack([X, np.full(len(X), 5.5)])
    assert adjusted_rand_score(y, model.predict(new)) > 0.95


def test_the_stable_bandwidth_is_that_of_the_scale_space(blobs):
    X, y = blobs
    model = MeanShift(bandwidth="stable").fit(X)
    assert model.kernel_ == mc.Gaussian(mc.methods.scale_space(X).best)
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_the_flat_kernel_is_that_of_scikit_learn(blobs):
    """Up to where it stops: at a thousandth of the bandwidth, and one end within another's."""
    X, _ = blobs
    theirs = peer.MeanShift(bandwidth=2.5).fit(X)
    ours = MeanShift("flat", bandwidth=2.5).fit(X)
    assert adjusted_rand_score(theirs.labels_, ours.labels_) > 0.97
    for centre in theirs.cluster_centers_:
        assert np.linalg.norm(ours.cluster_centers_ - centre, axis=1).min() < 0.05


@pytest.mark.parametrize(
    "model",
    [
        MeanShift(),
        MeanShift("flat", bandwidth=2.0),
        MeanShift(mc.Laplace(1.5)),
        MeanShift(bandwidth="likelihood"),
        MeanShift("flat"),
        MeanShift(scale_columns="std"),
    ],
    ids=repr,
)
def test_predict_repeats_the_labels(model, blobs):
    X, _ = blobs
    assert np.array_equal(model.fit(X).predict(X), model.labels_)


def test_basins_are_not_nearest_centres(rng):
    """A long cluster reaches past the centre of a short one."""
    long = rng.normal(size=(800, 2)) * [4.0, 0.3]
    short = rng.normal([8.0, 5.0], 0.3, size=(80, 2))
    X = np.concatenate([long, short])
    basin = MeanShift(bandwidth=1.6).fit(X)
    nearest = MeanShift(bandwidth=1.6, labels="nearest").fit(X)
    assert len(basin.cluster_centers_) == 2
    assert (basin.labels_[:800] == 0).all()
    assert (nearest.labels_[:800] == 1).any()
    assert np.array_equal(nearest.labels_, nearest.predict(X))


def test_seeds_and_bins(blobs):
    X, _ = blobs
    every = MeanShift(bandwidth=1.0).fit(X)
    binned = MeanShift(bandwidth=1.0, bin_seeding=True).fit(X)
    np.testing.assert_allclose(binned.cluster_centers_, every.cluster_centers_, atol=1e-6)
    assert np.array_equal(binned.labels_, every.labels_)
    one = MeanShift(bandwidth=1.0, seeds=X[:1]).fit(X)
    assert len(one.cluster_centers_) == 1
    assert set(one.labels_) == {-1, 0}
    frequent = MeanShift(bandwidth=1.0, bin_seeding=True, min_bin_freq=10_000).fit(X)
    assert len(frequent.cluster_centers_) == len(every.cluster_centers_)


def test_small_clusters_are_orphans(blobs):
    X, _ = blobs
    X = np.vstack([X, [[40.0, 40.0]]])
    every = MeanShift(bandwidth=1.0).fit(X)
    some = MeanShift(bandwidth=1.0, min_cluster_size=5).fit(X)
    assert every.labels_[-1] >= 0
    assert some.labels_[-1] == -1
    assert some.predict([[40.0, 40.0]]) == [-1]
    assert np.bincount(some.labels_[some.labels_ >= 0]).min() >= 5


def test_order_and_weights_do_not_matter(blobs, rng):
    X, _ = blobs
    order = rng.permutation(len(X))
    one, other = MeanShift().fit(X), MeanShift().fit(X[order])
    assert np.array_equal(one.labels_[order], other.labels_)
    w = rng.integers(1, 4, len(X))
    weighted = MeanShift().fit(X, sample_weight=w)
    repeated = MeanShift().fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-8)
    assert np.array_equal(np.repeat(weighted.labels_, w), repeated.labels_)


def test_a_row_of_weight_zero_is_only_labelled(blobs):
    X, _ = blobs
    w = np.ones(len(X))
    w[::3] = 0.0
    some = MeanShift(bandwidth=1.0).fit(X, sample_weight=w)
    others = MeanShift(bandwidth=1.0).fit(X[w > 0])
    np.testing.assert_allclose(some.cluster_centers_, others.cluster_centers_, rtol=1e-9)
    assert np.array_equal(some.labels_, others.predict(X))


def test_blurring_contracts(blobs):
    X, y = blobs
    model = MeanShift(bandwidth=0.9, blurring=True).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.modes_ is None


def test_a_kernel_keeps_its_own_scale(blobs):
    X, _ = blobs
    assert MeanShift(mc.Gaussian(0.7)).fit(X).kernel_ == mc.Gaussian(0.7)
    assert MeanShift(mc.Gaussian(0.7), bandwidth=2.0).fit(X).kernel_ == mc.Gaussian(2.0)
    wide = MeanShift(mc.InverseMultiquadric(1.0, 2.0), bandwidth=3.0).fit(X)
    assert wide.kernel_([[0.0, 0.0]], [[3.0, 0.0]])[0, 0] == pytest.approx(0.25)


def test_saved_and_loaded(blobs, tmp_path):
    X, _ = blobs
    model = MeanShift().fit(X)
    mc.save(model, tmp_path / "model.mercer")
    loaded = mc.load(tmp_path / "model.mercer")
    assert np.array_equal(loaded.predict(X), model.labels_)
    assert loaded.modes_.n_starts.tolist() == model.modes_.n_starts.tolist()


def test_one_point_and_equal_points():
    assert MeanShift(bandwidth=1.0).fit([[3.0, 4.0]]).cluster_centers_.tolist() == [[3.0, 4.0]]
    assert MeanShift().fit([[3.0, 4.0]]).cluster_centers_.tolist() == [[3.0, 4.0]]
    assert MeanShift().fit(np.ones((5, 2))).labels_.tolist() == [0] * 5
    same = MeanShift(bandwidth=1.0).fit(np.ones((5, 2)))
    assert same.labels_.tolist() == [0] * 5
    assert same.cluster_centers_.tolist() == [[1.0, 1.0]]


def test_too_few_steps_are_said(rng):
    X = rng.normal(size=(100, 2))
    with pytest.warns(MercerWarning, match="still moving after max_iter = 2"):
        MeanShift(mc.Laplace(1.0), max_iter=2, seeds=np.vstack([X, [X[0]]])).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "centre"}, "labels"),
        ({"bandwidth": -1.0}, "bandwidth"),
        ({"bandwidth": "wide"}, "bandwidth must be a number"),
        ({"kernel": "cosine"}, "kernel"),
        ({"kernel": mc.Linear()}, "convex"),
        ({"min_cluster_size": 0}, "min_cluster_size"),
    ],
)
def test_bad_parameters(options, message, rng):
    with pytest.raises(InputError, match=message):
        MeanShift(**options).fit(rng.normal(size=(10, 2)))


# --- units, far from the origin, parameters that do not fit ------------------------------------


def three_clusters(rng):
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    return np.concatenate([rng.normal(c, 1.0, (50, 2)) for c in centres]), np.repeat(range(3), 50)


@pytest.mark.parametrize("shift", [0.0, 1e9])
@pytest.mark.parametrize(
    "settings", [{"labels": "nearest"}, {"blurring": True}, {"bin_seeding": True}, {}], ids=str
)
def test_clusters_far_from_the_origin(shift, settings, rng):
    X, y = three_clusters(rng)
    model = mc.MeanShift(bandwidth=2.0, **settings).fit(X + shift)
    for labels in (model.labels_, model.predict(X + shift)):
        assert float(mc.methods.clustering_accuracy(y, labels)) == 1.0


def test_scaled_columns_do_not_depend_on_units(rng):
    X, y = three_clusters(rng)
    units = np.array([1.0, 1e6])
    plain = mc.MeanShift(scale_columns="std").fit(X)
    for settings in ({}, {"labels": "nearest"}, {"bin_seeding": True}):
        model = mc.MeanShift(scale_columns="std", **settings).fit(X * units)
        assert float(mc.methods.clustering_accuracy(y, model.labels_)) == 1.0
        assert (model.predict(X * units) == model.labels_).all()
        np.testing.assert_allclose(
            model.cluster_centers_[model.labels_],
            plain.cluster_centers_[plain.labels_] * units,
            rtol=1e-3,
            atol=1e-3 * units.max(),
        )
    for scale_columns in ("auto", "none"):  # components are scaled in any case
        model = mc.MeanShift(scale_columns=scale_columns).fit(X * units)
        assert float(mc.methods.clustering_accuracy(y, model.labels_)) == 1.0
    other = mc.MeanShift(bandwidth="silverman", scale_columns="none").fit(X * units)
    assert len(other.cluster_centers_) != 3


@pytest.mark.parametrize(
    "settings", [{"bandwidth": 1.0}, {"kernel": mc.Gaussian(1.0)}], ids=["bandwidth", "kernel"]
)
def test_what_the_user_gives_is_in_the_units_of_the_data(settings, rng):
    X, _ = three_clusters(rng)
    with pytest.raises(mc.InputError, match="units of the data"):
        mc.MeanShift(scale_columns="std", **settings).fit(X)
    with pytest.raises(mc.InputError, match='must be "auto", "none" or "std"'):
        mc.MeanShift(scale_columns="yes").fit(X)


def test_kernels_that_mean_shift_cannot_climb_say_so(rng):
    X, _ = three_clusters(rng)
    product = mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Laplace(1.0).transform(
        mc.Columns([1])
    )
    for settings in ({}, {"bin_seeding": True}, {"blurring": True}):
        with pytest.raises(mc.InputError, match="convex, decreasing profile"):
            mc.MeanShift(product, **settings).fit(X)
        with pytest.raises(mc.InputError, match="falls over some length"):
            mc.MeanShift(mc.NegativeDistance(2.0), **settings).fit(X)


@pytest.mark.parametrize("settings", [{}, {"labels": "nearest"}, {"blurring": True}], ids=str)
def test_no_cluster_is_large_enough(settings, rng):
    X, _ = three_clusters(rng)
    model = mc.MeanShift(bandwidth=2.0, min_cluster_size=1000, **settings).fit(X)
    assert model.cluster_centers_.shape == (0, 2)
    assert (model.labels_ == -1).all()
    assert (model.predict(X[:5]) == -1).all()


def test_columns_in_very_different_units(rng):
    centres = np.repeat([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 9.0, 9.0]], 40, axis=0)
    X = centres + rng.normal(size=centres.shape)
    found = MeanShift().fit(X * [1e-9, 1.0, 1e9])  # was refused: "does not see every direction"
    np.testing.assert_array_equal(found.labels_, MeanShift().fit(X).labels_)
