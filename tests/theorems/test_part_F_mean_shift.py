"""Laws of mean shift and experiments: F4 to F6 and X7 to X10 of docs/spec.md."""

from itertools import pairwise

import numpy as np
import pytest

import mercer as mc
from mercer.methods.modes._density_sum import DensitySum

CONVEX = [
    mc.Gaussian(0.7),
    mc.Laplace(0.8),
    mc.Matern(1.5, 0.8),
    mc.InverseMultiquadric(0.6, 1.5),
    mc.Epanechnikov(1.2, 1.2),
]


def walk(kernel, X, steps=40):
    """The trajectories of the library's own steps, shape (steps, n, d)."""
    density, path = DensitySum.of(mc.mean_embedding(kernel, X)), [X]
    for _ in range(steps):
        path.append(path[-1] + density.at(path[-1]).fixed_point_step)
    return np.array(path)


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


# --- F4 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", CONVEX, ids=repr)
def test_F4_the_density_never_falls(kernel, rng):
    X = rng.normal(size=(70, 2)) * 1.5
    psi = mc.mean_embedding(kernel, X)
    values = np.array([psi(Z) for Z in walk(kernel, X)])
    assert np.diff(values, axis=0).min() >= -1e-14 * values.max()
    assert (values[-1] - values[0]).max() > 1e-3 * values.max()


@pytest.mark.parametrize("kernel", CONVEX, ids=repr)
def test_F4_iterates_stay_in_the_convex_hull(kernel, rng):
    X = rng.normal(size=(50, 3))
    normals = rng.normal(size=(300, 3))
    support = (X @ normals.T).max(axis=0)
    for Z in walk(kernel, X, 15):
        assert ((Z @ normals.T).max(axis=0) <= support + 1e-12).all()


@pytest.mark.parametrize("kernel", CONVEX, ids=repr)
def test_F4_nor_does_it_fall_between_two_iterates(kernel, rng):
    """Which is why an ascent never leaves its component of a superlevel set."""
    X = rng.normal(size=(60, 2)) * 1.5
    psi, path = mc.mean_embedding(kernel, X), walk(kernel, X, 12)
    for a, b in pairwise(path):
        lowest = psi(a)
        for t in np.linspace(0.0, 1.0, 23):
            assert (psi((1 - t) * a + t * b) - lowest).min() >= -1e-13


def test_F4_limits_are_merged_into_modes(rng):
    X = np.concatenate([rng.normal(c, 0.5, (40, 2)) for c in ([0, 0], [4, 0], [0, 4])])
    found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(0.8), X))
    ends = walk(mc.Gaussian(0.8), X, 400)[-1]
    np.testing.assert_allclose(found.points[found.labels], ends, atol=1e-6)
    assert sorted(found.n_starts.tolist()) == [40, 40, 40]


# --- F5 -------------------------------------------------------------------------------------------


def test_F5_the_step_at_a_data_point(rng):
    """y+ = x_j + max(0, 1 - eta / |R|) R / sum w, by the definition; duplicates count."""
    X = np.repeat(rng.normal(size=(12, 2)), rng.integers(1, 4, 12), axis=0)
    h = 0.9
    density = DensitySum.of(mc.Element(mc.Laplace(h), X, np.ones(len(X))))
    step = density.at(X).fixed_point_step
    for j, x in enumerate(X):
        r = np.linalg.norm(X - x, axis=1)
        other = r > 0
        w = np.exp(-r[other] / h) / (h * r[other])
        R = w @ (X[other] - x)
        eta = np.sum(~other) / h
        share = max(0.0, 1.0 - eta / np.linalg.norm(R))
        np.testing.assert_allclose(step[j], share * R / w.sum(), atol=1e-12)


def test_F5_a_data_point_is_a_maximum_exactly_if_the_others_do_not_pull_it_off(rng):
    X = rng.normal(size=(40, 2))
    psi = mc.Element(mc.Laplace(0.5), X, np.ones(40))
    stays = np.linalg.norm(DensitySum.of(psi).at(X).fixed_point_step, axis=1) == 0.0
    ring = np.exp(2j * np.pi * np.arange(360) / 360)
    around = 1e-6 * np.column_stack([ring.real, ring.imag])
    for j, x in enumerate(X):
        assert stays[j] == (psi(x + around).max() <= psi(x[None])[0])
    assert 0 < stays.sum() < 40


def test_F5_the_answer_does_not_depend_on_an_epsilon(iris):
    """Modes of iris, raw, for tau = 1 / length scale."""
    expected = {0.29: 1, 0.6: 2, 1.0: 2, 2.0: 2, 2.5: 3, 6.0: 109}
    for tau, count in expected.items():
        found = mc.mean_shift(mc.mean_embedding(mc.Laplace(1.0 / tau), iris))
        assert len(found) == count, tau
        assert (found.labels >= 0).all()
    truth = np.repeat([0, 1, 2], 50)
    found = mc.mean_shift(mc.mean_embedding(mc.Laplace(1.0 / 2.5), iris))
    assert mc.methods.clustering_accuracy(truth, found.labels).correct == 140


# --- F6 -------------------------------------------------------------------------------------------


