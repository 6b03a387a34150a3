"""Ascents: cusps on the line against brute force, both sides of saddles, starts that stay."""

import numpy as np
import pytest

import mercer as mc
from mercer.methods.modes._density_sum import is_top, newton_steps
from mercer.preimages._driver import State

LAPLACE = mc.Laplace(0.5)


def slope(kernel, r):
    """|dk/dr| by definition."""
    match kernel:
        case mc.Laplace(length_scale=h) | mc.Matern(nu=0.5, length_scale=h):
            return np.exp(-r / h) / h
        case mc.Gaussian(length_scale=h):
            return r / h**2 * np.exp(-(r**2) / (2 * h**2))
        case mc.kernels.Sum(left=a, right=b):
            return slope(a, r) + slope(b, r)
        case mc.kernels.Product(left=mc.kernels.Constant(value=c), right=b):
            return c * slope(b, r)
        case mc.kernels.Product(left=mc.Gaussian(length_scale=g), right=mc.Laplace(length_scale=h)):
            return (r / g**2 + 1 / h) * np.exp(-(r**2) / (2 * g**2) - r / h)
    raise NotImplementedError(kernel)


def held_points(kernel, X, a):
    """Distinct data points on the line where the pull of the others is at most the cusp's."""
    X, group = np.unique(X[:, 0], return_inverse=True)
    a = np.bincount(group, a)
    gap = X[None] - X[:, None]
    pull = np.sum(a * np.sign(gap) * slope(kernel, np.abs(gap)), axis=1)
    return X[np.abs(pull) <= a * slope(kernel, np.zeros(1))[0]]


def plain(kernel, X, a, start, n_iter=3_000):
    """Mean shift on the line with the step of Vardi and Zhang at data points, run for very long."""
    x, Z = X[:, 0], start[:, 0].copy()
    eta = slope(kernel, np.zeros(1))[0]
    for _ in range(n_iter):
        gap = x - Z[:, None]
        r = np.abs(gap)
        with np.errstate(divide="ignore", invalid="ignore"):
            w = np.where(r > 0, a * slope(kernel, r) / r, 0.0)
        R = np.sum(w * gap, axis=1)
        own = eta * np.sum(a * (r == 0), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(own > 0, np.maximum(0.0, 1.0 - own / np.abs(R)), 1.0)
            Z += np.nan_to_num(share * R / w.sum(axis=1))
    return Z


def line_modes(kernel, X, a):
    return np.sort(mc.mean_shift(mc.Element(kernel, X, a)).points[:, 0])


@pytest.mark.parametrize("seed", [3, 5, 6, 12, 14, 16, 17, 25, 27, 33, 34, 35])
def test_modes_of_a_laplace_density_on_the_line_are_the_points_that_hold(seed):
    """Between data points such a density is convex: brute force over the points is exact."""
    X = np.random.default_rng(seed).normal(size=(400, 1))
    np.testing.assert_array_equal(
        line_modes(LAPLACE, X, np.ones(400)), held_points(LAPLACE, X, np.ones(400))
    )


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Laplace(0.05),
        mc.Laplace(3.0),
        mc.Laplace(0.5) + 2.0 * mc.Laplace(0.1),
        mc.Matern(0.5, 0.3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("seed", range(2))
def test_other_cusps_weights_and_repeated_points_on_the_line(kernel, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 1))
    X[:30] = X[60:90]
    X = X.round(2) if seed % 2 else X
    a = rng.uniform(0.2, 3.0, 150)
    np.testing.assert_allclose(line_modes(kernel, X, a), held_points(kernel, X, a), atol=0)


@pytest.mark.parametrize(("gap", "far"), [(1e-7, 1.0), (1e-4, 1e3), (1e-10, 1.0)])
def test_points_that_nearly_coincide_do_not_stop_an_ascent(gap, far):
    """Steps among them are as short as their distances."""
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=60) * gap + 0.7, rng.normal(size=200), [far]])[:, None]
    a = np.concatenate([np.full(60, 1e-3), np.ones(201)])
    np.testing.assert_array_equal(line_modes(LAPLACE, X, a), held_points(LAPLACE, X, a))


