"""Spectral filters: how much of each principal direction is kept."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer._array import Array, non_negative, positive_int
from mercer.exceptions import InputError


class Filter(ABC):
    """Weights in [0, 1] for the coordinates in a principal subspace, from its eigenvalues."""

    @abstractmethod
    def weights(self, eigenvalues: Array, noise: float | None) -> Array:
        """Return one weight per eigenvalue; `noise` is what noise adds to each of them."""

    @property
    @abstractmethod
    def needs_noise(self) -> bool:
        """Whether the strength was left to the noise."""


@dataclass(frozen=True)
class HardCut(Filter):
    """Keep every direction of the subspace as it is: weight 1. The classical projection.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> mc.methods.HardCut().weights(np.array([5.0, 1.0]), None)
    array([1., 1.])
    """

    def weights(self, eigenvalues: Array, noise: float | None) -> Array:
        """All one."""
        return np.ones(len(eigenvalues))

    @property
    def needs_noise(self) -> bool:
        """Never."""
        return False


@dataclass(frozen=True)
class Tikhonov(Filter):
    """Weight lambda / (lambda + a): strong directions are kept, weak ones shrunk.

    That is the ridge regression of the features on themselves, and the best linear filter where a
    is what noise adds to each eigenvalue.

    Parameters
    ----------
    strength : float or None
        a >= 0, in units of the eigenvalues of the Gram matrix; None takes it from the noise.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> mc.methods.Tikhonov(1.0).weights(np.array([4.0, 1.0, 0.25]), None)
    array([0.8, 0.5, 0.2])
    """

    strength: float | None = None

    def __post_init__(self) -> None:
        if self.strength is not None:
            object.__setattr__(self, "strength", non_negative(self.strength, "strength"))

    def weights(self, eigenvalues: Array, noise: float | None) -> Array:
        """lambda / (lambda + a)."""
        a = _given(self, noise) if self.strength is None else self.strength
        return np.asarray(eigenvalues / (eigenvalues + a)) if a > 0 else np.ones(len(eigenvalues))

    @property
    def needs_noise(self) -> bool:
        """Where no strength was given."""
        return self.strength is None


@dataclass(frozen=True)
class EarlyStopping(Filter):
    """Weight 1 - (1 - lambda / lambda_1)^t: what t steps of gradient descent would have learned.

    Parameters
    ----------
    n_steps : int or None
        t >= 1; None takes the number that halves a direction as strong as the noise, as `Tikhonov`
        does.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> mc.methods.EarlyStopping(2).weights(np.array([4.0, 2.0]), None)
    array([1.  , 0.75])
    """

    n_steps: int | None = None

    def __post_init__(self) -> None:
        if self.n_steps is not None:
            object.__setattr__(self, "n_steps", positive_int(self.n_steps, "n_steps"))

    def weights(self, eigenvalues: Array, noise: float | None) -> Array:
        """1 - (1 - lambda / lambda_1)^t."""
        left = 1.0 - np.asarray(eigenvalues) / eigenvalues[0]
        t: float
        if self.n_steps is not None:
            t = self.n_steps
        else:
            share = _given(self, noise) / float(eigenvalues[0])
            if share <= 0.0:
                return np.ones(len(eigenvalues))
            t = max(1.0, math.log(0.5) / math.log1p(-share)) if share < 1.0 else 1.0
        return np.asarray(1.0 - left**t)

    @property
    def needs_noise(self) -> bool:
        """Where no number of steps was given."""
        return self.n_steps is None


def _given(filter: Filter, noise: float | None) -> float:  # noqa: A002
    if noise is None:
        raise InputError(f"{filter!r} needs a strength, or the noise")
    return noise
