"""KernelDensity: scikit-learn's contract and its numbers, bandwidths, weights, draws."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import gaussian_kde, kstest
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity as Peer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer.estimators._kernel_density import KernelDensity


@parametrize_with_checks(
    [
        KernelDensity(),
        KernelDensity(mc.Laplace(1.0), bandwidth="modes", sensitivity=0.5),
        KernelDensity("epanechnikov", bandwidth=2.0),
        KernelDensity(bandwidth="likelihood"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# --- against other libraries ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaussian", "epanechnikov", "tophat", "exponential"])
@pytest.mark.parametrize(("d", "h"), [(1, 0.7), (3, 1.2), (20, 7.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_log_densities_are_those_of_scikit_learn(name, d, h, weighted, rng):
    X, Y = rng.normal(size=(200, d)), 1.5 * rng.normal(size=(60, d))
    w = rng.uniform(0.1, 3.0, 200) if weighted else None
    # one leaf for all: through its tree scikit-learn adds and subtracts bounds, and loses digits
    peer = Peer(kernel=name, bandwidth=h, atol=0, rtol=0, leaf_size=1000).fit(X, sample_weight=w)
    expected = peer.score_samples(Y)
    found = KernelDensity(name, bandwidth=h).fit(X, sample_weight=w).score_samples(Y)
    inside = np.isfinite(expected)
    assert inside.sum() > 5
    np.testing.assert_array_equal(np.isfinite(found), inside)
    np.testing.assert_allclose(found[inside], expected[inside], rtol=0, atol=1e-10)
    model = KernelDensity(name, bandwidth=h).fit(X, sample_weight=w)
    assert model.score(Y[inside]) == pytest.approx(peer.score(Y[inside]), abs=1e-8)


def test_the_log_density_of_scipy_with_its_own_covariance_as_a_map(rng):
    X, Y = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 3)), rng.normal(size=(20, 3))
    peer = gaussian_kde(X.T)
    kernel = mc.Gaussian(1.0).transform(
        mc.kernels.Matrix(np.linalg.inv(np.linalg.cholesky(peer.covariance)))
    )
    found = KernelDensity(kernel).fit(X).score_samples(Y)
    np.testing.assert_allclose(found, peer.logpdf(Y.T), atol=1e-10)


# --- bandwidths -----------------------------------------------------------------------------------


def test_a_kernel_object_is_used_as_it_is_unless_a_bandwidth_is_given(rng):
    X = rng.normal(size=(30, 2))
    assert KernelDensity(mc.Laplace(3.0)).fit(X).kernel_ == mc.Laplace(3.0)
    assert KernelDensity(mc.Laplace(3.0), bandwidth=0.5).fit(X).kernel_ == mc.Laplace(0.5)
    window = (
        KernelDensity(mc.kernels.Uniform(4.0), bandwidth=0.5).fit(X).kernel_
    )  # a radius of 2, halved
    np.testing.assert_array_equal(window(X), mc.kernels.Uniform(1.0)(X))


@pytest.mark.parametrize("rule", ["modes", "silverman", "scott", "likelihood"])
def test_rules_are_those_of_density_scale(rule, rng):
    from mercer.methods.density._bandwidth import density_scale

    X = rng.normal(size=(60, 2))
    model = KernelDensity(bandwidth=rule).fit(X)
    assert model.kernel_ == mc.Gaussian(density_scale(X, rule=rule))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "cosine"}, "kernel must be"),
        ({"kernel": mc.Linear()}, "function of a distance"),
        ({"kernel": mc.InverseMultiquadric(1.0, 1.0)}, "p > d/2"),
        ({"bandwidth": "best"}, "bandwidth must be a number"),
        ({"bandwidth": -1.0}, "bandwidth must be > 0"),
        ({"sensitivity": -0.5}, "sensitivity must be >= 0"),
    ],
)
def test_bad_parameters_are_named(parameters, message, rng):
    with pytest.raises(mc.InputError, match=message):
        KernelDensity(**parameters).fit(rng.normal(size=(10, 2)))


def test_one_row_has_no_rule_but_takes_a_number():
    with pytest.raises(mc.InputError, match="two different rows"):
        KernelDensity().fit([[1.0, 2.0]])
    one = KernelDensity(bandwidth=1.0).fit([[1.0, 2.0]])
    np.testing.assert_allclose(one.score_samples([[1.0, 2.0]]), -np.log(2 * np.pi))


@pytest.mark.parametrize("bandwidth", ["auto", "scott", "modes", "likelihood"])
@pytest.mark.parametrize("sensitivity", [0.0, 0.5])
def test_a_constant_column_changes_the_density_by_a_factor(bandwidth, sensitivity, rng):
    """On rows that are equal there; so densities can still be compared."""
    X = rng.normal(size=(50, 2))
    plain = KernelDensity(bandwidth=bandwidth, sensitivity=sensitivity).fit(X)
    more = KernelDensity(bandwidth=bandwidth, sensitivity=sensitivity)
    more.fit(np.column_stack([X, np.full(50, 3.0)]))
    assert more.kernel_.length_scale == pytest.approx(plain.kernel_.length_scale, rel=1e-6)
    Y = rng.normal(size=(20, 2))
    gap = more.score_samples(np.column_stack([Y, np.full(20, 3.0)])) - plain.score_samples(Y)
    if sensitivity == 0.0:
        h = more.kernel_.length_scale
        np.testing.assert_allclose(gap, -np.log(h * np.sqrt(2.0 * np.pi)), rtol=1e-5)
    assert np.isfinite(gap).all()


# --- weights, draws, contract ---------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", ["silverman", "modes", "likelihood"])
@pytest.mark.parametrize("sensitivity", [0.0, 0.5])
def test_a_weight_of_two_is_a_row_that_stands_twice(bandwidth, sensitivity, rng):
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(9, 2))
    w = rng.integers(0, 4, 40)
    model = KernelDensity(bandwidth=bandwidth, sensitivity=sensitivity)
    weighted = model.fit(X, sample_weight=w).score_samples(Y)
    repeated = model.fit(np.repeat(X, w, axis=0)).score_samples(Y)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)


def test_draws_follow_the_density(rng):
    X = np.concatenate([rng.normal(-3, 1, (100, 1)), rng.normal(3, 0.3, (200, 1))])
    for model in (KernelDensity(), KernelDensity("epanechnikov", sensitivity=0.5)):
        drawn = model.fit(X).sample(4000, random_state=1)[:, 0]
        grid = np.linspace(-12, 12, 6001)
        f = np.exp(model.score_samples(grid[:, None]))
        F = np.cumsum(f) * (grid[1] - grid[0])
        assert kstest(drawn, lambda x, g=grid, F=F: np.interp(x, g, F)).pvalue > 1e-3
        again = model.sample(4000, random_state=1)[:, 0]
        np.testing.assert_array_equal(drawn, again)
    assert model.sample().shape == (1, 1)


def test_clones_pipelines_searches_frames_and_pickles(rng):
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    search = GridSearchCV(
        KernelDensity(mc.Gaussian(1.0)), {"kernel__length_scale": [1e-3, 0.5, 90]}
    )
    assert search.fit(X).best_params_ == {"kernel__length_scale": 0.5}
    pipe = make_pipeline(StandardScaler(), KernelDensity()).fit(X)
    assert np.isfinite(pipe.score_samples(X)).all()
    model = KernelDensity().fit(X)
    assert list(model.feature_names_in_) == ["a", "b"]
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))


def test_sparse_rows_are_refused_and_float32_is_computed_in_double(rng):
    X = rng.normal(size=(30, 2))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        KernelDensity().fit(csr_array(X))
    f32 = X.astype(np.float32)
    found = KernelDensity().fit(f32).score_samples(f32)
    expected = KernelDensity().fit(f32.astype(float)).score_samples(f32.astype(float))
    np.testing.assert_array_equal(found, expected)


def test_far_queries_have_finite_logarithms(rng):
    X = rng.normal(size=(50, 2)) + 1e6
    model = KernelDensity(n_jobs=1).fit(X)
    far = model.score_samples([[1e6 + 1e4, 1e6]])
    h = model.kernel_.length_scale
    gap = np.array([1e6 + 1e4, 1e6]) - X
    logs = -np.sum(gap**2, axis=1) / (2 * h**2) - np.log(2 * np.pi * h**2 * 50)
    np.testing.assert_allclose(far, np.logaddexp.reduce(logs), rtol=1e-9)


@pytest.mark.parametrize("bandwidth", ["silverman", "likelihood", 1e-160])
def test_data_of_a_scale_that_no_kernel_has_are_refused_with_the_cure(bandwidth, rng):
    X = 1e-160 * rng.normal(size=(30, 2))
    with pytest.raises(mc.InputError, match="rescale the data"):
        mc.KernelDensity(bandwidth=bandwidth).fit(X)
