"""Preconditioned conjugate gradients for many right-hand sides, one product per iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._checkpoint import Place, State, as_names, as_statuses, checkpointed
from mercer._progress import Callback, report
from mercer._status import Status

Product = Callable[[Array], Array]

_PATIENCE = 200  # iterations without a smaller residual after which a column counts as stalled
_RESTARTS = 8  # three with float32 sums reach 1e-12
_DRAFT = 1e-4  # what a run with float32 sums should leave of the residual: far above their eps
_USEFUL = 1e-2  # if it leaves more, float64 takes over
_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 1e-10  # curvature below minus this share of the largest is not a rounding error


@dataclass
class _Active:
    """The recurrence for the columns still iterated, which are the last axis of every array."""

    index: Array
    goal: Array  # relative residuals at which this run of the recurrence ends
    A: Array
    R: Array
    P: Array
    rho: Array
    best: Array
    since: Array  # iterations since the residual was last smaller than ever before

    def keep(self, mask: Array) -> None:
        if not mask.all():
            for f in fields(self):
                setattr(self, f.name, getattr(self, f.name)[..., mask])


class ConjugateGradients:
    """Solve M A = B for symmetric M >= 0 and a preconditioner P^-1, both given as products.

    Columns that are done are retired, so that later products have fewer columns. When the
    residual of the recurrence is below tol the true one is computed, and the iteration starts again
    from there if rounding has pulled the two apart. The products of the iteration may thus be less
    exact: `draft` takes the place of `product` as long as true residuals fall (iterative
    refinement).

    `problem` is what determines M, for checkpoints.

    Attributes
    ----------
    coef : array of shape (n, b)
        For each column the iterate of smallest residual.
    residual : true relative residuals, shape (b,)
    n_iter : iterations of each column, shape (b,)
    status : array of b Status
    """

    def __init__(
        self,
        product: Product,
        precondition: Product,
        B: Array,
        tol: float,
        scale: float,
        draft: Product | None = None,
        problem: tuple[Any, ...] = (),
    ) -> None:
        self.product, self.precondition, self.B, self.tol = product, precondition, B, tol
        self.draft = draft
        # a lower bound of the largest eigenvalue of M, raised as larger ones are seen
        self.scale = max(scale, float(np.finfo(np.float64).tiny))
        self.norm = np.linalg.norm(B, axis=0)
        self.coef = np.zeros_like(B)
        self.residual = (self.norm > 0).astype(np.float64)
        self.n_iter = np.zeros(B.shape[1], dtype=np.intp)
        self.status = np.full(B.shape[1], Status.CONVERGED, dtype=object)
        self._done = 0
        self._problem, self._place = problem, Place(None)
        self._run: State = {}  # where this run of the recurrence began

    def run(self, max_iter: int, callback: Callback | None = None) -> None:
        """Iterate until every column has a status."""
        if self._problem:
            key = (*self._problem, self.tol, max_iter)
            self._place = checkpointed("conjugate gradients", *key)
        columns = np.flatnonzero(self.residual > self.tol)
        self._run = {"number": 0, "columns": columns, "rest": self.B[:, columns]}
        active = self._taken_up()
        if self._run["number"] < 0:
            return
        columns, rest = self._run["columns"], self._run["rest"]
        for number in range(self._run["number"], _RESTARTS):
            if columns.size == 0:
                break
            if active is None:
                start = self.coef[:, columns]
                self._run = {"number": number, "columns": columns, "rest": rest, "start": start}
                active = self._started(columns, rest)
            before, start = self.residual[columns], self._run["start"]
            self._iterate(active, max_iter, callback)
            active = None
            left = self.B[:, columns] - self.product(self.coef[:, columns])
            size = relative(left, self.B[:, columns])
            worse = size > before  # rounding all the way: a matrix that is singular here
            self.coef[:, columns[worse]] = start[:, worse]
            rest = np.where(worse, rest, left)
            self.residual[columns] = np.where(worse, before, size)
            again = self._left_behind(columns, before)
            columns, rest = columns[again], rest[:, again]
            if Status.STOPPED in self.status:  # the others end too, and the state is kept
                self.status[columns] = Status.STOPPED
                break
        else:
            self.status[columns] = Status.STALLED
        if Status.STOPPED not in self.status:
            self._run = {"number": -1}
            self._place.keep(lambda: self._run | self._found_so_far(), last=True)

    def _left_behind(self, columns: Array, before: Array) -> Array:
        """Statuses from the true residuals; True for columns whose residual rounding has hidden."""
        small = self.residual[columns] <= self.tol
        self.status[columns[small]] = Status.CONVERGED
        if self.draft is not None:
            if np.any(self.residual[columns] > _USEFUL * before):
                self.draft = None
            ended = (Status.MAX_ITER, Status.STOPPED)
            unfinished = [s not in ended for s in self.status[columns]]
            return np.asarray(~small & np.array(unfinished, dtype=bool))
        claimed = np.array([s is Status.CONVERGED for s in self.status[columns]], dtype=bool)
        falling = self.residual[columns] < 0.5 * before
        self.status[columns[claimed & ~small & ~falling]] = Status.STALLED
        return np.asarray(claimed & ~small & falling)

    def _started(self, columns: Array, R: Array) -> _Active:
        """A run of the recurrence from the solutions so far, whose residuals are R."""
        goal = np.full(columns.size, self.tol)
        if self.draft is not None:
            goal = np.maximum(goal, _DRAFT * self.residual[columns])
        P = self.precondition(R)
        rho = np.sum(R * P, axis=0)
        since = np.zeros(columns.size, dtype=np.intp)
        return _Active(
            columns, goal, self.coef[:, columns], R, P, rho, self.residual[columns], since
        )

    def _iterate(self, now: _Active, max_iter: int, callback: Callback | None) -> None:
        """One run of the recurrence."""
        while now.index.size and self._done < max_iter:
            slope, flat = self._step(now)
            largest = float(now.best.max())
            self._retire(now, slope, flat)
            stops = report("linear system", self._done, largest, callback=callback)
            Z = self.precondition(now.R)
            rho = np.sum(now.R * Z, axis=0)
            now.P = Z + (rho / now.rho) * now.P
            now.rho = rho
            self._place.keep(partial(self._state, now), last=stops)
            if stops:
                self.status[now.index] = Status.STOPPED
                return
        self.status[now.index] = Status.MAX_ITER

    def _state(self, now: _Active) -> State:
        active = {f"active {f.name}": getattr(now, f.name).copy() for f in fields(now)}
        return self._run | active | self._found_so_far()

    def _found_so_far(self) -> State:
        numbers = {"scale": self.scale, "done": self._done, "drafts": self.draft is not None}
        parts = {name: getattr(self, name).copy() for name in ("coef", "residual", "n_iter")}
        return numbers | parts | {"status": as_names(self.status)}

    def _taken_up(self) -> _Active | None:
        """The recurrence that an earlier run left, if any."""
        found = self._place.found
        if found is None:
            return None
        self.coef, self.residual, self.n_iter = (
            np.array(found[name]) for name in ("coef", "residual", "n_iter")
        )
        self.status, self.scale = as_statuses(found["status"]), found["scale"]
        self._done = found["done"]
        self.draft = self.draft if found["drafts"] else None
        self._run = {k: found[k] for k in ("number", "columns", "rest", "start") if k in found}
        if found["number"] < 0:
            return None
        return _Active(*(np.array(found[f"active {f.name}"]) for f in fields(_Active)))

    def _step(self, now: _Active) -> tuple[Array, Array]:
        """Step along P; returns P'MP / |P|^2 over |M|, and where it is no more than rounding."""
        Q = (self.draft or self.product)(now.P)
        curvature = np.sum(now.P * Q, axis=0)
        size, image = np.linalg.norm(now.P, axis=0), np.linalg.norm(Q, axis=0)
        self.scale = max(self.scale, float((image / size).max()))
        flat = ~(curvature > 8.0 * _EPS * self.scale * size**2)  # then the step is rounding too
        alpha = np.where(flat, 0.0, now.rho / np.where(flat, 1.0, curvature))
        now.A = now.A + alpha * now.P
        now.R = now.R - alpha * Q
        left = np.linalg.norm(now.R, axis=0) / self.norm[now.index]
        better = left < now.best
        self.coef[:, now.index[better]] = now.A[:, better]
        now.best = np.minimum(left, now.best)
        now.since = np.where(better, 0, now.since + 1)
        self._done += 1
        self.n_iter[now.index] = self._done
        return curvature / (self.scale * size**2), flat

    def _retire(self, now: _Active, slope: Array, flat: Array) -> None:
        """Give a status to columns that are done or stalled, and go on with the others."""
        converged = now.best <= now.goal
        stalled = flat | (now.since >= _PATIENCE)
        self.status[now.index[stalled]] = Status.STALLED
        self.status[now.index[slope < -_ROUNDING]] = Status.INDEFINITE
        self.status[now.index[converged]] = Status.CONVERGED
        now.keep(~(converged | stalled))


def relative(R: Array, B: Array) -> Array:
    """|R| / |B| column by column; zero where both are."""
    size, norm = np.linalg.norm(R, axis=0), np.linalg.norm(B, axis=0)
    return np.asarray(np.divide(size, norm, out=np.array(size), where=norm > 0))
