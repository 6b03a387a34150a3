"""Bounds on derivatives hold everywhere, are attained where they should be, and scale."""

import math
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

import mercer as mc
from mercer.engine import Dense, LowRank, SingleFeatures, Stacked, cut
from mercer.rigor._derivative_bounds import (
    cusp_slope,
    gradient_bound,
    hessian_lipschitz,
    lipschitz,
    spectral_norms,
    upward_curvature,
)

SMOOTH = [
    mc.Gaussian(0.7),
    mc.Matern(1.5, 0.8),
    mc.Matern(2.5, 1.3),
    mc.RationalQuadratic(0.3, 0.6),
    mc.InverseMultiquadric(0.5, 2.0),
    mc.Gaussian(0.5) + 0.2 * mc.Matern(2.5, 3.0),
    mc.Gaussian(0.9) * mc.InverseMultiquadric(2.0, 0.5),
    mc.Gaussian(1.0).transform(mc.Scales([0.5, 2.0])),
    mc.Matern(1.5).transform(mc.kernels.Matrix([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])),
]
THIRD = 1.3801193  # sup |3t - t^3| exp(-t^2/2)


def one(kernel, dim=2, a=1.0):
    return mc.Element(kernel, np.zeros((1, dim)), [a])


def directional(kernel, order, h=1e-3):
    """The largest directional derivative of k(0, .) on a fine set of points and directions."""
    r = np.geomspace(1e-3, 30.0, 1200)
    best = 0.0
    for angle in np.linspace(0.0, np.pi, 7):
        for turn in np.linspace(0.0, np.pi, 7):
            x = r[:, None] * [np.cos(angle), np.sin(angle)]
            v = np.array([np.cos(turn), np.sin(turn)])
            psi = one(kernel)
            if order == 1:
                d = psi.gradient(x) @ v
            elif order == 2:
                d = np.einsum("nij,i,j->n", psi.hessian(x), v, v)
            else:
                step = h * r[:, None] * v
                d = np.einsum("nij,i,j->n", psi.hessian(x + step) - psi.hessian(x - step), v, v)
                d = d / (2 * h * r)
            best = max(best, float(np.abs(d).max()))
    return best


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_bounds_hold_and_are_nearly_attained(kernel):
    psi = one(kernel)
    near = 0.4 if "Matrix" in repr(kernel) else 0.93  # few directions are tried
    for bound, order, below in [
        (gradient_bound, 1, 0),
        (lipschitz, 2, 0),
        (hessian_lipschitz, 3, 1),
    ]:
        found = directional(kernel, order)
        assert found <= bound(psi) * (1 + 1e-5 * below + 1e-9)
        assert found >= near * bound(psi)


@pytest.mark.parametrize("s", [1e-6, 0.3, 1.0, 1e5])
def test_gaussian_constants(s):
    psi = mc.Element(mc.Gaussian(s), [[0.0], [s]], [1.0, -2.0])
    assert_allclose(gradient_bound(psi), 3.0 / (s * math.sqrt(math.e)), rtol=1e-12)
    assert_allclose(lipschitz(psi), 3.0 / s**2, rtol=1e-12)
    assert_allclose(hessian_lipschitz(psi), 3.0 * THIRD / s**3, rtol=1e-3)
    assert hessian_lipschitz(psi) >= 3.0 * THIRD / s**3
    upward = 2 * math.exp(-1.5) / s**2
    assert_allclose(upward_curvature(mc.Gaussian(s).program), upward, rtol=1e-12)


@pytest.mark.parametrize("profile", ["mixture", "matern"])
def test_third_derivative_against_its_formula(profile):
    """sup over t <= r of |12 k'' t + 8 k''' t^3| from closed forms."""
    r = np.geomspace(1e-6, 50.0, 200_001)
    u = r**2
    if profile == "mixture":  # (1 + u)^-2
        kernel = mc.InverseMultiquadric(1.0, 2.0)
        k2, k3 = 6 * (1 + u) ** -4, -24 * (1 + u) ** -5
    else:  # nu = 3/2, l = sqrt(3): (1 + r) e^-r
        kernel = mc.Matern(1.5, math.sqrt(3.0))
        k2, k3 = 0.25 * np.exp(-r) / r, -0.125 * np.exp(-r) * (1 + r) / r**3
    t = np.minimum(np.sqrt(-k2 / (2 * k3)), r)
    best = max(np.abs(12 * k2 * s + 8 * k3 * s**3).max() for s in (t, r))
    M = hessian_lipschitz(one(kernel))
    assert best <= M <= 1.002 * best


