"""The driver: one loop for a batch of descents, used by pre-images and mean shift.

A `State` holds the points of a batch, and the objective there with its derivatives. A method
implements three functions of a `Search`: the state at some points (`at`), one step from there
(`step`), and which rows stop and why (`stop`). `walk` does the rest: it keeps the unfinished rows
together, calls back, records paths, and collects where each row ended. Mean shift (`methods.modes`)
climbs f by descending -f, with a step that needs no safeguard.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._checkpoint import Place, as_names, as_statuses
from mercer._checkpoint import State as Kept
from mercer._progress import Callback, is_watched, report
from mercer._status import Status


@dataclass(frozen=True, eq=False)
class State:
    """Value and derivatives of the objective at each row, to be multiplied by exp(shift).

    Shapes are (m, d) for points and gradients, (m, d, d) for Hessians, else (m,); derivatives are
    None if they were not requested.
    """

    points: Array
    value: Array
    gradient: Any = None  # at a cusp the subgradient of smallest norm
    hessian: Any = None
    # what the fixed point divides by, x - gradient / stiffness: -2 sum a_i k'(u_i) for radial
    # kernels, f'(|x|^2) for kernels of the inner product, else None
    stiffness: Any = None
    shift: Any = None
    size: Any = None  # of the parts of the gradient; None where a bound that always holds is used
    terms: Any = None  # size of the parts of the value, which sets its rounding; None likewise
    cusp: Any = None  # coefficients of points that coincide with the row, at an infinite slope

    def __getitem__(self, rows: Any) -> State:
        cut: list[Any] = [
            None if (part := getattr(self, name)) is None else part[rows] for name in _PARTS
        ]
        return State(*cut)

    @classmethod
    def joined(cls, states: Sequence[State]) -> State:
        columns = [[getattr(state, name) for state in states] for name in _PARTS]
        parts: list[Any] = [None if c[0] is None else np.concatenate(c) for c in columns]
        return cls(*parts)

    def updated(self, rows: Array, other: State) -> State:
        """A copy with some rows of another state; parts that one of them lacks are None."""
        out: list[Any] = []
        for name in _PARTS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is None or theirs is None:
                out.append(None)
                continue
            mine = np.array(mine)
            mine[rows] = theirs
            out.append(mine)
        return State(*out)

    def rise_from(self, old: State) -> Array:
        """The change of the objective since `old`, in units of exp(old.shift)."""
        gap = self.shift - old.shift
        if not gap.any():
            return np.asarray(self.value - old.value)
        return np.asarray(self.value * np.exp(np.where(self.value == 0, 0.0, gap)) - old.value)

    @property
    def objective(self) -> Array:
        """The true value."""
        return np.asarray(self.value * np.exp(self.shift))

    @cached_property
    def local_norm(self) -> Array:
        """The norm of the gradient, in units of exp(shift)."""
        return row_norms(self.gradient)

    @cached_property
    def gradient_norm(self) -> Array:
        """The true norm of the gradient."""
        return np.asarray(self.local_norm * np.exp(self.shift))

    @cached_property
    def fixed_point_step(self) -> Array:
        """-gradient / stiffness, the step of mean shift; 0 where the stiffness is not positive."""
        stiff = np.where(self.stiffness > 0.0, self.stiffness, np.inf)
        return np.asarray(-self.gradient / stiff[:, None])


_PARTS = tuple(State.__dataclass_fields__)


def smallest_subgradients(rest: Array, norm: Array, pull: Array) -> Array:
    """The subgradients of smallest norm at cusps: gradients minus what a cusp can balance.

    Near a data point x_j with a cusp the objective is F + <rest, h> + pull |h|, so the smallest is
    max(0, 1 - pull / |rest|) rest. With it the fixed-point step is that of Vardi and Zhang, The
    multivariate L1-median and associated data depth, 2000. `rest` are gradients of all other terms,
    `norm` their norms in the metric of the kernel, `pull` is the slope of the cusp times its
    coefficient, 0 where there is none.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(norm > pull, 1.0 - pull / norm, 0.0)
    return np.asarray(np.where(pull > 0.0, share, 1.0)[:, None] * rest)


