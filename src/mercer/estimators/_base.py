"""Base classes of estimators: kernels as parameters, those of kernel PCA, scores of regressors."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer._array import Array, Points, header
from mercer._chunks import as_chunks, targets_in_pieces, weights_in_pieces
from mercer._config import options
from mercer._frames import is_chunked
from mercer._html import docs_address, short_form
from mercer._progress import Step, progress_bar, watched
from mercer.engine import n_rows
from mercer.estimators._kernel_parameter import is_auto, resolve_kernel, set_kernel_tags
from mercer.estimators._validation import check_rows, check_weights, fit_column_scaler, scaled
from mercer.exceptions import InputError
from mercer.kernels import Kernel, Precomputed
from mercer.methods._pieces import column_moments

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn 1.8 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        return method


_tear_down = with_callbacks(lambda _: None)  # the clean-up that it does after a method


class KernelEstimator(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator whose kernels are immutable values.

    `set_params(kernel__length_scale=2.0)`, and so a grid search over it, replaces the kernel
    instead of changing it, so that estimators can share one kernel object.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.estimators import KernelEstimator
    >>> class Mine(KernelEstimator):
    ...     def __init__(self, kernel):
    ...         self.kernel = kernel
    >>> k = mc.Gaussian(1.0)
    >>> Mine(k).set_params(kernel__length_scale=2.0).kernel
    Gaussian(length_scale=2.0)
    >>> k
    Gaussian(length_scale=1.0)
    """

    def set_params(self, **params: Any) -> KernelEstimator:
        """Set parameters by name; `name__parameter` of a kernel replaces the kernel."""
        rest: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            holder = params.get(name, getattr(self, name, None))
            if inner and isinstance(holder, Kernel):
                nested.setdefault(name, {})[inner] = value
            elif inner and isinstance(holder, str) and name == "kernel":
                raise InputError(
                    f"{key} cannot be set: kernel={holder!r} becomes a kernel in fit. Give one "
                    f"that has parameters now, such as {type(self).__name__}(kernel=mc.Gaussian())"
                )
            else:
                rest[key] = value
        super().set_params(**rest)
        for name, changes in nested.items():
            setattr(self, name, getattr(self, name).replace(**changes))
        return self

    _hints: ClassVar = {
        "partial_fit": "there is no partial_fit, so fit all rows at once; only KernelPCA with "
        "n_landmarks and KernelSGD take rows in batches"
    }

    def __getattr__(self, name: str) -> Any:
        """Raise an AttributeError that, for names users often look for, says what to do instead."""
        plain = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(self._hints.get(name, plain), name=name, obj=self)

    def __dir__(self) -> list[str]:
        """Return the attributes that can be read: some need a fit to all rows in memory."""
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # as scikit-learn
            return [name for name in object.__dir__(self) if _can_be_read(self, name)]

    _summary: ClassVar[Any] = None  # of a fit, in plain words (`_summaries.py`)
    _doc_link_module: ClassVar = "mercer"  # for the question mark in scikit-learn's diagram
    _doc_link_template: ClassVar = docs_address("api")

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and a summary of the fit if the estimator is fitted."""
        diagram = str(super()._html_repr())
        try:
            check_is_fitted(self)
        except NotFittedError:
            return diagram
        return diagram if self._summary is None else diagram + short_form(self._summary())

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Use `n_jobs` threads, and show progress if `verbose`."""
        jobs, verbose = getattr(self, "n_jobs", None), getattr(self, "verbose", False)
        if not isinstance(verbose, bool | int | np.bool_ | np.integer) or verbose < 0:
            raise InputError(f"verbose must be False, True or a number >= 0, got {verbose!r}")
        with ExitStack() as stack:
            if jobs is not None:
                stack.enter_context(options(n_jobs=jobs))
            if verbose:
                stack.enter_context(progress_bar(type(self).__name__))
            yield

    @contextmanager
    def _fitting(self, X: Any) -> Iterator[None]:
        """`_running`; each step that is reported is a task for scikit-learn's callbacks."""
        with self._running():
            if not getattr(self, "_skl_callbacks", None):
                yield
                return
            try:
                context, lock = self._init_callback_context(max_subtasks=None), threading.Lock()
                context.call_on_fit_task_begin(estimator=self, X=X)

                def tell(step: Step) -> bool:
                    with lock:  # blocks of pre-images report from several threads
                        task = context.subcontext(task_name=step.task)
                        task.call_on_fit_task_begin(estimator=self)
                        return bool(task.call_on_fit_task_end(estimator=self))

                with watched(tell):
                    yield
                context.call_on_fit_task_end(estimator=self, X=X)
            finally:
                _tear_down(self)


