"""Smoother: leverages, and leaving rows out, against written-out formulas."""

import numpy as np

import mercer as mc
from mercer.methods import Tikhonov, kernel_pca
from mercer.methods.pca._smoother import Smoother
from mercer.preimages import LinearInverse

K = mc.Gaussian(1.2)


def fitted(X, w, strength=0.5):
    plane = kernel_pca(K, X, weights=w)
    phi = Tikhonov(strength).weights(plane.eigenvalues, None)
    C = np.asarray(plane.coordinates(mc.feature(K, X)))
    return plane, phi, Smoother(C, phi / plane.eigenvalues, w)


def test_leverages_are_the_diagonal_of_the_matrix(rng):
    X, w = rng.normal(size=(20, 3)), rng.uniform(0.5, 2.0, 20)
    smoother = fitted(X, w)[2]
    C, gain = smoother.C, smoother.gain
    H = np.outer(np.ones(20), w) / w.sum() + (C * gain) @ C.T * w
    np.testing.assert_allclose(smoother.leverage, np.diag(H), atol=1e-12)
    some = Smoother(C[:5], gain, w[:5], float(w.sum()))
    np.testing.assert_allclose(some.leverage, np.diag(H)[:5], atol=1e-12)


def test_without_a_row_is_a_refit_without_it(rng):
    X, w = rng.normal(size=(20, 3)), rng.uniform(0.5, 2.0, 20)
    plane, phi, smoother = fitted(X, w)
    Y = X + 0.2 * rng.normal(size=X.shape)
    c = np.asarray(plane.coordinates(mc.feature(K, Y)))
    found = smoother.points_without(c, X, phi, LinearInverse.fit(plane, X, w))
    for i in range(20):
        rest = np.delete(np.arange(20), i)
        plane, phi, _ = fitted(X[rest], w[rest])
        c = np.asarray(plane.coordinates(mc.feature(K, Y[i : i + 1])))
        expected = LinearInverse.fit(plane, X[rest], w[rest]).predict(c * phi)[0]
        np.testing.assert_allclose(found[i], expected, atol=1e-6)
