"""Plot the null distribution of a test with the statistic that was observed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.exceptions import InputError
from mercer.methods import TestResult
from mercer.plot._panels import panels, tidy
from mercer.plot._style import GREY, ORANGE


def plot_null(result: TestResult, *, bins: int = 40, ax: Any = None) -> Any:
    """Plot the null distribution of a test, and the statistic that was observed.

    Draws at least as large as the observed statistic are orange: their share, the observed
    statistic among them, is the p-value.

    Parameters
    ----------
    result : TestResult
    bins : int, default=40
        Bars of the histogram: enough for its shape, few enough for 2,000 draws.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.plot import plot_null
    >>> X = [[0.0], [0.2], [0.3], [0.5]]
    >>> result = mc.mmd_test(X, [[1.0], [1.2], [1.3], [1.6]], n_permutations=99, random_state=0)
    >>> plot_null(result).get_title()
    'p = 0.04 (permutation)'
    """
    if not isinstance(result, TestResult):
        raise InputError(f"result must be what a test returned, got {result!r}")
    values = result.null_statistics
    if not len(values):
        raise InputError(
            f"the null distribution of this test is a formula ({result.null}) without draws; test "
            "with null='permutation' to draw it"
        )
    (axis,) = panels(ax, (4.6, 2.8))
    observed, drawn = float(values[0]), values[1:]
    low, high = float(values.min()), float(values.max())
    if not high > low:
        low, high = low - 0.5, high + 0.5
    # the observed statistic is between two bars; if it is the largest, the smallest is within one
    width = (high - low) / (bins - 0.5)
    before, after = (int(np.ceil(gap / width)) for gap in (observed - low, high - observed))
    edges = observed + width * np.arange(-before, after + 2)
    above = drawn >= observed
    heights = [np.histogram(part, edges)[0] for part in (drawn[~above], drawn[above])]
    for height, colour, bottom in zip(heights, (GREY, ORANGE), (0, heights[0]), strict=True):
        axis.bar(edges[:-1], height, width, bottom, align="edge", color=colour, alpha=0.55, lw=0)
    axis.axvline(observed, color=ORANGE, lw=1.4)
    many = len(result.kernels)
    what = f"statistic, {many} kernels combined" if many > 1 else "statistic"
    tidy(axis, f"p = {result.pvalue:.4g} ({result.null})", what, f"draws (of {len(drawn):,})")
    axis.set_ylim(0.0, 1.15 * float(np.add(*heights).max()))  # room for the word
    side = "right" if observed > 0.5 * (low + high) else "left"
    axis.annotate("observed", (observed, 1.0), (-4 if side == "right" else 4, -1), ha=side,
                  va="top", xycoords=("data", "axes fraction"), textcoords="offset points",
                  fontsize=7.5, color=ORANGE)  # fmt: skip
    return axis
