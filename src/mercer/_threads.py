"""The thread pool, and the number of threads of BLAS.

Tiles of a kernel sum run on a pool of Python threads (NumPy and the compiled core release the
interpreter lock) while BLAS is held to one thread, because two levels of threads compete: with
other load on the machine BLAS threads under a tile loop cost a factor of five.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from typing import Any, TypeVar

import threadpoolctl

from mercer._config import get_options

T = TypeVar("T")
R = TypeVar("R")

_LONG = 1 << 18  # entries of a matrix whose factorisation may take more than a tenth of a second
_MOST = 256  # threads: more of them only cost memory

_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}
_blas_users = 0
_blas_limit: Any = None
_controller: Any = None
_inside = threading.local()


def available_cores() -> int:
    """The number of cores this process may run on; one inside a worker of joblib or a pool.

    Such workers are started because there are several of them, so each takes one core.
    """
    multiprocessing = sys.modules.get("multiprocessing")  # loaded in every such worker
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)


def thread_count() -> int:
    """Threads for the next call: `n_jobs` of the current options, negative counting from all."""
    jobs = get_options().n_jobs
    cores = available_cores()
    if jobs is None:
        return cores
    return min(jobs, _MOST) if jobs > 0 else max(1, cores + 1 + jobs)


def map_threads(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """`[function(i) for i in items]` on the pool, with BLAS held to one thread.

    Results come in the order of the items, so that sums over them do not depend on the number of
    threads. A nested call runs inline: the pool never waits for itself.
    """
    threads = min(thread_count(), len(items))
    if getattr(_inside, "stop", None) is not None:
        return [function(item) for item in items]
    if threads <= 1:
        with single_threaded_blas() if thread_count() == 1 else nullcontext():
            return [function(item) for item in items]

    stop = threading.Event()

    def run(item: T) -> R:
        _inside.stop = stop
        return function(item)

    with single_threaded_blas():
        pool = _pool(threads)
        # each job in a copy of the caller's context, so that its options hold there too
        futures = [pool.submit(copy_context().run, run, item) for item in items]
        try:
            return [future.result() for future in futures]
        except RuntimeError as error:  # an interrupt that met Python in the middle of a lock
            if isinstance(error.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            raise
        finally:
            stop.set()
            for future in futures:  # after an error or an interrupt nothing is left running
                future.cancel()
            wait(futures)


def stop_if_interrupted() -> None:
    """Raise if a long task should end; long tasks call this every few milliseconds of work.

    On the main thread, calling any Python function runs the signal handlers. A task on the pool
    ends when `map_threads` has.
    """
    stop = getattr(_inside, "stop", None)
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt


def interruptible(function: Callable[..., R], matrix: Any, *arguments: Any) -> R:
    """`function(matrix, *arguments)`, for a function that releases the interpreter lock.

    If the matrix is large, the function runs in its own thread, so that the main thread
    can handle signals meanwhile. After an interrupt that thread keeps computing until the function
    ends, with arrays that nothing else uses, and its result is dropped.
    """
    if matrix.size < _LONG or threading.current_thread() is not threading.main_thread():
        return function(matrix, *arguments)
    future: Future[R] = Future()

    def run() -> None:
        try:
            future.set_result(function(matrix, *arguments))
        except BaseException as error:  # noqa: BLE001  (raised in the main thread)
            future.set_exception(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    try:
        return future.result()
    finally:
        if not future.done():
            _let_process_exit(thread)


def _let_process_exit(thread: threading.Thread) -> None:
    """Let the process exit while BLAS still computes in a thread.

    The destructors of BLAS would free memory that it uses, and the process would crash. So the
    process exits without them (`on_exit` of glibc), or else waits for the thread.
    """
    libc: Any = ctypes.CDLL(None) if os.name == "posix" else None
    if hasattr(libc, "on_exit"):
        libc.on_exit(libc._exit, None)
    else:
        atexit.register(thread.join)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread; counted, because the setting is global to the process."""
    global _blas_users, _blas_limit, _controller
    with _lock:
        if _blas_users == 0:
            if _controller is None:  # finding the libraries takes milliseconds: once
                importlib.import_module("scipy.linalg")  # or else its BLAS would not be found
                _controller = threadpoolctl.ThreadpoolController()
            _let_any_thread_control_blas()
            _blas_limit = _controller.limit(limits=1, user_api="blas")
        _blas_users += 1
    try:
        yield
    finally:
        with _lock:
            _blas_users -= 1
            if _blas_users == 0:
                _let_any_thread_control_blas()
                _blas_limit.restore_original_limits()
                _let_any_thread_control_blas()
                _blas_limit = None


def _let_any_thread_control_blas() -> None:
    """threadpoolctl lets one thread at a time set limits; here the count above ensures that."""
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def _pool(threads: int) -> ThreadPoolExecutor:
    with _lock:
        if threads not in _pools:
            _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="mercer")
        return _pools[threads]


def _after_fork() -> None:
    """A forked child has none of the threads, and may hold a lock that is never released."""
    global _lock, _blas_users, _blas_limit, _controller
    _lock = threading.Lock()
    _pools.clear()
    _blas_users, _blas_limit, _controller = 0, None, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
