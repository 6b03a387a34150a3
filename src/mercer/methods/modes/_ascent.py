"""Ascents of a density: mean shift from many starts, and Newton's method to find modes quickly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._array import Array
from mercer._checkpoint import Place, checkpointed
from mercer._checkpoint import State as Kept
from mercer._progress import Callback
from mercer._status import Status
from mercer.engine import pieces
from mercer.linalg._dense import saddle_free_steps
from mercer.methods.modes._basins import Basins
from mercer.methods.modes._density_sum import DensitySum, heights, is_held, is_top, newton_steps
from mercer.methods.modes._merging import merge_ends
from mercer.methods.modes._short_steps import SAME, cells, settle
from mercer.preimages._driver import Search, State, Stop, row_norms, row_products, walk

_PILOTS = (32, 256)  # starts that look for modes first, at least and at most
_BASINS = ("modes", "radius", "level")
_MANY = 1000  # starts that are worth a search beforehand
_FEW = 8  # starts that are not worth a search on the way, unless it is long
_AGAIN = tuple(8 * 4**j for j in range(20))  # steps after which rows on the way look for modes
_SAMPLES = 5000  # of the density that the search for basins may always take: about 0.1 s
_POLISH = 12  # steps that look for a mode
_CRAWL = 1e-3  # of the kernel's length: rows with shorter steps may leap after every hundred
_LEAPS = 40  # times that a row may leap
_MAX_NEWTON = 300  # steps of Newton's method
_LONGEST = 0.5  # of the kernel's length: a step of Newton's method
_ARRIVED = 1e-6  # of the kernel's length
_FALL = 1e-6  # of the density: less is the accuracy of sums
_AT_MODE = 1e-3  # of the kernel's length: the farthest a mode may be by Newton's method


class Ends(NamedTuple):
    """Where ascents ended, one row per start."""

    points: Array  # (m, d)
    basin: Array  # (m,): the number of the basin they are in, -1 for none
    status: Array  # (m,) of Status
    n_iter: Array  # (m,)

    @property
    def loose(self) -> Array:
        """Rows that converged outside of every basin."""
        arrived = (self.status == Status.CONVERGED) | (self.status == Status.AT_POINT)
        return np.flatnonzero((self.basin < 0) & arrived)


class Ascent(Search):
    """Mean shift on one density; it keeps the basins that it finds on the way.

    Steps shorter than `tol` kernel lengths are short. With few columns, rows in a basin stop early;
    rows with short steps that are not at a maximum are moved on. `plain` does neither.
    """

    task = "ascent"

    def __init__(
        self, density: DensitySum, tol: float, max_iter: int, *, plain: bool = False
    ) -> None:
        self.density, self.max_iter, self.plain = density, max_iter, plain
        self.use_basins = density.has_few_columns and not plain and not density.in_pieces
        self.limit = tol * density.length
        self.basins = Basins(density)

    def run(self, start: Array, callback: Callback | None = None) -> Ends:
        """Climb from every start; in many columns block by block, within `working_memory`."""
        if self.density.has_few_columns:
            return self._climb(start, callback)
        blocks = pieces(len(start), self.density.block_rows)
        parts = [self._climb(start[rows], callback) for rows in blocks]
        return Ends(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _climb(self, start: Array, callback: Callback | None) -> Ends:
        """Climb from some starts, after a search for modes if there are many."""
        if len(start) >= _MANY and self.use_basins and not self.density.has_cusps:
            self.look_for_modes(_some(start))
        self.basin = np.full(len(start), -1)
        self.leaps = np.zeros(len(start), dtype=int)
        found = walk(self, start, callback=callback)
        # a leap is not a step of the iteration, so nothing was checked about these starts
        unchecked = (found.status == Status.IN_BASIN) & (self.leaps > 0)
        found.status[unchecked] = Status.CONVERGED
        ends = Ends(found.state.points, self.basin, found.status, found.n_iter)
        if self.use_basins:
            self._find_basins_of(ends)
        return ends

    def modes_of(self, ends: Ends) -> tuple[Array, Array]:
        """Modes of shape (k, d), and the number of the mode of each row, -1 for none."""
        modes = self.basins.modes
        labels, loose = ends.basin.copy(), ends.loose
        if loose.size:
            labels[loose], modes = merge_ends(self.density, modes, ends.points[loose])
        return modes, labels

    def look_for_modes(self, start: Array) -> None:
        """Find basins about the modes that Newton's method reaches from a few starts.

        Any way to a mode will do here: mean shift decides which starts belong to it.
        """
        ends, arrived = newton_ascent(self.density, start, _POLISH)
        ends = ends[arrived]
        ends = ends[self.basins.holding(ends, self.density.values(ends)) < 0]
        if not len(ends):
            return
        ends = _distinct(ends, self.density)
        step = newton_steps(self.density.at(ends, 2, exact=True))
        near = row_norms(step) <= SAME * self.density.length
        modes = ends[near] + step[near]
        if len(modes):
            # the search must not take longer than the ascents
            self.basins.search(modes, max(_SAMPLES, 2 * self.density.n_queries))

    # --- the search that the driver walks -----------------------------------------------------

    def checkpoint(self, points: Array) -> Place:
        problem = (self.density, points, self.limit, self.plain, self.max_iter)
        return checkpointed("ascent", *problem)

    def remembered(self) -> Kept:
        found: Kept = {"basin": self.basin.copy(), "leaps": self.leaps.copy()}
        return found | {f"basins {name}": getattr(self.basins, name) for name in _BASINS}

    def take_up(self, found: Kept) -> None:
        self.basin, self.leaps = np.array(found["basin"]), np.array(found["leaps"])
        for name in _BASINS:
            setattr(self.basins, name, np.array(found[f"basins {name}"]))

    def at(self, points: Array, rows: Array) -> State:
        return self.density.at(points)

    def stop(self, state: State, rows: Array, iteration: int) -> Stop:
        """Rows in a basin stop, and those with short steps that have arrived."""
        worth = len(rows) >= _FEW or iteration > _AGAIN[0]
        if self.use_basins and worth and iteration in _AGAIN:
            self.look_for_modes(_some(state.points))
        self.basin[rows] = held = self.basins.holding(state.points, heights(state))
        length = row_norms(state.fixed_point_step)
        short = (length <= self.limit) & (held < 0)
        self.target = state.points + state.fixed_point_step
        if not self.plain:
            crawls = (length <= _CRAWL * self.density.length) & (iteration % 100 == 99)
            self._leap(state.points, (short | crawls) & (held < 0), short, rows)
        empty = short & (state.stiffness == 0.0) & (state.value == 0.0)
        ended = [
            (Status.IN_BASIN, held >= 0),
            (Status.CONVERGED, short),
            (Status.AT_POINT, short & is_held(state)),
            (Status.EMPTY, empty),
        ]
        return Stop(length / self.density.length, ended)

    def keep(self, going: Array) -> None:
        self.target = self.target[going]

    def step(self, state: State, rows: Array) -> State:
        return self.at(self.target, rows)

    def _leap(self, Z: Array, slow: Array, short: Array, rows: Array) -> None:
        """Move on slow rows that have not arrived, and take them out of `short`."""
        chosen = np.flatnonzero(slow & (self.leaps[rows] < _LEAPS))
        if not chosen.size:
            return
        moved, arrived = settle(self.density, Z[chosen], self.limit)
        chosen, moved = chosen[~arrived], moved[~arrived]
        self.target[chosen], short[chosen] = moved, False
        self.leaps[rows[chosen]] += 1

    def _find_basins_of(self, ends: Ends) -> None:
        """Look for basins about ends outside of those known so far, if there are not many."""
        loose = ends.loose
        Z = ends.points[loose]
        value = self.density.values(Z)
        rest = Z[self.basins.holding(Z, value) < 0]
        if len(rest) and len(rest := _distinct(rest, self.density)) <= _PILOTS[1]:
            self.look_for_modes(rest)
        ends.basin[loose] = self.basins.holding(Z, value)


def _some(start: Array) -> Array:
    """Starts that look for modes: an eighth of them, evenly spaced."""
    return start[:: max(1, len(start) // int(np.clip(len(start) // 8, *_PILOTS)))]


def _distinct(Z: Array, density: DensitySum) -> Array:
    """One row of each small cell."""
    return Z[np.unique(cells(Z, density), return_index=True)[1]]


# --- modes without labels ---------------------------------------------------------------------


def find_modes(density: DensitySum, start: Array) -> Array:
    """The modes of a smooth density in few columns that some starts reach, shape (k, d)."""
    ends = newton_ascent(density, density.forth(start), _MAX_NEWTON)[0]
    here = density.at(ends, 2)
    top = is_top(here, _AT_MODE * density.length)  # not on a shoulder
    if not top.any():  # all are borderline
        top[np.argmax(heights(here))] = True
    return density.back(merge_ends(density, ends[:0], ends[top])[1])


def newton_ascent(density: DensitySum, start: Array, max_iter: int) -> tuple[Array, Array]:
    """Where ascents end, and which of them have arrived.

    Ends are modes of the density, but not always the ones that mean shift reaches from the starts.
    """
    found = walk(_NewtonAscent(density, max_iter), start)
    return found.state.points, found.status == Status.CONVERGED


class _NewtonAscent(Search):
    """Newton's method, with a step of mean shift instead if the density would fall."""

    task = "ascent"

    def __init__(self, density: DensitySum, max_iter: int) -> None:
        self.density, self.max_iter = density, max_iter
        self.steps = np.empty(0)

    def at(self, points: Array, rows: Array) -> State:
        return self.density.at(points, 2)

    def stop(self, state: State, rows: Array, iteration: int) -> Stop:
        self.steps = self._newton_steps(state)
        length = row_norms(self.steps) / self.density.length
        return Stop(length, [(Status.CONVERGED, length <= _ARRIVED)])

    def keep(self, going: Array) -> None:
        self.steps = self.steps[going]

    def step(self, state: State, rows: Array) -> State:
        new = self.at(state.points + self.steps, rows)
        fell = np.flatnonzero(heights(new) < (1.0 - _FALL) * heights(state))
        if fell.size:
            safe = state.points[fell] + state.fixed_point_step[fell]
            new = new.updated(fell, self.at(safe, rows[fell]))
        return new

    def _newton_steps(self, state: State) -> Array:
        """Newton's steps with the absolute values of the eigenvalues, cut to half a length.

        If the Hessian is indefinite, they lead away from a saddle.
        """
        longest = _LONGEST * self.density.length
        step = saddle_free_steps(state.gradient, np.nan_to_num(state.hessian), 1e-12)[0]
        step *= np.minimum(1.0, longest / np.maximum(row_norms(step), longest))[:, None]
        up = row_products(step, state.gradient) < 0.0
        return np.where(up[:, None], step, state.fixed_point_step)
