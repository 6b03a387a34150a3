"""
Where the objective of a pre-image is convex
============================================

The witness of two samples has coefficients of both signs, so the objective of its pre-image has
minima, maxima and saddles. Inside the shaded regions its Hessian is positive definite: Newton's
direction descends, and a stationary point is a minimum.
"""

import numpy as np

import mercer as mc
from mercer import datasets
from mercer.plot import plot_convexity

ring = datasets.ring(random_state=0).points[:100]
blob = np.random.default_rng(1).normal(scale=0.8, size=(100, 2))
witness = mc.methods.witness(mc.Gaussian(0.5), ring, blob)

plot_convexity(witness, low=[-2, -2], high=[2, 2])
