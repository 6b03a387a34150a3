"""Kernels of points that are not vectors: categories, strings, sets and tables."""
