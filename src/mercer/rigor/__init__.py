"""Rigorous numerics: intervals, enclosures over boxes, suprema, rounding, branch and bound."""
