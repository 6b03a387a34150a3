"""Kernel methods: denoising, imputation, outliers, clusters, tests, regression, classification.

Every kernel method yields an element psi = sum_i a_i k(x_i, .) of a reproducing kernel Hilbert
space. Here it is an object: evaluate it, combine it with others, and map it back to data space.
"""

from importlib import import_module as _import_module

from mercer._config import Options, get_options, options
from mercer._status import Status
from mercer.exceptions import InputError, MercerError, MercerWarning
from mercer.kernels import (
    Columns,
    DotProduct,
    Epanechnikov,
    Exponential,
    Gaussian,
    InverseMultiquadric,
    Jaccard,
    Kernel,
    Laplace,
    Linear,
    Matern,
    NegativeDistance,
    Periodic,
    Polynomial,
    Precomputed,
    Radial,
    RationalQuadratic,
    Scales,
    Sigmoid,
    Spectrum,
    Subsequences,
    median_scale,
    table_kernel,
)
from mercer.methods import (
    convergence_bandwidth,
    hsic_test,
    kernel_density,
    kernel_pca,
    ksd_test,
    mean_shift,
    mmd_test,
)
from mercer.preimages import (
    LBFGS,
    MM,
    Box,
    Candidates,
    ClosedForm,
    Distances,
    FixedPoint,
    Global,
    GradientDescent,
    LearnedMap,
    Newton,
    PreImage,
    compress,
    preimage,
)
from mercer.space import Element, Subspace, covariance, feature, mean_embedding

__version__ = "0.1.0"

# imported when first used: estimators bring scikit-learn
_LAZY = {
    "KernelDenoiser": "estimators",
    "KernelDensity": "estimators",
    "KernelImputer": "estimators",
    "KernelLogisticRegression": "estimators",
    "KernelNovelty": "estimators",
    "KernelPCA": "estimators",
    "KernelRidge": "estimators",
    "MeanShift": "estimators",
    "Nystroem": "estimators",
    "RandomFeatures": "estimators",
    "SVC": "estimators",
    "SVR": "estimators",
    "load": "io",
    "report": "reports",
    "save": "io",
    "show_versions": "engine._versions",
}
_PACKAGES = (
    "datasets",
    "estimators",
    "io",
    "plot",
    "reports",
    "testing",
    "theory",
)  # loaded when first used

__all__ = [
    "LBFGS", "MM", "SVC", "SVR", "Box", "Candidates", "ClosedForm", "Columns", "Distances",
    "DotProduct", "Element", "Epanechnikov", "Exponential", "FixedPoint", "Gaussian", "Global",
    "GradientDescent", "InputError", "InverseMultiquadric", "Jaccard", "Kernel", "KernelDenoiser",
    "KernelDensity", "KernelImputer", "KernelLogisticRegression", "KernelNovelty", "KernelPCA",
    "KernelRidge", "Laplace", "LearnedMap", "Linear", "Matern", "MeanShift", "MercerError",
    "MercerWarning", "NegativeDistance", "Newton", "Nystroem", "Options", "Periodic", "Polynomial",
    "PreImage", "Precomputed", "Radial", "RandomFeatures", "RationalQuadratic", "Scales", "Sigmoid",
    "Spectrum", "Status", "Subsequences", "Subspace", "__version__", "compress",
    "convergence_bandwidth", "covariance", "feature", "get_options", "hsic_test", "kernel_density",
    "kernel_pca", "ksd_test", "load", "mean_embedding", "mean_shift", "median_scale", "mmd_test",
    "options", "preimage", "report", "save", "show_versions", "table_kernel",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return _import_module(f"mercer.{name}")
    if name in _LAZY:
        value: object = getattr(_import_module(f"mercer.{_LAZY[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_PACKAGES})
