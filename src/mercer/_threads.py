"""The thread pool, and the number of threads of BLAS.

Tiles of a kernel sum run on a pool of Python threads (NumPy and the compiled core release the
interpreter lock) while BLAS is held to one thread, because two levels of threads compete: with
other load on the machine BLAS threads under a tile loop cost a factor of five.

Ctrl-C can meet the main thread between any two steps of Python code, inside the locks of
`threading` and `concurrent.futures` too, which then stay locked for ever. So the main thread waits
on `queue.SimpleQueue` only, which is written in C.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import threadpoolctl

from mercer._config import get_options

T = TypeVar("T")
R = TypeVar("R")

_LONG = 1 << 18  # entries of a matrix whose factorisation may take more than a tenth of a second
_MOST = 256  # threads: more of them only cost memory

_lock = threading.Lock()
_workers: list[threading.Thread] = []
_tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
_blas_users = 0
_blas_threads: list[tuple[Any, int]] = []  # libraries, and their threads outside
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
    if getattr(_inside, "call", None) is not None:
        return [function(item) for item in items]
    if threads <= 1:
        with single_threaded_blas() if thread_count() == 1 else nullcontext():
            return [function(item) for item in items]

    with single_threaded_blas():
        return _Call(function, items).results(threads)


class _Call:
    """One call of `map_threads`: items that workers take, in their order, and what they found."""

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self.function, self.count = function, len(items)
        self.pending = deque(enumerate(items))
        self.done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
        self.running: list[None] = []  # an entry for each worker that has, or takes, an item
        self.is_over = False

    def results(self, threads: int) -> list[Any]:
        """The results in the order of the items; raises the error of the first item with one."""
        out, failed, missing = [None] * self.count, {}, set(range(self.count))
        error: BaseException | None = None
        try:
            tasks = _tasks_of_workers(threads)
            for _ in range(threads):  # each in a copy of this context, so that options hold there
                tasks.put(partial(copy_context().run, self._work))
            while missing:
                i, out[i], error = self.done.get()
                missing.discard(i)
                if error is not None:
                    failed[i] = error
                    self.pending.clear()
                    missing = {j for j in missing if j < i}  # items before it have all begun
            if failed:
                raise failed[min(failed)]
            return out
        except BaseException:
            self._end()
            raise
        finally:
            failed, error = {}, None  # errors refer to this frame

    def _work(self) -> None:
        """Take items until none is left; runs in a worker."""
        _inside.call = self
        try:
            while self.pending:
                self.running.append(None)
                with suppress(IndexError):  # another worker took the last item
                    self.done.put(self._found(*self.pending.popleft()))
                self.running.pop()
        finally:
            _inside.call = None

    def _found(self, i: int, item: Any) -> tuple[int, Any, BaseException | None]:
        try:
            return i, self.function(item), None
        except BaseException as error:  # noqa: BLE001  (raised by the caller)
            return i, None, error

    def _end(self) -> None:
        """Wait until nothing is left running."""
        self.is_over = True
        self.pending.clear()
        while self.running:
            with suppress(Empty):
                self.done.get(timeout=0.001)


def stop_if_interrupted() -> None:
    """Raise if a long task should end; long tasks call this every few milliseconds of work.

    On the main thread, calling any Python function runs the signal handlers. A task on the pool
    ends when `map_threads` has.
    """
    call = getattr(_inside, "call", None)
    if call is not None and call.is_over:
        raise KeyboardInterrupt


def interruptible(function: Callable[..., R], matrix: Any, *arguments: Any) -> R:
    """`function(matrix, *arguments)`, for a function that releases the interpreter lock.

    If the matrix is large, the function runs in its own thread, so that the main thread
    can handle signals meanwhile. After an interrupt that thread keeps computing until the function
    ends, with arrays that nothing else uses, and its result is dropped.
    """
    if matrix.size < _LONG or threading.current_thread() is not threading.main_thread():
        return function(matrix, *arguments)
    done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    ended: list[None] = []

    def run() -> None:
        try:
            found: tuple[Any, BaseException | None] = function(matrix, *arguments), None
        except BaseException as error:  # noqa: BLE001  (raised in the main thread)
            found = None, error
        ended.append(None)
        done.put(found)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    try:
        _start(thread)
        result, error = done.get()
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]
    finally:
        if not ended:
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
    """Hold BLAS to one thread; counted, because the setting is global to the process.

    Ctrl-C may end each step below. Then the next call restores the numbers of threads.
    """
    global _blas_users, _blas_threads, _controller
    counted = False
    try:
        with _lock:
            if _blas_users == 0:
                if _controller is None:  # finding the libraries takes milliseconds: once
                    importlib.import_module("scipy.linalg")  # or else its BLAS would not be found
                    found = threadpoolctl.ThreadpoolController()
                    _controller = found.select(user_api="blas").lib_controllers
                _let_any_thread_control_blas()
                _blas_threads = _blas_threads or [(one, one.num_threads) for one in _controller]
                for library, _ in _blas_threads:
                    library.set_num_threads(1)
            counted, _blas_users = True, _blas_users + 1
        yield
    finally:
        with _lock:
            _blas_users -= counted
            if _blas_users == 0:
                _let_any_thread_control_blas()
                for library, threads in _blas_threads:
                    library.set_num_threads(threads)
                _let_any_thread_control_blas()
                _blas_threads = []


def _let_any_thread_control_blas() -> None:
    """threadpoolctl lets one thread at a time set limits; here the count above ensures that."""
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def _tasks_of_workers(threads: int) -> SimpleQueue[Callable[[], None]]:
    """The queue of tasks, once there are enough workers."""
    with _lock:
        while len(_workers) < threads:
            name = f"mercer_{len(_workers)}"
            worker = threading.Thread(target=_serve, args=(_tasks,), name=name, daemon=True)
            _start(worker)
            _workers.append(worker)  # after an interrupt before it, one more than is counted
        return _tasks


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError as error:  # Ctrl-C inside a lock of the thread
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def _serve(tasks: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()


def _after_fork() -> None:
    """A forked child has none of the threads, and may hold a lock that is never released."""
    global _lock, _tasks, _blas_users, _blas_threads, _controller
    _lock, _tasks = threading.Lock(), SimpleQueue()
    _workers.clear()
    _blas_users, _blas_threads, _controller = 0, [], None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
