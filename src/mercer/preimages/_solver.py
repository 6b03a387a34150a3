"""Solver: the base class of all ways to find a pre-image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mercer.preimages._problem import Problem
from mercer.preimages._result import SolverResult


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
