"""Kernel names: the words for kernels in estimators and on the command line."""

from __future__ import annotations

from mercer.kernels._angular import Cosine
from mercer.kernels._coordinates import ChiSquare, LaplaceProduct
from mercer.kernels._dot_product import Linear, Polynomial, Sigmoid
from mercer.kernels._kernel import Kernel
from mercer.kernels._radial import Gaussian, Laplace, Matern

KERNELS: dict[str, type[Kernel]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "laplacian": LaplaceProduct,
    "matern": Matern,
    "polynomial": Polynomial,
    "sigmoid": Sigmoid,
    "chi2": ChiSquare,
    "linear": Linear,
    "cosine": Cosine,
}
ALIASES = {"rbf": "gaussian", "poly": "polynomial"}  # scikit-learn's other words
