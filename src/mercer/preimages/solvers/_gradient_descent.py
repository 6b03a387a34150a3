"""GradientDescent: with a step of 1/L or a line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.exceptions import InputError
from mercer.preimages._descent import IterativeSolver
from mercer.preimages._problem import Problem
from mercer.preimages._state import State, row_norms
from mercer.rigor import lipschitz


@dataclass(frozen=True)
class GradientDescent(IterativeSolver):
    """x <- x - t gradient, with t = 1/L or by a line search.

    With L the Lipschitz constant of the gradient (`lipschitz`), 1/L descends without a look at the
    objective. The line search starts from twice the step that worked last. Honeine (2024, see
    `preimage`), section 3.2.

    Parameters
    ----------
    tol, max_iter
        As for `FixedPoint`.
    line_search : bool

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0]])
    >>> mc.preimage(psi, mc.GradientDescent(), start=[[0.0]]).points.round(6)
    array([[0.5]])
    """

    max_iter: int = 10_000
    line_search: bool = True

    @property
    def guarded(self) -> bool:  # type: ignore[override]
        return self.line_search

    def memory(self, problem: Problem, rows: int) -> Any:
        """The step length of each row."""
        L = np.atleast_1d(np.asarray(lipschitz(problem.psi), dtype=float))
        known = np.isfinite(L) & (L > 0)
        if not self.line_search and not known.all():
            raise InputError(
                "the gradient of this element has no known finite Lipschitz constant; use "
                "GradientDescent(line_search=True)"
            )
        step = np.where(known, 1.0 / np.where(known, L, 1.0), 1.0)
        return np.tile(step, rows // problem.batch)

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        """-t gradient, in true units."""
        scale = memory * np.exp(state.shift)
        if self.line_search:
            # in the tails true gradients are nothing: keep the step of the fixed point instead
            scale = np.where(np.abs(state.shift) > 1.0, memory, scale)
        return np.asarray(-state.gradient * scale[:, None])

    def learn(self, memory: Any, rows: Array, old: State, new: State) -> None:
        """Twice what worked, half where nothing did."""
        if not self.line_search:
            return
        length = row_norms(new.points - old.points)
        norm = row_norms(old.gradient)
        used = length / norm
        fine = rows & np.isfinite(used) & (used > 0)
        memory[fine] = 2.0 * used[fine]
        memory[~rows] *= 0.5

    def keep(self, memory: Any, rows: Array) -> Any:
        return memory[rows]
