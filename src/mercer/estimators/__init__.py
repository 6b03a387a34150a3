"""scikit-learn estimators over the methods, and the base that lets them hold immutable kernels."""

from mercer.estimators._base import KernelEstimator

__all__ = ["KernelEstimator"]
