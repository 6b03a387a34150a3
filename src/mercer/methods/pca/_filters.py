"""Spectral filters: how much of each principal direction is kept."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, non_negative, positive_int
from mercer.exceptions import InputError


class Filter(ABC):
    """Base of spectral filters: weights in [0, 1] of the directions of a principal subspace.

    A subclass implements `weights`. A parameter that is None is set from the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.methods import Filter
    >>> class Half(Filter):
    ...     def weights(self, eigenvalues, noise):
    ...         return np.full(len(eigenvalues), 0.5)
    >>> Half().weights(np.array([4.0, 1.0]), None)
    array([0.5, 0.5])
    """

    @abstractmethod
    def weights(self, eigenvalues: Array, noise: float | None) -> Array:
        """Return one weight per eigenvalue; `noise` is what noise adds to each eigenvalue."""

    @property
    def needs_noise(self) -> bool:
        """Whether a parameter was left at None, to be set from the noise."""
        return any(value is None for value in vars(self).values())


@dataclass(frozen=True)
class Truncation(Filter):
    """Filter with all weights 1: the classical projection of kernel PCA.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> mc.methods.Truncation().weights(np.array([5.0, 1.0]), None)
    array([1., 1.])
    """

    def weights(self, eigenvalues: Array, noise: float | None) -> Array:
        """Return ones."""
        return np.ones(len(eigenvalues))


@dataclass(frozen=True)
class Tikhonov(Filter):
    """Filter with the weights lambda / (lambda + a): weak directions are shrunk.

    This is ridge regression of the features on themselves. It is the best linear filter if a is
    what noise adds to each eigenvalue.

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
        """Return lambda / (lambda + a)."""
        a = _required(self, noise) if self.strength is None else self.strength
        return np.asarray(eigenvalues / (eigenvalues + a)) if a > 0 else np.ones(len(eigenvalues))


@dataclass(frozen=True)
class Landweber(Filter):
    """Filter with the weights 1 - (1 - lambda / lambda_1)^t: t steps of gradient descent.

    Parameters
    ----------
    n_steps : int or None
        t >= 1. None takes the number of steps that gives weight 1/2 to a direction as strong as
        the noise, as `Tikhonov` does.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> mc.methods.Landweber(2).weights(np.array([4.0, 2.0]), None)
    array([1.  , 0.75])
    """

    n_steps: int | None = None

    def __post_init__(self) -> None:
        if self.n_steps is not None:
            object.__setattr__(self, "n_steps", positive_int(self.n_steps, "n_steps"))

    def weights(self, eigenvalues: Array, noise: float | None) -> Array:
        """Return 1 - (1 - lambda / lambda_1)^t."""
        left = 1.0 - np.asarray(eigenvalues) / eigenvalues[0]
        if self.n_steps is not None:
            return np.asarray(1.0 - left**self.n_steps)
        share = _required(self, noise) / float(eigenvalues[0])
        if share <= 0.0:
            return np.ones(len(eigenvalues))
        t = max(1.0, math.log(0.5) / math.log1p(-share)) if share < 1.0 else 1.0
        return np.asarray(1.0 - left**t)


def as_filter(filter: Any, default: Filter) -> Filter:  # noqa: A002
    """Return a filter, the default for None."""
    if filter is not None and not isinstance(filter, Filter):
        raise InputError(f"filter must be a Filter such as Tikhonov(1.0), or None, got {filter!r}")
    return default if filter is None else filter


def _required(filter: Filter, noise: float | None) -> float:  # noqa: A002
    if noise is None:
        raise InputError(f"{filter!r} needs a strength, or the noise")
    return noise
