"""Kernel names in estimators and on the command line."""

from __future__ import annotations

import re

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
ALIASES = {"rbf": "gaussian", "poly": "polynomial"}  # scikit-learn's names


def rounded(kernel: object) -> str:
    """The repr of a kernel or of several, with four digits and the names of functions."""
    name = re.sub(r"\d+\.\d{4,}(?:e[-+]?\d+)?", lambda m: f"{float(m[0]):.4g}", repr(kernel))
    name = re.sub(r"<ufunc '(\w+)'>", r"\1", name)
    return re.sub(r"<(?:function|bound method) (?:\S+\.)?(<?\w+>?)[^>]*>", r"\1", name)
