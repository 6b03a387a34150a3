"""Bounds on third derivatives hold for closed forms, and are infinite at cusps and kinks."""

import numpy as np
import pytest

import mercer as mc
from mercer.rigor import third_derivative_bounds


def gaussian(u, s):
    k = np.exp(-u / (2 * s * s))
    return k / (4 * s**4), -k / (8 * s**6)


def rational_quadratic(u, alpha, s):
    c = 2 * alpha * s * s
    k = (1 + u / c) ** -alpha
    second = alpha * (alpha + 1) * k / (c + u) ** 2
    return second, -(alpha + 2) * second / (c + u)


def matern(u, nu, s):
    z = np.sqrt(2 * nu * u) / s
    unit = 2 * nu / s**2
    if nu == 1.5:
        return unit**2 * np.exp(-z) / (4 * z), -(unit**3) * np.exp(-z) * (1 + z) / (8 * z**3)
    return unit**2 * np.exp(-z) / 12, -(unit**3) * np.exp(-z) / (24 * z)


def laplace(u, s):
    r = np.sqrt(u)
    k = np.exp(-r / s)
    second = k * (1 / (4 * u * s * s) + 1 / (4 * r**3 * s))
    # d/dr of k'' over 2 r
    slope = -second / s + k * (-1 / (2 * r**3 * s * s) - 3 / (4 * r**4 * s))
    return second, slope / (2 * r)


CASES = [
    (mc.Gaussian(0.7), lambda u: gaussian(u, 0.7)),
    (mc.RationalQuadratic(0.6, 1.3), lambda u: rational_quadratic(u, 0.6, 1.3)),
    (mc.RationalQuadratic(40.0, 2.0), lambda u: rational_quadratic(u, 40.0, 2.0)),
    (mc.Matern(1.5, 0.8), lambda u: matern(u, 1.5, 0.8)),
    (mc.Matern(2.5, 1.2), lambda u: matern(u, 2.5, 1.2)),
    (mc.Laplace(1.1), lambda u: laplace(u, 1.1)),
    (
        mc.Gaussian(0.5) + 0.25 * mc.Matern(2.5, 2.0),
        lambda u: [
            a + 0.25 * b for a, b in zip(gaussian(u, 0.5), matern(u, 2.5, 2.0), strict=True)
        ],
    ),
]


def along_lines(second, third, t):
    """The largest third derivative over unit vectors at distance t, by a fine scan of angles."""
    s = np.linspace(0.0, 1.0, 401)[:, None] * t
    return np.abs(12 * second * s + 8 * third * s**3).max(axis=0)


@pytest.mark.parametrize(("kernel", "derivatives"), CASES, ids=[repr(k) for k, _ in CASES])
def test_no_shell_holds_a_larger_third_derivative(kernel, derivatives, rng):
    near = np.concatenate([rng.uniform(0, 4, 400), np.zeros(50)])
    far = near + 10 ** rng.uniform(-8, 0.5, 450)
    bound = third_derivative_bounds(kernel.program.profile, near, far)
    for share in np.linspace(0.0, 1.0, 41):
        t = (near + share * (far - near)).astype(np.longdouble)
        t[t == 0] = np.longdouble(1e-9) * far[t == 0]
        assert (along_lines(*derivatives(t * t), t) <= bound * (1 + 1e-15)).all()


@pytest.mark.parametrize(("kernel", "derivatives"), CASES, ids=[repr(k) for k, _ in CASES])
def test_bounds_of_thin_shells_are_tight(kernel, derivatives):
    t = np.linspace(0.2, 4.0, 200)
    bound = third_derivative_bounds(kernel.program.profile, t, t * (1 + 1e-6))
    true = along_lines(*derivatives(t * t), t)
    assert (bound <= 1.001 * true + 1e-4 * true.max()).all()


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Matern(1.5), mc.Matern(2.5)], ids=repr)
def test_shells_about_zero_have_a_bound(kernel):
    bound = third_derivative_bounds(kernel.program.profile, np.zeros(3), [1e-150, 1e-3, 0.1])
    assert np.isfinite(bound).all()


def test_cusps_kinks_and_unknown_profiles_have_none():
    cusp = third_derivative_bounds(mc.Laplace(1.0).program.profile, [0.0, 0.5], [0.1, 0.6])
    assert np.isinf(cusp[0])
    assert np.isfinite(cusp[1])
    for weight in (1.0, 1e-3, 1e-12):
        kernel = mc.Gaussian(1.0) + weight * mc.Epanechnikov(0.979**2)
        edges = np.linspace(0.0, 3.0, 601)
        bound = third_derivative_bounds(kernel.program.profile, edges[:-1], edges[1:])
        kink = (edges[:-1] < 0.979) & (edges[1:] > 0.979)
        assert (np.isinf(bound) == kink).all()
    on_edge = third_derivative_bounds(mc.Epanechnikov(1.0).program.profile, [0.5, 1.0], [1.0, 2.0])
    assert np.isinf(on_edge).all()

    class Unrecorded(mc.Radial):
        def profile(self, u):
            return np.cos(np.asarray(u, dtype=float))

    assert np.isinf(third_derivative_bounds(Unrecorded().program.profile, [0.0], [1.0])).all()


def test_a_smooth_hinge_between_two_distances_is_seen(rng):
    """log(1 + exp(c (1 - u))) / c bends sharply at u = 1, and hardly anywhere else."""

    class Hinge(mc.Radial):
        def profile(self, u):
            return np.log(1.0 + np.exp(1e5 * (1.0 - u))) / 1e5

    near, far = np.array([0.5, 0.99, 1.01]), np.array([0.99, 1.01, 1.5])
    bound = third_derivative_bounds(Hinge().program.profile, near, far)
    assert bound[1] > 8 * 1e10 / (6 * np.sqrt(3)) * 0.97  # the largest k''' is c^2 / (6 sqrt(3))
