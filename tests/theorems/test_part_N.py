"""Laws of losses: N1 of docs/spec.md."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercer as mc
from mercer.methods import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    LogisticLoss,
    SquaredMarginLoss,
    SquareLoss,
    ZeroOneLoss,
)

CONVEX = [
    SquareLoss(),
    AbsoluteLoss(),
    EpsilonInsensitiveLoss(0.3),
    SquaredMarginLoss(),
    HingeLoss(),
    LogisticLoss(),
]
GRID = np.linspace(-6.0, 6.0, 241)  # has 0, -1, 1 and 0.3 above and below the targets


def targets(loss):
    return [1.0, -1.0] if loss.classifies else [-1.0, 0.0, 2.0]


def test_N1_values():
    y, t = np.array([1.0, -1.0, 1.0]), np.array([0.5, 3.0, -2.0])
    assert_array_equal(SquareLoss()(y, t), (y - t) ** 2)
    assert_array_equal(AbsoluteLoss()(y, t), np.abs(y - t))
    assert_array_equal(EpsilonInsensitiveLoss(1.0)(y, t), [0.0, 3.0, 2.0])
    assert_array_equal(ZeroOneLoss()(y, t), [0.0, 1.0, 1.0])
    assert_array_equal(SquaredMarginLoss()(y, t), (1.0 - y * t) ** 2)
    assert_array_equal(HingeLoss()(y, t), [0.5, 4.0, 3.0])
    assert_allclose(LogisticLoss()(y, t), np.log(1.0 + np.exp(-y * t)))


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_N1_subgradients_are_slopes_of_lines_below(loss):
    for y in targets(loss):
        g = loss.subgradient(y, GRID)
        lines = loss(y, GRID)[:, None] + g[:, None] * (GRID[None, :] - GRID[:, None])
        assert np.all(loss(y, GRID)[None, :] >= lines - 1e-12)


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_N1_subgradients_are_derivatives_between_kinks(loss):
    t, step = GRID[:-1] + 0.37 * (GRID[1] - GRID[0]), 1e-6
    for y in targets(loss):
        slope = (loss(y, t + step) - loss(y, t - step)) / (2.0 * step)
        assert_allclose(loss.subgradient(y, t), slope, atol=1e-7)
        bend = (loss.subgradient(y, t + step) - loss.subgradient(y, t - step)) / (2.0 * step)
        assert_allclose(loss.curvature(y, t), bend, atol=1e-7)


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_N1_conjugates_satisfy_fenchel_young(loss):
    """s t <= l(t) + l*(s), with equality at a subgradient."""
    s = np.linspace(-2.0, 2.0, 81)
    for y in targets(loss):
        total = loss(y, GRID)[:, None] + loss.conjugate(y, s)[None, :]
        assert np.all(total >= np.outer(GRID, s) - 1e-12)
        g = loss.subgradient(y, GRID)
        assert_allclose(loss(y, GRID) + loss.conjugate(y, g), GRID * g, atol=1e-9)


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_N1_conjugates_are_suprema(loss):
    """Where the supremum over a long grid is attained inside, it is the conjugate."""
    t = np.linspace(-60.0, 60.0, 120_001)
    for y in targets(loss):
        for s in (-0.9, -0.25, 0.0, 0.25, 0.9):
            values = s * t - loss(y, t)
            found = loss.conjugate(y, s)
            at = int(np.argmax(values))
            if 0 < at < len(t) - 1:
                assert found == pytest.approx(values[at], abs=1e-5)
            else:
                assert found == np.inf or found - values[at] < 1e-9


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_N1_the_constants_bound_and_are_attained(loss):
    t = np.linspace(-60.0, 60.0, 12_001)
    for y in targets(loss):
        slopes = np.abs(np.diff(loss(y, t)) / np.diff(t))
        if np.isfinite(loss.lipschitz):
            assert slopes.max() == pytest.approx(loss.lipschitz, rel=1e-9)
        else:
            assert slopes.max() > 100.0
        bends = np.abs(np.diff(loss.subgradient(y, t)) / np.diff(t))
        if np.isfinite(loss.smoothness):
            assert bends.max() == pytest.approx(loss.smoothness, rel=1e-4)
        else:
            assert bends.max() > 50.0  # one over the step: a jump


def test_N1_squares_of_errors_and_of_margins_agree_on_labels():
    for y in (1.0, -1.0):
        assert_allclose(SquareLoss()(y, GRID), SquaredMarginLoss()(y, GRID), atol=1e-12)


def test_N1_the_convex_losses_bound_the_zero_one_loss():
    for y in (1.0, -1.0):
        wrong = ZeroOneLoss()(y, GRID)
        assert np.all(HingeLoss()(y, GRID) >= wrong)
        assert np.all(SquaredMarginLoss()(y, GRID) >= wrong)
        assert np.all(LogisticLoss()(y, GRID) / np.log(2.0) >= wrong)


def test_N1_the_zero_one_loss_is_not_convex():
    loss = ZeroOneLoss()
    assert not loss.convex
    middle = loss(1.0, 0.0)  # between 1 and -1
    assert middle > 0.5 * (loss(1.0, 1.0) + loss(1.0, -1.0))
    for method in (loss.subgradient, loss.curvature, loss.conjugate):
        with pytest.raises(mc.InputError, match="not convex"):
            method(1.0, 0.5)


def test_N1_extreme_margins_are_exact():
    loss = LogisticLoss()
    assert_array_equal(loss(1, [1e6, -1e6]), [0.0, 1e6])
    assert_array_equal(loss.subgradient(-1, [1e6, -1e6]), [1.0, 0.0])
    assert_allclose(loss(1, 40.0), np.exp(-40.0), rtol=1e-12)
    assert_array_equal(loss.conjugate(1, [-1.0, 0.0, 0.1, -1.1]), [0.0, 0.0, np.inf, np.inf])


def test_N1_labels_other_than_one_and_minus_one_are_refused():
    with pytest.raises(mc.InputError, match="1 or -1"):
        HingeLoss()([0.0, 1.0], [0.0, 0.0])
    with pytest.raises(mc.InputError, match="epsilon"):
        EpsilonInsensitiveLoss(-1.0)
