"""Progress of long computations: steps, callbacks, and a bar on stderr."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from mercer.exceptions import InputError

T = TypeVar("T")

_OFTEN, _SELDOM = 0.2, 10.0  # seconds between two states of a bar: in place, and in a log file
_WIDTH = 79  # of the line, blanks included, so that a shorter text covers a longer one


@dataclass(frozen=True)
class Step:
    """What a callback receives after each iteration; the iteration stops if it returns True.

    Attributes
    ----------
    n_iter : int
        Iterations done.
    residual : float
        The largest relative residual of what is still iterating; if the number of iterations is
        known, the fraction of them that is left.
    task : str
        What is computed.
    total : int or None
        The number of iterations, if it is known.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer import linalg
    >>> steps = []
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 0.0, 1.0]
    >>> _ = linalg.solve(mc.Gaussian(1.0), X, y, 0.1, method="cg", callback=steps.append)
    >>> steps[-1].residual < 1e-8
    True
    """

    n_iter: int
    residual: float
    task: str = ""
    total: int | None = None


Callback: TypeAlias = Callable[[Step], Any]
_watchers: ContextVar[tuple[Callback, ...]] = ContextVar("watchers", default=())


def check_callback(callback: Any) -> None:
    """Raise unless the callback is a function or None."""
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function or None, got {type(callback).__name__}")


@contextmanager
def watched(callback: Callback) -> Iterator[None]:
    """Within this context the callback receives the steps of everything that iterates."""
    token = _watchers.set((*_watchers.get(), callback))
    try:
        yield
    finally:
        _watchers.reset(token)


def is_watched() -> bool:
    """Whether any callback is watching, for steps that are costly to describe."""
    return bool(_watchers.get())


def report(
    task: str,
    n_iter: int = 0,
    residual: float = 1.0,
    *,
    total: int | None = None,
    callback: Callback | None = None,
) -> bool:
    """Report a step to the callback and all watchers; True if one of them says stop."""
    listeners = _watchers.get() if callback is None else (*_watchers.get(), callback)
    if not listeners:
        return False
    step = Step(n_iter, residual, task, total)
    answers = [listener(step) for listener in listeners]  # everybody hears it
    return any(answers)


class Interruption:
    """A request to stop, such as Ctrl-C: it ends every iteration that it watches.

    Attributes
    ----------
    requested : bool

    Examples
    --------
    >>> import mercer as mc
    >>> with mc.io.checkpoint(None) as ctrl_c:
    ...     pass
    >>> ctrl_c.requested
    False
    """

    def __init__(self) -> None:
        self.requested = False

    def __call__(self, step: Step) -> bool:
        return self.requested


def is_interrupted() -> bool:
    """Whether all iterations in this context should stop."""
    return any(isinstance(one, Interruption) and one.requested for one in _watchers.get())


def tracked(items: Sequence[T], task: str) -> Iterator[T]:
    """Yield the items and report progress before each."""
    n = len(items)
    if n == 1:
        report(task)
        yield items[0]
        return
    try:
        for i, item in enumerate(items):
            if is_interrupted():  # these loops have no partial result
                raise KeyboardInterrupt
            report(task, i, 1.0 - i / n, total=n)
            yield item
    finally:
        report(task, n, 0.0, total=n)


@contextmanager
def progress_bar(label: str, *, keep: bool = True) -> Iterator[None]:
    """Show the steps of what runs in this context; `keep` leaves the time it took on the screen.

    A bar inside another one shows nothing.
    """
    if any(isinstance(watcher, _Bar) for watcher in _watchers.get()) or sys.stderr is None:
        yield
        return
    bar = _Bar(label, sys.stderr)
    try:
        with watched(bar):
            yield
    except BaseException:
        keep = False
        raise
    finally:
        bar.close(keep)


class _Bar:
    """One line of text with the latest step, drawn by a separate thread.

    So the clock keeps running during a long call that reports nothing, and a step costs only an
    assignment. Inside a loop of known length, the line starts with its progress.
    """

    def __init__(self, label: str, stream: Any) -> None:
        self._label, self._stream, self._start = label, stream, perf_counter()
        self._step: Step | None = None
        self._loops: dict[str, Step] = {}  # of known length, the outermost first
        notebook = type(stream).__module__.startswith("ipykernel")
        self._in_place = notebook or stream.isatty()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __call__(self, step: Step) -> None:
        if step.total is None:
            self._step = step
        elif step.n_iter < step.total:
            self._loops[step.task], self._step = step, None
        else:
            self._loops.pop(step.task, None)

    def close(self, keep: bool) -> None:
        self._over.set()
        self._thread.join()
        self._step, self._loops = None, {}
        if keep:
            self._write(self._text(), "\n")
        elif self._in_place:
            self._write("", "\r")

    def _run(self) -> None:
        while not self._over.wait(_OFTEN if self._in_place else _SELDOM):
            self._write(self._text(), "" if self._in_place else "\n")

    def _write(self, text: str, end: str) -> None:
        with suppress(OSError, ValueError):  # the stream was closed
            self._stream.write(f"\r{text:<{_WIDTH}}{end}" if self._in_place else f"{text}{end}")
            self._stream.flush()

    def _text(self) -> str:
        parts = [self._label] if self._label else []
        for i, loop in enumerate(list(self._loops.values())):
            done = round(20 * loop.n_iter / (loop.total or 1))
            bar = f"[{'#' * done:.<20}] " if i == 0 else ""
            parts.append(f"{loop.task} {bar}{loop.n_iter}/{loop.total}")
        step = self._step
        if step is not None:
            state = f" {step.n_iter}, residual {step.residual:.0e}" if step.n_iter else ""
            parts.append(step.task + state)
        return ": ".join([*parts, f"{perf_counter() - self._start:.1f} s"])
