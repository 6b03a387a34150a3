"""Imputation: missing entries from principal subspaces."""
