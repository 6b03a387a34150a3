"""Support vector machines: scikit-learn's contract and predictions, weights, limits."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM


@pytest.mark.sample(2)
@parametrize_with_checks(
    [
        SVC(),
        SVC(mc.Laplace(2.0), C=10.0, class_weight="balanced", fit_intercept=False),
        SVC("matern", C=100.0),
        NuSVC(nu=0.3),
        SVR(),
        SVR("laplacian", epsilon=0.0, fit_intercept=False),
        NuSVR(),
        OneClassSVM(nu=0.2),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
