"""KernelDenoiser: its contract, what it removes, containers, weights, and model selection."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, random_array
from sklearn import datasets as sk
from sklearn.datasets import load_digits, make_moons
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer import KernelDenoiser, KernelPCA
from mercer.methods import Landweber, Truncation, fit_denoiser


@pytest.mark.sample(3)
@parametrize_with_checks(
    [
        KernelDenoiser(),
        KernelDenoiser(2),
        KernelDenoiser(scale_columns="std"),
        KernelDenoiser(n_landmarks=8, random_state=0),
        KernelDenoiser(3, kernel=mc.Laplace(2.0)),
        KernelDenoiser(filter=Landweber(5)),
        KernelDenoiser(2, inverse=mc.FixedPoint(), trust=1.0),
    ]
)
@pytest.mark.filterwarnings("ignore:the training rows do not tell")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def error(X, Y):
    return float(np.mean((np.asarray(X) - Y) ** 2))


# --- what it is -----------------------------------------------------------------------------------


def test_it_is_the_function_on_the_subspace_of_kernel_pca(rng):
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 8)) + 0.1 * rng.normal(size=(60, 8))
    w = rng.integers(1, 3, 60).astype(float)
    k = mc.Gaussian(4.0)
    model = KernelDenoiser(3, kernel=k, noise=0.1).fit(X, sample_weight=w)
    plane = mc.kernel_pca(k, X, 3, weights=w)
    expected = fit_denoiser(plane, X, weights=w, filter=Truncation(), noise=0.1)
    assert (model.noise_, model.trust_) == (expected.noise, expected.trust)
    assert 0.0 < model.trust_ < 1.0
    np.testing.assert_allclose(model.transform(X), expected(X), rtol=1e-10)
    pca, Y = KernelPCA(3, kernel=k).fit(X, sample_weight=w), X + 0.01
    back = pca.inverse_transform(pca.transform(Y))
    np.testing.assert_allclose(model.transform(Y), Y + model.trust_ * (back - Y), atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"n_components": 4}, {"inverse": mc.FixedPoint()}])
def test_fitted_rows_are_denoised_as_if_they_had_been_left_out(options, rng):
    """Against a fit without the row, with the settings that the fit to all rows chose."""
    t = rng.uniform(0.0, 3.0, 40)
    X = np.column_stack([t, np.sin(t), np.cos(t)]) + 0.1 * rng.normal(size=(40, 3))
    kernel = mc.Gaussian(1.0)
    model = KernelDenoiser(kernel=kernel, noise=0.1, trust=1.0, **options).fit(X)
    found = model.transform(X)
    np.testing.assert_allclose(model.transform(X[7:8]), found[7:8], rtol=1e-9)
    np.testing.assert_allclose(model.fit_transform(X), found)
    alone = [
        KernelDenoiser(kernel=kernel, noise=0.1, trust=1.0, **options)
        .fit(np.delete(X, i, axis=0))
        .transform(X[i : i + 1])[0]
        for i in range(12)
    ]
    as_new = model.denoiser_.project(X)[:12]
    assert error(found[:12], alone) < 0.1 * error(as_new, alone)


def test_where_a_few_factors_explain_everything_the_kernel_is_linear(rng):
    clean = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 30))
    noisy = clean + 0.1 * rng.normal(size=clean.shape)
    model = KernelDenoiser().fit(noisy)
    assert model.kernel_ == mc.Linear()
    ratio = error(model.transform(noisy), clean) / error(noisy, clean)
    assert ratio < 0.4  # found: 0.33; 0.8 with the Gaussian kernel
    assert model.risk_ == pytest.approx(error(model.transform(noisy), clean), rel=0.2)


@pytest.mark.filterwarnings("ignore:the training rows do not tell")
@pytest.mark.parametrize("name", ["iris", "wine", "diabetes"])
@pytest.mark.parametrize("sd", [0.0, 0.1, 0.3])
def test_tables_are_not_harmed(name, sd, rng):
    clean = StandardScaler().fit_transform(getattr(sk, f"load_{name}")().data)
    noisy = clean + sd * rng.normal(size=clean.shape)
    np.testing.assert_array_equal(KernelDenoiser().fit_transform(noisy), noisy)
    given = KernelDenoiser(noise=sd).fit_transform(noisy)
    assert error(given, clean) <= error(noisy, clean)


def test_transform_changes_nothing_that_was_fitted(rng):
    X = rng.normal(size=(40, 3))
    model = KernelDenoiser(noise=0.3).fit(X)
    before = dict(vars(model))
    model.transform(X)
    model.score(X)
    assert vars(model) == before


def test_in_a_pipeline(rng):
    X = np.outer(rng.normal(size=80), [1.0, 2.0, -1.0]) + 0.3 * rng.normal(size=(80, 3))
    y = X[:, 0]
    pipe = make_pipeline(StandardScaler(), KernelDenoiser(noise=0.2), LinearRegression()).fit(X, y)
    Z = StandardScaler().fit_transform(X)
    clean = KernelDenoiser(noise=0.2).fit_transform(Z)
    np.testing.assert_allclose(pipe.predict(X), LinearRegression().fit(clean, y).predict(clean))


def test_names_of_columns_are_kept(rng):
    frame = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    model = KernelDenoiser(noise=0.2).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == ["a", "b", "c"]
    assert out.index.equals(frame.index)
    X = frame.to_numpy()
    np.testing.assert_allclose(out, KernelDenoiser(noise=0.2).fit(X).transform(X), atol=1e-9)


@pytest.mark.parametrize("kernel", ["precomputed", mc.Spectrum(2)])
def test_only_vectors_have_noise(kernel):
    with pytest.raises(mc.InputError, match="only vectors"):
        KernelDenoiser(kernel=kernel).fit(["abab", "abba", "bbbb"])


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
    dense, sparse = (
        KernelDenoiser(noise=0.3, **options).fit(X),
        KernelDenoiser(noise=0.3, **options).fit(csr_array(X)),
    )
    np.testing.assert_allclose(
        sparse.transform(csr_array(X[:9])), dense.transform(X[:9]), atol=1e-8
    )
    assert sparse.noise_ == pytest.approx(dense.noise_, rel=1e-6)


def test_wide_sparse_rows(rng):
    X = random_array((40, 3200), density=2e-3, rng=rng, format="csr")
    sparse, dense = (KernelDenoiser(3, noise=0.1).fit(A) for A in (X, X.toarray()))
    assert sparse.trust_ == pytest.approx(dense.trust_, abs=1e-7)


@pytest.mark.parametrize("options", WAYS)
def test_float32_stays_float32(options, rng):
    X = rng.normal(size=(40, 3)).astype(np.float32)
    found = KernelDenoiser(noise=0.3, **options).fit(X).transform(X)
    double = X.astype(np.float64)
    assert found.dtype == np.float32
    expected = KernelDenoiser(noise=0.3, **options).fit(double).transform(double)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("shape", [(12, 200), (2, 3), (3, 1)])
def test_few_rows_and_many_columns(shape, rng):
    X = rng.normal(size=shape)
    model = KernelDenoiser(noise=0.3).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert 0.0 <= model.trust_ <= 1.0


@pytest.mark.parametrize("options", [{}, {"n_components": 4}, {"inverse": mc.FixedPoint()}])
def test_far_from_the_origin(options, rng):
    X = rng.normal(size=(40, 3))
    near, far = (
        KernelDenoiser(noise=0.3, **options).fit(X),
        KernelDenoiser(noise=0.3, **options).fit(X + 1e6),
    )
    np.testing.assert_allclose(far.transform(X + 1e6) - 1e6, near.transform(X), atol=1e-5)


@pytest.mark.parametrize(
    "options", [*WAYS, {"filter": Landweber()}, {"n_components": 4, "inverse": mc.LearnedMap()},
                {"scale_columns": "std"}, {"n_landmarks": 15, "rule": "kmeans", "random_state": 0}],
)  # fmt: skip
def test_weights_are_repetitions(options, rng):
    X, Y = rng.normal(size=(45, 3)), rng.normal(size=(10, 3))
    w = rng.integers(0, 4, 45)
    weighted = KernelDenoiser(noise=0.3, **options).fit(X, sample_weight=w)
    repeated = KernelDenoiser(noise=0.3, **options).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.transform(Y), repeated.transform(Y), atol=1e-7)
    assert weighted.noise_ == pytest.approx(repeated.noise_, rel=1e-9)
    assert weighted.trust_ == pytest.approx(repeated.trust_, abs=1e-8)


# --- model selection ------------------------------------------------------------------------------


def circle(rng, n=200, sd=0.2):
    t = rng.uniform(0.0, 2.0 * np.pi, n)
    clean = np.column_stack([np.cos(t), np.sin(t)])
    return clean, clean + sd * rng.normal(size=clean.shape)


@pytest.mark.parametrize("grid", [{"kernel__length_scale": [0.01, 1.0, 100.0]},
                                  {"n_components": [1, 5, 100]}])  # fmt: skip
def test_grid_search_with_and_without_clean_rows(grid, rng):
    clean, noisy = circle(rng)
    model = KernelDenoiser(kernel=mc.Gaussian(1.0), noise=0.2, trust=1.0)
    folds = PredefinedSplit(np.arange(200) % 4)
    given = GridSearchCV(model, grid, cv=folds).fit(noisy, clean)
    blind = GridSearchCV(model, grid, cv=folds).fit(noisy)
    assert given.best_index_ == blind.best_index_ == 1
    a, b = given.cv_results_["mean_test_score"], blind.cv_results_["mean_test_score"]
    spread = given.cv_results_["std_test_score"] + blind.cv_results_["std_test_score"]
    assert (np.abs(a - b) < 2.0 * spread + 0.005).all()  # Stein's estimate is that of the error


def test_score_is_what_it_says(rng):
    clean, noisy = circle(rng)
    model = KernelDenoiser(noise=0.2).fit(noisy[:100])
    assert model.score(noisy[100:], clean[100:]) == pytest.approx(
        -error(model.transform(noisy[100:]), clean[100:])
    )
    labels = np.zeros(100)
    assert model.score(noisy[100:], labels) == model.score(noisy[100:])


# --- noise ----------------------------------------------------------------------------------------


def curves():
    rng = np.random.default_rng(0)
    u = rng.uniform(0.0, 2.0 * np.pi, 400)
    return {
        "ring": circle(rng, 400)[0],
        "moons": make_moons(400, random_state=0)[0],
        "sine": np.column_stack([u, 0.8 * np.sin(2.0 * u)]),
    }


@pytest.mark.parametrize(("name", "factor"), [("ring", 0.75), ("moons", 0.92), ("sine", 0.95)])
def test_denoising_reduces_the_error_on_curves(name, factor):
    # of noise in the plane half is along the curve and cannot be told: 0.5 would be perfect
    clean, ratios = curves()[name], []
    for seed in range(4):
        noisy = clean + 0.15 * np.random.default_rng(seed).normal(size=clean.shape)
        denoised = KernelDenoiser(noise=0.15).fit(noisy).transform(noisy)
        ratios.append(error(denoised, clean) / error(noisy, clean))
    assert np.mean(ratios) < factor  # found: 0.69, 0.86 and 0.91
    assert max(ratios) < 1.0


@pytest.mark.parametrize(("sd", "factor"), [(0.05, 1.05), (0.10, 1.05), (0.25, 0.5)])
def test_denoising_digits_is_never_worse_than_leaving_them_alone(sd, factor, rng):
    clean = rng.permutation(load_digits().data / 16.0)[:550]
    noisy = clean + sd * rng.normal(size=clean.shape)
    model = KernelDenoiser().fit(noisy[:400])
    assert model.noise_ == pytest.approx(sd, rel=0.15)
    ratio = error(model.transform(noisy[400:]), clean[400:]) / error(noisy[400:], clean[400:])
    assert ratio < factor  # found: 0.79, 0.62 and 0.37


def test_trust_and_noise_may_be_given(rng):
    X = rng.normal(size=(40, 3))
    for trust in (0.0, 0.3, 1.0):
        model = KernelDenoiser(2, noise=0.1, trust=trust, kernel="rbf").fit(X)
        pca, Y = KernelPCA(2, kernel="rbf").fit(X), X + 0.1
        moved = pca.inverse_transform(pca.transform(Y)) - Y
        np.testing.assert_allclose(model.transform(Y), Y + trust * moved, atol=1e-9)
    assert KernelDenoiser(noise=0.0).fit(X).trust_ == 0.0
    for choice in ("none", "std"):
        model = KernelDenoiser(noise=0.0, scale_columns=choice).fit(X)
        np.testing.assert_array_equal(model.transform(X), X)
        np.testing.assert_array_equal(model.transform(csr_array(X)), X)
    for wrong in ({"trust": 1.1}, {"trust": "full"}, {"noise": -1.0}, {"noise": "much"}):
        with pytest.raises(mc.InputError, match=next(iter(wrong))):
            KernelDenoiser(**wrong).fit(X)
    with pytest.raises(mc.InputError, match="inverse must be"):
        KernelDenoiser(inverse="exact").fit(X)


def test_rows_that_do_not_tell_their_noise_are_left_alone_with_a_warning(rng):
    X = rng.normal(size=(60, 3))
    with pytest.warns(mc.MercerWarning, match="do not tell"):
        model = KernelDenoiser().fit(X)
    assert (model.noise_, model.noise_error_, model.trust_) == (0.0, np.inf, 0.0)
    np.testing.assert_array_equal(model.transform(X), X)
