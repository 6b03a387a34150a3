"""Quadratic forms by frequencies against dense matrices."""

import numpy as np
import pytest

import mercer as mc
from mercer.engine import Scales, spectral_forms

pytest.importorskip("finufft")
SCALED = mc.Gaussian(1.0).transform(Scales([0.5, 1.0, 2.0]))


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize(
    "k",
    [
        mc.Gaussian(0.7),
        2.5 * mc.Gaussian(3.0),
        mc.RationalQuadratic(1.0, 2.0),
        SCALED,
    ],
    ids=str,
)
def test_forms_and_products_are_within_their_bounds(k, dim):
    rng = np.random.default_rng(dim)
    d = 3 if k is SCALED else dim
    X, U = rng.normal(5.0, 1.0, (200, d)), rng.choice([-1.0, 1.0], size=(7, 200))
    with mc.options(engine="spectral"):
        forms = spectral_forms(k.program, X)
    if dim == 3 and isinstance(k, mc.RationalQuadratic):
        assert forms is None  # no grid is fine enough
        return
    values, products, errors, error = forms(lambda some: U[some], 7, U[:2].T)
    K = k(X)
    np.fill_diagonal(K, 0.0)
    exact = np.einsum("bi,ij,bj->b", U, K, U)
    assert np.all(np.abs(values - exact) <= errors)
    assert np.all(errors < 1e-2 * np.std(exact))
    assert np.abs(products - K @ U[:2].T).max() <= error
    with mc.options(n_jobs=1):
        few = forms(lambda some: U[some], 2, U[:0].T)[0]
    np.testing.assert_array_equal(few, values[:2])


def test_products_of_tiles_where_they_are_less_work():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    assert spectral_forms(mc.Gaussian(1.0).program, X[:, :1]) is not None
    assert spectral_forms(mc.Gaussian(1.0).program, X) is None
    assert spectral_forms(mc.Gaussian(1e-4).program, X[:, :2]) is None
    assert spectral_forms(mc.Gaussian(1.0).program, X[:200, :1]) is None
    with mc.options(engine="native"):
        assert spectral_forms(mc.Gaussian(1.0).program, X[:, :1]) is None
