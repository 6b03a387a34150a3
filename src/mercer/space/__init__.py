"""Elements of a reproducing kernel Hilbert space, its affine subspaces, and operators."""

from mercer.space._element import Element
from mercer.space._features import feature, mean_embedding
from mercer.space._operator import Operator, covariance, tensor
from mercer.space._subspace import Subspace

__all__ = ["Element", "Operator", "Subspace", "covariance", "feature", "mean_embedding", "tensor"]
