"""Methods on rows in pieces: as in memory."""

import numpy as np
import pytest

import mercer as mc
from mercer._chunks import LocalChunks
from mercer.estimators import _ridge_choice
from mercer.exceptions import InputError

rng = np.random.default_rng(2)
X, new, w = rng.normal(size=(240, 3)), rng.normal(size=(50, 3)), rng.integers(0, 4, 240) + 0.0
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=240) + 5.0
Y2 = np.column_stack([y, X[:, 1] ** 2])


def cut(array, rows=90):
    return LocalChunks.of(np.asarray(array), rows)


_G, _L = mc.Gaussian(1.5), {"n_landmarks": 40, "random_state": 0}


@pytest.mark.parametrize(
    ("options", "weights", "targets"),
    [
        ({**_L, "kernel": _G}, None, Y2),
        ({**_L, "kernel": _G, "penalty": 0.1}, w, y),
        ({**_L, "kernel": _G, "fit_intercept": False, "reduction": "mean"}, w, Y2),
        ({"kernel": mc.Matern(1.5, 2.0), "penalty": 0.1, "solver": "cg", "tol": 1e-12}, w, Y2),
        ({"kernel": _G, "penalty": 0.01, "fit_intercept": False, "tol": 1e-12}, None, y),
    ],
    ids=["landmarks", "weighted", "mean", "cg", "cg without intercept"],
)
def test_kernel_ridge(options, weights, targets):
    known = mc.KernelRidge(**options).fit(X, targets, sample_weight=weights)
    parts = None if weights is None else cut(weights)
    model = mc.KernelRidge(**options).fit(cut(X), cut(targets), sample_weight=parts)
    assert model.penalty_ == pytest.approx(known.penalty_, rel=1e-9)
    assert model.kernel_ == known.kernel_
    np.testing.assert_allclose(model.predict(new), known.predict(new), rtol=1e-6)
    np.testing.assert_allclose(model.predict(cut(new, 20)), known.predict(new), rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, known.intercept_, rtol=1e-6)
    score = model.score(cut(X), cut(targets), sample_weight=parts)
    assert score == pytest.approx(known.score(X, targets, sample_weight=weights), rel=1e-6)
    a, b = model.certificate_, known.certificate_
    assert a.primal == pytest.approx(b.primal, rel=1e-6)
    assert a.relative_gap < 1e-6
    assert a.feasibility < 1e-6
    with pytest.raises(InputError, match="no leave-one-out"):
        model.loo_residuals()


@pytest.mark.parametrize("level", [0.0, 3.0])
def test_the_score_of_constant_targets(level):
    model = mc.KernelRidge(_G, n_landmarks=10, penalty=0.1, random_state=0).fit(X, y)
    for predicted in (model, mc.KernelRidge(_G, penalty=0.1).fit(X, np.full(len(X), level))):
        constant = np.full(len(X), level)
        assert predicted.score(cut(X), cut(constant)) == predicted.score(X, constant)


@pytest.mark.parametrize("options", [_L, {"penalty": 1.0, "solver": "cg"}], ids=["low", "cg"])
def test_tasks_carry_no_features_of_the_sample(options, monkeypatch):
    used = []

    def watched(fit):
        return lambda low, *args, **named: used.append(len(low.factor)) or fit(low, *args, **named)

    for name in ("fit_landmarks_in_pieces", "fit_rows_in_pieces"):
        monkeypatch.setattr(_ridge_choice, name, watched(getattr(_ridge_choice, name)))
    mc.KernelRidge(_G, **options).fit(cut(X), y)
    assert used == [0]


def test_constant_columns_keep_their_unit():
    Z = np.column_stack([X * [1.0, 100.0, 1e-7], np.full(240, 0.1), np.full(240, 0.7)])
    options = {"scale_columns": "std", "n_landmarks": 50, "random_state": 0}
    for weights in (None, w, 1e20 * w):
        known = mc.KernelPCA(2, **options).fit(Z, sample_weight=weights).scaler_.scale_
        parts = None if weights is None else cut(weights)
        found = mc.KernelPCA(2, **options).fit(cut(Z), sample_weight=parts).scaler_.scale_
        np.testing.assert_allclose(found, known, rtol=1e-12)
        np.testing.assert_array_equal(found[3:], 1.0)


