"""Programs: what the engine sums, as variables, a profile of them, and coefficients."""
