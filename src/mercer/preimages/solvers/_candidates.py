"""Candidates: the best of given points as the pre-image, for any kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, check_same_columns
from mercer._status import Status
from mercer.engine import as_float64, diagonal, n_columns, n_rows, pieces
from mercer.exceptions import InputError
from mercer.preimages._objective import Collinear, Nearest
from mercer.preimages._problem import Problem
from mercer.preimages._solver import Solver, SolverResult

_VALUES = 1 << 20  # values of a batch, or coordinates, that are held at once


@dataclass(frozen=True, eq=False)
class Candidates(Solver):
    """Choose the best of given candidates c: the smallest k(c, c) / 2 - psi(c).

    That is the candidate whose feature is nearest to psi (Honeine 2024, see `preimage`, equation
    4). Only values of the kernel are needed, so strings, sets, graphs and rows of a precomputed
    matrix have pre-images too. All candidates are compared, in blocks. Among equally good ones the
    first is taken.

    Under a constraint the candidates are moved to the nearest points that meet it, before they are
    compared.

    Parameters
    ----------
    points : array_like or list of points of the kernel's domain, optional
        The candidates; by default the points of the elements.

    Examples
    --------
    >>> import mercer as mc
    >>> def common(A, B):
    ...     return [[float(len(set(a) & set(b))) for b in B] for a in A]
    >>> k = mc.kernels.FromFunction(common, on=mc.kernels.Objects())
    >>> psi = mc.mean_embedding(k, ["kernel", "colonel", "journal"])
    >>> mc.preimage(psi, mc.Candidates(["nel", "dog", "journalist"])).points
    ['nel']
    """

    points: Any = None

    def solve(self, problem: Problem, start: Any) -> SolverResult:
        psi, b = problem.psi, problem.batch
        given = self.points is not None
        chosen = psi.kernel.points(self.points, "the candidates") if given else psi.support
        check_same_columns(psi.points, chosen, ("the element's points", "the candidates"))
        points = as_float64(chosen.array)
        count = n_rows(points)
        plain = isinstance(problem.objective, Nearest | Collinear) and problem.constraint.is_free
        score = _scores if plain else _paired_scores
        per_candidate = b if plain else b * max(1, n_columns(points))
        best, index = np.full(b, np.inf), np.zeros(b, dtype=np.intp)
        for rows in pieces(count, max(1, _VALUES // per_candidate)):
            found = score(problem, points[rows])
            found = np.where(np.isnan(found), np.inf, found)
            at = np.argmin(found, axis=0)
            value = found[at, np.arange(b)]
            better = value < best
            best, index = np.where(better, value, best), np.where(better, at + rows.start, index)
        if np.isinf(best).any():
            raise InputError("the objective is not finite at any candidate; give others")
        status = np.full(b, Status.CHOSEN, dtype=object)
        taken = _chosen_points(problem, points[index])
        return SolverResult(taken, status, np.zeros(b, dtype=int), np.full(b, count))


def _scores(problem: Problem, points: Any) -> Array:
    """The objective of every element at every point, from values alone."""
    value = np.asarray(problem.psi.fields(points).value, dtype=np.float64)
    own = np.asarray(diagonal(problem.program, points), dtype=np.float64)[:, None]
    if isinstance(problem.objective, Nearest):
        return 0.5 * own - value
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-value / np.sqrt(np.where(own > 0, own, np.nan)))


def _paired_scores(problem: Problem, points: Any) -> Array:
    """The same, if each element has its own candidates or the objective is another one."""
    size, b = n_rows(points), problem.batch
    owners = np.tile(np.arange(b), size)
    points = problem.constraint.project(points[np.repeat(np.arange(size), b)], owners)
    return problem.objective.at(problem.sums, points, owners, 0).objective.reshape(size, b)


def _chosen_points(problem: Problem, taken: Any) -> Any:
    """The chosen points: rows of an array, or a list of objects."""
    if taken.dtype.kind == "V":  # rows of a table
        return taken
    if taken.dtype.kind in "OUS":
        return list(taken)
    return problem.constraint.project(taken, np.arange(problem.batch))
