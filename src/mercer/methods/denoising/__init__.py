"""Denoising by kernel PCA: noise level, filter, the way back."""
