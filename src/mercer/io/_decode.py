"""Build objects from a description: only registered classes, and only with their constructors."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from mercer._array import Array, Points
from mercer.exceptions import InputError, MercerError
from mercer.io._encode import CSR_PARTS, DTYPES, FORMAT, is_type
from mercer.io._objects import build, is_free
from mercer.io._registry import OWN, class_of
from mercer.kernels import Kernel
from mercer.space import Element

Fetch = Callable[[str, str, tuple[int, ...]], Array]

_PLAIN = {type(None), bool, int, float, str}
_WRONG = ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError

# Files that refer to one object many times could cost far more than their size. Limits:
_MOST_NODES = 300_000  # repeated objects in all trees of objects; about two seconds of building
_MOST_BYTES = 4  # arrays that constructors check or copy, as a multiple of the arrays in the file
_SMALL_BYTES = 1 << 24  # may be checked or copied in any case
_MOST_COLLISIONS = 100  # members of a set or dict with the same hash; n of them cost n^2 steps


def decode(document: Any, fetch: Fetch) -> Any:
    """Build the object; `fetch(member, dtype, shape)` returns an array."""
    if not isinstance(document, dict) or type(document.get("format")) is not int:
        raise InputError("its description has no format number")
    version = str(document.get("mercer"))
    if document["format"] != FORMAT:
        raise InputError(
            f"it was written by mercer {version} in format {document['format']}, but this version "
            f"reads format {FORMAT}; use a newer mercer"
        )
    try:
        decoder = _Decoder(fetch, version, len(document["objects"]))
        for node in document["objects"]:
            before = decoder.nodes_left
            decoder.known.append(decoder.node(node))
            decoder.sizes.append(1 + before - decoder.nodes_left)
        return decoder.value(document["root"])
    except MercerError:
        raise
    except RecursionError:
        raise InputError("its description is nested too deeply") from None
    except _WRONG as error:
        raise InputError(f"its description is damaged ({error})") from error


class _Decoder:
    """Builds objects in the order of the list."""

    def __init__(self, fetch: Fetch, version: str, n_objects: int) -> None:
        self.fetch, self.version = fetch, version
        self.known: list[Any] = []  # the objects built so far
        # how many objects each of them contains, shared ones counted as often as they occur
        self.sizes: list[int] = []
        self.nodes_left, self.bytes_left = _MOST_NODES + 2 * n_objects, _SMALL_BYTES
        # points and what a domain made of them: elements that share points check them once
        self.checked: dict[int, tuple[Any, Points]] = {}

    # --- values -------------------------------------------------------------------------------

    def value(self, x: Any) -> Any:
        if type(x) in _PLAIN:
            return x
        if isinstance(x, list):
            return self._list(x)
        ((tag, content),) = x.items()
        if tag not in _VALUES:
            raise InputError(f"it contains a value of unknown type, {tag!r}")
        return _VALUES[tag](self, content)

    def _list(self, content: Any) -> list[Any]:
        if isinstance(content, dict):
            return self._strings(**content)
        items: list[Any] = _as(list, content)
        return items if _PLAIN.issuperset(map(type, items)) else [self.value(i) for i in items]

    def _strings(self, strings: Any) -> list[Any]:
        """Cut a text into strings; in memory each has some 60 bytes besides its own."""
        text, lengths = (_as(np.ndarray, self.value(array)) for array in strings)
        self.bytes_left -= text.nbytes + 60 * lengths.size
        if text.dtype != np.uint8 or lengths.dtype.kind != "i" or self.bytes_left < 0:
            raise InputError("its strings are not bytes and lengths, or are too many")
        ends = np.cumsum(lengths)
        within = np.all((lengths >= 0) & (lengths <= text.size))
        if not within or (ends[-1] if ends.size else 0) != text.size:
            raise InputError("its strings have another length than their text")
        whole = text.tobytes()
        cuts = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
        return [whole[start:end].decode("utf-8", "surrogatepass") for start, end in cuts]

    def _members(self, content: Any) -> list[Any]:
        """Members of a set or keys of a dict; refuse many with the same hash."""
        members = self._list(content)
        if max(Counter(map(hash, members)).values(), default=0) > _MOST_COLLISIONS:
            raise InputError("it contains a set or dict of values with equal hashes")
        return members

    def _dict(self, content: Any) -> dict[Any, Any]:
        keys = self._members([key for key, _ in _as(list, content)])
        return dict(zip(keys, (self.value(value) for _, value in content), strict=True))

    def _ref(self, content: Any) -> Any:
        if type(content) is not int or not 0 <= content < len(self.known):
            raise InputError(f"it refers to object {content!r}, which does not precede it")
        self.nodes_left -= self.sizes[content]
        if self.nodes_left < 0:
            raise InputError("it contains objects that are nested and shared too often")
        return self.known[content]

    def _charge(self, *values: Any) -> None:
        """Count the bytes of arrays that will be checked or copied."""
        self.bytes_left -= _nbytes(values)
        if self.bytes_left < 0:
            raise InputError("it refers to the same arrays too often")

    def _enum(self, content: Any) -> Enum:
        name, member = content
        cls = self._class(name)
        if not issubclass(cls, Enum):
            raise InputError(f"{name} is not an Enum")
        return cls[member]

    def _class(self, name: Any) -> type:
        cls = class_of(_as(str, name))
        if cls is not None:
            return cls
        if name.startswith(OWN):
            raise InputError(
                f"it contains {name!r}, which this version of mercer lacks (written by mercer "
                f"{self.version})"
            )
        raise InputError(
            f"it contains {name!r}, which is not registered; import or define the class, and call "
            "mercer.io.register on it before mercer.load"
        )

    # --- objects ------------------------------------------------------------------------------

    def node(self, node: Any) -> Any:
        """Build an object of the list `objects`."""
        for tag, read in _NODES.items():
            if tag in node:
                return read(self, node)
        raise InputError(f"it contains an object of unknown kind, {sorted(node)}")

    def _object(self, node: Any) -> Any:
        cls = self._class(node["kind"])
        parts = {name: self.value(part) for name, part in node["parts"].items()}
        try:
            if issubclass(cls, Enum):
                raise InputError("members of an Enum have no parts")
            if cls is Element:
                self._share_points(parts)
            elif not is_free(cls):
                self._charge(*parts.values())
            return build(cls, parts)
        except (MercerError, *_WRONG) as error:
            raise InputError(f"{cls.__name__} cannot be built: {error}") from error

    def _share_points(self, parts: dict[str, Any]) -> None:
        """Check the points of an element, unless an earlier element shares them."""
        kernel, points = parts.get("kernel"), parts.get("points")
        if not isinstance(kernel, Kernel):
            return
        _, checked = self.checked.get(id(points), (None, None))
        if checked is None or checked.domain != kernel.domain:
            self._charge(points)
            checked = kernel.points(points, "points")
            self.checked[id(points)] = points, checked  # kept alive, so that its id stays its own
        parts["points"] = checked

    def _array(self, node: Any) -> Array:
        name, dtype = _as(str, node["array"]), _as(str, node["dtype"])
        array = self.fetch(name, dtype, _shape(node["shape"]))
        self.bytes_left += _MOST_BYTES * array.nbytes
        return array

    def _items(self, node: Any) -> Array:
        items, shape = self._list(node["items"]), _shape(node["shape"])
        if math.prod(shape) != len(items):
            raise InputError(f"{len(items)} objects do not fill an array of shape {shape}")
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # NumPy would unpack sequences if assigned at once
            flat[i] = item
        return flat.reshape(shape)

    def _table(self, node: Any) -> Array:
        shape = _shape(node["table"])
        columns = [(_as(str, name), self.value(column)) for name, column in node["columns"]]
        if not columns or any(_as(np.ndarray, column).shape != shape for _, column in columns):
            raise InputError("the columns of a table must have the shape of the table")
        self._charge(*(column for _, column in columns))
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
        self._charge(*parts)
        X = kinds[node["csr"]](parts, shape=shape)
        X.check_format(full_check=True)  # SciPy would read memory outside an array at a wrong index
        return X


def _scalar(decoder: _Decoder, content: Any) -> Any:
    name, value = content[0], decoder.value(content[1])
    if name in ("U", "S"):
        return np.str_(_as(str, value)) if name == "U" else np.bytes_(_as(bytes, value))
    dtype = np.dtype(_as(str, name))
    if dtype not in DTYPES:
        raise InputError(f"it contains a number of unsupported type {name!r}")
    return dtype.type(_as((bool, int, float, complex), value))


def _dtype(_: _Decoder, content: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(_as(str, content))
    if not is_type(dtype):
        raise InputError(f"it contains the unsupported type {dtype}")
    return dtype


def _complex(decoder: _Decoder, content: Any) -> complex:
    real, imag = (float(decoder.value(part)) for part in content)
    return complex(real, imag)


_VALUES: dict[str, Callable[[_Decoder, Any], Any]] = {
    "int": lambda _, content: int(_as(str, content), 16),
    "float": lambda _, content: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[content],
    "complex": _complex,
    "bytes": lambda _, content: base64.b64decode(_as(str, content), validate=True),
    "list": _Decoder._list,
    "tuple": lambda decoder, content: tuple(decoder._list(content)),
    "set": lambda decoder, content: set(decoder._members(content)),
    "frozenset": lambda decoder, content: frozenset(decoder._members(content)),
    "dict": _Decoder._dict,
    "dtype": _dtype,
    "type": lambda decoder, content: _dtype(decoder, content).type,
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
    if not isinstance(content, kind):
        raise TypeError(f"unexpected {content!r:.50}")
    return content


def _nbytes(value: Any) -> int:
    """The size of an array, or of all arrays in a container."""
    if isinstance(value, dict):
        return _nbytes(tuple(value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_nbytes, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0


def _shape(content: Any) -> tuple[int, ...]:
    if not all(type(length) is int and length >= 0 for length in _as(list, content)):
        raise InputError(f"{content} is not the shape of an array")
    return tuple(content)
