"""MeanShift: scikit-learn's contract, its own mean shift, seeds, weights, hard inputs."""

import numpy as np
import pytest
from sklearn import cluster as peer
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc
from mercer import InputError, MeanShift, MercerWarning


@parametrize_with_checks(
    [
        MeanShift(),
        MeanShift("flat"),
        MeanShift(mc.Laplace(1.0)),
        MeanShift(bandwidth=1.0, bin_seeding=True),
        MeanShift(bandwidth=1.0, labels="nearest"),
        MeanShift(bandwidth=0.5, blurring=True),
        MeanShift(bandwidth="silverman", min_cluster_size=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
