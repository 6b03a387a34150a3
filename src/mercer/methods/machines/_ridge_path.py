"""Ridge regression for all penalties from one eigendecomposition: leave-one-out, GCV, norms."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mercer._array import Array, Points
from mercer.engine import pieces
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg import GramOperator
from mercer.linalg._blocked_products import thin_svd
from mercer.linalg._dense import EPS, all_pairs

_SPAN = (1e-10, 10.0)  # of the largest eigenvalue: no fit changes beyond these penalties
_STEPS = 45  # penalties of a path, a factor of 1.8 apart
_ROWS = 8192  # whose leave-one-out residuals for all penalties are held at once


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Ridge regression on distinct rows, for every penalty.

    Minimises sum_i w_i |y_i - f(x_i) - c|^2 + penalty |f|^2. With r = D^(1/2) 1, D = diag(w), and
    S = D^(1/2) K D^(1/2) projected on the complement of r (if there is an intercept c),

        f = sum_i a_i k(x_i, .),  a = D^(1/2) P D^(1/2) y,  P = sum_k v_k v_k' / (s_k + penalty)

    over the eigenpairs (s_k, v_k) of S that are orthogonal to r.

    Attributes
    ----------
    values, vectors : arrays of shape (k,) and (m, k)
        Eigenpairs of S. If they are fewer than the dimension, the other eigenvalues are zero.
    targets : array of shape (m, t)
        D^(1/2) y, y minus its weighted mean if there is an intercept.
    weights : array of shape (m,)
    fit_intercept : bool
    scatter : array of shape (t,)
        sum_j w_j |y_j - mean|^2 over the targets of equal rows, which no fit can lower.
    directions : array of shape (r, k), optional
        For features in the rows of Z, the V with D^(1/2) Z = U s^(1/2) V'.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, Gaussian processes for machine learning, 2006, (5.12).
    G. Golub, M. Heath, G. Wahba, Generalized cross-validation, Technometrics 21, 1979.
    """

    values: Array
    vectors: Array
    targets: Array
    weights: Array
    fit_intercept: bool
    scatter: Array = field(default_factory=lambda: np.zeros(1))
    directions: Array | None = None

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Points,
        Y: Array,
        weights: Array,
        *,
        fit_intercept: bool = True,
        scatter: Array | None = None,
    ) -> RidgePath:
        """The path of the exact problem: n^2 numbers and about 9 n^3 operations."""
        S = GramOperator(kernel, X, centred=fit_intercept, weights=weights).dense()
        if fit_intercept:  # give r the largest eigenvalue, so that it is known and left out
            unit = np.sqrt(weights / weights.sum())
            S += np.outer((2.0 * abs(np.trace(S)) or 1.0) * unit, unit)
        values, V = all_pairs(S)
        if fit_intercept:
            values, V = values[:-1], V[:, :-1]
        targets = weighted_targets(Y, weights, fit_intercept)
        return cls(values, V, targets, weights, fit_intercept, _scatter(scatter, Y))

    @classmethod
    def of_features(
        cls, Z: Array, Y: Array, weights: Array, *, fit_intercept: bool, scatter: Array
    ) -> RidgePath:
        """The path of the kernel z(x)'z(y), for features in the rows of Z."""
        U, s, V = thin_svd(weighted_targets(Z, weights, fit_intercept))
        keep = s > max(Z.shape) * EPS * s.max(initial=0.0)  # for the others, U is arbitrary
        targets = weighted_targets(Y, weights, fit_intercept)
        if not keep.all():
            s, U, V = s[keep], U[:, keep], V[:, keep]
        return cls(s**2, U, targets, weights, fit_intercept, scatter, V)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    @cached_property
    def grid(self) -> Array:
        """Penalties of a path, descending, from no fit at all to interpolation."""
        largest = float(self.values.max(initial=0.0)) or 1.0
        return np.geomspace(_SPAN[1] * largest, _SPAN[0] * largest, _STEPS)

    def coef(self, penalty: float) -> Array:
        """a, shape (m, t); at penalty 0 the coefficients of least norm."""
        return np.asarray(np.sqrt(self.weights)[:, None] * self._scaled(penalty))

    def norm(self, penalty: float) -> float:
        """|f|, of all outputs together."""
        shrunk = self._along * self._inverse(self.values, penalty)[:, None]
        parts = np.sqrt(np.maximum(self.values, 0.0))[:, None] * shrunk
        unit = float(np.abs(parts).max(initial=0.0)) or 1.0  # squares of parts may underflow
        return unit * float(np.linalg.norm(parts / unit))

    def penalty_of_norm(self, limit: float) -> float:
        """The smallest penalty at which |f| <= limit: the multiplier of that constraint.

        So the fit minimises the sum of losses over all f with |f| <= limit.
        """
        from scipy.optimize import brentq

        if self.norm(0.0) <= limit:
            return 0.0
        low = float(self._floor or 1.0)
        size = float(np.linalg.norm(self._along))
        high = 2.0 * low + float(np.sqrt(self.values.max())) * size / limit
        if not np.isfinite(high):
            raise InputError(f"max_norm {limit!r} is too small for these targets; rescale them")
        if self.norm(low) <= limit:
            return low
        root = brentq(
            lambda t: np.log(self.norm(np.exp(t)) / limit), np.log(low), np.log(high), xtol=1e-13
        )
        return float(np.exp(root))

    def inverse_diagonal(self, penalty: float) -> Array:
        """Diagonal entries of P, shape (m,)."""
        return np.asarray(
            np.einsum("ij,ij,j->i", self.vectors, self.vectors, self._inverse(self.values, penalty))
            + self._rest * self._inverse(np.zeros(1), penalty)
        )

    def leave_one_out(self, penalty: float) -> Array:
        """y_i - f(x_i) - c without row i and its copies, at the same penalty; shape (m, t).

        Infinite if the other rows do not determine a prediction.
        """
        own = np.sqrt(self.weights) * self.inverse_diagonal(penalty)
        return leave_one_out(self._scaled(penalty), own[:, None])

    @cached_property
    def leave_one_out_errors(self) -> Array:
        """The weighted mean square leave-one-out residuals, shape (penalties of `grid`, t)."""
        inverse = np.stack([self._inverse(self.values, p) for p in self.grid], axis=1)
        outside = np.concatenate([self._inverse(np.zeros(1), p) for p in self.grid])
        out = np.tile(self.scatter, (len(self.grid), 1)) + np.zeros(self.targets.shape[1])
        for rows in pieces(len(self.weights), _ROWS):
            U, w = self.vectors[rows], self.weights[rows]
            own = np.sqrt(w)[:, None] * (U**2 @ inverse + np.outer(self._rest[rows], outside))
            for t, along in enumerate(self._along.T):
                scaled = U @ (inverse * along[:, None])
                scaled += np.outer(self._across[rows, t], outside)
                residuals = leave_one_out(scaled, own)
                with np.errstate(over="ignore"):
                    out[:, t] += w @ residuals**2
        return out / self.total

    def gcv_error(self, penalty: float) -> Array:
        """Generalised cross-validation: mean square of residuals / (1 - freedom / W)^2, (t,).

        W is the sum of the weights: they count rows.
        """
        kept = (penalty * self._inverse(self.values, penalty))[:, None] * self._along
        lost = penalty * self._inverse(np.zeros(1), penalty) * self._across
        mean = (np.sum(kept**2, axis=0) + np.sum(lost**2, axis=0) + self.scatter) / self.total
        left = 1.0 - self.degrees_of_freedom(penalty) / self.total
        return np.asarray(mean / left**2 if left > EPS else np.full(mean.shape, np.inf))

    def degrees_of_freedom(self, penalty: float) -> float:
        """The trace of the map from targets to fitted values, intercept included."""
        shares = self.values * self._inverse(self.values, penalty)
        return float(shares.sum()) + float(self.fit_intercept)

    def best(self) -> tuple[float, float]:
        """The penalty of `grid` with the smallest leave-one-out error, and that error.

        Errors are relative to the variance, averaged over the outputs that vary.
        """
        size = (np.sum(self.targets**2, axis=0) + self.scatter) / self.total
        if not size.any():
            return float(self.grid[0]), 0.0
        errors = np.mean(self.leave_one_out_errors[:, size > 0.0] / size[size > 0.0], axis=1)
        at = int(np.argmin(errors))  # the largest of equal ones
        return float(self.grid[at]), float(errors[at])

    @cached_property
    def _along(self) -> Array:
        return np.asarray(self.vectors.T @ self.targets)

    @cached_property
    def _across(self) -> Array:
        """The part of the targets that is orthogonal to all vectors; zero for a full basis."""
        if self.vectors.shape[1] >= len(self.weights) - self.fit_intercept:
            return np.zeros_like(self.targets)
        return np.asarray(self.targets - self.vectors @ self._along)

    @cached_property
    def _rest(self) -> Array:
        """The squared length of the part of each unit vector outside the span of vectors and r."""
        if self.vectors.shape[1] >= len(self.weights) - self.fit_intercept:
            return np.zeros(len(self.weights))
        rest = 1.0 - np.einsum("ij,ij->i", self.vectors, self.vectors)
        return np.asarray(np.maximum(rest - self.fit_intercept * self.weights / self.total, 0.0))

    @cached_property
    def _floor(self) -> float:
        """Eigenvalues below it are zero to rounding."""
        return len(self.weights) * EPS * float(np.abs(self.values).max(initial=0.0))

    def _inverse(self, values: Array, penalty: float) -> Array:
        """1 / (s + penalty); 0 where that is zero to rounding."""
        shifted = values + penalty
        keep = np.abs(shifted) > self._floor if penalty <= self._floor else shifted != 0.0
        return np.asarray(np.divide(1.0, shifted, out=np.zeros_like(shifted), where=keep))

    def _scaled(self, penalty: float) -> Array:
        """D^(-1/2) a."""
        inside = self.vectors @ (self._inverse(self.values, penalty)[:, None] * self._along)
        return np.asarray(inside + self._inverse(np.zeros(1), penalty) * self._across)


def leave_one_out(scaled: Array, own: Array) -> Array:
    """scaled / own; infinite where own is zero, as other rows do not determine a prediction."""
    out = np.full(scaled.shape, np.inf)
    return np.asarray(np.divide(scaled, own, out=out, where=own > 0.0))


def weighted_targets(Y: Array, weights: Array, centred: bool) -> Array:
    """D^(1/2) Y, Y minus its weighted mean if `centred`."""
    out = Y.copy()
    if centred:
        for _ in range(2):  # what rounding leaves of a large mean would be divided by the penalty
            out -= weights @ out / weights.sum()
    out *= np.sqrt(weights)[:, None]
    return np.asarray(out)


def _scatter(scatter: Array | None, Y: Array) -> Array:
    return np.zeros(Y.shape[1]) if scatter is None else scatter
