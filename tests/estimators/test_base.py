"""Kernels inside scikit-learn: clone, nested parameters, grid search."""

import numpy as np
import pytest
from sklearn.base import RegressorMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mercer as mc
from mercer import estimators
from mercer.estimators import KernelEstimator


class Ridge(RegressorMixin, KernelEstimator):
    """The smallest estimator with a kernel."""

    def __init__(self, kernel=mc.Gaussian(1.0), alpha=1e-3):  # noqa: B008
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X, y):
        K = self.kernel(X)
        coef = np.linalg.solve(K + self.alpha * np.eye(len(K)), y)
        self.element_ = mc.Element(self.kernel, X, coef)
        return self

    def predict(self, X):
        return self.element_(X)


def sine(rng):
    X = rng.uniform(-3, 3, size=(60, 1))
    return X, np.sin(X[:, 0])


def test_clone_keeps_the_kernel_object():
    k = mc.Gaussian(2.0) + mc.Linear()
    assert clone(Ridge(k)).kernel is k


def test_get_params_reaches_into_a_composite():
    params = Ridge(mc.Gaussian(2.0) + 0.5 * mc.Linear()).get_params()
    assert params["kernel__left__length_scale"] == 2.0
    assert params["kernel__right__left__value"] == 0.5


def test_set_params_rebuilds_and_leaves_the_shared_kernel_alone():
    k = mc.Gaussian(2.0) + mc.Linear()
    first, second = Ridge(k), Ridge(k)
    first.set_params(kernel__left__length_scale=5.0, alpha=7.0)
    assert first.kernel == mc.Gaussian(5.0) + mc.Linear()
    assert first.alpha == 7.0
    assert second.kernel is k
    assert k == mc.Gaussian(2.0) + mc.Linear()


def test_set_params_takes_a_new_kernel_and_its_parameter_together():
    ridge = Ridge().set_params(kernel=mc.Laplace(1.0), kernel__length_scale=3.0)
    assert ridge.kernel == mc.Laplace(3.0)


@pytest.mark.parametrize("key", ["kernel__width", "kernl__length_scale", "nothing"])
def test_unknown_names_are_errors(key):
    with pytest.raises(ValueError, match=key.split("__")[-1] if "kernel__" in key else "nvalid"):
        Ridge().set_params(**{key: 1.0})


def test_grid_search_over_a_nested_parameter_in_a_pipeline():
    X, y = sine(np.random.default_rng(0))
    pipeline = make_pipeline(StandardScaler(), Ridge(mc.Gaussian(1.0) + mc.Linear()))
    grid = {"ridge__kernel__left__length_scale": [1e-3, 0.7, 1e3]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["ridge__kernel__left__length_scale"] == 0.7
    assert search.best_score_ > 0.99


def test_a_kernel_is_a_callable_kernel_for_scikit_learn():
    X, y = sine(np.random.default_rng(1))
    labels = y > 0
    ours = SVC(kernel=mc.Gaussian.from_gamma(0.5)).fit(X, labels)
    theirs = SVC(kernel="rbf", gamma=0.5).fit(X, labels)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


def test_partial_fit_is_answered_with_a_hint():
    for model in (mc.KernelNovelty(), mc.KernelImputer(), mc.MeanShift(), mc.KernelDensity()):
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match=r"fit all rows at once.*n_landmarks"):
            _ = model.partial_fit
    with pytest.raises(AttributeError, match="'MeanShift' object has no attribute 'anything'"):
        _ = mc.MeanShift().anything


@pytest.mark.parametrize("name", [n for n in estimators.__all__ if n != "KernelEstimator"])
def test_a_nested_parameter_of_an_automatic_kernel_says_how_to_set_it(name, rng):
    made = getattr(estimators, name)()
    cure = rf"kernel='auto' becomes a kernel in fit.*{name}\(kernel=mc.Gaussian\(\)\)"
    with pytest.raises(mc.InputError, match=cure):
        made.set_params(kernel__length_scale=2.0)
    search = GridSearchCV(made, {"kernel__length_scale": [1.0, 2.0]}, scoring=lambda *_: 0.0)
    with pytest.raises(mc.InputError, match=cure):
        search.fit(rng.normal(size=(20, 2)))
    with pytest.raises(mc.InputError, match="kernel='rbf' becomes"):
        made.set_params(kernel="rbf", kernel__length_scale=2.0)
    made.set_params(kernel=mc.Gaussian(), kernel__length_scale=2.0)
    assert made.kernel == mc.Gaussian(2.0)
