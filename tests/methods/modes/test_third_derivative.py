"""Bounds on third derivatives of densities: against samples."""

import numpy as np
import pytest

import mercer as mc
from mercer.methods.modes._density_sum import DensitySum
from mercer.methods.modes._third_derivative import ThirdDerivatives


@pytest.mark.parametrize(
    "kernel", [mc.Gaussian(0.8), mc.Matern(2.5, 0.7), mc.InverseMultiquadric(0.5, 2.0)], ids=repr
)
@pytest.mark.parametrize("far", [0.0, 1e8])
def test_hessians_change_no_faster_than_the_bound(kernel, far, rng):
    X = rng.normal(size=(50, 2)) + far
    psi = mc.Element(kernel, X, np.ones(50))
    variation = ThirdDerivatives.of(DensitySum.of(psi)).about(X[0], 1.0)
    for r in (1e-3, 0.1, 0.6):
        step = rng.normal(size=(200, 2))
        Y = X[0] + r * step / np.linalg.norm(step, axis=1, keepdims=True)
        change = np.linalg.norm(psi.hessian(Y) - psi.hessian(X[:1]), ord=2, axis=(1, 2))
        bound = variation(r) * np.linalg.norm(Y - X[0], axis=1)
        assert (change <= bound * (1 + 1e-6) + 1e-9).all()
        assert change.max() > 0.02 * bound.max()
