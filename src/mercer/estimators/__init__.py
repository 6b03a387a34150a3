"""scikit-learn estimators of the methods, and their base class, which holds immutable kernels."""

from mercer.estimators._base import KernelEstimator
from mercer.estimators._denoiser import KernelDenoiser
from mercer.estimators._features import Nystroem, RandomFeatures
from mercer.estimators._imputer import KernelImputer
from mercer.estimators._kernel_density import KernelDensity
from mercer.estimators._kernel_gradient_descent import KernelGradientDescent
from mercer.estimators._kernel_logistic import KernelLogisticRegression
from mercer.estimators._kernel_machine import KernelMachine
from mercer.estimators._kernel_pca import KernelPCA
from mercer.estimators._kernel_ridge import KernelRidge
from mercer.estimators._kernel_sgd import KernelSGD
from mercer.estimators._mean_shift import MeanShift
from mercer.estimators._novelty import KernelNovelty
from mercer.estimators._one_class_svm import OneClassSVM
from mercer.estimators._support_vector_classifiers import SVC, NuSVC
from mercer.estimators._support_vector_regressors import SVR, NuSVR

__all__ = [
    "SVC",
    "SVR",
    "KernelDenoiser",
    "KernelDensity",
    "KernelEstimator",
    "KernelGradientDescent",
    "KernelImputer",
    "KernelLogisticRegression",
    "KernelMachine",
    "KernelNovelty",
    "KernelPCA",
    "KernelRidge",
    "KernelSGD",
    "MeanShift",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "RandomFeatures",
]  # fmt: skip
