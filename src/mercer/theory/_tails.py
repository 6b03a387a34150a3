"""Whether an integral over all frequencies converges, from a scan over octaves.

The integrand is known at w = 2^t, as exp(log_mass) over log w. What is decided, and
when nothing is, stands in the notes of `bochner_norm`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer._array import Array

_LEAST_DENSITY = math.log(1e-290)  # below, doubles have no digits left
_LEAST_POWER = math.log(1e-300) * 2.0  # of a square: the transform itself at 1e-300
_ABRUPT = math.log(1e-200)  # a density that ends above this has ended, not underflowed
_STEEP = 100.0  # a logarithmic slope beyond this is no power law
_WINDOW = 8  # octaves in each of the two runs at an end
_NEAR = 7  # steps in a short window


@dataclass(frozen=True)
class Tail:
    """`converges`, why, the scan from `first` to `last` to integrate, and what lies beyond."""

    converges: bool | None
    reason: str
    first: int = 0
    last: int = 0
    log_rest: float = -math.inf


def judge(t: Array, log_power: Array, log_density: Array, log_mass: Array, steps: int) -> Tail:
    """Both ends of the frequencies, and holes of the density in between."""
    known = (log_density > _LEAST_DENSITY) & (log_density < np.inf) & (log_power < np.inf)
    alive = log_power > _LEAST_POWER
    if not known.any():
        return Tail(None, "the spectral density is below 1e-290 at all frequencies tried")
    first, last = (int(i) for i in np.flatnonzero(known)[[0, -1]])
    hole = np.flatnonzero(alive[first:last] & (log_density[first:last] == -np.inf))
    if hole.size:
        return _no_mass(float(2.0 ** t[first + hole[0]]))
    low = _end_by_octaves(log_mass[first : last + 1][::-1], steps, "towards frequency zero")
    if not low.converges:
        return Tail(low.converges, low.reason)
    if last + 1 < t.size and alive[last + 1 :].any():
        high = _end_of_density(t, log_power, log_density, log_mass, last, steps)
    elif last + 1 < t.size:
        high = Tail(True, "the transform has vanished where the spectral density does")
    else:
        high = _end_by_octaves(log_mass[first : last + 1], steps, "at high frequencies")
    log_rest = float(np.logaddexp(low.log_rest, high.log_rest))
    return Tail(high.converges, high.reason, first, last, log_rest)


def _end_by_octaves(log_mass: Array, steps: int, where: str) -> Tail:
    """Fit the logarithm of the integral over octaves on the last two runs."""
    octaves = min(2 * _WINDOW, log_mass.size // steps)
    window = log_mass[log_mass.size - octaves * steps :].reshape(octaves, steps)
    log_octave = np.logaddexp.reduce(window, axis=1) + math.log(math.log(2.0) / steps)
    if octaves < 4:
        return Tail(None, f"the integrand is known on fewer than four octaves {where}")
    if log_octave[-1] == -np.inf:
        return Tail(True, f"the transform vanishes {where}")
    runs = np.array_split(log_octave / math.log(2.0), 2)
    if not np.isfinite(log_octave).all():
        return Tail(None, f"the transform comes and goes {where}")
    slopes = [float(np.polyfit(np.arange(run.size), run, 1)[0]) for run in runs]
    shown = f"the integral over an octave goes like 2^({slopes[1]:.3g} octaves) {where}"
    if min(slopes) > -0.01:
        return Tail(False, f"{shown}, so it diverges")
    if max(slopes) > -0.1:
        return Tail(None, f"{shown}: too near the border to tell whether it converges")
    ratio = 2.0 ** max(slopes)
    rest = float(log_octave[-1]) + math.log(ratio / (1.0 - ratio))
    return Tail(True, f"{shown}, so it converges", log_rest=rest)


def _end_of_density(
    t: Array, log_power: Array, log_density: Array, log_mass: Array, last: int, steps: int
) -> Tail:
    """The density is below 1e-290 beyond `last`, and the transform is not."""
    w = float(2.0 ** t[last])
    if log_density[last] > _ABRUPT:
        return _no_mass(w)
    slope = float(log_density[last] - log_density[last - 1]) * steps / math.log(2.0)
    if slope > -_STEEP:
        return _end_by_octaves(log_mass[: last + 1], steps, "at high frequencies")
    before, ratio = (_ratio(log_power, log_density, i, steps) for i in (last - steps, last))
    shown = f"log|F|^2 falls {ratio:.4g} times as fast as log(density) at frequency {w:.4g}"
    if ratio < 0.97 and ratio <= max(1.05 * before, 0.001):
        return Tail(False, f"{shown}, so the integral diverges")
    rises = float(log_power[last + 1 :].max() - log_power[last - _NEAR : last + 1].max())
    if ratio > 1.03 and 2.0 * ratio - before > 1.03 and rises < 1.0:
        rest = float(log_mass[last - _NEAR : last + 1].max())
        return Tail(True, f"{shown}, so the integral converges", log_rest=rest)
    return Tail(None, f"{shown}, and the density underflows beyond: undecided")


def _ratio(log_power: Array, log_density: Array, i: int, steps: int) -> float:
    """Slope of log|F|^2 over that of log(density) in the octave before number i.

    On the envelope: where an oscillating F is largest in a short window.
    """
    ends = [j - _NEAR + int(np.argmax(log_power[j - _NEAR : j + 1])) for j in (i - steps, i)]
    falls = [float(log[ends[1]] - log[ends[0]]) for log in (log_power, log_density)]
    return falls[0] / falls[1]


def _no_mass(w: float) -> Tail:
    return Tail(False, f"there is no spectral mass at frequency {w:.4g}, where the transform is")
