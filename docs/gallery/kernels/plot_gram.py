"""
Similarity of words
===================

A kernel on strings counts common pairs of letters, and no word needs to become a vector.
:func:`mercer.plot.plot_gram` shows the matrix of all similarities and its eigenvalues: how many
directions the words span.
"""

import mercer as mc
from mercer.plot import plot_gram

words = ["banana", "bandana", "ananas", "husky", "huskies", "dusk", "dusky"]
plot_gram(mc.kernels.Normalised(mc.Spectrum(2)), words)
