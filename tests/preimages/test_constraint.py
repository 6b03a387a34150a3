"""Pre-images in a box, a ball or the simplex, and with coordinates that are held."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercer as mc
from mercer import Status
from mercer.preimages import gradient_bound


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 2))


def test_box_ball_and_simplex_hold(rng):
    X = rng.normal(size=(30, 3))
    psi = mc.Element(mc.Gaussian(1.0), X, rng.normal(size=(30, 9)))
    inside = mc.preimage(psi, region=mc.Box(-0.2, [0.1, 0.2, np.inf])).points
    assert (inside >= -0.2).all()
    assert (inside <= [0.1, 0.2, np.inf]).all()
    near = mc.preimage(psi, region=mc.preimages.Ball([1.0, 1.0, 1.0], 0.5)).points
    assert (np.linalg.norm(near - 1.0, axis=1) <= 0.5 + 1e-12).all()
    parts = mc.preimage(psi, region=mc.preimages.Simplex()).points
    assert_allclose(parts.sum(axis=1), 1.0, rtol=1e-12)
    assert (parts >= 0).all()


@pytest.mark.parametrize(
    "domain", [mc.Box(-0.4, 0.3), mc.preimages.Ball([0.3, 0.1], 0.6), mc.preimages.Simplex(0.8)]
)
def test_constrained_minima_beat_a_grid(domain, rng):
    X = rng.normal(size=(30, 2))
    psi = mc.Element(mc.Gaussian(1.0), X, rng.uniform(size=30))
    back = mc.preimage(psi, region=domain, n_starts=4)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 201)] * 2), axis=-1).reshape(-1, 2)
    grid = domain.project(grid, np.ones(grid.shape, dtype=bool))
    assert back.objective[0] <= (0.5 - psi(grid)).min() + 1e-9
    assert back.ok.all()


@pytest.mark.parametrize("solver", [None, mc.LBFGS(), mc.FixedPoint(), mc.Newton()], ids=repr)
def test_fixed_coordinates_are_held_and_the_rest_is_stationary(solver, rng):
    X = rng.normal(size=(30, 3))
    psi = mc.Element(mc.Gaussian(1.5), X, rng.uniform(size=(30, 2)))
    held = np.array([[0.5, np.nan, np.nan], [np.nan, np.nan, -0.25]])
    back = mc.preimage(psi, solver, fixed=held)
    known = ~np.isnan(held)
    assert_array_equal(back.points[known], held[known])
    gradient = psi.fields(back.points, order=1, paired=True).gradient
    assert (np.abs(gradient[~known]) < 1e-8 * gradient_bound(psi).max()).all()
    assert back.ok.all()


def test_everything_fixed_stays(rng):
    psi = mc.mean_embedding(mc.Gaussian(1.0), rng.normal(size=(5, 2)))
    back = mc.preimage(psi, fixed=[0.1, 0.2])
    assert_array_equal(back.points, [[0.1, 0.2]])
    assert back.status[0] is Status.CONVERGED


def test_constraints_are_checked(X):
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    with pytest.raises(mc.InputError, match="Box, Ball or Simplex"):
        mc.preimage(psi, region=(0, 1))
    with pytest.raises(mc.InputError, match="low <= high"):
        mc.Box(1.0, 0.0)
    with pytest.raises(mc.InputError, match="3 coordinates"):
        mc.preimage(psi, region=mc.preimages.Ball([0.0, 0.0, 0.0], 1.0))
    with pytest.raises(mc.InputError, match="fixed must have shape"):
        mc.preimage(psi, fixed=[1.0, np.nan, np.nan])
    with pytest.raises(mc.InputError, match="outside the ball"):
        mc.preimage(psi, region=mc.preimages.Ball([0.0, 0.0], 1.0), fixed=[2.0, np.nan])


def test_one_element_is_brought_back_for_every_row_of_fixed(X):
    psi = mc.mean_embedding(mc.Gaussian(0.5), X)
    rows = np.column_stack([X[:5, 0], np.full(5, np.nan)])
    back = mc.preimage(psi, fixed=rows)
    for j in range(5):
        alone = mc.preimage(psi, fixed=rows[j])
        assert_allclose(back.points[j], alone.points[0], atol=1e-8)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ("a", 1.0, "low must hold numbers"),
        (None, 1.0, "low must hold numbers"),
        (0.0, 1j, "high is complex"),
        ([[0.0], [0.0, 1.0]], 1.0, "low must be a rectangular array"),
        ([0.0, 0.0], [1.0], "one entry per coordinate"),
        ([[0.0]], 1.0, "one entry per coordinate"),
        (0.0, np.nan, "low <= high"),
        (1.0, 0.0, "low <= high"),
    ],
)
def test_boxes_are_checked(low, high, message):
    with pytest.raises(mc.InputError, match=message):
        mc.Box(low, high)


def test_fixed_is_checked(X):
    psi = mc.mean_embedding(mc.Gaussian(0.5), X)
    for wrong in ("a", [[1.0], [1.0, 2.0]], [None, 1.0], [1j, 1.0]):
        with pytest.raises(mc.InputError, match=r"fixed (must|is complex)"):
            mc.preimage(psi, fixed=wrong)
