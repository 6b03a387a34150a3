"""Kernel ridge regressions of columns on each other, chained to complete rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from mercer._array import Array, Points
from mercer._checkpoint import State, checkpointed, generator_state, set_generator_state
from mercer._progress import tracked
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel, LaplaceProduct, Linear, Vectors
from mercer.space import Element

_CHOICE_ROWS = 200  # on which the penalties of a group are chosen
_PENALTIES = 10.0 ** np.arange(-1.0, 3.1, 0.5)  # per unit of k(x, x)
_PARTS = 20  # a twentieth of the entries is hidden at a time to measure the error
_TEST_ROWS = 150  # in which they are hidden: about as many entries of each column
_FIT_ROWS = 250  # other rows that are fitted for it
_GROUPS = 48  # groups of columns at most; a group is predicted from all columns outside it
_GROUP_COLUMNS = 12_000  # groups times columns: beyond 250 columns there are fewer groups
_BLOCK = 4096  # rows that are taken at once
_LARGEST = 1.0 - 1e-9  # leverage: a row must not predict itself alone
_JITTER = 1e-13  # of the trace; equal centres make the equations singular


@dataclass(frozen=True, eq=False)
class ColumnRegression:
    """A group of columns predicted from all others, f_j(x) = b_j + sum_s a_sj k(z_s, x).

    Attributes
    ----------
    columns : integer array of shape (g,)
        The columns j of the group.
    coef : array of shape (m, g)
        The coefficients a of the m centres z_s, which are rows of the data completed so far.
    intercept, low, high : arrays of shape (g,)
        b_j, and the range of the observed entries, to which predictions are clipped.
    filled : array
        The values then filled in for the missing entries of the centres in these columns, row by
        row; the regressions that follow use these centres.
    """

    columns: Array
    coef: Array
    intercept: Array
    low: Array
    high: Array
    filled: Array

    def fill(self, kernel: Kernel, centres: Array, Z: Array, missing: Array) -> None:
        """Predict the missing entries of the group's columns, in place."""
        on = np.flatnonzero(missing[:, self.columns].any(axis=1))
        element = Element(kernel, _without(centres, self.columns), self.coef)
        for part in pieces(len(on), _BLOCK):
            rows = on[part]
            at = np.ix_(rows, self.columns)
            values = self.intercept + element(_without(Z, self.columns, rows))
            Z[at] = np.where(missing[at], np.clip(values, self.low, self.high), Z[at])


