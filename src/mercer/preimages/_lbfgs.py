"""Limited-memory BFGS, a batch at a time, for any differentiable kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, positive_int
from mercer.preimages._descent import Descent, steepest
from mercer.preimages._problem import Problem
from mercer.preimages._state import State

_FAR = 40.0  # logarithm: pairs from places whose values differ by more are of no use


@dataclass(frozen=True)
class LBFGS(Descent):
    """Limited-memory BFGS with the fixed-point step as its first guess of the inverse Hessian.

    Needs first derivatives only. Where the kernel has a fixed-point step, the first step is that
    step, and the later ones accelerate it.

    Parameters
    ----------
    tol : float
    max_iter : int
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
        """Steps, changes of the gradient, and how many of them there are."""
        shape = (rows, self.pairs, problem.dim)
        return _Pairs(np.zeros(shape), np.zeros(shape), np.zeros((rows, self.pairs)))

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        """The two-loop recursion."""
        if not problem.constraint.is_linear:
            return steepest(problem, state)
        S, Y, rho = memory.steps, memory.changes, memory.inverse
        q = np.array(state.gradient)
        alpha = np.zeros(rho.shape)
        for i in range(self.pairs):  # newest first
            alpha[:, i] = rho[:, i] * np.einsum("md,md->m", S[:, i], q)
            q -= alpha[:, i, None] * Y[:, i]
        r = -_initial(problem, state, memory, q)
        for i in reversed(range(self.pairs)):
            beta = -rho[:, i] * np.einsum("md,md->m", Y[:, i], r)
            r -= (alpha[:, i] - beta)[:, None] * S[:, i]
        return np.asarray(r)

    def learn(self, memory: Any, rows: Array, old: State, new: State) -> None:
        """Remember a step if the gradient grew along it; forget all after a failure."""
        unit = np.exp(np.clip(old.shift - new.shift, -_FAR, _FAR))  # gradients are in exp(shift)
        near = np.abs(old.shift - new.shift) < _FAR
        memory.changes *= unit[:, None, None]
        memory.inverse /= unit[:, None]
        s, y = new.points - old.points, new.gradient - unit[:, None] * old.gradient
        product = np.einsum("md,md->m", s, y)
        size = np.linalg.norm(s, axis=1) * np.linalg.norm(y, axis=1)
        good = rows & near & (product > 1e-12 * size) & (product > 0)
        for array, entry in ((memory.steps, s), (memory.changes, y)):
            array[good, 1:] = array[good, :-1]
            array[good, 0] = entry[good]
        memory.inverse[good, 1:] = memory.inverse[good, :-1]
        memory.inverse[good, 0] = 1.0 / product[good]
        memory.inverse[~good] = 0.0

    def keep(self, memory: Any, rows: Array) -> Any:
        """The memory of some rows."""
        return _Pairs(memory.steps[rows], memory.changes[rows], memory.inverse[rows])


@dataclass
class _Pairs:
    """Pairs of every row, the newest first; a pair is in use where its inverse is not zero."""

    steps: Array
    changes: Array
    inverse: Array  # 1 / <step, change>


def _initial(problem: Problem, state: State, memory: Any, q: Array) -> Array:
    """H_0 q: the fixed point's 1 / stiffness where it is positive, else the usual scaling."""
    used = memory.inverse[:, 0] != 0
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.sum(memory.changes[:, 0] ** 2, axis=1)
        usual = 1.0 / (memory.inverse[:, 0] * change)
    scaled = q * np.where(used & np.isfinite(usual), usual, 1.0)[:, None]
    fresh = np.zeros_like(q)
    if (~used).any():
        rows = state[~used]
        length = np.linalg.norm(steepest(problem, rows), axis=1)
        norm = np.linalg.norm(rows.gradient, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            fresh[~used] = q[~used] * np.nan_to_num(length / norm, posinf=0.0)[:, None]
    return np.where(used[:, None], scaled, fresh)
