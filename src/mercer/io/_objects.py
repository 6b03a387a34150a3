"""Take objects apart into named parts, and build them again with their constructors.

Elements and coefficients of the library are built from checked parts; those of a file are checked
here, because with a wrong row number the engine would read memory outside an array.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from inspect import getattr_static
from typing import Any

import numpy as np

from mercer._array import Array, frozen, positive_int
from mercer._frames import Header
from mercer.engine import Coef, Dense, LinearMap, LowRank, SingleFeatures, Stacked, n_rows
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.space import Element

_UNSAVED = ("_metadata_request", "_skl_callbacks")  # by scikit-learn
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def parts_of(thing: Any) -> dict[str, Any]:
    """The parts of a registered object, by name, without caches."""
    if isinstance(thing, LinearMap):
        return {"array": thing.array}
    if _is_estimator(type(thing)):
        return _estimator_parts(thing)
    if dataclasses.is_dataclass(thing):
        return {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing) if f.init}
    return dict(thing.get_params(deep=False))


def build(cls: type, parts: dict[str, Any]) -> Any:
    """Build an object; raises the errors of its constructor."""
    if cls in _CHECKED:
        return _CHECKED[cls](**parts)
    if issubclass(cls, LinearMap):
        if set(parts) != {"array"}:
            raise InputError("a linear map has one part, its array")
        return cls(parts["array"])  # type: ignore[call-arg]
    if _is_estimator(cls):
        return _estimator(cls, **parts)
    return cls(**parts)


def is_free(cls: type) -> bool:
    """Whether objects of a class are built without reading or copying their arrays."""
    return cls in (Dense, LowRank, Stacked) or _is_estimator(cls)


def _is_estimator(cls: type) -> bool:
    return hasattr(cls, "get_params") and not issubclass(cls, Kernel)


def _estimator_parts(estimator: Any) -> dict[str, Any]:
    """Parameters, and all other attributes except caches and metadata requests."""
    params = estimator.get_params(deep=False)
    left_out = {*params, *_UNSAVED, *getattr(estimator, "_unsaved_attributes", ())}
    fitted = {name: value for name, value in vars(estimator).items() if name not in left_out}
    return {"params": params, "fitted": fitted}


def _estimator(cls: type, params: Any, fitted: Any) -> Any:
    if params.get("memory") is not None:  # joblib would unpickle what is there
        raise InputError("memory must be None: a pipeline that is saved has no folder for a cache")
    estimator = cls(**params)
    known = estimator.get_params(deep=False)  # were checked above
    for name, value in fitted.items():
        hidden = name.startswith("__") or name in known
        if hidden or hasattr(getattr_static(cls, name, None), "__get__"):
            raise InputError(f"{name!r} is not the name of a fitted attribute")
        vars(estimator)[name] = value
    return estimator


# --- elements and coefficients -------------------------------------------------------------------


def _element(kernel: Any, points: Any, coef: Any, batch: Any, header: Any = None) -> Element:
    if not isinstance(kernel, Kernel) or not isinstance(coef, Coef):
        raise InputError("an element needs a kernel and coefficients")
    points = kernel.points(points, "points").array
    batch = None if batch is None else positive_int(batch, "batch")
    expected = (n_rows(points), 1 if batch is None else batch)
    if coef.shape != expected:
        raise InputError(f"the coefficients have shape {coef.shape}, not {expected}")
    if header is not None and not isinstance(header, Header):
        raise InputError("the header of an element names its columns")
    return Element(kernel, points, coef, batch, header)


def _single_features(index: Any, value: Any, n_points: Any) -> SingleFeatures:
    value = _floats(value, 1)
    if not isinstance(index, np.ndarray) or index.dtype.kind != "i" or index.shape != value.shape:
        raise InputError("a selection needs one row number for each value")
    n_points = positive_int(n_points, "n_points")
    if index.size and (index.min() < 0 or index.max() >= n_points):
        raise InputError(f"a selection has row numbers beyond its {n_points} points")
    return SingleFeatures(index.astype(np.intp, copy=False), value, n_points)


def _low_rank(left: Any, right: Any) -> LowRank:
    left, right = _floats(left), _floats(right)
    if left.shape[1] != right.shape[0]:
        raise InputError(f"matrices of shapes {left.shape} and {right.shape} have no product")
    return LowRank(left, right)


def _stacked(parts: Any) -> Stacked:
    flat = isinstance(parts, tuple) and all(
        isinstance(p, Dense | SingleFeatures | LowRank) for p in parts
    )
    if not flat or len({p.shape[1] for p in parts}) != 1:
        raise InputError("stacked coefficients need blocks with equal numbers of elements")
    return Stacked(parts)


def _floats(array: Any, ndim: int = 2) -> Array:
    if not isinstance(array, np.ndarray) or array.ndim != ndim or array.dtype not in _FLOATS:
        raise InputError("coefficients must be arrays of float32 or float64")
    return frozen(array)


_CHECKED: dict[type, Callable[..., Any]] = {
    Element: _element,
    Dense: lambda array: Dense(_floats(array)),
    SingleFeatures: _single_features,
    LowRank: _low_rank,
    Stacked: _stacked,
}
