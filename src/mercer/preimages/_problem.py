"""The problem a solver is handed: elements, what is minimised, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer import engine
from mercer._array import Array
from mercer.engine import Program, n_columns
from mercer.kernels import Kernel
from mercer.preimages._bounds import cusp_slope, gradient_bound
from mercer.preimages._constraint import Constraint
from mercer.preimages._objective import Objective
from mercer.preimages._state import State
from mercer.space import Element


@dataclass(frozen=True, eq=False)
class Problem:
    """A batch of elements to bring back.

    Attributes
    ----------
    psi : Element
        A batch, its points in float64.
    objective : Objective
    constraint : Constraint
    """

    psi: Element
    objective: Objective
    constraint: Constraint

    @property
    def kernel(self) -> Kernel:
        """The kernel of the space."""
        return self.psi.kernel

    @property
    def program(self) -> Program:
        """Its program."""
        return self.psi.kernel.program

    @property
    def batch(self) -> int:
        """The number of elements."""
        return len(self.psi)

    @property
    def dim(self) -> int:
        """The number of coordinates of a point."""
        return int(n_columns(self.psi.points))

    def at(self, points: Array, owners: Array, order: int = 1) -> State:
        """The objective of element owners[j] at row j, and derivatives in the free coordinates.

        At a cusp the gradient is the subgradient of smallest norm.
        """
        state = self.objective.at(self.psi, points, owners, min(order, self.objective.max_order))
        if state.cusp is not None and order:
            state = self._shrunk(state)
        if not order or self.constraint.is_free:
            return state
        return self.constraint.restrict(state, owners)

    def scale(self, state: State, owners: Array) -> Array:
        """What gradients are compared with, in true units: a bound on them, or their parts."""
        if state.size is not None:
            floor = np.finfo(float).tiny
            return np.asarray(np.maximum(state.size * np.exp(state.shift), floor))
        return self._bounds[owners]

    def precondition(self, gradient: Array) -> Array:
        """The gradient in the metric of a kernel k(Ax, Ay): times (A'A)^+."""
        return gradient if self._inverse_metric is None else gradient @ self._inverse_metric

    def shortened(self, step: Array, state: State) -> Array:
        """Steps where psi <= 0 cut to the kernel's own length: longer ones jump over minimisers."""
        length = self._length
        norm = np.linalg.norm(self._image(step), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where((state.value >= 0) & (norm > length), length / norm, 1.0)
        return step * factor[:, None]

    @cached_property
    def _length(self) -> float:
        """sqrt(-k(0) / 2 k'(0)), the length scale of a Gaussian; infinite where there is none."""
        if self.program.kind != "radial":
            return np.inf
        jet = engine.evaluate(self.program.profile, [np.zeros(1)], 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            squared = -0.5 * np.asarray(jet.value) / np.asarray(jet.first[0])
        scale = float(np.ravel(squared)[0])
        return float(np.sqrt(scale)) if np.isfinite(scale) and scale > 0 else np.inf

    def _image(self, vectors: Array) -> Array:
        """Vectors where the kernel measures them, A v."""
        for step in getattr(self.program.variables[0], "maps", ()):
            vectors = step.apply(vectors)
        return vectors

    @cached_property
    def _inverse_metric(self) -> Array | None:
        if not getattr(self.program.variables[0], "maps", ()):
            return None
        image = self._image(np.eye(self.dim))
        return np.asarray(np.linalg.pinv(image @ image.T, hermitian=True))

    @cached_property
    def _bounds(self) -> Array:
        bound = np.asarray(gradient_bound(self.psi), dtype=float)
        return np.maximum(bound, np.finfo(float).tiny)

    @cached_property
    def _cusp_slope(self) -> float:
        return cusp_slope(self.program)

    def _shrunk(self, state: State) -> State:
        """Take from the gradient at a cusp what the cusp can balance (Vardi and Zhang)."""
        weight = np.maximum(state.cusp, 0.0) * self._cusp_slope * np.exp(-state.shift)
        norm = np.linalg.norm(state.gradient, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = np.where(norm > 0, np.maximum(0.0, 1.0 - weight / norm), 0.0)
        keep = np.where(weight > 0, keep, 1.0)
        return replace(state, gradient=state.gradient * keep[:, None])


def best_of(problem: Problem, points: Array, starts: int) -> tuple[Array, Array]:
    """Which of several points per element is best: index of the start, and the points (b, d).

    `points` has shape (s, b, d).
    """
    b = problem.batch
    owners = np.tile(np.arange(b), starts)
    value: Any = problem.at(points.reshape(starts * b, -1), owners, 0).objective
    index = np.argmin(np.where(np.isnan(value), np.inf, value).reshape(starts, b), axis=0)
    return index, points[index, np.arange(b)]
