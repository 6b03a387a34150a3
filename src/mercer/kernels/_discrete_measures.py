"""Discrete spectral measures: kernels on the circle have their mass at integer frequencies."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import Array, frozen
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels._measures import SpectralMeasure


class Atoms(SpectralMeasure):
    """Spectral measure on a circle: mass c_|l| at the frequency 2 pi l / period, l an integer.

    The spectral measure of k(x, y) = sum_l c_|l| exp(2 pi i l (x - y) / period). It has no density;
    `atoms` lists frequencies and masses.

    Examples
    --------
    >>> import mercer as mc
    >>> measure = mc.Periodic((1.0, 0.5), period=1.0).spectral_measure(1)
    >>> frequencies, masses = measure.atoms(1)
    >>> frequencies.round(4), masses
    (array([-6.2832,  0.    ,  6.2832]), array([0.5, 1. , 0.5]))
    """

    dim = 1
    period: float

    @abstractmethod
    def _masses(self, orders: Array) -> Array:
        """c_l for whole numbers l >= 0."""

    @abstractmethod
    def _draw_orders(self, size: int, rng: np.random.Generator) -> Array:
        """Draws of |l|, by mass."""

    def atoms(self, n_terms: int) -> tuple[Array, Array]:
        """Return the frequencies 2 pi l / period and the masses of l = -n_terms, ..., n_terms."""
        l = np.arange(-n_terms, n_terms + 1)  # noqa: E741  (as in the formula)
        return 2.0 * math.pi / self.period * l, self.masses(l)

    def masses(self, l: Any) -> Any:  # noqa: E741
        """Return c_|l| for whole numbers l."""
        return self._masses(np.abs(whole(l)))[()]

    def _density(self, w: Array) -> Array:
        raise UnavailableError(
            "this spectral measure has its mass at single frequencies and no density; read them "
            "with atoms(n_terms), or sample it"
        )

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Frequencies of either sign."""
        sign = np.where(rng.random(size) < 0.5, -1.0, 1.0)
        orders = sign * self._draw_orders(size, rng)
        return np.asarray(2.0 * math.pi / self.period * orders)[:, None]


@dataclass(frozen=True, eq=False)
class TableAtoms(Atoms):
    """Masses c_0, ..., c_L from a table; all others are zero, or too small to matter."""

    table: Any
    period: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", frozen(np.array(self.table, dtype=np.float64)))

    @property
    def mass(self) -> float:  # type: ignore[override]
        return float(self.table[0] + 2.0 * np.sum(self.table[1:]))

    def _masses(self, orders: Array) -> Array:
        inside = np.minimum(orders, len(self.table) - 1)
        return np.where(orders < len(self.table), self.table[inside], 0.0)

    def _draw_orders(self, size: int, rng: np.random.Generator) -> Array:
        both = np.append(self.table[0], 2.0 * self.table[1:])
        return rng.choice(len(both), size, p=both / both.sum())


@dataclass(frozen=True)
class ZetaAtoms(Atoms):
    """c_0 = constant and c_l = l^-exponent: orders follow the zeta distribution."""

    constant: float
    exponent: float
    period: float

    @property
    def mass(self) -> float:  # type: ignore[override]
        from scipy.special import zeta

        return self.constant + 2.0 * float(zeta(self.exponent))

    def _masses(self, orders: Array) -> Array:
        powers = np.maximum(orders, 1).astype(np.float64) ** -self.exponent
        return np.where(orders == 0, self.constant, powers)

    def _draw_orders(self, size: int, rng: np.random.Generator) -> Array:
        at_zero = rng.random(size) * self.mass < self.constant
        return np.where(at_zero, 0, rng.zipf(self.exponent, size))


def whole(l: Any) -> Array:  # noqa: E741
    """l as an array of integers, or raise."""
    orders = np.asarray(l)
    if orders.dtype.kind not in "iu" or np.any(np.abs(orders.astype(np.float64)) > 2.0**62):
        raise InputError(f"l must hold whole numbers below 2**62, got dtype {orders.dtype}")
    return orders.astype(np.int64)
