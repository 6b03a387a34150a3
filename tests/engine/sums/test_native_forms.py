"""Quadratic forms by the compiled core against dense matrices."""

import numpy as np
import pytest
import scipy.sparse

import mercer as mc
from mercer.engine import Scales, native_forms
from mercer.engine.sums import _native_forms

pytest.importorskip("mercer._core")
SCALED = mc.Gaussian(3.0).transform(Scales([0.5, 1.0, 2.0]))


@pytest.mark.parametrize("n", [97, 200, 288])
@pytest.mark.parametrize(
    "k", [mc.Gaussian(2.0), 1e8 * mc.RationalQuadratic(2.0, 1.0), SCALED], ids=str
)
def test_forms_and_products_are_those_of_the_matrix(k, n, monkeypatch):
    monkeypatch.setattr(_native_forms, "_FEWEST", 0)
    monkeypatch.setattr(_native_forms, "_PART", 96)
    monkeypatch.setattr(_native_forms, "_TILE", 48)
    rng = np.random.default_rng(n)
    X, U = rng.normal(50.0, 1.0, (n, 3)), rng.choice([-0.5, 0.5], size=(21, n)).astype("f")
    K = k(X)
    np.fill_diagonal(K, 0.0)
    forms = native_forms(k.program, X)
    exact = np.einsum("bi,ij,bj->b", U, K, U)
    A = rng.normal(size=(n, 2))
    values, products, _, _ = forms(lambda some: U[some], 21, A)
    np.testing.assert_allclose(values, exact, atol=1e-5 * exact.std())
    np.testing.assert_allclose(products, K @ A, atol=1e-5 * np.abs(K @ A).max())
    with mc.options(working_memory=1e-3, n_jobs=1):
        again = forms(lambda some: U[some], 21, A)
    np.testing.assert_array_equal(again[0], values)
    np.testing.assert_array_equal(again[1], products)


def test_float32_where_it_is_enough(monkeypatch):
    X = np.random.default_rng(0).normal(size=(9000, 5))
    assert native_forms(mc.Gaussian(4.0).program, X) is not None
    assert native_forms(mc.Gaussian(4.0).program, X.astype("f")) is not None
    assert native_forms(mc.Gaussian(4.0).program, X[:8000]) is None  # few points
    assert native_forms(mc.Gaussian(0.01).program, X) is None  # distances are not precise enough
    assert native_forms(mc.Laplace(4.0).program, X) is None
    assert native_forms(mc.Linear().program, X) is None
    assert native_forms(mc.Gaussian(4e-60).program, 1e-60 * X) is None  # squares underflow
    assert native_forms((1e40 * mc.Gaussian(4.0)).program, X) is None
    assert native_forms(mc.Gaussian(4.0).program, scipy.sparse.csr_array(X)) is None
    with mc.options(engine="blocked"):
        assert native_forms(mc.Gaussian(4.0).program, X) is None
