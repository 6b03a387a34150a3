"""Kernels, their algebra, domains, derivatives, spectral measures and bandwidth rules."""

from mercer._array import Points
from mercer.engine import Columns, Matrix, Scales
from mercer.kernels._angular import ArcCosine, Cosine, Normalised
from mercer.kernels._bandwidth import median_scale
from mercer.kernels._circle import Circular, JacobiTheta, Periodic, PeriodicSobolev
from mercer.kernels._coordinates import (
    AdditiveChiSquare,
    ChiSquare,
    Harmonic,
    LaplaceProduct,
    Minimum,
)
from mercer.kernels._discrete_measures import Atoms
from mercer.kernels._domain import Domain, Objects, OpenBall, Vectors
from mercer.kernels._dot_product import (
    DotProduct,
    Exponential,
    Geometric,
    Linear,
    Polynomial,
    Sigmoid,
    Taylor,
    VovkPolynomial,
)
from mercer.kernels._features import Features, Monomials
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Constant, Kernel, Product, Sum, Transformed
from mercer.kernels._measures import MixingMeasure, SpectralMeasure
from mercer.kernels._precomputed import FromFunction, Precomputed
from mercer.kernels._radial import (
    Epanechnikov,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    NegativeDistance,
    Radial,
    RationalQuadratic,
    Uniform,
)
from mercer.kernels.structured._categorical import Categories, Hamming, Overlap
from mercer.kernels.structured._domains import Sequences, Sets
from mercer.kernels.structured._sets import Jaccard
from mercer.kernels.structured._strings import Spectrum, Subsequences
from mercer.kernels.structured._table import Table, table_kernel

__all__ = [
    "AdditiveChiSquare", "ArcCosine", "Atoms", "Categories", "ChiSquare", "Circular", "Columns",
    "Constant", "Cosine", "Definiteness", "Domain", "DotProduct", "Epanechnikov", "Exponential",
    "Features", "Flags", "FromFunction", "Gaussian", "Geometric", "Hamming", "Harmonic",
    "InverseMultiquadric", "Jaccard", "JacobiTheta", "Kernel", "Laplace", "LaplaceProduct",
    "Linear", "Matern", "Matrix", "Minimum", "MixingMeasure", "Monomials", "NegativeDistance",
    "Normalised", "Objects", "OpenBall", "Overlap", "Periodic", "PeriodicSobolev", "Points",
    "Polynomial", "Precomputed", "Product", "Radial", "RationalQuadratic", "Scales", "Sequences",
    "Sets", "Sigmoid", "SpectralMeasure", "Spectrum", "Subsequences", "Sum", "Table", "Taylor",
    "Transformed", "Uniform", "Vectors", "VovkPolynomial", "median_scale", "table_kernel",
]  # fmt: skip
