"""Objects taken apart into named values, and built again by their own constructors."""

from __future__ import annotations

import dataclasses
from typing import Any

from mercer._errors import InputError
from mercer.engine import LinearMap
from mercer.io._checked import CHECKED
from mercer.kernels import Kernel

_OUTPUT = "_sklearn_output_config"  # what `set_output` keeps
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
    """Parameters, fitted attributes, and requests for metadata."""
    cls, params = type(estimator), estimator.get_params(deep=False)
    rest = {name: value for name, value in vars(estimator).items() if name not in params}
    requested = rest.pop(_REQUEST, None)
    for name in getattr(cls, "_unsaved_attributes", ()):
        rest.pop(name, None)
    for name in rest:
        if not _is_fitted(cls, name):
            raise InputError(
                f"{cls.__name__} holds {name}, which is neither a parameter nor a fitted attribute "
                "(whose name would end in _); the class must name it in _saved_attributes, or in "
                "_unsaved_attributes if it can be made again"
            )
    parts = {"params": params, "fitted": rest}
    return parts if requested is None else parts | {"requests": _requests(requested)}


def _is_fitted(cls: type, name: str) -> bool:
    public = name.endswith("_") and not name.startswith("_")
    return public or name == _OUTPUT or name in getattr(cls, "_saved_attributes", ())


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
        if not _is_fitted(cls, name):
            raise InputError(f"{name} is not the name of a fitted attribute")
        vars(estimator)[name] = value
    if requests:
        from sklearn import config_context

        with config_context(enable_metadata_routing=True):
            for method, asked in requests.items():
                if method not in _ROUTED:
                    raise InputError(f"{method} takes no metadata")
                getattr(estimator, f"set_{method}_request")(**asked)
    return estimator
