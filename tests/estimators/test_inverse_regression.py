"""Ridge regression from features to data, against scikit-learn's and written-out formulas."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge

from mercer.estimators._inverse_regression import _PENALTIES, fit_ridge_inverse


def test_it_is_ridge_regression_with_the_best_score(rng):
    Z, X = rng.normal(size=(40, 6)) + 3.0, rng.normal(size=(40, 2)) * [1.0, 100.0] + 5.0
    X[:, 0] += Z[:, 0] ** 2  # one column that depends on Z, one that does not
    intercept, coef, penalty = fit_ridge_inverse(lambda rows: Z[rows], X)
    Zc, n = Z - Z.mean(axis=0), 40
    largest = np.linalg.eigvalsh(Zc.T @ Zc)[-1]
    for column in range(2):
        score = []
        for p in _PENALTIES * largest:
            H = Zc @ np.linalg.solve(Zc.T @ Zc + p * np.eye(6), Zc.T) + 1.0 / n
            rest = X[:, column] - H @ X[:, column]
            score.append(n * rest @ rest / (n - np.trace(H)) ** 2)
        best = _PENALTIES[np.argmin(score)] * largest
        assert penalty[column] == pytest.approx(best, rel=1e-10)
        model = Ridge(alpha=best).fit(Z, X[:, column])
        np.testing.assert_allclose(coef[:, column], model.coef_, rtol=1e-8, atol=1e-10)
        assert intercept[column] == pytest.approx(model.intercept_, rel=1e-8)
    assert np.unique(penalty).size == 2


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_more_features_than_rows_is_the_same_ridge_regression(container, rng):
    Z, X = rng.normal(size=(15, 40)) + 2.0, rng.normal(size=(15, 3)) + 5.0
    X[:, 0] += Z @ rng.normal(size=40)
    intercept, coef, penalty = fit_ridge_inverse(lambda rows: Z[rows], container(X))
    for column in range(3):
        model = Ridge(alpha=penalty[column], solver="svd").fit(Z, X[:, column])
        np.testing.assert_allclose(coef[:, column], model.coef_, atol=1e-8)
        assert intercept[column] == pytest.approx(model.intercept_, abs=1e-6)


def test_blocks_and_sparse_points_do_not_change_it(rng):
    X = rng.normal(size=(9000, 3)) * (rng.random((9000, 3)) < 0.3)
    Z = np.column_stack([np.tanh(X), X[:, 0] * X[:, 1]]) + 1e3
    intercept, coef, penalty = fit_ridge_inverse(lambda rows: Z[rows], X)
    sparse_intercept, sparse_coef, _ = fit_ridge_inverse(lambda rows: Z[rows], csr_array(X))
    Zc, Xc = Z - Z.mean(axis=0), X - X.mean(axis=0)
    for column in range(3):
        ridge = np.diag(np.full(4, penalty[column]))
        slopes = np.linalg.solve(Zc.T @ Zc + ridge, Zc.T @ Xc[:, column])
        np.testing.assert_allclose(coef[:, column], slopes, atol=1e-9)
        np.testing.assert_allclose(sparse_coef[:, column], slopes, atol=1e-9)
    np.testing.assert_allclose(sparse_intercept, intercept, atol=1e-6)
