"""Certificates are never wrong: against extended precision, exact eigenvalues, and true minima."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercer as mc
from mercer.engine import LowRank
from mercer.preimages import certify, weyl_test
from mercer.preimages._diagnostics import preimage_gradient, preimage_hessian
from mercer.preimages._result import Verdict
from mercer.rigor._rounding import row_sums, supremum_errors
from mercer.rigor._weyl import all_sums, prepared

MINIMUM, CONVEX, NOT, OPEN = (
    Verdict.PROVED_MINIMUM,
    Verdict.POSITIVE_DEFINITE,
    Verdict.NOT_A_MINIMUM,
    Verdict.UNDECIDED,
)
KERNELS = [
    mc.Gaussian(0.8),
    mc.Laplace(0.9),
    mc.Matern(1.5, 1.2),
    mc.Matern(2.5, 0.7),
    mc.InverseMultiquadric(0.5, 1.5),
    mc.RationalQuadratic(0.7, 0.5),
    mc.Epanechnikov(2.0),
    mc.NegativeDistance(1.0),
    mc.NegativeDistance(1.5),
    mc.Linear(),
    mc.Polynomial(3, scale=2.0, offset=0.5),
    mc.Exponential(3.0),
    mc.Gaussian(0.8) + 0.3 * mc.Linear(),
    mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Matern(2.5).transform(mc.Columns([1])),
    mc.Gaussian(1.0).transform(mc.kernels.Matrix([[1.0, 0.5], [0.0, 2.0]])),
    mc.kernels.Normalised(mc.Polynomial(2)),
]


def problem(rng, d=2, n=6, m=40, scale=1.0):
    X = scale * rng.normal(size=(n, d))
    return X, rng.normal(size=n) + 0.3, 1.2 * scale * rng.normal(size=(m, d))


def names(certificate):
    return [v.name for v in certificate.verdict]


def slopes(name, u, s):
    """k' and k'' in the precision of u."""
    if name == "Gaussian":
        k = np.exp(-u / (2 * s**2))
        return -k / (2 * s**2), k / (4 * s**4)
    r = np.sqrt(u)
    k = np.exp(-r / s)
    return -k / (2 * r * s), k * (1 / (4 * u * s**2) + 1 / (4 * r**3 * s))


def in_extended_precision(name, X, a, s, y):
    """Gradient and Hessian of -psi (x86: 64 bits of mantissa)."""
    X, a, y, s = (np.asarray(v, dtype=np.longdouble) for v in (X, a, y, s))
    D = y - X
    k1, k2 = slopes(name, np.sum(D * D, axis=1), s)
    H = -2 * np.sum(a * k1) * np.eye(y.size, dtype=np.longdouble)
    return -2 * (a * k1) @ D, H - 4 * (D * (a * k2)[:, None]).T @ D


# --- rounding ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Gaussian", "Laplace"])
@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("s", [0.02, 1.0, 30.0])
@pytest.mark.parametrize("d", [1, 3, 12])
def test_rounding_bounds_cover_the_errors_of_the_engine(rng, name, shift, s, d):
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("no extended precision here")
    X, a, Y = problem(rng, d=d, n=300, m=12)
    near = np.array([1.0, 0.3, 0.1, 1e-3, 1e-5, 1e-7])[:, None]
    Y[:6] = X[:6] + near * s * rng.normal(size=(6, d))
    X, Y = X + shift, Y + shift
    psi = mc.Element(getattr(mc, name)(s), X, a)
    g, H = preimage_gradient(psi, Y), preimage_hessian(psi, Y)
    sums = row_sums(psi.kernel.program, X, Y, psi.coef, paired=False)
    bounds = [(sums.gradient_error, sums.hessian_error), supremum_errors(psi, Y)]
    assert (bounds[1] is None) == (name == "Laplace")
    for j, y in enumerate(Y):
        g_true, H_true = in_extended_precision(name, X, a, s, y)
        wrong_g = float(np.linalg.norm((g[j] - g_true).astype(float)))
        wrong_H = float(np.linalg.norm((H[j] - H_true).astype(float), 2))
        for g_error, H_error in filter(None, bounds):
            assert wrong_g <= g_error[j]
            assert wrong_H <= H_error[j]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_rounding_bounds_are_small(kernel, rng):
    """A bound that is too large would leave everything undecided."""
    X, a, Y = problem(rng)
    psi, Y = prepared(mc.Element(kernel, X, a), Y)
    sums = all_sums(psi, Y)
    size = np.linalg.norm(preimage_hessian(psi, Y), axis=(1, 2))
    good = sums.hessian_error < 1e-8 * np.maximum(size, np.median(size))
    assert good.mean() > 0.9


