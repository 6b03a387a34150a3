"""Checkpoints of long computations: saved states that the same computation can resume from.

A loop asks for its place with `checkpointed(task, *problem)`, where the problem is everything that
determines what it computes. It resumes from `found`, if an earlier run saved a state, and passes
its own state to `keep` after each step. Nothing happens outside of `mercer.io.checkpoint`, which
writes the states to a file.
"""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from mercer._array import Array, is_sparse
from mercer._progress import is_interrupted
from mercer._status import Status
from mercer.exceptions import InputError, MercerWarning

State = dict[str, Any]  # numbers, strings and arrays by name
_BLOCK = 1 << 24  # bytes that are copied at a time


class Store:
    """States by the key of their computation, written to a file at most every `every` seconds."""

    def __init__(
        self, write: Callable[[Mapping[str, State], list[str]], None], every: float, name: str
    ) -> None:
        self.write, self.every, self.name = write, every, name
        self.states: dict[str, State] = {}
        self.earlier: list[str] | None = None  # keys that an earlier run began, in that order
        self.begun: list[str] = []
        self._last, self._lock = monotonic(), threading.Lock()

    def begin(self, task: str, problem: str) -> tuple[str, State | None]:
        """The key of a computation, and its state in an earlier run."""
        with self._lock:
            count = sum(key.startswith(f"{task} {problem}") for key in self.begun)
            key = f"{task} {problem} {count}"
            if not self.begun and self.earlier and key not in self.earlier:
                raise InputError(
                    f"{self.name} holds the checkpoint of another computation: its data, "
                    "parameters, random numbers or version of mercer differ. Delete it to start "
                    "again, or name another file; to resume later, give random_state a number"
                )
            self.begun.append(key)
            return key, self.states.get(key)

    def keep(self, key: str, make: Callable[[], State], last: bool) -> None:
        """Take the state of a computation; write the file if it is time."""
        with self._lock:
            due = monotonic() - self._last >= self.every
            if due or last:
                self.states[key] = make()
            if due:
                self._flush()

    def flush(self) -> None:
        """Write the file now."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        started = list(dict.fromkeys([*(self.earlier or []), *self.begun]))
        try:
            self.write(self.states, started)
        except OSError as error:  # the computation is worth more than its checkpoint
            problem = error.strerror or error
            warnings.warn(
                f"the checkpoint {self.name} cannot be written ({problem}); the computation goes "
                "on without it",
                MercerWarning,
                stacklevel=2,
            )
        self._last = monotonic()

    def forget(self, key: str) -> None:
        with self._lock:
            self.states.pop(key, None)


class Place:
    """Where one computation keeps its state. `found` is that of an earlier run, or None."""

    def __init__(self, store: Store | None, key: str = "", found: State | None = None) -> None:
        self._store, self._key, self.found = store, key, found
        self._started = monotonic()

    @property
    def is_kept(self) -> bool:
        """Whether a state passed to `keep` is stored."""
        return self._store is not None

    def keep(self, make: Callable[[], State], *, last: bool = False) -> None:
        """Store the state that the function `make` copies.

        With `last` it is copied now, because no later one follows.
        """
        if self._store is not None:
            self._store.keep(self._key, make, last)

    def forget_if_short(self) -> None:
        """Drop the state of a computation that took less than the time between two states."""
        if self._store is not None and monotonic() - self._started < self._store.every:
            self._store.forget(self._key)


_store: ContextVar[Store | None] = ContextVar("checkpoint", default=None)


def checkpointed(task: str, *problem: Any) -> Place:
    """The place of a computation that is determined by its task and its problem.

    If the same computation runs several times, places are told apart by their order.
    """
    store = _store.get()
    if store is None or is_interrupted():  # what begins now has only a part of its input
        return Place(None)
    return Place(store, *store.begin(task, fingerprint(problem)))


def using_store(store: Store | None) -> Any:
    """Store all states here from now on; the returned token undoes it."""
    return _store.set(store)


def stop_using(token: Any) -> None:
    _store.reset(token)


def fingerprint(*values: Any) -> str:
    """A hash of values: of all entries of arrays, of functions by their names.

    Callable objects, such as kernels, are hashed by their class and parameters.
    """
    hashed = hashlib.blake2b(digest_size=16)
    _add(hashed, values)
    return hashed.hexdigest()


def _add(hashed: Any, value: Any) -> None:
    hashed.update(f"<{type(value).__name__}>".encode())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        hashed.update(f"{value.dtype.str}{value.shape}".encode())
        rows = max(1, _BLOCK // max(1, value[:1].nbytes)) if value.ndim else 1
        for start in range(0, len(value) if value.ndim else 0, rows):
            hashed.update(value[start : start + rows].tobytes())
        hashed.update(value.tobytes() if not value.ndim else b"")
    elif isinstance(value, Enum):
        hashed.update(value.name.encode())
    elif hasattr(value, "__qualname__"):  # functions and classes
        hashed.update(f"{getattr(value, '__module__', '')}.{value.__qualname__}".encode())
    elif isinstance(known := getattr(value, "fingerprint", None), str):
        hashed.update(known.encode())
    elif (parts := _parts(value)) is not None:
        hashed.update(str(len(parts)).encode())
        for part in parts:
            _add(hashed, part)
    else:  # numbers and strings
        hashed.update(repr(value).encode())


def _parts(value: Any) -> Any:
    """What determines a value besides its class; None if it has no parts."""
    if is_sparse(value):
        return value.shape, value.data, value.indices, value.indptr
    if is_dataclass(value):
        return [(f.name, getattr(value, f.name)) for f in fields(value)]
    if isinstance(value, Mapping):
        return sorted(value.items())
    if isinstance(value, set | frozenset):  # whose order varies from process to process
        return sorted(map(fingerprint, value))
    if isinstance(value, np.ndarray) and value.dtype.names:
        return [(name, value[name]) for name in value.dtype.names]
    if isinstance(value, list | tuple | np.ndarray):
        return value
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if hasattr(value, "get_params"):
        return _parts(value.get_params(deep=False))
    return _parts(value.__dict__) if callable(value) and hasattr(value, "__dict__") else None


def as_names(status: Array) -> Array:
    """Statuses as an array that can be written."""
    return np.array([one.name for one in status], dtype=str)


def as_statuses(names: Any) -> Array:
    """Statuses from their names."""
    out = np.empty(len(names), dtype=object)
    out[:] = [Status[str(name)] for name in names]
    return out


def generator_state(rng: np.random.Generator) -> str:
    """The state of a random generator as text."""
    return json.dumps(rng.bit_generator.state, default=lambda array: array.tolist())


def set_generator_state(rng: np.random.Generator, text: str) -> None:
    """Let a generator continue from a state."""
    rng.bit_generator.state = json.loads(text)
