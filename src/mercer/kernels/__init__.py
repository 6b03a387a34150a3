"""Kernels: values that lower themselves to a program of the engine."""

from mercer.engine import Columns, Matrix, Scales
from mercer.kernels._bandwidth import median_scale, scott_scale, silverman_scale
from mercer.kernels._domain import Domain, Objects, RowIds, Vectors
from mercer.kernels._dot import DotProduct, Exponential, Linear, Polynomial
from mercer.kernels._features import Features, Monomials
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._given import FromFunction, Precomputed
from mercer.kernels._kernel import (
    Constant,
    Kernel,
    Product,
    Sum,
    Transformed,
    check_same_columns,
)
from mercer.kernels._measures import MixingMeasure, SpectralMeasure
from mercer.kernels._normalised import Normalised
from mercer.kernels._radial import (
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Radial,
    RationalQuadratic,
)
from mercer.kernels._window import Epanechnikov, NegativeDistance

__all__ = [
    "Columns",
    "Constant",
    "Definiteness",
    "Domain",
    "DotProduct",
    "Epanechnikov",
    "Exponential",
    "Features",
    "Flags",
    "FromFunction",
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Matrix",
    "MixingMeasure",
    "Monomials",
    "NegativeDistance",
    "Normalised",
    "Objects",
    "Polynomial",
    "Precomputed",
    "Product",
    "Radial",
    "RationalQuadratic",
    "RowIds",
    "Scales",
    "SpectralMeasure",
    "Sum",
    "Transformed",
    "Vectors",
    "check_same_columns",
    "median_scale",
    "scott_scale",
    "silverman_scale",
]
