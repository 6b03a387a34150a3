"""Objects taken apart into named values, and built again by their own constructors."""

from __future__ import annotations

import dataclasses
from inspect import getattr_static
from typing import Any

from mercer.engine import LinearMap
from mercer.exceptions import InputError
from mercer.io._checked import CHECKED
from mercer.kernels import Kernel

_REQUEST = "_metadata_request"  # what `set_fit_request` and the like keep
_ROUTED = (
    "fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function",
    "score", "transform", "inverse_transform",
)  # fmt: skip


def parts_of(thing: Any) -> dict[str, Any]:
    """What a registered object is made of, by name; caches are left out."""
    if isinstance(thing, LinearMap):
        return {"array": thing.array}
    if _is_estimator(type(thing)):
        return _estimator_parts(thing)
    if dataclasses.is_dataclass(thing):
        return {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing) if f.init}
    return dict(thing.get_params(deep=False))


def build(cls: type, parts: dict[str, Any]) -> Any:
    """The object of these parts; raises what its constructor raises."""
    if cls in CHECKED:
        return CHECKED[cls](**parts)
    if issubclass(cls, LinearMap):
        if set(parts) != {"array"}:
            raise InputError("a linear map is known by its array")
        return cls(parts["array"])  # type: ignore[call-arg]
    if _is_estimator(cls):
        return _estimator(cls, **parts)
    return cls(**parts)


def _is_estimator(cls: type) -> bool:
    return hasattr(cls, "get_params") and not issubclass(cls, Kernel)


def _estimator_parts(estimator: Any) -> dict[str, Any]:
    """Parameters, all other attributes but caches, and requests for metadata."""
    params, fitted = estimator.get_params(deep=False), dict(vars(estimator))
    requested = fitted.pop(_REQUEST, None)
    for name in (*params, *getattr(estimator, "_unsaved_attributes", ())):
        fitted.pop(name, None)
    parts = {"params": params, "fitted": fitted}
    return parts if requested is None else parts | {"requests": _requests(requested)}


def _requests(request: Any) -> dict[str, dict[str, Any]]:
    """What was asked for, method by method."""
    asked = {}
    for method in _ROUTED:
        requests = getattr(getattr(request, method, None), "requests", {})
        if set_ := {name: alias for name, alias in requests.items() if alias is not None}:
            asked[method] = set_
    return asked


def _estimator(cls: type, params: Any, fitted: Any, requests: Any = None) -> Any:
    estimator = cls(**params)
    for name, value in fitted.items():
        if name.startswith("__") or hasattr(getattr_static(cls, name, None), "__get__"):
            raise InputError(f"{name!r} is not the name of a fitted attribute")
        vars(estimator)[name] = value
    if requests:
        from sklearn import config_context

        with config_context(enable_metadata_routing=True):
            for method, asked in requests.items():
                if method not in _ROUTED:
                    raise InputError(f"{method} takes no metadata")
                getattr(estimator, f"set_{method}_request")(**asked)
    return estimator
