"""Compression at the border: kinds of points, tolerances, scales, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import mercer as mc
from mercer.preimages.compression._compress import compress
from mercer.preimages.compression._methods import Greedy, Pruning


def dense(element):
    return np.asarray(element.coef.tile(slice(None), slice(None)))


def blobs(rng, n, centres=6):
    middle = 4.0 * rng.normal(size=(centres, 2))
    return middle[rng.integers(centres, size=n)] + 0.7 * rng.normal(size=(n, 2))


def common(A, B):
    return [[float(len(set(a) & set(b))) for b in B] for a in A]


def test_strings(rng):
    k = mc.kernels.FromFunction(common, on=mc.kernels.Objects())
    words = ["ab", "abc", "bcd", "cd", "d", "ad", "ab", "abcd"]
    psi = mc.Element(k, words, rng.normal(size=8))
    small = compress(psi, 4)
    assert set(small.element.points) <= set(words)
    assert small.relative_error < 1e-7  # four letters, four dimensions
    assert compress(psi, 2).error >= compress(psi, 3).error
    with pytest.raises(mc.exceptions.DerivativeError):
        compress(psi, 2, method=Greedy())


def test_precomputed(rng):
    X = rng.normal(size=(20, 2))
    a = rng.normal(size=20)
    K = mc.Gaussian(1.0)(X)
    by_rows = compress(mc.Element(mc.Precomputed(K), np.arange(20), a), 5)
    by_points = compress(mc.Element(mc.Gaussian(1.0), X, a), 5, method=Pruning())
    assert_allclose(X[by_rows.element.points], by_points.element.points)
    assert_allclose(by_rows.error, by_points.error)


def test_float32_points_stay_float32(rng):
    X = rng.normal(size=(100, 2)).astype(np.float32)
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    for method in (Greedy(), Pruning()):
        small = compress(psi, 8, method=method, random_state=0)
        assert small.element.points.dtype == np.float32
        assert_allclose(small.error, psi.distance(small.element), rtol=1e-5)


def test_sparse_points(rng):
    X = rng.normal(size=(30, 4)) * (rng.random((30, 4)) < 0.5)
    a = rng.normal(size=30)
    sparse = mc.Element(mc.Gaussian(1.0), csr_array(X), a)
    full = mc.Element(mc.Gaussian(1.0), X, a)
    small = compress(sparse, 6)
    assert_allclose(small.error, compress(full, 6, method=Pruning()).error)
    assert_allclose(
        small.element.points.toarray(), compress(full, 6, method=Pruning()).element.points
    )
    moved = compress(sparse, 6, method=Greedy(max_iter=3))
    assert_allclose(moved.error, compress(full, 6, method=Greedy(max_iter=3)).error, rtol=1e-6)


def test_tol_uses_no_more_points_than_it_takes(rng):
    psi = mc.mean_embedding(mc.Gaussian(1.0), blobs(rng, n=200, centres=3))
    for method in (Greedy(), Pruning()):
        small = compress(psi, 100, method=method, tol=0.05)
        assert small.status is mc.Status.CONVERGED
        assert small.relative_error <= 0.05
        assert len(small.element.points) < 60
        enough = compress(psi, 3, method=method, tol=1e-6)
        assert enough.status is mc.Status.MAX_RANK
        assert not enough.ok
    assert compress(psi, 200, method=Pruning(), tol=1e-12).ok


def test_many_points_are_sampled(rng, monkeypatch):
    monkeypatch.setattr("mercer.preimages.compression._target._TRIED", 50)
    psi = mc.mean_embedding(mc.Gaussian(1.0), blobs(rng, n=400))
    for method in (Greedy(max_iter=3), Pruning()):
        a, b = (compress(psi, 10, method=method, random_state=3) for _ in range(2))
        assert_allclose(a.element.points, b.element.points)
        assert a.relative_error < 0.5


def test_the_callback_counts_steps_and_stops(rng):
    psi = mc.mean_embedding(mc.Gaussian(1.0), rng.normal(size=(50, 2)))
    steps = []

    def watch(step):
        steps.append(step)
        return step.n_iter == 3

    small = compress(psi, 10, callback=watch)
    assert [s.n_iter for s in steps] == [1, 2, 3]
    assert_allclose(steps[-1].residual, small.relative_error, rtol=1e-4)
    assert small.status is mc.Status.STOPPED
    assert small.n_iter == 3
    assert len(small.element.points) == 10


def test_kernels_without_a_norm_are_refused(rng):
    X = rng.normal(size=(10, 2))
    for kernel in (mc.Epanechnikov(), mc.NegativeDistance(1.0)):
        with pytest.raises(mc.InputError, match="positive definite"):
            compress(mc.Element(kernel, X, np.ones(10)), 3)
        assert compress(mc.Element(kernel, X, np.ones(10)), 10).status is mc.Status.COMPLETE
    flip = mc.kernels.FromFunction(lambda A, B: np.tanh(A @ B.T - 1.0))
    with pytest.raises(mc.InputError, match="positive definite"):
        compress(mc.Element(flip, X, rng.normal(size=10)), 3)
    zero = mc.Gaussian(1.0) * mc.NegativeDistance(1.0)  # on the diagonal
    for method in (Pruning(), Greedy()):
        with pytest.raises(mc.InputError, match="positive definite"):
            compress(mc.Element(zero, X, np.ones(10)), 3, method=method)


def test_bad_arguments(rng):
    psi = mc.mean_embedding(mc.Gaussian(1.0), rng.normal(size=(5, 2)))
    with pytest.raises(mc.InputError, match="Element"):
        compress(psi.points, 3)
    with pytest.raises(mc.InputError, match="n_points"):
        compress(psi, 0)
    with pytest.raises(mc.InputError, match="method"):
        compress(psi, 3, method="greedy")
    with pytest.raises(mc.InputError, match="tol"):
        compress(psi, 3, tol=-1.0)
    with pytest.raises(mc.InputError, match="pool"):
        Pruning(pool=0.5)


def test_far_from_the_origin_and_at_any_scale(rng):
    X, a = rng.normal(size=(60, 2)), rng.normal(size=60)
    one = compress(mc.Element(mc.Gaussian(1.0), X, a), 8)
    for scale, shift in ((1e-6, 0.0), (1.0, 1e4), (1e5, 0.0)):
        psi = mc.Element(mc.Gaussian(scale), scale * X + shift, 1e3 * a)
        assert_allclose(compress(psi, 8).relative_error, one.relative_error, rtol=1e-3)


def test_points_that_meet_do_not_break_it():
    """The difference of two features side by side is a derivative: coefficients grow, not NaN."""
    psi = mc.Element(mc.Gaussian(1.0), [[0.0], [1e-3], [2e-3]], [1e6, -2e6, 1e6])
    small = compress(psi, 2)
    assert np.isfinite(dense(small.element)).all()
    assert small.relative_error < 1


@pytest.mark.parametrize("size", [1e-200, 1e-20, 1e20, 1e150])
@pytest.mark.parametrize("method", [Greedy(max_iter=3), Pruning()], ids=repr)
def test_tiny_and_huge_coefficients(size, method, rng):
    X, a = rng.normal(size=(30, 2)), rng.normal(size=30)
    one = compress(mc.Element(mc.Gaussian(1.0), X, a), 5, method=method)
    other = compress(mc.Element(mc.Gaussian(1.0), X, size * a), 5, method=method)
    assert_allclose(other.relative_error, one.relative_error, rtol=1e-6)
    assert_allclose(other.error / size, one.error, rtol=1e-6)
    assert_allclose(dense(other.element) / size, dense(one.element), rtol=1e-4)


def test_an_ill_conditioned_kernel_stops_where_only_rounding_is_left(rng):
    psi = mc.mean_embedding(mc.Gaussian(3.0), rng.normal(size=(400, 1)))
    for method in (Greedy(), Pruning()):
        small = compress(psi, 60, method=method, random_state=0)
        assert small.status is mc.Status.COMPLETE
        assert len(small.element.points) < 20
        assert small.relative_error < 1e-4
        assert np.abs(dense(small.element)).max() < 1e3


def test_objects_that_cannot_be_compared_are_not_merged():
    k = mc.kernels.FromFunction(common, on=mc.kernels.Objects())
    psi = mc.Element(k, [[1, 2], [2, 3], [1], [1, 2, 3], [1]], [1.0, 2.0, 3.0, 4.0, 1.0])
    small = compress(psi, 3)
    assert len(small.element.points) <= 3
    assert small.relative_error < 1e-7


def test_a_constant_kernel_has_one_dimension(rng):
    small = compress(mc.Element(mc.kernels.Constant(2.0), rng.normal(size=(9, 2)), np.ones(9)), 3)
    assert len(small.element.points) == 1
    assert_allclose(dense(small.element), [[9.0]])
