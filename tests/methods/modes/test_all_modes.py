"""all_modes: closed forms, dense search, degenerate and hard inputs, refusals."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import mercer as mc
from mercer.kernels._radial import Uniform
from mercer.methods.modes._all_modes import all_modes


@dataclass(frozen=True)
class Opaque(mc.Radial):
    """A profile that cannot be recorded, with derivatives."""

    def profile(self, u):
        return np.exp(-np.asarray(u))

    def profile_derivatives(self, u):
        return -np.exp(-u), np.exp(-u)


def gaussian_modes(X, a, s, steps=24):
    """Mean shift from a grid and the points until nothing moves, then Newton; distinct ends."""
    axes = [np.linspace(lo, hi, steps) for lo, hi in zip(X.min(axis=0), X.max(axis=0), strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, X.shape[1])
    Y = np.concatenate([X, grid])
    for i in range(1500):
        u = ((Y[:, None] - X) ** 2).sum(axis=2) / (2 * s * s)
        W = a * np.exp(u.min(axis=1, keepdims=True) - u)
        Y = W @ X / W.sum(axis=1, keepdims=True)
        if i % 30 == 29:
            Y = np.unique(Y.round(9), axis=0)
    psi = mc.Element(mc.Gaussian(s), X, a)
    H = psi.hessian(Y)
    Y = Y[np.linalg.eigvalsh(H)[:, -1] < 0]
    for _ in range(5):
        Y = Y - np.linalg.solve(psi.hessian(Y), psi.gradient(Y)[:, :, None])[:, :, 0]
    ends = []
    for y in Y:
        new = not any(np.abs(y - z).max() < 1e-6 for z in ends)
        if new and np.linalg.eigvalsh(psi.hessian(y[None]))[0, -1] < 0:
            ends.append(y)
    return np.array(ends)


def assert_modes(psi, found):
    """Zero gradient, negative Hessian, values, highest first."""
    psi = mc.Element(psi.kernel, np.asarray(psi.points, dtype=float), psi.coef)
    size = float(psi(psi.points).max())
    assert np.abs(psi.gradient(found.points)).max() <= 1e-11 * size
    assert_allclose(found.values, psi(found.points), rtol=1e-12)
    assert_allclose(found.eigenvalues, np.linalg.eigvalsh(psi.hessian(found.points)), rtol=1e-9)
    assert (found.eigenvalues < 0).all()
    assert (np.diff(found.values) <= 0).all()


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2), st.integers(2, 12), st.floats(0.25, 1.5))
def test_against_dense_search(seed, d, n, s):
    rng = np.random.default_rng(seed)
    X, a = rng.normal(size=(n, d)), rng.uniform(0.2, 1.0, n)
    psi = mc.Element(mc.Gaussian(s), X, a)
    found = all_modes(psi)
    assert found.complete
    assert_modes(psi, found)
    peer = gaussian_modes(X, a, s)
    assert len(found) == len(peer)
    gaps = np.abs(found.points[:, None] - peer).max(axis=2)
    assert gaps.min(axis=1).max() < 1e-7


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Matern(1.5, 0.6),
        mc.Matern(2.5, 0.6),
        mc.InverseMultiquadric(0.2, 0.5),
        mc.RationalQuadratic(1.0, 0.4),
        3.0 * mc.Gaussian(0.3) + mc.Gaussian(1.0),
        mc.Gaussian(0.4).transform(mc.Scales([1.0, 2.0])),
        mc.Gaussian(0.4).transform(mc.kernels.Matrix([[1.0, 0.5], [0.0, 1.0], [1.0, 1.0]])),
    ],
    ids=repr,
)
def test_every_smooth_radial_kernel(kernel, rng):
    """No ascent ends anywhere else."""
    psi = mc.mean_embedding(kernel, rng.normal(size=(20, 2)))
    found = all_modes(psi)
    assert found.complete
    assert_modes(psi, found)
    many = mc.Element(kernel, psi.points, np.full((20, 60), 1 / 20))
    solver = mc.FixedPoint(tol=1e-10, max_iter=2000)
    ends = mc.preimage(many, solver, start=rng.normal(size=(60, 2))).points
    ends = ends[np.linalg.eigvalsh(psi.hessian(ends))[:, -1] < -1e-6]
    assert len(ends) > 50
    assert np.abs(ends[:, None] - found.points).max(axis=2).min(axis=1).max() < 1e-4


@pytest.mark.parametrize("d", [1, 2])
def test_two_gaussians_merge_at_twice_the_deviation(d):
    X = np.zeros((2, d))
    for half, count in ((0.999, 1), (1.001, 2), (0.5, 1), (6.0, 2)):
        X[:, 0] = -half, half
        found = all_modes(mc.mean_embedding(mc.Gaussian(1.0), X))
        assert (len(found), found.complete) == (count, True)


@pytest.mark.parametrize("d", [1, 2])
def test_the_degenerate_maximum_ends_undecided(d):
    X = np.zeros((2, d))
    X[:, 0] = -1.0, 1.0
    found = all_modes(mc.mean_embedding(mc.Gaussian(1.0), X))
    assert not found.complete
    low, high = found.undecided.min(axis=(0, 1)), found.undecided.max(axis=(0, 1))
    assert (low <= 0).all()
    assert (high >= 0).all()
    assert (high - low).max() < 1e-3
    assert found.n_boxes < 100_000


def test_what_max_boxes_leaves_is_handed_over(rng):
    """Every mode of the full answer is among the modes or in a box that is left."""
    psi = mc.mean_embedding(mc.Gaussian(0.3), rng.normal(size=(60, 2)))
    every = all_modes(psi)
    assert every.complete
    for limit in (1, 50, 300, 2000):
        part = all_modes(psi, max_boxes=limit)
        assert part.n_boxes <= limit
        assert not part.complete
        for point in every.points:
            known = len(part) and np.abs(part.points - point).max(axis=1).min() < 1e-9
            low, high = part.undecided[:, 0], part.undecided[:, 1]
            assert known or ((low <= point) & (point <= high)).all(axis=1).any()


def test_a_level_leaves_out_what_is_below(rng):
    psi = mc.mean_embedding(mc.Gaussian(0.25), rng.normal(size=(80, 2)))
    every = all_modes(psi)
    assert every.complete
    level = float(np.median(every.values))
    above = all_modes(psi, level=level * 1.0001)
    assert above.complete
    assert_allclose(above.values, every.values[every.values > level * 1.0001], rtol=1e-12)
    assert above.n_boxes < every.n_boxes
    assert len(all_modes(psi, level=1.0)) == 0


def test_one_point_and_equal_points():
    for X in ([[1.0, 2.0]], [[1.0, 2.0]] * 4):
        found = all_modes(mc.mean_embedding(mc.Gaussian(0.5), X))
        assert found.complete
        assert_allclose(found.points, [[1.0, 2.0]])
        assert_allclose(found.eigenvalues, [[-4.0, -4.0]])


def test_duplicates_are_weights(rng):
    X = rng.normal(size=(20, 2))
    twice = mc.mean_embedding(mc.Gaussian(0.3), np.concatenate([X, X[:5]]))
    weighted = mc.Element(mc.Gaussian(0.3), X, np.where(np.arange(20) < 5, 2.0, 1.0) / 25)
    a, b = all_modes(twice), all_modes(weighted)
    assert_allclose(a.points, b.points, atol=1e-11)
    zero = mc.Element(mc.Gaussian(0.3), [[0.0, 0.0], [9.0, 9.0]], [1.0, 0.0])
    assert_allclose(all_modes(zero).points, [[0.0, 0.0]])


@pytest.mark.parametrize("apart", [1e-15, 1e-8, 1e-3])
def test_points_far_nearer_than_the_kernel_is_wide(apart):
    found = all_modes(mc.mean_embedding(mc.Gaussian(1.0), [[0.0, 0.0], [apart, 0.0]]))
    assert (len(found), found.complete) == (1, True)
    assert_allclose(found.points, [[apart / 2, 0.0]], atol=1e-14)


def test_points_far_apart():
    """Everything underflows between them."""
    rng = np.random.default_rng(1)
    X = 1e4 * rng.uniform(size=(30, 2))
    for kernel in (mc.Gaussian(1.0), mc.Matern(1.5, 1.0), mc.InverseMultiquadric(1.0, 2.0)):
        found = all_modes(mc.mean_embedding(kernel, X))
        assert (len(found), found.complete) == (30, True)


def test_on_a_line_and_on_a_lattice():
    X = np.c_[np.linspace(0.0, 9.0, 4), np.zeros(4)]
    assert len(all_modes(mc.mean_embedding(mc.Gaussian(1.0), X))) == 4
    grid = 3.0 * np.stack(np.meshgrid(range(4), range(4)), axis=-1).reshape(-1, 2)
    found = all_modes(mc.mean_embedding(mc.Gaussian(1.0), grid))
    assert (len(found), found.complete) == (16, True)


def test_float32_sparse_and_far_from_the_origin(rng):
    X = rng.normal(size=(30, 2)).astype(np.float32)
    found = all_modes(mc.mean_embedding(mc.Gaussian(0.4), X))
    wide = all_modes(mc.mean_embedding(mc.Gaussian(0.4), X.astype(float)))
    assert_allclose(found.points, wide.points, atol=1e-12)
    sparse = all_modes(mc.mean_embedding(mc.Gaussian(0.4), csr_array(X.astype(float))))
    assert_allclose(sparse.points, wide.points, atol=1e-12)
    moved = all_modes(mc.mean_embedding(mc.Gaussian(0.4), X.astype(float) + 2.0**20))
    assert len(moved) == len(wide)
    assert moved.complete
    assert_allclose(moved.points - 2.0**20, wide.points, atol=1e-6)


@pytest.mark.parametrize(("s", "count"), [(0.5, 2), (0.15, 3)])
def test_faithful(s, count, faithful):
    X = (faithful - faithful.mean(axis=0)) / faithful.std(axis=0)
    psi = mc.mean_embedding(mc.Gaussian(s), X)
    found = all_modes(psi)
    assert (len(found), found.complete) == (count, True)
    assert_modes(psi, found)
    assert len(gaussian_modes(X, np.full(len(X), 1.0), s, 12)) == count


# --- cusps ----------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2), st.integers(2, 14), st.floats(0.2, 2.0))
def test_laplace_modes(seed, d, n, length):
    """At points with |R| <= eta, at smooth maxima, and where ascents end nowhere else."""
    rng = np.random.default_rng(seed)
    X, a = rng.normal(size=(n, d)), rng.uniform(0.2, 1.0, n)
    psi = mc.Element(mc.Laplace(length), X, a)
    found = all_modes(psi)
    assert found.complete
    R = np.linalg.norm(psi.gradient(X), axis=1)  # without the term of the point itself
    own = (found.points[:, None] == X).all(axis=2)
    assert_allclose(np.flatnonzero(own.any(axis=0)), np.flatnonzero(a / length >= R))
    at_point = own.any(axis=1)
    assert (found.eigenvalues[at_point] == -np.inf).all()
    smooth = found.points[~at_point]
    assert d == 2 or len(smooth) == 0  # between its points the density is convex in 1-D
    if len(smooth):
        assert np.abs(psi.gradient(smooth)).max() < 1e-9
        assert np.linalg.eigvalsh(psi.hessian(smooth)).max() < 0
    many = mc.Element(psi.kernel, X, np.repeat(a[:, None], 20, axis=1))
    solver = mc.FixedPoint(max_iter=3000)
    back = mc.preimage(many, solver, start=rng.normal(size=(20, d)))
    ends = back.points[[status.name == "CONVERGED" for status in back.status]]
    if len(ends):
        assert np.abs(ends[:, None] - found.points).max(axis=2).min(axis=1).max() < 1e-3


@pytest.mark.parametrize("kernel", [mc.Matern(0.5, 0.7), 2.0 * mc.Laplace(0.5) + mc.Gaussian(0.5)])
def test_other_cusps_maps_and_levels(kernel, rng):
    X = rng.normal(size=(12, 2))
    plain = all_modes(mc.mean_embedding(kernel, X))
    mapped = all_modes(mc.mean_embedding(kernel.transform(mc.Scales([2.0, 0.5])), X * [2.0, 0.5]))
    assert plain.complete
    assert mapped.complete
    assert_allclose(mapped.points / [2.0, 0.5], plain.points, atol=1e-9)
    level = float(plain.values.max()) * 0.999
    assert len(all_modes(mc.mean_embedding(kernel, X), level=level)) >= 1


def test_a_point_that_is_just_a_mode():
    """Two Laplace bumps: the lower is a mode iff a_2 >= a_1 exp(-1); equality is left open."""
    for share, count in ((0.999, 1), (1.001, 2)):
        coef = [1.0, share * np.exp(-1.0)]
        found = all_modes(mc.Element(mc.Laplace(1.0), [[0.0], [1.0]], coef))
        assert (len(found), found.complete) == (count, True)
    found = all_modes(mc.Element(mc.Laplace(1.0), [[0.0], [1.0]], [1.0, np.exp(-1.0)]))
    assert found.complete or ((found.undecided[:, 0] <= 1.0) & (found.undecided[:, 1] >= 1.0)).any()


def test_one_cusp():
    found = all_modes(mc.mean_embedding(mc.Laplace(), [[1.0, 2.0]] * 3))
    assert found.points.tolist() == [[1.0, 2.0]]
    assert (found.eigenvalues == -np.inf).all()


@pytest.mark.parametrize(("rate", "count"), [(0.2907, 1), (2.0, 2)])
def test_faithful_with_cusps(rate, count, faithful):
    """Two modes at rates from 1 to 4, one at the published rate."""
    X = (faithful - faithful.mean(axis=0)) / faithful.std(axis=0)
    found = all_modes(mc.mean_embedding(mc.Laplace.from_rate(rate, 1.0), X))
    assert (len(found), found.complete) == (count, True)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("psi", "match"),
    [
        (mc.mean_embedding(mc.Gaussian(), np.zeros((2, 3))), "2 dimensions"),
        (mc.Element(mc.Gaussian(), [[0.0], [1.0]], [1.0, -1.0]), "coefficients >= 0"),
        (mc.Element(mc.Gaussian(), [[0.0], [1.0]], [0.0, 0.0]), "coefficients >= 0"),
        (mc.Element(mc.Gaussian(), [[0.0], [1.0]], np.eye(2)), "batch"),
        (mc.mean_embedding(mc.Linear(), [[0.0]]), "one squared distance"),
        (mc.mean_embedding(Opaque(), [[0.0], [1.0]]), "recorded"),
        (mc.Element(mc.Epanechnikov(), [[0.0], [1.0]], [1.0, 1.0]), "window"),
        (mc.Element(Uniform(), [[0.0], [1.0]], [1.0, 1.0]), "window"),
        (mc.Element(mc.NegativeDistance(2.0), [[0.0], [1.0]], [1.0, 1.0]), "positive"),
        (mc.mean_embedding(mc.Gaussian().transform(mc.Columns([0])), np.eye(2)), "direction"),
    ],
)
def test_refusals(psi, match):
    with pytest.raises(mc.InputError, match=match):
        all_modes(psi)


@pytest.mark.parametrize("bad", [{"level": -1.0}, {"tol": 0.0}, {"max_boxes": 0}])
def test_bad_settings(bad):
    with pytest.raises(mc.InputError):
        all_modes(mc.mean_embedding(mc.Gaussian(), [[0.0]]), **bad)


# --- the points that are returned are modes -----------------------------------------------------


def matern_gradient(X, a, scale, y):
    """The gradient of sum_i a_i (1 + z) exp(-z), z = sqrt(3) r / l, by its formula."""
    D = (y - X).astype(np.longdouble)
    z = np.sqrt(3 * np.sum(D * D, axis=1)) / np.longdouble(scale)
    return -(3 / np.longdouble(scale) ** 2) * ((a * np.exp(-z)) @ D)


@pytest.mark.parametrize("seed", [20, 26, 105, *range(200, 212)])
def test_modes_of_a_matern_kernel_in_the_plane_have_no_slope(seed):
    """Modes close to a point, where the third derivative of the kernel jumps."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    X, scale = rng.normal(size=(n, 2)), float(rng.uniform(0.05, 2))
    a = rng.uniform(0.1, 1, n) if seed % 2 else np.full(n, 1 / n)
    found = all_modes(mc.Element(mc.Matern(1.5, scale), X, a))
    assert found.complete
    assert (found.radius < 1e-7).all()
    steep = 3 * a.sum() / scale**2  # a bound on the Hessian
    for mode, radius in zip(found.points, found.radius, strict=True):
        slope = float(np.linalg.norm(matern_gradient(X, a, scale, mode)))
        assert slope <= steep * radius + 1e-15 * steep
        # the density is lower all around, farther than the radius
        turn = np.linspace(0, 2 * np.pi, 12, endpoint=False)
        ring = 1e-4 * scale * np.column_stack([np.cos(turn), np.sin(turn)])
        psi = mc.Element(mc.Matern(1.5, scale), X, a)
        assert (psi(mode + ring) < psi(mode[None])).all()


