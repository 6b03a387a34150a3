"""Denoiser, fit_denoiser and Stein's risk: closed forms, refitting, unbiasedness."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import mercer as mc
from mercer.methods import Denoiser, fit_denoiser, kernel_pca
from mercer.methods.denoising._denoiser import SteinRisk, held_out_risk, leave_one_out_risk
from mercer.preimages import LinearInverse

K = mc.Gaussian(1.2)


def denoiser(X, *, r=None, strength=0.5, weights=None, kernel=K, inverse=None, noise=0.2):
    plane = kernel_pca(kernel, X, r, weights=weights)
    w = mc.methods.Tikhonov(strength).weights(plane.eigenvalues, None)
    back = LinearInverse.fit(plane, X, weights) if inverse is None else inverse
    return Denoiser(plane, w, back, 1.0, noise)


# --- there and back -------------------------------------------------------------------------------


def test_a_ridge_of_features_on_themselves(rng):
    X, Y = rng.normal(size=(25, 3)), rng.normal(size=(8, 3))
    D = denoiser(X, strength=0.7)
    H = np.eye(25) - 1.0 / 25
    a = np.linalg.solve(H @ K(X) @ H + 0.7 * np.eye(25), H @ (K(X, Y) - K(X).mean(axis=1)[:, None]))
    np.testing.assert_allclose(D(Y), X.mean(axis=0) + (H @ a).T @ X, atol=1e-9)


def test_trust_blends(rng):
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(5, 2))
    D = denoiser(X)
    for t in (0.0, 0.4, 1.0):
        blended = replace(D, trust=t)
        np.testing.assert_allclose(blended(Y), Y + t * (D(Y) - Y), atol=1e-14)
    assert D(Y.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(D(csr_array(Y)), D(Y), atol=1e-10)


def test_a_solver_finds_the_pre_image_of_the_shrunk_projection(rng):
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(6, 2))
    D = denoiser(X, r=6, inverse=mc.Newton())
    expected = mc.preimage(
        D.plane.element(D.weights * D.plane.coordinates(mc.feature(K, Y))), mc.Newton(), start=Y
    ).points
    np.testing.assert_allclose(D(Y), expected, atol=1e-9)


def test_many_rows_are_done_in_blocks(rng):
    X, Y = rng.normal(size=(15, 2)), rng.normal(size=(5000, 2))
    D = denoiser(X)
    np.testing.assert_allclose(D(Y)[4090:4100], D(Y[4090:4100]), atol=1e-12)


# --- each row without itself ----------------------------------------------------------------------


@pytest.mark.parametrize("inverse", [None, mc.Newton()])
def test_leaving_out_is_refitting_without_the_row(inverse, rng):
    # exact for the ridge: a rank-one update of a linear smoother, the intercept included
    X = rng.normal(size=(30, 3))
    D = denoiser(X, inverse=inverse)
    out = D.left_out(X, np.ones(30), 30.0)
    Y = X + 0.1 * rng.normal(size=X.shape)
    for points in (X, Y):
        again = [
            denoiser(np.delete(X, i, axis=0), inverse=inverse)(points[i : i + 1])[0]
            for i in range(30)
        ]
        np.testing.assert_allclose(out(points), again, atol=1e-6)


def test_rows_that_stand_twice_are_left_out_together(rng):
    X, w = rng.normal(size=(30, 3)), rng.integers(1, 4, 30).astype(float)
    D = denoiser(X, weights=w)
    out = D.left_out(X, w, w.sum())
    again = [
        denoiser(np.delete(X, i, axis=0), weights=np.delete(w, i))(X[i : i + 1])[0]
        for i in range(30)
    ]
    np.testing.assert_allclose(out(X), again, atol=1e-7)
    a = leave_one_out_risk(D, X, weights=w)
    rows = np.repeat(X, w.astype(int), axis=0)
    b = leave_one_out_risk(denoiser(rows), rows)
    assert a.moved == pytest.approx(b.moved, rel=1e-7)
    assert a.divergence == pytest.approx(b.divergence, rel=1e-5)


def test_a_hard_cut_is_left_out_nearly_so(rng):
    t = rng.uniform(0.0, 6.28, 30)
    X = np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * rng.normal(size=(30, 2))

    def cut(rows):
        plane = kernel_pca(K, rows, 4)
        return Denoiser(plane, np.ones(4), LinearInverse.fit(plane, rows), 1.0, 0.1)

    out = cut(X).left_out(X, np.ones(30), 30.0)(X) - X
    again = np.vstack([cut(np.delete(X, i, axis=0))(X[i : i + 1]) for i in range(30)]) - X
    seen = cut(X)(X) - X
    assert np.mean(out**2) == pytest.approx(np.mean(again**2), rel=0.15)
    assert np.mean(seen**2) < 0.8 * np.mean(again**2)


def test_some_rows_stand_for_all(rng, monkeypatch):
    t = rng.uniform(0.0, 2.0 * np.pi, 300)
    X = np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * rng.normal(size=(300, 2))
    D = denoiser(X)
    every = leave_one_out_risk(D, X)
    monkeypatch.setattr("mercer.methods.denoising._denoiser._ENTRIES", 0)  # at least 100 rows
    some = leave_one_out_risk(D, X)
    assert some.moved == pytest.approx(every.moved, rel=0.4)
    assert some.divergence == pytest.approx(every.divergence, rel=0.2)


# --- Stein's estimate -----------------------------------------------------------------------------


def test_the_risk_is_a_parabola_in_the_trust():
    risk = SteinRisk(0.04, 0.09, -0.9)
    assert risk.at(0.0) == 0.04
    assert risk.trust == pytest.approx(0.04 * 0.9 / 0.09)
    t = np.linspace(0.0, 1.0, 1001)
    assert t[np.argmin([risk.at(s) for s in t])] == pytest.approx(risk.trust, abs=1e-3)
    assert SteinRisk(0.04, 0.01, -0.9).trust == 1.0
    assert SteinRisk(0.04, 0.01, 0.1).trust == 0.0  # takes out no noise
    assert SteinRisk(0.04, 0.0, -0.5).trust == 0.0  # moves nothing


def test_the_risk_of_a_linear_smoother_is_known(rng):
    # D(y) = m + w (y - m) in one dimension: r = (w - 1)(y - m), div r = w - 1
    X = rng.normal(size=(200, 1)) + 3.0
    plane = kernel_pca(mc.Linear(), X)
    D = Denoiser(plane, np.array([0.7]), LinearInverse.fit(plane, X), 1.0, 0.5)
    risk = held_out_risk(D, X)
    assert risk.divergence == pytest.approx(-0.3, rel=1e-6)
    assert risk.moved == pytest.approx(0.09 * np.var(X), rel=1e-9)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("trust", [0.3, 1.0])
def test_steins_estimate_is_the_error_within_its_standard_error(held_out, trust):
    sd, gaps, errors = 0.2, [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        t = rng.uniform(0.0, 2.0 * np.pi, 120)
        clean = np.column_stack([np.cos(t), np.sin(t), np.cos(2.0 * t)])
        noisy = clean + sd * rng.normal(size=clean.shape)
        D = denoiser(noisy[:80], strength=4.0, noise=sd)
        if held_out:
            rows, truth, back = noisy[80:], clean[80:], D(noisy[80:])
            risk = held_out_risk(D, rows)
        else:
            rows, truth = noisy[:80], clean[:80]
            back = D.left_out(rows, np.ones(80), 80.0)(rows)
            risk = leave_one_out_risk(D, rows)
        errors.append(np.mean((rows + trust * (back - rows) - truth) ** 2))
        gaps.append(risk.at(trust) - errors[-1])
    standard_error = np.std(gaps, ddof=1) / np.sqrt(40)
    assert abs(np.mean(gaps)) < 3.0 * standard_error
    assert standard_error < 0.1 * np.mean(errors)  # so the test says something


# --- from a subspace to a denoiser ----------------------------------------------------------------


def test_defaults(rng):
    X = rng.normal(size=(90, 1)) @ rng.normal(size=(1, 7)) + 0.1 * rng.normal(size=(90, 7))
    plane = kernel_pca(K, X)
    D = fit_denoiser(plane, X)
    assert isinstance(D.inverse, LinearInverse)
    level = mc.methods.noise_level(X)
    assert (D.noise, D.noise_error) == (level.sd, level.error)
    assert D.noise > 0.0
    a = 90 * D.noise**2 / K.length_scale**2
    np.testing.assert_allclose(D.weights, plane.eigenvalues / (plane.eigenvalues + a))
    assert D.trust == leave_one_out_risk(D, X).trust
    given = fit_denoiser(plane, X, noise=0.3, trust=0.5, filter=mc.methods.Truncation())
    assert (given.noise, given.trust) == (0.3, 0.5)
    np.testing.assert_array_equal(given.weights, 1.0)


def test_kernels_without_derivatives_keep_all_components(rng):
    X = rng.normal(size=(20, 2))
    k = mc.kernels.FromFunction(lambda A, B: np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2)))
    D = fit_denoiser(kernel_pca(k, X, 5), X)
    np.testing.assert_array_equal(D.weights, 1.0)


def test_refusals(rng):
    X = rng.normal(size=(10, 2))
    plane = kernel_pca(K, X)
    bare = mc.Subspace(plane.origin, plane.directions)
    with pytest.raises(mc.InputError, match="no eigenvalues"):
        fit_denoiser(bare, X)
    with pytest.raises(mc.InputError, match="plane must be a Subspace"):
        fit_denoiser(None, X)
    for wrong in ({"noise": "much"}, {"trust": 2.0}, {"trust": "most"}, {"inverse": 3},
                  {"noise": 1e300}, {"filter": 3}, {"filter": "Tikhonov"}):  # fmt: skip
        with pytest.raises(mc.InputError, match=next(iter(wrong))):
            fit_denoiser(plane, X, **wrong)
    words = ["abab", "abba", "bbbb", "aabb"]
    with pytest.raises(mc.InputError, match="not vectors"):
        fit_denoiser(kernel_pca(mc.Spectrum(2), words), words)


@pytest.mark.parametrize("noise", [5e-324, 1e-310, 1e-160, 1e-20])
@pytest.mark.parametrize("kernel", [K, mc.Linear()], ids=repr)
def test_hardly_any_noise_changes_hardly_anything(noise, kernel, rng):
    X = rng.normal(size=(30, 3))
    found = fit_denoiser(kernel_pca(kernel, X), X, noise=noise)
    assert found.trust < 1e-6
    np.testing.assert_allclose(found(X), X, atol=1e-6)


def test_without_a_row_is_a_refit_without_it(rng):
    X, w = rng.normal(size=(20, 3)), rng.uniform(0.5, 2.0, 20)
    Y = X + 0.2 * rng.normal(size=X.shape)

    def fitted(rows):
        plane = mc.kernel_pca(mc.Gaussian(1.2), X[rows], weights=w[rows])
        return mc.methods.fit_denoiser(
            plane, X[rows], weights=w[rows], filter=mc.methods.Tikhonov(0.5), noise=0.1
        )

    found = fitted(np.arange(20)).left_out(X, w, float(w.sum()))(Y)
    for i in range(20):
        expected = fitted(np.delete(np.arange(20), i)).project(Y[i : i + 1])[0]
        np.testing.assert_allclose(found[i], expected, atol=1e-6)
    some = fitted(np.arange(20)).left_out(X[:5], w[:5], float(w.sum()))(Y[:5])
    np.testing.assert_allclose(some, found[:5], atol=1e-12)