def test_types_of_results_are_those_of_a_fit_in_memory():
    rows, pieces = X.astype(np.float32), cut(X.astype(np.float32))
    density = mc.KernelDensity(_G)
    for fitted in (rows, pieces):
        model = density.fit(fitted)
        found, known = model.score_samples(pieces), model.score_samples(rows)
        assert found.dtype == known.dtype == np.float64
        np.testing.assert_allclose(found, known, rtol=1e-12)
    plane = mc.KernelPCA(2, kernel=_G, **_L).fit(pieces)
    assert plane.score_samples(pieces).dtype == plane.score_samples(rows).dtype == np.float64
    assert plane.transform(pieces).dtype == plane.transform(rows).dtype == np.float32


def test_estimators_show_what_they_found():
    models = [
        mc.MeanShift(bandwidth=1.0, seeds=X[:5, :2], labels="nearest"),
        mc.KernelRidge(_G, **_L),
        mc.KernelDensity(_G),
        mc.KernelPCA(2, kernel=_G, **_L),
    ]
    for model in models:
        model.fit(cut(X[:, :2]), y)
        assert type(model).__name__ in model._repr_html_()
        assert mc.report(model).html()


def test_the_kernel_of_ridge_regression_is_chosen_on_a_sample():
    known = mc.KernelRidge(**_L).fit(X[:60], y[:60])
    model = mc.KernelRidge(**_L).fit(cut(X[:60], 25), cut(y[:60], 25))
    assert model.kernel_ == known.kernel_
    np.testing.assert_allclose(model.predict(new), known.predict(new), rtol=1e-6)


@pytest.mark.parametrize("weights", [None, w], ids=["plain", "weighted"])
def test_ridge_regression_keeps_no_features_beyond_the_working_memory(weights):
    options = {**_L, "kernel": _G, "penalty": 0.1}
    known = mc.KernelRidge(**options).fit(X, Y2, sample_weight=weights)
    with mc.options(working_memory=0.005):  # 5,243 features; 240 rows have 9,600
        model = mc.KernelRidge(**options).fit(X, Y2, sample_weight=weights)
        exact = mc.KernelRidge(**{**options, "penalty": 0.0}).fit(X, y)
    np.testing.assert_allclose(model.predict(new), known.predict(new), rtol=1e-6)
    assert model.is_weighted_ == known.is_weighted_
    assert known.loo_residuals().shape == (*exact.loo_residuals().shape[:1], 2)
    with pytest.raises(InputError, match="working_memory"):
        model.loo_residuals()


def test_ridge_regression_far_from_the_origin():
    options = {"n_landmarks": 40, "random_state": 0, "kernel": mc.Gaussian(1.5), "penalty": 0.1}
    known = mc.KernelRidge(**options).fit(X, y).predict(new)
    found = mc.KernelRidge(**options).fit(cut(X), cut(y + 1e8)).predict(new) - 1e8
    np.testing.assert_allclose(found, known, atol=1e-6)


def test_ridge_regression_refuses_what_needs_all_rows():
    for options in ({"max_norm": 1.0}, {"solver": "cholesky", "penalty": 1.0}):
        with pytest.raises(InputError, match="rows in pieces are fitted with"):
            mc.KernelRidge(mc.Gaussian(1.0), **options).fit(cut(X), cut(y))
    with pytest.raises(InputError, match="penalty must be > 0"):
        mc.KernelRidge(mc.Gaussian(1.0), penalty=0.0).fit(cut(X), cut(y))
    with pytest.raises(InputError, match="NaN"):
        mc.KernelRidge(mc.Gaussian(1.0), penalty=1.0).fit(cut(X), cut(np.where(y > 6, np.nan, y)))


def test_ridge_regression_refuses_kernels_without_landmarks():
    """Linear features of zeros, and k(x, x) = 0 with what mercer does not know to be indefinite."""
    for options in ({"solver": "cg", "penalty": 1.0}, {"n_landmarks": 5}):
        for rows in (cut(0.0 * X), 0.0 * X):
            if isinstance(rows, LocalChunks) or "n_landmarks" in options:
                with pytest.raises(InputError, match=r"k\(x, x\) is 0 at all rows"):
                    mc.KernelRidge(mc.Linear(), **options).fit(rows, y)
        with pytest.raises(InputError, match=r"positive definite kernel, but .* is indefinite"):
            mc.KernelRidge(2.0 * mc.kernels.NegativeDistance(3.0), **options).fit(cut(X), cut(y))


