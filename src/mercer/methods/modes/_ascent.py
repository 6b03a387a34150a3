"""Mean shift from many starts, each start retired as soon as its mode is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mercer._array import Array
from mercer._progress import Callback, Step
from mercer._status import Status
from mercer.methods.modes._basins import Basins, BasinSearch
from mercer.methods.modes._density_sum import DensitySum
from mercer.methods.modes._leaving import SAME, cells, settle
from mercer.methods.modes._merging import merge_ends
from mercer.methods.modes._mode_search import newton_ascent

_PILOTS = (32, 256)  # starts that look for modes first, at least and at most
_MANY = 1000  # starts that are worth a search beforehand
_FEW = 8  # starts that are not worth a search on the way, unless it is long
_AGAIN = tuple(8 * 16**j for j in range(10))  # steps after which those on the way look for modes
_PAIRS = 2e7  # terms of sums that the search for basins may always take
_POLISH = 12  # steps that look for a mode
_CRAWL = 1e-3  # of the kernel's length: steps that may be shortened ways after a hundred of them
_LEAPS = 40  # times that a row may leave where its steps are short


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


@dataclass
class Ascent:
    """Mean shift on one density, and the basins that were found on the way.

    Attributes
    ----------
    density : DensitySum
    tol : float
        Steps shorter than this share of the kernel's length are short.
    max_iter : int
    use_basins : bool
        Whether basins are looked for, which is worth it where starts are many.
    leave : bool
        Whether rows with short steps are moved on where they are not at a maximum.
    """

    density: DensitySum
    tol: float
    max_iter: int
    callback: Callback | None = None
    use_basins: bool = True
    leave: bool = True
    basins: Basins = field(init=False)

    def __post_init__(self) -> None:
        self.basins = Basins()
        self.search = BasinSearch(self.density)

    def run(self, start: Array) -> Ends:
        """Climb from every start, after a search for modes if there are many."""
        if len(start) >= _MANY and self.use_basins and not self.density.has_cusps:
            self.look_for_modes(_some(start))
        ends = self._climb(start)
        if self.use_basins:
            self._find_basins_of(ends)
        return ends

    def look_for_modes(self, start: Array) -> None:
        """Find basins about the modes that Newton's method reaches from a few starts.

        Any way to a mode is good here: which starts belong to it is decided by mean shift.
        """
        ends, arrived = newton_ascent(self.density, start, _POLISH)
        ends = ends[arrived]
        if len(ends):
            ends = ends[self.basins.holding(ends, self.density.at(ends).density) < 0]
        if not len(ends):
            return
        ends = ends[np.unique(cells(ends, self.density), return_index=True)[1]]
        step = self.density.at(ends, 2, exact=True).newton_step()
        near = np.linalg.norm(step, axis=1) <= SAME * self.density.length
        modes = ends[near] + step[near]
        if not len(modes):
            return
        # the search must not take more than the ascents
        most = max(_PAIRS / sum(map(len, self.density.points)), 2 * self.density.n_queries)
        for basin in self.search.basins(modes, most):
            if basin is not None and basin.level < basin.value:
                self.basins.add(basin)

    def modes_of(self, ends: Ends) -> tuple[Array, Array]:
        """Modes of shape (k, d), and the number of the mode of each row, -1 for none."""
        modes = np.reshape([b.mode for b in self.basins.known], (-1, ends.points.shape[1]))
        labels, loose = ends.basin.copy(), ends.loose
        if loose.size:
            labels[loose], modes = merge_ends(self.density, modes, ends.points[loose])
        return modes, labels

    def _climb(self, start: Array) -> Ends:
        """Plain mean shift until a row is in a basin, or its steps are short and it has arrived."""
        m, density, limit = len(start), self.density, self.tol * self.density.length
        points, basin, n_iter = start.copy(), np.full(m, -1), np.zeros(m, dtype=int)
        status = np.full(m, Status.MAX_ITER, dtype=object)
        leaps = np.zeros(m, dtype=int)
        active, Z = np.arange(m), start
        for iteration in range(self.max_iter + 1):
            worth = len(Z) >= _FEW or iteration > _AGAIN[0]
            if self.use_basins and worth and iteration in _AGAIN:
                self.look_for_modes(_some(Z))
            here = density.at(Z)
            held = self.basins.holding(Z, here.density)
            length = np.linalg.norm(here.step, axis=1)
            short = (length <= limit) & (held < 0)
            Z_next = Z + here.step
            if self.leave:
                slow = short | ((length <= _CRAWL * density.length) & (iteration % 100 == 99))
                self._leave(Z_next, slow, short, active, Z, leaps)
            going = (held < 0) & ~short
            over = iteration == self.max_iter or not going.any()
            if self.callback is not None and not over:
                residual = float(length[going].max()) / density.length
                if self.callback(Step(iteration, residual)) is True:
                    status[active[going]] = Status.STOPPED
                    over = True
            done = np.arange(len(Z)) if over else np.flatnonzero(~going)
            if done.size:
                rows = active[done]
                points[rows], basin[rows], n_iter[rows] = Z[done], held[done], iteration
                status[active[held >= 0]] = Status.IN_BASIN
                status[active[short]] = Status.CONVERGED
                status[active[short & here.is_held]] = Status.AT_POINT
                empty = short & (here.stiffness == 0.0) & (here.value == 0.0)
                status[active[empty]] = Status.EMPTY
            if over:
                break
            active, Z = active[going], Z_next[going]
        # a leap is not a step of the iteration, so nothing was checked about these starts
        status[(status == Status.IN_BASIN) & (leaps > 0)] = Status.CONVERGED
        return Ends(points, basin, status, n_iter)

    def _leave(
        self, Z_next: Array, slow: Array, short: Array, active: Array, Z: Array, leaps: Array
    ) -> None:
        """Move slow rows on that have not arrived, and take them out of `short`."""
        rows = np.flatnonzero(slow & (leaps[active] < _LEAPS))
        if not rows.size:
            return
        moved, arrived = settle(self.density, Z[rows], self.tol * self.density.length)
        rows, moved = rows[~arrived], moved[~arrived]
        Z_next[rows], short[rows] = moved, False
        leaps[active[rows]] += 1

    def _find_basins_of(self, ends: Ends) -> None:
        """Look for basins about ends outside of those known so far, if there are not many."""
        loose = ends.loose
        if not loose.size:
            return
        Z = ends.points[loose]
        value = self.density.at(Z).density
        held = self.basins.holding(Z, value)
        rest = Z[held < 0]
        if len(rest):
            rest = rest[np.unique(cells(rest, self.density), return_index=True)[1]]
            if len(rest) <= _PILOTS[1]:
                self.look_for_modes(rest)
                held = self.basins.holding(Z, value)
        ends.basin[loose] = held


def _some(start: Array) -> Array:
    """Starts that look for modes: an eighth of them, evenly chosen."""
    every = max(1, len(start) // int(np.clip(len(start) // 8, *_PILOTS)))
    return start[::every]
