"""Part F of the specification: what is guaranteed about mean shift, and how it is scored."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.engine import evaluate
from mercer.methods.modes._all_modes import all_modes
from mercer.methods.modes._clustering_accuracy import clustering_accuracy
from mercer.methods.modes._convergence_bandwidth import convergence_bandwidth

seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class TwoScales(mc.Radial):
    """Completely monotone, and rho is not monotone (the profile of a counterexample)."""

    def profile(self, u):
        return np.exp(-500.0 * u) + np.exp(-0.0005 * u)


def rho(kernel, u):
    """-2 u k'' / k'."""
    jet = evaluate(kernel.program.profile, [np.asarray(u, dtype=float)], order=2)
    return -2.0 * u * jet.second[0][0] / jet.first[0]


def ascend(X, s, Y, steps=20_000):
    """Plain Gaussian mean shift on the data X, from the rows of Y, to its end."""
    for _ in range(steps):
        u = (Y**2).sum(axis=1)[:, None] + (X**2).sum(axis=1) - 2 * Y @ X.T
        W = np.exp((u.min(axis=1, keepdims=True) - u) / (2 * s * s))
        new = W @ X / W.sum(axis=1, keepdims=True)
        if np.abs(new - Y).max() < 1e-13 * np.abs(X).max():
            return new
        Y = new
    return Y


# --- F5 -------------------------------------------------------------------------------------------


def test_F5_a_point_is_a_mode_iff_the_others_pull_less_than_its_cusp(rng):
    """|R| <= eta, eta = m_j / l; every mode is found, and between points in 1-D there are none."""
    X = rng.normal(size=(40, 1)).round(1)  # with duplicates: m_j > 1
    psi = mc.mean_embedding(mc.Laplace(0.4), X)
    found = all_modes(psi)
    assert found.complete
    Z, counts = np.unique(X, axis=0, return_counts=True)
    assert counts.max() > 1
    R = np.abs(psi.gradient(Z)[:, 0])
    assert_allclose(np.sort(found.points[:, 0]), Z[counts / 40 / 0.4 >= R, 0])
    assert np.isin(found.points, X).all()


# --- F7 -------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(seeds, st.integers(1, 5), st.floats(0.1, 10.0), st.floats(0.3, 3.0))
def test_F7_formulas_of_the_paper(seed, d, c, p):
    """Gaussian 2|x|max; inverse quadratic 2|x|max sqrt((2p+1)/c); rho as stated."""
    X = np.random.default_rng(seed).normal(size=(7, d))
    largest, zero = np.linalg.norm(X, axis=1).max(), np.zeros(d)
    gaussian = convergence_bandwidth(mc.Gaussian(c), X, centre=zero)
    assert_allclose(float(gaussian), 2 * largest, rtol=1e-10)
    inverse = mc.InverseMultiquadric(c, p)
    found = convergence_bandwidth(inverse, X, centre=zero)
    assert_allclose(float(found), 2 * largest * np.sqrt((2 * p + 1) / c), rtol=1e-10)
    assert gaussian.proved
    assert found.proved
    u = np.logspace(-6.0, 3.0, 30)
    assert_allclose(rho(inverse, u), 2 * (p + 1) * u / (c + u), rtol=1e-9)


def test_F7_laplace_has_no_bandwidth():
    """rho = 1 + sqrt(u)/l > 1: infinite, in words, without an exception."""
    u = np.logspace(-8.0, 2.0, 30)
    assert_allclose(rho(mc.Laplace(2.0), u), 1 + np.sqrt(u) / 2.0, rtol=1e-9)
    found = convergence_bandwidth(mc.Laplace(2.0), [[0.0], [1.0]])
    assert (found.value, found.root, found.holds) == (np.inf, 0.0, False)
    assert "cusp" in found.reason


