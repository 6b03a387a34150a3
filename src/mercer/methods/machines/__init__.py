"""Regression and classification: ridge, support vector machines, logistic, with certificates."""
