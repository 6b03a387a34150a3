"""Mean shift from many starts to modes, each start retired as soon as its mode is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from mercer._array import Array
from mercer._progress import Callback, Step
from mercer.engine import pieces
from mercer.methods.modes._basins import Basins, Prover
from mercer.methods.modes._density_ascent import Climbed
from mercer.methods.modes._newton import newton_climb
from mercer.space._points import number_keys

_PILOTS = (32, 256)  # starts that look for modes first, at least and at most
_MANY = 1000  # starts that are worth a search beforehand
_FEW = 8  # starts that are not worth a search on the way
_AGAIN = tuple(8 * 16**j for j in range(10))  # steps after which those on the way look for modes
_PAIRS = 2e7  # terms of sums that proofs may always take
_POLISH = 12  # steps that look for a mode
_MERGE = 0.5  # of the kernel's length: the farthest that an end may be from its mode
_REACH = 2.0 * (_MERGE + 1e-4)
_NEARLY = 4.0  # steps of Newton: at a maximum of fourth order one goes a third of the way
_SAME = 1e-4  # of the kernel's length: ends closer than this are one
_FLAT = 1e-3  # of the largest eigenvalue: a positive one of a saddle
_NUDGE = 1e-3  # of the kernel's length: a step off a saddle
_BETWEEN = np.linspace(0.0, 1.0, 11)[1:-1]  # where between two ends the density is looked at
_ROUNDING = 1e-10  # of the density: differences below it are none


class ClimbStatus(Enum):
    """How the ascent from a start ended.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.methods.ClimbStatus.PROVED.value
    'reached a region from which only one mode can be reached'
    """

    PROVED = "reached a region from which only one mode can be reached"
    CONVERGED = "steps became shorter than the tolerance"
    MAX_ITER = "still moving after max_iter steps"
    EMPTY = "no point of the data within reach: the density is zero"
    STOPPED = "stopped by the callback"


@dataclass
class Climb:
    """Modes in z, and of each start where it ended; see `climb`."""

    modes: Array  # (k, d)
    proved: Array  # (k,): a strict maximum, by a proof
    labels: Array  # (m,): the number of a mode, -1 for none
    status: Array  # (m,) of ClimbStatus
    n_iter: Array  # (m,)


@dataclass
class Climber:
    """One run: arrays have one row per start.

    Attributes
    ----------
    density : Climbed
    tol : float
        Steps shorter than this share of the kernel's length end an ascent.
    max_iter : int
    proves : bool
        Whether basins are looked for on the way, which is worth it where starts are many.
    """

    density: Climbed
    tol: float
    max_iter: int
    callback: Callback | None = None
    proves: bool = True
    basins: Basins = field(init=False)

    def __post_init__(self) -> None:
        self.basins = Basins()
        self.prover = Prover(self.density)

    def run(self, starts: Array) -> Climb:
        """Climb from every start."""
        if len(starts) >= _MANY:
            self.look_for_modes(_some(starts))
        ends, held, status, n_iter = self.climb(starts)
        return self._gathered(ends, held, status, n_iter)

    def look_for_modes(self, starts: Array) -> None:
        """Prove basins about the modes that a quick search from a few starts finds.

        Whatever leads to a mode is good here: who belongs to it is decided by the mean shift.
        """
        ends, arrived = newton_climb(self.density, starts, _POLISH)
        ends = ends[arrived]
        if len(ends):
            ends = ends[self.basins.holding(ends, self.density.at(ends).density) < 0]
        if not len(ends):
            return
        modes = self._finished(ends[np.unique(_cells(ends, self.density), return_index=True)[1]])
        if not len(modes):
            return
        # proofs must not take more than the ascents
        most = max(_PAIRS / sum(map(len, self.density.points)), 2 * self.density.n_queries)
        for basin in self.prover.basins(modes, most):
            if basin is None:
                continue
            if self.basins.holding(basin.mode[None], np.array([basin.value]))[0] < 0:
                self.basins.add(basin)

    def climb(self, starts: Array, tries: int = 3) -> tuple[Array, Array, Array, Array]:
        """Plain mean shift; returns ends, basins (-1 for none), status and numbers of steps."""
        m, density = len(starts), self.density
        ends, held = starts.copy(), np.full(m, -1)
        status, n_iter = np.full(m, ClimbStatus.MAX_ITER, dtype=object), np.zeros(m, dtype=int)
        active, Z = np.arange(m), starts
        limit = self.tol * density.length
        for iteration in range(self.max_iter + 1):
            if self.proves and iteration in _AGAIN and len(Z) >= _FEW:  # a new mode may be near
                self.look_for_modes(_some(Z))
            here = density.at(Z)
            found = self.basins.holding(Z, here.density)
            length = np.linalg.norm(here.step, axis=1)
            short = (length <= limit) & (found < 0)
            going = (found < 0) & ~short
            over = iteration == self.max_iter or not going.any()
            if self.callback is not None and not over:
                residual = float(length[going].max()) / density.length
                if self.callback(Step(iteration, residual)) is True:
                    status[active[going]] = ClimbStatus.STOPPED
                    over = True
            done = np.arange(len(Z)) if over else np.flatnonzero(~going)
            if done.size:
                rows = active[done]
                ends[rows], held[rows], n_iter[rows] = Z[done], found[done], iteration
                status[active[found >= 0]] = ClimbStatus.PROVED
                status[active[short]] = ClimbStatus.CONVERGED
                empty = short & (here.stiffness == 0.0) & (here.value == 0.0)
                status[active[empty]] = ClimbStatus.EMPTY
            if over:
                break
            active, Z = active[going], Z[going] + here.step[going]
        if self.proves:
            self._prove_ends(ends, held, status)
        if tries:
            self._leave_saddles(ends, held, status, n_iter, tries)
        return ends, held, status, n_iter

    def _leave_saddles(
        self, ends: Array, held: Array, status: Array, n_iter: Array, tries: int
    ) -> None:
        """Go on from ends on a saddle, where steps are short or none, a little to one side.

        The side is that of the gradient, to which the iteration would leave in the end.
        """
        loose = np.flatnonzero((held < 0) & (status == ClimbStatus.CONVERGED))
        if not loose.size:
            return
        _, first, group = np.unique(
            _cells(ends[loose], self.density), return_index=True, return_inverse=True
        )
        here = self.density.at(ends[loose[first]], 2)
        assert here.hessian is not None
        values, vectors = np.linalg.eigh(here.hessian)
        saddle = (values[:, -1] > _FLAT * np.abs(values).max(axis=1)) & ~here.at_cusp
        rows = loose[saddle[group]]
        if not rows.size:
            return
        way = vectors[:, :, -1]
        way = way * np.where(np.einsum("ij,ij->i", way, here.gradient) < 0.0, -1.0, 1.0)[:, None]
        moved = ends[rows] + _NUDGE * self.density.length * way[group[saddle[group]]]
        ends[rows], held[rows], status[rows], more = self.climb(moved, tries - 1)
        n_iter[rows] += more

    def _prove_ends(self, ends: Array, held: Array, status: Array) -> None:
        """Ends outside of the basins that were known then: prove basins about them, if not many."""
        loose = np.flatnonzero((held < 0) & (status == ClimbStatus.CONVERGED))
        if not loose.size:
            return
        Z = ends[loose]
        value = self.density.at(Z).density
        if self.basins.known:
            held[loose] = self.basins.holding(Z, value)
        rest = Z[held[loose] < 0]
        if len(rest):
            rest = rest[np.unique(_cells(rest, self.density), return_index=True)[1]]
            if len(rest) <= _PILOTS[1]:
                self.look_for_modes(rest)
                held[loose] = self.basins.holding(Z, value)
        status[loose[held[loose] >= 0]] = ClimbStatus.PROVED

    def _finished(self, ends: Array) -> Array:
        """One more step of Newton's method, on sums that are right to rounding."""
        here = self.density.at(ends, 2, exact=True)
        assert here.hessian is not None
        definite = np.linalg.eigvalsh(here.hessian)[:, -1] < 0.0
        gradient, hessian = here.gradient[definite], here.hessian[definite]
        step = np.linalg.solve(hessian, -gradient[:, :, None])[:, :, 0]
        near = np.linalg.norm(step, axis=1) <= _SAME * self.density.length
        return np.asarray(ends[definite][near] + step[near])

    def _gathered(self, ends: Array, held: Array, status: Array, n_iter: Array) -> Climb:
        """Ends in proved basins, and the others merged, as modes; those that nobody reached go."""
        loose = np.flatnonzero((held < 0) & (status == ClimbStatus.CONVERGED))
        modes = [basin.mode for basin in self.basins.known]
        proved = [True] * len(modes)
        labels = held.copy()
        if loose.size:
            k = len(modes)
            together = (
                np.concatenate([np.reshape(modes, (k, -1)), ends[loose]]) if k else ends[loose]
            )
            groups, points, maxima = merged_ends(self.density, together)
            numbers = k + np.arange(len(points))
            numbers[groups[:k][::-1]] = np.arange(k)[::-1]  # a group of a proved mode is that mode
            labels[loose] = numbers[groups[k:]]
            modes += list(points)
            proved += list(maxima)
        d = ends.shape[1]
        used, order = np.unique(labels[labels >= 0], return_inverse=True)
        labels[labels >= 0] = order
        all_modes = np.array(modes).reshape(-1, d)[used]
        return Climb(all_modes, np.array(proved, bool)[used], labels, status, n_iter)


