"""The registry of classes that can be saved to files, and their names in files.

It holds all public classes of mercer, private ones that they contain, and classes of users.
"""

from __future__ import annotations

import dataclasses
import inspect
from enum import Enum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from mercer import engine, kernels, linalg, methods, preimages, space
from mercer._certificate import FitCertificate
from mercer._frames import Header
from mercer._status import Status
from mercer.engine import LinearMap
from mercer.exceptions import InputError
from mercer.kernels._circle import Circle
from mercer.kernels._domain import RowIds
from mercer.kernels.structured._table import Group, Tables
from mercer.methods.imputation._regressions import ColumnRegression
from mercer.methods.machines._gradient_descent import DescentCertificate
from mercer.methods.machines._ridge_uncertainty import LandmarkVariance
from mercer.methods.machines._stochastic_subgradient import Iterate
from mercer.methods.machines._support_vectors import SupportVectorCertificate
from mercer.methods.pca._kernel_pca import LandmarkScatter
from mercer.space._operator import _Term

T = TypeVar("T", bound=type)

OWN = "mercer."  # the prefix of mercer's own classes

_ESTIMATORS = "mercer.estimators"
# Classes of scikit-learn whose fitted attributes are plain, and whose methods, in NumPy, are safe
# whatever these are. `Pipeline` is one of them, so pipelines of these steps can be saved.
_SKLEARN = {
    "decomposition": ("PCA", "TruncatedSVD"),
    "feature_selection": ("VarianceThreshold",),
    "impute": ("MissingIndicator", "SimpleImputer"),
    "linear_model": ("ElasticNet", "Lasso", "LinearRegression", "LogisticRegression", "Ridge"),
    "pipeline": ("Pipeline",),
    "preprocessing": (
        "KBinsDiscretizer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "OneHotEncoder",
        "OrdinalEncoder", "PowerTransformer", "QuantileTransformer", "RobustScaler",
        "StandardScaler",
    ),
}  # fmt: skip
_PRIVATE: dict[str, type] = {
    "mercer.Header": Header,
    "mercer.engine.Dense": engine.Dense,
    "mercer.engine.LowRank": engine.LowRank,
    "mercer.engine.SingleFeatures": engine.SingleFeatures,
    "mercer.engine.Stacked": engine.Stacked,
    "mercer.kernels.Circle": Circle,
    "mercer.kernels.Group": Group,
    "mercer.kernels.RowIds": RowIds,
    "mercer.kernels.Tables": Tables,
    "mercer.methods.ColumnRegression": ColumnRegression,
    "mercer.methods.DescentCertificate": DescentCertificate,
    "mercer.methods.FitCertificate": FitCertificate,
    "mercer.methods.Iterate": Iterate,
    "mercer.methods.LandmarkScatter": LandmarkScatter,
    "mercer.methods.LandmarkVariance": LandmarkVariance,
    "mercer.methods.SupportVectorCertificate": SupportVectorCertificate,
    "mercer.Status": Status,
    "mercer.space.Term": _Term,
}

_classes: dict[str, type] = {}
_names: dict[type, str] = {}


def register(cls: T, *, name: str | None = None) -> T:
    """Allow objects of a class to be saved and loaded; also works as a decorator.

    Files name classes, and `mercer.load` builds only classes registered under these names, so that
    a file cannot cause an import. mercer's own classes are registered already.

    Parameters
    ----------
    cls : type
        A dataclass whose fields are its parameters (a kernel, a map of points, a solver), an Enum,
        or a class with `get_params` (an estimator, or a kernel that is not a dataclass). To load
        an object, a dataclass is called with its fields, so its checks run. An estimator is called
        with its parameters, and its other attributes are set, except those that the class lists in
        `_unsaved_attributes`, such as caches.
    name : str, optional
        Its name in files; by default the name of the class. A class may have several names, so
        that old files can be loaded after it was renamed; it is saved under the first.

    Returns
    -------
    type
        The class itself.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from mercer.io import register
    >>> import mercer as mc
    >>> @register
    ... @dataclass(frozen=True)
    ... class Cauchy(mc.Radial):
    ...     scale: float = 1.0
    ...     def profile(self, u):
    ...         return 1.0 / (1.0 + u / self.scale**2)
    """
    if not isinstance(cls, type):
        raise InputError(f"register takes a class, got {cls!r}")
    if not is_savable(cls):
        raise InputError(
            f"{cls.__qualname__} must be a dataclass, an Enum, or have get_params, so that "
            "mercer knows what its objects consist of"
        )
    name = cls.__name__ if name is None else name
    if not isinstance(name, str) or not name or name.startswith(OWN):
        raise InputError(f"name must be a string that does not start with {OWN!r}, got {name!r}")
    _add(name, cls)
    return cls


def _add(name: str, cls: type) -> None:
    """Add a class to the registry; a class that is defined again replaces the old one."""
    old = _classes.get(name, cls)
    if _definition(old) != _definition(cls):
        raise InputError(
            f"{name!r} is already the name of {'.'.join(_definition(old))}; register the class "
            "under another name"
        )
    if old is not cls:
        _names.pop(old, None)
    _classes[name] = cls
    _names.setdefault(cls, name)


def class_of(name: str) -> type | None:
    """The class of that name, or None; scikit-learn is imported only for estimators."""
    _fill()
    if name not in _classes and name.startswith(_ESTIMATORS + "."):
        _fill_estimators()
    return _classes.get(name)


def name_of(cls: type) -> str | None:
    _fill()
    if cls.__module__.startswith((_ESTIMATORS, "sklearn.")):
        _fill_estimators()
    return _names.get(cls)


def is_savable(cls: Any) -> bool:
    """Whether the parts of a class's objects are known."""
    if not isinstance(cls, type):
        return False
    kinds = (Enum, LinearMap)
    return dataclasses.is_dataclass(cls) or issubclass(cls, kinds) or hasattr(cls, "get_params")


@cache
def _fill() -> None:
    for name, cls in _PRIVATE.items():
        _add(name, cls)
    for module in (kernels, linalg, space, preimages, methods):
        _add_public(module)


@cache
def _fill_estimators() -> None:
    from mercer import estimators

    _add_public(estimators)
    for module, names in _SKLEARN.items():
        found = import_module(f"sklearn.{module}")
        for name in names:
            _add(f"{_ESTIMATORS}.sklearn.{name}", getattr(found, name))


def _add_public(module: ModuleType) -> None:
    for name in module.__all__:
        cls = getattr(module, name)
        if is_savable(cls) and not inspect.isabstract(cls):
            _add(f"{module.__name__}.{name}", cls)


def _definition(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
