"""scikit-learn estimators over the methods, and the base that lets them hold immutable kernels."""

from mercer.estimators._base import KernelEstimator
from mercer.estimators._features import Nystroem, RandomFeatures
from mercer.estimators._kernel_pca import KernelPCA

__all__ = ["KernelEstimator", "KernelPCA", "Nystroem", "RandomFeatures"]
