"""Denoising by kernel PCA: the noise level, the denoiser, its estimated error."""
