"""Plots of kernels, Gram matrices, modes and basins; needs matplotlib (extra `plot`).

Each function returns a matplotlib Figure: that of the `axes` it is given, or a new one, which
pyplot does not manage.
"""

from mercer.plot._gram import plot_gram
from mercer.plot._kernel import plot_kernel
from mercer.plot._modes import plot_basins, plot_modes, plot_scale_space

__all__ = ["plot_basins", "plot_gram", "plot_kernel", "plot_modes", "plot_scale_space"]
