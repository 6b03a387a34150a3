"""Noisy curves in the plane: the sets of the literature on pre-images, with what is true of them.

Each function draws a `Sample`: points, the clean points that noise moved, and the distance of any
points to the clean curve, which is what denoising is scored by.
"""

from mercer.datasets._sample import Sample
from mercer.datasets._sets import banana, frame, ring, sine, spiral

__all__ = ["Sample", "banana", "frame", "ring", "sine", "spiral"]
