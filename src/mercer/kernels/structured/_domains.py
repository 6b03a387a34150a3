"""Domains of points that are not vectors: sequences of tokens, and finite sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import frozen
from mercer._frames import items_of
from mercer.exceptions import DomainError, InputError
from mercer.kernels._domain import Domain


class _Collection(Domain):
    """Points that are collections of hashable things, held in a one-dimensional object array."""

    def check(self, X: Any, name: str) -> Any:
        """A one-dimensional array of points, each checked; the given array if nothing changes."""
        X = items_of(X)
        _check_listed(X, name)
        out = np.empty(len(X), dtype=object)
        for i, x in enumerate(X):
            out[i] = self._point(x, f"{name} at position {i}")
        same = isinstance(X, np.ndarray) and X.dtype == object
        if same and all(a is b for a, b in zip(X, out, strict=True)):
            return frozen(X)
        return frozen(out)

    @abstractmethod
    def _point(self, x: Any, where: str) -> Any:
        """One point in the form in which it is kept."""


@dataclass(frozen=True)
class Sequences(_Collection):
    """Strings, bytes, and lists or tuples of hashable tokens.

    A list of tokens becomes a tuple. Two sequences are equal if their tokens are.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.kernels.FromFunction(lambda S, T: [[float(s[0] == t[0]) for t in T] for s in S],
    ...                     on=mc.kernels.Sequences())
    >>> k(["ab", ["a", "c"]], ["ax"])
    array([[1.],
           [1.]])
    """

    def _point(self, x: Any, where: str) -> Any:
        if isinstance(x, str | bytes):
            return x
        _check_present(x, where, "sequence")
        if isinstance(x, np.ndarray) and x.ndim == 1:
            x = x.tolist()
        if isinstance(x, AbstractSet | Mapping):
            raise DomainError(f"{where} is a {type(x).__name__}, which has no order; use a list")
        if not isinstance(x, Sequence):
            raise DomainError(
                f"{where} is {_kind(x)}, not a sequence; points are strings, bytes, or lists of "
                "tokens"
            )
        tokens = x if type(x) is tuple else tuple(x)
        _check_hashable(tokens, where, "tokens")
        return tokens


@dataclass(frozen=True)
class Sets(_Collection):
    """Finite sets of hashable elements, kept as `frozenset`.

    Lists, tuples and one-dimensional arrays are taken as the sets of their elements. Strings are
    refused, since they could be meant as one element, as words or as letters.

    Examples
    --------
    >>> import mercer as mc
    >>> def common(A, B):
    ...     return [[float(len(a & b)) for b in B] for a in A]
    >>> k = mc.kernels.FromFunction(common, on=mc.kernels.Sets())
    >>> k([{1, 2}, [2, 2, 3]])
    array([[2., 1.],
           [1., 2.]])
    """

    def _point(self, x: Any, where: str) -> Any:
        if isinstance(x, str | bytes):
            raise DomainError(
                f"{where} is the {type(x).__name__} {x!r}; use {{x}} for a set of one element, "
                "set(x.split()) for its words, set(x) for its letters"
            )
        _check_present(x, where, "set")
        if isinstance(x, Mapping):
            raise DomainError(f"{where} is a {type(x).__name__}; use set(x) for its keys")
        if isinstance(x, np.ndarray):
            x = x.tolist() if x.ndim == 1 else None
        if not isinstance(x, Iterable):
            raise DomainError(
                f"{where} is {_kind(x)}, not a set; points are sets or lists of hashable elements"
            )
        elements = x if type(x) is frozenset else tuple(x)
        _check_hashable(elements, where, "elements")
        return frozenset(elements)


def _check_listed(X: Any, name: str) -> None:
    if isinstance(X, str | bytes):
        raise DomainError(
            f"{name} must be a list of points, got a {type(X).__name__}; use [{name}]"
        )
    if hasattr(X, "columns"):
        raise DomainError(f"{name} must be a list of points, got a table; use one of its columns")
    if isinstance(X, np.ndarray) and X.ndim != 1:
        raise DomainError(
            f"{name} must be a list of points, got an array of shape {X.shape}; use list({name}) "
            "if each row is a point"
        )
    if isinstance(X, AbstractSet | Mapping) or not hasattr(X, "__len__"):
        raise DomainError(f"{name} must be a list of points, got {type(X).__name__}")
    if len(X) == 0:
        raise InputError(f"{name} has no points: at least one is needed")


def _check_present(x: Any, where: str, what: str) -> None:
    if x is None or is_missing(x):
        raise DomainError(f"{where} has no {what} but {x}; drop such points or fill them in")


def _check_hashable(things: Iterable[Any], where: str, what: str) -> None:
    """Raise unless the things are hashable and equal to themselves."""
    for thing in things:
        try:
            hash(thing)
            if thing == thing:
                continue
        except (TypeError, ValueError):
            pass
        cure = "drop it" if is_missing(thing) else "use tuples in place of lists"
        raise DomainError(f"{where} has {what} that cannot be compared ({thing!r}); {cure}")


def is_missing(x: Any) -> bool:
    """Whether x is missing: NaN or NaT, which differ from themselves, or pandas.NA."""
    try:
        return bool(x != x)
    except TypeError:
        return True
    except ValueError:  # an array
        return False


def _kind(x: Any) -> str:
    return "an array of several dimensions" if x is None else f"{type(x).__name__} ({x!r})"
