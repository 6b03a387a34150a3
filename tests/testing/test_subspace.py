"""The conformance kit catches broken subspaces."""

import numpy as np
import pytest

import mercer as mc
from mercer.testing import check_subspace, lattice


def plane():
    k, X = mc.Gaussian(1.0), lattice(2, 3, 1.3)
    return mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X[:4]))


def test_directions_that_are_not_orthonormal_are_caught():
    right = plane()
    check_subspace(right)
    for wrong in (1.001 * right.directions, right.directions.combine(np.eye(4) + 0.01)):
        with pytest.raises(AssertionError, match=r"orthonormality of its directions fails by"):
            check_subspace(mc.Subspace(right.origin, wrong))


@pytest.mark.parametrize(
    ("name", "change", "law"),
    [
        ("coordinates", lambda r: 1.001 * r, "coordinates .* fails by"),
        ("project", lambda r: 1.001 * r, "fails by"),
        ("distance", lambda r: 1.001 * r + 0.01, "Pythagoras fails by"),
        ("element", lambda r: 1.001 * r, "fails by"),
        ("truncate", lambda r: mc.Subspace(r.origin, r.directions * -1.0), "truncation fails by"),
    ],
)
def test_broken_subspaces_are_caught(spoil, name, change, law):
    right = plane()
    spoil(mc.Subspace, name, change)
    with pytest.raises(AssertionError, match=law):
        check_subspace(right)


def test_small_eigenvalues_have_the_error_of_the_matrix():
    """Eigenvalues range from 1e10 to 1."""
    X = np.random.default_rng(3).normal(size=(5, 2))
    check_subspace(mc.kernel_pca(mc.Exponential(0.5), X, 4))
