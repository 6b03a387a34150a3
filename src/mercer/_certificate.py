"""How far a fit is from optimal: objectives, duality gap and optimality conditions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.exceptions import InputError


@dataclass(frozen=True)
class FitCertificate:
    """How far a fit is from the optimum of its problem.

    Weak duality: every value of the dual objective is at most every value of the primal one. So
    the objective of the fit exceeds the smallest possible one by at most `gap`, whatever solver
    found it. This needs a positive definite kernel: with `Sigmoid`, for instance, the gap says
    nothing.

    Attributes
    ----------
    primal : float
        The objective that is minimised, at the fit.
    dual : float
        The dual objective: a lower bound on the smallest possible `primal`.
    stationarity : float
        The largest violation of the condition that the gradient of the Lagrangian is zero.
    feasibility : float
        The largest violation of a constraint.
    complementarity : float
        The largest product of a multiplier and the slack of its constraint.
    """

    primal: float
    dual: float
    stationarity: float
    feasibility: float
    complementarity: float

    def __post_init__(self) -> None:
        if np.isnan(self.primal) or np.isnan(self.dual):
            raise InputError(
                "objectives overflow; bring the kernel's values, targets and weights nearer to 1"
            )

    @property
    def gap(self) -> float:
        """`primal - dual`: the fit is at most this far from optimal."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """`gap` over the larger of |primal| and |dual|."""
        return relative_gap(self.primal, self.dual)

    def scaled(self, factor: float) -> FitCertificate:
        """The certificate of the same problem with its objective multiplied by a factor > 0."""
        primal, dual = factor * self.primal, factor * self.dual
        return replace(self, primal=primal, dual=dual, stationarity=factor * self.stationarity)


def relative_gap(primal: float, dual: float) -> float:
    """(primal - dual) over the larger of their absolute values; infinite without a primal value."""
    if not np.isfinite(primal):
        return np.inf
    size = max(abs(primal), abs(dual))
    return max(primal - dual, 0.0) / size if size > 0.0 else 0.0