@pytest.mark.parametrize("kernel", [LAPLACE, mc.Laplace(0.2), mc.Gaussian(1.0) * mc.Laplace(0.5)])
def test_labels_at_cusps_are_those_of_the_plain_iteration(kernel, rng):
    X, a = rng.normal(size=(50, 1)), rng.uniform(0.5, 2.0, 50)
    found = mc.mean_shift(mc.Element(kernel, X, a))
    ends = plain(kernel, X, a, X)
    agree = np.abs(found.points[found.labels][:, 0] - ends) < 1e-6
    assert agree.mean() == 1.0


def test_modes_of_a_laplace_density_in_the_plane_are_maxima(rng):
    X = np.concatenate([rng.normal(size=(80, 2)), rng.normal(3.0, 0.3, (20, 2))])
    X = np.concatenate([X, X[:10]])
    psi = mc.Element(mc.Laplace(0.4), X, np.ones(110))
    found = mc.mean_shift(psi)
    ring = np.exp(2j * np.pi * np.arange(90) / 90)
    ring = np.column_stack([ring.real, ring.imag])
    for t in (1e-6, 1e-4):
        around = (found.points[:, None] + t * ring).reshape(-1, 2)
        assert (psi(around).reshape(-1, 90).max(axis=1) <= psi(found.points) + 1e-10).all()
    every = mc.methods.all_modes(psi)
    assert every.complete
    assert len(every) == len(found)


# --- saddles --------------------------------------------------------------------------------------


def gaussian_limit(X, z, n_iter=400_000):
    """Two-point mean shift in extended precision: the side on which it ends."""
    x, z = np.asarray(X, np.longdouble), np.longdouble(z)
    for _ in range(n_iter):
        w = np.exp(-0.5 * (x - z) ** 2)
        z = (w @ x) / w.sum()
        if abs(z) > 0.01:
            break
    return float(np.sign(z))


@pytest.mark.parametrize("apart", [2.001, 2.0001, 2.1, 3.0])
@pytest.mark.parametrize("offset", [2e-5, 1e-4, 1e-9])
@pytest.mark.parametrize("d", [1, 3])
def test_starts_on_both_sides_of_a_saddle_part(apart, offset, d):
    X = np.zeros((2, d))
    X[:, 0] = [-apart / 2, apart / 2]
    start = np.zeros((3, d))
    start[:2, 0] = [-offset, offset]
    start[2, 0] = -0.3
    found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(1.0), X), start)
    assert len(found) == 2
    assert (np.sign(found.points[found.labels, 0]) == [-1, 1, -1]).all()


def test_the_sides_are_those_of_the_iteration_in_extended_precision():
    points = [-1.0005, 1.0005]
    sides = [gaussian_limit(points, z) for z in (-2e-5, 2e-5)]
    found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(1.0), np.c_[points]), [[-2e-5], [2e-5]])
    assert np.sign(found.points[found.labels, 0]).tolist() == sides == [-1.0, 1.0]


def test_many_starts_near_a_ridge_keep_their_sides(rng):
    """A saddle between two hills; starts share a cell of the grid that groups ends."""
    X = np.array([[-1.02, 0.0], [1.02, 0.0]])
    start = rng.normal(size=(200, 2)) * [3e-5, 0.4]
    found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(1.0), X), start)
    assert (np.sign(found.points[found.labels, 0]) == np.sign(start[:, 0])).all()


def test_newton_steps_of_singular_and_unknown_hessians():
    H = np.array([np.diag([2.0, 4.0]), np.diag([5e-324, 1.0]), [[1.0, 1.0], [1.0, 1.0 + 2e-16]],
                  np.full((2, 2), np.nan), np.diag([np.inf, 1.0]), -np.eye(2)])  # fmt: skip
    state = State(np.zeros((6, 2)), np.zeros(6), np.ones((6, 2)), H)
    steps = newton_steps(state)
    np.testing.assert_allclose(steps[0], [-0.5, -0.25])
    assert np.isinf(steps[[1, 3, 4, 5]]).any(axis=1).all()
    assert not np.isnan(steps).any()
    assert is_top(state, 1.0)[[0, 1, 3, 4, 5]].tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("kernel", [
    mc.NegativeDistance(1.0, 1e150), mc.NegativeDistance(1.0, 1e300), 1e300 * mc.Gaussian(1.0),
], ids=repr)  # fmt: skip
def test_kernels_too_wide_or_too_large_are_refused(kernel):
    density = mc.mean_embedding(kernel, [[0.0, 1.0], [1.0, 0.5], [3.0, 2.0]])
    with pytest.raises(mc.InputError, match="at most 1e150"):
        mc.mean_shift(density)
