"""Solver: the base class of all ways to find a pre-image, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._status import Status
from mercer.preimages._problem import Problem
from mercer.preimages._result import History
from mercer.preimages._state import State


class Solver(ABC):
    """A way to find pre-images: a frozen dataclass that holds settings and no data.

    `preimage` gives it a `Problem` (elements, an objective, a constraint), and computes distances,
    gradients and certificates of the points that it returns.

    Examples
    --------
    A solver that returns the mean of the element's points:

    >>> import numpy as np
    >>> import mercer as mc
    >>> from mercer.preimages import Solver, SolverResult
    >>> class Mean(Solver):
    ...     def solve(self, problem, start):
    ...         mean = problem.psi.points.mean(axis=0)
    ...         return SolverResult.computed(np.tile(mean, (problem.batch, 1)))
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0], [5.0]])
    >>> back = mc.preimage(psi, Mean())
    >>> back.points, back.status[0].name
    (array([[2.]]), 'COMPUTED')
    """

    needs_start: bool = False  # does it iterate from starting points?

    @abstractmethod
    def solve(self, problem: Problem, start: Any) -> SolverResult:
        """Return a point for each element; `start` has shape (s, b, d), None if not needed."""


@dataclass(frozen=True, eq=False)
class SolverResult:
    """What a solver returns: one row for each element of its problem.

    Attributes
    ----------
    points : array of shape (b, d), or what the kernel takes for points
    status : object array of `Status`, shape (b,)
    n_iter, n_evaluations : arrays of shape (b,)
    history : History or None
    state : State or None
        The objective and its derivatives at the points, where the solver knows them.

    Examples
    --------
    >>> from mercer.preimages import SolverResult
    >>> [s.name for s in SolverResult.computed([[0.0], [1.0]]).status]
    ['COMPUTED', 'COMPUTED']
    """

    points: Any
    status: Array
    n_iter: Array
    n_evaluations: Array
    history: History | None = None
    state: State | None = None

    @classmethod
    def computed(cls, points: Any) -> SolverResult:
        """Points that came without iterating."""
        zeros = np.zeros(len(points), dtype=int)
        return cls(points, np.full(len(points), Status.COMPUTED, dtype=object), zeros, zeros)

    def part(self, rows: slice) -> SolverResult:
        """The result of some of the elements, without the path."""
        counts = self.n_iter[rows], self.n_evaluations[rows]
        state = None if self.state is None else self.state[rows]
        return SolverResult(self.points[rows], self.status[rows], *counts, None, state)
