"""
Coefficients of a principal component
=====================================

A direction of kernel PCA is a weighted sum of features of the data.
:func:`mercer.plot.plot_coefficients` draws the weights: here the first direction sets words like
*banana* against words like *dusk*.
"""

import mercer as mc
from mercer.plot import plot_coefficients

words = ["banana", "bandana", "ananas", "husky", "huskies", "dusk", "dusky"]
plane = mc.kernel_pca(mc.kernels.Normalised(mc.Spectrum(2)), words, 3)
plot_coefficients(plane.directions, labels=words)
