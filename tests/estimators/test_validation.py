"""Input of estimators: `scale_columns`, masked arrays, text, dates and missing values."""

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

import mercer as mc
from mercer import estimators
from mercer.estimators import (
    SVC,
    SVR,
    KernelLogisticRegression,
    KernelMachine,
    KernelRidge,
    KernelSGD,
    NuSVC,
    NuSVR,
)
from mercer.estimators._validation import fit_column_scaler, scaled, unscaled
from mercer.methods import fit_imputer

SCALED = [
    cls
    for cls in (getattr(estimators, name) for name in estimators.__all__)
    if "scale_columns" in inspect.signature(cls).parameters
]
UNITS = np.array([1e-3, 1.0, 1e6])


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t), np.cos(2.0 * t)]) + 0.1 * rng.normal(size=(n, 3))


def result(model, X):
    """What an estimator says about rows, free of units where it returns rows."""
    if hasattr(model, "score_samples") and not hasattr(model, "transform"):
        return model.score_samples(X)
    if hasattr(model, "predict"):
        return model.predict(X)
    return np.asarray(model.transform(X))


def in_own_units(model, out):
    """Rows that come back have the units of the data; scores, labels and coordinates none."""
    return out / UNITS if type(model).__name__ in ("KernelDenoiser", "KernelImputer") else out


