"""scikit-learn estimators over the methods, and the base that lets them hold immutable kernels."""

from mercer.estimators._base import KernelEstimator
from mercer.estimators._denoiser import KernelDenoiser
from mercer.estimators._features import Nystroem, RandomFeatures
from mercer.estimators._imputer import KernelImputer
from mercer.estimators._kernel_density import KernelDensity
from mercer.estimators._kernel_pca import KernelPCA
from mercer.estimators._mean_shift import MeanShift
from mercer.estimators._novelty import KernelNovelty
from mercer.estimators._support_vectors import SVC, SVR, NuSVC, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "KernelDenoiser",
    "KernelDensity",
    "KernelEstimator",
    "KernelImputer",
    "KernelNovelty",
    "KernelPCA",
    "MeanShift",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "RandomFeatures",
]  # fmt: skip
