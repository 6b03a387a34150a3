"""
How many clusters are there?
============================

A small bandwidth finds a mode at every point, a large one a single mode. A number of modes that
stays the same over a long range of bandwidths is a good candidate:
:func:`mercer.plot.plot_scale_space` marks the longest range.
"""

import numpy as np
from sklearn.datasets import load_iris

import mercer as mc
from mercer.plot import plot_scale_space

petals = load_iris().data[:, 2:]
plot_scale_space(mc.methods.scale_space(petals, np.geomspace(0.05, 3.0, 30)))
