"""convergence_bandwidth: closed forms, the Hessian itself, words, maps and refusals."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer as mc
from mercer.kernels._radial import Uniform
from mercer.methods.modes._convergence_bandwidth import convergence_bandwidth

PAIR = np.array([[-1.0, 0.0], [1.0, 0.0]])  # R = 1
GOLDEN = (1 + np.sqrt(5)) / 2


@dataclass(frozen=True)
class TwoScales(mc.Radial):
    """The counterexample: rho = 1 at .001, .034664 and 1000."""

    def profile(self, u):
        return np.exp(-500.0 * u) + np.exp(-0.0005 * u)


@dataclass(frozen=True)
class Narrow(mc.Radial):
    """rho reaches 1 on a short interval next to u = 1 only, before it does for good."""

    def profile(self, u):
        return np.exp(-0.01 * u) + 1e-9 * np.exp(-1e7 * (u - 1.0) ** 2)


@dataclass(frozen=True)
class Silent(mc.Radial):
    """A profile of a function that cannot be recorded, without derivatives."""

    def profile(self, u):
        return np.frompyfunc(lambda v: float(np.exp(-v)), 1, 1)(u).astype(float)


@pytest.mark.parametrize(
    ("kernel", "factor"),
    [
        (mc.Gaussian(3.0), 2.0 / 3.0),
        (mc.InverseMultiquadric(2.0, 1.5), 2.0 * np.sqrt(4.0 / 2.0)),
        (mc.RationalQuadratic(1.0, 1.0), 2.0 * np.sqrt(3.0 / 2.0)),
        (mc.Matern(1.5, 1.0), 2.0 * np.sqrt(3.0)),  # rho = z = sqrt(3 u)
        (mc.Matern(2.5, 1.0), 2.0 * np.sqrt(5.0) / GOLDEN),  # rho = z^2 / (1 + z)
        (mc.Epanechnikov(5.0), 2.0 / np.sqrt(5.0)),
        (mc.Epanechnikov(5.0, 2.0), 2.0 / np.sqrt(2.0)),
        (mc.Gaussian(1.0) * mc.Gaussian(2.0), 2.0 * np.sqrt(1.25)),
        (3.0 * mc.Gaussian(2.0) + 1.0, 1.0),
        (TwoScales(), 2.0 / np.sqrt(0.001)),
    ],
    ids=repr,
)
def test_closed_forms(kernel, factor):
    found = convergence_bandwidth(kernel, PAIR)
    assert_allclose(found.factor, factor, rtol=2e-6)
    assert found.holds == (factor < 1 - 1e-9)
    assert found.proved
    scale = getattr(kernel, "length_scale", 1.0)
    assert_allclose(float(found), factor * scale, rtol=2e-6)


def test_smallest_root_to_the_digits_of_bisection():
    for s in (1e-3, 1.0, 1e4):
        assert_allclose(convergence_bandwidth(mc.Gaussian(s), PAIR).root, s**2, rtol=1e-13)


def test_a_root_between_two_values_of_the_scan_is_found_by_the_proof():
    """Intervals see what sampling misses."""
    found = convergence_bandwidth(Narrow(), PAIR)
    assert 0.99 < found.root < 1.0
    assert not found.holds
    assert convergence_bandwidth(mc.Gaussian.from_gamma(0.01), PAIR).root > 49.0


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Laplace(1.0),
        mc.Laplace(1e6),
        2.0 * mc.Laplace(),
        mc.Laplace() + mc.Gaussian(),
        mc.Matern(0.5),
        mc.NegativeDistance(1.0),
    ],
    ids=repr,
)
def test_cusps_have_no_bandwidth(kernel):
    found = convergence_bandwidth(kernel, PAIR)
    assert found.value == np.inf
    assert not found.holds
    assert not found.single_mode
    assert "cusp" in found.reason


@pytest.mark.parametrize("p", [1.5, 2.0])
def test_no_root(p):
    """-|x - y|^p is concave for p > 1: rho = 2 - p everywhere."""
    found = convergence_bandwidth(mc.NegativeDistance(p), 1e3 * PAIR)
    assert (found.value, found.root, found.holds) == (0.0, np.inf, True)


@settings(max_examples=15)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([mc.Gaussian(1.0), mc.Matern(2.5), mc.InverseMultiquadric(1.0, 0.7)]),
)
def test_the_hessian_is_negative_definite_where_it_holds(seed, kernel):
    """On the ball; and for two points just below the bound it is not, somewhere in it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 2))
    factor = convergence_bandwidth(kernel, X).factor
    psi = mc.Element(kernel, X / factor * 0.999, rng.uniform(0.1, 1.0, 6))
    found = convergence_bandwidth(kernel, psi.points)
    assert found.holds
    t, r = rng.uniform(0, 2 * np.pi, 200), found.radius * np.sqrt(rng.uniform(0, 1, 200))
    Y = found.centre + np.c_[r * np.cos(t), r * np.sin(t)]
    assert np.linalg.eigvalsh(psi.hessian(Y)).max() < 0
    edge = mc.feature(kernel, PAIR[:1] / convergence_bandwidth(kernel, PAIR).factor * 1.001)
    at = -edge.points
    assert not convergence_bandwidth(kernel, np.concatenate([edge.points, at])).holds
    assert np.linalg.eigvalsh(edge.hessian(at)).max() > 0


def test_does_not_depend_on_the_origin_unless_asked(rng):
    X = rng.normal(size=(50, 3))
    a, b = (convergence_bandwidth(mc.Gaussian(), Y) for Y in (X, X + 100.0))
    assert_allclose(a.value, b.value, rtol=1e-11)
    paper = convergence_bandwidth(mc.Gaussian(), X + 100.0, centre=np.zeros(3))
    assert_allclose(paper.value, 2 * np.linalg.norm(X + 100.0, axis=1).max(), rtol=1e-12)
    assert a.value <= convergence_bandwidth(mc.Gaussian(), X, centre=np.zeros(3)).value