class Chain:
    """Rows that are completed group by group, and the regressions that complete them."""

    def __init__(
        self, T: Array, w: Array, kernel: Kernel | None, size: int, rng: np.random.Generator
    ) -> None:
        n, d = T.shape
        self.missing, self.w, self.rng = np.isnan(T), w, rng
        self.mean, self.spread = moments(T, w)
        self.Z = np.where(self.missing, self.mean, T)
        # n^3 / 3 operations for all rows, n m^2 for m landmarks
        self.exact = n <= 2 * size
        self.centres = np.arange(n) if self.exact else np.sort(rng.choice(n, size, replace=False))
        self.groups = _groups(self.missing, rng) if n > 1 and d > 1 else []
        p = d - len(self.groups[0]) if self.groups else 1
        self.kernel = LaplaceProduct(p) + (1.0 / p) * Linear() if kernel is None else kernel
        self.penalties: list[Array] = []
        self.regressions: list[ColumnRegression] = []

    def run(self, rounds: int, tol: float) -> list[float]:
        """Complete the rows, and return the change in each round."""
        problem = (self.kernel, self.Z, self.missing, self.w, self.centres, tol, rounds)
        place = checkpointed("rounds", *problem)
        changes, before, first = self._restored(place.found)
        for i in tracked(range(rounds if self.missing.any() else 1), "rounds"):
            if i < len(changes):
                continue
            before = self.Z[self.missing] if first == 0 else before
            for j, columns in enumerate(tracked(self.groups, "columns")):
                if j < first:
                    continue
                if len(self.penalties) == j:
                    self.penalties.append(self._penalties(columns))
                self.regressions.append(self._regression(columns, self.penalties[j]))
                place.keep(partial(self._state, tuple(changes), before, j + 1))
            first = 0
            moved = (self.Z[self.missing] - before) / self.spread[np.nonzero(self.missing)[1]]
            if moved.size:
                changes.append(float(np.sqrt(np.mean(moved**2))))
                if changes[-1] <= tol:
                    break
        if not self.missing.any():  # all rounds would be the same
            self.regressions *= rounds
        return changes

    def _state(self, changes: tuple[float, ...], before: Array, done: int) -> State:
        """The state after some groups of a round, for a checkpoint."""
        found: State = {"changes": np.array(changes), "before": before, "groups": done}
        found |= {f"penalties {j}": p for j, p in enumerate(self.penalties)}
        for j, one in enumerate(self.regressions):
            found |= {f"regression {j} {f.name}": getattr(one, f.name) for f in fields(one)}
        found["random"] = generator_state(self.rng)  # groups choose their penalties at random
        return found | {"Z": self.Z.copy(), "regressions": len(self.regressions)}

    def _restored(self, found: State | None) -> tuple[list[float], Array, int]:
        """Changes so far, entries before this round, and groups that are done in it."""
        if found is None:
            return [], np.empty(0), 0
        self.Z = np.array(found["Z"])
        set_generator_state(self.rng, found["random"])
        count = sum(key.startswith("penalties") for key in found)
        self.penalties = [found[f"penalties {j}"] for j in range(count)]
        names = [f.name for f in fields(ColumnRegression)]
        self.regressions = [
            ColumnRegression(*(found[f"regression {j} {name}"] for name in names))
            for j in range(found["regressions"])
        ]
        return list(map(float, found["changes"])), found["before"], found["groups"]

    def _regression(self, columns: Array, penalties: Array) -> ColumnRegression:
        """Regress the columns of a group on the others, and fill their missing entries."""
        Z, missing = self.Z, self.missing
        centres = Z if self.exact else Z[self.centres]
        solve = self._exact if self.exact else self._on_landmarks
        coef = solve(_without(centres, columns), columns, penalties)
        ranges = (
            self.mean[columns],
            np.where(missing[:, columns], np.inf, Z[:, columns]).min(axis=0),
            np.where(missing[:, columns], -np.inf, Z[:, columns]).max(axis=0),
        )
        step = ColumnRegression(columns, coef, *ranges, np.empty(0))
        step.fill(self.kernel, centres, Z, missing)
        at = np.ix_(self.centres, columns)
        return replace(step, filled=Z[at][missing[at]])

    def _exact(self, z: Points, columns: Array, penalties: Array) -> Array:
        """Solve (K + a W^-1) c = y - b for each column, over the rows in which it is observed."""
        K = np.asarray(self.kernel(z), dtype=np.float64)
        coef = np.zeros((len(z), len(columns)))
        for k, (j, penalty) in enumerate(zip(columns, penalties, strict=True)):
            seen = np.flatnonzero(~self.missing[:, j])
            A = K[np.ix_(seen, seen)]
            A[np.diag_indices_from(A)] += penalty / self.w[seen]
            coef[seen, k] = _solve(A, self.Z[seen, j] - self.mean[j])
        return coef

    @np.errstate(over="ignore", invalid="ignore")
    def _on_landmarks(self, z: Points, columns: Array, penalties: Array) -> Array:
        """Solve (C^T W C + a K) c = C^T W (y - b) for each column, with C from rows to centres."""
        K = np.asarray(self.kernel(z), dtype=np.float64)
        A = penalties[:, None, None] * K
        B = np.zeros((len(columns), len(z)))
        for part in pieces(len(self.Z), _BLOCK):
            C = np.asarray(self.kernel(_without(self.Z[part], columns), z), dtype=np.float64)
            for k, j in enumerate(columns):
                seen = ~self.missing[part, j]
                v = np.sqrt(self.w[part][seen])
                F = C[seen]
                F *= v[:, None]
                A[k] += F.T @ F
                B[k] += F.T @ (v * (self.Z[part, j][seen] - self.mean[j]))
        return np.stack([_solve(a, b) for a, b in zip(A, B, strict=True)], axis=1)

    def _penalties(self, columns: Array) -> Array:
        """A penalty for each column of a group, with the least leave-one-out error.

        Missing entries count as means among the targets, and not at all in the error.
        """
        rows = np.flatnonzero(~self.missing[:, columns].all(axis=1))
        if len(rows) > _CHOICE_ROWS:
            rows = np.sort(self.rng.choice(rows, _CHOICE_ROWS, replace=False))
        z = _without(self.Z, columns, rows)
        v = np.sqrt(self.w[rows])[:, None]
        at = np.ix_(rows, columns)
        Y = v * (self.Z[at] - self.mean[columns])
        with np.errstate(over="ignore", invalid="ignore"):
            K = v * np.asarray(self.kernel(z), dtype=np.float64) * v.T
        _check_finite(K)
        e, V = np.linalg.eigh(K)
        e = np.maximum(e, 0.0)
        grid = _PENALTIES * (float(np.mean(np.abs(self.kernel.diag(z)))) or 1.0)
        errors = []
        for penalty in grid:
            shrink = (e / (e + penalty))[:, None]
            left = 1.0 - np.minimum((V**2) @ shrink, _LARGEST)
            residual = np.where(self.missing[at], 0.0, (Y - V @ (shrink * (V.T @ Y))) / left)
            errors.append(np.sum(residual**2, axis=0))
        return np.asarray(grid[len(grid) - 1 - np.argmin(errors[::-1], axis=0)])


