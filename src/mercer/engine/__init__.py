"""Kernel sums without the Gram matrix: all fast code is behind this package.

The engine works with programs (variables and a profile of them) and coefficients, not with kernels.
"""

from mercer.engine._sizes import as_float64, dense, n_columns, n_rows, pieces, tile_dtype
from mercer.engine.programs._coef import Coef, Dense, LowRank, SingleFeatures, Stacked, stack
from mercer.engine.programs._expr import Const, Expr, Opaque, Unary, Var, cut, matern
from mercer.engine.programs._jets import Jet, evaluate, profile_at
from mercer.engine.programs._maps import (
    Columns,
    LinearMap,
    Map,
    Maps,
    Matrix,
    Scales,
    apply_all,
    column_rank,
)
from mercer.engine.programs._program import Block, Coordinates, Distance, Dot, Gap, Norm, Program
from mercer.engine.sums._fields import Fields, by_row, total
from mercer.engine.sums._fourier_features import FourierFeatures, NormalEquations, fourier_features
from mercer.engine.sums._native_forms import NativeForms, native_forms
from mercer.engine.sums._pairwise import diagonal, pairwise_derivative, require_derivatives
from mercer.engine.sums._prepared import GramBlocks, PreparedSum, fields, gram, prepare
from mercer.engine.sums._spectral_forms import SpectralForms, spectral_forms

__all__ = [
    "Block", "Coef", "Columns", "Const", "Coordinates", "Dense", "Distance", "Dot", "Expr",
    "Fields", "FourierFeatures", "Gap", "GramBlocks", "Jet", "LinearMap", "LowRank", "Map",
    "Maps", "Matrix", "NativeForms", "Norm", "NormalEquations", "Opaque", "PreparedSum",
    "Program", "Scales", "SingleFeatures", "SpectralForms", "Stacked", "Unary", "Var",
    "apply_all", "as_float64", "by_row", "column_rank", "cut", "dense", "diagonal", "evaluate",
    "fields", "fourier_features", "gram", "matern", "n_columns", "n_rows", "native_forms",
    "pairwise_derivative", "pieces", "prepare", "profile_at", "require_derivatives",
    "spectral_forms", "stack", "tile_dtype", "total",
]  # fmt: skip
