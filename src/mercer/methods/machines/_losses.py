"""Losses of a prediction: values, subgradients, curvatures, conjugates and constants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array, as_numbers, non_negative, one_of
from mercer.exceptions import InputError


class Loss(ABC):
    """A loss l(y, t) of the target y and the prediction t.

    It is a function p of one number z: the error z = t - y for regression, the margin z = y t for
    classification, where y is 1 or -1.

    Attributes
    ----------
    classifies : bool
        Whether targets are labels 1 and -1.
    convex : bool
        Whether l is convex in t.
    lipschitz : float
        The smallest L with |l(y, s) - l(y, t)| <= L |s - t| for all s and t; infinite if none.
    smoothness : float
        The Lipschitz constant of the derivative in t; infinite if l has kinks or jumps.
    """

    classifies: ClassVar[bool]
    convex: ClassVar[bool] = True
    lipschitz: ClassVar[float]
    smoothness: ClassVar[float]

    @abstractmethod
    def _value(self, z: Array) -> Array:
        """p(z)."""

    @abstractmethod
    def _slope(self, z: Array) -> Array:
        """A subgradient of p at z: 0 if that is one of them."""

    def _bend(self, z: Array) -> Array:
        """The second derivative of p, ignoring kinks."""
        return np.zeros_like(z)

    @abstractmethod
    def _conjugate(self, s: Array) -> Array:
        """The supremum of s z - p(z) over z."""

    @np.errstate(over="ignore", invalid="ignore")
    def __call__(self, y: Any, t: Any) -> Array:
        """Return l(y, t), infinite where it overflows."""
        y, t = self._checked(y, t)
        return np.asarray(self._value(y * t if self.classifies else t - y))

    @np.errstate(over="ignore", invalid="ignore")
    def subgradient(self, y: Any, t: Any) -> Array:
        """Return some g with l(y, s) >= l(y, t) + g (s - t) for all s: 0 if that is one."""
        y, t = self._checked(y, t)
        return np.asarray(y * self._slope(y * t) if self.classifies else self._slope(t - y))

    @np.errstate(over="ignore", invalid="ignore")
    def curvature(self, y: Any, t: Any) -> Array:
        """Return the second derivative in t, ignoring kinks."""
        y, t = self._checked(y, t)
        return np.asarray(self._bend(y * t if self.classifies else t - y))

    @np.errstate(over="ignore", invalid="ignore")
    def conjugate(self, y: Any, s: Any) -> Array:
        """Return sup_t s t - l(y, t), which may be infinite."""
        y, s = self._checked(y, s)
        return np.asarray(self._conjugate(y * s) if self.classifies else s * y + self._conjugate(s))

    def _checked(self, y: Any, t: Any) -> tuple[Array, Array]:
        y, t = as_numbers(y, "targets"), as_numbers(t, "predictions")
        try:
            np.broadcast_shapes(y.shape, t.shape)
        except ValueError as error:
            raise InputError(f"targets have shape {y.shape}, but predictions {t.shape}") from error
        if self.classifies and not np.all(np.abs(y) == 1.0):
            raise InputError(f"targets of {type(self).__name__} must be 1 or -1")
        return y, t


@dataclass(frozen=True)
class SquareLoss(Loss):
    """(y - t)^2.

    Examples
    --------
    >>> import mercer as mc
    >>> loss = mc.methods.SquareLoss()
    >>> float(loss(1.0, 3.0)), float(loss.subgradient(1.0, 3.0)), loss.smoothness
    (4.0, 4.0, 2.0)
    """

    classifies = False
    lipschitz = np.inf
    smoothness = 2.0

    def _value(self, z: Array) -> Array:
        return z * z

    def _slope(self, z: Array) -> Array:
        return 2.0 * z

    def _bend(self, z: Array) -> Array:
        return np.full_like(z, 2.0)

    def _conjugate(self, s: Array) -> Array:
        return 0.25 * s * s


@dataclass(frozen=True)
class EpsilonInsensitiveLoss(Loss):
    """max(|y - t| - epsilon, 0): small errors cost nothing.

    Parameters
    ----------
    epsilon : float
        >= 0. The default 0.1 is that of `SVR`.

    Examples
    --------
    >>> import mercer as mc
    >>> loss = mc.methods.EpsilonInsensitiveLoss(0.5)
    >>> loss(0.0, [0.25, 2.0]), loss.subgradient(0.0, [0.25, 2.0])
    (array([0. , 1.5]), array([0., 1.]))
    """

    epsilon: float = 0.1

    classifies = False
    lipschitz = 1.0
    smoothness = np.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative(self.epsilon, "epsilon"))

    def _value(self, z: Array) -> Array:
        return np.maximum(np.abs(z) - self.epsilon, 0.0)

    def _slope(self, z: Array) -> Array:
        return np.sign(z) * (np.abs(z) > self.epsilon)

    def _conjugate(self, s: Array) -> Array:
        return np.where(np.abs(s) <= 1.0, self.epsilon * np.abs(s), np.inf)


@dataclass(frozen=True)
class AbsoluteLoss(Loss):
    """|y - t|.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.methods.AbsoluteLoss()(1.0, [0.0, 3.0])
    array([1., 2.])
    """

    classifies = False
    lipschitz = 1.0
    smoothness = np.inf

    def _value(self, z: Array) -> Array:
        return np.abs(z)

    def _slope(self, z: Array) -> Array:
        return np.sign(z)

    def _conjugate(self, s: Array) -> Array:
        return np.where(np.abs(s) <= 1.0, 0.0, np.inf)


@dataclass(frozen=True)
class ZeroOneLoss(Loss):
    """1 if the sign of t is not y, 0 otherwise; t = 0 counts as wrong.

    It is not convex and has no subgradients. The hinge loss is at least as large.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.methods.ZeroOneLoss()([1, 1, -1], [0.5, -0.5, -2.0])
    array([0., 1., 0.])
    """

    classifies = True
    convex = False
    lipschitz = np.inf
    smoothness = np.inf

    def _value(self, z: Array) -> Array:
        return (z <= 0.0).astype(np.float64)

    def _slope(self, z: Array) -> Array:
        raise InputError(
            "the 0-1 loss is not convex: it has no subgradients and is not the supremum of lines; "
            "use HingeLoss or LogisticLoss"
        )

    def _bend(self, z: Array) -> Array:
        return self._slope(z)

    def _conjugate(self, s: Array) -> Array:
        return self._slope(s)


@dataclass(frozen=True)
class SquaredMarginLoss(Loss):
    """(1 - y t)^2, which equals (y - t)^2 for labels y = 1 and -1.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.methods.SquaredMarginLoss()([1, -1], [3.0, 1.0])
    array([4., 4.])
    """

    classifies = True
    lipschitz = np.inf
    smoothness = 2.0

    def _value(self, z: Array) -> Array:
        return (1.0 - z) ** 2

    def _slope(self, z: Array) -> Array:
        return 2.0 * (z - 1.0)

    def _bend(self, z: Array) -> Array:
        return np.full_like(z, 2.0)

    def _conjugate(self, s: Array) -> Array:
        return s + 0.25 * s * s


@dataclass(frozen=True)
class HingeLoss(Loss):
    """max(0, 1 - y t).

    Examples
    --------
    >>> import mercer as mc
    >>> loss = mc.methods.HingeLoss()
    >>> loss(1, [-1.0, 0.5, 2.0]), loss.subgradient(1, [-1.0, 0.5, 2.0])
    (array([2. , 0.5, 0. ]), array([-1., -1.,  0.]))
    """

    classifies = True
    lipschitz = 1.0
    smoothness = np.inf

    def _value(self, z: Array) -> Array:
        return np.maximum(0.0, 1.0 - z)

    def _slope(self, z: Array) -> Array:
        return np.where(z < 1.0, -1.0, 0.0)

    def _conjugate(self, s: Array) -> Array:
        return np.where((s >= -1.0) & (s <= 0.0), s, np.inf)


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """log(1 + exp(-y t)): minus the log-likelihood of y if its log-odds are t.

    Examples
    --------
    >>> import mercer as mc
    >>> loss = mc.methods.LogisticLoss()
    >>> loss(1, [0.0, 1000.0, -1000.0]).round(4), loss.smoothness
    (array([6.931e-01, 0.000e+00, 1.000e+03]), 0.25)
    """

    classifies = True
    lipschitz = 1.0
    smoothness = 0.25

    def _value(self, z: Array) -> Array:
        return np.logaddexp(0.0, -z)

    def _slope(self, z: Array) -> Array:
        return np.asarray(-np.exp(-np.logaddexp(0.0, z)))

    def _bend(self, z: Array) -> Array:
        return np.asarray(np.exp(-np.logaddexp(0.0, z) - np.logaddexp(0.0, -z)))

    def _conjugate(self, s: Array) -> Array:
        """Minus the entropy of the probability -s."""
        inside = (s >= -1.0) & (s <= 0.0)
        p = np.where(inside, -s, 0.0)
        return np.where(inside, _times_log(p) + _times_log(1.0 - p), np.inf)


BY_NAME: dict[str, Loss] = {
    "square": SquareLoss(),
    "absolute": AbsoluteLoss(),
    "epsilon_insensitive": EpsilonInsensitiveLoss(),
    "squared_margin": SquaredMarginLoss(),
    "hinge": HingeLoss(),
    "logistic": LogisticLoss(),
}


def as_convex_loss(loss: Any) -> Loss:
    """A convex loss, given by its name or as it is."""
    found = loss if isinstance(loss, Loss) else BY_NAME[one_of(loss, tuple(BY_NAME), "loss")]
    if not found.convex:
        raise InputError(f"loss must be convex, and {found!r} is not; use HingeLoss()")
    return found


def _times_log(p: Array) -> Array:
    """p log p, which is 0 at 0."""
    return np.asarray(p * np.log(np.where(p > 0.0, p, 1.0)))
