"""`verbose`, and the callbacks of scikit-learn 1.9."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer as mc
from mercer import estimators
from mercer._progress import watched

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
HOLES = np.where(rng.random(X.shape) < 0.2, np.nan, X)
NAMES = [
    name
    for name in estimators.__all__
    if inspect.isclass(getattr(estimators, name)) and name != "KernelEstimator"
]


def fit(name, **params):
    model = getattr(estimators, name)(**params)
    if name == "KernelDenoiser":
        model.set_params(noise=0.1)
    targets = (X[:, 0] > 0.0,) if is_classifier(model) or is_regressor(model) else ()
    return model.fit(HOLES if name == "KernelImputer" else X, *targets)


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_is_silent_unless_asked(name, capsys):
    params = {"n_components": 20} if name in ("Nystroem", "RandomFeatures") else {}
    fit(name, **params)
    assert capsys.readouterr() == ("", "")
    fit(name, verbose=True, **params)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{name}: ")
    assert err.count("\n") == 1  # what it fits inside has no bar of its own


@pytest.mark.parametrize("value", ["yes", -1, 0.5, None])
def test_verbose_is_a_flag_or_a_number(value):
    with pytest.raises(mc.InputError, match="verbose must be"):
        mc.KernelPCA(verbose=value).fit(X)


def test_verbose_changes_no_result(capsys):
    quiet, loud = mc.MeanShift(bandwidth=0.5), mc.MeanShift(bandwidth=0.5, verbose=1)
    np.testing.assert_array_equal(quiet.fit_predict(X), loud.fit_predict(X))
    assert capsys.readouterr().err.count("MeanShift") == 1


@pytest.mark.parametrize(
    ("name", "params", "task"),
    [
        ("MeanShift", {}, "ascent"),
        ("MeanShift", {"blurring": True, "bandwidth": 1.0}, "blurring"),
        ("MeanShift", {"bandwidth": "stable"}, "bandwidths"),
        ("MeanShift", {}, "curvature"),
        ("KernelPCA", {"n_components": 2, "eigen_solver": "krylov"}, "eigenvectors"),
        ("KernelPCA", {}, "eigenvectors"),
        ("KernelPCA", {"n_landmarks": 20}, "landmarks"),
        ("KernelPCA", {"n_landmarks": 20}, "rows"),
        ("KernelImputer", {}, "rounds"),
        ("KernelImputer", {}, "hidden entries"),
        ("KernelDenoiser", {}, "left-out errors"),
        ("KernelNovelty", {}, "distances"),
        ("KernelDensity", {"bandwidth": "likelihood"}, "likelihood of a bandwidth"),
    ],
)
def test_slow_parts_report(name, params, task):
    steps = []
    with watched(steps.append):
        fit(name, **params)
    assert task in {step.task for step in steps}


# --- scikit-learn 1.9 ------------------------------------------------------------------------


class Recorder:
    """A callback that notes what it is told."""

    max_propagation_depth = None

    def __init__(self, stop=False):
        self.events, self.stop = [], stop

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name))
        return self.stop


def test_tasks_of_scikit_learns_callbacks():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    mc.KernelPCA(2, eigen_solver="krylov").set_callbacks(recorder).fit(X)
    assert recorder.events[:2] == [("setup", "fit"), ("begin", "fit")]
    assert recorder.events[-2:] == [("end", "fit"), ("teardown", "fit")]
    inner = recorder.events[2:-2]
    assert ("begin", "eigenvectors") in inner
    assert inner[::2] == [("begin", task) for _, task in inner[1::2]]


def test_a_callback_of_scikit_learn_can_stop():
    pytest.importorskip("sklearn.callback")
    model = mc.MeanShift(bandwidth=0.3).set_callbacks(Recorder(stop=True)).fit(X)
    assert mc.Status.STOPPED in model.modes_.status


@pytest.mark.filterwarnings("error")
def test_callbacks_reach_the_steps_of_a_pipeline():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    make_pipeline(StandardScaler(), mc.KernelDenoiser(noise=0.1)).set_callbacks(recorder).fit(X)
    assert sum(event == ("teardown", "fit") for event in recorder.events) == 1
    assert recorder.events[-1] == ("teardown", "fit")


def test_callbacks_are_torn_down_after_an_error():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    model = mc.KernelPCA(n_landmarks=-1).set_callbacks(recorder)
    with pytest.raises(ValueError, match="landmarks"):
        model.fit(X)
    assert recorder.events[-1] == ("teardown", "fit")
    assert not hasattr(clone(model), "_callback_fit_ctx")
