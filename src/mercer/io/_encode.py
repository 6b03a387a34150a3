"""Describe an object in JSON, and collect its arrays.

The description, `mercer.json`, is an object with four entries: `format` (a number), `mercer` (the
version that wrote it), `objects` and `root`. `objects` is a list of

- `{"kind": class, "parts": {name: value, ...}}`: an object of a registered class,
- `{"array": member, "dtype": ..., "shape": ...}`: an array in the member of that name,
- `{"items": [value, ...], "shape": ...}`: an array of Python objects,
- `{"table": shape, "columns": [[name, value], ...]}`: a structured array,
- `{"csr": class, "shape": ..., "data": ..., "indices": ..., "indptr": ...}`: a sparse matrix.

A value, such as `root`, is a JSON value, `{"ref": i}` for object i (which must precede the object
that refers to it), or an object with one key, its type, such as `{"tuple": [...]}`. A list of
values may be `{"strings": [text, lengths]}`, both arrays.
Arrays, kernels and points that are shared are written once.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer.exceptions import InputError
from mercer.io._objects import parts_of
from mercer.io._registry import is_savable, name_of

FORMAT = 1
DTYPES = {np.dtype(letter) for letter in "?bhilqBHILQefdFD"}
_MANY = 100  # strings in a list that become arrays
CSR_PARTS = ("data", "indices", "indptr")


def encode(thing: Any, version: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the description of an object, and its arrays by member name."""
    encoder = _Encoder()
    try:
        root = encoder.value(thing, getattr(thing, "__name__", type(thing).__name__))
    except RecursionError:
        raise InputError(
            "the object is nested too deeply to be saved, or contains itself"
        ) from None
    document = {"format": FORMAT, "mercer": version, "root": root, "objects": encoder.objects}
    return document, encoder.arrays


