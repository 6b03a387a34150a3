"""Plots of kernels, elements, pre-images, modes, tests and fits; needs matplotlib (extra `plot`).

The first argument is what to draw, the second (if any) the points. Each function draws on the axes
`ax`, or on those of a new figure of pyplot, so `plt.show()` shows it, and returns the axes: one, or
an array of them for plots with several panels. Axes are labelled with the names of columns if a
data frame or a fitted model has them. Blue is positive or low, orange is negative or moving; no
plot relies on the difference between red and green.
"""

from mercer.plot._element import plot_element, plot_witness
from mercer.plot._fits import plot_descent, plot_gap, plot_learning_curve
from mercer.plot._hypothesis_tests import plot_null
from mercer.plot._images import plot_images
from mercer.plot._kernel import plot_kernel
from mercer.plot._matrices import plot_coefficients, plot_gram, plot_weights
from mercer.plot._modes import plot_basins, plot_modes, plot_scale_space
from mercer.plot._preimages import plot_convexity, plot_path, plot_surrogate

__all__ = [
    "plot_basins",
    "plot_coefficients",
    "plot_convexity",
    "plot_descent",
    "plot_element",
    "plot_gap",
    "plot_gram",
    "plot_images",
    "plot_kernel",
    "plot_learning_curve",
    "plot_modes",
    "plot_null",
    "plot_path",
    "plot_scale_space",
    "plot_surrogate",
    "plot_weights",
    "plot_witness",
]
