"""Kernel PCA: principal subspaces, spectral filters, landmarks."""
