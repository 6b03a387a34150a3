"""The state of a batch of searches: points, and the objective there with its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array


@dataclass(frozen=True, eq=False)
class State:
    """Value and derivatives of the objective at each row; true ones are these times exp(shift).

    Shapes are (m, d) for points and gradients, (m, d, d) for Hessians, else (m,); derivatives are
    None if they were not asked for.
    """

    points: Array
    value: Array
    gradient: Any = None  # at a cusp the subgradient of smallest norm
    hessian: Any = None
    # what the fixed point divides by, x - gradient / stiffness: -2 sum a_i k'(u_i) for radial
    # kernels, f'(|x|^2) for kernels of the inner product, else None
    stiffness: Any = None
    shift: Any = None
    size: Any = None  # of the parts of the gradient; None where a bound that always holds is used
    terms: Any = None  # size of the parts of the value, which sets its rounding; None likewise
    cusp: Any = None  # coefficients of points that coincide with the row, at an infinite slope

    def __getitem__(self, rows: Any) -> State:
        cut: list[Any] = [
            None if (part := getattr(self, name)) is None else part[rows] for name in _PARTS
        ]
        return State(*cut)

    @classmethod
    def joined(cls, states: Sequence[State]) -> State:
        """The rows of several states, one after the other."""
        columns = [[getattr(state, name) for state in states] for name in _PARTS]
        parts: list[Any] = [None if c[0] is None else np.concatenate(c) for c in columns]
        return cls(*parts)

    def updated(self, rows: Array, other: State) -> State:
        """A copy in which some rows are those of another state; parts that one lacks are left."""
        out: list[Any] = []
        for name in _PARTS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is None or theirs is None:
                out.append(None)
                continue
            mine = np.array(mine)
            mine[rows] = theirs
            out.append(mine)
        return State(*out)

    def rise_from(self, old: State) -> Array:
        """The change of the objective since `old`, in units of exp(old.shift)."""
        gap = self.shift - old.shift
        if not gap.any():
            return np.asarray(self.value - old.value)
        return np.asarray(self.value * np.exp(np.where(self.value == 0, 0.0, gap)) - old.value)

    @property
    def objective(self) -> Array:
        """The true value."""
        return np.asarray(self.value * np.exp(self.shift))

    @cached_property
    def local_norm(self) -> Array:
        """The norm of the gradient, in units of exp(shift)."""
        return row_norms(self.gradient)

    @cached_property
    def gradient_norm(self) -> Array:
        """The true norm of the gradient."""
        return np.asarray(self.local_norm * np.exp(self.shift))

    @cached_property
    def fixed_point_step(self) -> Array:
        """-gradient / stiffness, the step of mean shift; 0 where the stiffness is not positive."""
        stiff = np.where(self.stiffness > 0.0, self.stiffness, np.inf)
        return np.asarray(-self.gradient / stiff[:, None])


_PARTS = tuple(State.__dataclass_fields__)


def smallest_subgradients(rest: Array, norm: Array, pull: Array) -> Array:
    """The subgradients of smallest norm at cusps: what a cusp can balance is taken away.

    Near a data point x_j with a cusp the objective is F + <rest, h> + pull |h|, so the smallest is
    max(0, 1 - pull / |rest|) rest. With it the fixed-point step is that of Vardi and Zhang, The
    multivariate L1-median and associated data depth, 2000. `rest` are gradients of all other terms,
    `norm` their norms in the metric of the kernel, `pull` is the slope of the cusp times its
    coefficient, 0 where there is none.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(norm > pull, 1.0 - pull / norm, 0.0)
    return np.asarray(np.where(pull > 0.0, share, 1.0)[:, None] * rest)


def row_norms(array: Array) -> Array:
    """The norm of each row, in one pass where no square overflows or underflows."""
    norms = np.sqrt(np.einsum("ij,ij->i", array, array))
    if len(norms) and not (norms.min() > 1e-140 and norms.max() < 1e140):  # else squares are exact
        rough = ~((norms > 1e-140) & (norms < 1e140))
        rows = array[rough]
        largest = np.abs(rows).max(axis=1, initial=0.0)
        unit = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)
        norms[rough] = unit * np.linalg.norm(rows / unit[:, None], axis=1)
    return np.asarray(norms)


def row_products(a: Array, b: Array) -> Array:
    """The inner product of each row of a with that of b, in one pass."""
    return np.asarray(np.einsum("ij,ij->i", a, b))