@pytest.mark.parametrize(("c", "p"), [(1.0, 0.5), (0.3, 2.0), (4.0, 1.0)])
def test_inverse_multiquadric_gradient_is_largest_where_it_should_be(c, p):
    r = math.sqrt(c / (2 * p + 1))
    expected = 2 * r * p * (c + r * r) ** (-p - 1)
    assert_allclose(gradient_bound(one(mc.InverseMultiquadric(c, p))), expected, rtol=1e-12)


def test_cusps():
    psi = mc.Element(mc.Laplace(2.0), [[0.0], [1.0]], [3.0, -1.0])
    assert_allclose(gradient_bound(psi), 2.0, rtol=1e-14)  # the limit at distance zero
    assert lipschitz(psi) == hessian_lipschitz(psi) == math.inf


@pytest.mark.parametrize(
    ("kernel", "slope"),
    [
        (mc.Laplace(0.3), 1 / 0.3),
        (2.5 * mc.Laplace(7.0), 2.5 / 7.0),
        (mc.Matern(0.5, 4.0), 0.25),
        (mc.Laplace(2.0) + mc.Gaussian(1e-3), 0.5),
        (mc.Laplace(2.0) * mc.Laplace(1.0), 1.5),
        (mc.Laplace(2.0).transform(mc.Scales([0.1])), 0.5),
        (mc.NegativeDistance(1.0), 1.0),
        (mc.NegativeDistance(0.5), math.inf),
        (mc.NegativeDistance(1.5), 0.0),
        (mc.NegativeDistance(2.0), 0.0),
        (mc.Gaussian(1.0), 0.0),
        (mc.Matern(1.5), 0.0),
        (mc.Epanechnikov(), 0.0),
        (mc.Linear(), 0.0),
        (mc.kernels.Constant(2.0), 0.0),
    ],
    ids=repr,
)
def test_cusp_slope(kernel, slope):
    assert_allclose(cusp_slope(kernel.program), slope, rtol=1e-12)


def test_cusp_slope_of_several_distances_is_unknown():
    k = mc.Laplace(1.0).transform(mc.Columns([0])) * mc.Laplace(1.0).transform(mc.Columns([1]))
    assert math.isnan(cusp_slope(k.program))


def test_negative_distances_take_the_box_of_the_points():
    X = [[0.0, 0.0], [3.0, 4.0]]
    psi = mc.Element(mc.NegativeDistance(1.5), X, [1.0, 1.0])
    assert_allclose(gradient_bound(psi), 2 * 1.5 * math.sqrt(5.0), rtol=1e-12)
    assert gradient_bound(mc.Element(mc.NegativeDistance(1.5), X[:1], [1.0])) == 0.0
    assert gradient_bound(mc.Element(mc.NegativeDistance(0.5), X, [1.0, 1.0])) == math.inf
    assert_allclose(lipschitz(mc.Element(mc.NegativeDistance(2.0), X, [1.0, 1.0])), 4.0)


def test_jumps_of_the_slope_have_no_lipschitz_constant():
    for rho in (None, 0.5):
        psi = one(mc.Epanechnikov(1.0, rho))
        assert lipschitz(psi) == hessian_lipschitz(psi) == math.inf
        assert_allclose(gradient_bound(psi), 2 * math.sqrt(rho or 1.0), rtol=1e-9)


@dataclass(frozen=True)
class Wendland(mc.Radial):
    """(1 - u)_+^4 of u: a cut where nothing jumps."""

    def profile(self, u):
        return cut(1.0 - u, (1.0 - u) ** 4)


@dataclass(frozen=True)
class Unrecorded(mc.Radial):
    """A profile that cannot be differentiated."""

    def profile(self, u):
        return np.asarray(np.cos(np.asarray(u, dtype=float)))


def test_a_smooth_cut_is_no_jump():
    assert_allclose(lipschitz(one(Wendland())), 8.0, rtol=1e-10)
    assert math.isnan(hessian_lipschitz(one(Wendland())))


def test_unknown_is_nan():
    others = [mc.Linear(), mc.Polynomial(2), mc.Gaussian(1.0) + mc.Linear(), Unrecorded()]
    for kernel in others:
        for bound in (gradient_bound, lipschitz, hessian_lipschitz):
            assert math.isnan(bound(one(kernel)))


