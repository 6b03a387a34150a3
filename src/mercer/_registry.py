"""Which classes can be saved to a file, and the names under which a file knows them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar, overload

from mercer.exceptions import InputError

T = TypeVar("T", bound=type)

OWN = "mercer."  # names that start so are ours

_classes: dict[str, type] = {}
_names: dict[type, str] = {}


@overload
def register(cls: T, *, name: str | None = None) -> T: ...
@overload
def register(cls: None = None, *, name: str | None = None) -> Callable[[T], T]: ...
def register(cls: T | None = None, *, name: str | None = None) -> T | Callable[[T], T]:
    """Let objects of a class be saved and loaded; also as a decorator.

    A file names classes, and `mercer.load` builds only those that were registered under that name:
    nothing is imported because a file asks for it. mercer's own classes are registered.

    Parameters
    ----------
    cls : type
        A dataclass whose fields are its parameters (a kernel, a map of points, a solver), an Enum,
        or a class with `get_params` (an estimator; a kernel that is no dataclass). Dataclasses are
        built again by calling the class with its fields, so its own checks run. An estimator is
        built with its parameters, and gets its other attributes; those that can be made again, and
        need not be saved, the class lists in `_unsaved_attributes`.
    name : str, optional
        How files know it; by default the name of the class. Under a second name a class that was
        renamed can still be loaded from old files; it is saved under its first.

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
    if cls is None:
        return lambda cls: register(cls, name=name)
    if not isinstance(cls, type):
        raise InputError(f"register takes a class, got {cls!r}")
    if not is_savable(cls):
        raise InputError(
            f"{cls.__qualname__} must be a dataclass, an Enum, or have get_params: otherwise "
            "nothing says what its objects are made of"
        )
    name = cls.__name__ if name is None else name
    if not isinstance(name, str) or not name or name.startswith(OWN):
        raise InputError(f"name must be a string that does not start with {OWN!r}, got {name!r}")
    add(name, cls)
    return cls


def add(name: str, cls: type) -> None:
    """Put a class in the table, ours included; a class that was defined again replaces itself."""
    old = _classes.get(name, cls)
    if _definition(old) != _definition(cls):
        raise InputError(
            f"{name!r} already stands for {'.'.join(_definition(old))}; register the other class "
            "under a name of its own"
        )
    if old is not cls:
        _names.pop(old, None)
    _classes[name] = cls
    _names.setdefault(cls, name)


def class_of(name: str) -> type | None:
    """The class that files know by this name, None if there is none."""
    return _classes.get(name)


def name_of(cls: type) -> str | None:
    """The name of a class in files, None if it has none."""
    return _names.get(cls)


def is_savable(cls: Any) -> bool:
    """Whether objects of a class say what they are made of."""
    if not isinstance(cls, type):
        return False
    return dataclasses.is_dataclass(cls) or issubclass(cls, Enum) or hasattr(cls, "get_params")


def _definition(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
