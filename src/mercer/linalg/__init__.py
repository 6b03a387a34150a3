"""Linear algebra on kernel matrices: linear systems, eigenpairs, low rank; mostly matrix-free."""

from mercer._progress import Step
from mercer.linalg._eigen import EigenPairs, eigenpairs, power_iteration
from mercer.linalg._nystrom import Nystrom, leverage_scores, nystrom
from mercer.linalg._operator import GramOperator
from mercer.linalg._pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from mercer.linalg._random_features import RandomFeatures, random_features
from mercer.linalg._solve import Solution, solve, woodbury

__all__ = [
    "EigenPairs", "GramOperator", "Nystrom", "PivotedCholesky", "RandomFeatures", "Solution",
    "Step", "eigenpairs", "leverage_scores", "nystrom", "pivoted_cholesky",
    "power_iteration", "random_features", "solve", "woodbury",
]  # fmt: skip
