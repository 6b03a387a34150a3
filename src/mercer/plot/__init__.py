"""Plots of kernels, Gram matrices, modes, basins and tests; needs matplotlib (extra `plot`).

The first argument is what to draw, the second (if any) the points. Each function draws on the axes
`ax`, or on those of a new figure of pyplot, so `plt.show()` shows it, and returns the axes: one, or
an array of them for plots with several panels. Axes are labelled with the names of columns where a
data frame or a fitted model has them.
"""

from mercer.plot._gram import plot_gram
from mercer.plot._hypothesis_tests import plot_null, plot_witness
from mercer.plot._kernel import plot_kernel
from mercer.plot._modes import plot_basins, plot_modes, plot_scale_space

__all__ = [
    "plot_basins",
    "plot_gram",
    "plot_kernel",
    "plot_modes",
    "plot_null",
    "plot_scale_space",
    "plot_witness",
]