def row_norms(array: Array) -> Array:
    """The norm of each row, in one pass where no square overflows or underflows."""
    norms = np.sqrt(np.einsum("ij,ij->i", array, array))
    if len(norms) and not (norms.min() > 1e-140 and norms.max() < 1e140):  # else squares are exact
        rough = ~((norms > 1e-140) & (norms < 1e140))
        rows = array[rough]
        largest = np.abs(rows).max(axis=1, initial=0.0)
        unit = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)
        norms[rough] = unit * np.linalg.norm(rows / unit[:, None], axis=1)
    return np.asarray(norms)


def row_products(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", a, b))


@dataclass(frozen=True, eq=False)
class Stop:
    """Which rows stop, and why."""

    residual: Array  # how far each row is from convergence; callbacks get the largest
    ended: Sequence[tuple[Status, Array]]  # masks of rows; where they overlap, the last one wins


class Search(ABC):
    """One step from every row of a batch, and when to stop; `walk` runs it.

    `rows` are the indices of the rows that are still running, in the order of the starts. A search
    that remembers something about each row selects it in `keep`, so that its arrays stay aligned
    with `rows`.
    """

    max_iter: int
    task: str = "pre-images"  # its name in progress bars

    @abstractmethod
    def at(self, points: Array, rows: Array) -> State:
        """The objective and its derivatives, at one point for each row."""

    @abstractmethod
    def step(self, state: State, rows: Array) -> State:
        """Take one step from every row, and return the state there."""

    @abstractmethod
    def stop(self, state: State, rows: Array, iteration: int) -> Stop:
        """Say which rows have converged, or cannot continue, after this many steps."""

    def checkpoint(self, points: Array) -> Place:
        """Where a walk from these points keeps its state for checkpoints."""
        return Place(None)

    def remembered(self) -> Kept:
        """What `take_up` needs to continue, besides the state of the walk."""
        return {}

    def take_up(self, found: Kept) -> None:  # noqa: B027 - as `keep`
        """Continue from the memory of an earlier run."""

    def keep(self, going: Array) -> None:  # noqa: B027 - most searches remember nothing
        """Forget the rows that have stopped; `going` is a mask of those walked so far."""


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
    place, first = Place(None) if record else search.checkpoint(points), 0
    state = search.at(points, rows)  # sums are prepared for their first queries, also later
    if place.found is not None:
        search.take_up(place.found)
        first, status = place.found["iteration"], as_statuses(place.found["status"])
        n_iter, ends = np.array(place.found["n_iter"]), _parts_of(place.found, "ended")
        rows, state = _parts_of(place.found, "walked")[0]
    for iteration in range(first, search.max_iter + 1):
        if place.is_kept:
            now = {"iteration": iteration, "status": as_names(status), "n_iter": n_iter.copy()}
            kept = partial(_kept, now | search.remembered(), (rows, state), tuple(ends))
            place.keep(kept)
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
            if place.is_kept and iteration < search.max_iter and going.any():
                place.keep(kept, last=True)
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
    if len(ends) > 1:  # back to the order of the starts
        order = np.argsort(np.concatenate([rows for rows, _ in ends]))
        state = State.joined([state for _, state in ends])[order]
    return Walk(state, status, n_iter, path)


def _kept(now: Kept, walked: tuple[Array, State], ends: tuple[tuple[Array, State], ...]) -> Kept:
    """The state of a walk for a checkpoint."""
    out = dict(now)
    for name, parts in (("walked", (walked,)), ("ended", ends)):
        if parts:
            out[f"{name} rows"] = np.concatenate([rows for rows, _ in parts])
            state = State.joined([state for _, state in parts])
            found = {f"{name} {part}": getattr(state, part) for part in _PARTS}
            out |= {key: part for key, part in found.items() if part is not None}
    return out


def _parts_of(found: Kept, name: str) -> list[tuple[Array, State]]:
    """The rows that are walked or have ended, and where they are."""
    if f"{name} rows" not in found:
        return []
    parts = [found.get(f"{name} {part}") for part in _PARTS]
    cut: list[Any] = [None if part is None else np.array(part) for part in parts]
    state = State(*cut)
    return [(np.array(found[f"{name} rows"]), state)]
