"""Solutions of linear systems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._status import Status


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of a linear system; with several right-hand sides one entry for each.

    Attributes
    ----------
    coef : array of shape (n,) or (n, b)
        The solution A.
    residual : float or array of shape (b,)
        |M A - B| / |B| of each column, from a fresh product with the matrix M, jitter left out
        (of kernel sums as exact as `options(tolerance=...)` asks for).
    n_iter : int or array of shape (b,)
        Iterations; 0 for a direct method.
    jitter : float
        What was added to the diagonal beyond the penalty because the matrix was not positive
        definite to rounding; 0 if nothing was.
    rank : int
        Eigenvalues that were used: n, or fewer where singular ones were left out.
    method : str
        What was done: `cholesky`, `eigen`, `cg` or `woodbury`.
    status : Status or tuple of b Status
        Why it stopped.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer import linalg
    >>> twice = [[0.0], [0.0], [1.0]]  # a duplicate makes K singular
    >>> solution = linalg.solve(mc.Gaussian(1.0), twice, [1.0, 1.0, 0.0], penalty=0.0)
    >>> solution.coef.round(4), solution.rank, solution.status.name
    (array([ 0.791 ,  0.791 , -0.9595]), 2, 'TRUNCATED')
    """

    coef: Array
    residual: Any
    n_iter: Any
    jitter: float
    rank: int
    method: str
    status: Status | tuple[Status, ...]

    @classmethod
    def direct(
        cls,
        coef: Array,
        residual: Array,
        rank: int,
        method: str,
        status: Status,
        jitter: float = 0.0,
    ) -> Solution:
        """The solution of a method without iterations."""
        b = residual.size
        return cls(coef, residual, np.zeros(b, dtype=np.intp), jitter, rank, method, (status,) * b)

    def first(self) -> Solution:
        """The solution for the first right-hand side, without the axis of columns."""
        assert isinstance(self.status, tuple)
        return replace(
            self,
            coef=self.coef[:, 0],
            residual=float(self.residual[0]),
            n_iter=int(self.n_iter[0]),
            status=self.status[0],
        )

    @property
    def ok(self) -> bool:
        """Whether every column is what was asked for."""
        statuses = self.status if isinstance(self.status, tuple) else (self.status,)
        return all(status.ok for status in statuses)
