"""Kernel PCA: principal subspaces, spectral filters, landmarks, inverses, smoothers."""
