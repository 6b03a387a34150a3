"""Alignment of two sets of points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.preimages import procrustes


def rotation(rng, d, proper=True):
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return Q if (np.linalg.det(Q) > 0) == proper else Q * np.append(-1.0, np.ones(d - 1))


@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), scale=st.booleans(), proper=st.booleans())
def test_an_exact_motion_is_found(seed, d, scale, proper):
    rng = np.random.default_rng(seed)
    A, Q, t = rng.normal(size=(d + 4, d)), rotation(rng, d, proper), rng.normal(size=d)
    c = 2.5 if scale else 1.0
    fit = procrustes(A, c * A @ Q + t, scale=scale)
    assert_allclose(fit.rotation, Q, atol=1e-9)
    assert_allclose(fit.shift, t, atol=1e-9)
    assert_allclose(fit.scale, c)
    assert fit.residual < 1e-9
    assert_allclose(fit.apply(A[:2]), c * A[:2] @ Q + t, atol=1e-9)


@pytest.mark.parametrize("scale", [False, True])
def test_no_other_motion_is_nearer(scale, rng):
    A, B = rng.normal(size=(12, 3)), rng.normal(size=(12, 3)) * [1.0, 1.0, -2.0]
    fit = procrustes(A, B, scale=scale)
    assert_allclose(fit.residual, np.linalg.norm(fit.apply(A) - B))
    assert_allclose(fit.rotation @ fit.rotation.T, np.eye(3), atol=1e-14)
    for _ in range(200):
        turn = rotation(rng, 3)
        step = np.linalg.qr(np.eye(3) + 0.1 * (turn - turn.T))[0]
        step *= np.sign(np.diag(step))
        R, c = fit.rotation @ step, fit.scale * (1 + 0.1 * rng.normal() * scale)
        moved = c * A @ R + fit.shift + 0.1 * rng.normal(size=3)
        assert np.linalg.norm(moved - B) >= fit.residual


def test_distances_alone_give_the_points_back_up_to_a_motion(rng):
    """Classical scaling, then alignment: what the literature does with an embedding."""
    X = rng.normal(size=(10, 2))
    D = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    H = np.eye(10) - 0.1
    values, vectors = np.linalg.eigh(-0.5 * H @ D @ H)
    embedded = vectors[:, -2:] * np.sqrt(values[-2:])
    assert_allclose(procrustes(embedded, X).apply(embedded), X, atol=1e-12)


def test_degenerate_sets():
    one = procrustes([[1.0, 2.0]], [[3.0, 3.0]], scale=True)
    assert_allclose(one.apply([[1.0, 2.0]]), [[3.0, 3.0]])
    assert one.scale == 1.0
    collapsed = procrustes([[0.0], [1.0]], [[5.0], [5.0]], scale=True)
    assert collapsed.scale == 0.0
    assert_allclose(collapsed.apply([[7.0]]), [[5.0]])


def test_errors():
    with pytest.raises(mc.InputError, match="same shape"):
        procrustes([[1.0]], [[1.0], [2.0]])
    with pytest.raises(mc.InputError, match="features"):
        procrustes([[1.0]], [[2.0]]).apply([[1.0, 2.0]])
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(mc.InputError, match="dense"):
        procrustes(sparse.csr_array(np.eye(2)), np.eye(2))
