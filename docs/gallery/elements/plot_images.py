"""
Denoised digits
===============

A denoiser is fitted to noisy images only. :func:`mercer.plot.plot_images` draws the noisy images,
the denoised ones, and the difference, which should look like noise.
"""

import numpy as np
from sklearn.datasets import load_digits

import mercer as mc
from mercer.plot import plot_images

clean = 1 - load_digits().data / 16  # dark ink
noisy = clean + np.random.default_rng(0).normal(scale=0.2, size=clean.shape)
model = mc.KernelDenoiser().fit(noisy[:600])

some = noisy[600:608]
plot_images({"noisy": some, "denoised": model.transform(some)}, difference=True)
