"""Pre-images from distances: inversion of profiles, scaling, maps, neighbours, errors."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.engine import evaluate
from mercer.preimages._constraint import Box, Constraint
from mercer.preimages._objective import Nearest
from mercer.preimages._problem import Problem
from mercer.preimages.solvers._distances import Distances, InverseProfile, _points_from_distances

FREE = Constraint(None, None)


@dataclass(frozen=True)
class Hidden(mc.Radial):
    """A profile that cannot be recorded, so without derivatives."""

    def profile(self, u):
        return np.exp(-np.hypot(np.asarray(u, dtype=float), 0.0) / 4)


@dataclass(frozen=True)
class Wave(mc.Radial):
    """A profile that goes up and down."""

    def profile(self, u):
        return np.exp(-u) * (1 + np.exp(-((u - 4) ** 2)) * 60)


KERNELS = [
    mc.Gaussian(1.3),
    mc.Laplace(2.0),
    mc.Matern(1.5, 2.0),
    mc.Matern(2.5, 2.0),
    mc.RationalQuadratic(0.7, 1.0),
    mc.InverseMultiquadric(1.0, 0.5),
    mc.Gaussian(0.5) + 0.5 * mc.Laplace(3.0) + 1.0,
    3.0 * mc.Gaussian(2.0),
    Hidden(),
]


def points_of(solver, psi, constraint=FREE):
    if psi.batch is None:
        psi = mc.Element(psi.kernel, psi.points, psi.coef, 1)
    return solver.solve(Problem(psi, Nearest(), constraint), None).points


# --- the inverse of a profile ---------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*KERNELS, mc.Gaussian(1e-40), mc.Laplace(1e40)], ids=repr)
def test_profiles_are_inverted_to_rounding(kernel):
    inverse = InverseProfile.of(kernel)
    t = np.linspace(inverse.floor, inverse.top, 5001)[1:-1]
    u = inverse(t)
    assert_allclose(evaluate(kernel.program.profile, [u]).value, t, rtol=2e-15)
    assert (np.diff(u) < 0).all()


def test_the_closed_form_of_the_gaussian():
    t = np.geomspace(1e-14, 1.0, 1000)
    assert_allclose(
        InverseProfile.of(mc.Gaussian(0.3))(t), -2 * 0.09 * np.log(t), rtol=1e-13, atol=1e-16
    )


def test_values_out_of_range():
    inverse = InverseProfile.of(mc.Gaussian(1.0) + 1.0)
    u = inverse(np.array([5.0, 2.0, 1.0, 0.0, -3.0, 1.0 + 1e-16]))
    assert_allclose(u, [0.0, 0.0, *[np.nan] * 4])


@given(st.floats(1e-3, 1e3), st.floats(1e-6, 0.999))
def test_inverse_of_any_scale(scale, t):
    u = InverseProfile.of(mc.Laplace(scale))(np.array([t]))
    assert_allclose(np.sqrt(u), -scale * np.log(t), rtol=1e-12)


# --- scaling --------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), d=st.integers(1, 6), extra=st.integers(0, 6))
def test_true_distances_give_the_point(seed, d, extra):
    rng = np.random.default_rng(seed)
    Y, x = rng.normal(size=(4, d + 2 + extra, d)), rng.normal(size=(4, d))
    u = np.sum((Y - x[:, None]) ** 2, axis=2)
    widest = np.linalg.cond(Y - Y.mean(axis=1, keepdims=True)).max()
    assert_allclose(_points_from_distances(Y, u, 1e-12), x, atol=1e-13 * widest**2)


@pytest.mark.parametrize("neighbors", [None, 6, 100])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_features_come_back(kernel, neighbors, rng):
    X, Z = rng.normal(size=(30, 2)), rng.normal(size=(5, 2))
    psi = mc.Element(kernel, X, np.zeros((30, 5))) + mc.feature(kernel, Z)
    assert_allclose(points_of(Distances(neighbors), psi), Z, atol=1e-9)


def test_maps_of_coordinates_in_very_different_units(rng):
    A, units = np.array([[1.0, 2.0], [-1.0, 0.5]]), np.array([1e-10, 1e10])
    kernel = mc.Gaussian(2.0).transform(mc.kernels.Matrix(A / units))
    X, Z = rng.normal(size=(20, 2)) * units, rng.normal(size=(4, 2)) * units
    psi = mc.Element(kernel, X, np.zeros((20, 4))) + mc.feature(kernel, Z)
    assert_allclose(points_of(Distances(), psi) / units, Z / units, atol=1e-9)


def test_global_scaling_is_the_formula_of_the_paper(rng):
    X, s = rng.normal(size=(12, 3)), 1.5
    kernel = mc.Gaussian(s)
    psi = mc.Element(kernel, X, rng.uniform(0, 0.2, size=12))
    squared = psi.norm() ** 2 + 1.0 - 2 * psi(X)
    d2 = -2 * s**2 * np.log(1 - squared / 2)
    U, S, Vt = np.linalg.svd((X - X.mean(axis=0)).T, full_matrices=False)
    d02 = np.sum((X - X.mean(axis=0)) ** 2, axis=1)
    z = 0.5 * (Vt @ (d02 - d2)) / S
    assert_allclose(points_of(Distances(None), psi)[0], U @ z + X.mean(axis=0), rtol=1e-9)


def test_neighbours_are_the_points_with_the_largest_values(rng):
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 30.0])
    psi = mc.Element(mc.Gaussian(1.0), X, np.zeros(40)) + mc.feature(
        mc.Gaussian(1.0), [[30.2, 29.7]]
    )
    assert_allclose(points_of(Distances(8), psi), [[30.2, 29.7]], atol=1e-10)


def test_blocks_of_points_change_nothing(rng, monkeypatch):
    X, C = rng.normal(size=(100, 2)), rng.uniform(0, 0.05, size=(100, 3))
    psi = mc.Element(mc.Gaussian(1.0), X, C)
    whole = [points_of(Distances(n), psi) for n in (None, 7)]
    monkeypatch.setattr("mercer.preimages.solvers._distances._VALUES", 60)
    for n, wanted in zip((None, 7), whole, strict=True):
        assert_allclose(points_of(Distances(n), psi), wanted, rtol=1e-11, atol=1e-11)


def test_rotation_and_translation_equivariance(rng):
    X, c = rng.normal(size=(20, 3)), rng.normal(size=20) / 10
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for solver in (Distances(None), Distances(6)):
        here = points_of(solver, mc.Element(mc.Gaussian(2.0), X, c))
        there = points_of(solver, mc.Element(mc.Gaussian(2.0), X @ Q + 5.0, c))
        assert_allclose(there, here @ Q + 5.0, rtol=1e-8, atol=1e-8)


# --- maps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point_map",
    [
        mc.Scales([0.5, 4.0]),
        mc.kernels.Matrix([[1.0, 2.0], [-1.0, 0.5]]),
        mc.kernels.Matrix([[1.0, 2.0], [-1.0, 0.5], [0.3, 0.3]]),
        mc.Columns([1, 0]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("neighbors", [None, 6])
def test_maps_that_lose_nothing_are_undone(point_map, neighbors, rng):
    kernel = mc.Gaussian(2.0).transform(point_map)
    X, Z = rng.normal(size=(20, 2)), rng.normal(size=(4, 2))
    psi = mc.Element(kernel, X, np.zeros((20, 4))) + mc.feature(kernel, Z)
    assert_allclose(points_of(Distances(neighbors), psi), Z, atol=1e-9)


@pytest.mark.parametrize(
    "point_map",
    [mc.Columns([0]), mc.kernels.Matrix([[1.0, 1.0]]), mc.kernels.Matrix([[1.0, 1.0], [2.0, 2.0]])],
)
def test_maps_that_lose_coordinates_are_refused(point_map, rng):
    psi = mc.mean_embedding(mc.Gaussian().transform(point_map), rng.normal(size=(5, 2)))
    with pytest.raises(mc.InputError, match="does not see all coordinates"):
        points_of(Distances(), psi)


# --- awkward inputs -------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", [None, 1, 2, 10])
@pytest.mark.parametrize(
    "X",
    [
        [[1.0, 2.0]],
        [[1.0, 2.0]] * 4,
        [[1.0, 7.0], [2.0, 7.0], [4.0, 7.0]],
        [[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]],
    ],
    ids=["one", "equal", "constant column", "more columns than rows"],
)
def test_awkward_points(X, neighbors):
    X = np.asarray(X)
    psi = mc.Element(mc.Gaussian(), X, np.linspace(1.0, -0.5, len(X)))
    found = points_of(Distances(neighbors), psi)
    assert found.shape == (1, X.shape[1])
    assert np.isfinite(found).all()
    if neighbors == 1:
        assert_allclose(found[0], X[np.argmax(psi(X))])
    constant = np.ptp(X, axis=0) == 0
    assert_allclose(found[0, constant], X[0, constant])


@pytest.mark.parametrize("neighbors", [None, 3])
@pytest.mark.parametrize("kernel", [mc.Gaussian(0.05), mc.InverseMultiquadric()], ids=repr)
def test_what_is_too_far_to_tell_does_not_blow_up(kernel, neighbors, rng):
    """Mixed signs put values out of the range of the profile."""
    X = rng.normal(size=(30, 2))
    psi = mc.Element(kernel, X, 3.0 * rng.normal(size=(30, 20)))
    found = points_of(Distances(neighbors), psi)
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 1e6


def test_float32_points_and_constraints(rng):
    X = rng.normal(size=(10, 2)).astype(np.float32)
    psi = mc.feature(mc.Gaussian(), X.astype(np.float64))
    assert_allclose(points_of(Distances(None), psi), X, atol=1e-6)
    boxed = points_of(Distances(None), psi, Constraint(Box(0.0, 1.0), None))
    assert_allclose(boxed, np.clip(X, 0.0, 1.0), atol=1e-6)
    single = mc.mean_embedding(mc.Gaussian(), X)
    double = mc.mean_embedding(mc.Gaussian(), X.astype(np.float64))
    assert_allclose(points_of(Distances(), single), points_of(Distances(), double), atol=1e-3)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (mc.Polynomial(2), "radial"),
        (mc.Gaussian() + mc.Linear(), "radial"),
        (mc.Epanechnikov(4.0), "positive definite"),
        (mc.NegativeDistance(), "positive definite"),
        (Wave(), "decrease"),
        (mc.kernels.Constant(1.0), "radial"),
    ],
    ids=repr,
)
def test_kernels_without_an_inverse_are_refused(kernel, said, rng):
    with pytest.raises(mc.InputError, match=said):
        points_of(Distances(), mc.mean_embedding(kernel, rng.normal(size=(5, 2))))


def test_settings_are_checked():
    with pytest.raises(mc.InputError, match="neighbors"):
        Distances(0)
    with pytest.raises(mc.InputError, match="tol must be > 0"):
        Distances(tol=0.0)
