"""
A kernel, its spectrum and its functions
========================================

A yearly season that slowly changes its shape: :func:`mercer.plot.plot_kernel` draws the kernel, its
spectrum, and random functions with this covariance, which show what a model with this kernel
assumes.
"""

import numpy as np

import mercer as mc
from mercer.plot import plot_kernel

kernel = mc.Gaussian(2.0) * mc.Periodic((0.3, 0.5, 0.2), period=1.0)
plot_kernel(kernel, np.linspace(-3, 3, 301), n_samples=2)
