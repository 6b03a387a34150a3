"""The stochastic subgradient method in a kernel's space, for rows that come in batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from mercer._array import Array, Points, positive, positive_int
from mercer._progress import tracked
from mercer._random import as_generator
from mercer.engine import n_rows
from mercer.estimators import _summaries as summaries
from mercer.estimators._base import RowsEstimator
from mercer.estimators._loss_machine import classifies, set_loss_tags
from mercer.estimators._validation import check_flags, check_labels, check_targets
from mercer.exceptions import InputError
from mercer.linalg._inputs import require_definite
from mercer.methods.machines._losses import Loss, as_convex_loss
from mercer.methods.machines._stochastic_subgradient import (
    Iterate,
    first_step,
    merged,
    take_steps,
    within_budget,
)
from mercer.space import Element


@dataclass(eq=False, repr=False, kw_only=True)
class KernelSGD(RowsEstimator):
    """Regression or classification by stochastic subgradient steps in a kernel's space.

    For each row (x, y) in turn

        f <- f - step_size l'(y, f(x)) k(x, .)

    and the result is the average of the functions f_1, f_2, ... before each step, with weights 1,
    2, ... Rows can come in batches (`partial_fit`), and `budget` bounds the number of points of f.

    Parameters
    ----------
    kernel, gamma, scale_columns, n_jobs, verbose
        As in `SVC`; "auto" is chosen from the first batch. "precomputed" is not supported.
    loss : str or a convex loss of `mercer.methods`
        The default "hinge" and the others of `KernelMachine`.
    step_size : float, optional
        By default 1 / (M k): k is the largest k(x, x) of the first batch, M the Lipschitz constant
        of the derivative of the loss. If there is no M, it is 1 / k for labels, and the standard
        deviation of the first targets over k for regression.
    average : bool, default=True
        Whether the result is the average or the last f.
    max_iter : int
        Passes over the rows in `fit`, 10 by default. `partial_fit` makes one.
    budget : int, optional
        The largest number of points of f. Whenever f has half as many more, and at the end of each
        batch, points are dropped, and f is projected on those that remain. By default there is no
        limit.
    shuffle : bool, default=True
        Whether each pass takes the rows in random order.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    element_ : Element
        f; a batch with one element per class if there are more than two.
    classes_ : array
        For classification losses. With more than two classes, each against the rest.
    compression_error_ : float or array
        Compressing f changed predictions by at most this times sqrt(k(x, x)); later steps may
        correct it.
    t_, n_iter_ : int
        Steps so far, and passes in `fit`.
    kernel_, scaler_, step_size_

    See Also
    --------
    SVC, KernelMachine : exact fits with a duality gap.
    mercer.theory.first_order.subgradient_rate : how fast the risk of the average falls.

    Notes
    -----
    There is no penalty: few passes and short steps keep f smooth. There are no sample weights,
    because one long step is not the same as two short ones; repeat the row instead.

    With constant steps s the early iterates are forgotten fast, and the average removes much of the
    noise that such steps leave. For one pass over t independent rows, and a loss with the Lipschitz
    constant L, the expected risk of the average is at most that of any f in the space plus
    |f|^2 / (s (t + 1)) + s L^2 E k(x, x). Shorter steps lower the second part, and raise the first.

    References
    ----------
    J. Kivinen, A. Smola, R. Williamson, Online learning with kernels, IEEE Transactions on Signal
    Processing 52, 2004. F. Bach, E. Moulines, Non-strongly-convex smooth stochastic approximation
    with convergence rate O(1/n), NIPS 2013, for constant steps. S. Lacoste-Julien, M. Schmidt, F.
    Bach, A simpler approach to obtaining an O(1/t) convergence rate, arXiv:1212.2002, for weights.

    Examples
    --------
    >>> import mercer as mc
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(1000, noise=0.1, random_state=0)
    >>> model = mc.estimators.KernelSGD(mc.Gaussian(0.5), budget=40, random_state=0)
    >>> for rows in (slice(0, 400), slice(400, 800)):
    ...     model = model.partial_fit(X[rows], y[rows], classes=[0, 1])
    >>> model.score(X[800:], y[800:]) > 0.95, len(model.element_.points)
    (True, 40)
    """

    kernel: Any = field(default="auto", kw_only=False)
    loss: Any = "hinge"
    scale_columns: str = "auto"
    step_size: float | None = None
    average: bool = True
    max_iter: int = 10
    budget: int | None = None
    shuffle: bool = True
    random_state: Any = None
    _summary = summaries.machine

    @property
    def loss_(self) -> Loss:
        """The loss as a value."""
        return as_convex_loss(self.loss)

    def fit(self, X: Any, y: Any) -> KernelSGD:
        """Start from zero, and make `max_iter` passes over the rows X with targets or labels y."""
        targets = self._targets(y)
        with self._fitting(X):
            points = self._begin(X, targets, None)
            Y = self._columns(targets, points)
            for _ in tracked(list(range(positive_int(self.max_iter, "max_iter"))), "passes"):
                self._pass(points, Y)
                self._merge(len(points))
            self._set()
        self.n_iter_ = self.max_iter
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> KernelSGD:
        """Make one pass over more rows.

        The first call chooses the kernel and the scale of the columns. For classification losses
        it needs `classes`, all the labels that may occur.
        """
        targets = self._targets(y)
        with self._running():
            if not hasattr(self, "_state"):
                if classes is None and classifies(self):
                    raise InputError("classes must be passed on the first call of partial_fit")
                points = self._begin(X, targets, classes)
            else:
                points = self.kernel_.points(self._new_rows(X, double=True))
            self._pass(points, self._columns(targets, points))
            self._set()
        return self

    def _targets(self, y: Any) -> Array:
        if not classifies(self):
            return check_targets(self, y, single=True)[0][:, 0]
        classes, index = check_labels(self, y)
        return np.asarray(classes[index])

    def _begin(self, X: Any, targets: Array, classes: Any) -> Points:
        check_flags(self, "average", "shuffle")
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise InputError("KernelSGD takes rows, not Gram matrices; give a kernel")
        points, _ = self._training_rows(X, None, double=True)
        n_functions = 1
        if classifies(self):
            self.classes_ = np.unique(targets if classes is None else np.asarray(classes))
            if len(self.classes_) < 2:
                raise InputError("KernelSGD needs rows of at least two classes, got 1 class")
            n_functions = len(self.classes_) if len(self.classes_) > 2 else 1
        if self.budget is not None:
            require_definite(self.kernel_, "budget")
        given = self.step_size
        self.step_size_ = (
            first_step(self.kernel_, points, targets, self.loss_)
            if given is None
            else positive(given, "step_size")
        )
        self._state = Iterate.zero(n_functions)
        return points

    def _columns(self, targets: Array, points: Points) -> Array:
        """Targets, or labels 1 and -1 of each class against the rest, shape (n, functions)."""
        check_consistent_length(np.empty(len(points)), targets)
        if not classifies(self):
            return np.asarray(targets[:, None], dtype=np.float64)
        unknown = np.setdiff1d(targets, self.classes_)
        if len(unknown):
            raise InputError(f"label {unknown[0]!r} is not among the classes of the first call")
        ones = self.classes_ if len(self.classes_) > 2 else self.classes_[1:]
        return np.where(targets[:, None] == ones, 1.0, -1.0)

    def _pass(self, points: Points, Y: Array) -> None:
        rng = self._generator()
        order = rng.permutation(len(Y)) if self.shuffle else np.arange(len(Y))
        limit = len(Y) if self.budget is None else max(positive_int(self.budget, "budget") // 2, 1)
        for first in range(0, len(Y), limit):
            rows = order[first : first + limit]
            self._state = take_steps(
                self._state, self.kernel_, points[rows], Y[rows], self.loss_, self.step_size_
            )
            if self.budget is not None:
                self._state = within_budget(self._state, self.kernel_, self.budget)

    def _merge(self, n_points: int) -> None:
        """Merge the points of several passes, if there are more than rows."""
        if n_rows(self._state.points) > n_points:
            self._state = merged(self._state, self.kernel_)

    def _generator(self) -> np.random.Generator:
        """A generator for the next pass; with an int as `random_state`, reproducible."""
        rng = as_generator(self.random_state)  # refuses what is not a random state
        if isinstance(self.random_state, int | np.integer):
            rng = np.random.default_rng([int(self.random_state), self._state.n_steps])
        return rng

    def _set(self) -> None:
        state = self._state
        coef = state.average if self.average else state.coef
        points = state.points
        if not n_rows(points):  # no step had a slope: f = 0 is optimal
            raise InputError("all losses are zero at f = 0: there is nothing to learn")
        single = coef.shape[1] == 1
        self.element_ = Element(self.kernel_, points, coef[:, 0] if single else coef)
        errors = state.errors[int(self.average)]
        self.compression_error_ = float(errors[0]) if single else errors
        self.t_ = state.n_steps

    def _values(self, X: Any) -> Array:
        X = self._new_rows(X)
        with self._running():
            return np.asarray(self.element_(X), dtype=np.float64)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Return f(x), shape (m,), or (m, classes) for more than two classes."""
        return self._values(X)

    def predict(self, X: Any) -> Array:
        """Return the class of each row of X, or f(x) for regression losses."""
        values = self._values(X)
        if not classifies(self):
            return values
        index = (values >= 0.0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[index])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, or the coefficient of determination R^2 for regression."""
        measure = accuracy_score if classifies(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        return set_loss_tags(super().__sklearn_tags__(), self)
