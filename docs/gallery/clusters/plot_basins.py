"""
Which cluster would a new point join?
=====================================

Every point of the plane moves uphill to some mode. Points with the same mode form a basin of
attraction, which is where new rows would get that label. :func:`mercer.plot.plot_basins` starts
mean shift at every pixel.
"""

from sklearn.datasets import load_iris

import mercer as mc
from mercer.plot import plot_basins

iris = load_iris()
model = mc.MeanShift(bandwidth=0.35).fit(iris.data[:, 2:])
plot_basins(model, resolution=100, names=iris.feature_names[2:])
