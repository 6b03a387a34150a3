"""Pre-images of inputs nobody thought of, of the four curves, and of real digits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import mercer as mc
from mercer import Status, datasets
from mercer.preimages import Verdict, gradient_bound

ENDS = {Status.CONVERGED, Status.AT_POINT, Status.ESCAPED}
KERNELS = st.sampled_from(
    [
        mc.Gaussian(1.0), mc.Matern(2.5, 0.7), mc.InverseMultiquadric(1.0, 0.7), mc.Laplace(1.0),
        mc.Gaussian(0.5) + 0.3 * mc.Gaussian(3.0), mc.RationalQuadratic(0.5, 1.0),
    ]
)  # fmt: skip


@given(
    kernel=KERNELS,
    n=st.integers(1, 12),
    d=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    shift=st.sampled_from([0.0, -50.0, 1e4]),
    duplicated=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_mixed_signs_descend_and_end(kernel, n, d, seed, scale, shift, duplicated):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * scale
    X = np.vstack([X, X]) + shift if duplicated else X + shift
    psi = mc.Element(kernel, X, rng.normal(size=len(X)))
    start = X[:1] + 0.5 * scale * rng.normal(size=(1, d))
    back = mc.preimage(psi, start=start, history=True)
    slow = back.status[0] is Status.MAX_ITER  # fixed-point steps between cusps converge linearly
    assert back.status[0] in ENDS or (slow and back.gradient_norm[0] <= 1e-6 * gradient_bound(psi))
    assert np.isfinite(back.points).all()
    path = back.history.objective[:, 0]
    path = path[np.isfinite(path)]
    size = np.abs(psi.coef.array).sum() * float(kernel.diag(X[:1])[0])
    assert (np.diff(path) <= 1e-14 * size).all()
    assert back.objective[0] <= path[0] + 1e-14 * size


@pytest.mark.parametrize("name", ["frame", "banana", "spiral", "sine"])
def test_curves(name):
    X = getattr(datasets, name)(random_state=0).points
    noisy = getattr(datasets, name)(60, random_state=1).points
    k = mc.Gaussian(0.4)
    mean = mc.mean_embedding(k, X)
    plane = mc.Subspace.span(mean, mc.feature(k, X) - mean).truncate(8)
    psi = plane.project(mc.feature(k, noisy))
    for start in (noisy, None):
        back = mc.preimage(psi, start=start)
        assert back.ok.all()
        assert (back.gradient_norm <= 1e-8 * gradient_bound(psi)).all()
        assert (back.certificate.verdict == Verdict.PROVED_MINIMUM).mean() > 0.95


def test_digits():
    X = load_digits().data / 16.0
    rng = np.random.default_rng(0)
    clean = X[1000:1060]
    noisy = clean + 0.4 * rng.normal(size=clean.shape)
    k = mc.Gaussian(mc.median_scale(X[:400]))
    mean = mc.mean_embedding(k, X[:400])
    plane = mc.Subspace.span(mean, mc.feature(k, X[:400]) - mean).truncate(30)
    back = mc.preimage(plane.project(mc.feature(k, noisy)), start=noisy)
    assert back.ok.all()
    before, after = (np.mean((Z - clean) ** 2) for Z in (noisy, back.points))
    assert after < 0.4 * before
