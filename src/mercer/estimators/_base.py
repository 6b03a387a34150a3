"""The base class of estimators: kernels as parameters, and threads."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from sklearn.base import BaseEstimator

from mercer._config import options
from mercer.kernels import Kernel


class KernelEstimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator whose kernels are immutable values.

    `set_params(kernel__length_scale=2.0)`, and so a grid search over it, replaces the kernel
    instead of changing it, so that estimators can share one kernel object.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.estimators import KernelEstimator
    >>> class Mine(KernelEstimator):
    ...     def __init__(self, kernel):
    ...         self.kernel = kernel
    >>> k = mc.Gaussian(1.0)
    >>> Mine(k).set_params(kernel__length_scale=2.0).kernel
    Gaussian(length_scale=2.0)
    >>> k
    Gaussian(length_scale=1.0)
    """

    def set_params(self, **params: Any) -> KernelEstimator:
        """Set parameters by name; `name__parameter` of a kernel replaces the kernel."""
        plain = {key: value for key, value in params.items() if "__" not in key}
        super().set_params(**plain)
        rest: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if inner and isinstance(getattr(self, name, None), Kernel):
                nested.setdefault(name, {})[inner] = value
            elif inner:
                rest[key] = value
        for name, changes in nested.items():
            setattr(self, name, getattr(self, name).replace(**changes))
        super().set_params(**rest)
        return self

    def _threads(self) -> Any:
        """Return a context in which an estimator with `n_jobs` uses so many threads."""
        jobs = getattr(self, "n_jobs", None)
        return nullcontext() if jobs is None else options(n_jobs=jobs)
