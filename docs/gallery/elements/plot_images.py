"""
Denoised digits
===============

A denoiser is fitted to noisy images only: it never sees a clean one.
:func:`mercer.plot.plot_images` draws what was given, what came back, and the difference, which
should look like noise.
"""

import numpy as np
from sklearn.datasets import load_digits

import mercer as mc
from mercer.plot import plot_images

clean = load_digits().data / 16
noisy = clean + np.random.default_rng(0).normal(scale=0.2, size=clean.shape)
model = mc.KernelDenoiser().fit(noisy[:600])

some = noisy[600:614]
plot_images({"given": some, "denoised": model.transform(some)}, difference=True)
