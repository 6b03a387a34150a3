"""Losses on wrong and extreme input."""

import numpy as np
import pytest

import mercer as mc
from mercer.methods import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    LogisticLoss,
    SquaredMarginLoss,
    SquareLoss,
)

LOSSES = [AbsoluteLoss(), EpsilonInsensitiveLoss(0.1), HingeLoss(), LogisticLoss(), SquareLoss(),
          SquaredMarginLoss()]  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("name", ["__call__", "subgradient", "curvature", "conjugate"])
@pytest.mark.parametrize(
    ("y", "t"),
    [(["a", "b"], 1.0), (1.0, {1, 2}), (1.0, 1j), (np.ones(4), np.ones(3)), (None, 1.0)],
    ids=["text", "a set", "complex", "shapes", "None"],
)
def test_wrong_input_is_refused(loss, name, y, t):
    with pytest.raises(mc.InputError, match=r"targets|predictions"):
        getattr(loss, name)(y, t)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_that_overflow_are_infinite(loss):
    value = loss(-1.0, [1e300, 2.0])
    assert value[0] in (1e300, np.inf)
    assert np.isfinite(value[1])
    assert loss.subgradient(-1.0, [1e300]).shape == (1,)


def test_shapes_are_broadcast():
    y, t = np.array([1.0, -1.0])[:, None], np.linspace(-2.0, 2.0, 5)
    assert HingeLoss()(y, t).shape == (2, 5)
