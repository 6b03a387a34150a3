"""Uniform stability: bounds for Tikhonov regularisation and for early stopping.

An algorithm is beta-stable if replacing one row of the sample changes the loss of its predictor at
every point by at most beta. Then the means of its empirical risk and its risk differ by at most
beta, and with high probability the risks themselves differ by little more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import instance, non_negative, positive, positive_int
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.linalg import leverage_scores
from mercer.theory._checks import in_range
from mercer.theory.learning._finite_class import probability


@in_range
def stability_bound(beta: float, n: int, delta: float, largest: float) -> float:
    """With probability at least 1 - delta, for a beta-stable algorithm,

        |E_n(f) - E(f)| <= beta + (n beta + M) sqrt(2 log(2 / delta) / n).

    McDiarmid's inequality for E_n(f) - E(f), which one row changes by at most 2 beta + 2 M / n.
    Useful only if beta falls faster than 1 / sqrt(n).

    Parameters
    ----------
    beta : float
        >= 0. |E[E_n(f) - E(f)]| <= beta holds without the second term.
    n : int
        Rows of the sample.
    delta : float
        In (0, 1].
    largest : float
        M >= |l(y, f(x))| for all predictors that the algorithm may return.

    Examples
    --------
    >>> import mercer as mc
    >>> round(mc.theory.learning.stability_bound(0.0002, 10_000, 0.05, largest=2.4), 3)
    0.12
    """
    beta, n = non_negative(beta, "beta"), positive_int(n, "n")
    root = np.sqrt(2.0 * np.log(2.0 / probability(delta)) / n)
    return float(beta + (n * beta + positive(largest, "largest")) * root)


@in_range
def tikhonov_stability(n: int, penalty: float, lipschitz: float, kappa: float) -> float:
    """beta = L^2 kappa^2 / (n penalty) of Tikhonov regularisation.

    The algorithm returns the minimiser of mean_i l(y_i, f(x_i)) + penalty |f|^2 in the space of a
    kernel, without an intercept, for a convex loss. The constant is sharp: the absolute loss
    attains it. (The lecture notes give twice this value.)

    Parameters
    ----------
    n : int
        Rows of the sample.
    penalty : float
        > 0, of the mean loss. For |f|^2 / 2 + C sum_i l(y_i, f(x_i)) it is 1 / (2 C n).
    lipschitz : float
        L, the Lipschitz constant of the loss in the prediction.
    kappa : float
        kappa^2 >= k(x, x) for all x.

    References
    ----------
    O. Bousquet and A. Elisseeff, Stability and generalization, JMLR 2, 2002.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.tikhonov_stability(10_000, penalty=0.5, lipschitz=1.0, kappa=1.0)
    0.0002
    """
    L, kappa = positive(lipschitz, "lipschitz"), positive(kappa, "kappa")
    return (L * kappa) ** 2 / (positive_int(n, "n") * positive(penalty, "penalty"))


@in_range
def tikhonov_largest_loss(penalty: float, lipschitz: float, kappa: float, at_zero: float) -> float:
    """M = kappa L sqrt(c / penalty) + c, a bound on the losses of Tikhonov regularisation.

    Because f = 0 is a candidate, |f|^2 <= c / penalty. The loss must be >= 0.

    Parameters
    ----------
    penalty : float
        > 0, of the mean loss.
    lipschitz : float
        L > 0, the Lipschitz constant of the loss in the prediction.
    kappa : float
        > 0, kappa^2 >= k(x, x) for all x.
    at_zero : float
        c >= l(y, 0) for all y.

    Examples
    --------
    >>> import mercer as mc
    >>> round(mc.theory.learning.tikhonov_largest_loss(0.5, 1.0, 1.0, at_zero=1.0), 2)
    2.41
    """
    c = non_negative(at_zero, "at_zero")
    norm = float(np.sqrt(c / positive(penalty, "penalty")))
    return positive(kappa, "kappa") * positive(lipschitz, "lipschitz") * norm + c


@in_range
def tikhonov_rate(n: int, smoothness: float) -> tuple[float, float]:
    """The penalty n^(-1 / (s + 1)) and the rate n^(-s / (s + 1)) of the excess risk.

    They balance the stability, of order 1 / (n penalty), with an approximation error of order
    penalty^s. For f* in the space of the kernel s = 1, and the rate is 1 / sqrt(n).

    Parameters
    ----------
    n : int
        Rows of the sample.
    smoothness : float
        s > 0.

    Returns
    -------
    penalty, rate : float

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.tikhonov_rate(10_000, smoothness=1.0)
    (0.01, 0.01)
    """
    n, s = positive_int(n, "n"), positive(smoothness, "smoothness")
    return float(n) ** (-1.0 / (s + 1.0)), float(n) ** (-s / (s + 1.0))


@in_range
def early_stopping_stability(
    n: int, steps: int, step_size: float, lipschitz: float, kappa: float
) -> float:
    """beta = 2 L^2 kappa^2 step_size steps / n of gradient descent on the mean loss, from f = 0.

    For a convex loss whose derivative is M-Lipschitz and steps of at most 2 / (M kappa^2), beyond
    which a step may move two functions apart. After t steps |f| <= t step_size L kappa.

    Parameters
    ----------
    n : int
        Rows of the sample.
    steps : int
    step_size, lipschitz, kappa : float

    References
    ----------
    M. Hardt, B. Recht, Y. Singer, Train faster, generalize better: stability of stochastic gradient
    descent, ICML 2016.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.early_stopping_stability(1000, 10, 1.0, lipschitz=1.0, kappa=1.0)
    0.02
    """
    path = positive_int(steps, "steps") * positive(step_size, "step_size")
    L, kappa = positive(lipschitz, "lipschitz"), positive(kappa, "kappa")
    return 2.0 * (L * kappa) ** 2 * path / positive_int(n, "n")


@in_range
def stopping_time(n: int, step_size: float, lipschitz: float, kappa: float, norm: float) -> int:
    """The number of steps t of gradient descent that balances stability and optimisation.

    It minimises the sum of `early_stopping_stability` and the bound |f*|^2 / (2 step_size t) on
    the optimisation error: t = sqrt(n) |f*| / (2 L kappa step_size), rounded up.

    Parameters
    ----------
    n : int
        Rows of the sample.
    step_size, lipschitz, kappa : float
    norm : float
        |f*|, of the function to be learned.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.theory.learning.stopping_time(10_000, 1.0, lipschitz=1.0, kappa=1.0, norm=2.0)
    100
    """
    step = positive(step_size, "step_size")
    slope = positive(lipschitz, "lipschitz") * positive(kappa, "kappa")
    t = np.sqrt(positive_int(n, "n")) * positive(norm, "norm") / (2.0 * slope * step)
    if not np.isfinite(t) or t > 1e15:
        raise InputError("the stopping time exceeds 1e15 steps; take a larger step_size")
    return max(1, int(np.ceil(t * (1.0 - 1e-12))))  # rounding


def effective_dimension(kernel: Kernel, X: Any, penalty: float) -> float:
    """tr K (K + n penalty I)^-1: the number of directions that a penalty leaves free.

    Between 0 and n; the degrees of freedom of ridge regression with this penalty of the mean loss.

    Parameters
    ----------
    kernel : Kernel
        k.
    X : array_like of shape (n, d)
        The n points of K.
    penalty : float
        > 0, of the mean loss.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.linspace(0.0, 3.0, 200)[:, None]
    >>> [round(mc.theory.learning.effective_dimension(mc.Gaussian(1.0), X, p), 1)
    ...  for p in (1.0, 1e-3, 1e-6)]
    [0.7, 4.8, 7.7]
    """
    points = instance(kernel, Kernel, "kernel").points(X)
    scores = leverage_scores(kernel, points, len(points) * positive(penalty, "penalty"))
    return float(scores.sum())
