"""FixedPoint: the fixed-point iteration of Mika et al., made monotone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer._array import Array
from mercer.exceptions import DerivativeError
from mercer.preimages._descent import IterativeSolver, steepest
from mercer.preimages._problem import Problem
from mercer.preimages._state import State


@dataclass(frozen=True)
class FixedPoint(IterativeSolver):
    r"""Repeat x <- sum_i a_i k'(u_i) x_i / sum_i a_i k'(u_i), with a safeguard.

    For kernels of the inner product the step is sum_i a_i f'(<x, x_i>) x_i / f'(\|x\|^2). Weights
    are formed in log space, so that the step is right where every kernel value underflows.

    With coefficients of both signs the published iteration may climb, cycle, or divide by zero. The
    safeguarded one walks along -gradient / \|denominator\|, which is the same step where that is
    downhill, and less far where the objective would not fall: it is monotone for any signs. Honeine
    (2024, see `preimage`), equations (15), (16) and (B.5), which Theorem 27 wrongly calls monotone.

    Parameters
    ----------
    tol : float
        A search has converged when its gradient is at most tol times a bound that holds everywhere
        (`gradient_bound`, for radial kernels), or times the size of its two parts (for others).
    max_iter : int
    safeguard : bool
        False is the published iteration, for reproductions.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0], [5.0]])
    >>> mc.preimage(psi, mc.FixedPoint(), start=[[2.0]]).points.round(6)
    array([[0.500136]])
    """

    safeguard: bool = True

    @property
    def guarded(self) -> bool:  # type: ignore[override]
        return self.safeguard

    def direction(self, problem: Problem, state: State, owners: Array, memory: Any) -> Array:
        if state.stiffness is None:
            raise DerivativeError(
                "FixedPoint needs a kernel of one squared distance or inner product, and the "
                "Nearest problem; use LBFGS for any differentiable kernel"
            )
        if self.safeguard:
            return steepest(problem, state)
        return problem.fixed_point_step(state)
