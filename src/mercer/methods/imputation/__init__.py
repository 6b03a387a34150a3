"""Imputation of missing entries by chained kernel ridge regressions."""
