"""Ridge regression on Fourier features: the exact fit, its certificate, rows beyond the box."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer import engine
from mercer.estimators import KernelRidge

pytest.importorskip("finufft")


def plane(rng, n=300, d=2):
    X = rng.uniform(-1.0, 1.0, (n, d))
    return X, np.sin(5.0 * X[:, 0]) + X.sum(axis=1) + 0.3 * rng.normal(size=n) + 7.0


def both(kernel, X, y, w=None, **options):
    exact = KernelRidge(kernel, solver="cholesky", **options).fit(X, y, w)
    return exact, KernelRidge(kernel, solver="fourier", **options).fit(X, y, w)


KERNELS = [
    (1, mc.Gaussian(0.1)),
    (2, mc.Gaussian(0.3)),
    (3, mc.Gaussian(2.0)),
    (2, 2.0 * mc.Gaussian(0.3) + 0.5 * mc.Gaussian(1.0)),
    (2, mc.Gaussian(1.0).transform(mc.Scales([3.0, 2.0]))),
    (1, mc.Matern(2.5, 1.0)),
]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("d", "kernel"), KERNELS, ids=repr)
def test_the_fit_is_the_exact_one(d, kernel, intercept, rng):
    X, y = plane(rng, d=d)
    Y, w = np.column_stack([y, 1.0 - y, np.full(300, 2.0)]), rng.uniform(0.0, 2.0, 300)
    exact, fourier = both(kernel, X, Y, w, penalty=0.1, fit_intercept=intercept)
    new = 0.99 * X[rng.permutation(300)]
    assert_allclose(fourier.predict(new), exact.predict(new), atol=1e-6)
    assert_allclose(fourier.element_(new) + fourier.intercept_, exact.predict(new), atol=1e-6)
    assert fourier.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-6)
    assert (exact.solver_, fourier.solver_) == ("cholesky", "fourier")


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gap_is_an_upper_bound(intercept, tol, rng):
    """The primal and dual objectives of the element, summed pair by pair, against the claim."""
    X, y = plane(rng)
    k, lam, w = mc.Gaussian(0.3), 0.05, rng.uniform(0.5, 2.0, 300)
    model = KernelRidge(k, penalty=lam, solver="fourier", tol=tol, fit_intercept=intercept)
    model.fit(X, y, w)
    a, c = model.dual_coef_, model.intercept_
    f = k(X) @ a
    primal = w @ (y - f - c) ** 2 + lam * a @ f
    dual = lam * (2.0 * a @ (y - (w @ y / w.sum()) * intercept) - a @ f - lam * a @ (a / w))
    assert 0.0 <= primal - dual <= model.certificate_.gap
    share = np.sqrt(model.certificate_.gap * model.certificate_.primal)
    assert abs(model.certificate_.dual - dual) <= share
    assert model.certificate_.relative_gap <= 10.0 * tol
    assert model.certificate_.feasibility < 1e-9
    assert np.abs(w * (y - f - c) - lam * a).max() <= model.certificate_.stationarity


def test_products_with_the_equations_are_those_of_the_features(rng):
    """S = F'WF for features F with F'F = K, with and without the mean of the features."""
    X, y = plane(rng, 40)
    w, k = rng.uniform(0.5, 2.0, 40), mc.Gaussian(0.7)
    features = engine.fourier_features(k.program, X, 1e-10, forced=True)
    for centred in (False, True):
        equations = features.equations(w, y[:, None], centred=centred)
        size = len(equations.right)
        F = np.hstack(
            [
                features.values(equations.modes(v[:, None]))
                for v in np.eye(size)[:, :, None][:, :, 0]
            ]
        )
        assert_allclose(F @ F.T, k(X), atol=1e-9)
        G = F - w @ F / w.sum() if centred else F
        V = F.T @ rng.normal(size=(40, 2))  # of the span, where modes are those of real functions
        assert_allclose(equations.product(V), G.T @ (w[:, None] * (G @ V)), atol=1e-7)
        assert_allclose(equations.right[:, 0], F.T @ (w * y), atol=1e-8)


def test_weights_are_repeated_rows(rng):
    X, y = plane(rng)
    w = rng.integers(0, 3, 300)
    again = np.repeat(np.arange(300), w)
    model = KernelRidge(mc.Gaussian(0.3), penalty=0.1, solver="fourier")
    weighted = model.fit(X, y, w).predict(X)
    assert_allclose(model.fit(X[again], y[again]).predict(X), weighted, atol=1e-7)


def test_rows_beyond_the_box_are_summed_directly(rng):
    X, y = plane(rng)
    exact, fourier = both(mc.Gaussian(0.3), X, y, penalty=0.1)
    new = rng.uniform(-3.0, 3.0, (40_000, 2))
    assert_allclose(fourier.predict(new), exact.predict(new), atol=1e-6)


def test_far_from_the_origin_and_in_other_units(rng):
    X, y = plane(rng)
    plain = KernelRidge(mc.Gaussian(0.3), penalty=0.1, solver="fourier").fit(X, y)
    for unit, shift in ((1e-30, 0.0), (1e30, 0.0), (1.0, 1e6)):
        moved = KernelRidge(mc.Gaussian(0.3 * unit), penalty=0.1, solver="fourier")
        moved.fit(unit * X + shift, y + shift)
        assert_allclose(moved.predict(unit * X + shift) - shift, plain.predict(X), atol=1e-5)


def test_it_is_chosen_for_many_rows_in_few_columns(monkeypatch, rng):
    monkeypatch.setattr("mercer.estimators._kernel_ridge.DIRECT_UP_TO", 1000)
    monkeypatch.setattr("mercer.linalg._solve.DIRECT_UP_TO", 1000)
    X, y = plane(rng, 1500)
    assert KernelRidge(mc.Gaussian(0.5), penalty=0.1).fit(X, y).solver_ == "fourier"
    assert KernelRidge(mc.Laplace(1.0), penalty=1.0).fit(X, y).solver_ == "cg"
    assert KernelRidge(mc.Gaussian(0.5), penalty=0.1, solver="cg").fit(X, y).solver_ == "cg"
    few = KernelRidge(mc.Gaussian(0.5), penalty=0.1).fit(X[:900], y[:900])
    assert few.solver_ == "cholesky"


def test_too_few_iterations_are_told(rng):
    X, y = plane(rng)
    model = KernelRidge(mc.Gaussian(0.1), penalty=1e-3, solver="fourier", max_iter=2)
    with pytest.warns(mc.MercerWarning, match=r"max_iter.*duality gap"):
        model.fit(X, y)
    assert model.certificate_.relative_gap > 1e-6


def test_models_can_be_copied_and_saved(tmp_path, rng):
    X, y = plane(rng)
    model = KernelRidge(mc.Gaussian(0.3), penalty=0.1, solver="fourier").fit(X, y)
    new = np.tile(X, (200, 1))
    mc.save(model, tmp_path / "model.mercer")
    for other in (pickle.loads(pickle.dumps(model)), mc.load(tmp_path / "model.mercer")):
        assert_allclose(other.predict(new), model.predict(new), atol=1e-7)


def test_constant_targets_and_equal_rows(rng):
    X, _ = plane(rng, 50)
    constant = KernelRidge(mc.Gaussian(0.3), penalty=0.1, solver="fourier").fit(X, np.full(50, 3.0))
    assert_allclose(constant.predict(X), 3.0)
    X[:, 1] = 2.0
    exact, fourier = both(mc.Gaussian(0.3), X, X[:, 0], penalty=0.1)
    assert_allclose(fourier.predict(X), exact.predict(X), atol=1e-6)
    same = KernelRidge(mc.Gaussian(0.3), penalty=0.1, solver="fourier")
    assert_allclose(same.fit(np.ones((4, 2)), [0.0, 1.0, 2.0, 3.0]).predict([[1.0, 1.0]]), 1.5)


@pytest.mark.parametrize(
    ("options", "d", "match"),
    [
        ({}, 4, "at most 3 columns"),
        ({"kernel": mc.Laplace(1.0)}, 2, "smooth radial kernel"),
        ({"kernel": mc.Linear()}, 2, "smooth radial kernel"),
        ({"penalty": 0.0}, 2, "penalty"),
        ({"kernel": mc.Gaussian(1e-5)}, 2, "grid of frequencies"),
        ({"n_landmarks": 10}, 2, "leave out n_landmarks"),
        ({"solver": "lu"}, 2, "solver must be one of"),
    ],
    ids=str,
)
def test_what_has_no_features_is_refused(options, d, match, rng):
    X, y = plane(rng, 30, d)
    model = KernelRidge(
        **{"kernel": mc.Gaussian(1.0), "penalty": 0.1, "solver": "fourier"} | options
    )
    with pytest.raises(mc.InputError, match=match):
        model.fit(X, y)


def test_there_is_no_leave_one_out(rng):
    X, y = plane(rng, 30)
    model = KernelRidge(mc.Gaussian(1.0), penalty=0.1, solver="fourier").fit(X, y)
    for call in (
        model.loo_residuals,
        lambda: model.predict_interval(X),
        lambda: model.predict(X, True),
    ):
        with pytest.raises(mc.InputError, match="no leave-one-out"):
            call()