def test_constants_and_zeros_have_no_slope():
    assert (
        gradient_bound(one(mc.kernels.Constant(3.0)))
        == lipschitz(one(mc.kernels.Constant(3.0)))
        == 0.0
    )
    assert hessian_lipschitz(one(mc.kernels.Constant(3.0))) == 0.0
    assert lipschitz(one(mc.Laplace(1.0), a=0.0)) == 0.0


def test_maps_enter_by_their_norms(rng):
    A = rng.normal(size=(3, 2))
    plain, sharp = mc.Matern(2.5, 0.7), mc.Matern(2.5, 0.7).transform(mc.kernels.Matrix(A))
    norm = np.linalg.norm(A, 2)
    for power, bound in enumerate((gradient_bound, lipschitz, hessian_lipschitz), start=1):
        assert_allclose(bound(one(sharp)), norm**power * bound(one(plain, 3)), rtol=1e-12)


def test_singular_values_of_chains():
    k = (
        mc.Gaussian()
        .transform(mc.Scales([2.0, 4.0]))
        .transform(mc.kernels.Matrix([[0.0, 1.0], [3.0, 0.0]]))
    )
    assert_allclose(spectral_norms(k.program, 2), (0.75, 0.5))
    k = mc.Gaussian().transform(mc.Columns([0]))
    assert spectral_norms(k.program, 3) == (1.0, 0.0)
    long = mc.Gaussian().transform(mc.Scales(np.full(1200, 0.5)))
    assert spectral_norms(long.program, 1200) == (2.0, 2.0)


@given(st.floats(0.01, 100.0), st.floats(0.05, 20.0))
def test_scan_agrees_with_an_optimiser(scale, alpha):
    def slope(log):
        r = math.exp(log)
        return -2 * r * 0.5 / scale**2 * (1 + r * r / (2 * alpha * scale**2)) ** (-alpha - 1)

    best = -minimize_scalar(slope, bounds=(-9.0, 12.0), method="bounded").fun
    assert_allclose(gradient_bound(one(mc.RationalQuadratic(alpha, scale))), best, rtol=1e-9)


# --- coefficients -----------------------------------------------------------------------------


def test_sizes_of_coefficients_are_exact_for_every_form(rng):
    dense = Dense(rng.normal(size=(7, 4)))
    selection = SingleFeatures(np.array([0, 3, 3, 1]), rng.normal(size=4), 5)
    low = LowRank(rng.normal(size=(6, 2)), rng.normal(size=(2, 4)))
    stacked = Stacked((dense, selection, low))
    for coef in (dense, selection, low, stacked):
        points = rng.normal(size=(coef.shape[0], 2))
        psi = mc.Element(mc.Gaussian(), points, coef, 4)
        written = np.abs(coef.tile(slice(None), slice(None))).sum(axis=0)
        assert_allclose(psi.coef.sizes, written, rtol=1e-14)


def test_one_element_gives_a_number_and_a_batch_an_array(rng):
    X, a = rng.normal(size=(5, 2)), rng.normal(size=(5, 3))
    batch = mc.Element(mc.Gaussian(), X, a)
    for bound in (gradient_bound, lipschitz, hessian_lipschitz):
        assert isinstance(bound(batch[0]), float)
        assert_allclose(bound(batch), [bound(batch[j]) for j in range(3)], rtol=1e-13)


def test_low_rank_sizes_do_not_write_out_the_coefficients(rng):
    n, b = 6_000, 10_000  # 480 MB
    low = LowRank(rng.normal(size=(n, 1)), rng.normal(size=(1, b)))
    psi = mc.Element(mc.Gaussian(), np.zeros((n, 1)), low, b)
    tracemalloc.start()
    sizes = psi.coef.sizes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6
    assert_allclose(sizes, np.abs(low.left).sum() * np.abs(low.right[0]), rtol=1e-11)


@pytest.mark.parametrize("diameter", [1e-150, 1e-80, 0.9e-75, 1.1e-75, 5e-75, 1e-74])
def test_points_that_are_as_close_as_the_shortest_lengths(diameter):
    psi = mc.Element(mc.Gaussian(1e-75), [[0.0], [diameter]], [1.0, 1.0])
    slope = np.abs(psi.gradient(psi.points)).max()
    assert slope <= gradient_bound(psi) <= 2.0 * np.exp(-0.5) / 1e-75 * (1 + 1e-9)
    growing = mc.Element(mc.NegativeDistance(2.0), [[0.0], [diameter]], [1.0, 1.0])
    assert_allclose(gradient_bound(growing), 4.0 * max(diameter, 1e-100), rtol=1e-6)