@pytest.mark.parametrize("unit", [1e-70, 1e-30, 1e-9, 1e8, 1e40, 1e70])
@pytest.mark.parametrize(
    "kernel",
    [mc.Gaussian, mc.Laplace, lambda s: mc.Matern(1.5, s), lambda s: mc.RationalQuadratic(1.0, s)],
    ids=["Gaussian", "Laplace", "Matern", "RationalQuadratic"],
)
def test_modes_do_not_depend_on_the_unit_of_length(kernel, unit):
    X = np.random.default_rng(1).normal(size=(8, 2))
    expected = all_modes(mc.mean_embedding(kernel(0.5), X))
    found = all_modes(mc.mean_embedding(kernel(0.5 * unit), X * unit))
    assert found.complete
    assert_allclose(found.points / unit, expected.points, rtol=1e-7, atol=1e-9)


def test_a_profile_that_rises_somewhere_is_refused():
    """A narrow bump between the distances that a scan would look at."""

    class Bump(mc.Radial):
        def profile(self, u):
            return np.exp(-u / 2) + 1e-3 * np.exp(-1e6 * (u - 2.03) ** 2)

    with pytest.raises(mc.InputError, match="decreases"):
        all_modes(mc.mean_embedding(Bump(), [[0.0], [0.5]]))
