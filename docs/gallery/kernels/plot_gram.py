"""
Similarity of words
===================

A string kernel counts common pairs of letters. :func:`mercer.plot.plot_gram` shows the matrix of
all similarities and its eigenvalues.
"""

import mercer as mc
from mercer.plot import plot_gram

words = ["banana", "bandana", "ananas", "husky", "huskies", "dusk", "dusky"]
plot_gram(mc.kernels.Normalised(mc.Spectrum(2)), words)
