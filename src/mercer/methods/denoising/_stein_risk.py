"""Stein's unbiased risk estimate (SURE): the error of a denoiser without clean data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._array import Array

_STEP = 1e-3  # of the noise: a directional derivative whose truncation and rounding are both small


@dataclass(frozen=True)
class SteinRisk:
    """The mean squared error of y + t (D(y) - y), estimated for noise of variance s^2.

    With r(y) = D(y) - y, s^2 + (t^2 |r|^2 + 2 t s^2 div r) / size is an unbiased estimate of the
    mean squared error per entry. It is least at t = -s^2 div r / |r|^2.
    """

    variance: float  # s^2
    moved: float  # |r|^2 per entry
    divergence: float  # div r per entry: minus the share of the noise that is taken out

    @property
    def trust(self) -> float:
        """The best t in [0, 1]."""
        if self.moved <= 0.0:
            return 0.0
        return float(np.clip(-self.variance * self.divergence / self.moved, 0.0, 1.0))

    def at(self, trust: float) -> float:
        """The estimated mean squared error per entry."""
        v = self.variance
        return v + trust**2 * self.moved + 2.0 * trust * v * self.divergence


def estimate_risk(denoise: Callable[[Array], Array], rows: Array, noise: float) -> SteinRisk:
    """Estimate the risk of a map that does not depend on the rows to which it is applied.

    The divergence is that of the whole batch along one direction of random signs: exact on average,
    and precise because it is summed over all entries.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=rows.shape)
    step = _STEP * noise if noise > 0.0 else 1e-6 * float(np.abs(rows).max() or 1.0)
    moved = rows + step * signs
    here, there = denoise(rows) - rows, denoise(moved) - moved
    slope = float(np.sum(signs * (there - here))) / step
    return SteinRisk(noise**2, float(np.mean(here**2)), slope / rows.size)
