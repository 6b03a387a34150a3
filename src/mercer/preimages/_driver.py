"""The driver: one loop that walks a batch of searches downhill, for pre-images and mean shift.

A method says three things as a `Search`: the value and derivatives at some points (`at`), one step
from them (`step`), and which rows stop there and why (`stop`). `walk` does the rest: it keeps the
rows that go on together, calls back, records paths, and gathers where each row ended. Mean shift
(`methods.modes`) climbs f by descending -f, with a step that needs no safeguard.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer._array import Array
from mercer._progress import Callback, is_watched, report
from mercer._status import Status
from mercer.preimages._state import State


@dataclass(frozen=True, eq=False)
class Stop:
    """Which rows stop, and why."""

    residual: Array  # how far each row is from having converged; callbacks are told the largest
    ended: Sequence[tuple[Status, Array]]  # masks of rows; where they overlap, the last one holds


class Search(ABC):
    """One step from every row of a batch, and when to stop; `walk` runs it.

    `rows` are the numbers of the rows that are still walked, in the order of the starts. What a
    search remembers about each row it cuts in `keep`, so that its arrays stay aligned with `rows`.
    """

    max_iter: int
    task: str = "pre-images"  # its name in progress bars

    @abstractmethod
    def at(self, points: Array, rows: Array) -> State:
        """The function that descends, at one point for each row."""

    @abstractmethod
    def step(self, state: State, rows: Array) -> State:
        """Take one step from every row, and return the state there."""

    @abstractmethod
    def stop(self, state: State, rows: Array, iteration: int) -> Stop:
        """Say which rows have arrived, or cannot go on, after this many steps."""

    def keep(self, going: Array) -> None:  # noqa: B027 - most searches remember nothing
        """Forget the rows that are not going, a mask of those that were walked so far."""


@dataclass(frozen=True, eq=False)
class Walk:
    """Where every row ended, in the order of the starts.

    If recorded, the path has one entry per iteration for the rows that were still walked: their
    numbers, points, values and gradient norms.
    """

    state: State
    status: Array
    n_iter: Array
    path: list[tuple[Array, Array, Array, Array]]


def walk(
    search: Search, points: Array, *, callback: Callback | None = None, record: bool = False
) -> Walk:
    """Walk from every point until `search` stops it, at most `search.max_iter` steps.

    `callback` gets a `linalg.Step` before each step, and all rows stop if it returns True.
    """
    rows = np.arange(len(points))
    status = np.full(len(points), Status.MAX_ITER, dtype=object)
    n_iter = np.zeros(len(points), dtype=int)
    ends: list[tuple[Array, State]] = []
    path = []
    state = search.at(points, rows)
    for iteration in range(search.max_iter + 1):
        stop = search.stop(state, rows, iteration)
        going = np.ones(len(rows), dtype=bool)
        for why, ended in stop.ended:
            status[rows[ended]] = why
            going &= ~ended
        if record:
            path.append((rows, state.points, state.objective, state.gradient_norm))
        over = iteration == search.max_iter or not going.any()
        if not over and (callback is not None or is_watched()):
            residual = float(stop.residual[going].max())
            over = report(search.task, iteration, residual, callback=callback)
            status[rows[going]] = Status.STOPPED if over else Status.MAX_ITER
        if over:
            n_iter[rows] = iteration
            ends.append((rows, state))
            break
        if not going.all():
            done = ~going
            n_iter[rows[done]] = iteration
            ends.append((rows[done], state[done]))
            rows, state = rows[going], state[going]
            search.keep(going)
        state = search.step(state, rows)
    return Walk(_in_order(ends), status, n_iter, path)


def _in_order(ends: list[tuple[Array, State]]) -> State:
    """The states of all rows, in the order of the starts."""
    if len(ends) == 1:
        return ends[0][1]
    order = np.argsort(np.concatenate([rows for rows, _ in ends]))
    return State.joined([state for _, state in ends])[order]
