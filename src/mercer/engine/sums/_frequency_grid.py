"""Grids of frequencies that represent a kernel on a box, and transforms between points and modes.

    k(x - y) = sum_m D_m exp(i <w_m, x - y>),   w_m = 2 pi m / L

has two approximations: the kernel repeats with period L, and frequencies end at M. Both errors are
bounded. For a positive definite kernel D_m >= 0, so the truncation loses at most the missing mass
k_L(0) - sum_m D_m, where k_L is the kernel summed over its images.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._threads import map_threads, thread_count
from mercer.engine._sizes import contiguous, pieces
from mercer.engine.pairs._distance_limits import reach
from mercer.engine.programs._jets import profile_at
from mercer.engine.programs._program import Program

MOST_MODES, _MOST_SAMPLES = 1 << 24, 1 << 22  # a few hundred MiB of complex numbers at most
FEW_POINTS = 1 << 14  # not worth several threads
_FINEST, _COARSEST = 1e-13, 1e-6  # relative accuracy asked of the transforms
_MOST_PER_AXIS = 8192  # samples: profiles that need more are better summed directly
_CLIP = 2.6  # period over data range for slow profiles: 2 is the least, the rest is for bending
_TRANSFORMS = 0.25  # share of the tolerance that is left to the transforms


@lru_cache(maxsize=1)
def finufft() -> Any:
    """The module, or None where it is not installed (extra `fast`)."""
    try:
        return importlib.import_module("finufft")
    except ImportError:
        return None


@dataclass(frozen=True)
class Grid:
    """Frequencies and weights that represent a kernel on a box."""

    centre: Array  # of the box, shape (d,)
    extent: Array  # lengths of its sides
    period: Array  # L for each axis
    weights: Array  # D_m, shape (2 M_1 + 1, ..., 2 M_d + 1)
    error: float  # a bound on |sum_m D_m exp(i <w_m, x - y>) - k(x, y)| for points in the box
    accuracy: float = _FINEST  # relative error allowed to the non-uniform transforms

    def frequencies(self, axis: int) -> Array:
        """w along one axis, shaped to multiply an array of modes."""
        half = self.weights.shape[axis] // 2
        w: Array = 2.0 * math.pi * np.arange(-half, half + 1) / self.period[axis]
        return np.asarray(w.reshape([-1 if k == axis else 1 for k in range(self.weights.ndim)]))


def grid_for(
    program: Program, low: Array, high: Array, tolerance: float, most: float = MOST_MODES
) -> Grid | None:
    """The smallest grid that meets tolerance * k(0) on the box; None beyond `most` modes."""
    extent = np.maximum(high - low, 1e-12 * np.maximum(np.abs(low), np.abs(high)) + 1e-300)
    centre, dim = 0.5 * (low + high), extent.size
    share = (1.0 - _TRANSFORMS) * tolerance
    error = share * program.value_at_zero
    pad2 = reach(program, 0, share / (4.0 * dim), 64.0 * float((extent**2).sum()))
    grid = None
    if program.spectrum is not None and math.isfinite(pad2):
        grid = _from_density(program, centre, extent, math.sqrt(pad2), error, most)
    if grid is None or grid.error > error:
        grid = _from_samples(program, centre, extent, error, min(most, _MOST_SAMPLES))
    if grid is None:
        return None
    accuracy = _TRANSFORMS * tolerance / (2.0 * dim)
    return replace(grid, accuracy=float(np.clip(accuracy, _FINEST, _COARSEST)))


def _from_density(
    program: Program, centre: Array, extent: Array, pad: float, error: float, most: float
) -> Grid | None:
    """Weights from the spectral density; the error is wrapped mass plus missing mass."""
    assert program.spectrum is not None
    dim, period = centre.size, extent + pad
    omega = _tail_frequency(program, error / (4.0 * dim))
    half = np.ceil(omega * period / (2.0 * math.pi))
    if np.prod(2.0 * half + 1.0) > most:
        return None
    half = half.astype(int)
    axes = [
        (2.0 * math.pi * np.arange(-h, h + 1) / p) ** 2 for h, p in zip(half, period, strict=True)
    ]
    density = program.spectrum(reduce(np.add.outer, axes).ravel(), dim).reshape(2 * half + 1)
    weights = density * (2.0 * math.pi) ** dim / float(np.prod(period))
    if not np.isfinite(weights).all():
        return None
    periodic = _images(program, period, np.zeros(dim))
    missing = abs(periodic - float(weights.sum()))
    wrapped = _images(program, period, extent) - program.value_at_zero
    return Grid(centre, extent, period, weights, missing + wrapped)


def _images(program: Program, period: Array, slack: Array, shells: int = 6) -> float:
    """The kernel summed over its periodic images, each moved closer by up to `slack`."""
    steps = np.arange(-shells, shells + 1)
    axes = [
        np.maximum(0.0, np.abs(steps) * p - np.where(steps == 0, 0.0, s)) ** 2
        for p, s in zip(period, slack, strict=True)
    ]
    return float(profile_at(program.profile, reduce(np.add.outer, axes))[0].sum())


def _from_samples(
    program: Program, centre: Array, extent: Array, error: float, most: float
) -> Grid | None:
    """Weights by FFT of the profile, on a coordinate that is bent to be periodic outside the box.

    For profiles without a known spectral density, or that decay too slowly. Differences of points
    in the box stay in the range where the coordinate is straight, so only the number of modes
    limits the accuracy; it is doubled until the error between the samples is small enough. The
    longest axis is tried first by itself, to give up early.
    """
    period, size, dim = _CLIP * extent, 32, extent.size
    if dim > 1:
        longest = [int(np.argmax(extent))]
        line = _from_samples(program, centre[longest], extent[longest], error, most ** (1.0 / dim))
        if line is None:
            return None
        size = line.weights.size + 1
    while size <= _MOST_PER_AXIS and float(size) ** dim <= most:
        ticks = [np.arange(size) * (p / size) for p in period]
        bent = [_bent(t, e, p) ** 2 for t, e, p in zip(ticks, extent, period, strict=True)]
        samples = profile_at(program.profile, reduce(np.add.outer, bent))[0]
        weights = np.fft.fftshift(np.fft.fftn(samples).real / samples.size)
        weights = weights[(slice(1, None),) * dim]  # drop the unpaired highest mode
        found = 2.0 * _measured_error(program, Grid(centre, extent, period, weights, 0.0), extent)
        if found <= error:
            return Grid(centre, extent, period, weights, found)
        size *= 2
    return None


def _bent(x: Array, extent: float, period: float) -> Array:
    """The distance to the nearest multiple of the period, level half-way between them."""
    t = np.minimum(x, period - x)
    top = 0.5 * period
    s = np.clip((t - extent) / (top - extent), 0.0, 1.0)
    # a smooth step: all derivatives vanish at both ends
    with np.errstate(over="ignore", divide="ignore"):
        step = 1.0 / (1.0 + np.exp(1.0 / np.maximum(s, 1e-9) - 1.0 / np.maximum(1.0 - s, 1e-9)))
    return np.asarray(t * (1.0 - step) + (0.5 * (extent + top)) * step)


def _measured_error(program: Program, grid: Grid, extent: Array) -> float:
    """The largest error on random differences of points in the box; the caller doubles it."""
    rng = np.random.default_rng(0)
    gaps = rng.uniform(-1.0, 1.0, size=(4000, extent.size)) * extent
    gaps[:2000] *= rng.uniform(0.0, 1.0, size=(2000, 1)) ** 3  # more of them close together
    value = evaluate_modes(grid, grid.weights[None].astype(complex), gaps + grid.centre)[0]
    exact = profile_at(program.profile, (gaps**2).sum(axis=1))[0]
    return float(np.abs(value - exact).max())


def _tail_frequency(program: Program, mass: float) -> float:
    """The frequency beyond which one axis of the spectral measure holds less than `mass`."""
    assert program.spectrum is not None
    w = np.logspace(-6.0, 9.0, 6001)
    density = program.spectrum(w**2, 1)
    pieces = 0.5 * (density[1:] + density[:-1]) * np.diff(w)
    tail = 2.0 * np.cumsum(pieces[::-1])[::-1]
    beyond = np.flatnonzero(tail <= mass)
    return float(w[beyond[0]]) if beyond.size else math.inf


def evaluate_modes(grid: Grid, modes: Array, Y: Array) -> Array:
    """Real sums at Y for a stack of modes of real functions, shape (stack, m)."""
    packed = packed_in_pairs(modes)
    out = np.empty((2 * len(packed), len(Y)))
    # Threads of finufft wait for each other, which is slow on a busy machine. So blocks of queries
    # go to our pool, unless each would have to transform a grid larger than itself.
    rows = max(FEW_POINTS, 2 * grid.weights.size)
    shared = len(Y) <= 2 * rows and len(Y) > FEW_POINTS
    threads = thread_count() if shared else 1

    def block(part: slice) -> None:
        values = non_uniform_transform(2, grid, Y[part], packed, threads, modes.shape[1:])
        out[0::2, part], out[1::2, part] = values.real, values.imag

    map_threads(block, [slice(0, len(Y))] if shared else list(pieces(len(Y), rows)))
    return out[: len(modes)]


def non_uniform_transform(
    kind: int, grid: Grid, X: Array, packed: Array, threads: int, shape: tuple[int, ...]
) -> Array:
    """From strengths at the points to modes (kind 1) or back (kind 2), one row for each."""
    plan = finufft().Plan(
        kind,
        shape,
        n_trans=len(packed),
        eps=grid.accuracy,
        isign=-1 if kind == 1 else 1,
        nthreads=threads,
    )
    # in these units the box repeats after 2 pi
    scaled = (X.astype(np.float64) - grid.centre) * (2.0 * math.pi / grid.period)
    plan.setpts(*(contiguous(axis) for axis in scaled.T))
    found = np.asarray(plan.execute(packed if len(packed) > 1 else packed[0]))
    return found.reshape(len(packed), -1)


def packed_in_pairs(arrays: Array) -> Array:
    """Two real functions as one complex one, a + ib: half as many transforms."""
    odd = len(arrays) % 2
    padded = np.concatenate([arrays, np.zeros_like(arrays[:1])]) if odd else arrays
    return contiguous(padded[0::2] + 1j * padded[1::2])


def transform(grid: Grid, X: Array, A: Array, shape: tuple[int, ...]) -> Array:
    """Take coefficients to the frequency domain: c_m on `shape` modes, shape (b, modes...)."""
    dim = X.shape[1]
    packed = packed_in_pairs(A.T.astype(np.float64))
    modes = _modes_of_points(grid, X, packed, shape).reshape(-1, *shape)
    flipped = np.conj(modes[(slice(None), *(slice(None, None, -1),) * dim)])
    # of a + ib: the even part of the modes belongs to a, the odd part to b
    both = np.stack([0.5 * (modes + flipped), -0.5j * (modes - flipped)], axis=1)
    return np.asarray(both.reshape(-1, *shape)[: A.shape[1]])


def _modes_of_points(grid: Grid, X: Array, packed: Array, shape: tuple[int, ...]) -> Array:
    """Transforms of points, on all threads.

    The threads of finufft add in an order that varies, so each of our threads sums its own points,
    unless the grids would then take more time than the points.
    """
    threads = thread_count() if len(X) > FEW_POINTS else 1
    if len(X) < threads * 2 ** len(shape) * math.prod(shape):
        return non_uniform_transform(1, grid, X, packed, threads, shape)
    parts = list(pieces(len(X), -(-len(X) // threads)))

    def modes(part: slice) -> Array:
        return non_uniform_transform(1, grid, X[part], contiguous(packed[:, part]), 1, shape)

    return np.asarray(reduce(np.add, map_threads(modes, parts)))
