"""Kernel ridge regression on Fourier features: millions of rows in up to three dimensions."""

from __future__ import annotations

import numpy as np

from mercer import engine
from mercer._array import Array, Points
from mercer._certificate import FitCertificate
from mercer._status import Status
from mercer._threads import single_threaded_blas
from mercer.engine import FourierFeatures, NormalEquations
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg._conjugate_gradients import ConjugateGradients
from mercer.methods.machines._ridge import RidgeFit, worst_status

_SHARE = 0.1  # of the root of the gap, for each of two errors: their bounds add several terms
_STRICTER = 0.01  # than `tol`: predictions between the rows are off by more than the residuals say

NO_FEATURES = (
    'solver="fourier" needs finufft (extra `fast`), dense rows of at most 3 columns, a smooth '
    "radial kernel, and a length scale and a penalty that are not too small for a grid of "
    'frequencies; use solver="auto"'
)


def fit_ridge_fourier(
    kernel: Kernel,
    X: Points,
    Y: Array,
    weights: Array | None,
    penalty: float,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int = 1000,
    forced: bool = False,
) -> RidgeFit | None:
    """Minimise sum_i w_i |y_i - f(x_i) - c|^2 + penalty |f|^2 with Fourier features.

    The kernel is replaced by a sum over frequencies. An error of e in it leaves a relative duality
    gap of at most (e W / penalty)^2, W the sum of the weights; a relative residual of e in the
    equations one of about (e s / penalty)^2, s their largest eigenvalue. Both are set from `tol`,
    as far as rounding allows, and the certificate bounds their effect. The coefficients of the
    element follow from the residuals, a_i = w_i (y_i - f(x_i) - c) / penalty. Rows may be equal.

    Returns None if the kernel has no such sum or it would not be faster; raises if `forced`.
    """
    w = np.ones(len(Y)) if weights is None else weights
    total = float(w.sum())
    error = kernel_error(penalty, total, tol)
    features = None
    if penalty > 0.0:
        features = engine.fourier_features(kernel.program, X.array, error, forced=forced)
    if features is None:
        if forced:
            raise InputError(NO_FEATURES)
        return None
    centre = w @ Y / total if fit_intercept else np.zeros(Y.shape[1])
    Y = Y - centre
    equations = features.equations(w, Y, centred=fit_intercept)
    shifted = np.maximum(equations.diagonal, 0.0)[:, None] + penalty
    cg = ConjugateGradients(
        lambda V: equations.product(V) + penalty * V,
        lambda R: R / shifted,
        equations.right,
        min(_STRICTER * tol, total * error / float(shifted.max())),
        float(shifted.max()),
        problem=(kernel, X, Y, w, fit_intercept, penalty),
    )
    with single_threaded_blas():  # vectors are short
        cg.run(max_iter)
    modes = equations.modes(cg.coef)
    values = features.values(modes)
    errors = Y - values
    shift = w @ errors / total if fit_intercept else np.zeros(Y.shape[1])
    errors -= shift
    coef = w[:, None] * errors / penalty
    rest = equations.right - equations.product(cg.coef) - penalty * cg.coef
    gap = _gap(features, equations, modes, rest, w, Y, coef, penalty)
    primal = float(np.sum(w[:, None] * errors**2)) + penalty * float(np.sum(coef * values))
    found = FitCertificate(
        primal=primal + gap,
        dual=primal,
        stationarity=float(np.sqrt(w.max() * gap)),
        feasibility=float(np.abs(coef.sum(axis=0)).max()) if fit_intercept else 0.0,
        complementarity=0.0,
    )
    n_iter = max(1, int(np.max(cg.n_iter)))
    status = Status.CONVERGED if gap <= tol * primal else worst_status(cg.status)
    sums = features.prepared(modes, coef)
    return RidgeFit(coef, centre + shift, found, n_iter, status, "fourier", sums)


def kernel_error(penalty: float, total: float, tol: float = 1e-8) -> float:
    """The error in the kernel that is allowed, for weights of this sum."""
    return float(_SHARE * np.sqrt(tol) * penalty / total)


def _gap(
    features: FourierFeatures,
    equations: NormalEquations,
    modes: Array,
    rest: Array,
    w: Array,
    Y: Array,
    coef: Array,
    penalty: float,
) -> float:
    """A bound on the duality gap of the element with coefficients `coef`, all outputs together.

    At these coefficients the gap is sum_i w_i d_i^2, d_i the difference between the element and
    the function at x_i. It has two parts: `rest`, the residual of conjugate gradients, and the
    errors of the frequencies and of the transforms, which are bounded. (Both objectives share
    another error, of at most the root of gap times primal.)
    """
    grid, total = features.grid, float(w.sum())
    left = np.maximum(np.sum(rest * equations.product(rest), axis=0), 0.0) / penalty**2
    accuracy = grid.centre.size * grid.accuracy  # of a transform, once per dimension
    size = np.abs(modes).reshape(len(modes), -1).sum(axis=1)
    entries = w @ np.abs(Y) + total * size  # of the equations
    error = grid.error * np.abs(coef).sum(axis=0)
    error += accuracy * (size + float(grid.weights.sum()) * entries / penalty)
    return float(np.sum((np.sqrt(left) + np.sqrt(total) * error) ** 2))
