"""
The weights of mean shift
=========================

In each step of mean shift a flower moves to a weighted mean of all flowers.
:func:`mercer.plot.plot_weights` draws these weights, a row for each flower. Rows are sorted by
species: the first is separate, and the other two share weights.
"""

from sklearn.datasets import load_iris

import mercer as mc
from mercer.plot import plot_weights

density = mc.mean_embedding(mc.Gaussian(0.7), load_iris().data)
plot_weights(density)
