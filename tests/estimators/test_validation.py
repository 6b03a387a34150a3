"""`scale_columns`: one meaning in every estimator that has it, whatever holds the rows."""

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import StandardScaler

import mercer as mc
from mercer import estimators
from mercer.estimators._validation import fit_column_scaler, scaled, unscaled

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


def data(cls, seed=0):
    X = rows(seed=seed)
    if cls is estimators.KernelImputer:
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X


def test_units_of_columns_do_not_matter_once_they_are_scaled(cls):
    X, Y = data(cls), data(cls, seed=3)
    plain, other = (cls(scale_columns="std").fit(Z) for Z in (X, X * UNITS))
    expected, found = result(plain, Y), in_own_units(other, result(other, Y * UNITS))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_frames_and_arrays_are_treated_alike(cls):
    X = data(cls) * UNITS
    frame = pd.DataFrame(X, columns=list("abc"))
    for choice in ("none", "std"):
        a, b = (cls(scale_columns=choice).fit(Z) for Z in (X, frame))
        np.testing.assert_allclose(result(a, X), result(b, frame), rtol=1e-6, atol=1e-9)


def test_a_kernel_that_is_given_is_in_the_units_of_the_data(cls):
    X = data(cls)
    if "bandwidth" in inspect.signature(cls).parameters:
        given = {"bandwidth": 1.0}
    else:
        given = {"kernel": mc.Gaussian(1.0)}
    with pytest.raises(mc.InputError, match="units of the data"):
        cls(**given, scale_columns="std").fit(X)
    model = cls(**given).fit(X)
    assert model.kernel_ == mc.Gaussian(1.0)


def test_anything_else_is_refused(cls):
    for wrong in ("both", None, True, 2.0):
        with pytest.raises(mc.InputError, match="scale_columns must be"):
            cls(scale_columns=wrong).fit(data(cls))


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