# --- never wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("eigenvalues", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_verdicts_agree_with_exact_eigenvalues(kernel, eigenvalues, rng):
    said = 0
    for _ in range(12):
        X, a, Y = problem(rng)
        psi = mc.Element(kernel, X, a)
        result = certify(psi, Y, eigenvalues=eigenvalues)
        smallest = np.linalg.eigvalsh(preimage_hessian(psi, Y))[:, 0]
        size = 1e-10 * np.abs(preimage_hessian(psi, Y)).sum(axis=(1, 2))
        for verdict, low, true, slack in zip(
            result.verdict, result.min_eigenvalue, smallest, size, strict=True
        ):
            said += verdict is not OPEN
            assert not low > true + slack
            if verdict in (MINIMUM, CONVEX):
                assert low > 0
                assert true > -slack
            if verdict is NOT:
                assert true < slack
    if eigenvalues and "Columns([0])" not in repr(kernel):
        assert said > 350  # of 480; an empty window decides nothing


def newton(psi, X, steps=12):
    """Undamped Newton steps from all rows at once."""
    for _ in range(steps):
        X = (
            X
            - np.linalg.solve(preimage_hessian(psi, X), preimage_gradient(psi, X)[..., None])[
                ..., 0
            ]
        )
    return X


def downhill(psi, X, steps=40):
    """Newton steps with the sizes of the eigenvalues, at most half a unit long."""
    for _ in range(steps):
        values, V = np.linalg.eigh(preimage_hessian(psi, X))
        g = np.einsum("nij,ni->nj", V, preimage_gradient(psi, X))
        step = np.einsum("nij,nj->ni", V, g / np.maximum(np.abs(values), 1e-3))
        length = np.linalg.norm(step, axis=1, keepdims=True)
        X = X - step * np.minimum(1.0, 0.5 / np.maximum(length, 1e-300))
    return X


SMOOTH = [
    mc.Gaussian(0.8),
    mc.Matern(1.5, 1.2),
    mc.Matern(2.5, 0.9),
    mc.InverseMultiquadric(0.5, 1.5),
    mc.Gaussian(1.0).transform(mc.Scales([0.5, 2.0])),
    mc.Linear(),
    mc.Polynomial(3, scale=2.0, offset=0.5),
    mc.Exponential(3.0),
]


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_the_proved_ball_holds_a_minimiser(kernel, rng):
    proved = 0
    for trial in range(5):
        X, a, Y = problem(rng, m=12)
        psi = mc.Element(kernel, X, np.abs(a) if trial % 2 else a)
        ends = downhill(psi, Y)
        near = np.vstack([ends + h * rng.normal(size=ends.shape) for h in (0.0, 1e-6, 1e-3, 3e-2)])
        result = certify(psi, near)
        sure = np.array([v is MINIMUM for v in result.verdict])
        assert_array_equal(sure, ~np.isnan(result.radius))
        if sure.any():
            true = newton(psi, near[sure])
            moved = np.linalg.norm(true - near[sure], axis=1)
            assert (moved <= result.radius[sure] * (1 + 1e-9) + 1e-13).all()
            assert (np.linalg.eigvalsh(preimage_hessian(psi, true))[:, 0] > 0).all()
            proved += int(sure.sum())
    assert proved > 50


