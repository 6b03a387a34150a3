"""
Paths of pre-image searches
===========================

The mean of the features of all data is an element, and searches for its pre-image end at modes of
the density. Searches start at four points, and :func:`mercer.plot.plot_path` draws their paths over
the objective. Each path goes quickly to the ring of the data, then slowly along it.
"""

import numpy as np

import mercer as mc
from mercer import datasets
from mercer.plot import plot_path

ring = datasets.ring(random_state=0).points
kernel = mc.Gaussian(0.3)
starts = np.array([[1.6, 1.2], [-0.4, 0.5], [-1.5, -1.3], [1.0, -1.4]])
four_times = mc.Element(kernel, ring, np.full((len(ring), 4), 1 / len(ring)))

back = mc.preimage(four_times, mc.FixedPoint(), start=starts, history=True)
plot_path(back, four_times[0])
