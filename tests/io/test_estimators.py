"""Estimators: parameters and fitted attributes come back, and predict the same to the last bit."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import mercer as mc
from mercer import estimators
from mercer.io import load, register

pytestmark = pytest.mark.usefixtures("own_table")
USES = ("transform", "predict", "decision_function", "score_samples", "predict_proba")


class Ridge(RegressorMixin, estimators.KernelEstimator):
    """The smallest estimator with a kernel, and one attribute that only it knows."""

    _unsaved_attributes = ("_cache",)

    def __init__(self, kernel=mc.Gaussian(1.0), alpha=1e-3, inner=None, random_state=None):  # noqa: B008
        self.kernel = kernel
        self.alpha = alpha
        self.inner = inner
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        K = self.kernel(X)
        self.element_ = mc.Element(
            self.kernel, X, np.linalg.solve(K + self.alpha * np.eye(len(K)), y)
        )
        self.n_features_in_ = np.shape(X)[1]
        self._sums = {"n": len(K), "X": self.element_.points}
        self._cache = K
        return self

    def predict(self, X):
        return self.element_(X) + 0.0 * self._sums["n"]


@pytest.fixture
def fitted(rng):
    X = rng.normal(size=(20, 2))
    return Ridge(mc.Laplace(2.0)).fit(X, X[:, 0]), X


# --- one of the user's own ------------------------------------------------------------------------


def test_parameters_and_fitted_attributes(fitted, there_and_back):
    model, X = fitted
    register(Ridge)
    back = there_and_back(model)
    assert back.get_params() == model.get_params()
    assert back.n_features_in_ == 2
    assert back.predict(X).tobytes() == model.predict(X).tobytes()
    assert np.shares_memory(back._sums["X"], back.element_.points)
    assert not hasattr(back, "_cache")


def test_only_registered_estimators(fitted, there_and_back):
    with pytest.raises(mc.InputError, match=r"register\(Ridge\)"):
        there_and_back(fitted[0])


def test_unfitted_estimators(there_and_back):
    register(Ridge)
    back = there_and_back(Ridge(alpha=0.5))
    assert back.alpha == 0.5
    assert vars(back) == vars(Ridge(alpha=0.5))


def test_estimators_inside_estimators_and_of_others(fitted, there_and_back):
    model, X = fitted
    register(Ridge)
    outer = Ridge(inner=[model, StandardScaler().fit(X)])
    one, two = there_and_back(outer).inner
    assert np.array_equal(one.predict(X), model.predict(X))
    assert np.array_equal(two.transform(X), outer.inner[1].transform(X))


def test_attributes_that_cannot_be_saved(fitted, there_and_back):
    register(Ridge)
    fitted[0]._other = len
    with pytest.raises(mc.InputError, match=r"Ridge\.fitted\['_other'\] is a callable"):
        there_and_back(fitted[0])


@pytest.mark.parametrize("random_state", [None, 0, np.int64(3)])
def test_random_states_that_are_numbers(random_state, there_and_back):
    register(Ridge)
    assert there_and_back(Ridge(random_state=random_state)).random_state == random_state


def test_random_states_that_are_not(there_and_back):
    register(Ridge)
    with pytest.raises(mc.InputError, match=r"params\['random_state'\] is a Generator"):
        there_and_back(Ridge(random_state=np.random.default_rng(0)))


def test_callables_among_parameters(there_and_back):
    register(Ridge)
    with pytest.raises(mc.InputError, match=r"Ridge\.params\['inner'\] is a callable"):
        there_and_back(Ridge(inner=len))


@pytest.mark.parametrize(
    "name", ["predict", "__class__", "set_params", "__dict__", "__sklearn_tags__"]
)
def test_a_file_sets_fitted_attributes_only(name, fitted, tmp_path):
    from tests.io.archives import edited

    register(Ridge)

    def change(document):
        parts = next(o["parts"] for o in document["objects"] if o.get("kind") == "Ridge")
        parts["fitted"]["dict"].append([name, 1])

    edited(tmp_path / "model", change, fitted[0])
    with pytest.raises(mc.InputError, match="not the name of a fitted attribute"):
        load(tmp_path / "model")


def test_metadata_requests_are_not_saved(there_and_back):
    register(Ridge)
    with sklearn.config_context(enable_metadata_routing=True):
        model = Ridge().set_fit_request(sample_weight=True)
    assert "_metadata_request" not in vars(there_and_back(model))


# --- those of mercer ------------------------------------------------------------------------------


def public():
    found = [getattr(estimators, name) for name in estimators.__all__]
    return [c for c in found if isinstance(c, type) and issubclass(c, BaseEstimator)
            and hasattr(c, "fit")]  # fmt: skip


SETTINGS = {
    "KernelDenoiser": [
        {"n_components": 3, "inverse": mc.FixedPoint(), "trust": 1.0},
        {"filter": mc.methods.Tikhonov(0.1), "noise": 0.1, "scale_columns": "std"},
        {"kernel": mc.Laplace(2.0), "n_landmarks": 8, "random_state": 0},
    ],
    "KernelNovelty": [{"scale_columns": "std"}],
    "KernelPCA": [
        {"n_components": 3, "inverse": mc.FixedPoint()},
        {"n_components": 3, "inverse": mc.LearnedMap(), "whiten": True},
        {"kernel": mc.Matern(1.5) + 0.1 * mc.Linear(), "n_landmarks": 8, "random_state": 0},
        {"kernel": "rbf", "gamma": 0.1, "n_components": 0.9},
    ],
}
CASES = [
    pytest.param(cls, options, id=f"{cls.__name__}-{i}")
    for cls in public()
    for i, options in enumerate([{}, *SETTINGS.get(cls.__name__, [])])
]


def _data(cls, rng):
    X = rng.normal(size=(40, 2 if cls is mc.MeanShift else 4))  # proofs in 4-D take seconds
    if clone(cls()).__sklearn_tags__().input_tags.allow_nan:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, (X[:, 0] > 0).astype(int)


def _results(model, X):
    """What every public verb of an estimator gives."""
    out = {}
    for name in USES:
        if callable(getattr(model, name, None)):
            try:
                out[name] = np.asarray(getattr(model, name)(X))
            except mc.InputError as error:  # what one cannot do the other cannot either
                out[name] = np.array(str(error))
    if "transform" in out and hasattr(model, "inverse_transform"):
        out["inverse_transform"] = np.asarray(model.inverse_transform(out["transform"]))
    return out


@pytest.mark.sample(2)
@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")
@pytest.mark.parametrize(("cls", "options"), CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_estimators_of_mercer(cls, options, dtype, rng, there_and_back):
    X, y = _data(cls, rng)
    X = X.astype(dtype)
    model = cls(**options).fit(X, y)
    back = there_and_back(model)
    assert type(back) is cls
    assert {k: repr(v) for k, v in back.get_params().items()} == {
        k: repr(v) for k, v in model.get_params().items()
    }
    assert set(vars(back)) == set(vars(model)) - set(getattr(cls, "_unsaved_attributes", ()))
    expected, found = _results(model, X), _results(back, X)
    assert expected
    for name in expected:
        assert found[name].dtype == expected[name].dtype
        assert found[name].tobytes() == expected[name].tobytes(), name
    assert clone(back).get_params().keys() == model.get_params().keys()


@pytest.mark.parametrize("cls", public())
def test_unfitted_estimators_of_mercer(cls, rng, there_and_back):
    back = there_and_back(cls())
    assert vars(back) == vars(cls())
    with pytest.raises((NotFittedError, AttributeError)):
        _ = [getattr(back, name)(_data(cls, rng)[0]) for name in USES]


@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")
@pytest.mark.parametrize("cls", [c for c in public() if hasattr(c, "transform")])
def test_names_of_columns_and_output_come_back(cls, rng, there_and_back):
    pd = pytest.importorskip("pandas")
    X, y = _data(cls, rng)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = cls().set_output(transform="pandas").fit(frame, y)
    back = there_and_back(model)
    assert back.feature_names_in_.tolist() == list("abcd")
    pd.testing.assert_frame_equal(back.transform(frame), model.transform(frame), check_exact=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="feature names"):
            back.transform(frame.rename(columns={"a": "z"}))


@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")
@pytest.mark.parametrize(
    "cls", [c for c in public() if hasattr(c, "partial_fit") or c.__name__ == "KernelPCA"]
)
def test_fitting_goes_on_after_loading(cls, rng, there_and_back):
    X, y = _data(cls, rng)
    options = {"KernelPCA": {"n_landmarks": 6}, "KernelSGD": {"loss": "absolute"}}[cls.__name__]
    model = cls(random_state=0, **options).partial_fit(X[:20], y[:20])
    back = there_and_back(model)
    for m in (model, back):
        m.partial_fit(X[20:], y[20:])
    expected, found = _results(model, X), _results(back, X)
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)
