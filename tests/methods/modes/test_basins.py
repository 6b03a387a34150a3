"""Basins: no start in one ends elsewhere; maxima that are proved."""

import numpy as np
import pytest

import mercer as mc
from mercer.methods.modes._ascent import Ascent
from mercer.methods.modes._basins import Basins, _directions, is_proved_maximum
from mercer.methods.modes._density_sum import DensitySum
from tests.methods.modes.test_mean_shift import GAUSS, SMOOTH, plain, spread


def listed(basins):
    return list(zip(basins.modes, basins.radius, basins.level, strict=True))


def found_about(density, modes, most_samples=1000):
    basins = Basins(density)
    basins.search(modes, most_samples)
    return listed(basins)


@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_a_proved_basin_holds_no_other_end(kernel, d, rng):
    """Random points of each basin, by the plain iteration."""
    X = spread(rng, 60, d)
    ascent = Ascent(DensitySum.of(mc.mean_embedding(kernel, X)), 1e-6, 1000)
    ascent.look_for_modes(X)
    psi = mc.mean_embedding(kernel, X)
    assert len(ascent.basins.modes)
    for mode, radius, level in listed(ascent.basins):
        Y = rng.normal(size=(40, d))
        Y *= radius * rng.uniform(0, 1, (40, 1)) / np.linalg.norm(Y, axis=1, keepdims=True)
        Y += mode
        Y = Y[psi(Y) > level][:8]
        ends = plain(kernel, X, Y)
        np.testing.assert_allclose(ends, np.broadcast_to(mode, ends.shape), atol=1e-6)


def test_shells_reach_farther_than_the_ball(rng):
    X = rng.normal(size=(400, 2))
    density = DensitySum.of(mc.mean_embedding(GAUSS, X))
    ascent = Ascent(density, 1e-6, 1000)
    ascent.look_for_modes(X[:50])
    ((mode, radius, level),) = zip(
        ascent.basins.modes, ascent.basins.radius, ascent.basins.level, strict=True
    )
    ((_, ball_radius, ball_level),) = found_about(density, mode[None], most_samples=0)
    assert radius > 3.0 * ball_radius
    assert level < ball_level


def test_nothing_is_proved_at_a_saddle_or_a_degenerate_maximum():
    two = DensitySum.of(mc.mean_embedding(GAUSS, [[-1.5], [1.5]]))
    assert found_about(two, np.zeros((1, 1))) == []
    merging = DensitySum.of(mc.mean_embedding(GAUSS, [[-1.0], [1.0]]))  # f'' = 0 at the maximum
    assert found_about(merging, np.zeros((1, 1))) == []


def test_a_kink_or_a_cusp_is_not_smoothed_over(rng):
    X = rng.normal(size=(30, 2))
    window = DensitySum.of(mc.mean_embedding(mc.Epanechnikov(1.0, 1.0), X))
    edge = X[:1] + np.array([[1.0, 0.0]])  # at the edge of the window of a point
    assert found_about(window, edge) == []
    cusp = DensitySum.of(mc.mean_embedding(mc.Laplace(1.0), X))
    assert found_about(cusp, X[:3]) == []


@pytest.mark.parametrize("d", [2, 3, 4])
def test_directions_cover_the_sphere(d, rng):
    rays, chord = _directions(d, 6)
    Y = rng.normal(size=(2000, d))
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    gaps = np.linalg.norm(Y[:, None] - rays, axis=2).min(axis=1)
    assert 0.3 * chord < gaps.max() <= chord


def test_no_basins_hold_nothing():
    density = DensitySum.of(mc.mean_embedding(GAUSS, [[0.0, 0.0]]))
    assert Basins(density).holding(np.zeros((3, 2)), np.ones(3)).tolist() == [-1, -1, -1]


# --- kinks ----------------------------------------------------------------------------------------


def kinked(rho, weight):
    """A Gaussian and a small window: the second derivative jumps at distance sqrt(rho)."""
    return mc.Gaussian(1.0) + weight * mc.Epanechnikov(rho)


def kinked_ends(rho, weight, X, start, n_iter=40_000):
    """Mean shift on the line by definition, run for very long."""
    Z = start.copy()
    for _ in range(n_iter):
        u = (X - Z[:, None]) ** 2
        w = 0.5 * np.exp(-0.5 * u) + weight * (u < rho)
        Z = (w @ X) / w.sum(axis=1)
    return Z


def test_a_small_kink_is_not_overlooked():
    X, rho, weight = np.array([-0.98, 0.98]), 0.979**2, 0.00136
    start = np.array([0.0072, -0.0072, 0.02, 5e-4, 0.3])
    found = mc.mean_shift(mc.mean_embedding(kinked(rho, weight), X[:, None]), start[:, None])
    ends = kinked_ends(rho, weight, X, start)
    assert ends[0] == pytest.approx(0.0506, abs=1e-4)
    sure = found.status == mc.Status.IN_BASIN
    np.testing.assert_allclose(found.points[found.labels, 0][sure], ends[sure], atol=1e-5)
    np.testing.assert_allclose(found.points[found.labels, 0], ends, atol=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_no_label_from_a_basin_is_wrong_near_kinks(seed):
    rng = np.random.default_rng(seed)
    half, gap, weight = rng.uniform(0.9, 1.0), 10.0 ** rng.uniform(-4, -1), rng.uniform(0, 0.01)
    X, rho = np.array([-half, half]), (half - gap) ** 2
    start = rng.uniform(-0.1, 0.1, 8)
    found = mc.mean_shift(mc.mean_embedding(kinked(rho, weight), X[:, None]), start[:, None])
    ends = kinked_ends(rho, weight, X, start)
    sure = found.status == mc.Status.IN_BASIN
    np.testing.assert_allclose(found.points[found.labels, 0][sure], ends[sure], atol=1e-4)


# --- proofs ---------------------------------------------------------------------------------------


def test_maxima_are_proved_and_nothing_else(rng):
    for kernel in (*SMOOTH, mc.Laplace(0.6)):
        X = spread(rng, 40, 2)
        found = mc.mean_shift(mc.mean_embedding(kernel, X))
        density = DensitySum.of(mc.mean_embedding(kernel, X))
        smooth = ~np.isneginf(found.eigenvalues[:, 0]) & (kernel == mc.Laplace(0.6))
        assert is_proved_maximum(density, found.points)[~smooth].all()
        others = found.points + 0.01
        assert not is_proved_maximum(density, others).any()
    saddle = DensitySum.of(mc.mean_embedding(GAUSS, [[-1.5], [1.5]]))
    assert not is_proved_maximum(saddle, np.zeros((1, 1))).any()


def test_a_maximum_below_rounding_is_not_proved():
    """Two Gaussians so near to twice the length scale that the Hessian is rounding."""
    half = 1.0 - 1e-14
    density = DensitySum.of(mc.mean_embedding(GAUSS, [[-half], [half]]))
    assert not is_proved_maximum(density, np.zeros((1, 1))).any()