@pytest.fixture(params=SCALED, ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


def made(cls, **options):
    """An estimator that is exact enough to be compared with itself.

    KernelDenoiser is told the noise, without which it changes nothing here.
    """
    if cls is estimators.KernelDenoiser:
        options["noise"] = 0.1
    if cls in (estimators.SVR, estimators.NuSVR, estimators.OneClassSVM):
        options["tol"] = 1e-11
    if cls in (estimators.KernelGradientDescent, estimators.KernelSGD):
        options["random_state"] = 0
    return cls(**options)


def fitted(model, X, **options):
    """The model, fitted to rows; classes and targets alternate."""
    supervised = is_classifier(model) or is_regressor(model)
    y = np.arange(len(X)) % 2 if is_classifier(model) else np.arange(len(X)) % 2.0
    return model.fit(X, y, **options) if supervised else model.fit(X, **options)


def data(cls, seed=0):
    X = rows(seed=seed)
    if cls is estimators.KernelImputer:
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X


def test_units_of_columns_do_not_matter_once_they_are_scaled(cls):
    X, Y = data(cls), data(cls, seed=3)
    plain, other = (fitted(made(cls, scale_columns="std"), Z) for Z in (X, X * UNITS))
    expected, found = result(plain, Y), in_own_units(other, result(other, Y * UNITS))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_frames_and_arrays_are_treated_alike(cls):
    X = data(cls) * [0.1, 1.0, 10.0]
    frame = pd.DataFrame(X, columns=list("abc"))
    for choice in ("none", "std", "auto"):
        a, b = (fitted(made(cls, scale_columns=choice), Z) for Z in (X, frame))
        np.testing.assert_allclose(result(a, X), result(b, frame), rtol=1e-6, atol=1e-9)


def test_a_kernel_that_is_given_is_in_the_units_of_the_data(cls):
    X = data(cls)
    if "bandwidth" in inspect.signature(cls).parameters:
        given = {"bandwidth": 1.0}
    else:
        given = {"kernel": mc.Gaussian(1.0)}
    with pytest.raises(mc.InputError, match="units of the data"):
        fitted(cls(**given, scale_columns="std"), X)
    for choice in ("none", "auto"):
        model = fitted(made(cls, **given, scale_columns=choice), X)
        assert model.kernel_ == mc.Gaussian(1.0)


def test_anything_else_is_refused(cls):
    for wrong in ("both", None, True, 2.0):
        with pytest.raises(mc.InputError, match="scale_columns must be"):
            fitted(cls(scale_columns=wrong), data(cls))


def test_the_scaler_is_scikit_learns(rng):
    X, w = rng.normal(size=(30, 2)) * [1.0, 50.0] + 7.0, rng.integers(0, 3, 30)
    scaler = fit_column_scaler("std", X, w, in_data_units=False)
    Z = scaled(scaler, X)
    np.testing.assert_allclose(Z, StandardScaler().fit(np.repeat(X, w, axis=0)).transform(X))
    np.testing.assert_allclose(unscaled(scaler, Z), X)
    assert fit_column_scaler("none", X, in_data_units=True) is None
    assert scaled(None, X) is unscaled(None, X) is X
    S = csr_array(np.where(rng.random((30, 2)) < 0.5, 0.0, X))
    sparse = scaled(fit_column_scaler("std", S, in_data_units=False), S)
    np.testing.assert_allclose(sparse.toarray(), S.toarray() / S.toarray().std(axis=0))


def test_automatic_scaling_tells_images_from_tables(rng):
    digits, faces = load_digits(), rng.uniform(size=(30, 50)) + rng.normal(size=(30, 1))
    same = [digits.data, digits.data[digits.target == 3], csr_array(digits.data), faces]
    same += [1e300 * faces, np.ones((3, 2)), faces[:, :1]]
    for X in same:
        assert fit_column_scaler("auto", X, in_data_units=False) is None
    units = [load_wine().data, load_breast_cancer().data, faces[:, :2] * [1.0, 1e6], rows() * UNITS]
    for X in units:
        assert fit_column_scaler("auto", X, in_data_units=False) is not None
        assert fit_column_scaler("auto", X, in_data_units=True) is None
    # rows of weight 0 do not count
    X = np.vstack([faces, [1e9] + 49 * [0.0]])
    assert fit_column_scaler("auto", X, in_data_units=False) is not None
    assert fit_column_scaler("auto", X, np.array(30 * [1.0] + [0.0]), in_data_units=False) is None


# --- what is refused ------------------------------------------------------------------------------

ALL = [getattr(estimators, name) for name in estimators.__all__ if name != "KernelEstimator"]
STRICT = [cls for cls in ALL if cls is not estimators.KernelImputer]
SEED = {name: {"random_state": 0} for name in ("Nystroem", "RandomFeatures")}


@pytest.mark.parametrize("cls", STRICT, ids=lambda cls: cls.__name__)
@pytest.mark.filterwarnings("ignore:n_components=100 is more:mercer.exceptions.MercerWarning")
def test_masked_entries_are_refused_and_a_mask_without_any_is_not(cls):
    X = rows()
    masked = np.ma.masked_array(X, np.zeros(X.shape, dtype=bool))
    seed = SEED.get(cls.__name__, {})
    plain, other = (fitted(made(cls).set_params(**seed), Z) for Z in (X, masked))
    np.testing.assert_array_equal(result(plain, X), result(other, masked))
    masked[3, 1] = np.ma.masked
    with pytest.raises(mc.InputError, match="1 masked entries; fill or drop"):
        fitted(cls(), masked)
    with pytest.raises(mc.InputError, match="1 masked entries; fill or drop"):
        result(plain, masked)
    with pytest.raises((mc.InputError, TypeError)):  # Nystroem and RandomFeatures take no weights
        fitted(cls(), X, sample_weight=np.ma.masked_array(np.ones(80), [True] + [False] * 79))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_the_imputer_takes_masked_entries_as_missing(dtype):
    X = (10.0 * rows()).astype(dtype)
    hole = np.random.default_rng(0).random(X.shape) < 0.1
    masked = np.ma.masked_array(X, hole)
    with_nan = np.where(hole, np.nan, X).astype(np.float32 if dtype == np.float32 else np.float64)
    plain, other = estimators.KernelImputer().fit(with_nan), estimators.KernelImputer().fit(masked)
    np.testing.assert_array_equal(other.transform(masked), plain.transform(with_nan))
    np.testing.assert_array_equal(fit_imputer(masked)(masked), fit_imputer(with_nan)(with_nan))


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(
    "column",
    [
        ["x", "y"],
        pd.Categorical(["x", "y"]),
        pd.date_range("2020", periods=2),
        pd.to_timedelta([1, 2], unit="s"),
        np.array([1.0, "x"], dtype=object),
    ],
    ids=["text", "categories", "dates", "durations", "objects"],
)
def test_columns_of_text_and_dates_are_refused_with_the_way_out(cls, column):
    frame = pd.DataFrame(rows(2), columns=list("abc")).assign(kind=column)
    with pytest.raises(mc.InputError, match="X has columns that are not numeric: kind; "):
        fitted(cls(), frame)
    with pytest.raises(mc.InputError, match="table_kernel"):
        fitted(cls(), np.array([["a", "b"], ["c", "d"]]))
    with pytest.raises(mc.InputError, match="dates"):
        fitted(cls(), np.array([["2020-01-01"], ["2020-01-02"]], dtype="datetime64[D]"))


def test_the_way_out_works():
    frame = pd.DataFrame(rows(40), columns=list("abc")).assign(kind=["x", "y"] * 20)
    kernel = mc.table_kernel(frame)
    for cls in (estimators.KernelPCA, estimators.KernelNovelty, estimators.Nystroem):
        settings = {} if cls is estimators.KernelNovelty else {"n_components": 3}
        assert len(result(cls(kernel=kernel, **settings).fit(frame), frame)) == 40


@pytest.mark.parametrize("cls", STRICT, ids=lambda cls: cls.__name__)
def test_missing_values_point_to_the_imputer(cls):
    X = rows()
    X[0, 0] = np.nan
    for given in (X, pd.DataFrame(X)):
        with pytest.raises(mc.InputError, match=r"NaN.* fill missing values with KernelImputer"):
            fitted(cls(), given)


@pytest.mark.parametrize(
    "model",
    [
        estimators.KernelPCA(whiten=np.zeros((2, 2))),
        estimators.KernelImputer(add_indicator="no"),
        estimators.KernelImputer(keep_empty_features=None),
    ],
    ids=repr,
)
def test_flags_are_true_or_false(model):
    with pytest.raises(mc.InputError, match="must be True or False"):
        model.fit(rows())


@pytest.mark.parametrize(
    "model",
    [
        estimators.KernelNovelty(kernel=np.zeros((2, 2))),
        estimators.KernelDenoiser(kernel=np.zeros((2, 2))),
        estimators.Nystroem(rule=np.zeros((2, 2)), n_components=5),
        estimators.KernelPCA(np.zeros((2, 1)), n_landmarks=2),
        estimators.KernelDenoiser(np.zeros((2, 1)), n_landmarks=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_arrays_are_no_parameters(model):
    with pytest.raises(mc.InputError, match=r"must be|must lie"):
        model.fit(rows())


def test_features_that_leave_the_range_of_float32_are_refused():
    X = np.linspace(-1.0, 1.0, 5)[:, None].astype(np.float32)
    model = estimators.Nystroem(mc.kernels.Exponential(0.01), 5, random_state=0)
    with pytest.raises(mc.InputError, match="float64"):
        model.fit_transform(1.5 * X)
    assert np.isfinite(model.fit_transform(1.5 * X.astype(np.float64))).all()


SUPERVISED = [SVC(), NuSVC(), SVR(), NuSVR(), KernelLogisticRegression(), KernelMachine(),
              KernelMachine(loss="hinge"), KernelRidge()]  # fmt: skip


@pytest.mark.parametrize("model", SUPERVISED, ids=repr)
@pytest.mark.parametrize(
    "y",
    [
        ["a", None] * 4,
        "x",
        [[1.0], [2.0, 3.0]] * 4,
        np.ma.masked_array(np.arange(8), np.arange(8) > 6),
    ],
    ids=["text and None", "a string", "ragged", "masked"],
)
def test_wrong_targets_are_errors_that_say_why(model, y):
    X = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.raises(ValueError, match=r"y |labels"):
        model.fit(X, y)


@pytest.mark.parametrize("model", [SVC(), KernelLogisticRegression()], ids=repr)
def test_labels_that_are_no_whole_numbers_are_refused_without_a_warning(model):
    X = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(X, 1e300 * (np.arange(8) % 2))


@pytest.mark.parametrize("model", [SVR(), NuSVR(), KernelMachine(), KernelRidge()], ids=repr)
def test_targets_whose_squares_overflow_are_refused(model):
    X = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.raises(mc.InputError, match="y has entries whose squares overflow"):
        model.fit(X, 1e300 * np.arange(8))


@pytest.mark.parametrize("model", [SVC(), KernelLogisticRegression(), KernelSGD()], ids=repr)
def test_a_class_for_nearly_every_row_is_a_warning(model):
    X = np.arange(22.0)[:, None]
    with pytest.warns(mc.MercerWarning, match=r"y has 22 classes in 22 rows; .* regression"):
        model.fit(X, np.arange(22))
    model.fit(X, np.arange(22) // 2)  # two rows of each: none
