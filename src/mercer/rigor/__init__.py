"""Rigorous numerics: intervals, enclosures over boxes, suprema, rounding, branch and bound."""

from mercer.rigor._third_derivatives import third_derivative_bounds

__all__ = ["third_derivative_bounds"]
