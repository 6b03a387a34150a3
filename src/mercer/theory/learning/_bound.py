"""A bound on the risk of a fitted machine on new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import positive
from mercer.exceptions import InputError, UnavailableError
from mercer.kernels import Kernel
from mercer.methods.machines._losses import Loss
from mercer.theory._checks import in_range
from mercer.theory.learning._stability import (
    early_stopping_stability,
    stability_bound,
    tikhonov_largest_loss,
    tikhonov_stability,
)


@dataclass(frozen=True)
class RiskBound:
    """With probability at least 1 - delta over the sample, E(f) <= `value`.

    Attributes
    ----------
    value : float
        `empirical_risk` + `gap`.
    empirical_risk : float
        The mean loss on the rows that the machine was fitted to.
    gap : float
        A bound on the difference of the two risks.
    trivial : float
        The largest risk of the function 0: a bound above it says nothing.
    delta : float
    theorem : str
        Where the bound comes from.
    assumptions : tuple of str
        What was checked, and what only the user can know.
    """

    value: float
    empirical_risk: float
    gap: float
    trivial: float
    delta: float
    theorem: str
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [
            f"Risk on new rows: at most {self.value:.3g} with probability {1.0 - self.delta:.3g}",
            f"  {self.empirical_risk:.3g} on the fitted rows, and {self.gap:.3g} more",
            f"  by {self.theorem}",
            *(f"  - {line}" for line in self.assumptions),
        ]
        if self.value >= self.trivial:
            lines.append(f"  says nothing: the function 0 has a risk of at most {self.trivial:.3g}")
        return "\n".join(lines)


@in_range
def bound(model: Any, delta: float = 0.05, *, target_bound: float | None = None) -> RiskBound:
    """Bound the risk of a fitted model on new rows, E(f) = E[l(y, f(x))].

    Machines that minimise a convex loss plus a penalty are stable (`tikhonov_stability`), and so
    is gradient descent that stops early (`early_stopping_stability`). Both give `stability_bound`.
    If a fit has a duality gap g, it is within sqrt(2 g) of the minimiser of |f|^2 / 2 + C sum_i
    l(y_i, f(x_i)), which is added to the bound.

    Parameters
    ----------
    model : fitted estimator
        `SVC`, `SVR`, `KernelLogisticRegression`, `KernelMachine`, `KernelRidge` or
        `KernelGradientDescent`, with one function (two classes, one output), without intercept
        and weights, with a kernel and a penalty that were chosen before the rows were seen.
    delta : float, default=0.05
        The bound fails with at most this probability.
    target_bound : float, optional
        For regression: B with |y| <= B for all rows, old and new, known beforehand.

    Returns
    -------
    RiskBound

    Raises
    ------
    UnavailableError
        If an assumption of the theorem does not hold; the message says which.

    Notes
    -----
    The bound is in the units of the loss. The hinge loss is at least the share of wrong classes,
    and so is the logistic loss over log 2. Bounds that hold for all distributions are far from the
    risks observed on one: expect a factor of ten, and penalties that are larger than the best ones.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice([-1, 1], 5000)
    >>> X = rng.normal(size=(5000, 2)) + 2.0 * y[:, None]
    >>> C = 1 / (2 * 0.2 * 5000)  # a penalty of 0.2 of the mean loss
    >>> model = mc.SVC(mc.Gaussian(3.0), C=C, fit_intercept=False).fit(X, y)
    >>> mc.theory.bound(model, 0.05)
    Risk on new rows: at most 0.53 with probability 0.95
      0.212 on the fitted rows, and 0.317 more
      by stability of Tikhonov regularisation, penalty 0.2 of the mean loss
      - convex loss, bounded kernel, no intercept, no weights: checked
      - kernel and penalty were chosen before the rows were seen: assumed
      - rows are independent: assumed
    """
    delta = positive(delta, "delta")
    if delta >= 1.0:
        raise InputError(f"delta must lie in (0, 1), got {delta!r}")
    for name in ("element_", "kernel_", "loss_", "n_samples_fit_"):
        if not hasattr(model, name):
            raise InputError(
                f"{type(model).__name__} has no attribute {name}: bound takes fitted machines, "
                "such as SVC().fit(X, y)"
            )
    _check_assumptions(model)
    kappa = np.sqrt(_largest_diagonal(model.kernel_))
    at_zero = _loss_at_zero(model.loss_, target_bound)
    if hasattr(model.certificate_, "step_size"):
        return _of_early_stopping(model, delta, kappa, at_zero, target_bound)
    return _of_tikhonov(model, delta, kappa, at_zero, target_bound)


def _of_tikhonov(
    model: Any, delta: float, kappa: float, at_zero: float, target_bound: float | None
) -> RiskBound:
    n, loss, certificate = model.n_samples_fit_, model.loss_, model.certificate_
    square = float(model.element_.norm() ** 2)
    if hasattr(model, "C"):
        scale = float(model.C) * n
        penalty = _positive_penalty(1.0 / (2.0 * scale))
        risk = (certificate.primal - 0.5 * square) / scale
        distance = np.sqrt(2.0 * max(certificate.gap, 0.0))
    else:
        scale = 1.0 if model.reduction == "mean" else float(n)
        penalty = _positive_penalty(model.penalty_ / scale)
        risk = certificate.primal / scale - penalty * square
        distance = np.sqrt(max(certificate.gap, 0.0) / scale / penalty)
    norm = float(np.sqrt(at_zero / penalty))
    L = _lipschitz(loss, kappa * (norm + distance), target_bound)
    largest = tikhonov_largest_loss(penalty, L, kappa, at_zero)
    gap = stability_bound(tikhonov_stability(n, penalty, L, kappa), n, delta, largest)
    gap += 2.0 * L * kappa * float(distance)  # of both risks, from the fit to the minimiser
    theorem = f"stability of Tikhonov regularisation, penalty {penalty:.3g} of the mean loss"
    return _result(risk, gap, at_zero, delta, theorem, target_bound)


def _positive_penalty(penalty: float) -> float:
    if not penalty > 0.0:
        raise UnavailableError(
            "no bound applies without a penalty; choose a finite C or penalty > 0"
        )
    return penalty


def _of_early_stopping(
    model: Any, delta: float, kappa: float, at_zero: float, target_bound: float | None
) -> RiskBound:
    n, loss, steps = model.n_samples_fit_, model.loss_, model.n_iter_
    step = model.certificate_.step_size
    if step > 2.0 / (loss.smoothness * kappa**2) * (1.0 + 1e-9):
        raise UnavailableError(
            f"steps of {step:.3g} are too long for stability: they must be at most 2 / (M kappa^2) "
            f"= {2.0 / (loss.smoothness * kappa**2):.3g}"
        )
    if not np.isfinite(loss.lipschitz):
        raise UnavailableError(
            f"{loss!r} has no Lipschitz constant, so early stopping has no bound; use a loss with "
            "bounded slopes, such as the logistic loss"
        )
    beta = early_stopping_stability(n, steps, step, loss.lipschitz, kappa)
    largest = loss.lipschitz * kappa * (steps * step * loss.lipschitz * kappa) + at_zero
    gap = stability_bound(beta, n, delta, largest)
    theorem = f"stability of gradient descent, number of steps: {steps}, of size {step:.3g}"
    return _result(model.certificate_.primal, gap, at_zero, delta, theorem, target_bound)


def _result(
    risk: float, gap: float, at_zero: float, delta: float, theorem: str, target: float | None
) -> RiskBound:
    known = ["kernel and penalty were chosen before the rows were seen", "rows are independent"]
    if target is not None:
        if risk > at_zero:
            raise UnavailableError(
                f"some |y| exceeds target_bound = {target:g}: the mean loss is {risk:.3g}, but "
                f"that of f = 0 would be at most {at_zero:.3g}"
            )
        known.append(f"|y| <= {target:g} for all rows")
    checked = ["convex loss, bounded kernel, no intercept, no weights: checked"]
    assumed = [f"{line}: assumed" for line in known]
    return RiskBound(risk + gap, risk, gap, at_zero, delta, theorem, (*checked, *assumed))


def _check_assumptions(model: Any) -> None:
    given = model.get_params(deep=False)
    chosen = isinstance(given.get("penalty"), str) or given.get("max_norm") is not None
    descends = hasattr(model.certificate_, "step_size")
    refused = [
        (given.get("fit_intercept"), "it has an intercept, which no penalty bounds; fit with "
         "fit_intercept=False"),
        (not isinstance(given.get("kernel"), Kernel), "its kernel was chosen from the same rows; "
         "give one"),
        (not model.kernel_.flags.is_positive_definite, "its kernel is not known to be positive "
         "definite"),
        (chosen, "its penalty was chosen from the same rows; give one"),
        (given.get("validation_fraction") is not None, "its number of steps was chosen on the same "
         "rows; give validation_fraction=None"),
        (model.is_weighted_, "it was fitted with weights"),
        (model.element_.coef.shape[1] > 1, "it has several functions; take two classes or one "
         "output"),
        (given.get("n_landmarks") is not None, "it is made of landmarks of the rows; fit with "
         "n_landmarks=None"),
        (descends and model.warm_start, "it went on from an earlier fit; fit with "
         "warm_start=False"),
        (descends and model.n_iter_ < model.max_iter, "it stopped because of the rows; give "
         f"max_iter <= {model.n_iter_}"),
    ]  # fmt: skip
    for holds, reason in refused:
        if holds:
            raise UnavailableError(f"no bound applies to this {type(model).__name__}: {reason}")


def _largest_diagonal(kernel: Kernel) -> float:
    """sup k(x, x), for kernels whose diagonal is constant."""
    if kernel.program.kind not in ("radial", "constant"):
        raise UnavailableError(
            f"no bound applies: k(x, x) is not known to be bounded for {kernel!r}; use a kernel of "
            "the distance, such as Gaussian"
        )
    return float(kernel.diag(np.zeros((1, 1)))[0])


def _loss_at_zero(loss: Loss, target_bound: float | None) -> float:
    """sup_y l(y, 0)."""
    if loss.classifies:
        return float(loss(1.0, 0.0))
    if target_bound is None:
        raise UnavailableError(
            "a bound for regression needs target_bound, a number B with |y| <= B for all rows, "
            "known beforehand"
        )
    return float(loss(positive(target_bound, "target_bound"), 0.0))


def _lipschitz(loss: Loss, largest: float, target_bound: float | None) -> float:
    """The Lipschitz constant of the loss for predictions of at most `largest`."""
    if np.isfinite(loss.lipschitz):
        return loss.lipschitz
    y = 1.0 if loss.classifies else float(target_bound or 0.0)
    return float(np.abs(loss.subgradient(y, -largest)))  # the steepest: far on the wrong side
