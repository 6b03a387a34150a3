"""Options for memory, threads and the engine, local to a `with` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from mercer._array import non_negative, positive
from mercer.exceptions import InputError

ENGINES = ("spectral", "native", "blocked")


@dataclass(frozen=True)
class Options:
    """Memory, threads, engine and accuracy of computations.

    Attributes
    ----------
    working_memory : float
        MiB that the temporary tiles of one call may take, all its threads together.
    n_jobs : int or None
        Number of threads; None means all cores this process may run on, and negative numbers count
        back from that: -1 means all, -2 all but one.
    engine : {None, "spectral", "native", "blocked"}
        The engine that computes sums; None chooses by shape and kernel (see `mercer.engine`).
    tolerance : float
        The error a sum may have, as a fraction of sum_i |a_i| k(x, x). Above 0, distant points may
        be left out and, in at most three dimensions, sums computed in the frequency domain; 0 asks
        for sums that are accurate to rounding.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Options()
    Options(working_memory=128.0, n_jobs=None, engine=None, tolerance=0.0)
    """

    working_memory: float = 128.0
    n_jobs: int | None = None
    engine: str | None = None
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        positive(self.working_memory, "working_memory")
        non_negative(self.tolerance, "tolerance")
        jobs = self.n_jobs
        if jobs is not None:
            if isinstance(jobs, bool) or not isinstance(jobs, Integral) or jobs == 0:
                raise InputError(f"n_jobs must be None or a non-zero integer, got {jobs!r}")
            object.__setattr__(self, "n_jobs", int(jobs))
        if self.engine not in (None, *ENGINES):
            raise InputError(f"engine must be None or one of {ENGINES}, got {self.engine!r}")


_current: ContextVar[Options] = ContextVar("mercer_options", default=Options())


def get_options() -> Options:
    """Return the current options.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.get_options().working_memory
    128.0
    """
    return _current.get()


@contextmanager
def options(**changes: Any) -> Iterator[Options]:
    """Change options inside a `with` block, for this thread or task only.

    Parameters
    ----------
    **changes
        `working_memory` in MiB (> 0), `n_jobs` (None, or a non-zero integer), `engine` (None,
        `spectral`, `native` or `blocked`), `tolerance` (>= 0).

    Examples
    --------
    >>> import mercer as mc
    >>> with mc.options(n_jobs=1, working_memory=32) as current:
    ...     current.n_jobs
    1
    """
    unknown = set(changes) - set(Options.__dataclass_fields__)
    if unknown:
        known = ", ".join(Options.__dataclass_fields__)
        raise InputError(f"unknown option {sorted(unknown)[0]!r}; the options are {known}")
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield _current.get()
    finally:
        _current.reset(token)
