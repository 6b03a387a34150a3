"""Conditions that the profile of an inner product must satisfy to be a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._array import Array, instance, positive_length
from mercer.engine import Dot, profile_at
from mercer.exceptions import InputError
from mercer.kernels import Kernel

_SLACK = 1e-12  # of the largest value of the profile
_ZOOMS = 4


@dataclass(frozen=True)
class ProjectiveConditions:
    """The smallest values of f, f' and f' + t f'' on 0 <= t <= largest.

    Attributes
    ----------
    minima : tuple of three floats
    at : tuple of three floats
        The t at which they are attained.
    scale : float
        The largest |f| on the interval.
    holds : bool
        Whether all three are >= -1e-12 times `scale`.

    Examples
    --------
    >>> import mercer as mc
    >>> found = mc.theory.projective_conditions(mc.Polynomial(2, offset=0.0), 3.0)
    >>> found.minima, found.at
    ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    """

    minima: tuple[float, ...]
    at: tuple[float, ...]
    scale: float

    @property
    def violated(self) -> tuple[str, ...]:
        """The conditions that fail beyond rounding."""
        pairs = zip(("f", "f'", "f' + t f''"), self.minima, strict=True)
        return tuple(name for name, least in pairs if least < -_SLACK * self.scale)

    @property
    def holds(self) -> bool:
        """Whether all conditions hold."""
        return not self.violated


def projective_conditions(kernel: Kernel, largest: float = 10.0) -> ProjectiveConditions:
    """Check f(t) >= 0, f'(t) >= 0 and f'(t) + t f''(t) >= 0 for k(x, y) = f(<x, y>), t >= 0.

    Positive definiteness needs all three; together they do not suffice (t - t^2 + t^3 satisfies
    them and is not a kernel). A power series without negative coefficients suffices, in all
    dimensions. Source: Honeine 2024, Propositions 20 and 21.

    Parameters
    ----------
    kernel : Kernel
        A profile of one inner product, with derivatives.
    largest : float
        The largest t > 0 to check: r^2 for kernels on a ball of radius r. Minima are searched on an
        even grid of 1,001 points and a geometric one towards zero, then by zooming in four times.
        Values that overflow, or do not exist at t = 0, are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> class Falling(mc.DotProduct):
    ...     def profile(self, t):
    ...         return 2.0 - t
    >>> mc.theory.projective_conditions(Falling(), 1.0).violated
    ("f'", "f' + t f''")
    """
    instance(kernel, Kernel, "kernel")
    largest = positive_length(largest, "largest", limit=1e150)
    variables = kernel.program.variables
    if len(variables) != 1 or not isinstance(variables[0], Dot):
        raise InputError(f"{kernel!r} is not a profile of one inner product")
    grid = np.unique([0.0, *np.geomspace(1e-8 * largest, largest, 200)])
    grid = np.union1d(grid, np.linspace(0.0, largest, 1001))
    values = _conditions(kernel, grid)
    minima, at = zip(*(_least(kernel, i, grid, values[i]) for i in range(3)), strict=True)
    scale = float(np.abs(values[0][np.isfinite(values[0])]).max(initial=0.0))
    return ProjectiveConditions(minima, at, scale)


def _conditions(kernel: Kernel, t: Array) -> Array:
    """f, f' and f' + t f'' at t, shape (3, n)."""
    f, first, second = profile_at(kernel.program.profile, t, 2)
    with np.errstate(all="ignore"):
        return np.stack([f, first, first + t * second])


def _least(kernel: Kernel, condition: int, t: Array, values: Array) -> tuple[float, float]:
    """The smallest value of one condition and where it is; NaN is left out."""
    least, at = np.inf, float(t[0])
    for _ in range(_ZOOMS + 1):
        known = np.where(np.isnan(values), np.inf, values)
        i = int(np.argmin(known))
        if known[i] < least:
            least, at = float(known[i]), float(t[i])
        t = np.linspace(t[max(i - 1, 0)], t[min(i + 1, t.size - 1)], 65)
        values = _conditions(kernel, t)[condition]
    return least, at