def test_radii_are_sharp_near_minima(rng):
    psi = mc.mean_embedding(mc.Gaussian(1.0), 0.5 * rng.normal(size=(30, 3)))
    top = newton(psi, np.zeros((1, 3)))[0]
    away = top + 1e-4 * np.eye(3)
    result = certify(psi, np.vstack([top, away]))
    assert_array_equal(names(result), ["PROVED_MINIMUM"] * 4)
    assert result.radius[0] < 1e-11
    assert (result.radius[1:] < 3e-4).all()
    assert (result.radius[1:] >= 1e-4 * (1 - 1e-6)).all()


# --- cusps ------------------------------------------------------------------------------------


def test_a_cusp_is_a_minimum_if_its_pull_outweighs_the_rest():
    """Laplace, l = 1: a_1 at 0 against a at distance r pulls with a e^-r."""
    for a, expected in [(2.0, MINIMUM), (0.4, MINIMUM), (0.36, OPEN), (-0.5, NOT), (1e-17, OPEN)]:
        psi = mc.Element(mc.Laplace(1.0), [[0.0], [1.0]], [a, 1.0])
        result = certify(psi, [[0.0]])
        assert result.verdict[0] is expected
        assert (result.radius[0] == 0.0) if expected is MINIMUM else math.isnan(result.radius[0])
        assert math.isnan(result.min_eigenvalue[0])


def test_cusp_verdicts_agree_with_the_neighbourhood(rng):
    said = 0
    for kernel in (mc.Laplace(0.7), mc.NegativeDistance(1.0), mc.NegativeDistance(0.5)):
        for _ in range(60):
            X, a, _ = problem(rng)
            psi = mc.Element(kernel, X, a)
            result = certify(psi, X)
            turn = np.linspace(0.0, 2 * np.pi, 64)
            ring = 1e-7 * np.column_stack([np.cos(turn), np.sin(turn)])
            for x, verdict in zip(X, result.verdict, strict=True):
                rise = psi(x[None])[0] - psi(x + ring)
                said += verdict is not OPEN
                if verdict is MINIMUM:
                    assert (rise > 0).all()
                if verdict is NOT:
                    assert (rise < 0).any()
    assert said > 500


def test_a_map_weakens_the_pull():
    k = mc.Laplace(1.0).transform(mc.Scales([1.0, 4.0]))
    psi = mc.Element(k, [[0.0, 0.0], [0.0, 4.0]], [1.2, 1.0])
    assert certify(psi, [[0.0, 0.0]]).verdict[0] is MINIMUM  # 0.3 against 0.092
    flat = mc.Element(mc.Laplace(1.0).transform(mc.Columns([0])), [[0.0, 0.0]], [1.0])
    assert certify(flat, [[0.0, 3.0]]).verdict[0] is OPEN  # nothing changes along the second axis


# --- shapes, kinds, edges ---------------------------------------------------------------------


def test_batches_are_certified_element_by_element(rng):
    X, A = rng.normal(size=(9, 2)), rng.normal(size=(9, 2)) @ rng.normal(size=(2, 25))
    Y = rng.normal(size=(25, 2))
    for kernel in (mc.Gaussian(1.0), mc.Laplace(1.0), mc.Polynomial(2)):
        dense = mc.Element(kernel, X, A)
        whole = certify(dense, Y)
        single = [certify(dense[j], Y[j : j + 1]) for j in range(25)]
        assert names(whole) == [names(c)[0] for c in single]
        left, right = np.linalg.qr(A)
        low = certify(mc.Element(kernel, X, LowRank(left, right), 25), Y)
        assert names(low) == names(whole)
        assert_allclose(low.min_eigenvalue, whole.min_eigenvalue, rtol=1e-6, atol=1e-9)


def test_high_dimensions_use_sums(rng):
    X = 0.1 * rng.normal(size=(20, 100))
    psi = mc.mean_embedding(mc.Gaussian(3.0), X)
    top = X.mean(axis=0)
    for _ in range(50):
        K = np.exp(-np.sum((X - top) ** 2, axis=1) / 18)
        top = K @ X / K.sum()
    result = certify(psi, np.vstack([top, top + 5.0]))
    assert names(result) == ["PROVED_MINIMUM", "NOT_A_MINIMUM"]  # by the trace
    assert result.radius[0] < 1e-10
    assert names(certify(psi, top[None], eigenvalues=True)) == ["PROVED_MINIMUM"]
    assert names(certify(-psi, top[None])) == ["NOT_A_MINIMUM"]