def _can_be_read(estimator: Any, name: str) -> bool:
    try:
        getattr(estimator, name)
    except (AttributeError, InputError):
        return False
    return True


class FloatTransformerMixin(TransformerMixin):  # type: ignore[misc]
    """A transformer that returns float32 for float32."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class RowsEstimator(KernelEstimator):
    """Parameters and row checks shared by estimators with one kernel."""

    kernel: Any = "auto"
    gamma: float | None = None
    scale_columns: str = "none"
    n_jobs: int | None = None
    verbose: bool | int = False

    def _training_rows(
        self, X: Any, sample_weight: Any, *, double: bool = False
    ) -> tuple[Points, Any]:
        """Check rows and weights, fit the scaler of columns, and choose the kernel."""
        names, X = header(X), check_rows(self, X, reset=True, double=double)
        w = check_weights(sample_weight, X)
        given = not is_auto(self.kernel)
        self.scaler_ = fit_column_scaler(self.scale_columns, X, w, in_data_units=given)
        X = scaled(self.scaler_, X)
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            if self.gamma is not None:
                raise InputError("gamma is for kernels given as strings; leave it out")
            self.kernel_: Kernel = Precomputed(X)
            X = np.arange(n_rows(X))
        else:
            self.kernel_ = resolve_kernel(self.kernel, X, sample_weight=w, gamma=self.gamma)
        names = names if self.scaler_ is None else None  # of columns in the units of the data
        return replace(self.kernel_.points(X), header=names), w

    def _new_rows(self, X: Any, *, double: bool = False) -> Any:
        """Check rows for a fitted estimator, and scale their columns."""
        check_is_fitted(self)
        return scaled(self.scaler_, check_rows(self, X, reset=False, double=double))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_kernel_tags(tags, self.kernel)
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SubspaceEstimator(RowsEstimator):
    """What estimators share that may be fitted on landmarks."""

    n_landmarks: int | None = None
    rule: str = "uniform"
    random_state: Any = None


class Regressor(RegressorMixin):  # type: ignore[misc]
    """A regressor of scikit-learn whose score takes rows in pieces."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 = 1 - (mean squared error) / (variance of y), the mean over all outputs."""
        if not is_chunked(X):
            return float(super().score(X, y, sample_weight))
        targets, _ = targets_in_pieces(as_chunks(X), y)
        weights = None if sample_weight is None else weights_in_pieces(targets, sample_weight)
        predicted = targets.zip(self.predict(X))
        rows = predicted if weights is None else predicted.zip(weights)
        mass, _, variance = column_moments(targets, weights)
        error = rows.total(_squared_errors) / mass
        with np.errstate(all="ignore"):
            found = 1.0 - error / variance
        constant = np.where(error > 0.0, 0.0, 1.0)
        return float(np.where(variance > 0.0, found, constant).mean())


def _squared_errors(y: Array, predicted: Array, w: Array | None = None) -> Array:
    weights = np.ones(len(y)) if w is None else w[:, 0]
    return np.asarray(weights @ (y - np.reshape(predicted, y.shape)) ** 2)
