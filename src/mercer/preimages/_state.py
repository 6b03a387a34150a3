"""The objective at a set of points, with a logarithmic scale per row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array


@dataclass(frozen=True)
class State:
    """Value and derivatives of the objective at each row; true ones are these times exp(shift).

    Attributes
    ----------
    points : (m, d)
    value : (m,)
    gradient, hessian : (m, d), (m, d, d); None if not asked for
    stiffness : (m,) or None
        What the fixed point divides by: x - gradient / stiffness is its step. -2 sum a_i k'(u_i)
        for radial kernels, f'(|x|^2) for kernels of the inner product.
    shift : (m,)
    size : (m,) or None
        The size of the parts of the gradient, against which it is small; None where a bound that
        holds everywhere is used instead.
    terms : (m,) or None
        The size of the parts of the value, which sets its rounding; None where that is known for
        the whole element.
    cusp : (m,) or None
        Coefficients of points of the element that coincide with the row, at an infinite slope.
    """

    points: Array
    value: Array
    gradient: Any = None
    hessian: Any = None
    stiffness: Any = None
    shift: Any = None
    size: Any = None
    terms: Any = None
    cusp: Any = None

    def __getitem__(self, rows: Any) -> State:
        parts: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        cut: dict[str, Any] = {k: None if v is None else v[rows] for k, v in parts.items()}
        return State(**cut)

    def updated(self, rows: Array, other: State) -> State:
        """A copy in which some rows are those of another state."""
        out: dict[str, Any] = {}
        for f in fields(self):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            if mine is not None:
                mine = np.array(mine)
                mine[rows] = theirs
            out[f.name] = mine
        return State(**out)

    def rise_from(self, old: State) -> Array:
        """The change of the objective since `old`, in units of exp(old.shift)."""
        with np.errstate(over="ignore", invalid="ignore"):
            grown = self.value * np.exp(np.where(self.value == 0, 0.0, self.shift - old.shift))
            return np.asarray(grown - old.value)

    @property
    def objective(self) -> Array:
        """The true value."""
        return np.asarray(self.value * np.exp(self.shift))

    @cached_property
    def local_norm(self) -> Array:
        """The norm of the gradient, in units of exp(shift)."""
        return row_norms(self.gradient)

    @property
    def gradient_norm(self) -> Array:
        """The true norm of the gradient."""
        return np.asarray(self.local_norm * np.exp(self.shift))


def row_norms(array: Array) -> Array:
    """The norm of each row, in one pass where nothing overflows."""
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", array, array)
    exact = (squares > 1e-280) & (squares < 1e280)
    if exact.all():
        return np.asarray(np.sqrt(squares))
    return np.where(exact, np.sqrt(np.where(exact, squares, 0.0)), np.linalg.norm(array, axis=1))


def row_products(a: Array, b: Array) -> Array:
    """The inner product of each row of a with that of b, in one pass."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def by_row(array: Array, factor: Array) -> Array:
    """Each row times its own number."""
    return array * factor.reshape(-1, *(1,) * (array.ndim - 1))
