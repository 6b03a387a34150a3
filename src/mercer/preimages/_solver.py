"""What every solver is: a small value that holds settings and no data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mercer.preimages._problem import Problem
from mercer.preimages._result import SolverResult
from mercer.space import Element


class Solver(ABC):
    """A way to find pre-images; a frozen dataclass of settings.

    `preimage` hands it a `Problem`: a block of elements, their objective and constraints. What
    comes back is judged outside: distances, gradients and certificates do not depend on the solver.
    """

    needs_start: bool = False  # does it iterate from starting points?

    def prepare(self, psi: Element) -> Solver:
        """Return a solver that has done what all blocks of a batch share; itself by default."""
        return self

    @abstractmethod
    def solve(self, problem: Problem, starts: Any) -> SolverResult:
        """Return a point for each element; `starts` has shape (s, b, d), None without need."""
