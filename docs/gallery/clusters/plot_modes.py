"""
Clusters and their modes
========================

Mean shift moves each flower uphill on an estimate of the density; flowers that reach the same mode
form a cluster. The number of clusters follows from the bandwidth.
:func:`mercer.plot.plot_modes` draws points in the colour of their mode, and the contours of the
density.
"""

from sklearn.datasets import load_iris

import mercer as mc
from mercer.plot import plot_modes

iris = load_iris()
petals, names = iris.data[:, 2:], iris.feature_names[2:]

model = mc.MeanShift(bandwidth=0.35).fit(petals)
plot_modes(model, petals, names=names)
