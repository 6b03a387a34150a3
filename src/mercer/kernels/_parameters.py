"""Parameters of kernels: `get_params`, `replace`, equality, hashing, copying and pickling."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np

from mercer._array import frozen, instance, positive_length
from mercer.exceptions import InputError

T = TypeVar("T")
_CACHED = ("program", "domain")


def checked(**checks: Callable[[Any, str], Any]) -> Callable[[type[T]], type[T]]:
    """Pass fields of a frozen dataclass through check(value, name), before its `__post_init__`."""

    def decorate(kind: type[T]) -> type[T]:
        further = kind.__dict__.get("__post_init__")

        def post_init(self: T) -> None:
            for name, check in checks.items():
                object.__setattr__(self, name, check(getattr(self, name), name))
            if further is not None:
                further(self)

        kind.__post_init__ = post_init  # type: ignore[attr-defined]
        return kind

    return decorate


def optional(check: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """The check, with None passed through."""
    return lambda value, name: None if value is None else check(value, name)


def squared_length(value: Any, name: str) -> float:
    """A squared length, between 1e-150 and 1e150."""
    return positive_length(value, name, limit=1e150)


def an_instance(kind: type) -> Callable[[Any, str], Any]:
    return lambda value, name: instance(value, kind, name)


def callable_function(value: Any, name: str) -> Any:
    if not callable(value):
        raise InputError(f"{name} must be a function, got {type(value).__name__}")
    return value


class Parametrized:
    """An immutable object that is described by its parameters."""

    def __new__(cls, *_: Any, **params: Any) -> Self:
        if "gamma" in params and hasattr(cls, "from_gamma"):
            name = cls.__name__
            raise TypeError(f"{name} has no parameter gamma; use {name}.from_gamma(gamma=...)")
        return super().__new__(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; those of nested kernels as `name__parameter`."""
        params = {name: getattr(self, name) for name in _parameter_names(type(self))}
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Parametrized):
                    inner = value.get_params(deep=True)
                    params |= {f"{name}__{key}": inner[key] for key in inner}
        return params

    def replace(self, **params: Any) -> Self:
        """Return the kernel with some parameters changed, nested ones as `name__parameter`."""
        own: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in self.get_params(deep=False):
                known = ", ".join(self.get_params(deep=True)) or "none"
                raise InputError(f"{type(self).__name__} has no parameter {key!r}; it has {known}")
            if rest:
                nested.setdefault(name, {})[rest] = value
            else:
                own[name] = value
        for name, changes in nested.items():
            inner = own.get(name, getattr(self, name))
            if not isinstance(inner, Parametrized):
                key = f"{name}__{next(iter(changes))}"
                raise InputError(f"{name} is not a kernel, so there is no parameter {key!r}")
            own[name] = inner.replace(**changes)
        return type(self)(**{**self.get_params(deep=False), **own})

    def __sklearn_clone__(self) -> Self:
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((type(self), *sorted(self.__getstate__().items())))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _CACHED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        frozen_state = {k: frozen(v) if isinstance(v, np.ndarray) else v for k, v in state.items()}
        self.__dict__.update(frozen_state)


def _parameter_names(kind: type) -> list[str]:
    """The fields of a dataclass, or the arguments of a plain class."""
    names = getattr(kind, "__dataclass_fields__", None)
    if names is not None:
        return list(names)
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return []
    return list(inspect.signature(kind).parameters)
