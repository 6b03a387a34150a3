"""Noisy curves in the plane: test data from the literature on pre-images.

Each function draws a `Sample`: noisy points, the clean points they came from, and the distance of
any point to the clean curve, which measures how well points were denoised.
"""

from mercer.datasets._noisy_curves import Sample, banana, frame, ring, sine, spiral

__all__ = ["Sample", "banana", "frame", "ring", "sine", "spiral"]
