"""Shared parts of plots: figures, axes, names of columns, and the panel of eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, as_vector, header, instance, is_sparse
from mercer._frames import Framed, names_of
from mercer.exceptions import InputError
from mercer.kernels import Definiteness, Kernel
from mercer.kernels._names import rounded
from mercer.plot._style import BLUE, ORANGE
from mercer.space import Element

SHOWN = 25  # eigenvalues or atoms at most
ROUNDING = 1e-12  # of the largest eigenvalue; smaller ones are rounding error
NEGATIVE = 1e-10  # of the largest eigenvalue; below minus this, an eigenvalue is negative

_WORDS = {
    Definiteness.POSITIVE: "positive definite",
    Definiteness.CONDITIONAL: "conditionally positive definite",
    Definiteness.INDEFINITE: "not positive definite",
    Definiteness.UNKNOWN: "definiteness unknown",
}
_LONGEST = 64  # characters of a kernel in a title


def panels(
    ax: Any, size: tuple[float, float], widths: tuple[float, ...] = (1.0,), title: str = ""
) -> Array:
    """The given axes, checked, or those of a new figure of pyplot, side by side under a title."""
    if ax is None:
        import matplotlib.pyplot as plt  # only now: a program with its own figures needs no pyplot

        figure = plt.figure(figsize=size, layout="constrained")
        if title:
            figure.suptitle(title, fontsize=9, parse_math=False)
        ax = figure.subplots(1, len(widths), width_ratios=widths)
    given = np.ravel(np.asarray(ax, dtype=object))
    if len(given) != len(widths) or not all(hasattr(axis, "plot") for axis in given):
        found = f"{len(given)} of type {type(given[0]).__name__ if len(given) else 'nothing'}"
        made = f"as plt.subplots(1, {len(widths)}) makes them"
        raise InputError(f"ax must be {len(widths)} matplotlib axes, {made}; got {found}")
    return given


def kernel_name(kernel: Kernel) -> str:
    """A kernel, with numbers of four digits and the names of functions."""
    name = rounded(kernel)
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def kernel_title(kernel: Kernel) -> str:
    """A kernel and its definiteness."""
    return f"{kernel_name(kernel)}  ·  {_WORDS[kernel.flags.definiteness]}"


def element_points(element: Any, name: str = "element") -> tuple[Array, Array]:
    """Points and coefficients of a single element of points with numbers as columns."""
    if instance(element, Element, name).batch is not None:
        raise InputError(f"{name} must be one element, not a batch of {element.batch}; index it")
    Z = element.points
    if is_sparse(Z) or not isinstance(Z, np.ndarray) or Z.ndim != 2 or Z.dtype.kind not in "fiu":
        raise InputError(f"the points of {name} are not dense arrays of numbers: not drawn")
    return np.asarray(Z, dtype=np.float64), element.coef.tile(slice(None), slice(None))[:, 0]


def as_names(names: Any, count: int, what: str = "names") -> list[str]:
    if isinstance(names, str) or not hasattr(names, "__len__") or len(names) != count:
        found = f"{len(names)} of them" if hasattr(names, "__len__") else type(names).__name__
        found = "one string" if isinstance(names, str) else found
        raise InputError(f"{what} must be a list of {count} names, got {found}")
    return [str(name) for name in names]


def column_names(names: Any, count: int, *sources: Any) -> list[str]:
    """The given names, else those of the first frame, model or result with names, else x0, ..."""
    for source in sources if names is None else ():
        known = source.header if isinstance(source, Framed) else header(source)
        own = names_of(source) if known is None else known.names  # numbers, too
        found = getattr(source, "feature_names_in_", own)
        if found is not None and len(found) == count:
            return [str(name) for name in found]
    return [f"x{j}" for j in range(count)] if names is None else as_names(names, count)


def box(
    X: Array, low: Any = None, high: Any = None, *, margin: float = 0.08
) -> tuple[Array, Array]:
    """The given corners, or those of the bounding box with a margin, a share of its sides."""
    least, most = X.min(axis=0), X.max(axis=0)
    spare = margin * np.where(most > least, most - least, 1.0)
    low = least - spare if low is None else as_vector(low, "low")
    high = most + spare if high is None else as_vector(high, "high")
    size = (X.shape[1],)
    if low.shape != size or high.shape != size or not (low < high).all():
        what = "pairs" if size == (2,) else "of length 1"
        raise InputError(f"low and high must be {what} with low < high, got {low} and {high}")
    return low, high


def pair(columns: Any, names: list[str]) -> tuple[int, int]:
    """The numbers of two columns that are given by number or by name."""
    given = columns if isinstance(columns, list | tuple | np.ndarray) else ()
    found = [names.index(c) if isinstance(c, str) and c in names else c for c in given]
    d = len(names)
    allowed = [int(c) for c in found if isinstance(c, int | np.integer) and 0 <= c < d]
    if len(found) != 2 or len(set(allowed)) != 2:
        raise InputError(
            f"columns must be two different numbers below {d} or names of columns, got {columns!r}"
        )
    return allowed[0], allowed[1]


def tidy(axis: Any, title: str, across: str = "", up: str = "") -> None:
    """Set the title and labels in small type, and remove the frame at the top and right."""
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(across, fontsize=8, labelpad=1.5, parse_math=False)
    axis.set_ylabel(up, fontsize=8, parse_math=False)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=7.5)


def colour_bar(axis: Any, shown: Any, values: Array, *, signed: bool, label: str = "") -> None:
    """A thin colour bar in small type; if it is signed, without a sign that does not occur."""
    bar = axis.figure.colorbar(shown, ax=axis, fraction=0.05, pad=0.02)
    if signed and values.min() >= 0.0:
        bar.ax.set_ylim(bottom=0.0)
    elif signed and values.max() <= 0.0:
        bar.ax.set_ylim(top=0.0)
    bar.ax.tick_params(labelsize=7.5)
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=8)


def draw_eigenvalues(axis: Any, K: Array) -> None:
    """Draw the largest eigenvalues of K / n on a logarithmic scale; negative ones are open.

    For equally spaced points they approach those of the integral operator of the uniform measure.
    """
    values = np.linalg.eigvalsh(0.5 * (K + K.T)) / len(K)
    values = values[np.argsort(-np.abs(values), kind="stable")]
    real = values[np.abs(values) > ROUNDING * np.abs(values[0])]
    some = min(SHOWN, len(values))
    words = f"number ({len(real)} above rounding)" if len(real) < some else "number"
    tidy(axis, "eigenvalues", words)
    shown = real[:SHOWN]
    order = np.arange(1, len(shown) + 1)
    up, down = shown > 0, shown < 0
    axis.plot(order[up], shown[up], "o", ms=3.5, color=BLUE, label="positive")
    if down.any():
        style = {"mfc": "white", "mec": ORANGE, "mew": 1.2}
        axis.plot(order[down], -shown[down], "o", ms=4, label="negative", **style)
        axis.legend(fontsize=7, frameon=False, handletextpad=0.1, borderpad=0.1)
    axis.set_xlim(0.0, 1.0 + some)
    axis.xaxis.get_major_locator().set_params(integer=True)
    log_scale(axis, np.abs(shown), ROUNDING)


def log_ticks(axis: Any) -> None:
    """A logarithmic x or y axis with plain numbers; 1, 2 and 5 of each decade if there are few."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_view_interval()
    if high <= 200.0 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    if low >= 1e-4 and high <= 1e6:
        axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter("")


def log_scale(axis: Any, heights: Array, floor: float) -> None:
    """Set a logarithmic scale for heights down to `floor` times the largest.

    It spans at least two decades, so that nearly equal heights look equal.
    """
    heights = heights[heights > 0]
    if not len(heights):
        axis.set_yticks([])
        return
    high = float(np.log10(heights.max()))
    low = max(float(np.log10(heights.min())), high + float(np.log10(floor)))
    spare = max(0.06 * (high - low), 0.5 * (2.0 - (high - low)))
    axis.set_ylim(10.0 ** (low - spare), 10.0 ** (high + spare))
    axis.set_yscale("log")
    axis.yaxis.set_minor_formatter("")
