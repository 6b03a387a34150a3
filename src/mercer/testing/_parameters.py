"""Check that a kernel is an immutable value: parameters, equality, copies and repr."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer import kernels
from mercer.engine import Map
from mercer.kernels import Domain, Kernel
from mercer.testing._report import fail, require


def check_parameters(kernel: Kernel) -> None:
    """Check all laws of values."""
    own, inside = kernel.get_params(deep=False), list(_kernels(kernel))
    for inner in inside:
        name, advice = type(inner).__name__, "put @dataclass(frozen=True) on the class"
        decorated = "__dataclass_fields__" in vars(type(inner))
        require(decorated, inner, f"does not compare by value; {advice} {name}")
    _check_same(kernel, type(kernel)(**own), "rebuilt")
    require(kernel.replace() == kernel, kernel, "replace() without arguments changes it")
    everything = kernel.get_params(deep=True)
    complete = own.items() <= everything.items()
    require(complete, kernel, "get_params(deep=True) lacks some of its own parameters")
    require(kernel.replace(**everything) == kernel, kernel, "replace(**get_params()) changes it")
    require(kernel != kernel + 1.0, kernel, "equals another kernel")
    require(kernel.__sklearn_clone__() is kernel, kernel, "its clone is not the kernel itself")
    _check_same(kernel, copy.copy(kernel), "copied")
    _check_same(kernel, copy.deepcopy(kernel), "deep-copied")
    if not any(_holds_a_function(v) for k in inside for v in k.get_params(deep=False).values()):
        _check_same(kernel, _from_text(kernel), "evaluated from its repr")
        if not any("<locals>" in type(k).__qualname__ for k in inside):
            _check_same(kernel, pickle.loads(pickle.dumps(kernel)), "pickled and loaded")
    _check_frozen(kernel)


def _holds_a_function(value: Any) -> bool:
    """Whether a parameter is a function, whose repr cannot be evaluated."""
    inside = getattr(value, "function", value) if isinstance(value, Map) else value
    return callable(inside) and not isinstance(inside, Kernel)


def _check_same(kernel: Kernel, other: Any, how: str) -> None:
    require(other == kernel, kernel, f"{how}, it is not equal to itself: {other!r}")
    require(hash(other) == hash(kernel), kernel, f"{how}, it is equal but has another hash")
    require(repr(other) == repr(kernel), kernel, f"{how}, its repr is {other!r}")
    require(other.program.profile is not None, kernel, f"{how}, it no longer works")
    _check_frozen(other)


def _from_text(kernel: Kernel) -> Any:
    """Evaluate the repr with the public kernels, and the classes that the kernel contains."""
    names = {name: getattr(kernels, name) for name in kernels.__all__}
    names |= {type(k).__name__: type(k) for k in _kernels(kernel)} | {"Domain": Domain}
    try:
        return eval(repr(kernel), names)
    except Exception as error:  # noqa: BLE001  (any error is a failure)
        fail(kernel, f"its repr cannot be evaluated: {type(error).__name__}, {error}")


def _check_frozen(kernel: Kernel) -> None:
    """Attributes cannot be set, and arrays cannot be written to."""
    items = ((k, *item) for k in _kernels(kernel) for item in k.get_params(deep=False).items())
    for owner, name, value in items:
        try:
            setattr(owner, name, value)
        except AttributeError:
            pass
        else:
            fail(kernel, f"is not immutable: {type(owner).__name__}.{name} can be set")
        array = getattr(value, "array", value) if isinstance(value, Map) else value
        if isinstance(array, np.ndarray):
            require(not array.flags.writeable, kernel, f"is not immutable: {name} is writeable")


def _kernels(kernel: Kernel) -> Iterator[Kernel]:
    yield kernel
    for value in kernel.get_params(deep=False).values():
        if isinstance(value, Kernel):
            yield from _kernels(value)
