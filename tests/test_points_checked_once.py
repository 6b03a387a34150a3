"""Points are checked once for each public call, however many functions they pass through."""

import sys

import numpy as np
import pytest

import mercer as mc
from mercer import _array, linalg

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=(6, 3))
K = mc.Gaussian(1.5)
PSI = mc.Element(K, X, RNG.normal(size=(40, 5)))


@pytest.fixture
def checked(monkeypatch):
    """The arrays that `as_points` checked, in order."""
    arrays = []

    def counted(X, name="X"):
        if not isinstance(X, _array.Points) and name != "A":  # the matrix of a map is no points
            arrays.append(np.asarray(X))
        return original(X, name)

    original = _array.as_points
    assert mc.MeanShift.__module__ in sys.modules  # estimators are loaded when they are first used
    for module in [m for n, m in sys.modules.items() if n.startswith("mercer")]:
        if getattr(module, "as_points", None) is original:
            monkeypatch.setattr(module, "as_points", counted)
    return arrays


RANDOM_FEATURES = linalg.random_features(K, 3, 8)
CALLS = {
    "k(X)": (lambda: K(X), [X]),
    "k(X, X)": (lambda: K(X, X), [X]),
    "k(X, Y)": (lambda: K(X, Y), [X, Y]),
    "k.gradient": (lambda: K.gradient(X, Y), [X, Y]),
    "k.diag": (lambda: K.diag(X), [X]),
    "Element": (lambda: mc.Element(K, X, np.ones(40)), [X]),
    "psi(Y)": (lambda: PSI(Y), [Y]),
    "psi.hessian": (lambda: PSI.hessian(Y), [Y]),
    "mean_embedding": (lambda: mc.mean_embedding(K, X).norm(), [X]),
    "covariance": (lambda: mc.covariance(K, X, K, -X), [X, -X]),
    "nystrom": (lambda: linalg.nystrom(K, X, 5, rule="pivoted"), [X]),
    "leverage": (lambda: linalg.nystrom(K, X, 5, rule="leverage", random_state=0), [X]),
    "eigenpairs": (lambda: linalg.eigenpairs(K, X, 3), [X]),
    "random features": (lambda: RANDOM_FEATURES.error(X), [X]),
    "kernel_pca": (lambda: mc.kernel_pca(K, X, 2), [X]),
    "preimage": (lambda: mc.preimage(PSI), []),  # its points were checked when it was made
    "preimage, cusps": (lambda: mc.preimage(mc.Element(mc.Laplace(1.0), X, np.ones(40))), [X]),
    "Element and compress": (lambda: mc.compress(mc.Element(K, X, np.ones(40)), 5), [X]),
    "KernelPCA": (lambda: mc.KernelPCA(kernel=K).fit(X).transform(Y), [X, Y]),
    "landmarks": (lambda: mc.KernelPCA(kernel=K, n_landmarks=9).fit(X).transform(Y), [X, Y]),
    "KernelDenoiser": (lambda: mc.KernelDenoiser(kernel=K, noise=0.1).fit(X).transform(Y), [X, Y]),
    "KernelNovelty": (lambda: mc.KernelNovelty(kernel=K).fit(X).score_samples(Y), [X, Y]),
    "KernelDensity": (lambda: mc.KernelDensity().fit(X).score_samples(Y), [X, Y]),
    "MeanShift": (lambda: mc.MeanShift().fit(X), [X]),
    "MeanShift, stable": (lambda: mc.MeanShift(bandwidth="stable").fit(X), [X]),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_array_is_checked_once(name, checked):
    call, expected = CALLS[name]
    call()
    assert len(checked) == len(expected), [a.shape for a in checked]
    for found, array in zip(checked, expected, strict=True):
        np.testing.assert_array_equal(found, array)


def test_points_are_never_checked_again(checked):
    points = K.points(X)
    checked.clear()
    assert K.points(points) is points
    K(points, points[:3])
    mc.Element(K, points, np.ones(40))(points)
    mc.Element(K, points[::2], np.ones(20)).gradient(PSI.support)
    mc.median_scale(points)
    assert checked == []


def test_points_of_another_domain_are_checked_again(checked):
    points = K.points(X)
    checked.clear()
    with pytest.raises(mc.exceptions.DomainError, match="inside the ball"):
        mc.kernels.Geometric(1.0).points(points)
    assert mc.Linear().points(points) is points  # vectors as well
    ids = mc.Precomputed(np.eye(3)).points([0, 2])
    with pytest.raises(mc.InputError):
        K(ids)


def test_points_are_read_only_and_rows_of_them_are_points():
    points = K.points(X)
    assert not points.array.flags.writeable
    assert len(points[2:5]) == 3
    assert points[[0, 1]].domain == points.domain
    np.testing.assert_array_equal(np.asarray(points[X[:, 0] > 0]), X[X[:, 0] > 0])
    sparse = pytest.importorskip("scipy.sparse").csr_array(X)
    np.testing.assert_array_equal(K(K.points(sparse)[:4], points), K(sparse[:4], X))