def test_F7_the_smallest_root():
    """rho(4 b^2) < 1 does not help; the Hessian at the critical point is singular.

    The smallest root counts.
    """
    kernel, b = TwoScales(), np.sqrt(0.034664)
    roots = np.array([0.001, 0.034664, 1000.0])
    assert_allclose(rho(kernel, roots), 1.0, atol=1e-4)
    assert_allclose(convergence_bandwidth(kernel, [[b], [-b]]).root, 0.001, rtol=1e-5)
    psi = mc.mean_embedding(kernel, [[b], [-b]])
    assert rho(kernel, np.array([4 * b * b]))[0] < 0.001
    curvature = float(psi.hessian([[0.0]])[0, 0, 0])
    assert abs(curvature) < 1e-3 * abs(float(psi.hessian([[b]])[0, 0, 0]))
    assert not convergence_bandwidth(kernel, [[b], [-b]]).holds


@given(seeds, st.integers(1, 4))
def test_F7_the_hessian_is_negative_definite_on_the_ball(seed, d):
    """|x| <= |x|max, h > h0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, d))
    h = 1.0001 * float(convergence_bandwidth(mc.Gaussian(), X, centre=np.zeros(d)))
    Y = rng.normal(size=(50, d))
    Y *= np.linalg.norm(X, axis=1).max() / np.linalg.norm(Y, axis=1, keepdims=True)
    Y *= rng.uniform(size=(50, 1)) ** (1 / d)
    psi = mc.Element(mc.Gaussian(h), X, rng.uniform(0.1, 1.0, 5))
    assert np.linalg.eigvalsh(psi.hessian(Y)).max() < 0


def test_F7_outside_of_the_ball_it_may_be_singular():
    """Outside the ball the claim fails: one point, h = 10 |x|max, at distance h."""
    psi = mc.feature(mc.Gaussian(10.0), [[1.0, 0.0]])
    H = psi.hessian([[11.0, 0.0]])[..., :, :].reshape(2, 2)
    assert abs(np.linalg.det(H)) < 1e-15
    assert convergence_bandwidth(mc.Gaussian(10.0), [[1.0, 0.0]], centre=[0.0, 0.0]).holds


def test_F7_wide_laplace_weights_count_all_points(rng):
    """For h -> inf the weights of a step tend to (1/d_i) / sum 1/d_l."""
    X = rng.normal(size=(20, 2))
    d = np.linalg.norm(X - 5.0, axis=1)
    slope = -np.asarray(evaluate(mc.Laplace(1e9).program.profile, [d**2], order=1).first[0])
    assert_allclose(slope / slope.sum(), (1 / d) / (1 / d).sum(), rtol=1e-7)


@given(seeds, st.sampled_from([mc.Gaussian(1.0), mc.Matern(1.5), mc.RationalQuadratic(2.0, 1.0)]))
@settings(max_examples=10)
def test_F7_above_it_there_is_one_mode(seed, kernel):
    """Proved from the other side: a search of the whole plane finds one mode and no other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 2))
    X *= 0.999 / convergence_bandwidth(kernel, X).factor
    assert convergence_bandwidth(kernel, X).holds
    found = all_modes(mc.Element(kernel, X, rng.uniform(0.1, 1.0, 8)))
    assert (len(found), found.complete) == (1, True)


