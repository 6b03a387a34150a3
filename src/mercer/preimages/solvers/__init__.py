"""Pre-image solvers: immutable settings without data."""