def _some(starts: Array) -> Array:
    """Starts that look for modes: an eighth of them, evenly chosen."""
    every = max(1, len(starts) // int(np.clip(len(starts) // 8, *_PILOTS)))
    return starts[::every]


def merged_ends(density: Climbed, ends: Array) -> tuple[Array, Array, Array]:
    """Which ends are one mode: groups, one point of each, and which are maxima by proof.

    An end is off its mode by at most about 4 |H^-1 g|, or half the kernel's length where the
    Hessian H is not definite. Two ends are one mode if they are no farther apart than that, and the
    density does not dip between them. Ends at a data point with a cusp are maxima if the other
    points do not pull harder than the cusp holds (SPEC F5).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    _, points, group = np.unique(_cells(ends, density), return_index=True, return_inverse=True)
    snapped, cusp = _snapped(density, ends[points])
    pairs = cKDTree(snapped).query_pairs(_REACH * density.length, output_type="ndarray")
    near = np.unique(pairs)
    off = np.full(len(snapped), _SAME * density.length)
    off[near] += np.where(cusp[near], 0.0, _distance_left(density, snapped[near]))
    apart = np.linalg.norm(snapped[pairs[:, 0]] - snapped[pairs[:, 1]], axis=1)
    pairs = pairs[apart <= off[pairs].sum(axis=1)]
    joined = pairs[~_dips(density, snapped, pairs)] if len(pairs) else pairs
    k = len(points)
    links = coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(k, k))
    count, part = connected_components(links, directed=False)
    value = density.at(snapped).density
    best = np.full(count, -1)
    for j in np.argsort(value):
        best[part[j]] = j
    return part[group], snapped[best], cusp[best]


def _distance_left(density: Climbed, ends: Array) -> Array:
    """How far each end may be from its mode: a few steps of Newton, up to half a length."""
    if not len(ends):
        return np.zeros(0)
    here = density.at(ends, 2, exact=True)
    assert here.hessian is not None
    left = np.full(len(ends), _MERGE * density.length)
    definite = np.linalg.eigvalsh(here.hessian)[:, -1] < 0.0
    if definite.any():
        step = np.linalg.solve(here.hessian[definite], here.gradient[definite, :, None])[:, :, 0]
        far = _NEARLY * np.linalg.norm(step, axis=1)
        left[definite] = np.minimum(left[definite], far)
    return left


def _cells(ends: Array, density: Climbed) -> Array:
    """A number for each end, the same for ends in the same small cell of a grid."""
    return number_keys(np.round(ends / (_SAME * density.length)))


def _snapped(density: Climbed, ends: Array) -> tuple[Array, Array]:
    """Ends of a density with cusps moved to the data point that they were heading for."""
    if not density.has_cusps:
        return ends, np.zeros(len(ends), bool)
    from scipy.spatial import cKDTree

    data = np.concatenate(density.points)
    distance, nearest = cKDTree(data).query(ends)
    close = distance <= _SAME * density.length
    out = np.where(close[:, None], data[nearest], ends)
    here = density.at(out)
    held = close & (np.linalg.norm(here.step, axis=1) == 0.0)
    better = close & (here.density >= density.at(ends).density)
    return np.where(better[:, None], out, ends), held & better


def _dips(density: Climbed, points: Array, pairs: Array) -> Array:
    """Whether the density between two points is lower than at the lower of them."""
    lower = density.at(points).density[pairs].min(axis=1)
    dips = np.zeros(len(pairs), bool)
    for rows in pieces(len(pairs), 1 << 16):
        a, b = points[pairs[rows, 0]], points[pairs[rows, 1]]
        for t in _BETWEEN:
            between = density.at((1.0 - t) * a + t * b).density
            dips[rows] |= between < lower[rows] * (1.0 - _ROUNDING)
    return dips