@dataclass(eq=False)
class _Encoder:
    objects: list[Any] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    known: dict[Any, int] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)  # keeps ids from being reused

    def value(self, x: Any, where: str) -> Any:
        """Describe a value; `where` names it in errors."""
        if x is None or type(x) in (bool, str):
            return x
        if type(x) in _NUMBERS:
            return _NUMBERS[type(x)](x)
        if type(x) in (list, tuple, set, frozenset, dict):
            return self._container(x, where)
        if isinstance(x, Enum):
            return {"enum": [self._registered(x, where), x.name]}
        if isinstance(x, np.generic):
            return self._scalar(x, where)
        if isinstance(x, np.ndarray):
            return self._array(x, where)
        if isinstance(x, np.dtype) and is_type(x):
            return {"dtype": x.str}
        if isinstance(x, type) and issubclass(x, np.generic) and np.dtype(x) in DTYPES:
            return {"type": np.dtype(x).str}
        if is_sparse(x):
            return self._shared(id(x), x, lambda: self._csr(x, where))
        name = self._registered(x, where)
        return self._shared(id(x), x, lambda: self._object(x, name, where))

    def _container(self, x: Any, where: str) -> Any:
        if type(x) is dict:
            pairs = [[self.value(k, f"a key of {where}"), self.value(v, f"{where}[{k!r}]")]
                     for k, v in x.items()]  # fmt: skip
            return {"dict": pairs}
        items = self._items(x, where)
        if isinstance(x, set | frozenset):
            items.sort(key=json.dumps)  # so that equal objects give equal files
        return items if type(items) is type(x) else {type(x).__name__: items}

    def _items(self, x: Any, where: str) -> Any:
        """A list of values, or many strings as one array of their text and one of its lengths."""
        if len(x) < _MANY or isinstance(x, set | frozenset) or not all(type(s) is str for s in x):
            return [self.value(item, f"{where}[{i}]") for i, item in enumerate(x)]
        text = [item.encode("utf-8", "surrogatepass") for item in x]
        arrays = np.array(bytearray(b"".join(text))), np.array([len(item) for item in text])
        return {"strings": [self._array(array, where) for array in arrays]}

    def _shared(self, key: Any, x: Any, describe: Callable[[], Any]) -> dict[str, int]:
        if key not in self.known:
            node = describe()
            self.known[key] = len(self.objects)
            self.objects.append(node)
            self.alive.append(x)
        return {"ref": self.known[key]}

    def _object(self, x: Any, name: str, where: str) -> Any:
        parts = parts_of(x)
        return {"kind": name, "parts": {p: self.value(parts[p], f"{where}.{p}") for p in parts}}

    def _registered(self, x: Any, where: str) -> str:
        name = name_of(type(x))
        if name is None:
            raise InputError(_refusal(x, where))
        return name

    def _scalar(self, x: Any, where: str) -> Any:
        if x.dtype not in DTYPES and not isinstance(x, np.str_ | np.bytes_):
            raise InputError(f"{where} has dtype {x.dtype}, which cannot be saved")
        dtype = x.dtype.kind if x.dtype.kind in "US" else x.dtype.name
        return {"scalar": [dtype, self.value(x.item(), where)]}

    # --- arrays -------------------------------------------------------------------------------

    def _array(self, X: Array, where: str) -> Any:
        if type(X) not in (np.ndarray, np.memmap):
            raise InputError(f"{where} is a {type(X).__name__}; save a plain array")
        # views of the same memory are one array: an origin and directions share their points
        key = X.__array_interface__["data"][0], X.shape, X.strides, X.dtype
        return self._shared(key, X, lambda: self._described(X, where))

    def _described(self, X: Array, where: str) -> Any:
        if X.dtype.names is not None:
            columns = [[c, self._array(X[c], f"{where}[{c!r}]")] for c in X.dtype.names]
            return {"table": list(X.shape), "columns": columns}
        if X.dtype == object:
            return {"items": self._items(X.ravel().tolist(), where), "shape": list(X.shape)}
        if not is_plain(X.dtype):
            raise InputError(f"{where} has dtype {X.dtype}, which cannot be saved")
        member = f"{len(self.arrays)}.npy"
        self.arrays[member] = X
        return {"array": member, "dtype": X.dtype.str, "shape": list(X.shape)}

    def _csr(self, X: Any, where: str) -> Any:
        if X.format != "csr":
            raise InputError(f"{where} is sparse, but not CSR; use tocsr()")
        parts = {name: self._array(getattr(X, name), where) for name in CSR_PARTS}
        return {"csr": type(X).__name__, "shape": list(X.shape), **parts}


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of this type are written directly: numbers and non-empty strings."""
    return dtype.newbyteorder("=") in DTYPES or (dtype.kind in "US" and dtype.itemsize > 0)


def is_type(dtype: np.dtype[Any]) -> bool:
    """Whether a type may be a parameter: of numbers, strings or objects."""
    return dtype.newbyteorder("=") in DTYPES or dtype.kind in "USO"


def _float(x: float) -> Any:
    return x if math.isfinite(x) else {"float": repr(x)}


_NUMBERS: dict[type, Callable[[Any], Any]] = {
    # other readers of JSON may round larger integers
    int: lambda x: x if -(2**63) <= x < 2**63 else {"int": hex(x)},
    float: _float,
    complex: lambda x: {"complex": [_float(x.real), _float(x.imag)]},
    bytes: lambda x: {"bytes": base64.b64encode(x).decode("ascii")},
}


def _refusal(x: Any, where: str) -> str:
    """Why an object cannot be saved, and what to do."""
    cls = type(x)
    if isinstance(x, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
        return f"{where} is a {cls.__name__}; use an int or None as random state"
    if callable(x) and not is_savable(cls):
        name = getattr(x, "__qualname__", cls.__name__)
        return (
            f"{where} is a callable ({name}), and loading one would execute code; write a "
            "class instead and register it with mercer.io.register"
        )
    return (
        f"{where} has the class {cls.__module__}.{cls.__qualname__}, which cannot be saved; if "
        f"it is your own, call mercer.io.register({cls.__name__}) first"
    )
