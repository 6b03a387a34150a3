"""Risks of predictors, the parts of an excess risk, and the estimator that only memorises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._array import (
    Array,
    as_dense_points,
    as_vector,
    instance,
    non_negative,
    positive_int,
    real,
)
from mercer.exceptions import InputError
from mercer.methods.machines._losses import Loss
from mercer.theory._checks import in_range


@in_range
def empirical_risk(loss: Loss, y: Any, predictions: Any) -> float:
    """The mean loss over a sample, E_n(f) = mean_i l(y_i, f(x_i)).

    On rows that f has not seen it is an unbiased estimate of the expected risk E(f) =
    E[l(y, f(x))], with a mean absolute error of at most `deviation_bound`.

    Parameters
    ----------
    loss : Loss
        l.
    y : array_like of shape (n,)
        Targets y_i.
    predictions : array_like of shape (n,)
        f(x_i).

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.empirical_risk(mc.methods.SquareLoss(), [0.0, 1.0], [0.5, 1.0])
    0.125
    """
    instance(loss, Loss, "loss")
    y = as_vector(y, "y")
    if not len(y):
        raise InputError("y must have at least one entry")
    return float(np.mean(loss(y, as_vector(predictions, "predictions", len(y)))))


@in_range
def deviation_bound(variance: float, n: int) -> float:
    """E|E_n(f) - E(f)| <= sqrt(var(l(y, f(x))) / n), for f chosen before the sample.

    Parameters
    ----------
    variance : float
        var(l(y, f(x))) >= 0.
    n : int
        Rows of the sample.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.deviation_bound(variance=0.25, n=100)
    0.05
    """
    return float(np.sqrt(non_negative(variance, "variance") / positive_int(n, "n")))


@in_range
def risk_difference_bound(loss: Loss, f: Any, g: Any, *, uniform: bool = False) -> float:
    """|E(f) - E(g)| <= L mean|f - g| <= L max|f - g|, with L the Lipschitz constant of the loss.

    Parameters
    ----------
    loss : Loss
        One with a finite `lipschitz`.
    f, g : array_like of shape (n,)
        Two predictors at the same points; risks are over these points.
    uniform : bool, default=False
        Whether to return the second bound, which holds for all distributions of the points.

    Examples
    --------
    >>> import mercer as mc
    >>> loss = mc.methods.HingeLoss()
    >>> mc.theory.learning.risk_difference_bound(loss, [0.0, 1.0], [0.5, 1.0])
    0.25
    >>> mc.theory.learning.risk_difference_bound(loss, [0.0, 1.0], [0.5, 1.0], uniform=True)
    0.5
    """
    if not np.isfinite(instance(loss, Loss, "loss").lipschitz):
        raise InputError(f"{loss!r} has no Lipschitz constant: its slopes are unbounded")
    f = as_vector(f, "f")
    gaps = np.abs(f - as_vector(g, "g", len(f)))
    return float(loss.lipschitz * (gaps.max() if uniform else gaps.mean()))


@dataclass(frozen=True)
class RiskDecomposition:
    """The parts of an excess risk, E(f) - E(f*), which add up exactly.

    The predictor f is the output of an algorithm that was stopped; f_n minimises the empirical risk
    E_n over a class of functions, f_c the expected risk E; e is the smallest risk in the whole
    space, E(f*) the smallest of all.

    Attributes
    ----------
    generalisation : float
        E(f) - E_n(f).
    optimisation : float
        E_n(f) - E_n(f_n) >= 0: what more steps would gain.
    excess_empirical : float
        E_n(f_n) - E_n(f_c) <= 0, because f_n minimises E_n.
    fluctuation : float
        E_n(f_c) - E(f_c), with mean zero.
    approximation : float
        E(f_c) - e >= 0: the price of a small class.
    irreducible : float
        e - E(f*) >= 0: zero if the space is universal.

    Examples
    --------
    >>> import mercer as mc
    >>> parts = mc.theory.learning.RiskDecomposition.of(
    ...     fit=(0.30, 0.18), minimiser=0.17, best=(0.22, 0.2), space=0.15, bayes=0.1
    ... )
    >>> round(parts.total, 12), round(parts.sample_error, 12), round(parts.bound, 12)
    (0.2, 0.08, 0.23)
    """

    generalisation: float
    optimisation: float
    excess_empirical: float
    fluctuation: float
    approximation: float
    irreducible: float

    @classmethod
    def of(
        cls,
        fit: tuple[float, float],
        minimiser: float,
        best: tuple[float, float],
        space: float,
        bayes: float,
    ) -> RiskDecomposition:
        """Return the parts.

        Parameters
        ----------
        fit : (E(f), E_n(f))
        minimiser : E_n(f_n)
        best : (E(f_c), E_n(f_c))
        space : e
        bayes : E(f*)
        """
        return cls(
            generalisation=fit[0] - fit[1],
            optimisation=fit[1] - minimiser,
            excess_empirical=minimiser - best[1],
            fluctuation=best[1] - best[0],
            approximation=best[0] - space,
            irreducible=space - bayes,
        )

    @property
    def sample_error(self) -> float:
        """E(f) - E(f_c): the first four parts."""
        return self.generalisation + self.optimisation + self.excess_empirical + self.fluctuation

    @property
    def total(self) -> float:
        """The excess risk, E(f) - E(f*): all parts."""
        return self.sample_error + self.approximation + self.irreducible

    @property
    def bound(self) -> float:
        """The excess risk without the part that is never positive: an upper bound."""
        return self.total - self.excess_empirical


def memorise(X: Any, y: Any) -> Callable[[Any], Array]:
    """Return the predictor that gives y_i at x_i and 0 elsewhere.

    Its empirical risk is zero for every loss with l(y, y) = 0, and its expected risk that of the
    function 0 if the distribution of x has no atoms, however large the sample: it overfits.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Points x_i. If some are equal, the last one is used.
    y : array_like of shape (n,)
        Values y_i.

    Returns
    -------
    callable
        From points of shape (m, d) to values of shape (m,).

    Examples
    --------
    >>> import mercer as mc
    >>> f = mc.theory.learning.memorise([[0.1], [0.2]], [3.0, 4.0])
    >>> f([[0.2], [0.3]])
    array([4., 0.])
    """
    X = as_dense_points(X)
    y = as_vector(y, "y", len(X))
    known = {tuple(row): value for row, value in zip(X.tolist(), y, strict=True)}

    def predict(Z: Any) -> Array:
        return np.array([known.get(tuple(row), 0.0) for row in as_dense_points(Z).tolist()])

    return predict


def overfits(expected: float, empirical: float, smallest: float, margin: float = 0.0) -> bool:
    """Whether a predictor overfits: E(f) - E(f*) > margin although E_n(f) <= E(f*).

    Parameters
    ----------
    expected, empirical : float
        E(f) and E_n(f).
    smallest : float
        E(f*).
    margin : float, default=0

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.overfits(expected=1.0, empirical=0.0, smallest=0.1)
    True
    """
    expected, smallest = real(expected, "expected"), real(smallest, "smallest")
    return expected - smallest > real(margin, "margin") and real(empirical, "empirical") <= smallest