# --- F8 -------------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(seeds)
def test_F8_one_gaussian_mode_above_the_radius(seed):
    """h > R, the radius of the smallest ball, which is at most |x|max (Lemma 1)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 2))
    radius = convergence_bandwidth(mc.Gaussian(), X).radius
    assert radius <= np.linalg.norm(X, axis=1).max() * (1 + 1e-12)
    kernel = mc.Gaussian(1.001 * radius)
    assert convergence_bandwidth(kernel, X).single_mode
    found = all_modes(mc.Element(kernel, X, rng.uniform(0.05, 1.0, 10)))
    assert (len(found), found.complete) == (1, True)


@pytest.mark.parametrize("d", [1, 3, 10])
def test_F8_all_ascents_end_at_one_place(d, rng):
    X = rng.normal(size=(30, d))
    s = 1.01 * float(np.linalg.norm(X, axis=1).max())
    assert convergence_bandwidth(mc.Gaussian(s), X).single_mode
    found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(s), X))
    assert (found.labels == 0).all()
    np.testing.assert_allclose(ascend(X, s, X), found.points[found.labels], atol=1e-9)


def test_F8_is_sharp():
    """h > |x|max, not its square. Points +-.5: singular at h = .5, 2 modes below."""
    X = [[-0.5], [0.5]]
    assert abs(mc.mean_embedding(mc.Gaussian(0.5), X).hessian([[0.0]])[0, 0, 0]) < 1e-15
    assert not convergence_bandwidth(mc.Gaussian(0.5), X).single_mode
    for s, count in ((0.499, 2), (0.501, 1)):
        found = all_modes(mc.mean_embedding(mc.Gaussian(s), X))
        assert (len(found), found.complete) == (count, True)


# --- F9 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("correct", "total", "interval"),
    [
        (183, 210, (0.8185, 0.9135)),
        (265, 272, (0.9477, 0.9896)),
        (135, 150, (0.8404, 0.9429)),
        (200, 200, (0.9817, 1.0)),
    ],
)
def test_F9_the_intervals_of_table_1(correct, total, interval):
    truth = np.arange(total) % 3
    labels = np.where(np.arange(total) < correct, 2 - truth, -1)
    found = clustering_accuracy(truth, labels)
    assert (found.correct, found.total) == (correct, total)
    assert_allclose(found.interval, interval, atol=5e-5)


@settings(max_examples=10)
@given(st.integers(1, 40), st.sampled_from([0.8, 0.95]))
def test_F9_the_interval_covers_at_least_as_often_as_it_says(total, confidence):
    """Exact: summed over all outcomes, for many success rates."""
    from scipy.stats import binom

    truth = np.zeros(total, dtype=int)
    ends = []
    for k in range(total + 1):
        labels = np.where(np.arange(total) < k, 0, -1)
        ends.append(clustering_accuracy(truth, labels, confidence=confidence).interval)
    low, high = np.array(ends).T
    for rate in np.linspace(0.02, 0.98, 25):
        covers = (low <= rate) & (rate <= high)
        assert binom.pmf(np.arange(total + 1), total, rate)[covers].sum() >= confidence - 1e-9


# --- X6 -------------------------------------------------------------------------------------------


def two_classes(rng, n=200, d=100):
    """N(1, I) and N(3, I), n/2 points each."""
    return rng.normal(size=(n, d)) + np.repeat([1.0, 3.0], n // 2)[:, None]


def test_X6_the_bandwidth_of_figure_7(rng):
    """h0 = 68.04 is what n = 200 points in 100 dimensions give: 68.15 +- .81."""
    zero = np.zeros(100)
    found = [
        float(convergence_bandwidth(mc.Gaussian(), two_classes(rng), centre=zero))
        for _ in range(80)
    ]
    assert abs(np.mean(found) - 68.15) < 0.3
    assert 0.6 < np.std(found) < 1.05
    assert abs(68.04 - np.mean(found)) < np.std(found)


def test_X6_at_that_bandwidth_everything_is_one_cluster(rng):
    """Two classes that are far apart, and a single mode: guaranteed, and of no use as clusters."""
    X = two_classes(rng)
    found = convergence_bandwidth(mc.Gaussian(), X, centre=np.zeros(100))
    at = mc.Gaussian(1.0001 * float(found))
    assert convergence_bandwidth(at, X, centre=np.zeros(100)).holds
    ends = ascend(X, at.length_scale, X)
    assert np.ptp(ends, axis=0).max() < 1e-8
    back = mc.preimage(mc.mean_embedding(at, X), mc.FixedPoint(tol=1e-10), start=X[:1])
    assert_allclose(back.points[0], ends[0], atol=1e-6)
    narrow = ascend(X, 6.0, X)
    assert len(np.unique(narrow.round(3), axis=0)) == 2
    assert (
        clustering_accuracy(np.repeat([0, 1], 100), (narrow[:, 0] > 2).astype(int)).correct == 200
    )
