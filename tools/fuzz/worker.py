"""Run cases in a process of its own, with limits on time and memory, and judge how they end."""

from __future__ import annotations

import contextlib
import importlib
import io
import linecache
import multiprocessing
import os
import resource
import signal
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 40  # of the processor's time, for one case: a thousand slow steps of a solver, twice
LONGEST = 600  # seconds on the clock: the machine may be overbooked, or the case waits for ever
MEMORY = 1 << 30  # bytes beyond those of a fresh process
HUGE = ("2**31", "2**63", "10**30", "2**70")  # arguments that may ask for more memory than there is
UNCLEAR = TypeError, ValueError, NotImplementedError


@dataclass(frozen=True)
class Finding:
    """What is wrong with a case."""

    kind: str  # the name of an exception, "crash" or "hang"
    place: str  # file:function of mercer where it happened
    text: str  # the message or the traceback


class TooSlow(BaseException):
    """A case took too long."""


class Worker:
    """A process that runs cases; it is started again after a crash."""

    def __init__(self) -> None:
        self.process: Any = None

    def run(self, source: str) -> Finding | None:
        """Run a case."""
        if self.process is None:
            # on a busy machine, threads of BLAS that wait for each other take most of the time
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # each reserves addresses, not memory
            context = multiprocessing.get_context("spawn")
            self.pipe, inner = context.Pipe()
            self.process = context.Process(target=_serve, args=(inner,), daemon=True)
            self.process.start()
            inner.close()
            self.pipe.recv()  # it is ready
        self.pipe.send(source)
        try:
            if self.pipe.poll(LONGEST):
                found: Finding | None = self.pipe.recv()
                return found
            kind, text = "hang", f"no answer within {LONGEST} seconds"
        except EOFError:
            self.process.join()
            kind, text = "crash", f"the process ended with code {self.process.exitcode}"
        self.stop()
        return Finding(kind, source.strip().splitlines()[-1][:40], text)

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def _serve(pipe: Any) -> None:
    import tools.fuzz.checks  # noqa: F401 (imports mercer before memory is limited)

    with contextlib.suppress(ImportError):  # its allocator reserves 1 GB of addresses at first use
        import pyarrow as pa

        pa.array(["a"] * 1000)
    for name in ("torch", "dask.array"):  # their libraries reserve addresses, too
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "ASAN_OPTIONS" not in os.environ:  # sanitizers reserve terabytes of addresses
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        used = pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    pipe.send("ready")
    while True:
        pipe.send(run(pipe.recv()))


def _stop(*_: Any) -> None:
    raise TooSlow


def run(source: str) -> Finding | None:
    """Run a case in this process; the result says what is wrong."""
    from sklearn.exceptions import DataConversionWarning, UndefinedMetricWarning

    from mercer import MercerWarning

    before = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        quiet = io.StringIO()  # progress bars and tables
        with warnings.catch_warnings(), redirect_stdout(quiet), redirect_stderr(quiet):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", MercerWarning)
            for of_sklearn in (DataConversionWarning, UndefinedMetricWarning):  # as its estimators
                warnings.simplefilter("ignore", of_sklearn)
            warnings.filterwarnings("ignore", "X (has|does not have valid) feature names")
            exec(compile(source, "<case>", "exec"), {"__name__": "case"})
    except (Exception, TooSlow) as error:  # noqa: BLE001
        return judge(error, source)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None


def judge(error: BaseException, source: str) -> Finding | None:
    """Decide whether an exception is a finding: anything that was not raised on purpose."""
    from mercer import MercerError

    frames = traceback.extract_tb(error.__traceback__)
    inside = [f for f in frames if "/mercer/" in f.filename]
    last = inside[-1] if inside else frames[-1]
    place = f"{last.filename.rpartition('/mercer/')[2]}:{last.name}"
    if not inside:
        place = f"{source.splitlines()[-1].partition('(')[0]}:{str(error).partition(':')[0]}"
    if isinstance(error, (MercerError, OSError, ImportError)):
        return None
    if isinstance(error, IndexError) and last.name == "__getitem__":
        return None  # as of any sequence
    own = frames[-1].filename == "<case>"
    passed = (own and frames[-1].name == "<lambda>") or str(error).startswith("<lambda>() ")
    if passed and not isinstance(error, TooSlow):
        return None  # of a function that the case passed
    of_case = own or isinstance(error, (*UNCLEAR, Warning))
    if not inside and of_case and not isinstance(error, TooSlow):
        return None  # the case itself is wrong: a call without a required argument, say
    if isinstance(error, MemoryError) and any(number in source for number in HUGE):
        return None
    if isinstance(error, UNCLEAR):
        line = linecache.getline(frames[-1].filename, frames[-1].lineno or 0).strip()
        of_sklearn = "/sklearn/" in frames[-1].filename
        if of_sklearn or (frames[-1] is last and line.startswith("raise")):
            return None
    text = "".join(traceback.format_exception(error)[-6:])
    return Finding(type(error).__name__, place, text)
