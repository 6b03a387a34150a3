"""Imputation of missing entries with kernel PCA."""
