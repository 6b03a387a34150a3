"""Pipelines of scikit-learn's steps and ours: equal after loading, and no less safe."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import mercer as mc
from mercer.io import _registry, load, register
from tests.io.archives import edited

X = np.abs(np.random.default_rng(0).normal(size=(60, 4))) + 0.1
HOLES = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
TEXT = np.array([["a", "x"], ["b", "y"], ["a", "z"]] * 20, dtype=object)
Y = (X[:, 0] > X[:, 1]).astype(int)
NAMES = sorted(name for names in _registry._SKLEARN.values() for name in names)


def known(name):
    return _registry.class_of(f"mercer.estimators.sklearn.{name}")


def same(one, other):
    one, other = (A.toarray() if hasattr(A, "toarray") else A for A in (one, other))
    return one.dtype == other.dtype and np.array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "Pipeline"])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_every_known_step(name, dtype, there_and_back):
    rows = HOLES if name in ("SimpleImputer", "MissingIndicator") else X
    rows = TEXT if name == "OrdinalEncoder" else rows.astype(dtype)
    model = make_pipeline(known(name)()).fit(rows, Y)
    back = there_and_back(model)
    use = "transform" if hasattr(model, "transform") else "predict"
    assert same(getattr(back, use)(rows), getattr(model, use)(rows))
    assert repr(back) == repr(model)
    assert repr(there_and_back(clone(model))) == repr(model)


@pytest.mark.parametrize(
    "steps",
    [
        (StandardScaler(), mc.KernelPCA(3), LogisticRegression()),
        (mc.KernelImputer(), StandardScaler(), mc.KernelDenoiser(noise=0.1)),
        (StandardScaler(), mc.MeanShift(bandwidth=1.0)),
        (StandardScaler(), mc.KernelNovelty()),
        ("passthrough", make_pipeline(StandardScaler(), mc.Nystroem(n_components=20))),
    ],
    ids=str,
)
def test_pipelines_with_our_steps(steps, there_and_back):
    rows = HOLES if isinstance(steps[0], mc.KernelImputer) else X
    model = make_pipeline(*steps).set_output(transform="pandas").fit(rows, Y)
    back = there_and_back(model)
    assert list(back.named_steps) == list(model.named_steps)
    for use in ("transform", "predict", "decision_function"):
        if hasattr(model, use):
            one, other = np.asarray(getattr(model, use)(rows)), np.asarray(getattr(back, use)(rows))
            assert one.tobytes() == other.tobytes()
    back.fit(rows, Y)


def test_pipelines_that_are_not_fitted(there_and_back):
    back = there_and_back(make_pipeline(StandardScaler(), mc.KernelPCA()))
    with pytest.raises(NotFittedError):
        back.transform(X)


@pytest.mark.parametrize(
    ("step", "match"),
    [(SVC(), r"sklearn\.svm.*\.SVC"), (FunctionTransformer(np.log), r"FunctionTransformer")],
)
def test_unknown_steps_are_named(step, match, there_and_back):
    with pytest.raises(mc.InputError, match=match):
        there_and_back(make_pipeline(StandardScaler(), step))


@pytest.mark.usefixtures("own_table")
def test_steps_that_were_registered(there_and_back):
    register(SVC)
    assert repr(there_and_back(make_pipeline(SVC()))) == repr(make_pipeline(SVC()))


def test_callbacks_are_left_out(there_and_back):
    model = make_pipeline(StandardScaler(), mc.KernelPCA())
    model._skl_callbacks = [print]
    assert not hasattr(there_and_back(model), "_skl_callbacks")


def test_a_cache_of_pickles_is_refused(tmp_path, there_and_back):
    """`memory` names a folder whose pickles the next fit would load."""
    model = Pipeline([("scale", StandardScaler())], memory=str(tmp_path))
    with pytest.raises(mc.InputError, match="memory must be None"):
        there_and_back(model)

    def change(document):
        (node,) = (n for n in document["objects"] if n.get("kind", "").endswith("Pipeline"))
        for pair in node["parts"]["params"]["dict"]:
            pair[1] = str(tmp_path) if pair[0] == "memory" else pair[1]

    edited(tmp_path / "t.mercer", change, Pipeline([("scale", StandardScaler())]))
    with pytest.raises(mc.InputError, match="memory must be None"):
        load(tmp_path / "t.mercer")

    def change_after_the_check(document):
        (node,) = (n for n in document["objects"] if n.get("kind", "").endswith("Pipeline"))
        node["parts"]["fitted"]["dict"].append(["memory", str(tmp_path)])

    edited(tmp_path / "t.mercer", change_after_the_check, Pipeline([("scale", StandardScaler())]))
    with pytest.raises(mc.InputError, match="'memory' is not the name of a fitted attribute"):
        load(tmp_path / "t.mercer")


@pytest.mark.parametrize("name", ["U3", "O", "f8", "i4", "?", "S"])
def test_types_as_parameters(name, there_and_back):
    assert there_and_back(np.dtype(name)) == np.dtype(name)


@pytest.mark.parametrize("scalar", [np.float32, np.int64, np.bool_])
def test_types_of_scalars(scalar, there_and_back):
    assert there_and_back(scalar) is scalar


def test_types_that_are_refused(there_and_back):
    for thing in (np.dtype("M8[s]"), np.dtype([("a", "f8")]), np.longdouble, np.object_):
        with pytest.raises(mc.InputError):
            there_and_back(thing)