def test_linear_maps(rng):
    X, A = rng.normal(size=(30, 2)), np.array([[1.0, 0.5], [0.0, 2.0], [1.0, 1.0]])
    for step, Z in ((mc.Scales([2.0, 0.5]), X / [2.0, 0.5]), (mc.kernels.Matrix(A), X @ A.T)):
        found = convergence_bandwidth(mc.Gaussian(2.0).transform(step), X)
        assert_allclose(found.value, convergence_bandwidth(mc.Gaussian(2.0), Z).value, rtol=1e-12)
        at = convergence_bandwidth(mc.Gaussian(2.0).transform(step), X, centre=[0.0, 0.0])
        assert_allclose(at.radius, np.linalg.norm(Z, axis=1).max(), rtol=1e-12)


def test_words():
    assert "guaranteed" in convergence_bandwidth(mc.Gaussian(3.0), PAIR).reason
    assert "radius" in convergence_bandwidth(mc.Gaussian(1.5), PAIR).reason
    assert "several modes" in convergence_bandwidth(mc.Gaussian(0.5), PAIR).reason
    assert "stretched" in convergence_bandwidth(mc.InverseMultiquadric(), PAIR).reason


def test_gaussian_between_once_and_twice_the_radius():
    found = [convergence_bandwidth(mc.Gaussian(s), PAIR) for s in (0.9, 1.1, 1.9, 2.1)]
    assert [f.holds for f in found] == [False, False, False, True]
    assert [f.single_mode for f in found] == [False, True, True, True]
    assert not convergence_bandwidth(mc.Gaussian(2.0), PAIR).holds  # strictly above


@pytest.mark.parametrize("kernel", [mc.Gaussian(), mc.Laplace()], ids=repr)
def test_equal_points_have_one_mode(kernel):
    for X in ([[3.0, 4.0]], [[3.0, 4.0]] * 4):
        found = convergence_bandwidth(kernel, X)
        assert (found.value, found.holds, found.radius) == (0.0, True, 0.0)
        assert "equal" in found.reason


def test_float32_and_many_points(rng):
    X = rng.normal(size=(100_000, 2)).astype(np.float32)
    assert 7.0 < convergence_bandwidth(mc.Gaussian(), X).value < 12.0


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (mc.Linear(), "one squared distance"),
        (mc.kernels.Constant(2.0), "one squared distance"),
        (mc.Gaussian() + mc.Gaussian().transform(mc.Columns([0])), "one squared distance"),
        (Uniform(1.0), "shadow"),
        (Silent(), "profile_derivatives"),
    ],
    ids=repr,
)
def test_refusals(kernel, match):
    with pytest.raises(mc.InputError, match=match):
        convergence_bandwidth(kernel, PAIR)


def test_bad_centres_and_points():
    for X, centre in ((PAIR, [0.0]), (PAIR, [0.0, np.nan]), ([[np.inf, 0.0]], None)):
        with pytest.raises(mc.InputError):
            convergence_bandwidth(mc.Gaussian(), X, centre=centre)


def modes_on_a_line(kernel, X):
    """Local maxima of the density on a fine grid: brute force."""
    t = np.linspace(X.min() - 0.1, X.max() + 0.1, 200_001)
    f = sum(kernel(t[:, None], x[None])[:, 0] for x in X)
    return int(np.count_nonzero((f[1:-1] > f[:-2]) & (f[1:-1] >= f[2:])))


@pytest.mark.sample(2)
@pytest.mark.parametrize("weight", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("c", [0.25, 0.5, 0.7])
@pytest.mark.parametrize("half", [0.2, 0.3, 0.45, 0.49])
def test_a_kink_ends_the_guarantee(weight, c, half):
    """A window under a smooth kernel: concave only up to its edge, where modes appear."""
    kernel, X = mc.Gaussian(1.0) + weight * mc.Epanechnikov(c), np.array([[-half], [half]])
    found = mc.convergence_bandwidth(kernel, X)
    assert found.proved
    assert found.root == pytest.approx(c, rel=1e-8)
    assert found.holds == (4 * half**2 < c)
    if found.single_mode:
        assert modes_on_a_line(kernel, X) == 1


def test_two_modes_are_not_called_one():
    kernel, X = mc.Gaussian(1.0) + mc.Epanechnikov(0.25), np.array([[-0.45], [0.45]])
    assert modes_on_a_line(kernel, X) > 1
    found = mc.convergence_bandwidth(kernel, X)
    assert not found.holds
    assert not found.single_mode


def test_nothing_holds_without_a_proof():
    class Unrecorded(mc.Radial):
        def profile(self, u):
            return np.exp(-np.asarray(u, dtype=float) / 2)

        def profile_derivatives(self, u):
            k = np.exp(-np.asarray(u, dtype=float) / 2)
            return -k / 2, k / 4

    found = mc.convergence_bandwidth(Unrecorded(), [[-0.1], [0.1]])
    assert not found.proved
    assert not found.holds
    assert not found.single_mode
    assert "could not be proved" in found.reason


@pytest.mark.parametrize("share", [1 - 1e-7, 1 - 1e-12, 1.0, 1 + 1e-7])
def test_close_to_the_root_only_what_is_proved_holds(share):
    found = mc.convergence_bandwidth(mc.Gaussian(1.0), [[-0.5 * share], [0.5 * share]])
    assert found.holds == (share < 1 - 1e-8)
