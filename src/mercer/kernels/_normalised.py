"""Normalised kernels: features of length one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.engine import Program, diagonal
from mercer.exceptions import DomainError
from mercer.kernels._domain import Domain
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._kernel import Kernel


@dataclass(frozen=True)
class _NonZero(Domain):
    """Points x with k(x, x) > 0."""

    kernel: Kernel

    def check(self, X: Any, name: str) -> Any:
        X = self.kernel.domain.check(X, name)
        length = diagonal(self.kernel.program, X)
        if not np.all(length > 0):
            row = int(np.flatnonzero(~(length > 0))[0])
            raise DomainError(
                f"{name} has a point with k(x, x) = {float(length[row])!r} (row {row}), whose "
                "feature has no direction; drop such points or add a constant to the kernel"
            )
        return X

    @property
    def base(self) -> Domain:
        return self.kernel.domain.base


@dataclass(frozen=True)
class Normalised(Kernel):
    """k(x, y) / sqrt(k(x, x) k(y, y)): the cosine of the angle between two features.

    Parameters
    ----------
    kernel : Kernel
        Positive definite, with k(x, x) > 0 at the points it is used on.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernels.Normalised(mc.Polynomial(2))([[1.0]], [[2.0]]).round(4)
    array([[0.9]])
    >>> k = mc.kernels.Normalised(mc.Exponential(4.0))
    >>> k([[1.0]], [[3.0]]) == mc.Gaussian(2.0)([[1.0]], [[3.0]])
    array([[ True]])
    """

    kernel: Kernel

    @property
    def flags(self) -> Flags:  # type: ignore[override]
        """A positive definite kernel stays one."""
        if self.kernel.flags.definiteness is Definiteness.POSITIVE:
            return Flags(Definiteness.POSITIVE)
        return Flags()

    @property
    def domain(self) -> Domain:
        return _NonZero(self.kernel)

    def lower(self) -> Program:
        return self.kernel.program.normalised()
