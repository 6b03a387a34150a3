"""Denoising: project on a principal subspace, shrink, and go back; Stein's estimate of the risk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer._array import Array, Points, instance, non_negative
from mercer._frames import like
from mercer._progress import report, tracked
from mercer.engine import dense, n_rows, pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._inputs import raw_weights
from mercer.methods._rows import distinct_rows, row_keys, spread_rows
from mercer.methods.denoising._noise import NoiseLevel, feature_noise, noise_level
from mercer.methods.pca._filters import Filter, Tikhonov, Truncation, as_filter
from mercer.methods.pca._kernel_pca import fit_inverse, reconstruct
from mercer.preimages import FittedMap, LinearInverse, Solver, preimage
from mercer.space import Subspace, feature

_LARGEST = 1.0 - 1e-9  # weight of a row in its own result: the others must count too
_BLOCK = 4096  # rows that are denoised at once
_ENTRIES = 20_000  # on which the risk is averaged: its standard error is then about 1 %
_LEAST_STEP = 1e-13  # of the row, so that the step is not lost in rounding
_STEP = 1e-3  # of the noise: a directional derivative whose truncation and rounding are both small
_FEW_ROWS = 50  # the same for iterative solvers, which take milliseconds per row


@dataclass(frozen=True, eq=False)
class Denoiser:
    """A fitted denoiser: projects rows onto a principal subspace and maps them back to the data.

    y -> y + trust (D(y) - y), D(y) the pre-image of mu + sum_l w_l <k(y, .) - mu, f_l> f_l.
    `fit_denoiser` returns one.

    Attributes
    ----------
    plane : Subspace
        mu and the f_l.
    weights : array of shape (r,)
        The filter's weights w_l in [0, 1].
    inverse : Solver
        Finds pre-images; iterative solvers start at y.
    trust : float
        In [0, 1]; 1 is the pre-image itself.
    noise, noise_error : float
        The standard deviation of the noise for which it was made, and its standard error.
    risk : float
        Stein's estimate of its mean squared error per entry, each fitted row left out in turn.
    rows, row_weights : arrays of shape (n, d) and (n,), or None
        The distinct rows that were fitted, and their weights. Each is denoised as if it had been
        left out. None for a subspace on landmarks, in which single rows hardly matter.

    Examples
    --------
    >>> import mercer as mc
    >>> X = [[-1.0, 1.1], [0.0, 0.8], [1.0, 1.1]]
    >>> plane = mc.kernel_pca(mc.Linear(), X, 1)
    >>> denoiser = mc.methods.fit_denoiser(plane, X, noise=0.0, trust=1.0)
    >>> denoiser([[0.5, 0.5]]).round(6)
    array([[0.5, 1. ]])
    """

    plane: Subspace
    weights: Array = field(repr=False)
    inverse: Solver
    trust: float
    noise: float
    noise_error: float = 0.0
    risk: float = np.nan
    rows: Any = field(default=None, repr=False)
    row_weights: Array | None = field(default=None, repr=False)

    def __call__(self, Y: Any) -> Any:
        """Return the rows of Y, denoised; fitted rows as if they had been left out of the fit.

        A frame comes back as a frame with the same columns.
        """
        given, Y = Y, self.plane.origin.queries(Y)
        out = np.empty(Y.shape, np.float32 if Y.dtype == np.float32 else np.float64)
        for rows in tracked(list(pieces(n_rows(Y), _BLOCK)), "rows"):
            y = dense(Y[rows])
            found = y if self.trust == 0.0 else self._projected(Y[rows])
            out[rows] = found if self.trust == 1.0 else y + self.trust * (found - y)
        return like(given, out)

    def _projected(self, Y: Any) -> Array:
        """D(y), without the row itself if y is one of the fitted rows."""
        if self.rows is None or self.row_weights is None:
            return self.project(Y)
        (keys, order), wanted = self._keys, row_keys(Y)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        fitted = keys[at] == wanted
        out = np.empty(Y.shape)
        if not fitted.all():
            out[~fitted] = self.project(Y[~fitted])
        if fitted.any():
            own, w = order[at[fitted]], self.row_weights
            without = self.left_out(dense(self.rows[own]), w[own], float(w.sum()))
            out[fitted] = without(dense(Y[fitted]))
        return out

    @cached_property
    def _keys(self) -> tuple[Array, Array]:
        """Keys of the fitted rows in ascending order, and which rows they belong to."""
        keys = row_keys(self.rows)
        order = np.argsort(keys)
        return keys[order], order

    def project(self, Y: Any) -> Array:
        """Return D(y), the result for trust 1."""
        c = self._coordinates(Y) * self.weights
        return np.asarray(reconstruct(self.plane, self.inverse, c, start=dense(Y)))

    def left_out(self, rows: Array, w: Array, total: float) -> Callable[[Array], Array]:
        """Return the map that takes y_i to what D(y_i) would be if row i had not been fitted.

        It leaves row i out of the mean, the subspace and a linear inverse: exactly for `Tikhonov`
        weights on all directions, approximately otherwise. The rows are distinct training rows
        and w their weights: equal rows are left out together. `total` is the weight of all.

        D smooths rows: with coordinates C of the rows and phi the filter's weights, the share of
        row i in the value at coordinates c is s_i(c) = w_i (1 / total + sum_l phi_l c_l C_il /
        lambda_l). Without it the value changes by s_i(c) / (1 - s_i(C_i)) times what D does to row
        i: a rank-one update.
        """
        plane, phi, kernel = self.plane, self.weights, self.plane.origin.kernel
        C = self._coordinates(rows)
        gain = phi / np.maximum(np.asarray(plane.eigenvalues), np.finfo(float).tiny)

        def share(c: Array) -> Array:
            return np.asarray(w * (1.0 / total + np.einsum("ij,ij->i", c * gain, C)))

        others = 1.0 - np.minimum(share(C), _LARGEST)

        def without(Y: Array) -> Array:
            c = self._coordinates(Y)
            f = share(c) / others
            if isinstance(self.inverse, LinearInverse):
                points = self.inverse.points_of
                return np.asarray(points(c * phi) + f[:, None] * (points(C * phi) - rows))
            # psi(y) + f (psi(x_i) - k(x_i, .))
            psi = plane.element(c * phi + f[:, None] * (C * phi))
            own = feature(kernel, Points(rows, kernel.domain))
            psi = psi + plane.origin.combine(f[None]) - own * f
            start = Y if self.inverse.needs_start else None
            return np.asarray(preimage(psi, self.inverse, start=start).points, dtype=np.float64)

        return without

    def _coordinates(self, Y: Any) -> Array:
        kernel = self.plane.origin.kernel
        c = self.plane.coordinates(feature(kernel, Points(Y, kernel.domain)))
        return np.asarray(c, dtype=np.float64)


def fit_denoiser(
    plane: Subspace,
    X: Any,
    *,
    weights: Any = None,
    filter: Filter | None = None,  # noqa: A002
    noise: float | str | NoiseLevel = "auto",
    trust: float | str = "auto",
    inverse: Any = None,
) -> Denoiser:
    """Fit a denoiser on a principal subspace; filter and trust are chosen if not given.

    Parameters
    ----------
    plane : Subspace
        From `kernel_pca`, with a kernel on vectors.
    X, weights : array_like or CSR matrix of shape (n, d), and array_like of shape (n,) or None
        The rows from which it was found, and their weights.
    filter : Filter or None
        None is `Tikhonov()`, and `Truncation()` for kernels without derivatives.
    noise : float, NoiseLevel or "auto"
        The standard deviation of the noise; "auto" estimates it from X (`noise_level`).
    trust : float or "auto"
        The share in [0, 1] of the change that is kept; "auto" minimises Stein's estimate of the
        squared error, each row left out in turn.
    inverse : Solver, LearnedMap or None
        Finds pre-images; None is `LinearInverse`.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> from mercer.methods import fit_denoiser
    >>> rng = np.random.default_rng(0)
    >>> line = np.outer(rng.normal(size=200), [1.0, 2.0, -1.0, 0.5])
    >>> noisy = line + 0.3 * rng.normal(size=line.shape)
    >>> denoiser = fit_denoiser(mc.kernel_pca(mc.Linear(), noisy), noisy, noise=0.3)
    >>> bool(np.mean((denoiser(noisy) - line) ** 2) < 0.5 * np.mean((noisy - line) ** 2))
    True
    """
    values = instance(plane, Subspace, "plane").eigenvalues
    if values is None:
        raise InputError("the subspace has no eigenvalues; take one from kernel_pca")
    kernel = plane.origin.kernel
    _check(kernel, noise, trust)
    X = kernel.points(X)
    weights = raw_weights(weights, len(X))
    smooth = kernel.program.has_derivatives
    filter = as_filter(filter, Tikhonov() if smooth else Truncation())  # noqa: A001
    if isinstance(noise, str):
        noise = noise_level(X, weights=weights)
    level = noise if isinstance(noise, NoiseLevel) else NoiseLevel(noise, 0.0)
    sd = float(level.sd)
    strength = feature_noise(kernel, X, sd, weights=weights) if filter.needs_noise else None
    solver = fit_inverse(inverse, plane, X, weights)
    denoiser = Denoiser(plane, filter.weights(values, strength), solver, 1.0, sd, level.error)
    rows, mass = distinct_rows(X.array, weights)
    if n_rows(plane.origin.points) >= len(mass):  # otherwise landmarks
        denoiser = replace(denoiser, rows=rows, row_weights=mass)
    report("left-out errors")
    risk = leave_one_out_risk(denoiser, X, weights=weights)
    trust = risk.trust if isinstance(trust, str) else float(trust)
    return replace(denoiser, trust=trust, risk=risk.at(trust))


def leave_one_out_risk(denoiser: Denoiser, X: Any, *, weights: Any = None) -> SteinRisk:
    """Estimate the risk of a denoiser at trust 1 on the rows it was fitted to, each left out.

    It is averaged over enough distinct rows for 20,000 entries, at least 100 (50 for iterative
    solvers).
    """
    X = denoiser.plane.origin.kernel.points(X)
    quick = isinstance(denoiser.inverse, LinearInverse | FittedMap)
    size = max(100, _ENTRIES // X.shape[1]) if quick else _FEW_ROWS
    rows, w = spread_rows(X.array, weights, size)
    total = float(n_rows(X)) if weights is None else float(np.sum(weights))
    return estimate_risk(denoiser.left_out(rows, w, total), rows, denoiser.noise)


def held_out_risk(denoiser: Denoiser, Y: Any) -> SteinRisk:
    """Estimate the risk of a denoiser at trust 1 on rows it was not fitted to."""
    return estimate_risk(denoiser.project, dense(Y), denoiser.noise)


@dataclass(frozen=True)
class SteinRisk:
    """The mean squared error of y + t (D(y) - y), estimated for noise of variance s^2.

    With r(y) = D(y) - y, s^2 + (t^2 |r|^2 + 2 t s^2 div r) / size is an unbiased estimate of the
    mean squared error per entry. It is smallest at t = -s^2 div r / |r|^2.
    """

    variance: float  # s^2
    moved: float  # |r|^2 per entry
    divergence: float  # div r per entry: minus the share of the noise that is removed

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


@np.errstate(over="ignore")  # of rows near the largest floating-point numbers
def estimate_risk(denoise: Callable[[Array], Array], rows: Array, noise: float) -> SteinRisk:
    """Estimate the risk of a map that does not depend on the rows to which it is applied.

    The divergence is that of the whole batch along one direction of random signs: exact on average,
    and precise because it is summed over all entries.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=rows.shape)
    step = np.maximum(_STEP * noise, _LEAST_STEP * np.abs(rows).max(axis=1, keepdims=True))
    step = np.where(step > 0.0, step, 1.0)
    moved = rows + step * signs
    here, there = denoise(rows) - rows, denoise(moved) - moved
    slope = float(np.mean(signs * (there - here) / step))
    return SteinRisk(noise * noise, float(np.mean(here**2)), slope)


def _check(kernel: Kernel, noise: Any, trust: Any) -> None:
    if not kernel.domain.is_vector:
        raise InputError(
            f"points of {kernel!r} are not vectors, so they have no noise to take out; KernelPCA "
            "has an inverse_transform for them"
        )
    noise = noise.sd if isinstance(noise, NoiseLevel) else noise
    for name, value, most in (("noise", noise, 1e150), ("trust", trust, 1.0)):
        if isinstance(value, str):
            if value != "auto":
                raise InputError(f"{name} must be a number >= 0 or 'auto', got {value!r}")
        elif non_negative(value, name) > most:
            raise InputError(f"{name} must lie in [0, {most:g}], got {value!r}")
