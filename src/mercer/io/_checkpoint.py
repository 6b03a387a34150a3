"""The context `checkpoint`: fits that continue if interrupted, and Ctrl-C that gives a result."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mercer._array import non_negative
from mercer._checkpoint import State, Store, fingerprint, stop_using, using_store
from mercer._progress import Interruption, watched
from mercer.exceptions import InputError, MercerError
from mercer.io._archive import load, save

_MARK = "mercer checkpoint"
_FORMAT = 1


@contextmanager
def checkpoint(
    path: str | os.PathLike[str] | None, *, every: float = 60.0
) -> Iterator[Interruption]:
    """Save the state of long computations to a file, so that they can be resumed.

    Inside the block, iterations write their state to the file at most once per `every` seconds. If
    the process is killed, run the same code again: it continues from the file and gives the same
    result. Once the block has ended without an interruption, the file is deleted, unless nothing
    in the block could have written it.

    Ctrl-C inside the block ends every iteration at its next step: it returns its best point, with
    `Status.STOPPED`, and the file is kept. Computations without a partial result raise
    KeyboardInterrupt, and a second Ctrl-C raises it at once.

    Parameters
    ----------
    path : str, path-like or None
        The file, which need not exist. None writes no file, and only handles Ctrl-C.
    every : float, default=60
        Seconds >= 0 between two writes.

    Yields
    ------
    Interruption
        `requested` is True once Ctrl-C was pressed.

    Raises
    ------
    InputError
        If the file is damaged, or holds the checkpoint of another computation: the first one in the
        block must be one that the file contains. Data are compared by content, functions by name.

    Notes
    -----
    The file keeps the state of conjugate gradients, block Lanczos, mean shift, the dual problems of
    support vector machines, the permutations of two-sample tests with many rows, and rounds of
    imputation. What came before them is computed again. Iterations are deterministic, so results
    are equal to the last bit on the same machine with the same number of threads; results of
    finished iterations are kept too. If random numbers are drawn, `random_state` must be a number.

    The file is replaced only once a new one is complete. It holds no code (see `mercer.save`). If
    it cannot be written, because the disk is full for example, a warning says so and the
    computation goes on.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with mc.io.checkpoint(f"{folder}/fit.checkpoint") as ctrl_c:
    ...         model = mc.MeanShift(bandwidth=0.5).fit(X)
    >>> ctrl_c.requested
    False
    """
    every = non_negative(every, "every")
    store = None if path is None else _store(Path(path), every)
    interruption = Interruption()
    token = using_store(store)
    try:
        with watched(interruption), _ctrl_c(interruption):
            yield interruption
    except BaseException as error:
        if store is not None and store.begun:
            store.flush()
        if interruption.requested and isinstance(error, MercerError):
            raise KeyboardInterrupt from error  # there is no result yet
        raise
    else:
        if store is not None and interruption.requested:
            store.flush()
        elif store is not None and store.begun:  # else the file is not of this block
            Path(store.name).unlink(missing_ok=True)
    finally:
        stop_using(token)


def _store(path: Path, every: float) -> Store:
    """The store of a file, with what an earlier run left there."""

    def write(states: Mapping[str, State], begun: list[str]) -> None:
        content = {"begun": begun, "states": dict(states)}
        save({_MARK: _FORMAT, "hash": fingerprint(content), **content}, path)

    store = Store(write, every, str(path))
    if not path.parent.is_dir():
        raise InputError(f"the folder of the checkpoint {path} does not exist")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{path} is a folder, or in one that is not writable; name another file")
    if path.exists():
        found = load(path)
        store.earlier, store.states = _checked(found, path)
    return store


def _checked(found: Any, path: Path) -> tuple[list[str], dict[str, State]]:
    if not isinstance(found, dict) or found.get(_MARK) != _FORMAT:
        raise InputError(f"{path} is not a checkpoint of this version of mercer; name another file")
    begun, states = found.get("begun"), found.get("states")
    if found.get("hash") != fingerprint({"begun": begun, "states": states}):
        raise InputError(f"the checkpoint {path} is damaged; delete it to start anew")
    assert isinstance(begun, list)
    assert isinstance(states, dict)
    return begun, states


@contextmanager
def _ctrl_c(interruption: Interruption) -> Iterator[None]:
    """Note the first Ctrl-C; the second one has its usual effect. Main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def note(_: int, __: Any) -> None:
        interruption.requested = True
        signal.signal(signal.SIGINT, before)
        with suppress(AttributeError, OSError, ValueError, RuntimeError):  # its reader may be gone
            sys.stderr.write("\nending after this step; press Ctrl-C again to stop at once\n")

    if before in (None, signal.SIG_IGN):  # not set by Python, or a job in the background
        yield
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