def test_tails_are_decided_with_relative_rounding():
    psi = mc.Element(mc.Gaussian(1.0), [[0.0], [30.0]], [1.0, 1e-100])
    result = certify(psi, [[30.0], [12.0]])
    assert names(result) == ["POSITIVE_DEFINITE", "NOT_A_MINIMUM"]  # M knows only the large one
    assert result.min_eigenvalue[0] > 0.99e-100
    assert names(certify(psi, [[1e3]])) == ["UNDECIDED"]  # all kernel values are zero


@dataclass(frozen=True)
class Unrecorded(mc.Radial):
    def profile(self, u):
        return np.asarray(np.cos(np.asarray(u, dtype=float)))


def test_nothing_is_proved_without_derivatives():
    table = mc.Element(mc.Precomputed(np.eye(3)), [0, 1], [1.0, 1.0])
    assert names(certify(table, [0, 2])) == ["UNDECIDED"] * 2
    wild = mc.Element(Unrecorded(), [[0.0]], [1.0])
    assert names(certify(wild, [[0.0]])) == ["UNDECIDED"]
    with pytest.raises(mc.exceptions.DerivativeError, match="use certify"):
        weyl_test(mc.Element(mc.Gaussian() + mc.Linear(), [[0.0]], [1.0]), [[0.0]])


def test_the_edge_of_a_window_is_undecided():
    psi = mc.Element(mc.Epanechnikov(1.0), [[0.0], [0.2]], [1.0, 1.0])
    said = ["POSITIVE_DEFINITE", "UNDECIDED", "POSITIVE_DEFINITE"]
    assert names(certify(psi, [[0.1], [1.0], [1.1]])) == said
    assert names(certify(psi, [[0.1], [1.0], [1.1]], eigenvalues=False)) == said


def test_inputs_are_checked(rng):
    psi = mc.Element(mc.Gaussian(), rng.normal(size=(4, 2)), rng.normal(size=(4, 3)))
    with pytest.raises(mc.InputError, match="one point per element"):
        certify(psi, np.zeros((2, 2)))


def test_float32_and_tolerances_change_nothing(rng):
    X, a, Y = problem(rng, n=50)
    X, Y = X.astype(np.float32), Y.astype(np.float32)
    half, full = (mc.Element(mc.Gaussian(0.5), X.astype(t), a) for t in (np.float32, np.float64))
    expected = certify(full, Y.astype(np.float64))
    with mc.options(tolerance=1e-3):
        result = certify(half, Y)
    assert names(result) == names(expected)
    assert_allclose(result.min_eigenvalue, expected.min_eigenvalue, rtol=1e-9)


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.5), mc.Matern(2.5), mc.Polynomial(2)], ids=repr)
@pytest.mark.parametrize("d", [1, 3])
def test_certificates_in_float32_are_about_the_points_that_are_returned(kernel, d, rng):
    proved = 0
    for _ in range(15):
        X, a = rng.normal(size=(6, d)).astype(np.float32), rng.uniform(0.2, 1.0, 6)
        back = mc.preimage(mc.Element(kernel, X, a))
        assert back.points.dtype == np.float32
        x = back.points.astype(float)
        full = mc.Element(kernel, X.astype(float), a)
        assert_allclose(
            back.gradient_norm, np.linalg.norm(preimage_gradient(full, x), axis=1), rtol=1e-6
        )
        if back.certificate.verdict[0] is MINIMUM:
            proved += 1
            off = np.linalg.norm(newton(full, x, steps=4) - x)
            assert off <= back.certificate.radius[0] * (1 + 1e-6)
    assert proved > 10


def test_convexity_at_any_point():
    psi = mc.Element(mc.Gaussian(2.0), [[0.0, 0.0]], [1.0])
    r = np.array([0.0, 1.0, 1.999, 2.001, 5.0])
    assert_array_equal(certify(psi, np.column_stack([r, 0 * r])).min_eigenvalue > 0, r < 2.0)
