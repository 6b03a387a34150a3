"""Awkward kernels are awkward."""

import numpy as np

import mercer as mc
from mercer.testing import awkward_kernels


def test_awkward_kernels_are_awkward():
    kernels, X = awkward_kernels(), np.random.default_rng(0).normal(size=(6, 3))
    assert len({repr(k) for k in kernels}) == len(kernels)
    assert any(np.ptp(k.diag(X)) > 0.1 for k in kernels)
    assert any(any(k.program.cusps) for k in kernels)
    assert any(k.program.kind == "mixed" for k in kernels)
    assert any(isinstance(k, mc.kernels.Normalised) for k in kernels)
    assert any(k.flags.definiteness is mc.kernels.Definiteness.UNKNOWN for k in kernels)
    assert any(hasattr(k, "profile_derivatives") for k in kernels)
    assert all(k.program.has_derivatives for k in kernels)
    assert all(np.isfinite(k.gradient(X)).all() for k in kernels)
