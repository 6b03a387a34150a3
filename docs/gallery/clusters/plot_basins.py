"""
Which cluster would a new point join?
=====================================

Mean shift moves every point of the plane uphill to a mode. Points with the same mode form its
basin of attraction: new rows there get its label. :func:`mercer.plot.plot_basins` starts mean shift
at every pixel.
"""

from sklearn.datasets import load_iris

import mercer as mc
from mercer.plot import plot_basins

iris = load_iris()
model = mc.MeanShift(bandwidth=0.35).fit(iris.data[:, 2:])
plot_basins(model, resolution=100, names=iris.feature_names[2:])
