"""LBFGS: limited-memory BFGS for a batch of elements and any differentiable kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, positive_int
from mercer.preimages._descent import IterativeSolver, steepest
from mercer.preimages._problem import Problem
from mercer.preimages._state import State, row_norms, row_products

_FAR = 40.0  # logarithm: pairs from places whose values differ by more are of no use


@dataclass(frozen=True)
class LBFGS(IterativeSolver):
    """Limited-memory BFGS with the fixed-point step as its first guess of the inverse Hessian.

    Needs first derivatives only. Where the kernel has a fixed-point step, the first step is that
    step, and the later ones accelerate it.

    Parameters
    ----------
    tol, max_iter
        As for `FixedPoint`.
    pairs : int
        Steps that are remembered.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0) + mc.Linear()
    >>> psi = mc.Element(k, [[0.0, 1.0], [1.0, 1.0]], [0.5, 0.5])
    >>> mc.preimage(psi, mc.LBFGS(), start=[[1.0, 0.0]]).points.round(6)
    array([[0.5, 1. ]])
    """

    pairs: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pairs", positive_int(self.pairs, "pairs"))

    def memory(self, problem: Problem, rows: int) -> Any:
        return []

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        """The two-loop recursion."""
        if problem.constraint.region is not None:
            return steepest(problem, state)
        q = np.array(state.gradient)
        alphas = []
        for pair in memory:  # newest first
            alphas.append(pair.inverse * row_products(pair.step, q))
            q -= alphas[-1][:, None] * pair.change
        r = _initial(problem, state, memory, q)
        for pair, alpha in zip(reversed(memory), reversed(alphas), strict=True):
            r += (alpha - pair.inverse * row_products(pair.change, r))[:, None] * pair.step
        return np.negative(r, out=r)

    def learn(self, memory: Any, rows: Array, old: State, new: State) -> None:
        """Remember a step if the gradient grew along it; forget all after a failure."""
        unit = np.exp(np.clip(old.shift - new.shift, -_FAR, _FAR))  # gradients are in exp(shift)
        same = bool((unit == 1.0).all())
        if not same:
            for pair in memory:
                pair.change *= unit[:, None]
                pair.inverse /= unit
        s = new.points - old.points
        y = new.gradient - (old.gradient if same else unit[:, None] * old.gradient)
        product, size = row_products(s, y), row_norms(s) * row_norms(y)
        near = np.abs(old.shift - new.shift) < _FAR
        good = rows & near & (product > 1e-12 * size) & (product > 0)
        for pair in memory:
            pair.inverse[~good] = 0.0
        inverse = np.where(good, 1.0 / np.where(good, product, 1.0), 0.0)
        memory.insert(0, _Pair(s, y, inverse))
        del memory[self.pairs :]

    def keep(self, memory: Any, rows: Array) -> Any:
        return [_Pair(p.step[rows], p.change[rows], p.inverse[rows]) for p in memory]


@dataclass
class _Pair:
    """A step of every row and the change of the gradient along it; unused where inverse is 0."""

    step: Array
    change: Array
    inverse: Array  # 1 / <step, change>


def _initial(problem: Problem, state: State, memory: list[_Pair], q: Array) -> Array:
    """H_0 q: the usual scaling by the newest pair, the length of the fixed-point step without."""
    scale = np.zeros(len(q))
    used = np.zeros(len(q), dtype=bool)
    if memory:
        used = memory[0].inverse != 0
        change = row_norms(memory[0].change)
        scale = np.where(used, 1.0 / (memory[0].inverse * change) / change, 0.0)
    if not used.all():
        rows = state[~used]
        ratio = row_norms(steepest(problem, rows)) / rows.local_norm
        scale[~used] = np.nan_to_num(ratio, posinf=0.0)
    q *= scale[:, None]
    return q