def naive_blurring(g, X, own, eps, steps):
    Z = X.copy()
    for _ in range(steps):
        D = np.sqrt(((Z[:, None] - Z) ** 2).sum(axis=2))
        D = np.maximum(D, eps) if own == "eps" else D
        with np.errstate(divide="ignore", invalid="ignore"):
            W = g(D)
        if own == "exclude":
            np.fill_diagonal(W, 0.0)
        Z = W @ Z / W.sum(axis=1, keepdims=True)
    return Z


@pytest.mark.parametrize("own", ["limit", "exclude", "eps"])
@pytest.mark.parametrize(
    ("kernel", "g"),
    [
        (mc.Gaussian(1.0), lambda r: np.exp(-(r**2) / 2)),
        (mc.Laplace(1.0), lambda r: np.exp(-r) / r),
        (mc.InverseMultiquadric(1.0, 1.0), lambda r: (1 + r**2) ** -2),
    ],
    ids=["gaussian", "laplace", "inverse quadratic"],
)
def test_F6_blurring_is_what_it_says(kernel, g, own, rng):
    X = rng.normal(size=(25, 2))
    found = mc.methods.blurring_mean_shift(kernel, X, own=own, eps=0.05, tol=1e-15, max_iter=4)
    if own == "limit" and kernel == mc.Laplace(1.0):
        np.testing.assert_array_equal(found.points, X)  # an infinite weight on itself
        return
    length = 1.0 if kernel != mc.InverseMultiquadric(1.0, 1.0) else np.sqrt(0.5)
    expected = naive_blurring(g, X, own, 0.05 * length, 4)
    np.testing.assert_allclose(found.points, expected, atol=1e-9)


def test_F6_two_points_that_exclude_themselves_swap_for_ever():
    found = mc.methods.blurring_mean_shift(
        mc.Gaussian(1.0), [[0.0], [1.0]], own="exclude", max_iter=7
    )
    assert not found.converged
    assert found.n_iter == 7
    np.testing.assert_allclose(found.points, [[1.0], [0.0]])


def test_F6_groups_contract_to_points(rng):
    X = np.concatenate([rng.normal(c, 0.4, (30, 2)) for c in ([0, 0], [6, 0])])
    found = mc.methods.blurring_mean_shift(mc.Gaussian(0.7), X)
    assert found.converged
    assert np.bincount(found.labels).tolist() == [30, 30]
    for j in (0, 1):
        assert np.ptp(found.points[found.labels == j], axis=0).max() < 1e-4


# --- X7 to X10 ------------------------------------------------------------------------------------


def test_X7_laplace_mean_shift_on_a_line(rng):
    """100 points, 50 N(1, 1) and 50 N(3, 1): all modes are data points, and fewer as tau falls."""
    X = np.concatenate([rng.normal(1, 1, 50), rng.normal(3, 1, 50)])[:, None]
    counts = []
    for tau in (20.0, 5.0, 1.0, 0.3):
        found = mc.mean_shift(mc.mean_embedding(mc.Laplace(1.0 / tau), X))
        assert np.isin(found.points, X).all()
        counts.append(len(found))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 20
    assert counts[-1] == 2  # the two middle points of an even number: between them f is convex


def test_X8_faithful_has_two_modes_but_not_at_the_published_bandwidth(faithful):
    """2 for tau in [1, 4], standardised; 1 at .175 / .602, 5 on raw data."""
    X = standardised(faithful)
    truth = faithful[:, 0] > 3.0
    for tau, correct in ((1.0, 270), (1.5, 272), (2.0, 272), (4.0, 272)):
        found = mc.mean_shift(mc.mean_embedding(mc.Laplace(1.0 / tau), X))
        assert mc.methods.clustering_accuracy(truth, found.labels).correct == correct
        ends = walk(mc.Laplace(1.0 / tau), X, 300)[-1]  # the two at tau = 1 do end there
        np.testing.assert_allclose(found.points[found.labels], ends, atol=1e-4)
    published = mc.Laplace(0.602 / 0.175)
    assert len(mc.mean_shift(mc.mean_embedding(published, X))) == 1
    assert len(mc.mean_shift(mc.mean_embedding(published, faithful))) == 5


def test_X9_accuracies(data_dir):
    """What the corrected algorithm gives beside the published counts."""
    table = np.loadtxt(data_dir / "seeds.csv", delimiter=",", skiprows=1)
    X, truth = standardised(table[:, :7]), table[:, 7]
    found = mc.mean_shift(mc.mean_embedding(mc.Laplace(1.0), X))
    assert len(found) == 3
    assert mc.methods.clustering_accuracy(truth, found.labels).correct == 180


def test_X10_weights_of_iris_are_blocks(iris):
    """Mean shift's own step at a flower, as a mean of flowers: setosa stands apart.

    The step of the library is sum_j W_ij x_j - x_i over the other flowers, so W x = x + step for
    any coordinates: in columns that number the species it gives the weight of each species.
    """
    species = np.repeat(np.eye(3), 50, axis=0)
    far = 1e-9  # columns so small that they do not change a distance
    found = mc.methods.blurring_mean_shift(
        mc.Laplace(1.0), np.hstack([iris, far * species]), own="exclude", tol=1e-15, max_iter=1
    )
    share = found.points[:, 4:] / far
    np.testing.assert_allclose(share.sum(axis=1), 1.0, atol=1e-6)
    assert share[:50, 0].min() > 0.9
    assert share[50:, 0].mean() < 0.02
