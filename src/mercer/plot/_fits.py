"""Plot how fits improve: duality gaps, learning curves, first-order methods, and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mercer._array import Array, as_numbers, as_vector, instance, real
from mercer._certificate import FitCertificate
from mercer.exceptions import InputError
from mercer.plot._panels import log_ticks, panels, tidy
from mercer.plot._style import BLUE, COLOURS, DARK, GREY, ORANGE
from mercer.theory.first_order import Run
from mercer.theory.learning import RiskBound

_BAND = (5.0, 95.0)  # percentiles of repeated samples
_SMALLEST_GAP = 1e-16  # relative; smaller ones are rounding, and zero has no logarithm


def plot_gap(certificates: Any, *, ax: Any = None) -> Any:
    """Plot the relative duality gap of a fit after each round of its solver.

    The objective of a fit exceeds the smallest possible one by at most the gap. Gaps below 1e-16
    are drawn at 1e-16.

    Parameters
    ----------
    certificates : sequence of FitCertificate, or mapping of str to such sequences
        `certificate_` of a machine after each round; one curve for each name. For several classes,
        where it is a tuple, the largest gap is drawn.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    `warm_start` continues a fit, here one round at a time.

    >>> import warnings
    >>> import mercer as mc
    >>> from mercer.plot import plot_gap
    >>> X, y = [[0.0], [0.4], [0.5], [1.0], [1.4], [2.0]], [0, 0, 1, 0, 1, 1]
    >>> model = mc.KernelLogisticRegression(mc.Gaussian(1.0), max_iter=1, warm_start=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", mc.MercerWarning)  # each round is unfinished
    ...     found = [model.fit(X, y).certificate_ for _ in range(4)]
    >>> plot_gap(found).get_ylabel()
    'relative duality gap'
    """
    several = certificates if isinstance(certificates, Mapping) else {"": certificates}
    if not several:
        raise InputError("certificates must hold at least one sequence of certificates")
    gaps = {str(name): _relative_gaps(some) for name, some in several.items()}
    (axis,) = panels(ax, (4.6, 2.8))
    tidy(axis, "", "rounds", "relative duality gap")
    for k, (name, values) in enumerate(gaps.items()):
        rounds = np.arange(1, len(values) + 1)
        axis.plot(rounds, values, ".-", color=COLOURS[k % len(COLOURS)], lw=1.2, label=name)
    axis.set_yscale("log")
    axis.xaxis.get_major_locator().set_params(integer=True)
    if isinstance(certificates, Mapping):
        axis.legend(fontsize=7.5, frameon=False)
    return axis


def plot_learning_curve(risks: Any, sizes: Any, *, bounds: Any = None, ax: Any = None) -> Any:
    """Plot risks against the number of rows, with the bounds of learning theory.

    Risks are solid, with the range from the 5th to the 95th percentile if samples were repeated;
    bounds are dashed. Axes are logarithmic, so rates such as 1 / sqrt(n) are straight lines.

    Parameters
    ----------
    risks : array_like of shape (s,) or (s, repeats), or mapping of str to such arrays
        Risks > 0 for each size; one curve for each name.
    sizes : array_like of shape (s,)
        Numbers of rows.
    bounds : sequence of RiskBound, or array_like of shape (s,), optional
        What `mercer.theory.bound` says at each size. A dotted line shows the risk of the function
        0: larger bounds are useless.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from mercer.plot import plot_learning_curve
    >>> from mercer.theory.learning import finite_class_bound
    >>> sizes = [100, 1000, 10_000]
    >>> bounds = [finite_class_bound(20, n, delta=0.05) for n in sizes]
    >>> axis = plot_learning_curve([0.12, 0.04, 0.01], sizes, bounds=bounds)
    >>> axis.get_xscale()
    'log'
    """
    sizes = as_vector(sizes, "sizes")
    if not (sizes > 0.0).all():
        raise InputError("sizes must be > 0, because the axis is logarithmic")
    several = risks if isinstance(risks, Mapping) else {"risk": risks}
    curves = {str(name): _curve(some, len(sizes), str(name)) for name, some in several.items()}
    (axis,) = panels(ax, (4.6, 2.8))
    tidy(axis, "", "rows", "risk")
    for k, (name, values) in enumerate(curves.items()):
        colour = COLOURS[(k + 1) % len(COLOURS)]
        axis.plot(sizes, values.mean(axis=1), ".-", color=colour, lw=1.2, label=name)
        if values.shape[1] > 1:
            band = np.percentile(values, _BAND, axis=1)
            axis.fill_between(sizes, *band, color=colour, alpha=0.2, lw=0)
    if bounds is not None:
        _draw_bounds(axis, sizes, bounds)
    axis.set(xscale="log", yscale="log")
    log_ticks(axis.xaxis)
    log_ticks(axis.yaxis)
    axis.legend(fontsize=7.5, frameon=False)
    return axis


def plot_descent(run: Run, *, minimum: float = 0.0, ax: Any = None) -> Any:
    """Plot f - min f along a first-order method, and the bound that theory promises.

    Parameters
    ----------
    run : Run
        The result of `mercer.theory.first_order.gradient_descent` or `subgradient_method`.
    minimum : float, default=0
        min f.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from mercer.plot import plot_descent
    >>> from mercer.theory.first_order import gradient_descent
    >>> run = gradient_descent(
    ...     lambda x: x @ x, lambda x: 2 * x, [1.0, 2.0], 20, smoothness=4.0, minimiser=[0.0, 0.0]
    ... )
    >>> [text.get_text() for text in plot_descent(run).get_legend().get_texts()]
    ['f', 'bound']
    """
    values = instance(run, Run, "run").values - real(minimum, "minimum")
    if values.min() < 0.0:
        raise InputError(f"minimum is {minimum!r}, but f is {run.values.min()!r} on the way")
    (axis,) = panels(ax, (4.6, 2.8))
    tidy(axis, "", "step", "f - min f")
    t = np.arange(len(values))
    rises = bool((np.diff(values) > 0.0).any())
    axis.plot(t, values, color=GREY if rises else ORANGE, lw=0.8 if rises else 1.2, label="f")
    if rises:
        best = np.minimum.accumulate(values)
        axis.plot(t, best, color=ORANGE, lw=1.2, label="best so far")
    if np.isfinite(run.bound).any():
        axis.plot(t, run.bound, color=BLUE, lw=1.2, ls="--", label="bound")
    axis.set(xscale="log", yscale="log", xlim=(1, len(t) - 1))
    log_ticks(axis.xaxis)
    log_ticks(axis.yaxis)
    axis.legend(fontsize=7.5, frameon=False)
    return axis


def _relative_gaps(certificates: Any) -> list[float]:
    some = certificates if isinstance(certificates, Sequence) else ()
    found = [c if isinstance(c, tuple) else (c,) for c in some]
    if not found or not all(isinstance(c, FitCertificate) for some in found for c in some):
        raise InputError(
            "certificates must be those of a fit after each round, such as "
            "[model.fit(X, y).certificate_ for _ in range(9)] with max_iter=1, warm_start=True"
        )
    return [max(_SMALLEST_GAP, *(c.relative_gap for c in some)) for some in found]


def _curve(risks: Any, count: int, name: str) -> Array:
    """Risks of shape (sizes, repeats)."""
    values = as_numbers(risks, name)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != count or not values.size:
        raise InputError(f"{name} must have one row for each of {count} sizes, got {values.shape}")
    if not (values > 0.0).all():
        raise InputError(f"{name} must be > 0, because the axis is logarithmic")
    return values


def _draw_bounds(axis: Any, sizes: Array, bounds: Any) -> None:
    if isinstance(bounds, str) or not hasattr(bounds, "__len__"):
        raise InputError(f"bounds must be one for each size, got {bounds!r}")
    known = [b for b in bounds if isinstance(b, RiskBound)]
    numbers = [b.value if isinstance(b, RiskBound) else b for b in bounds]
    values = as_vector(numbers, "bounds", len(sizes))
    axis.plot(sizes, values, color=BLUE, lw=1.2, ls="--", label="bound")
    if known:
        axis.axhline(known[0].trivial, color=DARK, lw=0.8, ls=":", label="function 0")
        axis.set_title(f"bounds hold with probability {1.0 - known[0].delta:.3g}", fontsize=9)
