"""Kernel ridge regression that chooses its kernel and penalty by leave-one-out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer import engine
from mercer._array import (
    Array,
    Points,
    non_negative,
    one_of,
    positive,
    positive_int,
    real,
)
from mercer._chunks import Chunks, targets_in_pieces
from mercer._frames import is_chunked
from mercer.engine import Dense, as_float64, n_rows
from mercer.estimators import _summaries as summaries
from mercer.estimators._base import Regressor, SubspaceEstimator
from mercer.estimators._kernel_parameter import is_auto
from mercer.estimators._ridge_choice import (
    choose,
    fit_in_pieces,
    has_too_many_features,
    rows_in_pieces,
)
from mercer.estimators._validation import by_pieces, check_flags, check_targets, scaled
from mercer.exceptions import InputError, MercerWarning
from mercer.kernels import Precomputed
from mercer.linalg._solve import DIRECT_UP_TO
from mercer.methods.machines._losses import SquareLoss
from mercer.methods.machines._ridge import RidgeFit, fit_ridge, merged_rows
from mercer.methods.machines._ridge_fourier import fit_ridge_fourier
from mercer.methods.machines._ridge_landmarks import LandmarkSolution, fit_ridge_landmarks
from mercer.methods.machines._ridge_uncertainty import (
    LandmarkVariance,
    jackknife_plus,
    left_out,
    smoothing_weights,
)
from mercer.space import Element

_SOLVERS = ("auto", "cholesky", "cg", "fourier")
_LOADED = 1e-12  # tolerance of the sums of a model from a file: as fine as transforms can be


@dataclass(eq=False, repr=False, kw_only=True)
class KernelRidge(Regressor, SubspaceEstimator):
    """Kernel ridge regression; kernel and penalty are chosen by leave-one-out errors by default.

    Minimises

        sum_i w_i |y_i - f(x_i) - c|^2 + penalty |f|^2

    over functions f of the space of the kernel and intercepts c, with sample weights w_i; y may
    have several columns, each with its own f and c.

    Parameters
    ----------
    kernel : Kernel, str or "auto"
        "auto", the default, compares Gaussian, Matern 3/2 and Laplace product kernels of five
        length scales each, and the best of them with columns scaled by how much they matter, by
        leave-one-out errors on at most 1,000 rows. "precomputed" takes Gram matrices instead of
        rows. Other names as in `KernelPCA`.
    penalty : float or "auto"
        >= 0. "auto", the default, takes the one of 45 penalties with the smallest leave-one-out
        error; on 3,000 evenly spaced rows if there are more and no landmarks.
    reduction : {"sum", "mean"}
        Whether the penalty is added to the sum of the squared errors, as above and in
        scikit-learn's `KernelRidge(alpha=penalty)`, or to their weighted mean, so that it is W
        times as strong, W = sum_i w_i. The default is "sum".
    max_norm : float, optional
        Instead of a penalty: minimise the errors over all f with |f| <= max_norm. `penalty_` is
        then the penalty with the same solution.
    fit_intercept : bool, default=True
        Whether to fit an intercept c, which is not penalised.
    gamma : float, optional
        For kernels given by name, as in scikit-learn.
    scale_columns : {"auto", "std", "none"}
        The units in which the automatic kernel sees the columns, as in `KernelNovelty`: the default
        "auto" divides columns of different units by their standard deviations.
    solver : {"auto", "cholesky", "cg", "fourier"}
        How to fit to all rows. "cholesky" factors the kernel matrix: n^2 numbers. "cg" runs
        conjugate gradients: n^2 operations each. "fourier" writes a smooth radial kernel as a sum
        over frequencies, for millions of rows in up to 3 columns (extra `fast`). "auto", the
        default, is "cholesky" up to 10,000 rows; beyond, "fourier" where possible, else "cg".
    n_landmarks, rule, random_state
        Fit a combination of the features of some landmarks, as in `KernelPCA`, instead of all rows.
    tol, max_iter : float, int
        For conjugate gradients: the relative residual at which they stop (1e-8 leaves a relative
        gap of about its square; with "fourier", of about itself), and the iterations allowed.
    n_jobs, verbose
        As in `KernelPCA`.

    Attributes
    ----------
    element_ : Element
        f; a batch with one element per output if y has two dimensions.
    intercept_ : float or array of shape (outputs,)
    penalty_ : float
    certificate_ : FitCertificate
        Objectives of all outputs together, duality gap, optimality conditions.
    dual_coef_ : array
        The coefficients of `element_`.
    path_penalties_, loo_path_, gcv_path_ : arrays
        Penalties, and the leave-one-out and generalised cross-validation errors of each; shape
        (penalties, outputs), with penalty="auto" only.
    solver_ : str
        The method used: "cholesky", "eigen" (at a penalty of 0), "cg", "fourier" or "landmarks".
    kernel_, scaler_, n_iter_

    Notes
    -----
    Equal rows are merged, so that a weight of 2 is the same as repeating the row. Leave-one-out
    leaves out all copies of a row, at the same penalty of the sum; it needs no refits.

    If features on the landmarks take more than 8 times `mc.options(working_memory=...)`, by default
    134 million numbers, rows are taken in pieces, like those of a file: "auto" parameters are
    chosen on 20,000 of them, and there are no leave-one-out residuals or standard deviations.

    With "fourier", `element_` has a coefficient for each row, and `certificate_` bounds its gap,
    errors of the frequencies and transforms included. Predictions in the box of the rows are sums
    over frequencies. There are no leave-one-out residuals, standard deviations or intervals.

    References
    ----------
    C. Saunders, A. Gammerman, V. Vovk, Ridge regression learning algorithm in dual variables, ICML
    1998. R. F. Barber, E. Candes, A. Ramdas, R. Tibshirani, Predictive inference with the
    jackknife+, Annals of Statistics 49, 2021. P. Greengard, M. Rachh, A. Barnett, Equispaced
    Fourier representations for efficient Gaussian process regression, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.linspace(0.0, 6.0, 50)[:, None]
    >>> model = mc.KernelRidge().fit(X, np.sin(X[:, 0]))
    >>> float(abs(model.predict([[1.5]]) - np.sin(1.5))[0]) < 0.001
    True
    >>> model.certificate_.relative_gap < 1e-8
    True
    """

    kernel: Any = field(default="auto", kw_only=False)
    penalty: Any = "auto"
    reduction: str = "sum"
    max_norm: float | None = None
    fit_intercept: bool = True
    solver: str = "auto"
    scale_columns: str = "auto"
    tol: float = 1e-8
    max_iter: int = 1000
    _takes_pieces: ClassVar = True
    _unsaved_attributes: ClassVar = ("_sums",)
    _summary = summaries.ridge

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit the regression to rows X with targets y, shape (n,) or (n, outputs).

        A `sample_weight` of 2 is the same as repeating the row.
        """
        check_flags(self, "fit_intercept")
        one_of(self.reduction, ("sum", "mean"), "reduction")
        if one_of(self.solver, _SOLVERS, "solver") != "auto" and self.n_landmarks is not None:
            raise InputError(f"solver={self.solver!r} is for all rows; leave out n_landmarks")
        if self.max_norm is not None and not is_auto(self.penalty):
            raise InputError("give either penalty or max_norm, not both")
        with self._fitting(X):
            in_pieces = is_chunked(X)
            Y: Any = None
            if not in_pieces:
                Y, self._flat = check_targets(self, y)
            points, w = self._training_rows(X, sample_weight, double=True)
            if in_pieces:
                Y, self._flat = targets_in_pieces(points.array, y)
            check_consistent_length(range(n_rows(points)), range(len(Y)))
            self.n_samples_fit_ = len(Y)
            self.is_weighted_ = w is not None and (in_pieces or bool(np.any(w != 1.0)))
            if not in_pieces and has_too_many_features(self, points):
                in_pieces = True
                points, Y, w = rows_in_pieces(points, Y, w)
            total = float(len(Y) if w is None else w.total(np.sum) if in_pieces else w.sum())
            unit = total if self.reduction == "mean" else 1.0
            self._loo: Array | None = None
            self._mass: Array | None = None
            self._landmarks: LandmarkVariance | None = None
            self._sums: engine.PreparedSum | None = None
            if in_pieces:
                self._set_fit(*fit_in_pieces(self, points, Y, w, unit), unit)
            else:
                self._fit(points, Y, w, unit)
        return self

    @by_pieces(lambda self: np.shape(self.intercept_), np.float64)
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return f(x) + c for the rows of X, shape (m,) or (m, outputs).

        With `return_std` also the standard deviation of a new target at x, of the same shape: that
        of a Gaussian process with covariance s^2 k and noise s^2 penalty. s^2 is chosen so that the
        mean square of the leave-one-out residuals is the one that the process predicts.
        """
        X = self._new_rows(X)
        with self._running():
            values = self._values(X)
            if not return_std:
                return self._shaped(values)
            if isinstance(self.kernel_, Precomputed):
                raise InputError("return_std needs k(x, x), which a precomputed matrix lacks")
            loo = self._loo_residuals()
            own = engine.diagonal(self.kernel_.program, self.kernel_.points(X).array)
            K, low = self._to_rows(X), self._landmarks
            if low is not None:
                left, scale = low.variance(K, own), low.scale
            else:
                H, extra = self._smoothing(K)
                left = own - np.sum(K * H, axis=0) + extra
                with np.errstate(invalid="ignore"):  # a single row has an infinite residual
                    scale = np.mean(self._coef() * loo, axis=0)
                scale = np.where(np.isnan(scale), np.inf, np.maximum(scale, 0.0))
            noisy = np.maximum(left, 1e-300) + self._sum_penalty  # 0 times inf is NaN
            return self._shaped(values), self._shaped(np.sqrt(np.outer(noisy, scale)))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Return intervals for new targets at the rows of X by the jackknife+, shape (m, 2).

        For several outputs shape (m, outputs, 2). If rows are distinct and exchangeable, and the
        kernel, the columns' units and the penalty (of the sum) were fixed beforehand, an interval
        contains the new target with probability at least 2 `coverage` - 1, usually about
        `coverage`. Ends are infinite if there are too few rows for the coverage.
        """
        if not 0.0 < real(coverage, "coverage") < 1.0:
            raise InputError(f"coverage must lie in (0, 1), got {coverage!r}")
        X = self._new_rows(X)
        if self._landmarks is not None:
            raise InputError("intervals need all rows; fit with n_landmarks=None")
        with self._running():
            values, loo = self._values(X), self._loo_residuals()
            H, _ = self._smoothing(self._to_rows(X))
        residuals = loo[self._group] + self._deviations
        ends = jackknife_plus(values, H, loo, residuals, self._group, self._weights, coverage)
        return ends[:, 0] if self._flat else ends

    def loo_residuals(self) -> Array:
        """Return y_i minus the prediction without row i and its copies, for all training rows.

        Rows of weight zero have NaN.
        """
        check_is_fitted(self)
        with self._running():
            loo = self._loo_residuals()
        out = np.full((self.n_samples_fit_, loo.shape[1]), np.nan)
        out[self._rows] = loo[self._group] + self._deviations
        return np.asarray(self._shaped(out))

    @property
    def loo_error_(self) -> Any:
        """The weighted mean square of `loo_residuals`, a number or shape (outputs,)."""
        residuals = self.loo_residuals().reshape(self.n_samples_fit_, -1)[self._rows]
        error = self._weights @ residuals**2 / self._weights.sum()
        return float(error[0]) if self._flat else error

    @property
    def loss_(self) -> SquareLoss:
        """The square loss."""
        return SquareLoss()

    def _fit(self, X: Points, Y: Array, w: Array | None, unit: float) -> None:
        """Choose what is automatic, fit, and set the attributes of a fit.

        `unit` times the penalty is that of the sum of losses. Frequencies need no merged rows.
        """
        rows = low = path = fit = None
        if is_auto(self.kernel) or is_auto(self.penalty) or self.n_landmarks is not None:
            rows = merged_rows(X.array, Y, w)
            low, path = choose(self, X[rows.index], rows, unit)
        else:
            self._sum_penalty = unit * non_negative(self.penalty, "penalty")
        forced = self.solver == "fourier"
        if low is None and (forced or (self.solver == "auto" and len(X) > DIRECT_UP_TO)):
            k, penalty = self.kernel_, self._sum_penalty
            fit = fit_ridge_fourier(k, X, Y, w, penalty, forced=forced, **self._settings())
        if fit is None:
            rows = merged_rows(X.array, Y, w) if rows is None else rows
            X = X[rows.index]
            if low is not None:
                penalty, free = self._sum_penalty, bool(self.fit_intercept)
                solution = LandmarkSolution.of(low, rows, penalty, path, fit_intercept=free)
                fit = fit_ridge_landmarks(low, solution, rows)
                self._landmarks = LandmarkVariance.of(low, solution)
                self._loo = solution.leave_one_out
                X = self.kernel_.points(low.landmarks)
            else:
                method = None if self.solver == "auto" else self.solver
                fit = fit_ridge(
                    self.kernel_, X, rows, self._sum_penalty, method=method, **self._settings()
                )
        self._set_fit(fit, X, unit)
        self._sums = fit.sums
        if rows is None or fit.sums is not None:
            return
        self._mass, self._rows, self._group = rows.weights, rows.rows, rows.group
        self._deviations = rows.deviations
        self._weights = np.ones(len(rows.rows)) if w is None else w[rows.rows]
        if self._loo is None and path is not None and len(path.weights) == len(rows.weights):
            self._loo = path.leave_one_out(self._sum_penalty)

    def _settings(self) -> dict[str, Any]:
        return {
            "fit_intercept": bool(self.fit_intercept),
            "tol": positive(self.tol, "tol"),
            "max_iter": positive_int(self.max_iter, "max_iter"),
        }

    def _set_fit(self, fit: RidgeFit, X: Points, unit: float) -> None:
        self.penalty_ = self._sum_penalty / unit
        self.dual_coef_ = self._shaped(fit.coef)
        self.intercept_ = float(fit.intercept[0]) if self._flat else fit.intercept
        self.element_ = Element(self.kernel_, X, self.dual_coef_)
        self.n_iter_, self.solver_ = fit.n_iter, fit.method
        self.certificate_ = fit.certificate.scaled(1.0 / unit)
        if not fit.status.ok:
            gap = self.certificate_.relative_gap
            warnings.warn(
                f"KernelRidge {fit.status.value}. Its relative duality gap is {gap:.1e}",
                MercerWarning,
                stacklevel=4,
            )

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._flat else values

    def _values(self, X: Any) -> Array:
        """Predictions, shape (m, outputs)."""
        if isinstance(self.kernel_, Precomputed):
            values = self._to_rows(X).T @ self._coef()
        elif self.solver_ == "fourier":
            sums = getattr(self, "_sums", None)
            if sums is None:  # loaded from a file
                f, coef = self.element_, Dense(self._coef())
                sums = engine.prepare(f.kernel.program, f.points, coef, tolerance=_LOADED)
                self._sums = sums
            values = sums.fields(as_float64(self.kernel_.points(X).array)).value
        else:
            values = np.asarray(self.element_(X)).reshape(n_rows(X), -1)
        return np.asarray(values + self.intercept_, dtype=np.float64)

    def _to_rows(self, X: Any) -> Array:
        """The kernel between the points of `element_` and new rows, shape (points, m)."""
        if isinstance(self.kernel_, Precomputed):
            return np.asarray(X, dtype=np.float64)[:, self.element_.points].T
        return np.asarray(self.kernel_(self.element_.support, X), dtype=np.float64)

    def _coef(self) -> Array:
        return self.dual_coef_.reshape(len(self.dual_coef_), -1)

    def _smoothing(self, K: Array) -> tuple[Array, Array]:
        X, free = self.element_.support, bool(self.fit_intercept)
        return smoothing_weights(
            self.kernel_, X, np.asarray(self._mass), self._sum_penalty, K, fit_intercept=free
        )

    def _loo_residuals(self) -> Array:
        """Leave-one-out residuals of the distinct rows, shape (rows, outputs)."""
        mass: Array | None = getattr(self, "_mass", None)
        if mass is None:
            raise InputError(
                "fits by Fourier features, or to rows in pieces, have no leave-one-out residuals, "
                'standard deviations and intervals; use solver="cholesky" for up to about 10,000 '
                "rows, or n_landmarks and rows in memory (rows times landmarks beyond 8 times "
                "mc.options(working_memory=...) are taken in pieces)"
            )
        if self._loo is None:
            X, free = self.element_.support, bool(self.fit_intercept)
            self._loo = left_out(
                self.kernel_, X, self._coef(), mass, self._sum_penalty, fit_intercept=free
            )
        return self._loo

    def _predict_in_pieces(self, X: Chunks, return_std: bool = False) -> Any:
        """Predictions where `element_` is in pieces too: sums over pairs of pieces."""
        if return_std:
            raise InputError("return_std needs the new rows in memory; predict some at a time")
        if not isinstance(self.element_.points, Chunks):
            return None
        return self.element_(scaled(self.scaler_, X)) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
