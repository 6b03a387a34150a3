"""Classes of mercer that can be saved: all public ones, and private ones that they contain."""

from __future__ import annotations

import inspect
from functools import cache
from types import ModuleType
from typing import Any

from mercer import _registry, engine, kernels, linalg, methods, preimages, space
from mercer._status import Status
from mercer.engine import LinearMap
from mercer.kernels.structured._table import Group
from mercer.methods.pca._landmark_pca import LandmarkScatter
from mercer.space._operator import _Term

_ESTIMATORS = "mercer.estimators"
_PRIVATE: dict[str, type] = {
    "mercer.engine.Dense": engine.Dense,
    "mercer.engine.LowRank": engine.LowRank,
    "mercer.engine.SingleFeatures": engine.SingleFeatures,
    "mercer.engine.Stacked": engine.Stacked,
    "mercer.kernels.Group": Group,
    "mercer.methods.LandmarkScatter": LandmarkScatter,
    "mercer.Status": Status,
    "mercer.space.Term": _Term,
}


def class_of(name: str) -> type | None:
    """The class of that name, or None; scikit-learn is imported only for estimators."""
    _fill()
    if _registry.class_of(name) is None and name.startswith(_ESTIMATORS + "."):
        _fill_estimators()
    return _registry.class_of(name)


def name_of(cls: type) -> str | None:
    """The name of a class, or None."""
    _fill()
    if cls.__module__.startswith(_ESTIMATORS):
        _fill_estimators()
    return _registry.name_of(cls)


@cache
def _fill() -> None:
    for name, cls in _PRIVATE.items():
        _registry.add(name, cls)
    for module in (kernels, linalg, space, preimages, methods):
        _add_public(module)


@cache
def _fill_estimators() -> None:
    from sklearn.preprocessing import StandardScaler

    from mercer import estimators

    _add_public(estimators)
    _registry.add(f"{_ESTIMATORS}.StandardScaler", StandardScaler)  # of `scale_columns`


def _add_public(module: ModuleType) -> None:
    for name in module.__all__:
        if _is_savable(cls := getattr(module, name)):
            _registry.add(f"{module.__name__}.{name}", cls)


def _is_savable(cls: Any) -> bool:
    if not isinstance(cls, type) or inspect.isabstract(cls):
        return False
    return _registry.is_savable(cls) or issubclass(cls, LinearMap)
