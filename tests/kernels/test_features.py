"""Feature maps as maps of points: what they accept, how they combine, and what they refuse."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import mercer as mc
from mercer.kernels import Features, Monomials
from mercer.testing import check_kernel


def bent(X):
    return np.hstack([np.sin(X), X**2])


def letters(words):
    return [[word.count(c) for c in "abcdef"] for word in words]


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Linear().transform(Features(bent)),
        mc.Gaussian(1.0).transform(Features(bent)),
        mc.Laplace(2.0).transform(Features(bent)) + mc.Gaussian(1.0),
        mc.Polynomial(2).transform(mc.Scales([1.0, 2.0, 1.0, 2.0])).transform(Features(bent)),
        mc.Gaussian(1.0).transform(Features(bent)).transform(mc.Columns([1])),
        mc.Linear().transform(Monomials(3, 2.0, 0.5)),
        mc.Gaussian(1.0).transform(Monomials(2)),
        mc.kernels.Normalised(mc.Linear().transform(Monomials(2))),
    ],
    ids=lambda v: re.sub(" at 0x[0-9a-f]+", "", repr(v)),
)
def test_conformance(kernel):
    check_kernel(kernel)


def test_distances_are_taken_between_features_not_between_features_of_centred_points(rng):
    X = 100.0 + rng.normal(size=(20, 2))
    k = mc.Gaussian(5.0).transform(Features(lambda Z: Z**2 / 100.0))
    F = X**2 / 100.0
    naive = np.exp(-np.sum((F[:, None] - F) ** 2, axis=2) / 50.0)
    assert_allclose(k(X), naive, rtol=1e-10)
    psi = mc.Element(k, X, rng.normal(size=20))
    assert_allclose(psi(X), naive @ psi.coef.tile(slice(None), slice(None))[:, 0], rtol=1e-9)


def test_points_may_be_anything():
    words = ["abba", "cafe", "face", "bead", "fade", "dab"]
    k = mc.Gaussian(2.0).transform(Features(letters, on=mc.kernels.Objects()))
    check_kernel(k, points=words)
    assert k(["cafe"], ["face"])[0, 0] == 1.0
    psi = mc.mean_embedding(k, words)
    assert mc.preimage(psi).points[0] in words
    with pytest.raises(mc.exceptions.DomainError, match="cannot be combined"):
        k + mc.Gaussian(1.0)


def test_many_features_run_as_many_dimensions(rng):
    """More features than the native engine takes, and fewer: the same numbers."""
    X, W = rng.normal(size=(30, 3)), rng.normal(size=(3, 300))
    k = mc.Gaussian(4.0).transform(Features(lambda Z: np.tanh(Z @ W)))
    with mc.options(engine="blocked"):
        expected = k(X)
    assert_allclose(k(X), expected, rtol=1e-11)


def test_there_are_no_derivatives_and_pre_images_come_from_candidates(rng):
    X = rng.normal(size=(15, 2))
    k = mc.Gaussian(1.0).transform(Features(bent))
    psi = mc.mean_embedding(k, X)
    with pytest.raises(mc.exceptions.DerivativeError, match="feature map"):
        psi.gradient(X)
    for solver in (mc.Newton(), mc.FixedPoint(), mc.Distances(), mc.Global()):
        with pytest.raises((mc.InputError, mc.exceptions.DerivativeError)):
            mc.preimage(psi, solver)
    found = mc.preimage(psi)
    distances = [psi.distance(mc.feature(k, x[None])) for x in X]
    assert_allclose(found.distance[0], np.min(distances), rtol=1e-8)


def test_what_a_map_must_return(rng):
    X = rng.normal(size=(4, 2))
    wrong = {
        "one row per point": lambda Z: np.ones((3, 2)),
        "shape": lambda Z: np.ones(len(Z)),
        "NaN": lambda Z: np.full((len(Z), 1), np.nan),
    }
    for message, function in wrong.items():
        with pytest.raises(mc.InputError, match=message):
            mc.Linear().transform(Features(function))(X)
    with pytest.raises(mc.InputError, match="must be a function"):
        Features(3)
    with pytest.raises(mc.InputError, match="map of points"):
        mc.Linear().transform(bent)
    with pytest.raises(mc.exceptions.UnavailableError, match="not linear"):
        mc.Gaussian(1.0).transform(Features(bent)).spectral_measure(2)


def test_monomials_refuse_what_would_not_fit():
    with pytest.raises(mc.InputError, match="use the kernel Polynomial"):
        Monomials(10).apply(np.ones((1, 100)))
    with pytest.raises(mc.InputError, match="sparse"):
        Monomials(2).apply(csr_array(np.eye(3)))
    for bad in ({"degree": 0}, {"degree": 2, "scale": 0.0}, {"degree": 2, "offset": -1.0}):
        with pytest.raises(mc.InputError):
            Monomials(**bad)
    assert Monomials(2) == Monomials(2)
    assert hash(Monomials(2)) != hash(Monomials(3))