@pytest.mark.parametrize("weights", [None, w], ids=["equal", "weighted"])
def test_densities(weights):
    parts = None if weights is None else cut(weights)
    k = mc.Gaussian(0.5) + mc.Matern(1.5, 1.0)
    f = mc.kernel_density(k, X, weights=weights)
    np.testing.assert_allclose(mc.kernel_density(k, cut(X), weights=parts)(new), f(new), rtol=1e-12)
    model = mc.KernelDensity(bandwidth="scott").fit(cut(X), sample_weight=parts)
    known = mc.KernelDensity(bandwidth="scott").fit(X, sample_weight=weights)
    far = np.vstack([new, [[300.0, 0.0, 0.0]]])  # where the density itself underflows
    assert model.kernel_.length_scale == pytest.approx(known.kernel_.length_scale, rel=1e-12)
    np.testing.assert_allclose(model.score_samples(far), known.score_samples(far), rtol=1e-11)
    found = model.score_samples(cut(far, 20))
    np.testing.assert_allclose(found, known.score_samples(far), rtol=1e-11)
    np.testing.assert_allclose(known.score_samples(cut(far, 20)), found, rtol=1e-11)
    d, e = model.density_, known.density_
    np.testing.assert_allclose(d(cut(new, 20)), e(new), rtol=1e-11)
    np.testing.assert_allclose(d.gradient(cut(new, 20)), e.gradient(new), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(d.log_gradient(far), e.log_gradient(far), rtol=1e-9)


def test_densities_refuse_what_needs_all_rows():
    with pytest.raises(InputError, match="sensitivity"):
        mc.KernelDensity(sensitivity=0.5).fit(cut(X))
    with pytest.raises(InputError, match="'likelihood' needs all rows"):
        mc.KernelDensity(bandwidth="likelihood").fit(cut(X))
    with pytest.raises(InputError, match="rows in memory"):
        mc.KernelDensity().fit(cut(X)).sample(3)


@pytest.mark.parametrize("scale", ["none", "std"])
@pytest.mark.parametrize("weights", [None, w], ids=["equal", "weighted"])
def test_mean_shift_from_seeds(weights, scale):
    Z = X * [1.0, 5.0, 1.0] + np.repeat([[0.0], [9.0]], [100, 140], axis=0)
    seeds, parts = Z[::9], None if weights is None else cut(weights)
    options = {"bandwidth": "modes", "labels": "nearest", "scale_columns": scale, "seeds": seeds}
    options["tol"] = 1e-9
    known = mc.MeanShift(**options).fit(Z, sample_weight=weights)
    model = mc.MeanShift(**options).fit(cut(Z), sample_weight=parts)
    assert len(known.cluster_centers_) > 1
    found, own = (m._density(Z[:9]) for m in (model, known))
    np.testing.assert_allclose(found, own, rtol=1e-9)
    np.testing.assert_allclose(model.cluster_centers_, known.cluster_centers_, atol=1e-5)
    np.testing.assert_array_equal(model.labels_, known.labels_)
    np.testing.assert_array_equal(model.predict(cut(Z)), known.labels_)
    np.testing.assert_array_equal(known.predict(cut(Z)), known.labels_)
    np.testing.assert_array_equal(model.predict(Z), known.labels_)


def test_mean_shift_refuses_what_needs_all_rows():
    for options in ({}, {"bandwidth": 1.0}, {"bandwidth": 1.0, "seeds": X[:5]}):
        with pytest.raises(InputError, match="rows in memory"):
            mc.MeanShift(**options).fit(cut(X))
    with pytest.raises(InputError, match="rows in memory"):
        mc.mean_shift(mc.mean_embedding(mc.Gaussian(1.0), cut(X)))
    with pytest.raises(InputError, match="cusp"):
        mc.mean_shift(mc.mean_embedding(mc.Laplace(1.0), cut(X)), X[:5])