def _groups(missing: Array, rng: np.random.Generator) -> list[Array]:
    """Columns one by one, those with the fewest missing entries first; many in random groups."""
    d = missing.shape[1]
    if d <= _GROUPS:
        order = np.argsort(missing.sum(axis=0), kind="stable")
        return [order[i : i + 1] for i in range(d)]
    return np.array_split(rng.permutation(d), max(4, min(_GROUPS, _GROUP_COLUMNS // d)))


def _without(Z: Array, columns: Array, rows: Array | None = None) -> Points:
    """Rows (all by default) without some columns, as points that need no check."""
    others = np.delete(np.arange(Z.shape[1]), columns)
    return Points(Z[:, others] if rows is None else Z[np.ix_(rows, others)], Vectors())


def _check_finite(K: Array) -> None:
    if not np.isfinite(K).all():
        raise InputError("values of the kernel overflow at these rows; scale them down")


def _solve(A: Array, b: Array) -> Array:
    """Solve A x = b, A symmetric and positive semi-definite; equal centres share the weight."""
    from scipy.linalg import cho_factor, cho_solve

    _check_finite(A)
    A[np.diag_indices_from(A)] += _JITTER * np.trace(A)
    try:
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        raise InputError(
            "kernel is not positive definite on these rows; use one that is, such as Gaussian(1.0)"
        ) from error
    return np.asarray(cho_solve(factor, b, check_finite=False))


def replay(
    kernel: Kernel, regressions: Sequence[ColumnRegression], centres: Array, mean: Array, X: Array
) -> Array:
    """Fill rows as in the fit, while the centres (NaN where missing) change as they did there."""
    missing, holes = np.isnan(X), np.isnan(centres)
    Z, centres = np.where(missing, mean, X), np.where(holes, mean, centres)
    missing &= ~missing.all(axis=1, keepdims=True)  # rows of nothing keep the means
    for step in tracked(regressions, "columns") if missing.any() else ():
        step.fill(kernel, centres, Z, missing)
        group = centres[:, step.columns]
        group[holes[:, step.columns]] = step.filled
        centres[:, step.columns] = group
    return Z


def hidden_error(
    T: Array, w: Array, kernel: Kernel | None, size: int, rounds: int, tol: float, rng: Any
) -> Array:
    """Hide observed entries, predict them, and return the error of each column over its spread.

    Some rows are held out of the fit, and each of their observed entries is hidden once. If there
    are few rows, all are held out, in five folds.
    """
    n, spread = len(T), moments(T, w)[1]
    held = min(_TEST_ROWS, max(n // 5, 1))
    order = rng.permutation(n)
    total, mass = np.zeros(T.shape[1]), np.zeros(T.shape[1])
    for fold in tracked(range(min(5, n, _TEST_ROWS // held) if n > 1 else 0), "hidden entries"):
        test = order[fold * held : (fold + 1) * held]
        fitted = np.sort(np.setdiff1d(order, test, assume_unique=True)[:_FIT_ROWS])
        columns = np.flatnonzero((~np.isnan(T[fitted])).sum(axis=0) > 1)
        if not columns.size:
            continue
        rows, X = T[np.ix_(fitted, columns)], T[np.ix_(test, columns)]
        chain = Chain(rows, w[fitted], kernel, size, rng)
        chain.run(rounds, tol)
        part = rng.integers(_PARTS, size=X.shape)
        copies = np.repeat(X[None], _PARTS, axis=0)
        copies[part == np.arange(_PARTS)[:, None, None]] = np.nan
        hidden = np.isnan(copies) & ~np.isnan(X) & ~np.isnan(copies).all(axis=2, keepdims=True)
        k, i, j = np.nonzero(hidden)
        some, again = np.unique(k * len(X) + i, return_inverse=True)
        rows_left = copies.reshape(-1, X.shape[1])[some]
        Z = replay(chain.kernel, chain.regressions, rows[chain.centres], chain.mean, rows_left)
        gap = (Z[again, j] - X[i, j]) / spread[columns[j]]
        total += np.bincount(columns[j], w[test][i] * gap**2, len(total))
        mass += np.bincount(columns[j], w[test][i], len(mass))
    ratio = np.divide(total, mass, out=np.full(len(mass), np.nan), where=mass > 0.0)
    return np.asarray(np.sqrt(ratio))


def moments(T: Array, w: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of the observed entries of each column.

    A column that is constant to rounding, or has nothing observed, gets a deviation of 1.
    """
    seen = ~np.isnan(T)
    v = w[:, None] * seen
    v /= np.maximum(v.sum(axis=0), np.finfo(float).tiny)
    centre = np.where(seen.any(axis=0), np.where(seen, T, -np.inf).max(axis=0), 0.0)
    mean = centre + (v * np.where(seen, T - centre, 0.0)).sum(axis=0)
    gap = np.where(seen, T - mean, 0.0)
    peak = np.maximum(gap.max(axis=0), -gap.min(axis=0))  # so that squares do not underflow
    peak[peak == 0.0] = 1.0
    gap /= peak
    spread = peak * np.sqrt(np.einsum("ij,ij,ij->j", v, gap, gap))
    return mean, np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)
