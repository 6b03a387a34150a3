"""Linear algebra on kernel matrices: solves, eigenpairs and low rank, mostly without the matrix."""

from mercer._progress import Step
from mercer.linalg._eigen import EigenPairs, eigenpairs
from mercer.linalg._landmarks import leverage_scores
from mercer.linalg._nystrom import Nystrom, nystrom
from mercer.linalg._operator import GramOperator, gram_operator
from mercer.linalg._pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from mercer.linalg._power_iteration import EigenPair, power_iteration
from mercer.linalg._random_features import FeatureError, RandomFeatures, random_features
from mercer.linalg._result import Solution
from mercer.linalg._solve import solve
from mercer.linalg._woodbury import woodbury

__all__ = [
    "EigenPair", "EigenPairs", "FeatureError", "GramOperator", "Nystrom", "PivotedCholesky",
    "RandomFeatures", "Solution", "Step", "eigenpairs", "gram_operator", "leverage_scores",
    "nystrom", "pivoted_cholesky", "power_iteration", "random_features", "solve", "woodbury",
]  # fmt: skip
