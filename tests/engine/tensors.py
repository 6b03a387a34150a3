"""Array libraries and kernels that the tests of tensors run over."""

import importlib.util

import array_api_strict
import numpy as np
import pytest

import mercer as mc
from mercer.kernels import AdditiveChiSquare, ArcCosine, Cosine, Geometric, Minimum

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "array_api_compat"))


def tensor_of(library):
    """The function that makes a tensor of a NumPy array."""
    if library == "strict":
        return array_api_strict.asarray
    import torch

    torch.set_num_threads(1)
    return lambda array: torch.tensor(np.asarray(array))


def numbers(a):
    """The numbers of a tensor, or of an array."""
    return np.asarray(a.detach().numpy() if hasattr(a, "detach") else a)


needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
LIBRARIES = ["strict", pytest.param("torch", marks=needs_torch)]

RADIAL = [
    mc.Gaussian(1.3),
    mc.Laplace(1.0),
    mc.Matern(1.5),
    mc.Matern(2.5, 0.8),
    mc.RationalQuadratic(0.7),
    mc.InverseMultiquadric(1.0, 0.5),
    mc.Epanechnikov(2.0),
    mc.NegativeDistance(),
]
DOT = [
    mc.Linear(),
    mc.Polynomial(3),
    mc.kernels.Exponential(2.0),
    Geometric(40.0),
    mc.kernels.Sigmoid(),
    ArcCosine(1),
    Cosine(),
]
COMPOSITE = [
    mc.Gaussian(1.0) * mc.Linear() + 2.0 * mc.Laplace(1.0),
    mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0, 0.5, 3.0])),
    mc.Linear().transform(mc.kernels.Matrix([[1.0, 0.5, 0.0, 2.0]])) + 1.0,
    mc.kernels.Normalised(mc.Polynomial(2) + mc.Epanechnikov(2.0)),  # k(x, x) has a constant part
    mc.Matern(1.5).transform(mc.Columns([0])) * mc.Gaussian(1.0).transform(mc.Columns([1, 3])),
]
SMOOTHLY_MEASURED = RADIAL + DOT + COMPOSITE
ON_HISTOGRAMS = [Minimum(), AdditiveChiSquare()]


def data(dtype=np.float64):
    """Points, queries (some of them points), and coefficients of three elements."""
    rng = np.random.default_rng(3)
    X, Y, A = rng.normal(size=(14, 4)), rng.normal(size=(9, 4)), rng.normal(size=(14, 3))
    Y[:3] = X[:3]
    return X.astype(dtype), Y.astype(dtype), A.astype(dtype)
