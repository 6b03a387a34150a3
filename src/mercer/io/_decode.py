"""A description back to the object: only registered classes, by their constructors, no code."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._registry import OWN
from mercer.exceptions import InputError, MercerError
from mercer.io._encode import CSR_PARTS, DTYPES, FORMAT
from mercer.io._kinds import class_of
from mercer.io._parts import build

Fetch = Callable[[str, str, tuple[int, ...]], Array]

_WRONG = ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError


def decode(document: Any, fetch: Fetch) -> Any:
    """Build the object; `fetch` gives the array of a member, which must have the stated shape."""
    version = _check_format(document)
    decoder = _Decoder(fetch, version)
    try:
        for node in document["objects"]:
            decoder.known.append(decoder.node(node))
        return decoder.value(document["root"])
    except MercerError:
        raise
    except RecursionError:
        raise InputError("its description is nested too deeply") from None
    except _WRONG as error:
        raise InputError(f"its description is damaged ({error})") from error


def _check_format(document: Any) -> str:
    if not isinstance(document, dict) or type(document.get("format")) is not int:
        raise InputError("its description has no format number")
    version = str(document.get("mercer"))
    if document["format"] != FORMAT:
        raise InputError(
            f"it was written by mercer {version} in format {document['format']}, and this version "
            f"reads format {FORMAT}; use a newer mercer"
        )
    return version


class _Decoder:
    def __init__(self, fetch: Fetch, version: str) -> None:
        self.fetch, self.version = fetch, version
        self.known: list[Any] = []

    # --- values -------------------------------------------------------------------------------

    def value(self, x: Any) -> Any:
        """A value of JSON, or what a tagged object stands for."""
        if x is None or isinstance(x, bool | int | float | str):
            return x
        if isinstance(x, list):
            return self._list(x)
        ((tag, content),) = x.items()
        if tag not in _VALUES:
            raise InputError(f"it holds a value of an unknown kind, {tag!r}")
        return _VALUES[tag](self, content)

    def _list(self, content: Any) -> list[Any]:
        return [self.value(item) for item in _as(list, content)]

    def _dict(self, content: Any) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in _as(list, content)}

    def _ref(self, content: Any) -> Any:
        if type(content) is not int or not 0 <= content < len(self.known):
            raise InputError(f"it refers to an object that does not come before, {content!r}")
        return self.known[content]

    def _enum(self, content: Any) -> Enum:
        name, member = content
        cls = self._class(name)
        if not issubclass(cls, Enum):
            raise InputError(f"{name} is no Enum")
        return cls[member]

    def _class(self, name: Any) -> type:
        cls = class_of(_as(str, name))
        if cls is not None:
            return cls
        if name.startswith(OWN):
            raise InputError(
                f"it holds {name!r}, which this version of mercer does not have (it was written by "
                f"mercer {self.version})"
            )
        raise InputError(
            f"it holds {name!r}, which is not registered; import or define the class, and call "
            "mercer.io.register on it before mercer.load"
        )

    # --- objects ------------------------------------------------------------------------------

    def node(self, node: Any) -> Any:
        """One of the objects that values refer to."""
        for tag, read in _NODES.items():
            if tag in node:
                return read(self, node)
        raise InputError(f"it holds an object of an unknown kind, {sorted(node)}")

    def _object(self, node: Any) -> Any:
        cls = self._class(node["kind"])
        parts = {name: self.value(part) for name, part in node["parts"].items()}
        try:
            if issubclass(cls, Enum):
                raise InputError("a member of an Enum has no parts")
            return build(cls, parts)
        except (MercerError, *_WRONG) as error:
            raise InputError(f"{cls.__name__} cannot be built: {error}") from error

    def _array(self, node: Any) -> Array:
        return self.fetch(_as(str, node["array"]), _as(str, node["dtype"]), _shape(node["shape"]))

    def _items(self, node: Any) -> Array:
        items, shape = self._list(node["items"]), _shape(node["shape"])
        if math.prod(shape) != len(items):
            raise InputError(f"{len(items)} objects do not fill an array of shape {shape}")
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # one by one: NumPy would unpack sequences
            flat[i] = item
        return flat.reshape(shape)

    def _table(self, node: Any) -> Array:
        shape = _shape(node["table"])
        columns = [(_as(str, name), self.value(column)) for name, column in node["columns"]]
        if not columns or any(_as(np.ndarray, column).shape != shape for _, column in columns):
            raise InputError("the columns of a table must have the shape of the table")
        table = np.empty(shape, dtype=[(name, column.dtype) for name, column in columns])
        for name, column in columns:
            table[name] = column
        return table

    def _csr(self, node: Any) -> Any:
        from scipy.sparse import csr_array, csr_matrix

        kinds = {"csr_array": csr_array, "csr_matrix": csr_matrix}
        parts = tuple(_as(np.ndarray, self.value(node[name])) for name in CSR_PARTS)
        shape = _shape(node["shape"])
        if [p.ndim for p in parts] != [1, 1, 1] or len(shape) != 2:
            raise InputError("the parts of a sparse matrix are not vectors")
        X = kinds[node["csr"]](parts, shape=shape)
        X.check_format(full_check=True)  # SciPy would read where a wrong index says
        return X


def _scalar(decoder: _Decoder, content: Any) -> Any:
    name, value = content[0], decoder.value(content[1])
    if name in ("U", "S"):
        return np.str_(_as(str, value)) if name == "U" else np.bytes_(_as(bytes, value))
    dtype = np.dtype(_as(str, name))
    if dtype not in DTYPES:
        raise InputError(f"it holds a number of type {name!r}, which is not saved")
    return dtype.type(_as((bool, int, float, complex), value))


def _complex(decoder: _Decoder, content: Any) -> complex:
    real, imag = (float(decoder.value(part)) for part in content)
    return complex(real, imag)


_VALUES: dict[str, Callable[[_Decoder, Any], Any]] = {
    "int": lambda _, content: int(_as(str, content), 16),
    "float": lambda _, content: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[content],
    "complex": _complex,
    "bytes": lambda _, content: base64.b64decode(_as(str, content), validate=True),
    "tuple": lambda decoder, content: tuple(decoder._list(content)),
    "set": lambda decoder, content: set(decoder._list(content)),
    "frozenset": lambda decoder, content: frozenset(decoder._list(content)),
    "dict": _Decoder._dict,
    "enum": _Decoder._enum,
    "scalar": _scalar,
    "ref": _Decoder._ref,
}

_NODES: dict[str, Callable[[_Decoder, Any], Any]] = {
    "kind": _Decoder._object,
    "array": _Decoder._array,
    "items": _Decoder._items,
    "table": _Decoder._table,
    "csr": _Decoder._csr,
}


def _as(kind: Any, content: Any) -> Any:
    """The content, if it is of that kind."""
    if not isinstance(content, kind):
        raise TypeError(f"{content!r:.50} is out of place")
    return content


def _shape(content: Any) -> tuple[int, ...]:
    if not all(type(length) is int and length >= 0 for length in _as(list, content)):
        raise InputError(f"{content} is not the shape of an array")
    return tuple(content)
