"""Noisy curves: shapes, noise as stated, clean points on the curve, distances, seeds."""

import pickle

import numpy as np
import pytest

import mercer as mc
from mercer import datasets

SETS = [getattr(datasets, name) for name in datasets.__all__ if name != "Sample"]
STATED = {  # points and noise of the sources
    datasets.frame: (350, 0.1),
    datasets.banana: (300, 0.2),
    datasets.spiral: (70, 0.3),
    datasets.sine: (420, 0.5),
    datasets.ring: (500, 0.1),
}


@pytest.fixture(params=SETS, ids=lambda f: f.__name__)
def make(request):
    return request.param


def clean_radius(sample):
    return np.linalg.norm(sample.clean, axis=1)


def test_defaults_are_those_of_the_sources(make):
    n, noise = STATED[make]
    default, stated = make(random_state=0), make(n, noise, random_state=0)
    assert len(default) == n
    assert default.points.shape == default.clean.shape == (n, 2)
    np.testing.assert_array_equal(default.points, stated.points)


def test_clean_points_lie_on_the_curve(make):
    sample = make(200, random_state=1)
    np.testing.assert_allclose(sample.distance(sample.clean), 0.0, atol=1e-12)
    np.testing.assert_allclose(sample.distance(sample.path()), 0.0, atol=1e-12)


def test_without_noise_points_are_clean(make):
    sample = make(50, noise=0.0, random_state=2)
    np.testing.assert_array_equal(sample.points, sample.clean)


def test_distances_are_those_to_a_dense_curve(make):
    sample = make(10, random_state=3)
    X = np.random.default_rng(4).uniform(-4.0, 7.0, size=(300, 2))
    X = np.concatenate([X, X / 5.0, sample.points, [[0.0, 0.0]]])
    dense = sample.path(8_001)
    step = np.linalg.norm(np.diff(dense, axis=0), axis=1).max()
    expected = np.array([np.linalg.norm(dense - x, axis=1).min() for x in X])
    found = sample.distance(X)
    assert (found <= expected + 1e-12).all()
    assert (found >= expected - step / 2).all()  # a point of the path is that near


def test_noise_of_the_frame_is_uniform_along_the_normal():
    sample = datasets.frame(4000, noise=0.3, random_state=0)
    moved = sample.points - sample.clean
    on_vertical = np.abs(sample.clean[:, 0]) == 1.0
    along, across = np.where(on_vertical[:, None], moved[:, ::-1], moved).T
    np.testing.assert_array_equal(along, 0.0)
    check_uniform(across, -0.3, 0.3)
    sides = np.where(on_vertical, sample.clean[:, 0], 2 * sample.clean[:, 1])
    shares = [np.mean(sides == side) for side in (-2, -1, 1, 2)]
    np.testing.assert_allclose(shares, 0.25, atol=0.03)


def test_noise_of_the_ring_is_uniform_along_the_radius():
    sample = datasets.ring(4000, noise=0.3, random_state=0)
    check_uniform(np.linalg.norm(sample.points, axis=1) - 1.0, -0.3, 0.3)


def test_noise_of_the_banana_is_normal_and_vertical():
    sample = datasets.banana(4000, noise=0.2, random_state=0)
    moved = sample.points - sample.clean
    np.testing.assert_array_equal(moved[:, 0], 0.0)
    assert abs(moved[:, 1].mean()) < 0.01
    assert abs(moved[:, 1].std() - 0.2) < 0.01
    check_uniform(sample.points[:, 0], -1.0, 1.0)


def test_noise_of_the_spiral_is_that_of_the_source():
    sample = datasets.spiral(4000, noise=0.3, random_state=0)
    t = (clean_radius(sample) - 0.15) / 0.07
    check_uniform(t, 0.0, 6 * np.pi)
    direction = np.column_stack([np.cos(t), np.sin(t)])
    xi = np.sum(sample.points * direction, axis=1) - 0.07 * t
    check_uniform(xi, 0.0, 0.3)
    np.testing.assert_allclose((0.07 * t + xi)[:, None] * direction, sample.points, atol=1e-12)


def test_noise_of_the_sine_is_that_of_the_source():
    sample = datasets.sine(4000, noise=0.5, random_state=0)
    t = sample.clean[:, 0] - 0.25
    check_uniform(t, 0.0, 2 * np.pi)
    xi = sample.points - np.column_stack([t, 0.8 * np.sin(2 * t)])
    check_uniform(xi[:, 0], 0.0, 0.5)
    check_uniform(xi[:, 1], 0.0, 0.5)


def check_uniform(x, low, high):
    """Within the range, and mean and deviation those of a uniform law (4,000 draws)."""
    assert low - 1e-12 <= x.min()
    assert x.max() <= high + 1e-12
    assert abs(x.mean() - (low + high) / 2) < 0.02 * (high - low)
    assert abs(x.std() - (high - low) / np.sqrt(12)) < 0.02 * (high - low)


def test_seeds_are_honoured(make):
    def draw(random_state):
        return make(20, random_state=random_state).points

    rng = np.random.default_rng(5)
    np.testing.assert_array_equal(draw(5), draw(5))
    np.testing.assert_array_equal(draw(5), draw(rng))
    assert not np.array_equal(draw(5), draw(rng))
    assert not np.array_equal(draw(5), draw(6))


def test_samples_survive_pickling(make):
    sample = make(5, random_state=0)
    again = pickle.loads(pickle.dumps(sample))
    np.testing.assert_array_equal(again.distance(sample.points), sample.distance(sample.points))


def test_wrong_input_is_refused(make):
    with pytest.raises(mc.InputError, match="n_samples"):
        make(0)
    with pytest.raises(mc.InputError, match="n_samples must be at most"):
        make(2**70)
    with pytest.raises(mc.InputError, match="noise must be >= 0"):
        make(5, noise=-0.1)
    with pytest.raises(mc.InputError, match="2 columns"):
        make(5).distance([[0.0, 0.0, 0.0]])


def test_the_surface_is_closed():
    public = {n for n in vars(datasets) if not n.startswith("_")}
    assert public == set(datasets.__all__)
